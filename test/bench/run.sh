#!/usr/bin/env bash
# shellcheck disable=SC2016 # what stands in single quotes is for awk, or is Markdown
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Measures this provider beside libfabric's own, UCX and what the machine allows, in
# alternation, and prints Markdown: the environment, what is to be reached and what was
# measured, and tables. README.md says what is measured and how.
#
#   run.sh [--rounds N] [--targets] [--no-instructions] [--readme] [BUILD]
#
#   --rounds N         how often each is measured (default 7)
#   --targets          only what is to be reached
#   --no-instructions  leaves out what needs valgrind
#   --readme           puts the result into README.md, in place of what is there
#   BUILD              a build folder; by default one is made, with -O2, and removed
#
# Some minutes on a machine that does nothing else. Needs no root. UCX is measured if
# Debian's ucx-utils is installed.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
    sed -n 's/^#   \(run.sh.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

rounds=7
instructions=yes
tables=yes
readme=no
build=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=${2:?}; shift ;;
    --targets) tables=no ;;
    --no-instructions) instructions=no ;;
    --readme) readme=yes ;;
    -*) usage ;;
    *) build=$1 ;;
    esac
    shift
done
command -v valgrind >/dev/null || instructions=no

. "$root/util/common.sh"
work=$(mktemp -d)
server=
clean_up() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

# A build of its own: what is measured is then not built for debugging.
make_build() {
    (
        copy_source "$root" "$work/source"
        mkdir "$work/build"
        cd "$work/source"
        autoreconf -fi
        cd "$work/build"
        ../source/configure --without-criterion --without-rapidcheck --enable-commands \
            CXXFLAGS='-O2 -g'
        make -j"$(nproc)" libdat-fi.la dat_perf test/bench/bench
    ) >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
    build=$work/build
}

[ -n "$build" ] || make_build
build=$(cd "$build" && pwd)
bench=$build/test/bench/bench
perf=$build/dat_perf
for program in "$bench" "$perf"; do
    [ -x "$program" ] || { echo "$program was not built" >&2; exit 1; }
done
export FI_PROVIDER_PATH=$build/.libs

# What is compared: this provider as it comes, the same over TCP alone, and libfabric's
# own for TCP and for one host.
ways='dat,dat@FI_DAT_SHM=0,tcp,shm'
ways_that_connect='dat,dat@FI_DAT_SHM=0,tcp'

ucx_version() {
    if command -v ucx_perftest >/dev/null; then
        ucx_info -v 2>/dev/null | grep -om 1 '[0-9]\+\.[0-9]\+\.[0-9]\+' || echo 'of an unknown version'
    else
        echo 'not installed (Debian: ucx-utils), so not measured'
    fi
}

environment() {
    echo
    echo "- compiler: $(sed -n 's/^CXX = //p; s/^CXXFLAGS = //p' "$build/Makefile" | paste -sd' ')"
    echo "- virtualization: $(systemd-detect-virt 2>/dev/null || echo unknown)"
    echo "- UCX: $(ucx_version)"
    echo "- $rounds rounds"
}

# --- one round of what is to be reached -------------------------------------

# Each figure is a line of $work/figures: what, over what, the figure, and the
# processors that were busy.
measure_with() { # name-before figure-for-awk providers dat_perf-arguments...
    local before=$1 figure=$2 providers=$3
    shift 3
    "$perf" compare --providers "$providers" --rounds 1 --csv "$work/csv" "$@" >"$work/table" ||
        grep FAILED "$work/table" >&2
    # dat_perf quotes the name of the way, and no other column.
    awk -F, -v OFS='\t' -v before="$before" \
        "NR > 1 {gsub(/\"/, \"\", \$2); print before \$1 \" \" \$4, \$2, $figure, \$NF}" \
        "$work/csv" >>"$work/figures"
}

# Is something listening on TCP port $1?
listening() {
    awk -v port="$(printf ':%04X$' "$1")" '$2 ~ port && $4 == "0A" {found = 1} END {exit !found}' \
        /proc/net/tcp /proc/net/tcp6
}

# Runs ucx_perftest in two processes and prints the fields of its last line: iterations,
# median and mean latency, total, MiB/s twice, messages/s twice.
ucx_run() { # transports test bytes iterations
    local port=$((20000 + RANDOM % 10000)) waited=0
    local options=(-t "$2" -s "$3" -n "$4" -w $(($4 / 10)) -f -v -p "$port")
    while listening "$port"; do port=$((port + 1)); options[-1]=$port; done
    UCX_TLS=$1 timeout -k 5 60 ucx_perftest "${options[@]}" -c 0 >"$work/ucx_server" 2>&1 &
    server=$!
    while ! listening "$port" && [ $waited -lt 200 ]; do
        sleep 0.02
        waited=$((waited + 1))
    done
    UCX_TLS=$1 timeout -k 5 60 ucx_perftest "${options[@]}" -c 1 127.0.0.1 2>"$work/ucx_client" |
        tail -n 1 | tr , ' '
    wait "$server" || true
    server=
}

ucx_figure() { # what over field-and-factor-for-awk transports test bytes iterations
    ucx_run "${@:4}" | awk -v OFS='\t' -v what="$1" -v over="$2" \
        "NF == 8 {print what, over, $3, 0}" >>"$work/figures"
}

ucx_round() {
    local test
    # Of the two ways to send, the faster one counts.
    for test in tag ucp_am; do
        ucx_figure 'latency 64' "ucx $test" '$2' posix ${test}_lat 64 200000
        ucx_figure 'latency 4096' "ucx $test" '$2' posix,cma ${test}_lat 4096 50000
        ucx_figure 'latency 65536' "ucx $test" '$2' posix,cma ${test}_lat 65536 10000
        ucx_figure 'rate 64' "ucx $test" '$8 / 1e6' posix ${test}_bw 64 2000000
        ucx_figure 'bandwidth 1048576' "ucx $test" '$6 * 1.048576' posix,cma ${test}_bw 1048576 1000
        ucx_figure 'bandwidth 1048576' "ucx-tcp $test" '$6 * 1.048576' tcp ${test}_bw 1048576 500
    done
}

measure_rounds() {
    local round
    : >"$work/figures"
    for ((round = 0; round < rounds; ++round)); do
        measure_with '' '$11' "$ways" --test latency --sizes 64,4K,64K
        measure_with '' '$8' "$ways" --test bandwidth --sizes 1M
        measure_with '' '$10' "$ways" --test rate --sizes 64
        measure_with '' '$10 * 1e6' "$ways_that_connect" --test connect
        measure_with 'waiting ' '$11' "$ways_that_connect" --wait --test latency --sizes 64
        if command -v ucx_perftest >/dev/null; then
            ucx_round
        fi
    done
}

# --- instructions -----------------------------------------------------------

# Instructions of `operations` messages in each object, sorted by object.
counted() { # way burst operations
    valgrind -q --tool=callgrind --compress-strings=no --compress-pos=no \
        --callgrind-out-file="$work/callgrind" "$bench" --in-one "$1" 64 "$2" "$3" >/dev/null 2>&1
    awk -f "$here/objects.awk" "$work/callgrind" | sort -k2
}

# Instructions a message: of the provider's library, and of the C library that it
# calls. Two lengths of run differ by the messages alone.
per_message() { # way burst
    local library=libdat-fi
    [ "${1%%@*}" = dat ] || library=libfabric
    counted "$1" "$2" 6400 >"$work/short"
    counted "$1" "$2" 19200 >"$work/long"
    join -1 2 -2 2 "$work/short" "$work/long" | awk -v library="$library" '
        index($1, library) == 1 { own += $3 - $2 }
        index($1, "libc.so") == 1 { libc += $3 - $2 }
        END { printf "%.0f %.0f\n", own / 12800, libc / 12800 }'
}

count_instructions() {
    local burst way own libc
    printf '\nInstructions a message of 64 bytes, of both ends together\n\n'
    echo '| fi_recv, fi_send, both completions | over | provider | its libc |'
    echo '| --- | --- | ---: | ---: |'
    for burst in 1 64; do
        for way in dat dat@FI_DAT_SHM=0 tcp shm; do
            read -r own libc < <(per_message "$way" $burst)
            echo "| $burst at a time | $way | $own | $libc |"
            [ $burst -eq 64 ] ||
                printf 'instructions 64\t%s\t%s\t0\n' "$way" $((own + libc)) >>"$work/figures"
        done
    done
}

# --- the result -------------------------------------------------------------

# The table of what is to be reached, from $work/figures.
targets() {
    printf '\nWhat is to be reached\n\n'
    awk -F'\t' -f "$here/targets.awk" "$work/figures"
}

measure() {
    measure_rounds
    if [ $instructions = yes ]; then
        count_instructions >"$work/instructions"
    else
        printf '\nInstructions: not counted (valgrind).\n' >"$work/instructions"
    fi
    environment
    targets
    cat "$work/instructions"
    if [ $tables = yes ]; then
        "$bench" --memory $((rounds < 3 ? rounds : 3))
        printf '\n```\n'
        "$perf" compare --providers "$ways" --test latency,bandwidth,rate,rma,atomic,connect \
            --sizes 8,64,512,4K,32K,256K,1M,4M --rounds "$rounds"
        printf '```\n\n```\n'
        "$perf" floor --sizes 8,64,512,4K,32K,256K,1M,4M --rounds "$rounds"
        printf '```\n'
    fi
}

measure | tee "$work/result"
[ "${PIPESTATUS[0]}" -eq 0 ] || exit 1

# What stands between the two marks is replaced.
if [ $readme = yes ]; then
    awk -v result="$work/result" '
        /^<!-- end of the result -->/ {
            while ((getline line < result) > 0) print line
            print ""
            skip = 0
        }
        !skip
        /^<!-- result of run.sh/ { skip = 1 }' "$here/README.md" >"$work/readme"
    cat "$work/readme" >"$here/README.md"
fi
