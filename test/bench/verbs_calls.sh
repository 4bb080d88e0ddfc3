#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints how many instructions a send with its completion, a receive and an RDMA write take in
# user space over an RDMA device: of raw verbs, of libfabric's verbs provider and of this one.
# Callgrind's counts of the posting and the taking of completions, device library and all;
# the kernel's are not in them, nor are polls in vain: all completions are there before the
# first is asked for. Two lengths of run are subtracted, so that what the first operations
# cost once does not count. test/vm/suite_speed.sh runs it in the guest.
#
#   verbs_calls.sh BUILD ADDRESS     an address of the device
#
# BUILD: as that of dat_calls.sh, with `make test/bench/raw_calls` as well.
set -eu
build=$(cd "${1:?usage: verbs_calls.sh BUILD ADDRESS}" && pwd)
address=${2:?usage: verbs_calls.sh BUILD ADDRESS}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FI_CALLS_DOMAINS=2
burst=16 short=80 long=240 settle=200000 # us, in which an emulated machine is done with a burst

# "WHAT;WAY;INSTRUCTIONS" of one operation, as the long run has it, less the short one.
counted() { # way mode count program arguments...
    local way=$1 mode=$2 count=$3 said
    shift 3
    said=$("$build/libtool" --mode=execute valgrind -q --tool=callgrind --compress-strings=no \
        --compress-pos=no --callgrind-out-file="$work/callgrind" "$@" "$mode" $burst "$count" \
        $settle 2>"$work/log") || { cat "$work/log" >&2; return 1; }
    [ "$said" = "$count, 0 in vain" ] || echo "$way, $mode: $said" >&2
    awk -v of=$((count == short ? short - long : long - short)) -v mode="$mode" -v way="$way" '
        /^cfn=/ {
            called = /::Ends::/ ? $0 : ""
            sub(/.*::/, "", called)
            sub(/[(.].*/, "", called)
        }
        /^calls=/ {
            getline
            if (called ~ /^(post|take)_(receives|received|sends|sent|writes)$/) cost[called] += $2
        }
        END {
            if (mode == "messages") {
                print "send;" way ";" (cost["post_sends"] + cost["take_sent"]) / of
                print "receive;" way ";" (cost["post_receives"] + cost["take_received"]) / of
            } else {
                print "write;" way ";" (cost["post_writes"] + cost["take_sent"]) / of
            }
        }' "$work/callgrind"
}

for mode in messages writes; do for count in $short $long; do
    counted raw $mode $count "$build/test/bench/raw_calls" "$address"
    FI_PROVIDER=verbs counted verbs $mode $count "$build/test/bench/fi_calls" verbs "$address"
    FI_PROVIDER=dat FI_PROVIDER_PATH=$build/.libs FI_DAT_TRANSPORT=verbs FI_CALLS_PROGRESS=manual \
        counted dat $mode $count "$build/test/bench/fi_calls" dat "$address"
done; done >"$work/counts"
awk -F ';' '
    { cost[$1, $2] += $3 }
    END {
        print "| instructions of 64 bytes, with the completion | raw verbs | libfabric verbs | dat | dat/raw | dat/verbs |"
        print "| --- | ---: | ---: | ---: | ---: | ---: |"
        split("send receive write", what, " ")
        for (i = 1; i <= 3; ++i) {
            raw = cost[what[i], "raw"]; verbs = cost[what[i], "verbs"]; dat = cost[what[i], "dat"]
            printf "| %s | %.0f | %.0f | %.0f | %.2f | %.2f |\n", what[i], raw, verbs, dat, dat / raw, dat / verbs
        }
    }' "$work/counts"
