# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The provider over the devices of the guest, by FI_DAT_TRANSPORT=verbs. The programs of
# test/transport run there with DAT_TRANSPORT=rxe or siw; they are in suite_programs.sh.

tests=(
    "60 ping_between_processes_over_rxe ping $rxe"
    "60 ping_between_processes_over_siw ping $siw"
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
