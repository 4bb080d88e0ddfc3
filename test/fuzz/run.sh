#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The fuzz targets, under ASan and UBSan: builds each in a temporary folder and runs
# it from its seeds in test/fuzz/corpus. Needs clang with libFuzzer; no configure.
#
#   bash test/fuzz/run.sh                 about 20 s of fuzzing in all
#   bash test/fuzz/run.sh SECONDS         so long for each target
#   bash test/fuzz/run.sh --long          10 million inputs over all targets
#   bash test/fuzz/run.sh --replay TARGET FILE...
#
# A line for each target says how many inputs it ran and what came of it. A finding
# ends with status 1; its input is kept, and the command that replays it printed.
# DAT_FUZZ_KEEP=DIR keeps the corpora that grew, and begins from those kept before.
set -u

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd) || exit 1
fuzz=$root/test/fuzz
targets=(mpa codec handshake receive rings)
declare -A long_runs=([mpa]=4400000 [codec]=4400000 [handshake]=200000 [receive]=700000 [rings]=300000)
declare -A max_size=([mpa]=600 [codec]=200 [handshake]=700 [receive]=600 [rings]=600)
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=8}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

usage() {
    sed -n 's/^#   bash/usage: bash/p' "$fuzz/run.sh" >&2
    exit 2
}

clang=
for name in clang++-14 clang++; do
    if command -v "$name" >/dev/null; then
        clang=$name
        break
    fi
done
[ -n "$clang" ] || { echo 'no clang++; Debian: clang-14 libclang-rt-14-dev' >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/dat-fuzz.XXXXXX") || exit 1
child=
clean_up() {
    [ -z "$child" ] || kill "$child" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Prints the sources that a target is made of.
sources() {
    local iwarp=$root/prov/dat/soft/iwarp name
    echo "$fuzz/fuzz_$1.cpp"
    case $1 in
    handshake | receive | rings)
        [ "$1" != receive ] || echo "$fuzz/hostile_peer.cpp"
        find "$root/prov/dat/"{base,core,soft} -name '*.cpp' | sort
        ;;
    *)
        for name in crc32c ddp mpa rdmap terminate; do echo "$iwarp/$name.cpp"; done
        ;;
    esac
}

# What libFuzzer is to find its way through carries coverage; the peer's own code not.
compile() { # source
    local kind=fuzzer-no-link,address,undefined
    [ "${1##*/}" != hostile_peer.cpp ] || kind=address,undefined
    "$clang" -std=c++20 -g -O2 -fno-omit-frame-pointer -fsanitize=$kind \
        -fno-sanitize-recover=all -Wall -Wextra -Wconversion -Wshadow \
        -Wmissing-field-initializers -Werror -I"$root/prov/dat" -c "$1" -o "$(object "$1")"
}

object() { echo "$work/o/$(echo "${1#"$root"/}" | tr / _).o"; }
export -f compile object
export clang root work

# Compiles what several targets share once.
build() { # target...
    local target source objects
    mkdir -p "$work/o"
    for target; do sources "$target"; done | sort -u |
        xargs -P"$(nproc)" -I{} bash -c 'compile {}' || return 1
    for target; do
        objects=()
        while read -r source; do objects+=("$(object "$source")"); done < <(sources "$target")
        "$clang" -fsanitize=fuzzer,address,undefined "${objects[@]}" -o "$work/$target" ||
            return 1
    done
}

# Runs one target and says how it went. A finding is kept beside the temporary folder.
fuzz() { # target libfuzzer-option
    local target=$1 log=$work/$1.log kept=${TMPDIR:-/tmp}/dat-fuzz-$1 status=0 runs
    local corpus=${DAT_FUZZ_KEEP:-$work/corpus}/$target
    mkdir -p "$corpus" || return 1
    "$work/$target" "$2" -max_len="${max_size[$target]}" -timeout=20 -rss_limit_mb=2048 \
        -artifact_prefix="$kept-" -print_final_stats=1 "$corpus" "$fuzz/corpus/$target" \
        >"$log" 2>&1 </dev/null &
    child=$!
    wait "$child" || status=$?
    child=
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ $status -eq 0 ] && [ "${runs:-0}" -gt 0 ]; then
        printf '%-8s %9d inputs, nothing found\n' "$target" "$runs"
        return 0
    fi
    printf '%-8s FOUND something:\n' "$target"
    grep -E -m3 'ERROR|runtime error|does not hold|Assertion' "$log" || tail -n 20 "$log"
    grep -m1 '^Base64: ' "$log" # the input, where only this output is kept
    sed -n "s|.*Test unit written to \(.*\)|replay: bash test/fuzz/run.sh --replay $target \1|p" \
        "$log"
    return 1
}

quick() { # seconds for each target
    local target status=0
    build "${targets[@]}" || return 1
    for target in "${targets[@]}"; do fuzz "$target" -max_total_time="$1" || status=1; done
    return $status
}

long() {
    local target status=0
    build "${targets[@]}" || return 1
    for target in "${targets[@]}"; do
        fuzz "$target" -runs="${long_runs[$target]}" || status=1
    done
    return $status
}

replay() { # target file...
    [ $# -gt 1 ] && [ -n "${long_runs[$1]:-}" ] || usage
    build "$1" && "$work/$1" -timeout=20 "${@:2}"
}

case ${1:-} in
'') quick 7 ;;
--long) long ;;
--replay) replay "${@:2}" ;;
*[!0-9]*) usage ;;
*) quick "$1" ;;
esac
