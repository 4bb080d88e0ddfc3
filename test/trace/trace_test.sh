#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What processes record with FI_DAT_TRACE, and what dat_trace makes of it: Chrome trace events
# that are what the format asks for, an arrow from each send to its receive, clocks that are
# brought together within the error that is shown, files of processes that were killed, rings that
# have gone round, runs of the simulator. Files that are none, and bad usage, are refused.
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
folder=$(mktemp -d) || exit 1
pipes=$folder
. "$root/test/transport/processes.sh"
. "$root/test/trace/common.sh"
clean_up() {
    stop_both
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

trace=$build/dat_trace
events() { # file what=number...
    local file=$1
    shift
    "$here/check_events.py" "$file" "$@" || fail "$current: $file"
}
refused() { # status text command...
    local status=$1 text=$2 said
    shift 2
    said=$("$@" 2>&1 >/dev/null)
    [ $? -eq "$status" ] || fail "$current: $* does not exit with $status"
    [ "$(wc -l <<<"$said")" -eq 1 ] && [[ $said == *"$text"* ]] ||
        fail "$current: $* says '$said', not '$text'"
}

for shm in 0 1; do
    current="two processes, FI_DAT_SHM=$shm"
    connected "two$shm" FI_DAT_SHM=$shm FI_DAT_TRACE_FRAMES=1
    exchange 20
    part
    "$trace" -o "$folder/two.json" "$folder/two$shm.a" "$folder/two$shm.b" || fail "$current"
    # A state each time: UNCONNECTED, pending, CONNECTED, DISCONNECT_PENDING of a, ENDING,
    # DISCONNECTED, DESTROYED.
    events "$folder/two.json" processes=2 arrows=21 backward=0 send=21 receive=21 SUCCESS=42 \
        ESTABLISHED=2 DISCONNECTED=4 CONNECTED=2 DISCONNECT_PENDING=1 ENDING=2 \
        ACTIVE_CONNECTION_PENDING=1 COMPLETION_PENDING=1
    "$trace" --summary "$folder/two$shm.a" "$folder/two$shm.b" >"$folder/summary" || fail "$current"
    grep -q 'two.\.b: peer .* the same clock, no error$' "$folder/summary" ||
        fail "$current: $(cat "$folder/summary")"
    # Frames were asked for, and TCP has them: each message is one, at both ends.
    [ $shm -eq 1 ] || events "$folder/two.json" 'frame>=42' >/dev/null
done

# The same file as of a host whose clock is 5 s ahead: what went between them tells so.
current='another clock'
"$here/alter.py" clock "$folder/two0.b" "$folder/far" 5000000000
"$trace" --summary "$folder/two0.a" "$folder/far" >"$folder/summary" || fail "$current"
moved=$(sed -n 's/.*far: .*moved by \([0-9.]*\) us, error at most \([0-9.]*\) us$/\1 \2/p' "$folder/summary")
[ -n "$moved" ] || fail "$current: $(cat "$folder/summary")"
python3 -c '
import sys
moved, error = map(float, sys.argv[1].split())
sys.exit(not (abs(moved - 5e6) <= error < 1e6))' "$moved" || fail "$current: moved by $moved us"
"$trace" -o "$folder/far.json" "$folder/two0.a" "$folder/far" || fail "$current"
events "$folder/far.json" arrows=21 backward=0

current='a connection that breaks'
connected broken FI_DAT_SHM=0
broken
"$trace" -o "$folder/broken.json" "$folder/broken.a" "$folder/broken.b" || fail "$current"
events "$folder/broken.json" BROKEN=2 LOCAL_LENGTH=1 arrows=1
grep -q '"decided by":"broken","clauses of that":"EP-56' "$folder/broken.json" || fail "$current: no clause"
grep -q '"reason":"an operation failed"\|"reason":"the peer sent a Terminate message"' \
    "$folder/broken.json" || fail "$current: no reason"

# What was not flushed to a file by anybody is in it all the same.
current='a process that was killed'
connected killed FI_DAT_SHM=1
expect b ok recv 5 64
expect a ok send 2 64
expect a 'results 2 0 0' finish
# It is killed first: the other would be seen to end, and its receives be flushed.
stop b
stop a
"$trace" -o "$folder/killed.json" "$folder/killed.a" "$folder/killed.b" || fail "$current"
events "$folder/killed.json" send=2 receive=5 'outstanding>=3' CONNECTED=2

current='a ring that has gone round'
connected small FI_DAT_SHM=1 FI_DAT_TRACE_SIZE=1
for _ in {1..150}; do
    expect b ok recv 100 64
    expect a ok send 100 64
    expect a 'results 100 0 0' finish
    expect b 'results 100 0 0' finish
done
part
[ "$(stat -c %s "$folder/small.a")" -eq $((4096 + 1048576)) ] || fail "$current: its size"
"$trace" -o "$folder/small.json" "$folder/small.a" "$folder/small.b" || fail "$current"
# The connection's beginning is there still, and the newest operations are.
events "$folder/small.json" ESTABLISHED=2 'arrows>=7000' 'CONNECTED=2' backward=0
"$trace" --summary "$folder/small.a" | grep -q ' 14640 lost' ||
    fail "$current: $("$trace" --summary "$folder/small.a")"

# A file that a living process has is left alone: the number of the process comes behind.
current='one name, two processes'
start a env "FI_DAT_TRACE=$folder/same" "$build/test/transport/peer" 127.0.0.1
expect a 'ok *' listen
start b env "FI_DAT_TRACE=$folder/same" "$build/test/transport/peer" 127.0.0.1
expect b 'ok *' listen
[ "$(find "$folder" -name 'same*' | wc -l)" -eq 2 ] || fail "$current: $(ls "$folder")"
stop_both

current='a name that cannot be used'
for name in "$folder" "$folder/none/there"; do
    start a env "FI_DAT_TRACE=$name" FI_LOG_LEVEL=warn \
        bash -c 'exec "$0" 127.0.0.1 2>"$1"' "$build/test/transport/peer" "$folder/said"
    expect a 'ok *' listen
    stop a
    [ "$(grep -c 'FI_DAT_TRACE=.*nothing is recorded' "$folder/said")" -eq 1 ] ||
        fail "$current: $(cat "$folder/said")"
done

current='runs of the simulator'
"$build/sim_random" --seed 16 --runs 1 --trace-file "$folder/sim" >"$folder/said" || fail "$current"
"$trace" -o "$folder/sim.json" "$folder/sim" || fail "$current"
events "$folder/sim.json" processes=1 'state>=10' violation=0 'arrows>=1' backward=0
"$build/sim_random" --fault double_end --trace-file "$folder/sim" >"$folder/said" &&
    fail "$current: the fault was not found"
"$trace" -o "$folder/sim.json" "$folder/sim" || fail "$current"
rule=$(sed -n 's/^host .: //p' "$folder/said" | sort -u | head -n 1)
events "$folder/sim.json" 'violation>=1' "$rule>=1"

current='the probes'
probes='frame receive_completed receive_posted request_completed request_posted transition'
if grep -q '^#define HAVE_SYS_SDT_H 1' "$build/config.h"; then
    there=$(readelf -n "$build/.libs/libdat-fi.so" | sed -n '/Provider: dat$/{n;s/.*Name: //p}' |
        sort -u | xargs)
    [ "$there" = "$probes" ] || fail "$current: there are $there"
fi
documented=$(sed -n 's/.*usdt:LIB:dat:\([a-z_]*\).*/\1/p' "$root/man/dat_trace.1" | sort -u | xargs)
[ "$documented" = "$probes" ] || fail "$current: dat_trace(1) has a line of bpftrace for $documented"

current='what cannot be used'
head -c 100000 /dev/urandom >"$folder/noise"
head -c 8192 "$folder/sim" >"$folder/short"
{ head -c 8 "$folder/sim"; printf '\2'; tail -c +10 "$folder/sim"; } >"$folder/version"
refused 1 'no trace file' "$trace" "$folder/noise"
refused 1 'no trace file' "$trace" /dev/null
refused 1 'damaged' "$trace" "$folder/short"
refused 1 'version 2' "$trace" "$folder/version"
refused 1 'No such file' "$trace" "$folder/nothing"
refused 2 'no trace file is named' "$trace"
refused 2 '--htm1' "$trace" --htm1 "$folder/sim"
refused 2 'choose one' "$trace" --html --summary "$folder/sim"
refused 1 'No space left' "$trace" -o /dev/full "$folder/sim"
# One that would wait for a writer is not opened.
mkfifo "$folder/fifo"
refused 1 'no trace file' timeout -k 5 20 "$trace" "$folder/fifo"
# Numbers that stand for no word: the record is left out.
"$here/alter.py" words "$folder/two0.a" "$folder/words" || fail "$current"
for form in --html --summary -o/dev/null; do
    "$trace" "$form" "$folder/words" >"$folder/said" || fail "$current: words that are none, $form"
done
"$trace" -o "$folder/words.json" "$folder/words" || fail "$current"
grep -q '"cat":"stimulus"\|"verdict"' "$folder/words.json" && fail "$current: a verdict that is none"
# A name that would colour a terminal.
"$here/alter.py" escapes "$folder/two0.a" "$folder/escapes" || fail "$current"
"$trace" --summary "$folder/escapes" >"$folder/said" || fail "$current"
grep -q $'\x1b' "$folder/said" && fail "$current: an escape sequence"
grep -q '?\[31m .* on ?\[31m' "$folder/said" || fail "$current: $(cat "$folder/said")"
# More than any disk has: what was never written is not read.
if "$here/alter.py" vast "$folder/two0.a" "$folder/vast" 2>/dev/null; then
    timeout -k 5 20 "$trace" --summary "$folder/vast" >"$folder/said" || fail "$current: 2^32 records"
    grep -q ' 0 records, 18446744073709551614 lost' "$folder/said" || fail "$current: $(cat "$folder/said")"
fi
# A trace whose records are noise is no reason to end badly.
{ head -c 4096 "$folder/sim"; head -c $(($(stat -c %s "$folder/sim") - 4096)) /dev/urandom; } >"$folder/mad"
"$trace" "$folder/mad" >/dev/null || fail "$current: noise in a trace"
echo passed
