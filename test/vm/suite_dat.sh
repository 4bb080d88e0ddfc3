# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# uDAPL programs over each device on this library: those of Debian's dapl2-utils,
# unmodified, between themselves (test/shim/programs.sh; suite_dapl.sh has the genuine
# library).

tests=(
    "200 dtest_over_rxe programs rxe0 $rxe TRUE dtest"
    "200 dtest_over_siw programs siw0 $siw FALSE dtest"
    "200 dtestcm_dtestsrq_dtestx_over_rxe programs rxe0 $rxe TRUE others"
    "200 dtestcm_dtestsrq_dtestx_over_siw programs siw0 $siw FALSE others"
    "300 dapltest_over_rxe programs rxe0 $rxe TRUE dapltest"
    "300 dapltest_over_siw programs siw0 $siw FALSE dapltest"
    "100 ends_over_rxe programs rxe0 $rxe TRUE ends"
    "100 ends_over_siw programs siw0 $siw FALSE ends"
)

# The adapter is the name of the RDMA device.
programs() { # adapter address TRUE|FALSE group
    FI_DAT_TRANSPORT=verbs DAT_PROGRAM_LIMIT=250 \
        bash "$DAT_SRCDIR/test/shim/programs.sh" device "$@"
}
