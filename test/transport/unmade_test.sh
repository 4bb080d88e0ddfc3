#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What FI_LOG_LEVEL=warn says of a connection that cannot be made: both addresses, the interface,
# the cause and what to do, once for each peer. In a network namespace that is made and removed
# here. Exit 77, with the reason, where that cannot be done.
#
# Usage: unmade_test.sh [directory of the program peer]
set -u

directory=${1:-${DAT_BUILDDIR:-.}/test/transport}
tag=${DAT_TEST_TAG:-dat}
host=$tag-$$-u
export FI_PROVIDER=dat FI_DAT_TRANSPORT=soft FI_LOG_LEVEL=warn FI_LOG_PROV=dat
if [ -n "${DAT_BUILDDIR:-}" ]; then
    export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$DAT_BUILDDIR/.libs}
fi

skip() {
    echo "SKIP: $*"
    exit 77
}

clean_up() {
    stop a
    ip netns del "$host" 2>/dev/null
    rm -rf "$pipes"
}
pipes=$(mktemp -d) || exit 1
. "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}/test/transport/processes.sh"
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

ip netns add "$host" 2>/dev/null || skip 'this user cannot make network namespaces'
make_host() {
    set -e
    ip -n "$host" link set lo up
    ip -n "$host" link add eth9 type veth peer name far
    ip -n "$host" addr add 203.0.113.2/24 dev eth9
    ip -n "$host" link add docker0 type bridge
    ip -n "$host" addr add 172.17.0.1/16 dev docker0
    for name in eth9 far docker0; do
        ip -n "$host" link set "$name" up
    done
    # 31 s: 1 + 2 + 4 + 8 + 16. With linear timeouts 21 times a second comes first, then 2, 4 and
    # 8: with the last of these it is 31 s or more.
    ip netns exec "$host" bash -c 'cd /proc/sys/net/ipv4 && echo 4 >tcp_syn_retries &&
        { [ ! -e tcp_syn_linear_timeouts ] || echo 20 >tcp_syn_linear_timeouts; }'
    # It is reached, and there is nobody.
    ip -n "$host" neigh add 203.0.113.9 lladdr 02:00:00:00:00:09 dev eth9
}
reason=$( (make_host) 2>&1) || skip "this kernel lacks a kind of device: $reason"
seconds=31
[ ! -e /proc/sys/net/ipv4/tcp_syn_linear_timeouts ] || seconds=35

begin() { # address
    # shellcheck disable=SC2016
    start a ip netns exec "$host" bash -c 'exec "$0" "$1" 2>"$2"' "$directory/peer" "$1" "$pipes/said"
}
says() { # pattern
    local _
    for _ in $(seq 300); do
        ! grep -Eq "$1" "$pipes/said" || return 0
        sleep 0.1
    done
    cat "$pipes/said"
    die "nothing says '$1'"
}

current='nobody listens'
begin 203.0.113.2
for _ in 1 2; do
    expect a ok connect 203.0.113.2 9 0
    expect a 'error 111 *' event
    expect a ok reset
done
says 'no connection from 203.0.113.2:[0-9]+ \(eth9\) to 203.0.113.2:9: nobody listens there'
[ "$(grep -c 'nobody listens' "$pipes/said")" -eq 1 ] || die 'it is said more than once'
current='an address that is also one of this host'
expect a ok connect 172.17.0.1 9 0
expect a 'error 111 *' event
expect a ok reset
says "to 172.17.0.1:9: .* this host's own address too \(docker0\)"
current='no route'
expect a ok connect 198.51.100.7 9 0
expect a 'error *' event
expect a ok reset
says 'to 198.51.100.7:9: no route leads there'
current='no answer'
expect a ok connect 203.0.113.9 9 0
says 'to 203.0.113.9:9: no answer to [1-9] SYNs in 3 s; .* TCP goes on for '"$seconds s in all"
stop a
current='an address that only this host reaches'
begin 127.0.1.1
expect a 'ok *' listen
says 'fi_listen\(\) on 127.0.1.1:[0-9]+: only this host reaches that'
stop a
begin 127.0.0.1
expect a 'ok *' listen
stop a
! grep "only this host" "$pipes/said" || die "it is said of 127.0.0.1 too"
echo PASS
