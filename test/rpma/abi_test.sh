#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# librpma.so.0 exports the 84 functions of librpma 1.2 and nothing else, all as LIBRPMA_1.0, under
# that soname, and needs no libfabric. librpma.h declares them, and its values and structures are
# those of test/spec/rpma-abi.txt; so are those of another librpma's header, where one is installed.
# Usage: abi_test.sh; `abi_test.sh HEADER` prints what a header declares.
set -u
root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
library=${DAT_BUILDDIR:-.}/.libs/librpma.so.0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
spec=$work/spec
grep -v '^#' "$root/test/spec/rpma-abi.txt" >"$spec"

values="RPMA_W_WAIT_FOR_COMPLETION RPMA_E_UNKNOWN RPMA_E_NOSUPP RPMA_E_PROVIDER RPMA_E_NOMEM
RPMA_E_INVAL RPMA_E_NO_COMPLETION RPMA_E_NO_EVENT RPMA_E_AGAIN RPMA_E_SHARED_CHANNEL
RPMA_E_NOT_SHARED_CHNL RPMA_DEFAULT_TIMEOUT_MS RPMA_UTIL_IBV_CONTEXT_LOCAL
RPMA_UTIL_IBV_CONTEXT_REMOTE RPMA_MR_USAGE_READ_SRC RPMA_MR_USAGE_READ_DST RPMA_MR_USAGE_WRITE_SRC
RPMA_MR_USAGE_WRITE_DST RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
RPMA_MR_USAGE_SEND RPMA_MR_USAGE_RECV RPMA_CONN_UNDEFINED RPMA_CONN_ESTABLISHED RPMA_CONN_CLOSED
RPMA_CONN_LOST RPMA_CONN_REJECTED RPMA_CONN_UNREACHABLE RPMA_F_COMPLETION_ON_ERROR
RPMA_F_COMPLETION_ALWAYS RPMA_ATOMIC_WRITE_ALIGNMENT RPMA_FLUSH_TYPE_PERSISTENT
RPMA_FLUSH_TYPE_VISIBILITY RPMA_LOG_DISABLED RPMA_LOG_LEVEL_FATAL RPMA_LOG_LEVEL_ERROR
RPMA_LOG_LEVEL_WARNING RPMA_LOG_LEVEL_NOTICE RPMA_LOG_LEVEL_INFO RPMA_LOG_LEVEL_DEBUG
RPMA_LOG_THRESHOLD RPMA_LOG_THRESHOLD_AUX RPMA_LOG_THRESHOLD_MAX"

# What the header declares: functions, one a line without spaces that mean nothing, then values,
# sizes and offsets.
describe() { # header
    ${CC:-cc} -E -P -x c "$1" >"$work/text" || return 1
    tr '\n\t' '  ' <"$work/text" | sed 's/;/;\n/g' |
        sed -nE 's/ +/ /g; s/ ?([*(),]) ?/\1/g; s/^ *(extern )?//; s/\((void)?\);/();/; /(^| |\*)rpma_[a-z0-9_]+\(/p' |
        grep -v -e '^typedef' -e '{' | LC_ALL=C sort
    {
        printf '#include <stddef.h>\n#include <stdio.h>\n#include "%s"\nint main(void) {\n' "$1"
        for name in $values; do
            printf 'printf("%%s %%ld\\n", "%s", (long)(%s));\n' "$name" "$name"
        done
        cat <<'C'
struct rpma_conn_private_data data;
printf("rpma_conn_private_data %zu: ptr %zu, len %zu of %zu\n", sizeof data,
       offsetof(struct rpma_conn_private_data, ptr), offsetof(struct rpma_conn_private_data, len),
       sizeof data.len);
rpma_log_function *log = RPMA_LOG_USE_DEFAULT_FUNCTION;
printf("rpma_log_function %s\n",
       _Generic(log, void (*)(enum rpma_log_level, const char *, const int, const char *,
                              const char *, ...): "is as expected", default: "differs"));
return 0;
}
C
    } >"$work/values.c"
    ${CC:-cc} -o "$work/values" "$work/values.c" && "$work/values"
}

if [ $# -eq 1 ]; then
    describe "$(realpath "$1")"
    exit
fi

bad=0
compare() { # what got
    if ! diff "$spec" "$2" >"$work/diff"; then
        echo "$1 is not as test/spec/rpma-abi.txt has it:"
        cat "$work/diff"
        bad=1
    fi
}
describe "$(realpath "$root/include/librpma.h")" >"$work/ours" || exit 1
compare include/librpma.h "$work/ours"
others=
if [ -f /usr/include/librpma.h ]; then
    describe /usr/include/librpma.h >"$work/theirs" || exit 1
    compare /usr/include/librpma.h "$work/theirs"
    others=', nor has /usr/include/librpma.h'
fi

wanted=$(grep -oE '\brpma_[a-z0-9_]+\(' "$spec" | tr -d '(' | LC_ALL=C sort)
[ "$(wc -l <<<"$wanted")" -eq 84 ] || { echo "test/spec/rpma-abi.txt has $(wc -l <<<"$wanted") functions, not 84"; bad=1; }
named=$(sed -nE 's/^ +(rpma_[a-z0-9_]+);$/\1/p' "$root/prov/rpma-shim/librpma.map" | LC_ALL=C sort)
diff <(echo "$wanted") <(echo "$named") || { echo 'prov/rpma-shim/librpma.map does not name these'; bad=1; }
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $NF}' | LC_ALL=C sort)
diff <(sed 's/$/@@LIBRPMA_1.0/' <<<"$wanted") <(echo "$exported") ||
    { echo "$library does not export these"; bad=1; }
readelf -d "$library" | grep -F SONAME | grep -qF '[librpma.so.0]' ||
    { echo "$library is not named librpma.so.0"; bad=1; }
if readelf -d "$library" | grep -q 'NEEDED.*\[libfabric\.so\.'; then
    echo "$library needs a libfabric"
    bad=1
fi
called=$(readelf -rW "$library" | grep -oE '\brpma_[a-z0-9_]+\b')
[ -z "$called" ] || { echo "$library reaches its own functions by way of the dynamic linker: $called"; bad=1; }
[ $bad -eq 0 ] && echo "librpma.so.0 exports 84 functions as LIBRPMA_1.0, and librpma.h differs in nothing$others"
exit $bad
