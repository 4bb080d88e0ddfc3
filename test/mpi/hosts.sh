#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Open MPI over `dat;ofi_rxm` on two hosts that are like many: each has a running bridge with
# the address that every host's bridge has, and a network of its own besides, both before the
# way to the other host in the kernel's order. A process on each; mpi_suite.cpp. The hosts
# are network namespaces that are made and removed here.
#
#   hosts.sh PREFIX
#
# PREFIX is where the provider was installed. Prints a line for each check, `ok ...` or
# `FAIL ...`; `SKIP ...`, with the reason and exit status 77, where namespaces cannot be made.
# Exit status 0 if all was right.
set -u

# Its names of hosts are seen in its own mount namespace alone.
if [ -z "${DAT_HOSTS_INSIDE:-}" ]; then
    unshare --mount true 2>/dev/null || {
        echo 'SKIP this user cannot make a mount namespace'
        exit 77
    }
    DAT_HOSTS_INSIDE=1 exec unshare --mount bash "${BASH_SOURCE[0]}" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../util/common.sh"
export FI_PROVIDER_PATH=${1:?names no PREFIX}/lib/libfabric FI_PROVIDER=dat
[ -e "$FI_PROVIDER_PATH/libdat-fi.so" ] || { echo "FAIL $FI_PROVIDER_PATH holds no libdat-fi.so"; exit 1; }
tag=${DAT_TEST_TAG:-dat}
first=$tag-$$-1
second=$tag-$$-2
limit=120
scratch=$(mktemp -d "${TMPDIR:-/tmp}/dat-mpi.XXXXXX") || exit 1
export TMPDIR=$scratch
running=
clean_up() {
    trap '' HUP INT TERM
    [ -z "$running" ] || end_session "$running"
    ip netns del "$first" 2>/dev/null
    ip netns del "$second" 2>/dev/null
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# $1 has the bridge and the network of its own; the wire to the other is made last.
make_host() { # name number
    ip netns add "$1" && ip -n "$1" link set lo up &&
        ip -n "$1" link add docker0 type bridge &&
        ip -n "$1" link add container type veth peer name member &&
        ip -n "$1" link set member master docker0 &&
        ip -n "$1" addr add 172.17.0.1/16 dev docker0 &&
        ip -n "$1" link add own type veth peer name far &&
        ip -n "$1" addr add "10.$2.0.1/24" dev own || return
    for device in docker0 container member own far; do
        ip -n "$1" link set "$device" up || return
    done
}
make_hosts() {
    make_host "$first" 1 && make_host "$second" 2 &&
        ip -n "$first" link add wire type veth peer name wire netns "$second" || return
    for number in 1 2; do
        name=$tag-$$-$number
        ip -n "$name" addr add "192.0.2.$number/24" dev wire && ip -n "$name" link set wire up &&
            ip -n "$name" route add default via "192.0.2.$((3 - number))" dev wire || return
    done
}
reason=$(make_hosts 2>&1) || {
    echo "SKIP two hosts with bridges cannot be made: $reason"
    exit 77
}

# No name is asked for on a network.
printf '%s\n' '127.0.0.1 localhost' "192.0.2.1 $first" "192.0.2.2 $second" >"$scratch/hosts"
mount --bind "$scratch/hosts" /etc/hosts && mount --bind /dev/null /etc/resolv.conf || {
    echo 'SKIP names of hosts cannot be given'
    exit 77
}

# In place of ssh: mpirun calls it with the name of a host and a command.
cat >"$scratch/agent" <<'AGENT'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && eval "$1"' "$host" "$*"
AGENT
chmod +x "$scratch/agent"

program=$scratch/mpi_suite
mpicxx -std=c++20 -O2 -DOMPI_SKIP_MPICXX "$here/mpi_suite.cpp" -o "$program" || {
    echo 'FAIL mpi_suite.cpp was not compiled'
    exit 1
}
options=(-np 2 -H "$first:1,$second:1" --mca mpi_yield_when_idle 1
    --mca plm_rsh_agent "$scratch/agent" --mca oob_tcp_if_include 192.0.2.0/24
    --mca pml cm --mca mtl ofi --mca osc pt2pt
    --mca opal_common_ofi_provider_include 'dat;ofi_rxm' --mca opal_common_ofi_verbose 100
    -x FI_PROVIDER -x FI_PROVIDER_PATH)
[ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
failed=0
for order in 'as it is' 'FI_DAT_IFACE=^docker*,own'; do
    case $order in
    FI_*) more=(-x "$order") ;;
    *) more=() ;;
    esac
    status=0
    setsid -w timeout -k 5 "$limit" ip netns exec "$first" unshare --uts sh -c \
        'hostname "$0" && exec mpirun "$@"' "$first" "${options[@]}" "${more[@]}" \
        "$program" everything 65536 >"$scratch/log" 2>&1 </dev/null &
    running=$!
    wait "$running" || status=$?
    if [ $status -eq 0 ] && grep -q '^right: ' "$scratch/log" &&
        ! grep -q '^WRONG: ' "$scratch/log" &&
        [ "$(grep -cF 'mtl:ofi:prov: dat;ofi_rxm' "$scratch/log")" -eq 2 ]; then
        echo "ok two hosts with bridges, $order: $(grep -c '^right: ' "$scratch/log") parts"
    else
        echo "FAIL two hosts with bridges, $order: exit status $status"
        tail -n 40 "$scratch/log"
        failed=1
    fi
    end_session "$running"
done
exit $failed
