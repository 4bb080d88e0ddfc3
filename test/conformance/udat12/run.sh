#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The sample programs of uDAPL 1.2, each as a server and a client: on one host, over shared
# memory and over TCP, or between two network namespaces, which it makes and removes; or on
# an RDMA device. Exit 77, with the reason, where namespaces cannot be made.
#
# Usage: run.sh host|namespaces|device ADAPTER ADDRESS
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../../..}
. "$root/util/common.sh"
samples=${DAT_BUILDDIR:-.}/test/conformance/udat12
tag=${DAT_TEST_TAG:-dat}
here=$tag-$$-s
there=$tag-$$-t
limit=80 # seconds that one program may take
passed=0
failed=0
server=
work=$(mktemp -d) || exit 1

clean_up() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
    ip netns del "$here" 2>/dev/null
    ip netns del "$there" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

skip() {
    echo "SKIP: $*"
    exit 77
}

# Nothing of libfabric is to matter, nor what this machine has in /etc.
export FI_PROVIDER=none FI_PROVIDER_PATH=/nonexistent DAT_OVERRIDE=/dev/null
mkfifo "$work/port"

on_server=()
on_client=()

run() { # sample adapter address
    local port line
    "${on_server[@]}" timeout -k 1 $limit "$samples/$1" server "$2" >"$work/port" 2>"$work/server" \
        </dev/null &
    server=$!
    exec {from}<"$work/port"
    port=
    if read -r -t 60 -u "$from" line; then port=${line#port }; fi
    "${on_client[@]}" timeout -k 1 $limit "$samples/$1" client "$2" "$3" "$port" >"$work/client" 2>&1 \
        </dev/null
    local status=$?
    [ $status -eq 0 ] || kill -TERM "$server" 2>/dev/null
    wait "$server"
    local of_server=$?
    server=
    exec {from}<&-
    if [ $status -eq 0 ] && [ $of_server -eq 0 ]; then
        passed=$((passed + 1))
        echo "passed: $1, $3${FI_DAT_SHM:+, FI_DAT_SHM=$FI_DAT_SHM}"
        return
    fi
    failed=$((failed + 1))
    echo "FAILED: $1, $3: server $of_server, client $status"
    sed 's/^/    server: /' "$work/server" | tail -n 8
    sed 's/^/    client: /' "$work/client" | tail -n 8
}

run_all() { # adapter address
    local sample
    for sample in messages ring many shared pingpong; do run "$sample" "$1" "$2"; done
}

case ${1:-host} in
host)
    run_all lo 127.0.0.1
    FI_DAT_SHM=0 run_all lo 127.0.0.1
    ;;
namespaces)
    reason=$(make_namespaces "$here" "$there") || skip "$reason"
    on_server=(ip netns exec "$here")
    on_client=(ip netns exec "$there")
    run_all wire 192.0.2.1
    ;;
device) run_all "$2" "$3" ;;
*) skip "usage: ${0##*/} host|namespaces|device ADAPTER ADDRESS" ;;
esac
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
