#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The manual pages of calls: the example of each compiles, for both versions of the API and
# without a warning; and udat(3) has a line for each call of uDAPL 1.2 that the library
# exports.
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
count=0

fail() {
    echo "FAIL: $*"
    failed=1
}

command -v cc >/dev/null || { echo 'SKIP: there is no C compiler'; exit 77; }
for page in "$root"/man/dat_ep_*.3; do
    name=$(basename "$page" .3)
    # \- is a minus, \e a backslash.
    sed -n '/^\.SH EXAMPLES/,/^\.EE/p' "$page" | sed -e '1,/^\.EX/d' -e '/^\.EE/d' \
        -e 's/\\-/-/g' -e 's/\\e/\\/g' >"$work/dat.c"
    sed 's,<dat/,<dat2/,' "$work/dat.c" >"$work/dat2.c"
    grep -q "$name(" "$work/dat.c" || fail "the example of $name does not call it"
    for version in dat dat2; do
        if cc -std=c99 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -I "$root/include" \
            -include netinet/in.h -c "$work/$version.c" -o "$work/example.o" 2>"$work/log"; then
            count=$((count + 1))
        else
            fail "the example of $name does not compile with <$version/udat.h>"
            head "$work/log"
        fi
    done
done
[ $count -ge 14 ] || fail "only $count examples compile"

while read -r call; do
    grep -q "^\\\\fB$call\\\\fR" "$root/man/udat.3" || fail "udat(3) does not have $call"
done < <(sed -nE 's/^ +(dat_[a-z0-9_]+);$/\1/p' "$root/prov/dat-shim/udat12/libdat.map")
echo "$count examples compile"
exit $failed
