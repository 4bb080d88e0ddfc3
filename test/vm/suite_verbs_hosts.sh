# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
# Needs a second guest.
#
# The verbs domain between two hosts over rxe: against raw verbs, and against itself. Peer
# a is ours in this guest, peer b is in the other (raw.sh).
. "$DAT_SRCDIR/test/vm/raw.sh"

tests=(
    "120 sends__arrive with on_wire then both_ways sends"
    "120 writes_and_reads__are_served with on_wire then both_ways transfers"
    "120 peer_killed__ends_once with on_wire then both_ways killed_there"
    "120 process_killed__ends_peer with on_wire then both_ways killed_here"
    "120 sends_between_ourselves__arrive with on_wire_ours then both_ways sends"
    "120 writes_and_reads_between_ourselves__are_served with on_wire_ours then both_ways transfers"
    "120 peer_of_ours_killed__ends_once with on_wire_ours then both_ways killed_there"
    "180 wire_cut_in_mid_transfer__ends_with_retries_exhausted with on_wire then wire_cut"
)

# Taking the link down would hang in this kernel's rxe: all that leaves is lost instead.
# Told beforehand, since what the peers say crosses the same wire.
wire_cut() {
    start_peers
    expect b ok retries 2 7
    join b 20 a 30 $a_at
    first_frame
    expect a ok recv 2 100
    tc qdisc add dev wire0 root netem loss 100%
    expect a ok send 4 100000
    limit=120
    expect a 'shutdown 2 7' event # FI_DAT_REASON_DTO_ERROR
    expect a 'results 0 5 1' finish
    expect a 8 why # transport
    expect a ok quiet
    tc qdisc del dev wire0 root
}
