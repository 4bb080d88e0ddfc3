#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The committed state page and manual page are what dat_states prints, and
# dat_states answers bad usage with one line and exit status 2.
# To mend a page: dat_states --format md >prov/dat/core/STATES.md, and so on.
set -u
top=${DAT_SRCDIR:-.}
states=${DAT_BUILDDIR:-.}/dat_states
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}

same() { # FORMAT FILE
    "$states" --format "$1" | diff -u "$top/$2" - || fail "$2 is not what dat_states prints"
}
same md prov/dat/core/STATES.md
same man man/dat_ep_states.7

"$states" --help | grep -q '^Usage: dat_states' || fail '--help does not show the usage'

for wrong in '--format html' '--format'  '--nonsense' 'extra'; do
    # shellcheck disable=SC2086 # the words are arguments
    said=$("$states" $wrong 2>&1 >/dev/null)
    status=$?
    [ $status -eq 2 ] || fail "dat_states $wrong: exit status $status, not 2"
    [ "$(printf '%s\n' "$said" | wc -l)" -eq 1 ] || fail "dat_states $wrong: not one line: $said"
    [ -n "$said" ] || fail "dat_states $wrong: said nothing"
done
exit $failed
