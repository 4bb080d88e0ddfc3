#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Everything that the benchmark measures runs, and either side counts as many
# operations as it should. How long it takes is of no matter.
set -u
build=${DAT_BUILDDIR:-.}
export FI_PROVIDER_PATH=$build/.libs

"$build/test/bench/bench" --smoke || exit 1
rpma_calls=$build/test/bench/rpma_calls
[ ! -x "$rpma_calls" ] || "$rpma_calls" 127.0.0.1 writes 4 20 || exit 1
"$build/test/bench/matching_calls" expected source 100 100 100 || exit 1
"$build/test/bench/matching_calls" unexpected tag 100 100 100 || exit 1
[ "${DAT_UDAPL:-yes}" != no ] || exit 0
export DAT_OVERRIDE=/dev/null
"$build/test/bench/dat_calls" messages 4 20 || exit 1
"$build/test/bench/dat_calls" empty 1 20 || exit 1
"$build/test/bench/polled" 3 100 5
