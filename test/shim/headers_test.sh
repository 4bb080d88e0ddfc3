#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What compiles against Debian's headers of uDAPL 2.0 compiles against ours, to the same program: each
# type, tag, member, enumerator and function of theirs has the same name, size, offset and value in
# ours (abidiff, from the debugging information), and each macro exists, with the same value where it
# has one. Exit 77, with the reason, where libdapl-dev or abigail-tools are not installed.
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

[ -f /usr/include/dat2/udat.h ] || { echo 'SKIP: libdapl-dev is not installed'; exit 77; }
command -v abidiff >/dev/null || { echo 'SKIP: there is no abidiff (Debian: abigail-tools)'; exit 77; }

# The last includes what Debian's of extensions do without.
cat >"$work/headers.h" <<'END'
#include <netinet/in.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
END
echo 'int dat_abi;' >"$work/anchor.c"
declare -A include=([ours]="-I$root/include" [theirs]="" [renamed]="-I$work/renamed" [moved]="-I$work/moved")

compile() { # ours|theirs|renamed|moved arguments...
    local whose=$1
    shift
    # Unquoted on purpose: none, or one.
    # shellcheck disable=SC2086
    cc -std=gnu11 -w ${include[$whose]} -include "$work/headers.h" "$@"
}

# --- types and functions ------------------------------------------------------------

# Of ours, with a tag of another name, and with two members that have changed places: both are
# to be found.
cp -r "$root/include" "$work/renamed" && cp -r "$root/include" "$work/moved" &&
    sed -i 's/enum dat_close_flags/enum dat_closing_flags/' "$work/renamed/dat2/dat.h" &&
    sed -i '/DAT_COUNT max_recv_dtos;/{h;d};/DAT_COUNT max_request_dtos;/G' "$work/moved/dat2/dat.h" ||
    exit 1
for whose in ours theirs renamed moved; do
    compile $whose -g -fno-eliminate-unused-debug-types -shared -fPIC "$work/anchor.c" \
        -o "$work/$whose.so" || fail "headers ($whose) do not compile"
done
# Whether those that are named differ, for a program, from Debian's. 1 and 2 of abidiff's exit status
# are errors of its own; 4, that something differs, is set too where ours have more.
differ() { # ours|renamed|moved
    local status=0
    abidiff --harmless --non-reachable-types "$work/theirs.so" "$work/$1.so" >"$work/types" || status=$?
    if [ $((status & 3)) -ne 0 ]; then
        fail "abidiff of theirs and $1 ends with $status"
    fi
    grep -Eq '^ *\[D\]|size changed|offset changed|name changed|value|enumerator (deletion|change)|data member deletion' \
        "$work/types"
}
if differ ours; then
    fail 'types of theirs are none, or others, in ours:'
    sed 's/^/    /' "$work/types"
fi
for whose in renamed moved; do
    differ $whose || fail "nothing is found in headers that differ ($whose)"
done
count=$(compile theirs -E -P "$work/anchor.c" | grep -c '^typedef')
[ "$count" -gt 200 ] || fail "only $count types are compared"
echo "types: $count definitions of theirs are in ours"

# The same, of declarations: a declaration of each is enough to compare them.
compile theirs -E -P "$work/anchor.c" | tr '\n' ' ' | tr ';' '\n' |
    grep -E '^ *extern *DAT_RETURN *dat_[a-z_0-9]+ *\(' | sed 's/$/;/' >"$work/functions"
count=$(wc -l <"$work/functions")
[ "$count" -gt 60 ] || fail "only $count functions are compared"
compile ours -fsyntax-only -x c "$work/functions" 2>"$work/log" || {
    fail 'functions of theirs have other types in ours:'
    head "$work/log"
}
echo "functions: $count of theirs are in ours"

# --- macros --------------------------------------------------------------------------

macros() { # ours|theirs
    compile "$1" -dM -E "$work/anchor.c" | sort >"$work/$1.all"
}
macros ours
macros theirs
cc -std=gnu11 -dM -E -include netinet/in.h "$work/anchor.c" | sort >"$work/system"
comm -23 "$work/theirs.all" "$work/system" >"$work/theirs.macros"
name_of() { awk '{sub(/\(.*/, "", $2); print $2}' | sort -u; }
# Those that keep a header from being read twice are a header's own.
missing=$(comm -23 <(name_of <"$work/theirs.macros" | grep -v '_H_*$') <(name_of <"$work/ours.all"))
[ -z "$missing" ] || fail "macros of theirs that ours have not:" $missing

# Each that is a constant says its value.
awk 'NF > 2 && $2 !~ /\(|^__|^dat_/ {print $2}' "$work/theirs.macros" >"$work/names"
values() { # ours|theirs
    cp "$work/names" "$work/tried"
    # What is no constant is an error of its line, and is left out.
    awk '{printf "char value_%d[((long long)(%s) & 1) + 1];\n", NR, $1}' "$work/tried" >"$work/values.c"
    # Without macros, which an error would be attributed to.
    compile "$1" -E "$work/values.c" |
        cc -std=gnu11 -w -fsyntax-only -fmax-errors=0 -x cpp-output - 2>"$work/log"
    grep -oE '^[^:]*values\.c:[0-9]+' "$work/log" | sed 's/.*://' | sort -un >"$work/bad"
    awk 'NR == FNR {bad[$1]; next} !(FNR in bad)' "$work/bad" "$work/tried" >"$work/constants"
    {
        echo '#include <stdio.h>'
        echo 'int main(void) {'
        awk '{printf "printf(\"%s %%lld\\n\", (long long)(%s));\n", $1, $1}' "$work/constants"
        echo 'return 0; }'
    } >"$work/print.c"
    compile "$1" "$work/print.c" -o "$work/print" && "$work/print"
}
values ours >"$work/ours.values"
values theirs >"$work/theirs.values"
count=$(wc -l <"$work/theirs.values")
[ "$count" -gt 150 ] || fail "only $count macros are compared"
other=$(comm -23 <(sort "$work/theirs.values") <(sort "$work/ours.values"))
[ -z "$other" ] || fail "macros that have another value in theirs:" "$other"
echo "macros: $(name_of <"$work/theirs.macros" | wc -l) of theirs are in ours, $count with a value"
exit $failed
