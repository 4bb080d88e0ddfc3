#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# dat_perf serve and dat_perf compare --to, in two network namespaces that are made and removed here:
# all patterns of two hosts; strangers, clients that go, versions that differ. Exit 77, with the
# reason, where namespaces cannot be made.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/command.sh"
root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
. "$root/util/common.sh"

tag=${DAT_TEST_TAG:-dat}
here=$tag-$$-h
there=$tag-$$-t
server=
clean_up() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
    ip netns del "$here" 2>/dev/null
    ip netns del "$there" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
reason=$(make_namespaces "$here" "$there") || { echo "SKIP: $reason"; exit 77; }

serve() { # command before dat_perf...
    rm -f "$work/ready"
    mkfifo "$work/ready"
    ip netns exec "$there" "$@" "$perf" serve --port 0 >"$work/ready" 2>"$work/served" &
    server=$!
    read -r -t 20 line <"$work/ready"
    port=${line##*listening on port }
    [[ $port =~ ^[0-9]+$ ]] || {
        echo "dat_perf serve says '$line', $(<"$work/served")"
        exit 1
    }
    to=$there_address:$port
}
end_serve() {
    kill "$server"
    wait "$server" 2>/dev/null
    server=
}
there_address=$(ip netns exec "$there" ip -4 -o addr show scope global | awk '{sub("/.*", "", $4); print $4; exit}')
here_address=$(ip netns exec "$here" ip -4 -o addr show scope global | awk '{sub("/.*", "", $4); print $4; exit}')
real=$perf
perf_here() { ip netns exec "$here" "$real" "$@"; }
perf=perf_here

perf=$real
serve env
perf=perf_here

runs 0 compare --to "$to" --providers dat,tcp --test latency,turns,incast,rma,connect --connections 3 \
    --sizes 64 "${few[@]}" --json "$work/json" --html "$work/html"
grep -q FAILED "$work/out" && complain "something failed: $(grep FAILED "$work/out")"
grep -q "^the servers are on $there_address, the clients on $here_address" "$work/out" ||
    complain "it does not say between what: $(head -n 20 "$work/out")"
grep -q "^$there_address, libfabric: " "$work/out" || complain 'no word of the other host'
grep -q 'memory' <(grep -E '^ +.*(limit|reference): memory' "$work/out") && complain 'memory is no limit between hosts'
[ "$(grep -cE ' (limit|reference): socket ' "$work/out")" -ge 6 ] || complain 'no socket beside them'
[ -s "$work/err" ] && complain "standard error: $(<"$work/err")"
grep -q "\"to\": \"$there_address\"" "$work/json" && grep -q '"machine_there"' "$work/json" ||
    complain 'the JSON does not say where to'
grep -q "<h3>$there_address</h3>" "$work/html" || complain 'the page does not tell of the other host'

runs 0 compare --to "$to" --providers 'dat;ofi_rxm' --test latency --sizes 32K --no-limits "${few[@]}"
grep -q '^  dat;ofi_rxm: dat;ofi_rxm, FI_EP_RDM' "$work/out" || complain "FI_EP_RDM: $(<"$work/out")"
runs 0 compare --to "$to" --providers dat,tcp --test rate --sizes 64 --pairs 2 --threads 2 --no-limits "${few[@]}" \
    --csv "$work/csv"
[ "$(grep -cE '^rate,"(dat|tcp)",1,64,20,' "$work/csv")" -eq 2 ] || complain "pairs and threads: $(<"$work/csv")"

runs 1 compare --to "$to" --providers no_such "${few[@]}"
one_line "provider 'no_such' is not here"
runs 0 compare --to "$to" --providers dat --with openmpi --test latency --sizes 8 "${few[@]}"
one_line 'Open MPI is measured on one host alone'
if command -v ucx_perftest >/dev/null; then
    runs 0 compare --to "$to" --providers dat --with ucx --test latency --sizes 8 "${few[@]}"
    grep -q '^  ucx: ucx_perftest' "$work/out" || complain "UCX was not measured between two: $(<"$work/out")"
fi

# A setting that may not come from another host ends the run, and the server goes on.
runs 1 compare --to "$to" --providers dat@LD_PRELOAD=/no/such.so --test latency --sizes 8 "${few[@]}"
grep -q 'LD_PRELOAD cannot be set from another host' "$work/err" || complain "LD_PRELOAD: $(<"$work/err")"

# Strangers: bytes of no sense, a message that is too long, one that says nothing and goes.
ip netns exec "$here" python3 - "$there_address" "$port" <<'PYTHON' || complain 'a stranger is kept'
import random, socket, sys
dice = random.Random(1)
where = (sys.argv[1], int(sys.argv[2]))
for said in (bytes(dice.randrange(256) for _ in range(300)), b"\xff\xff\xff\xff", b"",
             b"\x05\0\0\0hello", b"GET / HTTP/1.0\r\n\r\n"):
    with socket.create_connection(where, 10) as stranger:
        stranger.settimeout(20)
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        if stranger.recv(100) not in (b"",):
            sys.exit(1)
PYTHON

# While one client is there, another is told so; when it has gone, the next is served.
ip netns exec "$here" python3 - "$there_address" "$port" "$real" <<'PYTHON' || complain 'busy, or not'
import os, socket, struct, subprocess, sys
def send(sock, text):
    sock.sendall(struct.pack("<I", len(text)) + text)
def hear(sock):
    length = struct.unpack("<I", sock.recv(4, socket.MSG_WAITALL))[0]
    return sock.recv(length, socket.MSG_WAITALL)
where = (sys.argv[1], int(sys.argv[2]))
first = socket.create_connection(where, 10)
first.settimeout(30)
send(first, b"dat_perf 1 0.0.0 1.17 other")
if not hear(first).startswith(b"dat_perf 1 "):
    sys.exit("no hello")
for question, answer in ((b"check\nset PATH=/tmp", b"PATH cannot be set"), (b"case\nsize 0", b"a case with"),
                         (b"case\nword", b"a case with"),
                         (b"case\nkind 1\npattern 0\npairs 1024\nsize 1073741824", b"1024 servers with")):
    send(first, question)
    if not hear(first).startswith(answer):
        sys.exit("not refused: %r" % question)
second = subprocess.run([sys.argv[3], "compare", "--to", "%s:%d" % where], capture_output=True, text=True)
if second.returncode != 1 or "is busy: it measures with" not in second.stderr:
    sys.exit("a second client: %r" % second)
# Clients of a case that lie to its server: it ends, by no signal, and the next case is served.
def begin(question):
    send(first, question)
    word, port, token = hear(first).split(b" ")
    link = socket.create_connection((where[0], int(port)), 10)
    link.settimeout(30)
    link.sendall(token)
    return link
def ending():
    why = hear(first)
    for _ in range(int(hear(first))):
        hear(first)
    return why
with begin(b"case\nlabel x\nkind 1\npattern 0\nsize 8\noperations 1\n") as link:
    address, port = hear(link).decode().split(" ")
    send(link, b"none")
    with socket.create_connection((address, int(port)), 10) as data:
        data.settimeout(30)
        for _ in range(3):
            data.sendall(b"\1" * 8)
            data.recv(8, socket.MSG_WAITALL)
        send(link, bytes(8))
        why = ending()
        if b"wants no operation" not in why:
            sys.exit("no operation: %r" % why)
with begin(b"case\nlabel x\nkind 0\nprovider dat\nendpoint 2\npattern 0\nsize 8\n") as link:
    hear(link)
    send(link, b"x")
    why = ending()
    if not why.startswith(b"ended 2 ") or b"signal" in why:
        sys.exit("an address of one byte: %r" % why)
# The connections of a case that never come.
send(first, b"case\nlabel x\nkind 1\npattern 0\nsize 8\n")
if not hear(first).startswith(b"port "):
    sys.exit("no port")
first.close()
PYTHON
runs 0 compare --to "$to" --providers dat --test latency --sizes 8 --no-limits "${few[@]}"
end_serve
runs 1 compare --to "$to" --providers dat --test latency --sizes 8 "${few[@]}"
one_line 'dat_perf serve'

# A provider that is not there; and another version, played by one that answers so.
perf=$real
serve env FI_PROVIDER_PATH=/nowhere
perf=perf_here
runs 1 compare --to "$to" --providers dat --test latency --sizes 8 "${few[@]}"
one_line "on $there_address: dat: "
end_serve
mkfifo "$work/listens"
ip netns exec "$there" python3 - >"$work/listens" <<'PYTHON' &
import socket, struct
listener = socket.create_server(("0.0.0.0", 0))
listener.settimeout(60)
print(listener.getsockname()[1], flush=True)
client = listener.accept()[0]
client.recv(1000)
text = b"dat_perf 1 0.0.9 1.17 little/1"
client.sendall(struct.pack("<I", len(text)) + text)
PYTHON
other=$!
read -r -t 20 port <"$work/listens"
runs 1 compare --to "$there_address:$port" --providers dat "${few[@]}"
one_line "$there_address has dat_perf 0.0.9"
wait "$other"

[ $bad -eq 0 ] && echo 'dat_perf between two: all right'
[ $bad -eq 0 ]
