# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The transport suite over the devices of the guest: what a program may rely on over TCP
# and shared memory holds on verbs, but for what test/transport/applicable.cpp names.
# Not yet over siw: the tests of connections.

tests=(
    "60 ping_between_processes_over_rxe ping $rxe"
    "60 ping_between_processes_over_siw ping $siw"
    "400 messages_and_rdma_over_rxe program rxe transport_data"
    "400 messages_and_rdma_over_siw program siw transport_data"
    "400 connections_over_rxe program rxe transport_connection"
)

ping() { # address
    export FI_DAT_TRANSPORT=verbs
    start a "$DAT_BUILDDIR/test/transport/peer" $1
    start b "$DAT_BUILDDIR/test/transport/peer" $1
    join a 20 b 30 $1
    expect a ok recv 1 1000
    expect b ok send 1 1000
    expect a 'results 1 0 0' finish
    expect b 'results 1 0 0' finish
    expect a ok disconnect graceful
    expect b 'shutdown *' event
}

program() { # transport program [arguments]
    export DAT_TRANSPORT=$1 FI_LOG_LEVEL=warn CRITERION_JOBS=4
    local name=$2
    shift 2
    "$DAT_BUILDDIR/test/transport/$name" "$@"
}
