#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints half round trips and bandwidths of messages over an RDMA device, in turn of perftest
# (raw verbs), of libfabric's verbs provider and of this one, the last two by dat_perf; of each
# the median of the rounds. test/vm/suite_speed.sh runs it in the guest. Over siw the bandwidth
# is that of RDMA writes: nothing holds a message back there that finds no receive, and it ends
# the connection.
#
#   verbs_times.sh BUILD ADDRESS polling|waiting [ROUNDS]     ADDRESS: of the device
#
# BUILD: with `make dat_perf` done; perftest is installed. Of perftest's bandwidth each send
# is completed by itself, as dat_perf's are, in place of each hundredth.
set -eu
usage='usage: verbs_times.sh BUILD ADDRESS polling|waiting [ROUNDS]'
build=$(cd "${1:?$usage}" && pwd)
address=${2:?$usage}
how=${3:?$usage}
rounds=${4:-7}
sizes=(64 4096 65536) latency=(400 200 60) bandwidth=(2000 600 120) # operations of each size
dat=dat@FI_DAT_TRANSPORT=verbs
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
events=() waits=()
if [ "$how" = waiting ]; then
    events=(-e) waits=(--wait)
fi
inline=() stream=bandwidth stream_of_perftest=ib_send_bw
if rdma link show 2>/dev/null | grep -q '^link siw.*ACTIVE' && [ "$address" = "${siw:-}" ]; then
    inline=(-I 0) stream=rma-write stream_of_perftest=ib_write_bw
fi

# siw's id is shown as one that listens before its socket does.
listens() {
    if [ "$address" = "${siw:-}" ]; then
        grep -q ':4853 [0-9A-F:]* 0A ' /proc/net/tcp # 18515
    else
        rdma resource show cm_id | grep -q 'state LISTEN .*:18515 '
    fi
}

# Each process of a pair has a processor of its own, as with dat_perf.
perftest() { # program arguments...
    timeout -k 5 60 taskset -c 0 "$@" >"$work/server" 2>&1 &
    server=$!
    until listens; do
        kill -0 $server || { cat "$work/server" >&2; return 1; }
        sleep 0.05
    done
    timeout -k 5 60 taskset -c 1 "$@" "$address" >"$work/client" 2>&1 || { cat "$work/client" >&2; return 1; }
    wait $server || true
    server=
}

# "WHAT;SIZE;WAY;VALUE", of each round.
measure() { # what size operations column-of-perftest column-of-dat_perf
    local what=$1 size=$2 program=ib_send_lat more=()
    [ "$what" = latency ] || program=$stream_of_perftest more=(-Q 1)
    perftest $program -R -F -s "$size" -n "$3" "${events[@]}" "${more[@]}" "${inline[@]}"
    awk -v size="$size" -v at="$4" -v what="$what" \
        '$1 == size { print what ";" size ";perftest;" $at * (what == "latency" ? 1 : 1.048576) }' "$work/client"
    FI_PROVIDER_PATH=$build/.libs "$build/dat_perf" compare "--providers=verbs,$dat" \
        "--address=$address" "--test=${what%-write}" "--sizes=$size" "--operations=$3" --rounds=1 \
        --no-limits "--csv=$work/csv" "${waits[@]}" >"$work/log" || { cat "$work/log" >&2; return 1; }
    awk -F , -v at="$5" -v what="$what" '$1 == what {
        print what ";" $4 ";" ($2 ~ /dat@/ ? "dat" : "verbs") ";" $at }' "$work/csv"
}

for ((round = 0; round < rounds; ++round)); do
    for i in "${!sizes[@]}"; do
        measure latency "${sizes[i]}" "${latency[i]}" 5 11
        measure $stream "${sizes[i]}" "${bandwidth[i]}" 4 8
    done
done >"$work/all"
sort -t ';' -k 1,1r -k 2,2n -k 3,3 -k 4,4n "$work/all" | awk -F ';' -v how="$how" '
    function done(key) {
        middle[key] = n % 2 ? value[(n + 1) / 2] : (value[n / 2] + value[n / 2 + 1]) / 2
        n = 0
    }
    BEGIN {
        print "| " how " | perftest | libfabric verbs | dat | dat/perftest | dat/verbs |"
        print "| --- | ---: | ---: | ---: | ---: | ---: |"
    }
    $1 ";" $2 ";" $3 != last && NR > 1 { done(last) }
    !(($1, $2) in seen) { seen[$1, $2]; row[++rows] = $1 ";" $2 }
    { last = $1 ";" $2 ";" $3; value[++n] = $4 }
    END {
        done(last)
        for (i = 1; i <= rows; ++i) {
            split(row[i], of, ";")
            raw = middle[row[i] ";perftest"]; verbs = middle[row[i] ";verbs"]; dat = middle[row[i] ";dat"]
            name = of[1] == "latency" ? "half round trip, us" : of[1] == "bandwidth" ? "bandwidth, MB/s" : "writes, MB/s"
            printf "| %s, %d B | %.3g | %.3g | %.3g | %.2f | %.2f |\n", name, of[2], raw, verbs, dat, dat / raw, dat / verbs
        }
    }'
