#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# dat_perf, with a few operations of each test: what is moved is verified by it, and its
# exit status and its files are looked at here. How long anything takes is of no matter.
set -u
build=$(cd "${DAT_BUILDDIR:-.}" && pwd)
export FI_PROVIDER_PATH=$build/.libs
perf=$build/dat_perf
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

complain() {
    echo "FAILED: $*"
    bad=$((bad + 1))
}

# Runs dat_perf with the arguments behind the status that it should end with.
runs() { # status arguments...
    local wanted=$1 status=0
    shift
    "$perf" "$@" >"$work/out" 2>"$work/err" || status=$?
    [ $status -eq "$wanted" ] && return
    complain "dat_perf $* ended with $status, not $wanted"
    cat "$work/out" "$work/err"
}

# Standard error is one line, with these words.
one_line() { # words
    if [ "$(wc -l <"$work/err")" -ne 1 ] || ! grep -qF -- "$1" "$work/err"; then
        complain "not one line with '$1':"
        cat "$work/err"
    fi
}

few=(--rounds 1 --operations 5)

runs 0 compare --providers dat,tcp --test latency,bandwidth,rate,rma,connect --sizes 8:64K:8K \
    "${few[@]}" --json "$work/json" --csv "$work/csv" --svg "$work/svg"
grep -q 'FAILED\|not measured' "$work/out" && complain 'something was not measured'
[ -s "$work/err" ] && complain 'there is something on standard error, which is no terminal'
# Seven figures: six at two sizes, one at one; two providers.
[ "$(grep -cE '"(dat|tcp)"' "$work/csv")" -eq $((6 * 2 * 2 + 2)) ] || complain 'lines of CSV are missing'
[ "$(find "$work/svg" -name '*.svg' | wc -l)" -eq 7 ] || complain 'pictures are missing'
grep -q '"measures"' "$work/json" || complain 'the JSON has no measures'

runs 0 compare --providers 'dat,dat;ofi_rxm,dat@FI_DAT_CRC=1' --test latency,atomic --sizes 64 \
    --no-limits "${few[@]}"
grep -q 'dat;ofi_rxm: dat;ofi_rxm, FI_EP_RDM' "$work/out" || complain 'no word of the RDM endpoint'
runs 0 compare --providers dat,tcp --test latency --sizes 64 --wait "${few[@]}"
grep -q 'waited for (fi_cq_sread)' "$work/out" || complain 'it does not say that it waits'
runs 0 compare --providers dat,tcp --test atomic "${few[@]}"
grep -q 'tcp: not measured: offers no atomic operations' "$work/out" ||
    complain 'it does not say what tcp lacks'

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
    '--seconds -1' '--nothing' 'word'; do
    # Unquoted on purpose: an option and its value.
    runs 2 compare $wrong
    one_line 'dat_perf: '
done
runs 1 compare --json "$work/no/such/folder" "${few[@]}"
one_line 'cannot be written'

[ $bad -eq 0 ] && echo 'dat_perf: all right'
[ $bad -eq 0 ]
