#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What users see in the log: which link a connection has and why, once for each; a variable that is
# mistyped, and the right one; where in the sources a line is written. And the types of the
# variables, as fi_info shows them. In network namespaces that are made and removed here. Exit 77,
# with the reason, where that cannot be done.
#
# Usage: log_test.sh [directory of the program peer]
set -u

directory=${1:-${DAT_BUILDDIR:-.}/test/transport}
tag=${DAT_TEST_TAG:-dat}
here=$tag-$$-h
there=$tag-$$-t
root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
export FI_PROVIDER=dat FI_DAT_TRANSPORT=soft FI_LOG_LEVEL=info FI_LOG_PROV=dat
unset FI_DAT_SHM FI_DAT_SHM_PEERS FI_DAT_IFACE
if [ -n "${DAT_BUILDDIR:-}" ]; then
    export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$DAT_BUILDDIR/.libs}
fi

skip() {
    echo "SKIP: $*"
    exit 77
}

clean_up() {
    stop_both
    [ -z "${relay:-}" ] || kill "$relay" 2>/dev/null
    ip netns del "$here" 2>/dev/null
    ip netns del "$there" 2>/dev/null
    rm -rf "$pipes"
}
pipes=$(mktemp -d) || exit 1
. "$root/test/transport/processes.sh"
. "$root/util/common.sh"
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

reason=$(make_namespaces "$here" "$there") || skip "$reason"

# Starts process $1 on address $2, by the command that follows, if any.
begin() { # name address command...
    local name=$1 address=$2
    shift 2
    # shellcheck disable=SC2016
    start "$name" "$@" bash -c 'exec "$0" "$1" 2>"$2"' "$directory/peer" "$address" "$pipes/said.$name"
}
# a connects to b at address $1; $2: the port, if it is not b's.
join() { # address [port]
    expect b 'ok *' listen
    expect a ok connect "$1" "${2:-${answer#ok }}" 0
    expect b 'connreq 0' event
    expect b ok accept 0
    expect a 'connected 0' event
    expect b 'connected 0' event
}
# $1 says of its connection what $2 matches, and no more about links.
says() { # name pattern
    local lines
    lines=$(grep -E 'the connection with .* uses |on TCP' "$pipes/said.$1")
    [[ $(grep -c . <<<"$lines") -eq 1 ]] && grep -Eq "$2" <<<"$lines" ||
        die "$1 says '$lines', not once '$2'"
}
# The two on one address of this host.
together() {
    join 127.0.0.1
}

current='memory, and copying once'
begin a 127.0.0.1
begin b 127.0.0.1
together
if grep -q 'come in pieces: ' "$pipes/said.a"; then
    says a 'uses shared memory: .* come in pieces: (kernel.yama|process_vm_readv)'
    echo "not looked at: copying once, which this system does not let"
else
    says a 'the connection with 127.0.0.1:[0-9]+ uses shared memory: large messages from there are copied once'
    says b 'the connection with 127.0.0.1:[0-9]+ uses shared memory: large messages from there are copied once'
fi
current='where a line is written'
grep -Eq 'dat:ep_ctrl:[a-z_]+\(\):[1-9][0-9]*<info> .*uses shared memory' "$pipes/said.a" ||
    die "$(grep 'uses shared' "$pipes/said.a")"
stop_both

current='TCP because it was asked for'
FI_DAT_SHM=0 begin a 127.0.0.1
begin b 127.0.0.1
together
says a 'uses TCP: FI_DAT_SHM=0'
says b 'uses TCP: the peer asks for no shared memory'
stop_both
begin a 127.0.0.1
FI_DAT_SHM=no begin b 127.0.0.1
together
says a 'uses TCP: the peer offers no shared memory'
says b 'uses TCP: FI_DAT_SHM=0'
stop_both

current='TCP to another host'
begin a 192.0.2.1 ip netns exec "$here"
begin b 192.0.2.2 ip netns exec "$there"
join 192.0.2.2
says a 'with 192.0.2.2:[0-9]+ uses TCP: the peer is on another host'
says b 'with 192.0.2.1:[0-9]+ uses TCP: the peer asks for no shared memory'
stop_both

# Both ends believe that they are on one host: what lies between them is a relay.
current='TCP to another host, by a relay on this one'
begin a 127.0.0.1 ip netns exec "$here"
begin b 127.0.0.1 ip netns exec "$there"
expect b 'ok *' listen
port=${answer#ok }
python3 "$root/test/transport/relay.py" "/run/netns/$here" "/run/netns/$there" "$port" \
    >"$pipes/relay" 2>&1 &
relay=$!
for _ in $(seq 100); do
    grep -q '^listening' "$pipes/relay" && break
    kill -0 "$relay" 2>/dev/null || die "no relay: $(cat "$pipes/relay")"
    sleep 0.1
done
expect a ok connect 127.0.0.1 "$port" 0
expect b 'connreq 0' event
expect b ok accept 0
expect a 'connected 0' event
expect b 'connected 0' event
says a 'uses TCP: the peer is on another host, or in another network namespace'
says b 'uses TCP: the peer did not take the offer of shared memory'
! grep -i 'connection refused' "$pipes/said.a" || die 'it is said of a peer on another host'
kill "$relay" && wait "$relay" 2>/dev/null
relay=
stop_both

without_copying=$root/test/transport/without_copying.py
current='memory in pieces, behind a filter of seccomp'
begin a 127.0.0.1 python3 "$without_copying"
begin b 127.0.0.1
together
if [ -e /proc/sys/kernel/yama/ptrace_scope ] && [ "$(</proc/sys/kernel/yama/ptrace_scope)" -gt 0 ]; then
    says a 'come in pieces: kernel.yama.ptrace_scope is [1-3]'
else
    says a 'come in pieces: process_vm_readv\(2\): Operation not permitted; this process has a seccomp filter'
fi
stop_both
current='memory in pieces, by Yama'
if unshare --mount sh -c "$yama_forbids" 2>/dev/null; then
    begin a 127.0.0.1 unshare --mount sh -c "$yama_forbids"' && exec "$@"' sh python3 "$without_copying"
    begin b 127.0.0.1
    together
    says a 'come in pieces: kernel.yama.ptrace_scope is 1, 0 would let process [0-9]+ be read'
    stop_both
else
    echo 'not looked at: Yama, in whose place this user can put nothing'
fi

current='memory in pieces, between process namespaces'
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    begin a 127.0.0.1
    begin b 127.0.0.1 unshare --pid --fork --kill-child --mount-proc
    together
    says a 'uses shared memory: .* come in pieces: the peer is in another process namespace'
    stop_both
else
    echo 'not looked at: process namespaces, which this user cannot make'
fi

current='memory in pieces, between users'
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --clear-groups test -x "$directory/peer"; then
    touch "$pipes/said.b"
    chmod 755 "$pipes"
    chmod 666 "$pipes/said.b"
    FI_DAT_SHM_PEERS=any begin a 127.0.0.1
    FI_DAT_SHM_PEERS=any begin b 127.0.0.1 setpriv --reuid=65534 --clear-groups
    together
    says a 'uses shared memory: .* come in pieces: process [0-9]+ is of user 65534, this one of user 0'
    stop_both
else
    echo 'not looked at: another user, whom this one cannot become'
fi

current='a mistyped variable'
FI_DAT_SHM_PEER=any FI_DAT_KEEPALIVES=5 FI_DAT_FOO=1 begin a 127.0.0.1
expect a 'ok *' listen
for pair in SHM_PEER:SHM_PEERS KEEPALIVES:KEEPALIVE; do
    count=$(grep -c "<warn> FI_DAT_${pair%:*} in the environment .* nearest is FI_DAT_${pair#*:}\$" \
        "$pipes/said.a")
    [ "$count" -eq 1 ] || die "${pair%:*} is named $count times: $(grep -i environment "$pipes/said.a")"
done
grep -q '<warn> FI_DAT_FOO in the environment .* fi_info -g FI_DAT lists them$' "$pipes/said.a" ||
    die "what is near to none: $(grep -i environment "$pipes/said.a")"
stop a
FI_DAT_KEEPALIVE=5 begin a 127.0.0.1
expect a 'ok *' listen
! grep 'in the environment' "$pipes/said.a" || die 'a right one is named'
stop a

current='types of variables'
if ! command -v fi_info >/dev/null; then
    echo 'not looked at: types, for there is no fi_info'
elif nm -D "$FI_PROVIDER_PATH/libdat-fi.so" | grep -qE '__(asan|tsan|ubsan)'; then
    echo 'not looked at: types, for fi_info cannot load a module with sanitizers'
else
    FI_LOG_LEVEL=warn fi_info -g FI_DAT >"$pipes/types" || die 'fi_info fails'
    # Each that there is, and no other.
    printf '%s\n' ACK_TIMEOUT:Integer CHECK_BUFFERS:Boolean CLOSE:String CRC:String END_GRACE:Integer \
        FORK_SAFE:Boolean HANDSHAKE_TIMEOUT:Integer IFACE:String KEEPALIVE:Integer RDM_IDLE:Integer \
        RESOLVE_TIMEOUT:Integer RETRIES:Integer RNR_TIMEOUT:Integer SHM:Boolean SHM_PEERS:String \
        STATS:String TRACE:String TRACE_FRAMES:Boolean TRACE_SIZE:Integer TRANSPORT:String \
        UNEXPECTED:Integer | LC_ALL=C sort >"$pipes/wanted"
    sed -n 's/^# FI_DAT_\([A-Z0-9_]*\): \([A-Za-z]*\).*/\1:\2/p' "$pipes/types" | LC_ALL=C sort |
        diff "$pipes/wanted" - || die 'other variables, or types, than are wanted'
fi
echo PASS
