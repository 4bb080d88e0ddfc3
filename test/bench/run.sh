#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Measures this provider, libfabric's tcp provider and a raw socket in alternation,
# and prints Markdown: the environment, and tables of medians. README.md says what is
# measured and how.
#
#   run.sh [--rounds N] [--no-instructions] [--readme] [BUILD]
#
#   --rounds N         how often each is measured (default 7)
#   --no-instructions  leaves out what needs valgrind
#   --readme           puts the result into README.md, in place of what is there
#   BUILD              a build folder; by default one is made, with -O2, and removed
#
# Some minutes on a machine that does nothing else. Needs no root.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
    sed -n 's/^#   \(run.sh.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

rounds=7
instructions=yes
readme=no
build=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=${2:?}; shift ;;
    --no-instructions) instructions=no ;;
    --readme) readme=yes ;;
    -*) usage ;;
    *) build=$1 ;;
    esac
    shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A build of its own: what is measured is then not built for debugging.
make_build() {
    (
        mkdir "$work/source" "$work/build"
        tar -C "$root" --exclude=.git --exclude='build*' -cf - . | tar -C "$work/source" -xf -
        cd "$work/source"
        autoreconf -fi
        cd "$work/build"
        ../source/configure --without-criterion --without-rapidcheck CXXFLAGS='-O2 -g' ||
            { echo 'A source tree that is configured: give it as BUILD.'; exit 1; }
        make -j"$(nproc)" libdat-fi.la test/bench/bench
    ) >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
    build=$work/build
}

[ -n "$build" ] || make_build
bench=$(cd "$build" && pwd)/test/bench/bench
[ -x "$bench" ] || { echo "$bench was not built: make test/bench/bench" >&2; exit 1; }
FI_PROVIDER_PATH=$(cd "$build" && pwd)/.libs
export FI_PROVIDER_PATH

environment() {
    local libfabric
    libfabric=$(fi_info --version 2>/dev/null | sed -n 's/^libfabric: //p')
    echo
    echo "- processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) of" \
        "them for this; virtualization: $(systemd-detect-virt 2>/dev/null || echo unknown)"
    echo "- kernel: $(uname -sr)"
    echo "- libfabric: ${libfabric:-$(pkg-config --modversion libfabric)}"
    echo "- compiler: $(sed -n 's/^CXX = //p; s/^CXXFLAGS = //p' "$build/Makefile" | paste -sd' ')"
    echo "- load before (1 min): $(cut -d' ' -f1 /proc/loadavg)"
    echo "- $(date -u +%F), $rounds rounds"
}

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
    [ "$1" = dat ] || library=libfabric
    counted "$1" "$2" 6400 >"$work/short"
    counted "$1" "$2" 19200 >"$work/long"
    join -1 2 -2 2 "$work/short" "$work/long" | awk -v library="$library" '
        index($1, library) == 1 { own += $3 - $2 }
        index($1, "libc.so") == 1 { libc += $3 - $2 }
        END { printf " %.0f | %.0f |", own / 12800, libc / 12800 }'
}

instruction_table() {
    printf '\nInstructions a message of 64 bytes, of both ends together\n\n'
    echo '| fi_recv, fi_send, both completions | dat | its libc | tcp | its libc |'
    echo '| --- | ---: | ---: | ---: | ---: |'
    echo "| one at a time |$(per_message dat 1)$(per_message tcp 1)"
    echo "| 64 at a time |$(per_message dat 64)$(per_message tcp 64)"
}

measure() {
    environment
    "$bench" --rounds "$rounds"
    if [ $instructions = no ]; then
        return
    fi
    if command -v valgrind >/dev/null; then
        instruction_table
    else
        printf '\nInstructions: not counted, valgrind is not installed.\n'
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
