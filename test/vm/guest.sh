#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs in the guest: sets up the network that every suite finds, runs the suites that
# are its arguments, and reports on the console, one line behind `##dat`.
#
#   init_net     lo; siw0 on s0 ($siw); rxe0 on r0 ($rxe)
#   soft         a network namespace without RDMA device: s1 ($soft), the other end
#                of s0's wire
#   init_net     where there is a second guest: rxe_wire on wire0 ($near), joined to the
#                other's ($far)
#
# A suite is a file suite_NAME.sh: functions, and the array `tests`, one entry a test:
# "SECONDS NAME FUNCTION [ARGUMENT...]". Each runs in a shell of its own, with pair.sh.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/wire.sh"
. "$here/../../util/common.sh"
out=/run/job # kept by run.sh --keep
export siw=192.0.2.1 rxe=198.51.100.1 soft=192.0.2.2

ulimit -l unlimited -n 16384
ulimit -c 0

say() { echo "##dat $*"; }

set_up() {
    ip link set lo up
    echo guest >/proc/sys/kernel/hostname # mpirun wants a name
    # libfabric's verbs provider reads it whole whenever a program starts: seconds, here.
    mount --bind /dev/null /proc/kallsyms
    [ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
    keep_ports
    ip netns add soft
    keep_ports ip netns exec soft
    ip link add s0 type veth peer name s1 netns soft
    ip addr add $siw/24 dev s0
    ip addr add 2001:db8::1/64 dev s0 nodad
    ip link set s0 up
    ip -n soft addr add $soft/24 dev s1
    ip -n soft addr add 2001:db8::2/64 dev s1 nodad
    ip -n soft link set lo up
    ip -n soft link set s1 up
    ip link add r0 type veth peer name r1
    ip addr add $rxe/24 dev r0
    ip link set r0 up
    ip link set r1 up
    rdma link add siw0 type siw netdev s0
    rdma link add rxe0 type rxe netdev r0
    [ "$dat_two" = no ] || set_up_wire $near
    rdma link
}

# Its output becomes a file, its status a line, with the end of both that output and the kernel's
# where it failed. 77: skipped, for the reason in its last line.
run_test() { # suite limit-in-seconds name function [arguments]
    local suite=$1 limit=$2 name=$1/$3 log=$out/$1.$3.log status=0 started=$SECONDS
    shift 2
    # shellcheck disable=SC2016
    timeout -k 5 "$limit" bash -c '. "$0/pair.sh"; . "$0/suite_$suite.sh"; shift; "$@"' \
        "$here" "$@" >"$log" 2>&1 </dev/null || status=$?
    case $status in
    0) say "ok $name ($((SECONDS - started)) s)" ;;
    77) say "skip $name: $(tail -n 1 "$log")" ;;
    *)
        say "FAIL $name"
        [ $status -ne 124 ] || say "| took longer than $limit s"
        { tail -n 25 "$log"; dmesg | tail -n 5; } | while read -r line; do say "| $line"; done
        ;;
    esac
}

set_up >"$out/set_up.log" 2>&1
for what; do
    export suite=${what%%/*}
    only=${what#"$suite"}
    tests=()
    # shellcheck disable=SC1090
    . "$here/suite_$suite.sh"
    for test in "${tests[@]}"; do
        read -r _ name _ <<<"$test"
        # shellcheck disable=SC2053
        [[ -z $only || /$name == $only ]] || continue
        # Unquoted on purpose: the words of the entry.
        # shellcheck disable=SC2086
        run_test "$suite" $test
    done
    say "end $what"
done
dmesg >"$out/dmesg"
