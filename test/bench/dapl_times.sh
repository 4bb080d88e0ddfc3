#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Prints what the programs of Debian's dapl2-utils say of their speed over an RDMA device, in
# turn on the genuine libdat2 (libdaplofa), on that of an earlier build if one is named, and on
# this one; of each the median of the rounds. test/vm/suite_speed.sh runs it in the guest.
#
# One run of dtest may take seven times as long as the next, by the processors that the scheduler
# gives the two processes: fewer than some seven rounds say nothing.
#
#   dapl_times.sh BUILD RDMA-DEVICE NETWORK-DEVICE ADDRESS [ROUNDS [EARLIER-BUILD]]
#
# WHAT=dtestcm: only the rows that begin so
set -eu
usage='usage: dapl_times.sh BUILD RDMA-DEVICE NETWORK-DEVICE ADDRESS [ROUNDS [EARLIER-BUILD]]'
build=$(cd "${1:?$usage}" && pwd)
device=${2:?$usage} net=${3:?$usage} address=${4:?$usage}
rounds=${5:-7} before=${6:-}
libraries=(genuine ${before:+before} this)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
echo "wire u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"$net 0\" \"\"" >"$work/genuine.conf"
touch "$work/ours.conf"

on() { # genuine|before|this, then the command with ADAPTER in place of the adapter
    local library=$1 of=$build
    shift
    [ "$library" != before ] || of=$before
    if [ "$library" = genuine ]; then
        DAT_OVERRIDE=$work/genuine.conf timeout -k 5 120 stdbuf -oL "${@/ADAPTER/wire}"
    else
        LD_LIBRARY_PATH=$of/.libs FI_DAT_TRANSPORT=verbs FI_PROVIDER=none \
            DAT_OVERRIDE=$work/ours.conf timeout -k 5 120 stdbuf -oL "${@/ADAPTER/$device}"
    fi
}

# dapltest listens for RDMA connections; the others for one of TCP first, at port 15828.
start() { # library command...
    on "$@" >"$work/server" 2>&1 </dev/null &
    server=$!
    until rdma resource show cm_id | grep -q 'state LISTEN' ||
        grep -q ':3DD4 [0-9A-F:]* 0A ' /proc/net/tcp; do
        kill -0 $server || { cat "$work/server" >&2; return 1; }
        sleep 0.05
    done
}

client() { # library command...
    on "$@" >"$work/client" 2>&1 </dev/null || { cat "$work/client" >&2; return 1; }
}

# "WHAT;LIBRARY;VALUE", more being better of each.
say() { # what library awk-program
    awk -v what="$1" -v library="$2" "$3" "$work/client"
}

measure_dapltest() { # library
    local library=$1 size mode
    local -A many=([64]=4000 [4096]=1000 [65536]=200)
    start "$library" dapltest -T S -D ADAPTER
    for mode in b p; do
        for size in 64 4096 65536; do
            client "$library" dapltest -T P -s "$address" -D ADAPTER -i ${many[$size]} -p 16 -m $mode RW $size
            say "dapltest -T P -m $mode -p 16 RW $size, operations/s" "$library" \
                '/Operation Throughput/ { print what ";" library ";" $4 }'
        done
    done
    client "$library" dapltest -T Q -s "$address" -D ADAPTER
    wait $server || true
}

measure_dtest() { # library
    local library=$1 size
    for size in 64 4096 65536; do
        start "$library" dtest -P ADAPTER -B 200 -b $size
        client "$library" dtest -P ADAPTER -h "$address" -B 200 -b $size
        wait $server || true
        say "dtest -b $size, RDMA writes, MB/s" "$library" \
            '/RDMA write \(/ { print what ";" library ";" $(NF - 1) }'
        say "dtest -b $size, messages, 1/half round trip" "$library" \
            '/Message PingPong/ { sub(/.*latency /, ""); print what ";" library ";" 1e6 / $1 }'
    done
}

measure_dtestcm() { # library
    local library=$1 how
    for how in '' ' -w'; do
        # shellcheck disable=SC2086
        start "$library" dtestcm -P ADAPTER -s -c 100$how
        # shellcheck disable=SC2086
        client "$library" dtestcm -P ADAPTER -h "$address" -c 100$how
        wait $server || true
        say "dtestcm -c 100$how, connections/s" "$library" \
            '/CPS/ { sub(/.*CPS */, ""); print what ";" library ";" $1 }'
    done
}

for ((round = 0; round < rounds; ++round)); do
    for program in dapltest dtest dtestcm; do
        for library in "${libraries[@]}"; do
            [ "${WHAT:-$program}" != $program ] || measure_$program "$library"
            server=
        done
    done
done >"$work/all"
awk -F ';' -v libraries="${libraries[*]}" '
    !($1 in seen) { seen[$1]; row[++rows] = $1 }
    { value[$1, $2, ++count[$1, $2]] = $3 }
    function median(what, library,    n, i, j, t) {
        n = count[what, library]
        for (i = 2; i <= n; ++i) {
            for (j = i; j > 1 && value[what, library, j] < value[what, library, j - 1]; --j) {
                t = value[what, library, j]
                value[what, library, j] = value[what, library, j - 1]
                value[what, library, j - 1] = t
            }
        }
        return (value[what, library, int((n + 1) / 2)] + value[what, library, int(n / 2) + 1]) / 2
    }
    END {
        n = split(libraries, name, " ")
        line = "| more is better |"
        rule = "| --- |"
        for (j = 1; j <= n; ++j) {
            line = line " " name[j] " |"
            rule = rule " ---: |"
        }
        for (j = 2; j <= n; ++j) {
            line = line " " name[j] "/" name[1] " |"
            rule = rule " ---: |"
        }
        print line "\n" rule
        for (i = 1; i <= rows; ++i) {
            printf "| %s |", row[i]
            for (j = 1; j <= n; ++j) {
                printf " %.4g |", median(row[i], name[j])
            }
            for (j = 2; j <= n; ++j) {
                first = median(row[i], name[1])
                printf " %.2f |", first ? median(row[i], name[j]) / first : 0
            }
            print ""
        }
    }' "$work/all"
