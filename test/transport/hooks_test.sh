#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# libfabric's hooks around `dat` and around ofi_rxm on top of it: FI_HOOK=perf, trace, debug,
# noop, those that the installed libfabric has; and the one line of its log that explains an
# empty fi_getinfo(). In a network namespace of its own where this user may make one.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -z "${DAT_HOOKS_INSIDE:-}" ] && unshare -n ip link set lo up 2>/dev/null; then
    DAT_HOOKS_INSIDE=1 exec unshare -n bash "${BASH_SOURCE[0]}" "$@"
fi
[ -z "${DAT_HOOKS_INSIDE:-}" ] || ip link set lo up || exit 1

. "$here/processes.sh"
limit=90
node=${DAT_BUILDDIR:-.}/test/transport/rxm_node
hooked=${DAT_BUILDDIR:-.}/test/transport/hooked
export FI_PROVIDER=dat
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-${DAT_BUILDDIR:-.}/.libs}
pipes=$(mktemp -d) || exit 1
current=
trap 'stop_both; rm -rf "$pipes"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The log of a program names the hook. A libfabric without it says so.
installed() { # hook log
    if grep -q "No hook found for: $1" "$2"; then
        echo "not in this libfabric: FI_HOOK=$1"
        return 1
    fi
    grep -q "dat:.*Installing $1 hook" "$2" || die 'nothing says that it was installed around dat'
}

# FI_EP_MSG, in one process.
around_dat() { # hook
    current="FI_HOOK=$1 around dat"
    FI_HOOK=$1 FI_LOG_LEVEL=info timeout -k 5 $limit "$hooked" >"$pipes/out" 2>"$pipes/log" </dev/null || {
        tail -n 5 "$pipes/log" "$pipes/out"
        die 'the program failed'
    }
    installed "$1" "$pipes/log" || return
    echo "ok: $current"
}

# Two processes exchange messages of each kind of size, and end well.
around_rxm() { # hook
    local name size
    current="FI_HOOK=$1 around dat;ofi_rxm"
    for name in a b; do
        # shellcheck disable=SC2016
        start $name env FI_HOOK="$1" FI_LOG_LEVEL=info bash -c 'exec "$0" 2>"$1"' "$node" "$pipes/$name.log"
    done
    for name in a b; do
        tell $name name
        listen_for $name
        [[ $answer == 'ok '* ]] || die "$name has no name: $answer"
        echo "${answer#ok }" >"$pipes/$name.port"
    done
    if ! installed "$1" "$pipes/a.log"; then
        stop_both
        return
    fi
    expect a 'ok 0' "know $(<"$pipes/b.port")"
    expect b 'ok 0' "know $(<"$pipes/a.port")"
    for name in a b; do expect $name ok 'recv 3 300000'; done
    for size in 10 30000 300000; do
        expect a ok "send 0 $size $size"
        expect b ok "send 0 $size $size"
    done
    tell a finish
    tell b finish
    for name in a b; do
        listen_for $name
        [ "$answer" = 'results 6 0' ] || die "$name: $answer"
    done
    for name in a b; do
        tell $name quit
        wait "${pid[$name]}" || die "$name ended with $?"
    done
    stop_both
    echo "ok: $current"
}

# FI_TAGGED is not offered by endpoints of type FI_EP_MSG.
explained() {
    local lines
    current='FI_LOG_LEVEL=warn explains an empty fi_getinfo()'
    if nm -D "$FI_PROVIDER_PATH/libdat-fi.so" | grep -qE '__(asan|tsan|ubsan)'; then
        echo "left out: $current: fi_info cannot load a sanitized module"
        return
    fi
    FI_LOG_LEVEL=warn fi_info -p dat -t FI_EP_MSG -c FI_TAGGED >"$pipes/info" 2>&1 &&
        die 'fi_info found something'
    lines=$(grep -c 'fi_getinfo() finds nothing: ' "$pipes/info")
    [ "$lines" -eq 1 ] && grep -q 'finds nothing: caps = .*not offered: FI_TAGGED' "$pipes/info" || {
        cat "$pipes/info"
        die "$lines lines explain it"
    }
    echo "ok: $current"
}

for hook in perf trace debug noop; do around_dat $hook; done
# The debugging hook takes no endpoints of ofi_rxm, which are for any thread.
for hook in perf trace noop; do around_rxm $hook; done
explained
