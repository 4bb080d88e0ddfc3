#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs the programs of librpma's own `examples` folder, unmodified, and compares what passes with
# examples.expected. They are built elsewhere (build_examples.sh); nothing of them is here. A
# program passes if both its ends exit with 0 and print what they are for.
#
#   examples.sh FOLDER [LINK...]
#
#   FOLDER   has a folder for each example, with `server` and `client`
#   LINK     shm, tcp (the default is both); rxe, siw, rxe:SC: on that device of the guest. S and
#            C are the libraries of server and client, d: this one, g: the genuine one
#
# DAT_BUILDDIR   the build folder, whose library is used
# ONLY           an extended regular expression for the names of tests
#
# A test that is expected and does not pass is a failure, as is one that fails unexpected; one
# that passes and is in no list is named. Exit status 0 if nothing failed.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -eq 0 ] || [ ! -x "$1/01-connection/server" ]; then
    echo "usage: ${0##*/} FOLDER [LINK...]; FOLDER has 01-connection/server and the others" >&2
    exit 2
fi
bin=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- shm tcp
library=$(cd "${DAT_BUILDDIR:-.}/.libs" && pwd) || exit 2
[ -f "$library/librpma.so.0" ] || {
    echo "$library/librpma.so.0 is not there" >&2
    exit 2
}
expected=$here/examples.expected
at_once=4
passed=0
failed=0
work=$(mktemp -d) || exit 1

clean_up() {
    local pid
    for pid in $(jobs -p); do kill "$pid" 2>/dev/null; done
    wait
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Nothing of libfabric is to matter. A file is to be taken for persistent memory by libpmem.
export FI_PROVIDER=none FI_PROVIDER_PATH=/nonexistent PMEM_IS_PMEM_FORCE=1

# name; folder; what its server and its client get behind address and port (FILE: a file of
# its own; WAIT: for how many seconds the server waits for a client); what they print.
table() {
    cat <<'END'
01;01-connection;;;Received a message: Hello server!;Received a message: Hello client!
02;02-read-to-volatile;;;Connection closed;Read a message: Hello client!
03;03-read-to-persistent;;;New value: Hello world!;Translation: .*Hola Mundo!
03-file;03-read-to-persistent;FILE;FILE;New value: Hello world!;Translation: .*Hola Mundo!
04;04-write-to-persistent;;;New value: Hello world!;Translation: .*Hola Mundo!
04-file;04-write-to-persistent;FILE;FILE;New value: Hello world!;Translation: .*Hola Mundo!
05;05-flush-to-persistent;;;New value: Hello world!;VISIBILITY is used instead
05-file;05-flush-to-persistent;FILE;FILE;New value: Hello world!;VISIBILITY is used instead
05-file-direct;05-flush-to-persistent;FILE on;FILE;New value: Hello world!;RPMA_FLUSH_TYPE_PERSISTENT is supported
06;06-multiple-connections;;8;- Chet;My names is: Chet
06scch;06scch-multiple-connections;;8;- Chet;My names is: Chet
07;07-atomic-write;;1st_word 2nd_word 3rd_word;3rd_word;used value
08;08-messages-ping-pong;;7 3;Value sent: 9;Value received: 9
08srq;08srq-simple-messages-ping-pong-with-srq;;7 3;Value sent: 10;Value received: 10
09;09-flush-to-persistent-GPSPM;;;New value: Hello world!;Translation: .*Hola Mundo!
09-file;09-flush-to-persistent-GPSPM;FILE;FILE;New value: Hello world!;translating
09scch;09scch-flush-to-persistent-GPSPM;;;New value: Hello world!;Translation: .*Hola Mundo!
10;10-send-with-imm;;1234 1st_word;with immediate data '1234';Sending value '1st_word'
11;11-write-with-imm;;1234;written together with immediate data '1234';with immediate data '1234'
12;12-receive-completion-queue;;7 3;Value sent: 9;Value received: 9
12scch;12scch-receive-completion-queue;;7 3;Value sent: 9;Value received: 9
13;13-messages-ping-pong-with-srq;WAIT;1 3;value sent: 4;value received: 4
END
}

# Somebody listens at that port: of TCP, or of RDMA connections.
listens() { # port
    grep -q "^ *[0-9]*: [0-9A-F]*:$(printf '%04X' "$1") [0-9A-F:]* 0A " /proc/net/tcp ||
        { [ $device = yes ] && rdma resource show cm_id | grep -q "state LISTEN .*src-addr [^ ]*:$1 "; }
}

# With a library: d or g.
run_with() { # d|g command...
    local which=$1
    shift
    if [ "$which" = d ]; then export LD_LIBRARY_PATH=$library; else unset LD_LIBRARY_PATH; fi
    exec timeout -k 1 $limit stdbuf -oL "$@"
}

# One test; its verdict becomes a file.
run_one() { # number name folder server-arguments client-arguments server-text client-text
    local out=$work/$1 name=$2 folder=$bin/$3 port server status=0 of_server=0 words tries=0
    local of_server_text=$6 of_client_text=$7 verdict=fail
    local arguments=("$4" "$5")
    port=$((20000 + (RANDOM % 1200) * 10 + $1 % 10))
    rm -rf "$out" && mkdir "$out"
    truncate -s 1M "$out/file0" "$out/file1"
    arguments[0]=${arguments[0]/WAIT/$wait}
    read -r -a words <<<"${arguments[0]//FILE/$out/file0}"
    (run_with "$of_s" "$folder/server" "$address" "$port" "${words[@]}") >"$out/server" 2>&1 </dev/null &
    server=$!
    until listens "$port"; do
        tries=$((tries + 1))
        if [ $tries -ge $((limit * looks)) ] || ! kill -0 "$server" 2>/dev/null; then break; fi
        sleep $pause
    done
    read -r -a words <<<"${arguments[1]//FILE/$out/file1}"
    (run_with "$of_c" "$folder/client" "$address" "$port" "${words[@]}") >"$out/client" 2>&1 </dev/null
    status=$?
    [ $status -eq 0 ] || kill "$server" 2>/dev/null
    wait "$server"
    of_server=$?
    if [ $status -eq 0 ] && [ $of_server -eq 0 ] && grep -q -- "$of_server_text" "$out/server" &&
        grep -q -- "$of_client_text" "$out/client"; then
        verdict=pass
    fi
    echo "server $of_server" >>"$out/server"
    echo "client $status" >>"$out/client"
    echo "$verdict $name" >"$out/verdict"
}

report() { # link number
    local verdict name line
    read -r verdict name <"$work/$2/verdict" || { verdict=fail name="$2: no verdict"; }
    line="$1 $name"
    if [ "$verdict" = pass ]; then
        passed=$((passed + 1))
        if grep -qxF "$line" "$expected"; then
            echo "pass  $line"
        else
            echo "pass  $line  (not in the list of expected passes)"
        fi
        return
    fi
    if grep -qxF "$line" "$expected"; then
        echo "FAIL  $line: expected to pass"
    elif grep -qE "^! $line( |\$)" "$expected"; then
        echo "known $line: $(sed -nE "s/^! $line( |\$)//p" "$expected")"
        return
    else
        echo "FAIL  $line"
    fi
    failed=$((failed + 1))
    tail -n 6 "$work/$2/server" | sed 's/^/      server: /'
    tail -n 6 "$work/$2/client" | sed 's/^/      client: /'
}

run_link() { # link
    local name folder server client of_server of_client number=0 i
    device=no wait=2 limit=60 pause=0.02 looks=50 of_s=d of_c=d address=127.0.0.1
    export FI_DAT_SHM=0 FI_DAT_TRANSPORT=soft
    case $1 in
    shm) FI_DAT_SHM=1 ;;
    tcp) ;;
    rxe | rxe:??) address=198.51.100.1 device=yes ;;
    siw | siw:??) address=192.0.2.1 device=yes ;;
    *)
        echo "there is no link $1" >&2
        exit 2
        ;;
    esac
    # All is slow in an emulated guest, above all the start of a program, also of one that looks.
    if [ $device = yes ]; then FI_DAT_TRANSPORT=verbs wait=20 limit=240 pause=0.5 looks=2; fi
    case $1 in *:??) of_s=${1: -2:1} of_c=${1: -1} ;; esac
    while IFS=';' read -r name folder server client of_server of_client; do
        [ -z "${ONLY:-}" ] || [[ $name =~ $ONLY ]] || continue
        number=$((number + 1))
        while [ "$(jobs -rp | wc -l)" -ge $at_once ]; do wait -n; done
        run_one $number "$name" "$folder" "$server" "$client" "$of_server" "$of_client" &
    done < <(table)
    wait
    # The servers of some end of themselves after 15 s, which is little for a guest that runs four at once.
    number=0
    while IFS=';' read -r name folder server client of_server of_client; do
        [ -z "${ONLY:-}" ] || [[ $name =~ $ONLY ]] || continue
        number=$((number + 1))
        [ $device = yes ] && ! grep -q '^pass' "$work/$number/verdict" && ! grep -qE "^! $1 $name( |\$)" "$expected" || continue
        echo "alone $1 $name"
        run_one $number "$name" "$folder" "$server" "$client" "$of_server" "$of_client"
    done < <(table)
    for ((i = 1; i <= number; ++i)); do report "$1" "$i"; done
    rm -rf "${work:?}"/*
}

for link; do run_link "$link"; done
# What is expected, and is no test.
while read -r link name more; do
    case $link in '' | '#'*) continue ;; '!') link=$name name=${more%% *} ;; esac
    if ! table | grep -q "^$name;"; then
        echo "FAIL  $link $name: expected, and no test of that name is there"
        failed=$((failed + 1))
    fi
done <"$expected"
echo "examples of librpma: $passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
