# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The software domain's iWARP link, in a network namespace without RDMA device, against
# siw, the iWARP of the Linux kernel. Peer a is ours, peer b is raw verbs (raw.sh).
. "$DAT_SRCDIR/test/vm/raw.sh"
soft_to_siw

tests=(
    "60 rping_server__serves_rpings_client rping_server 64"
    "60 rping_server_large__serves_rpings_client rping_server 60000"
    "60 rping_client__is_served_by_rpings_server rping_client 64"
    "60 rping_client_large__is_served_by_rpings_server rping_client 60000"
    "90 every_send_variant__arrives both_ways sends"
    "90 writes_and_reads__are_served both_ways transfers"
    "300 every_operation_both_ways_at_once__is_done both_ways all_at_once"
    "90 invalidating_send__ends_the_key both_ways invalidating_send"
    "240 private_data_of_many_sizes__arrives private_data"
    "60 private_data_beyond_what_siw_takes__is_refused private_data_too_long"
    "60 reject_with_data__arrives rejects"
    "60 write_to_a_bad_key__is_terminated_by_siw both_ways bad_write_to_siw"
    "60 write_to_a_bad_key__is_terminated_here both_ways bad_write_to_us"
    "60 message_too_long__is_terminated_by_siw both_ways long_message_to_siw"
    "60 message_too_long__is_terminated_here both_ways long_message_to_us"
    "60 disconnect_here__ends_both both_ways disconnect_here"
    "60 disconnect_there__ends_both both_ways disconnect_there"
    "60 peer_killed__ends_once both_ways killed_there"
    "60 process_killed_here__ends_siw_once both_ways killed_here"
    "90 captured_session__has_no_malformed_frame captured soft s1 rpings"
)

# --- rping --------------------------------------------------------------------------

rping_server() { # bytes
    local line server
    # shellcheck disable=SC2034
    coproc in_soft "$vm/rping_peer" server $soft 10 "$1"
    server=$!
    read -r -u "${COPROC[0]}" line || return 1
    rping -c -a $soft -p "${line#port }" -C 10 -S "$1" -V && wait "$server"
}

rping_client() { # bytes
    local server
    rping -s -a $siw -p 7174 -C 10 -S "$1" &
    server=$!
    in_soft "$vm/rping_peer" client $soft $siw 7174 10 "$1" && wait "$server"
}

# --- data -----------------------------------------------------------------------------

# RFC 5040 5.1: Send with Invalidate. siw's verbs can receive it, not send it, and do not
# tell the program.
invalidating_send() {
    local there
    expect b 'ok *' region 1000
    there=${answer#ok }
    expect a ok write 1000 $there
    expect a 'results 1 0 0' finish
    expect b ok recv 1 100
    expect a ok invalidate 100 "${there#* }"
    expect a 'results 1 0 0' finish
    expect b 'results 1 0 0' finish
    expect a ok write 1000 $there
    expect a 'shutdown 2 *' event
    expect b disconnected event
}

# --- connecting ---------------------------------------------------------------------------

# U-63. siw takes 256 bytes with the 4 of the enhanced set-up among them, and sends 251:
# it counts them in 8 bits.
# Each up to a word, around the powers of two, and the largest ones; every size is a unit test's.
sizes_up_to() {
    seq 1 5
    printf '%d\n' 7 8 9 31 32 33 63 64 65 127 128 129 254 255 256 | awk -v most="$1" '$1 < most - 4'
    seq $(($1 - 4)) "$1"
}

private_data() {
    local size
    start_peers
    join a 0 b 0 $siw
    for size in $(sizes_up_to 252); do
        echo "$size bytes to siw"
        end_and_reset
        join_again a "$size" b $((size < 252 ? size : 251)) $siw
    done
    stop_both
    start_peers
    join b 0 a 0 $soft
    for size in $(sizes_up_to 251); do
        echo "$size bytes from siw"
        end_by_b
        join_again b "$size" a $((size < 251 ? size : 252)) $soft
    done
}

# Nothing changes where an accept is refused: the same request is accepted afterwards.
private_data_too_long() {
    start_peers
    expect a 'ok *' listen
    expect b ok connect $soft "${answer#ok }" 0
    expect a 'connreq 0' event
    expect a 'failed *' accept 253
    expect a ok accept 252
    expect b 'connected 252' event
    expect a 'connected 0' event
}

rejects() {
    local size
    start_peers
    expect b 'ok *' listen
    port=${answer#ok }
    for size in 0 1 100 251; do
        expect a ok connect $siw "$port" 10
        expect b 'connreq 10' event
        expect b ok reject $size
        expect a "error 111 $size" event # FI_ECONNREFUSED
        expect a ok reset
    done
    expect a 'ok *' listen
    port=${answer#ok }
    for size in 0 1 100 252; do
        expect b ok connect $soft "$port" 10
        expect a 'connreq 10' event
        expect a ok reject $size
        expect b "rejected $size" event
    done
    # And what was rejected may connect.
    join_again b 1 a 2 $soft
}

# --- ends -----------------------------------------------------------------------------------

# U-61: towards another than `dat` a write is complete when it has been handed over. Its
# failure breaks the connection, once, and what is outstanding is flushed.
bad_write_to_siw() {
    expect a ok recv 2 100
    expect b ok recv 2 100
    expect a ok write 100 4096 12345
    expect a 'shutdown 2 *' event
    expect a 'results 1 2 0' finish
    expect b disconnected event
    expect b 'results 0 2 0' finish
    expect a ok quiet
    expect b ok quiet
}

bad_write_to_us() {
    expect a ok recv 2 100
    expect b ok recv 2 100
    expect b ok write 100 4096 12345
    expect a 'shutdown 2 *' event
    expect a 'results 0 2 0' finish
    expect b disconnected event
    expect b 'results *' finish
    expect a ok quiet
    expect b ok quiet
}

long_message_to_siw() {
    expect b ok recv 1 100
    expect a ok send 1 101
    expect a 'shutdown 2 *' event
    expect b disconnected event
    expect b 'results 0 0 1' finish
    expect a ok quiet
}

long_message_to_us() {
    expect a ok recv 2 100
    expect b ok send 1 101
    expect a 'shutdown 2 *' event
    expect a 'results 0 1 1' finish # DTO-9
    expect b disconnected event
    expect b 'results *' finish
    expect a ok quiet
}

# --- the wire ---------------------------------------------------------------------------------

rpings() {
    rping_server 2000
    rping_client 2000
}
