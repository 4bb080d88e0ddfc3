#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints how many instructions of its own the uDAPL library takes, above the fi_* calls that
# it makes, and how many are below. Callgrind's counts of two lengths of run, subtracted, of
# the calling thread alone. The kernel's are in none of them.
#
#   dat_calls.sh BUILD
#
# BUILD is a build folder (configured with CXXFLAGS='-O2 -g'), in which
# `make test/bench/dat_calls` has been done. Half a minute; needs valgrind, and no root.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: dat_calls.sh BUILD}" && pwd)
program=$build/test/bench/dat_calls
[ -x "$program" ] || { echo "$program was not built" >&2; exit 1; }
command -v valgrind >/dev/null || { echo 'valgrind is not installed' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DAT_OVERRIDE=/nonexistent

# Instructions of such a run, "INSTRUCTIONS WHAT" sorted by WHAT.
counted() { # mode burst count
    rm -f "$work"/callgrind*
    "$build/libtool" --mode=execute valgrind -q --tool=callgrind --separate-threads=yes \
        --compress-strings=no --compress-pos=no --callgrind-out-file="$work/callgrind" \
        "$program" "$@" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    awk -f "$here/dat_calls.awk" "$work/callgrind-01" | sort -k2
}

# Instructions of one of what grows.
difference() { # mode burst
    counted "$1" "$2" 6400 >"$work/short"
    counted "$1" "$2" 19200 >"$work/long"
    join -1 2 -2 2 "$work/short" "$work/long" | awk '{print $1, ($3 - $2) / 12800}'
}

echo '| a message of 64 bytes, both ends | one at a time | 64 at a time |'
echo '| --- | ---: | ---: |'
difference messages 1 >"$work/one"
difference messages 64 >"$work/many"
join -a 1 -a 2 -e 0 -o 0,1.2,2.2 "$work/one" "$work/many" | awk '
    function row(title, one, many) { printf "| %s | %.0f | %.0f |\n", title, one, many }
    $1 == "below" { below_one = $2; below_many = $3; next }
    {
        one += $2
        many += $3
        if ($2 >= 0.5 || $3 >= 0.5) row($1 == "shim" ? "other functions of its own" : $1, $2, $3)
    }
    END {
        row("its own, an operation posted and completed", one / 2, many / 2)
        row("below, an operation posted and completed", below_one / 2, below_many / 2)
    }'
difference empty 1 | awk '$1 == "dat_evd_dequeue" { printf "\nAn empty dequeue: %.0f of its own\n", $2 / 2 }'
