#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The sample programs of librpma, each as a server and a client: on one host, over shared memory
# and over TCP, or on an RDMA device.
#
#   run.sh host
#   run.sh device ADDRESS
#
# SERVER_LIBRARY, CLIENT_LIBRARY   where that side has its librpma from; by default what it was
#                                  linked to
set -u

samples=${DAT_BUILDDIR:-.}/test/conformance/rpma
limit=80 # seconds that one program may take
passed=0
failed=0
server=
work=$(mktemp -d) || exit 1

clean_up() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Nothing of libfabric is to matter.
export FI_PROVIDER=none FI_PROVIDER_PATH=/nonexistent
mkfifo "$work/port"

# Starts a sample; with another library it is the program itself, not the script that libtool
# has put in its place.
with() { # library sample arguments...
    local library=$1 program=$samples/$2
    shift 2
    if [ -n "$library" ]; then
        [ ! -x "$samples/.libs/${program##*/}" ] || program=$samples/.libs/${program##*/}
        export LD_LIBRARY_PATH=$library
    fi
    exec timeout -k 1 $limit "$program" "$@"
}

run() { # sample address [file]
    local port line name=$1 address=$2
    shift 2
    with "${SERVER_LIBRARY:-}" "$name" server "$address" "$@" \
        >"$work/port" 2>"$work/server" </dev/null &
    server=$!
    exec {from}<"$work/port"
    port=
    if read -r -t 60 -u "$from" line; then port=${line#port }; fi
    (with "${CLIENT_LIBRARY:-}" "$name" client "$address" "$port") \
        >"$work/client" 2>&1 </dev/null
    local status=$?
    [ $status -eq 0 ] || kill -TERM "$server" 2>/dev/null
    wait "$server"
    local of_server=$?
    server=
    line=
    read -r -t 5 -u "$from" line # what the server says of its end
    exec {from}<&-
    if [ $status -eq 0 ] && [ $of_server -eq 0 ] && [ -n "$line" ]; then
        passed=$((passed + 1))
        echo "passed: $name, $address${*:+, of a file}${FI_DAT_SHM:+, FI_DAT_SHM=$FI_DAT_SHM}: $line"
        return
    fi
    failed=$((failed + 1))
    echo "FAILED: $name, $address${*:+, of a file}${FI_DAT_SHM:+, FI_DAT_SHM=$FI_DAT_SHM}:" \
        "server $of_server, client $status"
    sed 's/^/    server: /' "$work/server" | tail -n 8
    sed 's/^/    client: /' "$work/client" | tail -n 8
}

run_all() { # address
    run kv_store "$1"
    run log_shipper "$1"
    run event_loop "$1"
}

case ${1:-host} in
host)
    for FI_DAT_SHM in 1 0; do
        export FI_DAT_SHM
        run_all 127.0.0.1
        run kv_store 127.0.0.1 "$work/store$FI_DAT_SHM"
    done
    ;;
device) run_all "$2" ;;
*)
    echo "usage: ${0##*/} host|device ADDRESS" >&2
    exit 2
    ;;
esac
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
