# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# What test/bench measures over RDMA devices: instructions, which emulation counts as they are;
# times, each beside what does the same, in turn; and those of uDAPL programs beside the genuine
# library. Each prints a table (run.sh --keep DIR keeps them); test/bench/README.md says what it
# is.

tests=(
    "900 instructions_over_rxe measure verbs_calls.sh $DAT_BUILDDIR $rxe"
    "900 instructions_over_siw measure verbs_calls.sh $DAT_BUILDDIR $siw"
    "600 times_polling_over_rxe measure verbs_times.sh $DAT_BUILDDIR $rxe polling"
    "600 times_waiting_over_rxe measure verbs_times.sh $DAT_BUILDDIR $rxe waiting"
    "600 times_polling_over_siw measure verbs_times.sh $DAT_BUILDDIR $siw polling"
    "600 times_waiting_over_siw measure verbs_times.sh $DAT_BUILDDIR $siw waiting"
    "1800 rpma_over_rxe rpma"
    "2400 udapl_over_rxe measure dapl_times.sh $DAT_BUILDDIR rxe0 r0 $rxe 7 ${DAT_EARLIER:-}"
    "600 dtestcm_over_rxe only dtestcm dapl_times.sh $DAT_BUILDDIR rxe0 r0 $rxe 7 ${DAT_EARLIER:-}"
)

only() { # program script arguments...
    export WHAT=$1
    shift
    measure "$@"
}

measure() { # script arguments...
    local script=$1
    shift
    bash "$DAT_SRCDIR/test/bench/$script" "$@"
}

rpma() {
    local genuine
    genuine=$(/sbin/ldconfig -p | sed -n 's,.*librpma\.so\.0 .* => \(/.*\)/librpma\.so\.0$,\1,p' | head -n 1)
    [ -n "$genuine" ] || { echo 'there is no genuine librpma (Debian: librpma0)'; exit 77; }
    measure rpma_calls.sh "$DAT_BUILDDIR" $rxe "$genuine"
}
