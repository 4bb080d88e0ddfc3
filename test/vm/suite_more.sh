# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# What suite_dat.sh and suite_mpi.sh run over one of the devices each time, over the other.
. "$DAT_SRCDIR/test/vm/suite_dat.sh"
. "$DAT_SRCDIR/test/vm/suite_mpi.sh"

tests=(
    "400 dtest_over_siw programs siw0 $siw FALSE dtest"
    "400 dtestcm_dtestsrq_dtestx_over_rxe programs rxe0 $rxe TRUE others"
    "300 dapltest_over_rxe programs rxe0 $rxe TRUE dapltest"
    "300 two_processes_over_siw__compute_right over_dat s0"
    "300 two_processes_over_rxm_on_rxe__compute_right over_rxm r0"
)
