# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# uDAPL programs over each device on this library: those of Debian's dapl2-utils,
# unmodified, between themselves (test/shim/programs.sh; suite_dapl.sh has the genuine
# library), each over one of the devices; suite_more.sh has the other. And some of the states
# and clauses; suite_clauses.sh has all of them.
. "$DAT_SRCDIR/test/vm/suite_clauses.sh"

tests=(
    "400 dtest_over_rxe programs rxe0 $rxe TRUE dtest"
    "400 dtestcm_dtestsrq_dtestx_over_siw programs siw0 $siw FALSE others"
    "300 dapltest_over_siw programs siw0 $siw FALSE dapltest"
    "100 ends_over_rxe programs rxe0 $rxe TRUE ends"
    "100 ends_over_siw programs siw0 $siw FALSE ends"
    "100 dead_and_silent_peers_over_rxe over rxe ends"
    "100 states_over_rxe over rxe states @(peer_disconnected|handshake_failed)"
    "100 states_over_siw over siw states @(peer_disconnected|handshake_failed)"
    "60 who_sleeps_is_woken_over_rxe over rxe shim_clauses --filter shim_evd/@(who_waits|another_thread)*"
    "60 device_taken_away over siw states async_error @(UNCONNECTED|CONNECTED)"
    "100 windows_and_conf_over_rxe over rxe shim_clauses --filter shim_@(memory|device)/@(a_window|a_conf|without)*"
    "100 windows_and_conf_over_siw over siw shim_clauses --filter shim_@(memory|device)/@(a_window|a_conf|without)*"
)

# The adapter is the name of the RDMA device.
programs() { # adapter address TRUE|FALSE group
    FI_DAT_TRANSPORT=verbs DAT_PROGRAM_LIMIT=250 \
        bash "$DAT_SRCDIR/test/shim/programs.sh" device "$@"
}
