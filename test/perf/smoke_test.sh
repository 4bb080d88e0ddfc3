#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# dat_perf compare, each of its tests: what is moved is verified by it, and its exit
# status and its files are looked at here.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/command.sh"

runs 0 compare --providers dat,tcp --test latency,bandwidth,rate,rma,connect --sizes 8:64K:8K \
    --no-limits "${few[@]}" --json "$work/json" --csv "$work/csv" --svg "$work/svg"
grep -q 'FAILED\|not measured' "$work/out" && complain 'something was not measured'
[ -s "$work/err" ] && complain 'there is something on standard error, which is no terminal'
# Seven figures: six at two sizes, one at one; two providers.
[ "$(grep -cE '"(dat|tcp)"' "$work/csv")" -eq $((6 * 2 * 2 + 2)) ] || complain 'lines of CSV are missing'
[ "$(find "$work/svg" -name '*.svg' | wc -l)" -eq 7 ] || complain 'pictures are missing'
grep -q '"measures"' "$work/json" || complain 'the JSON has no measures'

runs 0 compare --providers 'dat,dat;ofi_rxm,dat@FI_DAT_CRC=1' --test latency,atomic --sizes 64 \
    --no-limits "${few[@]}"
grep -q 'dat;ofi_rxm: dat;ofi_rxm, FI_EP_RDM' "$work/out" || complain 'no word of the RDM endpoint'
runs 0 compare --providers dat,dat@FI_DAT_SHM=0,tcp --test latency,turns --sizes 64 --connections 20 \
    --no-limits "${few[@]}" --csv "$work/csv"
grep -q 'the two have 20 connections' "$work/out" || complain 'it does not say how many connections'
[ "$(grep -cE '"(dat|dat@FI_DAT_SHM=0|tcp)"' "$work/csv")" -eq 6 ] ||
    complain 'something was not measured over 20 connections'
runs 0 compare --providers 'dat,dat;ofi_rxm' --test turns --sizes 64 --connections 2 --no-limits "${few[@]}"
grep -q 'dat;ofi_rxm: not measured: FI_EP_RDM endpoints have no connections' "$work/out" ||
    complain 'it does not say what FI_EP_RDM lacks'
runs 0 compare --providers dat,tcp --test latency --sizes 64 --wait "${few[@]}"
grep -q 'waited for (fi_cq_sread)' "$work/out" || complain 'it does not say that it waits'
runs 0 compare --providers dat,tcp --test atomic "${few[@]}"
grep -q 'tcp: not measured: offers no atomic operations' "$work/out" ||
    complain 'it does not say what tcp lacks'

[ $bad -eq 0 ] && echo 'dat_perf: all right'
[ $bad -eq 0 ]
