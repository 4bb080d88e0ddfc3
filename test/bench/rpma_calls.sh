#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints what a message and an RDMA write of 64 bytes, posted and completed, take by librpma: the
# instructions of the thread that calls, counted as verbs_calls.sh does, beside fi_* calls for the
# same; over an RDMA device beside the genuine library as well, and with that the time, in
# alternation: the least and the median of the rounds.
#
# Over a device it is two lengths of run, subtracted. Over memory and TCP the domain's thread may do
# some of the work of the one that calls, which is not in the count then: so both lengths are run
# five times, and the most that an operation took is what counts, of runs in which no completion was
# asked for in vain. Exit status 1 if a write takes more than 60 instructions above that of fi_*.
#
#   rpma_calls.sh BUILD ADDRESS [GENUINE [ROUNDS]]
#
# BUILD: as that of dat_calls.sh, with `make librpma.la test/bench/rpma_calls` as well. GENUINE:
# the folder of the genuine librpma.so.0, where ADDRESS is of an RDMA device.
set -eu
usage='usage: rpma_calls.sh BUILD ADDRESS [GENUINE [ROUNDS]]'
build=$(cd "${1:?$usage}" && pwd)
address=${2:?$usage}
genuine=${3:-}
rounds=${4:-24}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FI_PROVIDER=dat FI_PROVIDER_PATH=$build/.libs FI_CALLS_DOMAINS=2 FI_CALLS_THREADING=safe
export FI_CALLS_LEVEL=transmit
[ -z "$genuine" ] || export FI_DAT_TRANSPORT=verbs
burst=16 short=80 long=240 settle=200000 # us, in which the peer is done with a burst
timed=9600 # of a tenth of them, emulation has spent much on translating what they run
rpma=$build/test/bench/.libs/rpma_calls

# "WHAT;WAY;COUNT;INSTRUCTIONS" of a run.
counted() { # way mode count program arguments...
    local way=$1 mode=$2 count=$3
    shift 3
    "$build/libtool" --mode=execute valgrind -q --tool=callgrind --separate-threads=yes \
        --compress-strings=no --compress-pos=no --callgrind-out-file="$work/callgrind" \
        "$@" "$mode" $burst "$count" $settle >"$work/said" 2>"$work/log" ||
        { cat "$work/log" >&2; return 1; }
    if ! grep -q "^$count, 0 in vain" "$work/said"; then
        echo "$way, $mode: $(head -n 1 "$work/said")" >&2
        [ $repeats -eq 1 ] || return 0
    fi
    awk -v what="$mode;$way;$count" '
        /^cfn=/ {
            called = /::Ends::/ ? $0 : ""
            sub(/.*::/, "", called)
            sub(/[(.].*/, "", called)
        }
        /^calls=/ {
            getline
            if (called ~ /^(post|take)_(receives|received|sends|sent|writes)$/) cost += $2
        }
        END { print what ";" cost }' "$work/callgrind-01"
}

repeats=1
[ -n "$genuine" ] || repeats=5
for ((repeat = 0; repeat < repeats; ++repeat)); do
    for mode in messages writes; do for count in $short $long; do
        counted "fi" $mode "$count" "$build/test/bench/fi_calls" dat "$address"
        LD_LIBRARY_PATH=$build/.libs counted rpma $mode "$count" "$rpma" "$address"
        [ -z "$genuine" ] || LD_LIBRARY_PATH=$genuine counted genuine $mode "$count" "$rpma" "$address"
    done; done
done >"$work/counts"
status=0
awk -F ';' -v short=$short -v long=$long -v soft="${genuine:-yes}" '
    $4 > most[$1, $2, $3] { most[$1, $2, $3] = $4 }
    function of_one(what, way,    more, less) {
        more = most[what, way, long]; less = most[what, way, short]
        if (soft != "yes") return (more - less) / (long - short)
        return more / long > less / short ? more / long : less / short
    }
    END {
        print "| instructions | fi_* | rpma_* | above | genuine rpma_* |"
        print "| --- | ---: | ---: | ---: | ---: |"
        split("messages writes", what, " ")
        for (i = 1; i <= 2; ++i) {
            fi = of_one(what[i], "fi"); rpma = of_one(what[i], "rpma")
            genuine = soft == "yes" ? "" : sprintf("%.0f", of_one(what[i], "genuine"))
            printf "| %s | %.0f | %.0f | %.0f | %s |\n", what[i], fi, rpma, rpma - fi, genuine
        }
        exit soft == "yes" && rpma - fi > 60
    }' "$work/counts" || status=$?
[ -n "$genuine" ] || exit $status

timed() { # way folder
    LD_LIBRARY_PATH=$2 "$rpma" "$address" "$mode" $at_once $timed | sed -n "s/^\(.*\) us$/$mode, $at_once at a time;$1;\1/p"
}
for ((round = 0; round < rounds; ++round)); do
    for mode in messages writes; do for at_once in 1 64; do
        timed dat "$build/.libs"
        timed genuine "$genuine"
    done; done
done | sort -t ';' -k1,1 -k2,2 -k3,3n >"$work/times"
awk -F ';' '
    function flush() {
        if (n) { least[what, way] = value[1]; median[what, way] = value[int((n + 1) / 2)]; n = 0 }
    }
    { if ($1 != what || $2 != way) { flush(); what = $1; way = $2; names[what] = 1 } value[++n] = $3 }
    function row(what, of, name) {
        printf "| %s, %s | %.1f | %.1f | %.2f |\n", what, name, of[what, "dat"], of[what, "genuine"],
               of[what, "dat"] / of[what, "genuine"]
    }
    END {
        flush()
        print "\n| us an operation | rpma_* | genuine rpma_* | rpma_*/genuine |\n| --- | ---: | ---: | ---: |"
        for (each in names) {
            row(each, least, "least")
            row(each, median, "median")
        }
    }' "$work/times"
