# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# The programs of test/transport over rxe and siw, and between software iWARP and siw with
# each side as the one that connects: what a program may rely on over TCP and shared memory
# holds there, but for what test/transport/applicable.cpp names. By name only, since they
# take minutes in an emulated guest; a few of their tests are in suite_transport.sh.

tests=(
    "120 fork_over_rxe program rxe forked"
    "120 fork_over_siw program siw forked"
)
for way in rxe siw soft_to_siw siw_to_soft; do
    tests+=(
        "900 messages_and_rdma_over_$way program $way transport_data"
        "900 connections_over_$way program $way transport_connection"
        "900 killed_peers_over_$way program $way transport_killed"
        "900 two_processes_over_$way program $way transport_peers"
        "900 queues_over_$way program $way transport_queues"
        "900 shared_receives_atomics_and_data_over_$way program $way transport_surface"
        "900 windows_and_services_over_$way program $way transport_dat"
    )
done

for way in rxe siw; do
    tests+=("900 reliable_datagrams_over_$way program $way transport_rdm")
done

program() { # transport program [arguments]
    export DAT_TRANSPORT=$1 FI_LOG_LEVEL=warn CRITERION_JOBS=4
    local name=$2
    shift 2
    "$DAT_BUILDDIR/test/transport/$name" "$@"
}
