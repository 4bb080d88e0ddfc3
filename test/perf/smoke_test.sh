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
runs 0 compare --providers dat,dat@FI_DAT_SHM=0 --test loaded,both,incast --sizes 4K "${few[@]}" \
    --senders 3 --html "$work/html"
grep -q 'FAILED\|not measured' "$work/out" && complain 'something of several was not measured'
grep -q '3 processes send to one' "$work/out" || complain 'it does not say how many send'
[ "$(grep -c '<svg ' "$work/html")" -eq 6 ] || complain "not 5 pictures and one of single operations, but $(grep -c '<svg ' "$work/html")"
grep -q '<h3>Single operations</h3>' "$work/html" || complain 'single operations are not on the page'
for many in '--pairs 2' '--threads 3'; do
    # Unquoted on purpose: options and their values.
    # shellcheck disable=SC2086
    runs 0 compare --providers dat --test latency,rate --sizes 64 --no-limits $many "${few[@]}" --csv "$work/csv"
    grep -q 'at the same time\|threads in each process' "$work/out" || complain "it does not say $many"
    # As many operations as there are pairs and threads, of a rate.
    wanted=$(($(tr -dc '0-9 ' <<<"$many" | xargs | tr ' ' '*') * 5))
    [ "$(grep -c "^rate,\"dat\",1,64,$wanted," "$work/csv")" -eq 1 ] ||
        complain "$many: not $wanted operations: $(<"$work/csv")"
done

# What is installed besides is measured beside, and what is not is told.
command -v ucx_perftest >/dev/null && ucx=' / ' || ucx='ucx_perftest is not installed'
{ command -v mpirun.openmpi || command -v mpirun; } >/dev/null && mpi=' / ' || mpi='mpirun is not installed'
# Open MPI leaves memory behind, for which a sanitizer would end its processes with an error.
ASAN_OPTIONS=detect_leaks=0 runs 0 compare --providers dat --with ucx,openmpi --test latency --sizes 64 \
    --no-limits "${few[@]}"
if [ "$ucx" = ' / ' ]; then
    grep -q '^  ucx: ucx_perftest -t tag_lat' "$work/out" || complain "UCX was not measured: $(<"$work/out")"
else
    grep -q "$ucx" "$work/err" || complain 'it does not say that there is no UCX'
fi
if [ "$mpi" = ' / ' ]; then
    grep -q '^  openmpi: Open MPI ' "$work/out" || complain "Open MPI was not measured: $(<"$work/out")"
else
    grep -q "$mpi" "$work/err" || complain 'it does not say that there is no Open MPI'
fi

# Beside a baseline that is made up of this one: everything took far less, or far longer.
again=(compare --providers dat --no-limits --test latency --sizes 64 --operations 5)
runs 0 "${again[@]}" --rounds 4 --json "$work/base"
for factor in 1e-9 1e9; do
    python3 - "$work/base" "$work/made" $factor <<'PYTHON' || complain 'no baseline can be made up'
import json, sys
document = json.load(open(sys.argv[1], encoding="utf-8"))
for measure in document["measures"]:
    factor = float(sys.argv[3]) if measure["better"] == "less" else 1 / float(sys.argv[3])
    for result in measure["points"][0]["results"]:
        result["values"] = [value * factor for value in result["values"]]
json.dump(document, open(sys.argv[2], "w", encoding="utf-8"))
PYTHON
    wanted=$([ $factor = 1e9 ] && echo 0 || echo 1)
    runs "$wanted" "${again[@]}" --rounds 4 --baseline "$work/made"
    grep -q "$wanted of 1 figures are significantly worse" "$work/out" ||
        complain "beside a baseline of $factor: $(tail -n 4 "$work/out")"
done
runs 2 "${again[@]}" --rounds 1 --baseline "$work/made"
one_line 'it takes --rounds'

runs 0 compare --providers dat,tcp --test latency --sizes 64 --wait "${few[@]}"
grep -q 'waited for (fi_cq_sread)' "$work/out" || complain 'it does not say that it waits'
runs 0 compare --providers dat,tcp --test atomic "${few[@]}"
grep -q 'tcp: not measured: offers no atomic operations' "$work/out" ||
    complain 'it does not say what tcp lacks'

[ $bad -eq 0 ] && echo 'dat_perf: all right'
[ $bad -eq 0 ]
