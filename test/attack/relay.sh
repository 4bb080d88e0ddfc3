#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Two network namespaces and a relay between them that harms packets (relayed.cpp says how),
# with IPv4 and, at the same time, with IPv6. Before that a control: without CRC the parties
# have to see that bits were flipped, or they would not see it at all.
#
#   bash test/attack/relay.sh           each trial once, and some mixtures: about a minute
#   bash test/attack/relay.sh --long    an hour
#   bash test/attack/relay.sh --seconds 300
#
# Uses the build folder DAT_BUILDDIR; without it one is made, and removed. The lines that
# begin with | are rows for the table of test/README.md. Status 1: something was violated;
# 77, with the reason: namespaces or /dev/net/tun cannot be had.
set -u

seconds=40
case ${1:-} in
'') ;;
--long) seconds=3600 ;;
--seconds) seconds=${2:?} ;;
*)
    sed -n 's/^#   bash/usage: bash/p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac

. "$(dirname "${BASH_SOURCE[0]}")/build.sh"
need_program test/attack/relayed
program=$DAT_BUILDDIR/test/attack/relayed

control=$(FI_DAT_CRC=off "$program" --seconds 20 --trial 'flipped bits, many' 2>&1)
case $? in
1) echo 'control: without CRC flipped bits are seen' ;;
77)
    echo "$control"
    exit 77
    ;;
*)
    echo "$control"
    echo 'VIOLATION control: without CRC flipped bits are not seen, so the oracle is blind'
    exit 1
    ;;
esac

"$program" --family 6 --seconds "$seconds" &
v6=$!
status=0
"$program" --family 4 --seconds "$seconds" || status=1
wait "$v6" || status=1
exit $status
