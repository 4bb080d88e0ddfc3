#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Peers of reliable datagram endpoints: random runs, and every world of each size that this build
# can afford, keep every rule. Without a safeguard the search, or the random runs, find a
# violation, which comes again when it is replayed: the proof that they can find one. The page
# of the table is that which sim_rdm prints.
set -u

sim=${DAT_BUILDDIR:-.}/sim_rdm
failed=0
fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

"$sim" --page | diff -u "${DAT_SRCDIR:-.}/prov/dat/core/RDM_STATES.md" - ||
    fail "prov/dat/core/RDM_STATES.md is not what sim_rdm --page prints"
"$sim" --runs 3000 || fail "random runs"
for size in $("$sim" --list); do
    echo "== $size"
    "$sim" --search "$size" || fail "$size"
done

# Each fault with a world in which the search finds it.
declare -A world=([both_accept]=crossing [both_refuse]=crossing [send_unconfirmed]=one
    [any_identity]=release [any_number]=calm [send_again]=one [late_counts]=one
    [lose_queued]=one [keep_receives]=receives [just_leave]=calm [agree_always]=release
    [no_expect]=one [no_limit]=one)

again() { # FAULT COMMAND...: finds something, and its replay finds the same
    local fault=$1 found rule replay
    shift
    found=$("$sim" "$@" --fault "$fault")
    [ $? -eq 1 ] || fail "$fault: not found by $*"
    rule=$(sed -n 's/^host .: //p' <<<"$found" | sort -u)
    read -ra replay <<<"$(sed -n 's/^replay: sim_rdm //p' <<<"$found")"
    [ -n "$rule" ] && [ "$("$sim" "${replay[@]}" | sed -n 's/^host .: //p' | sort -u)" = "$rule" ] ||
        fail "$fault: does not replay: ${replay[*]}"
    echo "$fault, $1: $(tail -n 2 <<<"$found" | head -n 1) ($(tr '\n' ';' <<<"$rule"))"
}
for fault in $("$sim" --fault list); do
    [ "$fault" = none ] && continue
    again "$fault" --search "${world[$fault]:?no world for $fault}"
    again "$fault" --runs 3000
done

echo "$failed failed"
[ $failed -eq 0 ]
