#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The tests, from a bare Debian 12 as root: installs the packages, builds, and runs
# them all but those below; test/steps.sh holds what the steps do. Needs nothing but
# this tree, changes nothing in it, and leaves nothing behind but the packages and the
# kernel of test/vm, in the user's cache folder.
#
#   bash test/run.sh
#   bash test/run.sh --quick   for a change in the making: one build without optimization, and
#                              of the libraries alone; what proves most for its time in it,
#                              DAT_QUICK_TESTS of Makefile.am; six minutes at most, of two
#                              processors
#
# Of the guest it runs the suites that test/vm/run.sh runs by default. Those that take
# long run by name only: bash test/vm/run.sh verbs verbs_hosts programs clauses more
# speed rpma, and with FABTESTS_BIN_DIR fabtests. So do the long fuzzing (test/fuzz/run.sh --long), the
# long runs of test/attack (test/README.md), the long soak, and what test/bench measures.
#
# DAT_KEEP=1   keep the temporary folder with the builds and logs, and print it
# TMPDIR=DIR   make it in DIR instead of /tmp
# CI=true      a test that was skipped is a failed one
# FABTESTS_BIN_DIR=DIR  run libfabric's own tests, which are in DIR, too; about 15 minutes over shm
#                       and tcp, and those over rdm-shm and rdm-tcp
# RPMA_EXAMPLES_DIR=DIR  run the programs of librpma's source, which are in DIR, too; a minute
#
# The last line is `N passed, N failed`, with `, N skipped` if there were any.
# A test counts each time that it is run: the Criterion tests and the test
# scripts in the release build, the former again under the sanitizers, and each
# check of a step once. A step that fails without a failed test counts as one.
# Exit status 0 if nothing failed.
set -u

# In each process that it is loaded into, libfabric's verbs provider reads all names of the kernel,
# twice: a third of the processor time of these tests. Here there are none to be read.
if [ -z "${DAT_OWN_MOUNTS:-}" ] &&
    unshare --mount mount --bind /dev/null /proc/kallsyms 2>/dev/null; then
    export DAT_OWN_MOUNTS=yes
    exec unshare --mount bash -c 'mount --bind /dev/null /proc/kallsyms && exec bash "$@"' - \
        "${BASH_SOURCE[0]}" "$@"
fi

# What somebody has set for programs of libfabric is not meant for the tests.
# shellcheck disable=SC2086 # the words are names
unset -- ${!FI_@}

# What packages.sh installs is to be found first: a Python of somebody's own has not its modules.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

# libtool, which is run for each object, takes half as long in it as in bash.
[ ! -x /bin/dash ] || export CONFIG_SHELL=/bin/dash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/util/common.sh"

steps=all_steps
case ${1:-} in
'') ;;
--quick) steps=quick_steps ;;
*)
    echo "usage: bash test/run.sh [--quick]" >&2
    exit 2
    ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/dat-test.XXXXXX") || exit 1
jobs=$(nproc)
# A test that makes something which outlives its processes, a network namespace
# say, begins its name with this, so that it can be removed after an interrupt.
DAT_TEST_TAG=dat$$
export root work jobs DAT_TEST_TAG
mkdir "$work/logs" "$work/tmp"
export TMPDIR=$work/tmp

# The sessions of the steps that are running, by name.
declare -A sessions=() began=()
clean_up() {
    local name
    trap '' HUP INT TERM
    for name in "${!sessions[@]}"; do end_session "${sessions[$name]}"; done
    for name in "/run/netns/$DAT_TEST_TAG"*; do
        [ ! -e "$name" ] || ip netns delete "${name##*/}"
    done
    if [ -n "${DAT_KEEP:-}" ]; then
        echo "kept: $work"
    else
        chmod -R u+w "$work" && rm -rf "$work"
    fi
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Prints what the step $1 counted, or all of them: passed, failed, skipped.
sums() {
    cat "$work"/results.${1:-*} |
        awk '$1 == "count" {passed += $2; failed += $3} $1 == "skip" {skipped++}
             END {print passed + 0, failed + 0, skipped + 0}'
}

# Starts one step in a session of its own, bounded in time. What it counts it adds to $results.
start_step() { # limit-in-seconds name
    local limit=$1 name=$2
    : >"$work/results.$name"
    began[$name]=$SECONDS
    results=$work/results.$name setsid -w timeout -k 10 "$limit" \
        bash -c '. "$root/test/steps.sh"; "step_$1"' - "$name" >"$work/logs/$name.log" 2>&1 </dev/null &
    sessions[$name]=$!
}

# Waits for a step, and prints how it went, and what its log has behind "note: ". Returns its status.
finish_step() { # name title
    local name=$1 title=$2 log=$work/logs/$1.log status=0 verdict=ok counted
    wait "${sessions[$name]}" || status=$?
    end_session "${sessions[$name]}"
    unset "sessions[$name]"
    [ $status -eq 124 ] && echo 'the step took longer than it may, and was ended' >>"$log"
    if [ $status -ne 0 ]; then
        verdict=FAIL
        read -r -a counted < <(sums "$name")
        [ "${counted[1]}" -gt 0 ] || echo 'count 0 1' >>"$work/results.$name"
    fi
    read -r -a counted < <(sums "$name")
    printf '%-4s %4d s  %-44s' "$verdict" $((SECONDS - began[$name])) "$title"
    tally "${counted[@]}"
    sed -n 's/^note: /             /p' "$log"
    [ $status -eq 0 ] || { explain "$log"; failures "$1" "$log" >>"$work/failures"; }
    return $status
}

# A step that runs alone.
run_step() { # limit-in-seconds name title
    start_step "$1" "$2"
    finish_step "$2" "$3"
}

# Prints what a failed step's log says: its first complaints and its end.
explain() {
    echo "---- ${1##*/}: the first complaints, by line"
    grep -nE '(error|Error|ERROR|FAIL|FAILED|fatal|runtime error):|^\[(FAIL|CRASH)\]|^FAIL|^\| ' "$1" |
        head -n 40
    echo "---- ${1##*/}: its end"
    tail -n 60 "$1"
    echo '----'
}

# Prints what failed in step $1, whose log is $2: each test with the end of what it said.
failures() {
    local said
    said=$(grep -E -A 32 '^(FAIL|FAILED|VIOLATION|\[(FAIL|CRASH)\]|\*\*\*)' "$2" | grep -v '^ok ' | tail -n 100)
    echo "failed in step $1:"
    echo "${said:-$(tail -n 5 "$2")}"
}

# Prints what a step counted, if it counted anything.
tally() { # passed failed skipped
    if [ $(($1 + $2 + $3)) -eq 0 ]; then
        echo
    elif [ "$3" -eq 0 ]; then
        echo " $1 passed, $2 failed"
    else
        echo " $1 passed, $2 failed, $3 skipped"
    fi
}

# In this mount namespace, and in the guest, which sees the same files: what test/stand_in.sh makes.
stand_in() {
    local genuine
    [ -n "${DAT_OWN_MOUNTS:-}" ] && genuine=$(bash "$root/test/stand_in.sh" "$work/stand_in.so") &&
        mount --bind "$work/stand_in.so" "$genuine"
} 2>/dev/null

# The steps. Returns 1 where one failed without which the rest makes no sense.
all_steps() {
    run_step 600 packages 'Debian packages' || return 1
    stand_in
    run_step 120 distribution 'distribution: autoreconf, make dist' || return 1
    run_step 1500 release 'release build, g++' || return 1
    run_step 1560 release_check 'release: make check'
    run_step 60 install 'make install, and what it installed'
    if [ -f "$work/prefix/lib/libfabric/libdat-fi.so" ]; then
        run_step 180 pingpong 'fi_pingpong, two processes, all sizes'
        run_step 1080 mpi 'Open MPI: ring, suite, programs of others'
        if [ -n "${FABTESTS_BIN_DIR:-}" ]; then
            run_step 3600 fabtests 'fabtests'
        else
            echo 'not run: fabtests, since FABTESTS_BIN_DIR names no folder of them'
        fi
    else
        echo 'not run: fi_pingpong, Open MPI, fabtests'
    fi
    if [ -n "${RPMA_EXAMPLES_DIR:-}" ]; then
        run_step 300 rpma_examples "librpma's examples"
    else
        echo "not run: librpma's examples, since RPMA_EXAMPLES_DIR names no folder of them"
    fi
    # Both wait for much of their time, and the sources are read in it, and beside what follows.
    start_step 3300 analysis
    start_step 300 relay
    run_step 180 kill 'either side killed at random: TCP, memory'
    finish_step relay 'packets harmed between two namespaces, beside those'
    # The guest has one processor, and the builds beside it come second (lowly).
    start_step 2800 guest
    run_step 3300 sanitized 'ASan and UBSan build, clang'
    local sanitized=$?
    run_step 1200 distcheck 'make distcheck'
    run_step 1200 thread_sanitizer 'ThreadSanitizer build'
    local thread_sanitizer=$?
    finish_step analysis 'clang-tidy and cppcheck, beside those'
    finish_step guest 'guest with software RDMA devices, beside those'
    [ $sanitized -ne 0 ] || run_step 1560 sanitized_check 'ASan and UBSan: make check'
    run_step 450 fuzzing 'fuzzing, short'
    [ $thread_sanitizer -ne 0 ] ||
        run_step 600 thread_sanitizer_check 'ThreadSanitizer: plain programs'
    return 0
}

# The same for a change in the making.
quick_steps() {
    run_step 600 quick_packages 'Debian packages' || return 1
    stand_in
    run_step 120 distribution 'distribution: autoreconf, make dist' || return 1
    run_step 900 quick 'build of the libraries without optimization, g++' || return 1
    run_step 600 quick_check 'make check: DAT_QUICK_TESTS'
    return 0
}

$steps || echo 'the steps after this one were not run'

read -r passed failed skipped < <(sums)
cat "$work"/results.* | grep '^skip ' | sed 's/^skip /skipped: /'
if [ "${CI:-}" = true ] && [ "$skipped" -gt 0 ]; then
    echo "$skipped skipped: CI is to run everything, so each counts as failed"
    failed=$((failed + skipped))
    skipped=0
fi
cat "$work/failures" 2>/dev/null
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "all steps took $SECONDS s"
trap - EXIT
clean_up
echo "$line"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
