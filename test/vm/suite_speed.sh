# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# What test/bench measures over RDMA devices: instructions, which emulation counts as they are.
# Each prints a table (run.sh --keep DIR keeps them); test/bench/README.md says what it is.

tests=(
    "900 instructions_over_rxe instructions $rxe"
    "900 instructions_over_siw instructions $siw"
)

instructions() { # address
    bash "$DAT_SRCDIR/test/bench/verbs_calls.sh" "$DAT_BUILDDIR" "$1"
}
