#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# dat_top, of two processes that are connected: what it shows as they talk, as they end and are
# killed, while one stands still; what another user sees; what FI_DAT_STATS changes; processes that
# give it something else than a page. It looks at processes of this test alone. Exit 77, with the
# reason, where that cannot be done.
#
# Usage: top_test.sh [directory of the program peer]
set -u

build=$(cd "${DAT_BUILDDIR:-.}" && pwd)
root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
directory=${1:-$build/test/transport}
top=$build/dat_top
schema=$root/util/command/schema/dat_top.schema.json
export FI_PROVIDER=dat FI_PROVIDER_PATH=$build/.libs FI_DAT_TRANSPORT=soft FI_LOG_LEVEL=warn
unset FI_DAT_STATS FI_DAT_SHM FI_DAT_SHM_PEERS FI_DAT_IFACE

clean_up() {
    exec 8>&- 9<&- # the one that looks on ends with its output
    stop_both
    rm -rf "$pipes"
}
pipes=$(mktemp -d) || exit 1
. "$root/test/transport/processes.sh"
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# What is printed on standard input fits the schema, and is so.
holds() { # expression...
    local status=0
    python3 "$root/test/top/check.py" json "$schema" "$@" >"$pipes/verdict" || status=$?
    [ $status -eq 77 ] && {
        echo "SKIP: $(cat "$pipes/verdict")"
        exit 77
    }
    [ $status -eq 0 ] || die "$(cat "$pipes/verdict")"
}
# Of process $1.
shows() { # name expression...
    local of=${pid[$1]}
    shift
    "$top" --once --interval 0.1 --json --pid "$of" >"$pipes/json" || die "dat_top ended with $?"
    holds "${@//@/of($of)}" <"$pipes/json"
}
# Until a look of the stream on descriptor 9 shows what is to be seen; bounded by `limit`.
shows_soon() { # pattern
    local line i
    for ((i = 0; i < 300; ++i)); do
        read -r -t "$limit" -u 9 line || die "dat_top prints no more, and has not shown $1"
        [[ $line =~ $1 ]] && return
    done
    die "$1 is not shown: $line"
}
begin() { # name command...
    local name=$1
    shift
    # shellcheck disable=SC2016
    start "$name" "$@" bash -c 'exec "$0" "$1" 2>"$2"' "$directory/peer" 127.0.0.1 "$pipes/said.$name"
}
join() {
    expect b 'ok *' listen
    expect a ok connect 127.0.0.1 "${answer#ok }" 0
    expect b 'connreq 0' event
    expect b ok accept 0
    expect a 'connected 0' event
    expect b 'connected 0' event
}
talk() { # count size
    expect b ok recv "$1" "$2"
    expect a ok send "$1" "$2"
    expect b "results $1 0 0" finish
    expect a "results $1 0 0" finish
}

current='options'
for wrong in '--interval 0' '--interval x' '--nothing' 'word' '--pid -1' '--json --prometheus -'; do
    status=0
    # Unquoted on purpose: an option and its value.
    # shellcheck disable=SC2086
    "$top" $wrong >"$pipes/out" 2>"$pipes/err" || status=$?
    [ $status -eq 2 ] && [ ! -s "$pipes/out" ] && [ "$(wc -l <"$pipes/err")" -eq 1 ] ||
        die "dat_top $wrong: $status, $(cat "$pipes/out" "$pipes/err")"
done
[ "$("$top" --version)" = "dat_top (dat) $(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$build/config.h")" ] ||
    die "--version says '$("$top" --version)'"

for shm in 1 0; do
    current="a connection, FI_DAT_SHM=$shm"
    begin a env FI_DAT_SHM=$shm
    begin b env FI_DAT_SHM=$shm
    join
    talk 10 1000
    link=$([ $shm = 1 ] && echo shm || echo tcp)
    why=$([ $shm = 1 ] && echo 'large messages from there' || echo 'FI_DAT_SHM=0')
    shows a '@["command"] == "peer"' '@["answers"]' 'not @["stands_still"]' \
        '@["totals"]["requests"] == 10' '@["totals"]["request_bytes"] == 10000' \
        '@["totals"]["receives"] == 0' '@["totals"]["established"] == 1' \
        'len(@["connections"]) == 1' '@["connections"][0]["state"] == "CONNECTED"' \
        "@['connections'][0]['link'] == '$link'" "@['connections'][0]['why'].startswith('$why')" \
        '@["connections"][0]["peer"].startswith("127.0.0.1:")' '@["ends"] == []' \
        '(@["connections"][0]["tcp_rtt_us"] is None) == '"$([ $shm = 1 ] && echo True || echo False)"
    shows b '@["totals"]["receives"] == 10' '@["totals"]["receive_bytes"] == 10000' \
        '@["totals"]["requests"] == 0'
    "$top" --once --interval 0.1 --pid "${pid[a]}" >"$pipes/out" || die "the table: $?"
    grep -Eq "^ +1 +127.0.0.1:[0-9]+ +CONNECTED +$link " "$pipes/out" ||
        die "the table has no such line: $(cat "$pipes/out")"

    current="rates, FI_DAT_SHM=$shm"
    exec 9< <(exec "$top" --interval 0.1 --json --pid "${pid[a]}")
    shows_soon '"requests":10,'
    talk 10 1000
    shows_soon '"requests":20,.*"per_second":\{"requests":[0-9]*[1-9]'
    current="a process that stands still, FI_DAT_SHM=$shm"
    kill -STOP "${pid[a]}"
    shows_soon '"stands_still":true'
    shows a '@["answers"] is False'
    kill -CONT "${pid[a]}"
    shows_soon '"stands_still":false'
    exec 9<&-

    current="ends, FI_DAT_SHM=$shm"
    expect b ok disconnect graceful
    expect a 'shutdown*' event
    expect b 'shutdown*' event
    shows a '[e["reason"] for e in @["ends"]] == ["peer_closed"]' '@["ends"][0]["by"] == "wire"' \
        '@["ends"][0]["clause"].startswith("EP-")' '@["ends"][0]["requests"] == 20' \
        '@["totals"]["ends"] == {"peer_closed": 1}'
    shows b '[e["reason"] for e in @["ends"]] == ["local"]' '@["ends"][0]["by"] == "local"' \
        '@["ends"][0]["stimulus"] == "drained"' '@["ends"][0]["clause"] == "EP-58 U-42"' \
        '@["ends"][0]["state"] == "DISCONNECT_PENDING"'
    "$top" ends --pid "${pid[b]}" | grep -q ' this program  *this side disconnected (local)' || die 'who ended it'
    expect a ok reset
    expect b ok reset
    join
    current="a peer that is killed, FI_DAT_SHM=$shm"
    killed=${pid[b]}
    stop b
    expect a 'shutdown*' event
    shows a 'len(@["ends"]) == 2' '@["ends"][1]["event"] in ("BROKEN", "DISCONNECTED")'
    "$top" ends --pid "${pid[a]}" >"$pipes/out" || die "ends: $?"
    [ "$(wc -l <"$pipes/out")" -eq 3 ] && grep -q 'the peer closed the connection (peer_closed)' "$pipes/out" ||
        die "ends: $(cat "$pipes/out")"
    "$top" --once --interval 0.1 --json --pid "$killed" | holds 'all["domains"] == []'

    current='a textfile'
    "$top" --prometheus - --pid "${pid[a]}" >"$pipes/out" || die "$?"
    python3 "$root/test/top/check.py" textfile <"$pipes/out" || die "see above: $(cat "$pipes/out")"
    grep -Eq '^dat_requests_total\{pid="'"${pid[a]}"'",command="peer",domain="[^"]+",index="0"\} 20$' "$pipes/out" ||
        die "dat_requests_total: $(cat "$pipes/out")"
    grep -Eq '^dat_connection_ends_total\{.*,reason="peer_closed"\} [12]$' "$pipes/out" || die "$(cat "$pipes/out")"
    mkdir "$pipes/collector"
    "$top" --prometheus "$pipes/collector/dat.prom" --pid "${pid[a]}" || die "$?"
    [ "$(ls "$pipes/collector")" = dat.prom ] || die "what is there: $(ls "$pipes/collector")"
    python3 "$root/test/top/check.py" textfile <"$pipes/collector/dat.prom" >/dev/null || die 'the file'
    rm -r "$pipes/collector"
    stop_both
done
for bad in 'no_total counter' 'dat_x_total gauge' 'dat_wait_ms gauge'; do
    printf '# HELP %s Words.\n# TYPE %s %s\n%s{a="b"} 1\n' "${bad% *}" "${bad% *}" "${bad#* }" "${bad% *}" |
        python3 "$root/test/top/check.py" textfile >/dev/null && die "the check finds nothing wrong with $bad"
done
status=0
"$top" --prometheus "$pipes/no/dat.prom" 2>"$pipes/err" || status=$?
[ $status -eq 1 ] && grep -q 'cannot be written' "$pipes/err" || die "a folder that is not there: $status"

current='an attempt that nobody answers'
begin a
expect a ok connect 127.0.0.1 1 0
expect a 'error*' event
shows a '[e["reason"] for e in @["ends"]] == ["refused"]' '@["ends"][0]["lived_seconds"] is None' \
    '@["ends"][0]["link"] == "none"'

current='another user'
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$pipes" && cp "$top" "$pipes/dat_top" && chmod 755 "$pipes/dat_top"
    (cd / && setpriv --reuid 65534 --regid 65534 --clear-groups "$pipes/dat_top" --once --interval 0.1 --json) >"$pipes/json" ||
        die "dat_top of another user ended with $?"
    holds 'all["domains_of_other_users"] >= 1' "of(${pid[a]}) is None" <"$pipes/json"
else
    echo 'not looked at: another user, for which root and setpriv are needed'
fi
stop a

current='FI_DAT_STATS'
begin a env FI_DAT_STATS=off
begin b env FI_DAT_STATS=1
join
talk 3 10
"$top" --once --interval 0.1 --json --pid "${pid[a]}" | holds 'all["domains"] == []'
shows b '@["totals"]["receives"] == 3'
of_b=${pid[b]}
tell b quit
wait "$of_b"
grep -q 'FI_DAT_STATS: domain [^:]*: 1 connections, 0 requests of 0 bytes, 3 receives of 30 bytes, .* 1 ends, of them 1: this side disconnected' \
    "$pipes/said.b" || die "no summary: $(cat "$pipes/said.b")"
grep -q FI_DAT_STATS "$pipes/said.a" && die "a line with FI_DAT_STATS=off: $(cat "$pipes/said.a")"
stop_both
begin a env FI_DAT_STATS=yes
expect a 'ok *' listen
grep -q 'FI_DAT_STATS="yes" is ignored: it has to be 1 or off' "$pipes/said.a" || die "$(cat "$pipes/said.a")"
stop a

for kind in file unsealed short other many nothing silent random; do
    current="a process that gives something else: $kind"
    start a python3 "$root/test/top/hostile.py" $kind 2>"$pipes/said.a"
    listen_for a
    [[ $answer == 'listening '* ]] || die "it says $answer"
    for what in '--once --json' '--once' 'ends' '--prometheus -'; do
        # shellcheck disable=SC2086
        "$top" $what --interval 0.1 --pid "${pid[a]}" >"$pipes/out" || die "dat_top $what ended with $?: $(cat "$pipes/said.a")"
        grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$pipes/out" && die "dat_top $what prints what a terminal would obey"
    done
    "$top" --once --interval 0.1 --json --pid "${pid[a]}" >"$pipes/json"
    case $kind in
    silent | nothing) holds 'len(all["domains"]) == 1' 'all["domains"][0]["answers"] is False' <"$pipes/json" ;;
    random) ;;
    *) holds 'all["domains"] == []' <"$pipes/json" ;;
    esac
    stop a
done

echo 'dat_top: all right'
