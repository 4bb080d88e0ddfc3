# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# The programs of test/transport over rxe: what a program may rely on over TCP and shared
# memory holds there, but for what test/transport/applicable.cpp names. By name only,
# since they take minutes in an emulated guest.

tests=(
    "600 messages_and_rdma_over_rxe program rxe transport_data"
    "600 connections_over_rxe program rxe transport_connection"
    "120 shared_receives_over_rxe program rxe transport_surface --filter shared_receive/*"
    "120 shared_receives_over_siw program siw transport_surface --filter shared_receive/*"
    "60 shared_receives_of_dat_over_rxe program rxe transport_dat --filter dat_receives/*"
    "60 shared_receives_of_dat_over_siw program siw transport_dat --filter dat_receives/*"
    "120 windows_over_rxe program rxe transport_dat --filter dat_window/*"
    "120 atomics_over_rxe program rxe transport_surface --filter atomic/*"
    "120 data_of_messages_over_rxe program rxe transport_surface --filter data_send/*"
)

program() { # transport program [arguments]
    export DAT_TRANSPORT=$1 FI_LOG_LEVEL=warn CRITERION_JOBS=4
    local name=$2
    shift 2
    "$DAT_BUILDDIR/test/transport/$name" "$@"
}
