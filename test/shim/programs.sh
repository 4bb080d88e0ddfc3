#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Programs that nobody here wrote: those of Debian's dapl2-utils, unmodified, on libdat2.
# Judged by the text of both sides, since the exit status of these programs says little.
# Exit 77, with the reason, where the programs are not installed.
#
#   programs.sh host         on one host
#   programs.sh namespaces   between two network namespaces, which it makes and removes
#   programs.sh device ADAPTER ADDRESS TRUE|FALSE GROUP
#                            on one host and that adapter, GROUP of the programs: dtest,
#                            others, dapltest, ends. Whether it has immediate data and
#                            atomics, which the library is to say and to do
#   programs.sh across NAMESPACE SERVER-DEVICE CLIENT-DEVICE ADDRESS
#                            dtest, one side in NAMESPACE on this library, the other
#                            where this runs, on the genuine one; which device is in
#                            NAMESPACE says which is which. ADDRESS is the server's.
#
# DAT_PROGRAM_LIMIT   seconds that one program may take (60)
set -u

where=${1:-host}
library=${DAT_BUILDDIR:-.}/.libs
tag=${DAT_TEST_TAG:-dat}
here=$tag-$$-p
there=$tag-$$-q
limit=${DAT_PROGRAM_LIMIT:-60}
passed=0
failed=0
work=$(mktemp -d) || exit 1
server=
adapter=lo
address=127.0.0.1
on_server=()
on_client=()

clean_up() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
    ip netns del "$here" 2>/dev/null
    ip netns del "$there" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

. "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}/util/common.sh"

skip() {
    echo "SKIP: $*"
    exit 77
}

[ -f "$library/libdat2.so.2" ] || {
    echo "$library/libdat2.so.2 is not there"
    exit 1
}
for program in dtest dtestx dtestcm dtestsrq dapltest; do
    command -v "$program" >/dev/null || skip "$program is not installed (Debian: dapl2-utils)"
done
nm -D "$library/libdat2.so.2" | grep -qE '__(asan|tsan|ubsan)' &&
    skip 'these programs cannot load a library that is built with a sanitizer'
# Nothing of libfabric is to matter.
export LD_LIBRARY_PATH=$library FI_PROVIDER=none FI_PROVIDER_PATH=/nonexistent
export DAT_OVERRIDE=/dev/null

use_namespaces() {
    local reason
    reason=$(make_namespaces "$here" "$there") || skip "$reason"
    adapter=wire
    address=192.0.2.1
    on_server=(ip netns exec "$here")
    on_client=(ip netns exec "$there")
}

# The programs choose their ports themselves: where it is permitted, among their own.
make_own_loopback() {
    ip netns add "$here" 2>/dev/null && ip -n "$here" link set lo up || return 0
    keep_ports ip netns exec "$here"
    on_server=(ip netns exec "$here")
    on_client=(ip netns exec "$here")
}

# The genuine library on its own device, this one in the namespace. The server tells the
# client the name of its adapter, so it is one name on both sides. The genuine provider is
# unloaded with its last IA, which its thread may not have left: it calls itself ended, lets go of
# a lock, and returns. Loaded beforehand, it stays.
make_across() { # namespace server-device client-device address
    local entry='wire u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0'
    local genuine=(env -u LD_LIBRARY_PATH LD_PRELOAD=libdat2.so.2:libdaplofa.so.2)
    local ours=(ip netns exec "$1" env "LD_LIBRARY_PATH=$library")
    echo "$entry \"$2 0\" \"\"" >"$work/server.conf"
    echo "$entry \"$3 0\" \"\"" >"$work/client.conf"
    if ip netns exec "$1" test -e "/sys/class/net/$2"; then
        on_server=("${ours[@]}")
        on_client=("${genuine[@]}")
    else
        on_server=("${genuine[@]}")
        on_client=("${ours[@]}")
    fi
    on_server+=("DAT_OVERRIDE=$work/server.conf")
    on_client+=("DAT_OVERRIDE=$work/client.conf")
    adapter=wire
    address=$4
}

# A TCP port of the server is listened on, or one of RDMA connections.
listens() { # port
    "${on_server[@]}" grep -q "^ *[0-9]*: [0-9A-F]*:$(printf '%04X' "$1") [0-9A-F:]* 0A " /proc/net/tcp ||
        rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN .*src-addr [^ ]*:$1 "
}

wait_for_port() { # port
    local tries=0
    until listens "$1"; do
        tries=$((tries + 1))
        [ $tries -lt $((limit * 50)) ] && kill -0 "$server" 2>/dev/null || return 1
        sleep 0.02
    done
    return 0
}

wait_for_text() { # file text
    local tries=0
    until grep -q "$2" "$1"; do
        tries=$((tries + 1))
        [ $tries -lt $((limit * 50)) ] && kill -0 "$server" 2>/dev/null || return 1
        sleep 0.02
    done
    return 0
}

start_server() { # command...
    "${on_server[@]}" timeout -k 1 $limit stdbuf -oL "$@" >"$work/server" 2>&1 </dev/null &
    server=$!
}

run_client() { # command...
    "${on_client[@]}" timeout -k 1 $limit stdbuf -oL "$@" >"$work/client" 2>&1 </dev/null
}

end_server() {
    wait "$server"
    local status=$?
    server=
    return $status
}

verdict() { # name 0|1
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "passed: $1"
        return
    fi
    failed=$((failed + 1))
    echo "FAILED: $1"
    sed 's/^/    server: /' "$work/server" | tail -n 12
    sed 's/^/    client: /' "$work/client" | tail -n 12
}

# Both sides say it.
both_say() { # text
    grep -q "$1" "$work/server" && grep -q "$1" "$work/client" &&
        ! grep -q FAILED "$work/server" "$work/client"
}

dtest_with() { # flags...
    start_server dtest -P "$adapter" "$@"
    wait_for_port 15828 && run_client dtest -P "$adapter" -h $address "$@"
    end_server && both_say 'DAPL Test Complete. PASSED'
    verdict "dtest $*" $?
}

# A program whose server listens on the port that it connects to.
pair_with() { # text port program flags...
    local text=$1 port=$2 program=$3
    shift 3
    start_server "$program" -P "$adapter" -s "$@"
    wait_for_port "$port" && run_client "$program" -P "$adapter" -h $address "$@"
    end_server && both_say "$text"
    verdict "$program $*" $?
}

transactions() { # flags...
    run_client dapltest -T T -s $address -D "$adapter" "$@"
    # The latter where it was too fast to be measured.
    grep -qE 'Total WQE|Test completed successfully' "$work/client" &&
        ! grep -qE 'Test Error|Warning: conn_event_wait|bad connection event' "$work/client"
    verdict "dapltest -T T $*" $?
}

throughput() { # flags...
    run_client dapltest -T P -s $address -D "$adapter" "$@"
    grep -q 'raw:' "$work/client" && ! grep -q 'bad connection event' "$work/client"
    verdict "dapltest -T P $*" $?
}

# How many of each kind of object there can be; it is to stop at its own limit. With several
# IAs all share one EVD of connections.
limits() { # limit [adapters]
    run_client dapltest -T L -D "$adapter" -m "$1" -w "${2:-1}"
    local text missing=
    for text in 'IAs opened' 'PZs created' 'CNOs created' 'EVDs created' 'EPs created' \
        'RSPs created' 'PSPs created' 'LMRs created'; do
        grep -q "LimitTest: $text: $1\$" "$work/client" || missing+=" $text"
    done
    for text in 'recv buffers posted per EP: ' 'LMR of 0x[0-9a-f]* bytes OK'; do
        grep -q "LimitTest: $text" "$work/client" || missing+=" $text"
    done
    [ -z "$missing" ]
    verdict "dapltest -T L -m $1 -w ${2:-1}${missing:+, not:$missing}" $?
}

# Its function tests, so many of which pass; others it does not support itself.
functions() { # function cases
    run_client dapltest -T F -D "$adapter" -f "$1"
    [ "$(grep -c 'Result: *PASS' "$work/client")" -eq "$2" ] && ! grep -q 'Result: *FAIL' "$work/client"
    verdict "dapltest -T F -f $1" $?
}

# The tests of dapltest that need no server.
dapltest_alone() { # limit
    : >"$work/server"
    limits "$1"
    limits "$1" 4
    functions hwconn 4
    functions endpoint 3
    functions pz 3
    functions mem 5
    functions connmgt 2
    functions queryinfo 17
}

# Each kind of test once, for an emulated guest.
dapltest_some() {
    start_server dapltest -T S -D "$adapter"
    wait_for_text "$work/server" 'Service Point Ready'
    verdict 'dapltest -T S' $?
    transactions -i 50 client SR 256 server RW 4096 server SR 256
    transactions -i 50 client SR 256 server RR 4096 server SR 256
    transactions -P -i 20 client RW 4096 1 server RW 2048 4 server RR 1024 1 client RR 2048 1 \
        client SR 1024 3 -f server SR 256 3 -f
    transactions -V -t 2 -w 4 -i 10 client SR 8192 3 server SR 8192 3
    throughput -i 200 -p 16 -m b RW 4096
    throughput -i 200 -p 4 -m p RR 4096
    throughput -i 200 -p 4 -m b RW 1024 4
    run_client dapltest -T Q -s $address -D "$adapter"
    end_server
    verdict 'dapltest -T Q' $?
}

dapltest_all() {
    start_server dapltest -T S -D "$adapter"
    wait_for_text "$work/server" 'Service Point Ready'
    verdict 'dapltest -T S' $?
    transactions -i 1 -t 1 -w 1 client SR 4096 server SR 4096
    transactions -i 1000 client SR 4096 server SR 4096
    transactions -i 200 client SR 256 server RW 4096 server SR 256
    transactions -i 200 client SR 256 server RR 4096 server SR 256
    transactions -P -i 100 client RW 4096 1 server RW 2048 4 server RR 1024 1 client RR 2048 1 \
        client SR 1024 3 -f server SR 256 3 -f
    transactions -V -i 50 client RW 4096 1 server RW 2048 4 server RR 1024 1 client RR 2048 1 \
        client SR 1024 3 -f server SR 256 3 -f
    transactions -t 4 -i 100 client SR 8192 3 server SR 8192 3
    transactions -t 4 -w 4 -i 20 client SR 256 server SR 256
    transactions -t 10 -w 10 -i 10 client SR 256 server SR 256
    throughput -i 500 -p 1 -m b RW 4
    throughput -i 500 -p 16 -m b RW 4096
    throughput -i 500 -p 1 -m p RW 4
    throughput -i 200 -p 4 -m b RR 4096
    throughput -i 200 -p 4 -m b RW 1024 4
    throughput -i 200 -p 4 -m p RW 1024 4
    throughput -i 200 -p 4 -m b RR 1024 4
    run_client dapltest -T Q -s $address -D "$adapter"
    end_server
    verdict 'dapltest -T Q' $?
}

# What a program sees of a peer that is not there, or no more.
ends() {
    run_client dtestcm -P "$adapter" -h $address -c 1
    grep -q '0x4003' "$work/client"
    : >"$work/server"
    verdict 'dtestcm, nobody listens: NON_PEER_REJECTED' $?

    start_server dtest -P "$adapter" -b 65536 -B 100000
    wait_for_port 15828
    (
        wait_for_text "$work/client" CONNECTED
        kill -KILL "$(pgrep -P "$server" | head -n 1)"
    ) &
    local killer=$!
    run_client dtest -P "$adapter" -h $address -b 65536 -B 100000
    wait $killer
    end_server
    grep -q FAILED "$work/client"
    verdict 'dtest, the server is killed' $?
}

# The library as a provider of the genuine libdat2 (REG-2, REG-3).
under_genuine() {
    echo "dat-lo u2.0 nonthreadsafe default $(realpath "$library")/libdat2.so.2 dat.2.0 \"lo 0\" \"\"" \
        >"$work/dat.conf"
    local adapter=dat-lo
    local -x DAT_OVERRIDE=$work/dat.conf LD_LIBRARY_PATH=
    echo 'under a genuine libdat2:'
    dtest_with -b 4096
    dtest_with -b 4096 -t
    pair_with 'IB extension test - immed/atomic test PASSED' 15828 dtestx
    pair_with 'DAPL Connection Test Complete' 15828 dtestcm -c 20
    pair_with 'DAPL RC SRQ Test Complete' 45248 dtestsrq -c 4 -B 10
    start_server dapltest -T S -D "$adapter"
    wait_for_text "$work/server" 'Service Point Ready'
    transactions -t 2 -w 2 -i 20 client SR 256 server SR 256
    run_client dapltest -T Q -s $address -D "$adapter"
    end_server
    verdict 'dapltest -T Q' $?
}

dtest_flags() {
    local flags words
    for flags in "$@"; do
        read -r -a words <<<"$flags"
        dtest_with "${words[@]}"
    done
}

srq_programs() {
    pair_with 'DAPL RC none SRQ Test Complete' 45248 dtestsrq -S 0 -c 4 -B 10 -t 3
    pair_with 'DAPL RC SRQ Test Complete' 45248 dtestsrq -c 4 -B 10
}

extensions() {
    pair_with 'IB extension test - immed/atomic test PASSED' 15828 dtestx
}

# Its counters (requests, receives), and that there are no datagrams.
other_extensions() {
    pair_with 'IB extension test - immed/atomic test PASSED' 15828 dtestx -p
    both_say 'EP\[0\] Cntrs: 0 0 5 0 0 0 7 0 0'
    verdict 'dtestx -p: five requests, seven receives' $?
    start_server dtestx -P "$adapter" -s -u
    : >"$work/client"
    end_server
    grep -q 'dat_ep_create returned DAT_MODEL_NOT_SUPPORTED' "$work/server"
    verdict 'dtestx -u is told that there are no datagrams' $?
}

attributes() {
    run_client dtestx -P "$adapter" -q
    verdict 'dtestx -q' $?
}

# dat_ia_query tells what the transport has (IA-12), and no more is done.
extensions_as_said() { # TRUE|FALSE
    local name said
    attributes
    for name in FETCH_AND_ADD CMP_AND_SWAP IMMED_DATA; do
        said=$(sed -n "s/.* DAT_IB_$name=//p" "$work/client")
        [ "$said" = "$1" ]
        verdict "the attribute DAT_IB_$name is $1" $?
    done
    if [ "$1" = TRUE ]; then
        extensions
        dtest_flags '-b 4096 -B 20 -w'
        return
    fi
    start_server dtestx -P "$adapter" -s
    wait_for_port 15828 && run_client dtestx -P "$adapter" -h $address
    end_server
    grep -q 'write_immed returned DAT_MODEL_NOT_SUPPORTED' "$work/client"
    verdict 'dtestx is told that there is no immediate data' $?
}

on_device() { # TRUE|FALSE group
    case $2 in
    dtest) dtest_flags '-b 4096 -B 20 -t' '-b 65536 -B 20 -c' '-b 4096 -B 20 -p' \
        '-b 4096 -B 20 -u -t -d 1' '-b 1048576 -B 2' '-W -t -b 64 -B 50' '-W -D -b 4096 -B 20' ;;
    others)
        # More than some 20 connections at once lose private data in siw.
        pair_with 'DAPL Connection Test Complete' 15828 dtestcm -c 20
        pair_with 'DAPL Connection Test Complete' 15828 dtestcm -c 20 -w
        pair_with 'DAPL Connection Test Complete' 15828 dtestcm -c 20 -m -b 10
        srq_programs
        extensions_as_said "$1"
        ;;
    dapltest)
        dapltest_some
        dapltest_alone 20
        ;;
    ends) ends ;;
    *) echo "what group is $2?" >&2; exit 2 ;;
    esac
}

: >"$work/client"
case $where in
host) make_own_loopback ;;
namespaces) use_namespaces ;;
device)
    adapter=$2
    address=$3
    on_device "$4" "$5"
    ;;
across)
    make_across "$2" "$3" "$4" "$5"
    dtest_flags '-b 4096' '-b 4096 -B 100 -t' '-b 4096 -B 100 -c' '-b 4096 -B 100 -p' \
        '-b 65536 -B 20' '-W -t -b 64 -B 200'
    ;;
*) skip "usage: ${0##*/} host|namespaces|device|across ..." ;;
esac

if [ "$where" = host ] || [ "$where" = namespaces ]; then
    dtest_with -b 4096
    extensions
    pair_with 'DAPL Connection Test Complete' 15828 dtestcm -c 100
    srq_programs
    dapltest_all
fi
if [ "$where" = namespaces ]; then
    dtest_flags '-b 4096 -c' '-b 4096 -p' '-b 65536 -B 20 -w' '-W -D -b 4096 -B 20'
fi
if [ "$where" = host ]; then
    dtest_flags '-b 4096 -t' '-b 4096 -c' '-b 4096 -p' '-b 4096 -w' '-b 4096 -u -t' '-b 65536' \
        '-b 4096 -B 100' '-b 4096 -d 2' '-b 1048576 -B 20' '-B 5' '-b 4096 -B 40 -S 4' \
        '-W -b 64 -B 50' '-W -D -b 4096 -B 20' '-W -a -D -b 64 -B 5'
    other_extensions
    dapltest_alone 100
    pair_with 'DAPL Connection Test Complete' 15828 dtestcm -c 100 -w
    pair_with 'DAPL Connection Test Complete' 15828 dtestcm -c 100 -m -b 10
    attributes
    ends
    under_genuine
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
