# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Sourced by suites: peer a of this provider (test/transport/peer) connected to peer b,
# which is raw verbs (verbs_peer) or of this provider too, and what is tried between them.

# Who the peers are: these set the commands, their addresses, and how b says that a
# connection has ended.
peer=$DAT_BUILDDIR/test/transport/peer
raw=$DAT_BUILDDIR/test/vm/verbs_peer
gone=disconnected
far_b=no

# Our software domain in a namespace without RDMA device; raw verbs on siw.
soft_to_siw() {
    command_a=(ip netns exec soft "$peer" $soft) a_at=$soft
    command_b=("$raw" $siw) b_at=$siw
}

# Our verbs domain; raw verbs on the same device. RoCE pads private data.
on_device() { # siw|rxe
    local address=${!1}
    command_a=(env FI_DAT_TRANSPORT=verbs "$peer" $address) a_at=$address
    command_b=("$raw" $address) b_at=$address
    [ "$1" = siw ] || exact=no
}

# Our verbs domain; raw verbs in the second guest.
on_wire() {
    command_a=(env FI_DAT_TRANSPORT=verbs "$peer" $near) a_at=$near
    command_b=("$raw" $far) b_at=$far
    exact=no far_b=yes
}

# Our verbs domain in both guests.
on_wire_ours() {
    on_wire
    command_b=(env FI_DAT_TRANSPORT=verbs "FI_PROVIDER_PATH=$FI_PROVIDER_PATH" FI_PROVIDER=dat
        "$peer" $far)
    gone='shutdown [12] *' exact=yes
}

# Two namespaces, each with a siw device of its own: our verbs domain in this one, raw
# verbs in the other. They stay until the guest ends: siw looks after its interface in the
# first namespace only.
siw_hosts() {
    a_at=198.18.1.1 b_at=198.18.1.2
    if [ ! -e /run/netns/other ]; then
        ip netns add other
        ip link add t0 type veth peer name t1 netns other
        ip addr add $a_at/24 dev t0
        ip -n other addr add $b_at/24 dev t1
        ip link set t0 up
        ip -n other link set lo up
        ip -n other link set t1 up
        rdma link add siw_t0 type siw netdev t0
        ip netns exec other rdma link add siw_t1 type siw netdev t1
    fi
    command_a=(env FI_DAT_TRANSPORT=verbs "$peer" $a_at)
    command_b=(ip netns exec other "$raw" $b_at)
}

# Our verbs domain in both.
siw_hosts_ours() {
    siw_hosts
    command_b=(ip netns exec other env FI_DAT_TRANSPORT=verbs "$peer" $b_at)
    gone='shutdown [12] *'
}

# Our software domain in the namespace; our verbs domain on siw.
soft_to_verbs() {
    soft_to_siw
    command_b=(env FI_DAT_TRANSPORT=verbs "$peer" $siw)
    gone='shutdown [12] *'
}

# with WHO... THEN COMMAND...: the peers of WHO, and what is tried.
with() {
    local who=()
    while [ "$1" != "then" ]; do
        who+=("$1")
        shift
    done
    shift
    "${who[@]}"
    "$@"
}

start_peers() {
    start a "${command_a[@]}"
    if [ $far_b = yes ]; then
        until_far_is_there
        start_far b "${command_b[@]}"
    else
        start b "${command_b[@]}"
    fi
}

# Kills b without a word.
kill_b() {
    [ $far_b = no ] || on_far kill -KILL "$far_pid"
    stop b
}

# Runs a test twice: connected by us, and connected by the other.
both_ways() { # function
    echo "connected by us"
    start_peers
    join a 20 b 30 $b_at
    "$1"
    stop_both
    echo "connected by the other"
    start_peers
    join b 20 a 30 $a_at
    first_frame
    "$1"
    stop_both
}

# siw never offers ready-to-receive: our software domain holds its frames until siw's first.
first_frame() {
    expect a ok recv 1 1
    expect b ok send 1 1
    expect a 'results 1 0 0' finish
    expect b 'results 1 0 0' finish
}

# --- data -----------------------------------------------------------------------------

sends() {
    local size kind
    for size in 0 1 3 1000 1408 1440 70000 1000000; do
        for kind in send solicited; do
            expect a ok recv 3 $size
            expect b ok recv 3 $size
            expect a ok $kind 3 $size
            expect b ok $kind 3 $size
            expect a 'results 6 0 0' finish
            expect b 'results 6 0 0' finish
        done
    done
}

transfers() {
    local size there here
    expect a 'ok *' region 4000000
    here=${answer#ok }
    expect b 'ok *' region 4000000
    there=${answer#ok }
    # What is written is what is read afterwards: both check it against the pattern.
    for size in 0 1 1000 70000 4000000; do
        # Unquoted on purpose: an address and a key.
        expect a ok write $size $there
        expect a 'results 1 0 0' finish
        expect a ok read $size $there
        expect a 'results 1 0 0' finish
        expect b ok write $size $here
        expect b 'results 1 0 0' finish
        expect b ok read $size $here
        expect b 'results 1 0 0' finish
    done
}

# RFC 5040 5.4: tagged messages come one behind the other, also where responses to the other's
# reads and one's own writes are due at once. They are longer than what the socket takes at once,
# since the other end answers late.
all_at_once() {
    local there here size round
    late
    expect a 'ok *' region 1000000
    here=${answer#ok }
    expect b 'ok *' region 1000000
    there=${answer#ok }
    expect a ok write 1000000 $there
    expect b ok write 1000000 $here
    expect a 'results 1 0 0' finish
    expect b 'results 1 0 0' finish
    for round in 1 2 3; do
        echo "round $round"
        for size in 100 70000 1000000; do
            expect a ok recv 1 $size
            expect b ok recv 1 $size
        done
        for size in 100 70000 1000000; do
            expect b ok read 1000000 $here
            expect a ok read 1000000 $there
            expect a ok write 1000000 $there
            expect b ok write 1000000 $here
            expect b ok send 1 $size
            expect a ok send 1 $size
        done
        expect a 'results 12 0 0' finish
        expect b 'results 12 0 0' finish
    done
    expect a ok quiet
    expect b ok quiet
}

# From here on to the end of the test what our namespace sends arrives late.
late() {
    in_soft tc qdisc replace dev s1 root netem delay 10ms limit 100000 || die 'no netem'
    undo='in_soft tc qdisc del dev s1 root'
}

# Each kind of frame, whole and in several segments.
few_of_each() {
    local there here kind
    expect a ok recv 2 5000
    expect b ok recv 2 5000
    for kind in send solicited; do
        expect a ok $kind 1 5000
        expect b ok $kind 1 5000
    done
    expect a 'ok *' region 5000
    here=${answer#ok }
    expect b 'ok *' region 5000
    there=${answer#ok }
    expect a ok write 5000 $there
    expect a 'results 5 0 0' finish
    expect a ok read 5000 $there
    expect a 'results 1 0 0' finish
    expect b ok write 5000 $here
    expect b 'results 5 0 0' finish
    expect b ok read 5000 $here
    expect b 'results 1 0 0' finish
    expect a ok disconnect graceful
    expect a 'shutdown 1 *' event
    expect b "$gone" event
}

# Runs a command, and has tshark read all that it sent there; there has to be every kind
# of frame. What is inside of messages is no RPC, though it may look to tshark as if it were.
captured() { # namespace interface command...
    local file=$pipes/session.pcap opcode bad capture
    command -v tshark >/dev/null || { echo 'there is no tshark'; exit 77; }
    ip netns exec "$1" dumpcap -q -i "$2" -f tcp -w "$file" 2>"$pipes/dumpcap" &
    capture=$!
    until grep -q '^File:' "$pipes/dumpcap"; do sleep 0.1; done
    shift 2
    "$@" || die 'the session failed'
    kill $capture
    wait $capture
    cp "$file" "/run/job/$suite.$current.pcap"
    tshark -n -o tcp.try_heuristic_first:TRUE -r "$file" --disable-protocol rpcordma \
        -Y 'iwarp_rdma || _ws.malformed || iwarp_mpa.bad_length' -T fields -e frame.number \
        -e _ws.malformed -e iwarp_mpa.bad_length -e iwarp_rdma.opcode 2>/dev/null >"$pipes/frames"
    cut -f 4 "$pipes/frames" | tr ',' '\n' | sort | uniq -c | tee "$pipes/opcodes"
    for opcode in 0 1 2 3; do # RDMA Write, Read Request, Read Response, Send
        grep -qE " (0x0*)?$opcode\$" "$pipes/opcodes" || die "no frame of opcode $opcode"
    done
    bad=$(awk -F '\t' '$2 != "" || $3 != ""' "$pipes/frames")
    [ -z "$bad" ] || die "$bad"
}

# --- ends -----------------------------------------------------------------------------

end_and_reset() {
    expect a ok disconnect graceful
    expect a 'shutdown 1 *' event
    expect b "$gone" event
    expect a ok reset
}

end_by_b() {
    expect b ok disconnect
    expect b "$gone" event
    expect a 'shutdown 1 *' event
}

# DISC-4: what was sent before a graceful end arrives.
disconnect_here() {
    expect b ok recv 20 100000
    expect a ok recv 1 10
    expect a ok send 20 100000
    expect a ok disconnect graceful
    expect a 'shutdown 1 *' event
    expect a 'results 20 1 0' finish
    expect b "$gone" event
    expect b 'results 20 0 0' finish
    expect a ok quiet
    expect b ok quiet
}

disconnect_there() {
    expect a ok recv 3 100
    expect b ok recv 2 100
    expect b ok send 1 100
    expect a ok first
    expect b ok disconnect
    expect a 'shutdown 1 *' event
    expect a 'results 1 2 0' finish
    expect b "$gone" event
    expect b 'results 1 2 0' finish
    expect a ok quiet
}

killed_there() {
    expect a ok recv 2 100
    expect b ok recv 1 1000000
    expect a ok send 3 1000000
    kill_b
    expect a 'shutdown [12] *' event # U-2
    expect a 'results *' finish
    expect a ok quiet
}

killed_here() {
    expect b ok recv 2 1000000
    expect a ok recv 1 100
    expect b ok send 1 100
    expect b ok send 3 1000000
    stop a
    expect b "$gone" event
    expect b 'results *' finish
    expect b ok quiet
}
