#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Two processes in two network namespaces, over a virtual wire, with IPv4 and
# IPv6 and CRC on: what loopback cannot show. The wire is cut, the peer is
# killed, there is no route. Makes its own namespaces, with names that hold the
# process id, and removes them at the end, whatever the end is. Exit 77, with
# the reason, where namespaces cannot be made.
#
# Usage: netns_test.sh [directory of the program peer]
set -u

directory=${1:-${DAT_BUILDDIR:-.}/test/transport}
peer=$directory/peer
tag=${DAT_TEST_TAG:-dat}
here=$tag-$$-a
there=$tag-$$-b

export FI_PROVIDER=${FI_PROVIDER:-dat}
export FI_DAT_CRC=on
if [ -n "${DAT_BUILDDIR:-}" ]; then
    export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$DAT_BUILDDIR/.libs}
fi

. "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}/util/common.sh"

skip() {
    echo "SKIP: $*"
    exit 77
}

# --- namespaces ---------------------------------------------------------------

clean_up() {
    stop a
    stop b
    ip netns del "$here" 2>/dev/null
    ip netns del "$there" 2>/dev/null
    rm -rf "$pipes"
}

# What a run left that was killed without a chance to clean up. (What test/run.sh
# started has a tag of its own, and is cleaned up by it.)
remove_leftovers() {
    local name run
    for name in $(ip netns list 2>/dev/null | sed -n "s/^\($tag-[0-9]*-[ab]\).*/\1/p"); do
        run=${name#"$tag"-}
        [ -d "/proc/${run%-?}" ] || ip netns del "$name"
    done
}

wire() { # up|down
    ip -n "$here" link set wire "$1"
    ip -n "$there" link set wire "$1"
    if [ "$1" = up ]; then # an IPv6 address goes with its link
        ip -n "$here" addr replace 2001:db8::1/64 dev wire nodad
        ip -n "$there" addr replace 2001:db8::2/64 dev wire nodad
    fi
}

# --- peers: two, named a and b ---------------------------------------------------

. "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}/test/transport/processes.sh"

peer_in() { # name namespace address
    start "$1" ip netns exec "$2" "$peer" "$3"
}

# --- tests ---------------------------------------------------------------------

connect_pair() { # address of a, of b
    peer_in a "$here" "$1"
    peer_in b "$there" "$2"
    expect b 'ok *' listen
    port=${answer#ok }
    expect a ok connect "$2" "$port" 200
    expect b 'connreq 200' event
    expect b ok accept 100
    expect a 'connected 100' event
    expect b 'connected 0' event
}

transfers_both_ways__arrive() {
    connect_pair "$1" "$2"
    local size
    for size in 1 1000 70000 3000000; do
        expect a ok recv 10 $size
        expect b ok recv 10 $size
        expect a ok send 10 $size
        expect b ok send 10 $size
        expect a 'results 20 0 0' finish
        expect b 'results 20 0 0' finish
    done
    expect b 'ok *' region 1000000
    local region=${answer#ok }
    expect a ok write 1000000 "$region"
    expect a 'results 1 0 0' finish
    expect a ok read 1000000 "$region"
    expect a 'results 1 0 0' finish
    # DISC-4: what was sent before a graceful end arrives.
    expect b ok recv 20 100000
    expect a ok send 20 100000
    expect a ok disconnect graceful
    expect a 'shutdown 1 *' event
    expect b 'shutdown 1 *' event
    expect a 'results 20 0 0' finish
    expect b 'results 20 0 0' finish
    expect a ok quiet
    expect b ok quiet
    stop_both
}

server_killed__ends_once() {
    connect_pair "$1" "$2"
    expect a ok recv 5 1000
    expect a ok send 20 1000000
    stop b
    expect a 'shutdown [12] *' event # U-2: disconnected or broken
    expect a 'results *' finish
    expect a ok quiet
    stop_both
}

# U-2, U-65: only the keepalive can notice, and it ends as broken (2), once.
wire_cut_while_idle__is_broken_by_keepalive() {
    export FI_DAT_KEEPALIVE=2
    connect_pair "$1" "$2"
    unset FI_DAT_KEEPALIVE
    expect a ok recv 5 1000
    expect b ok recv 5 1000
    wire down
    expect a 'shutdown 2 *' event
    expect b 'shutdown 2 *' event
    expect a 'results 0 5 0' finish
    expect b 'results 0 5 0' finish
    expect a ok quiet
    wire up
    stop_both
}

wire_cut_amid_a_transfer__is_broken_by_keepalive() {
    export FI_DAT_KEEPALIVE=2
    connect_pair "$1" "$2"
    unset FI_DAT_KEEPALIVE
    expect b ok recv 40 1000000
    expect a ok send 40 1000000
    expect a ok first
    wire down
    expect a ok recv 5 1000
    expect a 'shutdown 2 *' event
    expect b 'shutdown 2 *' event
    expect a 'results *' finish
    expect b 'results *' finish
    expect a ok quiet
    expect b ok quiet
    wire up
    # RST-4: the same endpoint connects again when the wire is back.
    expect a ok reset
    expect a ok connect "$2" "$port" 0
    expect b 'connreq 0' event
    expect b ok accept 0
    expect a 'connected 0' event
    stop_both
}

# A short cut is only a delay.
wire_cut_for_a_moment__is_survived() {
    connect_pair "$1" "$2"
    expect b ok recv 20 1000000
    expect a ok send 20 1000000
    wire down
    wire up
    expect a 'results 20 0 0' finish
    expect b 'results 20 0 0' finish
    stop_both
}

# EP-43, U-1.
no_route__is_unreachable() {
    peer_in a "$here" "$1"
    local nowhere=198.51.100.1
    case $1 in *:*) nowhere=2001:db8:ffff::1 ;; esac
    expect a ok connect $nowhere 4711 0
    expect a 'error 113 0' event # FI_EHOSTUNREACH
    expect a ok quiet
    # EP-21: and the endpoint is good for more.
    expect a ok reset
    stop_both
}

# The same of a route that lets nothing through: connect(2) says EACCES of the first kind, EINVAL of the
# second.
route_forbids__is_unreachable() {
    local kind net=203.0.113.0/24 there=203.0.113.1
    case $1 in *:*) net=2001:db8:7::/64 there=2001:db8:7::1 ;; esac
    peer_in a "$here" "$1"
    for kind in prohibit blackhole; do
        ip -n "$here" route add "$kind" "$net"
        expect a ok connect $there 4711 0
        expect a 'error 113 0' event
        expect a ok quiet
        expect a ok reset
        ip -n "$here" route del "$kind" "$net"
    done
    stop_both
}

# The neighbour does not answer: the kernel gives up by itself (U-1).
host_is_silent__is_unreachable() {
    peer_in a "$here" "$1"
    local silent=192.0.2.99
    case $1 in *:*) silent=2001:db8::99 ;; esac
    expect a ok connect $silent 4711 0
    expect a 'error 113 0' event
    expect a ok quiet
    stop_both
}

# TMO-2: the Consumer's timer comes first.
host_is_silent_and_timeout_is_short__times_out() {
    peer_in a "$here" "$1"
    local silent=192.0.2.98
    case $1 in *:*) silent=2001:db8::98 ;; esac
    expect a ok timeout 200000
    expect a ok connect $silent 4711 0
    expect a 'error 110 0' event # FI_ETIMEDOUT
    expect a ok quiet
    stop_both
}

tests="
    transfers_both_ways__arrive
    server_killed__ends_once
    wire_cut_for_a_moment__is_survived
    wire_cut_while_idle__is_broken_by_keepalive
    wire_cut_amid_a_transfer__is_broken_by_keepalive
    no_route__is_unreachable
    route_forbids__is_unreachable
    host_is_silent__is_unreachable
    host_is_silent_and_timeout_is_short__times_out
"

current=set-up
[ -x "$peer" ] || die "$peer is not there"
command -v ip >/dev/null || skip "there is no ip command (Debian: iproute2)"
pipes=$(mktemp -d) || die "no temporary directory"
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
remove_leftovers
reason=$(make_namespaces "$here" "$there") || skip "$reason"
for current in $tests; do
    for addresses in '192.0.2.1 192.0.2.2' '2001:db8::1 2001:db8::2'; do
        $current $addresses
        echo "PASS: $current ${addresses% *}"
    done
done
