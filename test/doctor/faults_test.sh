#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# dat_doctor finds each fault that faults.sh makes, says what mends it, and finds nothing once that
# is done. Each fault has namespaces of its own, for network, mounts and name of the host, which
# vanish with their processes. Several at a time. Exit 77, with the reason, where namespaces cannot be
# made.
#
# Usage: faults_test.sh [FAULT...]
set -u

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
build=$(cd "${DAT_BUILDDIR:-.}" && pwd)
faults=$root/test/doctor/faults.sh
at_once=3

skip() {
    echo "SKIP: $*"
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip 'this user cannot make namespaces'
unshare --net --mount --uts true 2>/dev/null || skip 'this user cannot make namespaces'
! nm -D "$build/.libs/libdat-fi.so" | grep -qE '__(asan|tsan|ubsan)' ||
    skip 'functions cannot be put in the place of others under sanitizers'

work=$(mktemp -d) || exit 1
running=()
clean_up() {
    local pid
    # unshare(1) keeps other signals from itself; what it has begun ends with it.
    for pid in "${running[@]}"; do kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

mapfile -t all < <(sed -n 's/^\(fault_[a-z0-9_]*\)() {.*/\1/p' "$faults")
[ $# -eq 0 ] || all=("${@/#/fault_}")
[ ${#all[@]} -gt 0 ] || {
    echo 'there is no fault'
    exit 1
}

begin() { # fault
    mkdir "$work/$1"
    # In a process namespace of its own: what it leaves running ends with it.
    setsid unshare --net --mount --uts --pid --fork --kill-child --mount-proc \
        bash "$faults" "$1" "$work/$1" "$root" "$build" >"$work/$1/log" 2>&1 &
    running+=($!)
    started[$!]=$1
}
declare -A started
bad=0
end_one() {
    local pid=${running[0]} status=0
    wait "$pid" || status=$?
    running=("${running[@]:1}")
    if [ $status -ne 0 ] || ! tail -n 1 "$work/${started[$pid]}/log" | grep -q '^PASS'; then
        echo "FAILED: ${started[$pid]} (status $status)"
        cat "$work/${started[$pid]}/log"
        bad=$((bad + 1))
    fi
}
for fault in "${all[@]}"; do
    [ ${#running[@]} -lt $at_once ] || end_one
    begin "$fault"
done
while [ ${#running[@]} -gt 0 ]; do end_one; done
echo "${#all[@]} faults, $bad not found, or not mended, as they should be"
[ $bad -eq 0 ]
