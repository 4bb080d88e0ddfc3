#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# dat_perf floor, and what dat_perf says of missing providers and of bad arguments.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/command.sh"

runs 0 floor --sizes 64,16K "${few[@]}"
for word in 'memory latency' 'socket latency' 'memory memcpy' 'socket connect'; do
    grep -q "$word" "$work/out" || complain "floor does not tell of: $word"
done

runs 1 compare --providers dat,no_such "${few[@]}"
one_line "provider 'no_such' is not here; libfabric has: dat"
runs 0 compare --providers no_such,dat --skip-missing --test latency --sizes 8 "${few[@]}"
one_line "provider 'no_such' is not here"

runs 2
one_line 'subcommand'
for wrong in '--sizes 0' '--sizes 8:4' '--test none' '--providers dat,dat' '--rounds 0' '--rounds x' \
    '--seconds -1' '--connections 0' '--nothing' 'word'; do
    # Unquoted on purpose: an option and its value.
    # shellcheck disable=SC2086
    runs 2 compare $wrong
    one_line 'dat_perf: '
done
runs 1 compare --json "$work/no/such/folder" "${few[@]}"
one_line 'cannot be written'

[ $bad -eq 0 ] && echo 'dat_perf: all right'
[ $bad -eq 0 ]
