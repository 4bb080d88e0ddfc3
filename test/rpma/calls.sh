#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Compares this librpma with the genuine one, call by call: a server and a client go through the
# same scenarios (calls.cpp), each with either library, over what DAT_TRANSPORT names, and each
# call has to give what it gives where both ends are genuine. What is different on purpose is in
# calls.differences, with its reason; a line there that no run meets is a failure as well. Needs
# an RDMA device, since the genuine library does.
#
#   calls.sh [GENUINE]
#
#   GENUINE   the folder of the genuine library; by default where the system has it
#
# DAT_RPMA_KEEP=DIR   copies the transcripts there
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ours=$(cd "${DAT_BUILDDIR:-.}/.libs" && pwd) || exit 2
program=${DAT_BUILDDIR:-.}/test/rpma/.libs/rpma_calls
genuine=${1:-}
if [ -z "$genuine" ]; then
    genuine=$(/sbin/ldconfig -p | sed -n 's,.*librpma\.so\.0 .* => \(/.*\)/librpma\.so\.0$,\1,p' | head -n 1)
fi
[ -f "$genuine/librpma.so.0" ] || {
    echo 'there is no genuine librpma.so.0 (Debian: librpma0)' >&2
    exit 1
}
[ -x "$program" ] || program=${DAT_BUILDDIR:-.}/test/rpma/rpma_calls
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
failed=0

library() { if [ "$1" = d ]; then echo "$ours"; else echo "$genuine"; fi; }

# Each line gets the number of its repetition, so that it can be found: scenario|what#2.
keyed() { # transcript
    awk -F '|' '{key = $1 "|" $2; n = ++seen[key]; print key (n > 1 ? "#" n : "") "\t" $3}' "$1"
}

# Which library that end had is what was asked for.
has_library() { # transcript d|g
    grep -qF "library|file|$(library "$2")/" "$1"
}

for pairing in gg dg gd dd; do
    echo "server: ${pairing:0:1}, client: ${pairing:1:1} (d: this library, g: the genuine one)"
    timeout -k 5 200 "$program" "$work/$pairing" "$(library "${pairing:0:1}")" \
        "$(library "${pairing:1:1}")" || failed=1
    for end in server client; do
        which=${pairing:0:1}
        [ $end = server ] || which=${pairing:1:1}
        if ! has_library "$work/$pairing.$end" "$which"; then
            echo "FAIL: the $end has another library than it was given"
            failed=1
        fi
        keyed "$work/$pairing.$end" | grep -v '^library|' >"$work/$pairing.$end.keyed"
        if ! grep -q '^end|reached' "$work/$pairing.$end.keyed"; then
            echo "FAIL: the $end stopped behind: $(tail -n 1 "$work/$pairing.$end.keyed")"
            failed=1
        fi
    done
done
[ -z "${DAT_RPMA_KEEP:-}" ] || cp "$work"/*.server "$work"/*.client "$DAT_RPMA_KEEP"

# What differs from both ends genuine: pairing, end, key, genuine value, value.
: >"$work/different"
calls=0
for pairing in dg gd dd; do
    for end in server client; do
        calls=$((calls + $(wc -l <"$work/$pairing.$end.keyed")))
        awk -F '\t' -v pairing=$pairing -v end=$end '
            NR == FNR {genuine[$1] = $2; next}
            {here[$1] = 1; if (!($1 in genuine)) {print pairing, end "\t" $1 "\tnot there\t" $2}
             else if (genuine[$1] != $2) {print pairing, end "\t" $1 "\t" genuine[$1] "\t" $2}}
            END {for (key in genuine) if (!(key in here)) print pairing, end "\t" key "\t" genuine[key] "\tnot there"}' \
            "$work/gg.$end.keyed" "$work/$pairing.$end.keyed" >>"$work/different"
    done
done

# A known one is a key, the genuine value, ours, and why; * stands for any text.
: >"$work/met"
unknown=0
while IFS=$'\t' read -r where key theirs value; do
    known=
    while IFS=$'\t' read -r of_key of_theirs of_value why; do
        case $of_key in '' | '#'*) continue ;; esac
        # Patterns on purpose.
        # shellcheck disable=SC2053
        if [[ $key == $of_key && $theirs == $of_theirs && $value == $of_value ]]; then
            known=$why
            echo "$of_key	$of_theirs	$of_value" >>"$work/met"
            break
        fi
    done <"$here/calls.differences"
    if [ -z "$known" ]; then
        echo "FAIL: $where: $key: genuine: $theirs, here: $value"
        unknown=$((unknown + 1))
    fi
done <"$work/different"
while IFS=$'\t' read -r of_key of_theirs of_value _; do
    case $of_key in '' | '#'*) continue ;; esac
    if ! grep -qxF "$of_key	$of_theirs	$of_value" "$work/met"; then
        echo "FAIL: calls.differences says of $of_key that it differs, and it does not"
        unknown=$((unknown + 1))
    fi
done <"$here/calls.differences"
echo "$calls results in three pairings, $(wc -l <"$work/different") differ from the genuine library," \
    "$unknown of them unknown"
[ $failed -eq 0 ] && [ $unknown -eq 0 ]
