#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Everything that the benchmark measures runs, and either side counts as many
# operations as it should. How long it takes is of no matter.
set -u
build=${DAT_BUILDDIR:-.}
export FI_PROVIDER_PATH=$build/.libs

"$build/test/bench/bench" --smoke || exit 1
# Two domains that nothing but the program moves: over TCP what is posted waits for a call in its own.
for shm in 0 1; do
    FI_DAT_SHM=$shm FI_CALLS_DOMAINS=2 FI_CALLS_PROGRESS=manual timeout -k 5 120 \
        "$build/test/bench/fi_calls" dat 127.0.0.1 messages 16 240 || exit 1
done
# Peers of one endpoint, and a mesh of processes.
for shm in 0 1; do
    for mode in 'peers dat 127.0.0.1 20 100' 'mesh dat 127.0.0.1 6 3'; do
        # Unquoted on purpose: a mode with its words.
        FI_DAT_SHM=$shm timeout -k 5 120 "$build/test/bench/rdm_scale" $mode || exit 1
    done
done
rpma_calls=$build/test/bench/rpma_calls
[ ! -x "$rpma_calls" ] || "$rpma_calls" 127.0.0.1 writes 4 20 || exit 1
"$build/test/bench/copies" 4096 || exit 1
"$build/test/bench/matching_calls" expected source 100 100 100 || exit 1
"$build/test/bench/matching_calls" unexpected tag 100 100 100 || exit 1
[ "${DAT_UDAPL:-yes}" != no ] || exit 0
export DAT_OVERRIDE=/dev/null
"$build/test/bench/dat_calls" messages 4 20 || exit 1
"$build/test/bench/dat_calls" empty 1 20 || exit 1
"$build/test/bench/polled" 3 100 5
