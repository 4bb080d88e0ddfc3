#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The exhaustive search: every world of each size that this build can afford
# keeps every rule, and without a safeguard the search finds a violation, whose
# path leads to the same one again. That is the proof that it can find one.
set -u

search=${DAT_BUILDDIR:-.}/sim_search
failed=0

for size in $("$search" --list); do
    echo "== $size"
    "$search" --size "$size" || failed=$((failed + 1))
done

# EP-67, CR-6, U-65, U-9, U-67
for fault in no_attempt_check forget_requester no_handshake_limit no_rnr_limit no_end_grace \
    end_grace_breaks; do
    echo "== full, $fault"
    found=$("$search" --size full --fault "$fault")
    status=$?
    echo "$found"
    rule=$(sed -n 's/^FAILED: //p' <<<"$found")
    path=$(sed -n 's/^replay: .* //p' <<<"$found")
    again=$("$search" --size full --fault "$fault" --replay "$path" | sed -n 's/^host .: //p')
    if [ $status -ne 1 ] || [ -z "$rule" ] || [ "$again" != "$rule" ]; then
        echo "$fault was not found, or does not replay: $again"
        failed=$((failed + 1))
    fi
done

echo "$failed failed"
[ $failed -eq 0 ]
