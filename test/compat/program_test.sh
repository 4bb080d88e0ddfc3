#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A program that was built against version 0.1 runs with the provider that was built, over each
# link.
set -u
build=${DAT_BUILDDIR:-.}
export FI_PROVIDER_PATH=$build/.libs FI_PROVIDER=dat
status=0
for shm in 0 1; do
    FI_DAT_SHM=$shm "$build/test/compat/program" || {
        echo "FAILED with FI_DAT_SHM=$shm"
        status=1
    }
done
exit $status
