#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints the instructions of core::Matching for a message and its receive, alone and among
# others: callgrind's, of two lengths of run of matching_calls, subtracted.
#
#   matching_calls.sh [BUILD]
set -eu

build=${1:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

count() { # ARGUMENTS COUNT
    valgrind -q --tool=callgrind --callgrind-out-file="$work/out" \
        "$build/test/bench/matching_calls" "$@" >/dev/null 2>&1
    sed -n 's/^totals: //p' "$work/out"
}
each() { # ARGUMENTS: instructions of one
    echo $((($(count "$@" 3000) - $(count "$@" 1000) + 1000) / 2000 - loop))
}
loop=0
loop=$(each nothing exact 0 0)

printf '%s\n' '| instructions, a message and its receive | alone | 10,000 others posted | 100,000 others held |' \
    '| --- | --- | --- | --- |'
for order in expected unexpected; do
    for what in exact source tag bits; do
        echo "| $order, $what | $(each $order $what 0 0) | $(each $order $what 10000 0) |" \
            "$(each $order $what 0 100000) |"
    done
done
