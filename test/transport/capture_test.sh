#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What goes over the wire, as tshark reads it: no malformed frame and no bad CRC in captures of
# connections with default settings and with CRC on and off, over loopback, where memory is offered,
# and between two network namespaces, with IPv4 and IPv6: messages and RDMA of up to 1 MiB both ways,
# the Terminate of each fault that a program can cause, with its code, and rejections. Makes its own
# namespaces and removes them. Exit 77, with the reason, where that cannot be done.
#
# Usage: capture_test.sh [directory of the program peer]
set -u

directory=${1:-${DAT_BUILDDIR:-.}/test/transport}
peer=$directory/peer
tag=${DAT_TEST_TAG:-dat}
here=$tag-$$-c
there=$tag-$$-d
export FI_PROVIDER=dat FI_DAT_TRANSPORT=soft
if [ -n "${DAT_BUILDDIR:-}" ]; then
    export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$DAT_BUILDDIR/.libs}
fi
source=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
. "$source/util/common.sh"
. "$source/test/transport/processes.sh"

skip() {
    echo "SKIP: $*"
    exit 77
}

capture=
clean_up() {
    [ -z "$capture" ] || kill "$capture" 2>/dev/null
    stop a
    stop b
    ip netns del "$here" 2>/dev/null
    ip netns del "$there" 2>/dev/null
    rm -rf "$pipes"
}

# --- sessions -------------------------------------------------------------------

# Each a connection of its own, with so many bytes of private data in the reply.
connect_pair() { # bytes
    expect a ok connect "$far" "$port" 100
    expect b 'connreq 100' event
    expect b ok accept "$1"
    expect a "connected $1" event
    expect b 'connected 0' event
}

end_pair() {
    expect a "shutdown $1 *" event
    expect b "shutdown $1 *" event
    expect a 'results *' finish
    expect b 'results *' finish
    expect a ok reset
    expect b ok reset
}

transfers() {
    local size there here
    connect_pair 484
    expect a 'ok *' region 1048576
    here=${answer#ok }
    expect b 'ok *' region 1048576
    there=${answer#ok }
    for size in 0 1 1000 1048576; do
        expect a ok recv 1 $size
        expect b ok recv 1 $size
        expect a ok send 1 $size
        expect b ok send 1 $size
        expect a 'results 2 0 0' finish
        expect b 'results 2 0 0' finish
        # Unquoted on purpose: an address and a key.
        # shellcheck disable=SC2086
        {
            expect a ok write $size $there
            expect b ok write $size $here
            expect a 'results 1 0 0' finish
            expect b 'results 1 0 0' finish
            expect a ok read $size $there
            expect b ok read $size $here
            expect a 'results 1 0 0' finish
            expect b 'results 1 0 0' finish
        }
    done
    expect a ok disconnect graceful
    end_pair 1
}

# Whose operation the other refuses by a Terminate, as of RFC 5040 4.8: layer, type, code.
refused() { # layer type code command...
    expect a ok "${@:4}"
    end_pair '*'
    echo "$1 $2 $3" >>"$pipes/faults"
}

# Of a connection without room for an offer, which stays on TCP everywhere.
fault() { # layer type code command...
    connect_pair 485
    refused "$@"
}

# The same of a region of the other, whose address and key are the last words.
fault_at() { # layer type code bytes-in which command...
    local address key
    connect_pair 485
    expect b 'ok *' region 1000 "$5"
    read -r address key <<<"${answer#ok }"
    refused "$1" "$2" "$3" "${@:6}" $((address + $4)) "$key"
}

too_long() {
    connect_pair 485
    expect b ok recv 1 10
    refused 1 2 5 send 1 11
}

# Of the key of a region, which is no window.
not_to_invalidate() {
    connect_pair 485
    expect b ok recv 1 10
    expect b 'ok *' region 1000
    refused 0 1 9 invalidate 10 "${answer##* }"
}

# DDP (1): tagged (1) and untagged (2) buffers; RDMAP (0): protection (1), operation (2).
faults() {
    : >"$pipes/faults"
    fault 1 1 0 write 1000 4096 1
    fault 0 1 0 read 1000 4096 1
    fault_at 1 1 1 0 both write 1001
    fault_at 0 1 1 0 both read 1001
    fault_at 0 1 2 0 read write 10
    fault_at 0 1 2 0 write read 10
    fault_at 1 1 2 0 apart write 10
    fault_at 0 1 3 0 apart read 10
    fault_at 0 2 255 4 both add
    too_long
    not_to_invalidate
}

rejected() {
    expect a ok connect "$far" "$port" 508
    expect b 'connreq 508' event
    expect b ok reject 508
    expect a 'error * 508' event
    expect a ok reset
}

# Behind the first that shares memory nothing is made over TCP any more.
sessions() {
    faults
    rejected
    transfers
}

# --- captures -------------------------------------------------------------------

# Many a port that a connection may come from is some other protocol's, 57000 that of IRC: MPA is looked for
# first, which begins with its key (RFC 5044 7.1).
look() { # words of tshark...
    tshark -n -o tcp.try_heuristic_first:TRUE "$@" 2>/dev/null
}

# Layer, type and code of each Terminate.
terminates() { # file
    look -r "$1" -Y 'iwarp_rdma.opcode == 7' -T fields -E occurrence=f -e iwarp_rdma.term_layer \
        -e iwarp_rdma.term_etype_rdma -e iwarp_rdma.term_etype_ddp -e iwarp_rdma.term_errcode_rdma \
        -e iwarp_rdma.term_errcode_ddp_tagged -e iwarp_rdma.term_errcode_ddp_untagged |
        while read -r layer type code; do echo $((layer)) $((type)) $((code)); done
}

# What tshark says of a file, in short: fields that say that something is wrong.
complaints() { # file
    look -r "$1" -V --disable-protocol rpcordma |
        grep -E 'Malformed|Bad CRC|bad length|Unknown opcode|Dissector bug'
}

# Waits until all that went so far is in the file: a connection to port 9 is the last of it.
until_captured() { # file
    local _
    ip netns exec "$here" bash -c "</dev/tcp/$far/9" 2>/dev/null
    for _ in $(seq 100); do
        ! look -r "$1" -Y 'tcp.dstport == 9' | grep -q . || return 0
        sleep 0.1
    done
    die 'nothing is captured any more'
}

captured() { # interface namespace-of-b address-of-a address-of-b
    local file=$pipes/$current.pcap kind
    far=$4
    ip netns exec "$here" dumpcap -q -B 64 -i "$1" -f tcp -w "$file" 2>"$pipes/dumpcap" &
    capture=$!
    until grep -qs "^File:" "$pipes/dumpcap"; do
        kill -0 $capture 2>/dev/null || die "dumpcap: $(cat "$pipes/dumpcap")"
        sleep 0.1
    done
    start a ip netns exec "$here" "$peer" "$3"
    start b ip netns exec "$2" "$peer" "$far"
    expect b 'ok *' listen
    port=${answer#ok }
    sessions
    tell a quit
    tell b quit
    wait "${pid[a]}" "${pid[b]}"
    stop_both
    until_captured "$file"
    kill $capture
    wait $capture
    capture=
    complaints "$file" >"$pipes/complaints"
    [ ! -s "$pipes/complaints" ] ||
        die "$(sort "$pipes/complaints" | uniq -c | head -n 10)"
    terminates "$file" >"$pipes/terminates"
    diff "$pipes/faults" "$pipes/terminates" ||
        die 'the faults (<) have other Terminates (>), layer, type and code'
    look -r "$file" -T fields -e iwarp_rdma.opcode | tr ',' '\n' |
        grep . | sort | uniq -c >"$pipes/opcodes"
    # RDMA Write, Read Request, Read Response, Send, Terminate; in memory there are but the
    # faults, which stay on TCP.
    for kind in ${5:-0 1 2 3 7}; do
        grep -qE " (0x0*)?$kind\$" "$pipes/opcodes" || die "no frame of opcode $kind"
    done
    echo "PASS: $current"
}

current=set-up
[ -x "$peer" ] || die "$peer is not there"
command -v tshark >/dev/null || skip 'there is no tshark'
pipes=$(mktemp -d) || exit 1
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
reason=$(make_namespaces "$here" "$there") || skip "$reason"
ip -n "$here" link set lo up
for crc in default on off; do
    if [ $crc = default ]; then unset FI_DAT_CRC; else export FI_DAT_CRC=$crc; fi
    current=wire_ipv4_$crc
    captured wire "$there" 192.0.2.1 192.0.2.2
    current=memory_ipv6_$crc
    captured lo "$here" ::1 ::1 '0 1 3 7'
done
unset FI_DAT_CRC
current=wire_ipv6
captured wire "$there" 2001:db8::1 2001:db8::2
current=memory_ipv4
captured lo "$here" 127.0.0.1 127.0.0.1 '0 1 3 7'
