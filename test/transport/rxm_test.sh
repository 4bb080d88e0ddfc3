#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# FI_EP_RDM of `dat` itself, and what ofi_rxm makes of `dat`, between processes: many peers that all connect to each other
# at once, so that connects cross; a peer that is killed and comes back at the same address;
# over shared memory and over TCP, of ofi_rxm also with FI_OFI_RXM_USE_SRX=1. In a network namespace of
# its own where this user may make one.
#
# Usage: rxm_test.sh [shm|tcp ...]
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -z "${DAT_RXM_INSIDE:-}" ] && unshare -n ip link set lo up 2>/dev/null; then
    DAT_RXM_INSIDE=1 exec unshare -n bash "${BASH_SOURCE[0]}" "$@"
fi
[ -z "${DAT_RXM_INSIDE:-}" ] || ip link set lo up || exit 1

. "$here/processes.sh"
limit=90
node=${DAT_BUILDDIR:-.}/test/transport/rxm_node
export FI_PROVIDER=dat
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-${DAT_BUILDDIR:-.}/.libs}
pipes=$(mktemp -d) || exit 1
current=
running=()
declare -A port

clean_up() {
    local name
    for name in "${running[@]}"; do stop "$name"; done
    rm -rf "$pipes"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

begin() { # name [port]
    start "$1" "$node" "${@:2}"
    running+=("$1")
}

# Where a node listens; it answers when its endpoint is there.
locate() { # name
    tell "$1" name
    listen_for "$1"
    [[ $answer == 'ok '* ]] || die "$1 has no name: $answer"
    port[$1]=${answer#ok }
}

quit_all() {
    local name
    for name in "${running[@]}"; do
        echo quit >&"${to[$name]}"
        wait "${pid[$name]}" || die "$name ended with $?"
        stop "$name"
    done
    running=()
}

# Everybody sends to everybody at once, three messages each: eager, segments, rendezvous.
all_to_all() { # nodes
    local names=() name other i size
    current="$1 nodes, all to all, $2"
    for i in $(seq "$1"); do
        names+=("n$i")
        begin "n$i"
    done
    for name in "${names[@]}"; do locate "$name"; done
    for name in "${names[@]}"; do
        for i in "${!names[@]}"; do expect "$name" "ok $i" "know ${port[${names[i]}]}"; done
        expect "$name" ok "recv $((3 * ($1 - 1))) 300000"
    done
    for name in "${names[@]}"; do
        for i in "${!names[@]}"; do
            other=${names[i]}
            [ "$name" != "$other" ] || continue
            for size in 10 30000 300000; do tell "$name" "send $i $((size + i)) $size"; done
        done
        tell "$name" finish
    done
    for name in "${names[@]}"; do
        for i in $(seq $((3 * ($1 - 1)))); do
            listen_for "$name"
            [ "$answer" = ok ] || die "$name, a send: $answer"
        done
    done
    for name in "${names[@]}"; do
        listen_for "$name"
        [ "$answer" = "results $((6 * ($1 - 1))) 0" ] || die "$name: $answer"
    done
    quit_all
    echo "ok: $current"
}

# Sends from $1 to $2, which it knows as $3, until one is taken: what was under way when
# the connection ended may be lost.
until_taken() {
    local before i
    tell "$2" taken
    listen_for "$2"
    before=$answer
    for i in $(seq 200); do
        tell "$1" "send $3 $i 5000"
        listen_for "$1"
        tell "$1" sent
        listen_for "$1"
        [[ $answer == results* ]] || die "$1: $answer"
        sleep 0.1
        tell "$2" taken
        listen_for "$2"
        [ "$answer" = "$before" ] || return 0
    done
    die "nothing of $1 arrives at $2"
}

# The address is the same, the process is another.
restart() {
    local round
    current="a peer that is killed and comes back, $1"
    begin a
    locate a
    begin b
    locate b
    expect a 'ok 0' "know ${port[b]}"
    expect a ok 'recv 500 5000'
    for round in 1 2 3; do
        expect b 'ok 0' "know ${port[a]}"
        expect b ok 'recv 250 5000'
        until_taken b a 0
        until_taken a b 0
        [ $round -lt 3 ] || break
        kill -KILL "${pid[b]}"
        stop b
        begin b "${port[b]}"
        locate b
    done
    stop a
    stop b
    running=()
    echo "ok: $current"
}

links=("$@")
[ ${#links[@]} -gt 0 ] || links=(shm tcp)
for link in "${links[@]}"; do
    FI_DAT_SHM=$([ "$link" = shm ] && echo 1 || echo 0)
    export FI_DAT_SHM
    export DAT_RDM_PROVIDER=dat
    all_to_all 10 "dat, $link"
    restart "dat, $link"
    DAT_RDM_PROVIDER='dat;ofi_rxm'
    for FI_OFI_RXM_USE_SRX in 0 1; do
        export FI_OFI_RXM_USE_SRX
        what="ofi_rxm, $link$([ $FI_OFI_RXM_USE_SRX -eq 0 ] || echo ', shared receives')"
        all_to_all 10 "$what"
        restart "$what"
    done
done
