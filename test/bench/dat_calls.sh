#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints how many instructions dat_* calls take above the fi_* calls that a program of
# libfabric would make for the same: both send the same messages and RDMA writes, one calling
# dat_*, the other fi_*; all instructions below the programs are counted, and subtracted.
# Callgrind's counts of two lengths of run each, of the calling thread alone. The kernel's are in
# none of them.
#
#   dat_calls.sh BUILD
#
# BUILD is a build folder (configured with CXXFLAGS='-O2 -g'), in which
# `make libdat-fi.la test/bench/dat_calls test/bench/fi_calls` has been done. Some minutes; needs
# valgrind, and no root.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: dat_calls.sh BUILD}" && pwd)
for program in dat_calls fi_calls; do
    [ -x "$build/test/bench/$program" ] || { echo "$program was not built" >&2; exit 1; }
done
command -v valgrind >/dev/null || { echo 'valgrind is not installed' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DAT_OVERRIDE=/dev/null FI_PROVIDER_PATH=$build/.libs FI_PROVIDER=dat
export FI_CALLS_THREADING=safe FI_CALLS_LEVEL=transmit # as IAs are

# Instructions of such a run, "INSTRUCTIONS WHAT" sorted by WHAT.
counted() { # program and its arguments...
    rm -f "$work"/callgrind*
    "$build/libtool" --mode=execute valgrind -q --tool=callgrind --separate-threads=yes \
        --compress-strings=no --compress-pos=no --callgrind-out-file="$work/callgrind" \
        "$build/test/bench/$1" "${@:2}" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    awk -f "$here/dat_calls.awk" "$work/callgrind-01" | sort -k2
}

# Instructions of one of what grows.
difference() { # program and its arguments but the last, which is a count
    counted "$@" 6400 >"$work/short"
    counted "$@" 19200 >"$work/long"
    join -1 2 -2 2 "$work/short" "$work/long" | awk '{print $1, ($3 - $2) / 12800}'
}

# "ALL SHIM" of what the words before the count name.
of_each() { # program and its arguments but the last
    difference "$@" | awk '{ of[$1] = $2 } END { print of["shim"] + of["below"], of["shim"] }'
}

printf '%s\n' '| instructions, an operation posted and completed | one at a time | 64 at a time |' \
    '| --- | ---: | ---: |'
# A message is two operations, with its receive.
table() { # messages|writes operations
    local burst
    for burst in 1 64; do
        echo "$(of_each dat_calls "$1" $burst) $(of_each fi_calls dat 127.0.0.1 "$1" $burst)"
    done | awk -v what="$1" -v operations="$2" '
        function row(title, of) {
            printf "| %s: %s | %.0f | %.0f |\n", what, title, of[1] / operations, of[2] / operations
        }
        { dat[NR] = $1; shim[NR] = $2; fi[NR] = $3; above[NR] = $1 - $3 }
        END {
            row("dat_*, all", dat)
            row("of these by lines of prov/dat-shim", shim)
            row("fi_*, all", fi)
            row("dat_* above fi_*", above)
        }'
}
table messages 2
table writes 1
of_each dat_calls empty 1 | awk '{ printf "\nAn empty dequeue: %.0f in all, %.0f by lines of prov/dat-shim\n", $1 / 2, $2 / 2 }'
