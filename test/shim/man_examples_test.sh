#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The manual pages of calls: the example of each compiles, for both versions of the API and
# without a warning; and udat(3) has a line for each call of uDAPL 1.2 that the library
# exports. The lines of dat.conf in dat_migration(7) are adapters.
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

# The lines of dat.conf for classic names: each is an adapter. An uninstrumented program cannot be
# linked to a library that is sanitized.
build=${DAT_BUILDDIR:-.}/.libs
sed -n '/^\.SS Classic names/,/^\.SS Programs/p' "$root/man/dat_migration.7" | grep -E ' u[12]\.[02] ' |
    sed -e 's/\\-/-/g' -e 's/"eth0 0"/"lo 0"/' >"$work/conf"
cat >"$work/names.c" <<'END'
#include <netinet/in.h>
#ifdef API_12
#include <dat/udat.h>
#else
#include <dat2/udat.h>
#endif
#include <stdio.h>
int main(int argc, char** argv) {
    int i;
    for (i = 1; i < argc; ++i) {
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
        DAT_IA_HANDLE ia;
        if (dat_ia_open(argv[i], 8, &async, &ia) != DAT_SUCCESS ||
            dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) {
            printf("%s\n", argv[i]);
            return 1;
        }
    }
    return argc < 4;
}
END
open_names() { # version library define
    local names
    names=$(awk -v version="$1" '$2 == version {print $1}' "$work/conf")
    # Unquoted on purpose: a name a word.
    # shellcheck disable=SC2086
    cc -w $3 -I "$root/include" "$work/names.c" -L "$build" -l"$2" -o "$work/names" &&
        DAT_OVERRIDE=$work/conf LD_LIBRARY_PATH=$build "$work/names" $names >"$work/log" ||
        fail "an adapter of dat_migration(7) cannot be opened: $(cat "$work/log")"
}
if nm -D "$build/libdat2.so.2" | grep -qE '__(asan|tsan|ubsan)'; then
    echo 'adapters of dat_migration(7) are not opened: the library is sanitized'
else
    open_names u2.0 dat2 ''
    open_names u1.2 dat -DAPI_12
fi

while read -r call; do
    grep -q "^\\\\fB$call\\\\fR" "$root/man/udat.3" || fail "udat(3) does not have $call"
done < <(sed -nE 's/^ +(dat_[a-z0-9_]+);$/\1/p' "$root/prov/dat-shim/udat12/libdat.map")
echo "$count examples compile"
exit $failed
