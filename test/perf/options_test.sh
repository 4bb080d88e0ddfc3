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
    '--seconds -1' '--connections 0' '--nothing' 'word' '--pairs 0' '--threads 0' '--senders x' \
    '--with mpich' '--tolerance -1' '--baseline /no/such/file' '--baseline /dev/null'; do
    # Unquoted on purpose: an option and its value.
    # shellcheck disable=SC2086
    runs 2 compare $wrong
    one_line 'dat_perf: '
done
runs 1 compare --json "$work/no/such/folder" "${few[@]}"
one_line 'cannot be written'
runs 1 compare --to '[::1]:1' "${few[@]}"
one_line 'dat_perf serve'
runs 1 serve --port x
one_line 'port x'

# On a terminal it shows how far it is, and leaves nothing of that; elsewhere nothing: see smoke_test.sh.
python3 -c '
import pty, sys
out = b""
def read(fd):
    import os
    global out
    data = os.read(fd, 65536)
    out += data
    return data
pty.spawn(sys.argv[1:], read)
sys.exit(0 if b"1 of 2: latency 8 B: dat" in out and b"2 of 2: latency 8 B: tcp" in out and
         out.rfind(b"\r\033[K") > out.rfind(b" of 2: ") else 1)
' "$perf" compare --providers dat,tcp --no-limits --test latency --sizes 8 "${few[@]}" </dev/null >/dev/null ||
    complain 'a terminal does not show how far it is'

[ $bad -eq 0 ] && echo 'dat_perf: all right'
[ $bad -eq 0 ]
