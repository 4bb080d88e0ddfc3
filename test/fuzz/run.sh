#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The fuzz targets, under ASan and UBSan: builds them in a temporary folder and runs each
# from its seeds in test/fuzz/corpus. Needs clang with libFuzzer; no configure.
#
#   bash test/fuzz/run.sh                       some seconds of each target, from one seed, so
#                                               that what fails is what has changed
#   bash test/fuzz/run.sh SECONDS [TARGET...]   so long
#   bash test/fuzz/run.sh --long [TARGET...]    10 million inputs of each target
#   bash test/fuzz/run.sh --replay TARGET FILE...
#
# As many targets run at once as there are processors, or DAT_FUZZ_JOBS. A line for each
# says how many inputs it ran and what came of it. A finding ends with status 1; its input
# is kept, and the command that replays it printed.
#
# DAT_FUZZ_KEEP=DIR keeps the corpora that grew, begins from those kept before, and lets a
# long run that was stopped go on where it was, on the same sources.
# DAT_FUZZ_LIBRARIES=DIR has uDAPL libraries with ASan and UBSan: taken as they are, in place
# of being built with coverage.
# DAT_FUZZ_BUILD=DIR keeps what is built, DAT_FUZZ_CXX is another compiler,
# DAT_FUZZ_RUNS another number than 10 million.
set -u

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd) || exit 1
fuzz=$root/test/fuzz
targets=(mpa codec trailer conf hints handshake receive rings rdm local_listener peering handles12 handles20)
# The largest inputs, in bytes.
declare -A max_size=([mpa]=600 [codec]=200 [trailer]=220 [conf]=400 [hints]=400
    [handshake]=620 [receive]=300 [rings]=200 [rdm]=300 [local_listener]=160 [peering]=400 [handles12]=160 [handles20]=160)
long_runs=${DAT_FUZZ_RUNS:-10000000}
jobs=${DAT_FUZZ_JOBS:-$(nproc)}
optimize=-O2
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=2:malloc_context_size=2}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

usage() {
    sed -n 's/^#   bash/usage: bash/p' "$fuzz/run.sh" >&2
    exit 2
}

clang=${DAT_FUZZ_CXX:-}
for name in clang++-14 clang++; do
    if [ -z "$clang" ] && command -v "$name" >/dev/null; then
        clang=$name
        break
    fi
done
[ -n "$clang" ] || { echo 'no clang++; Debian: clang-14 libclang-rt-14-dev' >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/dat-fuzz.XXXXXX") || exit 1
build=${DAT_FUZZ_BUILD:-$work/build}
keep=${DAT_FUZZ_KEEP:-$work/keep}
clean_up() {
    local children
    children=$(jobs -p; cat "$work"/*.pid 2>/dev/null)
    # Unquoted on purpose: one argument a process.
    [ -z "$children" ] || kill $children 2>/dev/null
    wait
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Builds targets; objects that several share once.
build() { # target...
    mkdir -p "$build" && in_build -j"$(nproc)" "$@"
}

in_build() {
    make -s -C "$build" -f "$fuzz/build.mk" root="$root" CXX="$clang" OPTIMIZE="$optimize" \
        libraries="${DAT_FUZZ_LIBRARIES:-}" "$@"
}

# A name of all that a target was made of: what ran on another state of it does not count.
state() { # target
    # One argument a file.
    # shellcheck disable=SC2046
    (cd "$build" && cat $(in_build "dependencies-$1") | tr -s ' \\:' '\n' |
        xargs realpath -qe) | grep "^$root/" | LC_ALL=C sort -u | xargs cat |
        sha256sum | cut -c-12
}

# Runs one target once, as long as the option says. Prints the number of inputs; where there
# is none something was found, and told on standard error.
once() { # target libfuzzer-option...
    local target=$1 log=$work/$1.log kept=${TMPDIR:-/tmp}/dat-fuzz-$1 status=0 runs child
    mkdir -p "$keep/$target" || return 1
    # To choose inputs by entropy takes a sixth of the time.
    "$build/$target" "${@:2}" -max_len="${max_size[$target]}" -timeout=20 -rss_limit_mb=2048 \
        -entropic=0 -artifact_prefix="$kept-" -detect_leaks=0 -print_final_stats=1 \
        "$keep/$target" "$fuzz/corpus/$target" >"$log" 2>&1 </dev/null &
    child=$!
    echo "$child" >"$work/$target.pid"
    wait "$child" || status=$?
    [ -f "$log" ] || return 1 # the whole run was stopped
    rm -f "$work/$target.pid"
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ $status -eq 0 ] && [ "${runs:-0}" -gt 0 ]; then
        echo "$runs"
        return 0
    fi
    {
        printf '%-9s FOUND something:\n' "$target"
        grep -E -m3 'ERROR|runtime error|does not hold|Assertion' "$log" || tail -n 20 "$log"
        grep -m1 '^Base64: ' "$log" # the input, where only this output is kept
        sed -n "s|.*Test unit written to \(.*\)|replay: bash test/fuzz/run.sh --replay $target \1|p" \
            "$log"
    } >&2
    return 1
}

# Runs one target for so many seconds, each time in the same way, as far as the kernel lets it.
quick() { # target seconds
    local runs
    runs=$(once "$1" -seed=1 -max_total_time="$2") || return 1
    printf '%-9s %9d inputs, nothing found\n' "$1" "$runs"
}

# Runs one target to the end of its long run, in parts, each of which counts when it is over.
long() { # target
    local state part=$(((long_runs + 99) / 100)) from=$SECONDS runs total=0 record
    state=$(state "$1") && record=$keep/$1.$state || return 1
    mkdir -p "$keep" && touch "$record" || return 1
    while read -r runs; do total=$((total + runs)); done <"$record"
    while [ "$total" -lt "$long_runs" ]; do
        runs=$(once "$1" -runs="$part") || return 1
        echo "$runs" >>"$record"
        total=$((total + runs))
    done
    printf '%-9s %9d inputs, nothing found; sources %s, %d s\n' "$1" "$total" "$state" \
        $((SECONDS - from))
}

# Calls a function for each target, some at once. False: one of them found something.
each() { # function argument target...
    local function=$1 argument=$2 running=0 status=0 target
    shift 2
    for target; do
        if [ "$running" -ge "$jobs" ]; then
            wait -n || status=1
            running=$((running - 1))
        fi
        "$function" "$target" "$argument" 2>&1 &
        running=$((running + 1))
    done
    while [ "$running" -gt 0 ]; do
        wait -n || status=1
        running=$((running - 1))
    done
    return $status
}

known() { # target...
    local target
    for target; do [ -n "${max_size[$target]:-}" ] || usage; done
}

replay() { # target file...
    [ $# -gt 1 ] || usage
    known "$1"
    build "$1" && "$build/$1" -timeout=20 "${@:2}"
}

run() { # function argument [target...]
    local function=$1 argument=$2
    shift 2
    [ $# -gt 0 ] || set -- "${targets[@]}"
    known "$@"
    # Where a run is short, building is most of it.
    [ "$function" = long ] || optimize=-O0
    build "$@" && each "$function" "$argument" "$@"
}

case ${1:-} in
'') run quick 5 ;;
--long) run long '' "${@:2}" ;;
--replay) replay "${@:2}" ;;
*[!0-9]*) usage ;;
*) run quick "$1" "${@:2}" ;;
esac
