# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Only if it is named.
#
# The verbs domain on siw and on rxe against raw verbs, and on siw against our software
# domain in a namespace without RDMA device. Peer a is ours, peer b the other (raw.sh).
. "$DAT_SRCDIR/test/vm/raw.sh"

tests=()
for device in siw rxe; do
    tests+=(
        "60 rping_over_${device}__serves_rpings_client rping_server $device"
        "60 rping_over_${device}__is_served_by_rpings_server rping_client $device"
        "90 sends_over_${device}__arrive with on_device $device then both_ways sends"
        "120 writes_and_reads_over_${device}__are_served with on_device $device then both_ways transfers"
        "60 reject_over_${device}__arrives with on_device $device then rejects"
        "60 bad_write_over_${device}__breaks_once with on_device $device then both_ways bad_write"
        "60 long_message_over_${device}__breaks_once with on_device $device then both_ways long_message"
        "60 disconnect_here_over_${device}__ends_both with on_device $device then both_ways disconnect_here"
        "60 disconnect_there_over_${device}__ends_both with on_device $device then both_ways disconnect_there"
        "60 peer_killed_over_${device}__ends_once with on_device $device then both_ways killed_there"
        "60 process_killed_over_${device}__ends_peer with on_device $device then both_ways process_killed"
        "240 five_hundred_rounds_over_${device}__leave_nothing with on_device $device then rounds"
        "60 queue_pair_over_${device}__is_there_before_its_connection with on_device $device then next_queue_pair"
    )
done
tests+=(
    "90 sends_from_software__arrive with soft_to_verbs then both_ways sends"
    "90 writes_and_reads_from_software__are_served with soft_to_verbs then both_ways transfers"
    "60 disconnect_by_software__ends_both with soft_to_verbs then both_ways disconnect_here"
    "60 disconnect_by_verbs__ends_both with soft_to_verbs then both_ways disconnect_there"
    "60 verbs_process_killed__ends_software with soft_to_verbs then both_ways killed_there"
    "60 software_process_killed__ends_verbs with soft_to_verbs then both_ways killed_here"
    "90 address_that_is_silent_over_siw__blocks_nobody silent_peer siw s0"
    "90 address_that_is_silent_over_rxe__blocks_nobody silent_peer rxe r0"
    "120 link_down_in_mid_transfer__breaks_once with on_device siw then link_down"
    "90 no_receive_at_the_peer__ends_with_receiver_not_ready with on_device rxe then rnr_exhausted"
    "180 sends_between_namespaces_over_siw__arrive with siw_hosts then both_ways sends"
    "180 writes_and_reads_between_namespaces_over_siw__are_served with siw_hosts then both_ways transfers"
    "180 sends_between_ourselves_in_namespaces_over_siw__arrive with siw_hosts_ours then both_ways sends"
    "180 writes_and_reads_between_ourselves_in_namespaces_over_siw__are_served with siw_hosts_ours then both_ways transfers"
    "120 peer_killed_in_another_namespace_over_siw__ends_once with siw_hosts_ours then both_ways killed_there"
    "180 captured_session_between_verbs_on_siw__has_no_malformed_frame with siw_hosts_ours then captured other t1 both_ways few_of_each"
    "180 captured_session_between_verbs_and_raw_siw__has_no_malformed_frame with siw_hosts then captured other t1 both_ways few_of_each"
    "180 captured_session_between_software_and_verbs__has_no_malformed_frame with soft_to_verbs then captured soft s1 both_ways few_of_each"
    "60 message_before_its_sender_confirms__makes_the_connection with on_device rxe then unconfirmed"
    "120 peer_that_answers_nothing__ends_with_retries_exhausted with on_device rxe then retries_exhausted"
    "60 little_memory_may_be_locked__is_said memlock"
    "60 no_permission_on_the_device__is_said no_permission"
    "60 port_down__is_told with ours_on siw then port_down"
    "90 siw_taken_away__ends_its_connections with ours_on siw then removed siw0 type siw netdev s0"
    "90 siw_taken_away_in_mid_connect__ends_the_attempt with on_device siw then removed_while_connecting"
    "90 rxe_taken_away__ends_its_connections with ours_on rxe then removed rxe0 type rxe netdev r0"
)

# Our verbs domain at both ends.
ours_on() { # siw|rxe
    on_device "$1"
    command_b=(env FI_DAT_TRANSPORT=verbs "$peer" $b_at)
    gone='shutdown [12] *' exact=yes
}

rping_server() { # device
    local line server address=${!1}
    coproc FI_DAT_TRANSPORT=verbs "$vm/rping_peer" server $address 10 20000
    server=$!
    read -r -u "${COPROC[0]}" line || return 1
    rping -c -a $address -p "${line#port }" -C 10 -S 20000 -V && wait "$server"
}

rping_client() { # device
    local server address=${!1}
    rping -s -a $address -p 7174 -C 10 -S 20000 &
    server=$!
    until_listening rping
    FI_DAT_TRANSPORT=verbs "$vm/rping_peer" client $address $address 7174 10 20000 && wait "$server"
}

# A refusal by either side, with private data; afterwards they may connect.
rejects() {
    local size
    start_peers
    expect b 'ok *' listen
    port=${answer#ok }
    for size in 0 1 100; do
        expect a ok connect $b_at "$port" 10
        expect b "$(shows connreq 10)" event
        expect b ok reject $size
        expect a "$(shows 'error 111' $size)" event # FI_ECONNREFUSED
        expect a ok reset
    done
    expect a 'ok *' listen
    port=${answer#ok }
    for size in 0 1 100; do
        expect b ok connect $a_at "$port" 10
        expect a "$(shows connreq 10)" event
        expect a ok reject $size
        expect b "$(shows rejected $size)" event
    done
    join_again b 1 a 2 $a_at
}

# On RoCE the write itself fails; on iWARP it is complete when TCP has it. siw tells its
# program nothing of a Terminate that arrives: all that is seen is the peer's end (U-2).
bad_write() {
    expect a ok recv 2 100
    expect b ok recv 2 100
    expect a ok write 100 4096 12345
    if [ $a_at = $siw ]; then
        expect a 'shutdown [12] *' event
    else
        expect a 'shutdown 2 *' event
    fi
    expect a 'results * 2 *' finish
    expect b "$gone" event
    expect b 'results 0 2 0' finish
    expect a ok quiet
}

# siw itself may keep what it was sending when its connection ended: b's results are not
# looked at.
process_killed() {
    expect b ok recv 2 1000000
    expect a ok recv 1 100
    expect b ok send 1 100
    expect b ok send 3 1000000
    stop a
    expect b "$gone" event
    expect b ok quiet
}

long_message() {
    expect a ok recv 2 100
    expect b ok send 1 101
    expect a 'shutdown 2 *' event
    expect a 'results 0 1 1' finish # DTO-9
    expect b "$gone" event
    expect b 'results *' finish
    expect a ok quiet
}

# siw ends its connections when its interface goes down.
link_down() {
    start_peers
    join a 20 b 30 $b_at
    expect a ok recv 2 100
    expect b ok recv 100 1000000
    expect a ok send 100 1000000
    expect b ok first
    ip link set s0 down
    expect a 'shutdown [12] *' event
    expect a 'results *' finish
    expect a ok quiet
    stop_both
    ip link set s0 up
    ip addr replace 2001:db8::1/64 dev s0 nodad
    start_peers
    join a 20 b 30 $b_at
    sends
}

# Of this network, and with a link-layer address that nobody has.
silent_peer() { # siw|rxe interface
    local address=${!1} silent
    silent=${address%.*}.77
    ip neigh replace $silent lladdr 02:00:00:00:00:77 dev "$2"
    FI_DAT_TRANSPORT=verbs "$vm/silent_peer" $address $silent
}

# The other side allows one retry for want of a receive: U-9.
rnr_exhausted() {
    start_peers
    expect b ok retries 1 1
    join b 20 a 30 $a_at
    expect a ok send 2 100
    expect a 'shutdown 2 9' event # FI_DAT_REASON_RNR_TIMEOUT
    expect a 'results 0 1 1' finish
    expect a 9 why # receiver not ready
    expect a ok quiet
}

# U-65. The confirmation never comes.
unconfirmed() {
    start_peers
    expect a 'ok *' listen
    port=${answer#ok }
    expect b ok unconfirmed
    expect b ok connect $a_at "$port" 20
    expect a 'connreq *' event
    expect a ok accept 30
    expect a ok recv 2 1000
    expect b 'replied *' event
    expect a ok quiet
    expect b ok recv 1 1000
    expect b ok send 2 1000
    expect a 'connected *' event
    expect a ok send 1 1000
    expect a 'results 3 0 0' finish
    expect b 'results 3 0 0' finish
}

# Nobody answers: the device sends again as often as the other side has allowed when it
# connected, and each time waits for the 2 s that the connection manager of RoCE chooses.
retries_exhausted() {
    start_peers
    expect b ok retries 1 7
    join b 20 a 30 $a_at
    first_frame
    expect a ok recv 2 100
    expect b ok deaf
    expect a ok send 4 100000
    expect a 'shutdown 2 7' event # FI_DAT_REASON_DTO_ERROR
    expect a 'results 0 5 1' finish
    expect a 8 why # transport
    expect a ok quiet
    expect a ok reset
    stop b
    start b "${command_b[@]}"
    expect b 'ok *' listen
    port=${answer#ok }
    join_again a 20 b 30 $b_at
    first_frame
}

# Asynchronous events of a's domain: 1 of the endpoint, 4 device gone, 5 port down.
port_down() {
    start_peers
    expect a ok async
    ip link set s0 down
    expect a 'async 5' event
    expect a ok quiet
    stop_both
    ip link set s0 up
    ip addr replace 2001:db8::1/64 dev s0 nodad
}

# Those of a, in an order that is not given: `seen`.
three_events() {
    local i
    seen=
    for i in 1 2 3; do
        tell a event
        listen_for a
        seen+="$answer"$'\n'
    done
    seen=$(sort <<<"${seen%?}")
}

until_over() { # process that removes the device
    local i
    for i in $(seq 200); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    wait "$1" || die 'the device is still there'
}

# The kernel takes a device of these kinds away only when nobody has it open any more.
removed() { # name of the device, and how it is made again
    local deletion i seen
    start_peers
    expect a ok async
    join b 20 a 30 $a_at
    first_frame
    expect a ok recv 3 100
    rdma link delete "$1" &
    deletion=$!
    three_events
    # shellcheck disable=SC2053
    [[ $seen == $'async 1\nasync 4\nshutdown 2 '* ]] || die "the events were $seen"
    expect a 'results 0 3 0' finish
    expect a ok quiet
    expect b 'shutdown [12] *' event
    for i in a b; do
        tell $i quit
        wait "${pid[$i]}" || die "$i did not close its objects"
        stop $i
    done
    until_over $deletion
    rdma link add "$@" || die 'the device cannot be made again'
    start_peers
    join b 20 a 30 $a_at
    first_frame
}

# The kernel holds the device for a connect until that is broken off: TCP has two minutes.
removed_while_connecting() {
    local deletion seen silent=${siw%.*}.77
    ip neigh replace $silent lladdr 02:00:00:00:00:77 dev s0
    start a "${command_a[@]}"
    expect a ok async
    expect a ok connect $silent 7 10
    until ss -Htn state syn-sent dst $silent | grep -q .; do sleep 0.1; done
    rdma link delete siw0 &
    deletion=$!
    three_events
    # FI_ECONNREFUSED, as each attempt that its own side cannot go on with
    [ "$seen" = $'async 1\nasync 4\nerror 111 0' ] || die "the events were $seen"
    expect a ok quiet
    tell a quit
    wait "${pid[a]}" || die 'it did not close its objects'
    stop a
    until_over $deletion
    rdma link add siw0 type siw netdev s0 || die 'the device cannot be made again'
}

descriptors_of() { find "/proc/$1/fd" -mindepth 1 | wc -l; }
memory_of() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

# Connections of one endpoint, with a reset after each.
some_rounds() { # count
    local limit=$limit said
    tell b serve "$1"
    tell a rounds "$1" $b_at "$port"
    listen_for a
    said=$answer
    [ "$said" = ok ] || { echo "a answered '$said'"; limit=5; }
    listen_for b
    [ "$said, $answer" = 'ok, ok' ] || die "b answered '$answer'"
}

rounds() {
    local process descriptors memory
    limit=200
    start_peers
    expect b 'ok *' listen
    port=${answer#ok }
    process=${pid[a]}
    some_rounds 100
    descriptors=$(descriptors_of "$process")
    memory=$(memory_of "$process")
    some_rounds 400
    echo "descriptors: $descriptors, then $(descriptors_of "$process")"
    echo "memory: $memory KiB, then $(memory_of "$process") KiB"
    [ "$(descriptors_of "$process")" -le "$descriptors" ] &&
        [ "$(memory_of "$process")" -le $((memory + 512)) ]
}

# An endpoint that was reset has the queue pair of its next connection, and no other.
next_queue_pair() {
    local i count
    start_peers
    expect b 'ok *' listen
    port=${answer#ok }
    for i in 1 2; do
        some_rounds 1
        count=$(rdma resource show qp | grep -c " pid ${pid[a]} ")
        [ "$count" -eq 1 ] || die "after connection $i there are $count queue pairs"
    done
}

# siw has room for five segments, and refuses a queue pair that asks for more.
inline_data() {
    command_a=(env FI_LOG_LEVEL=info FI_LOG_PROV=dat
        bash -c 'exec "$@" 2>"$0"' "$pipes/messages" "${command_a[@]}")
    start_peers
    expect b 'ok *' listen
    port=${answer#ok }
    some_rounds 1
    grep 'inline data' "$pipes/messages"
    [ "$(grep -c 'siw0/1 takes 80 bytes of inline data' "$pipes/messages")" -eq 1 ]
}

# Runs the peer as the owner of the devices' files and no more than that, root without its
# capabilities: another user might not reach the build folder. Its messages are in $pipes/messages.
without_capabilities() { # limit-of-locked-bytes
    command_a=(prlimit "--memlock=$1" setpriv --bounding-set=-all --inh-caps=-all
        env FI_DAT_TRANSPORT=verbs FI_LOG_LEVEL=warn
        bash -c 'exec "$@" 2>"$0"' "$pipes/messages" "$peer" $siw)
}

memlock() {
    on_device siw
    without_capabilities 65536
    start_peers
    tell a region 4000000
    (listen_for a) || true
    cat "$pipes/messages"
    grep -q 'limited to 64 KiB: ulimit -l' "$pipes/messages"
}

no_permission() {
    on_device siw
    without_capabilities unlimited
    chmod 000 /dev/infiniband/uverbs*
    start a "${command_a[@]}"
    tell a listen
    (listen_for a) || true
    chmod 600 /dev/infiniband/uverbs*
    cat "$pipes/messages"
    grep -q '/dev/infiniband.*chmod\|/dev/infiniband.*ermission' "$pipes/messages"
}
