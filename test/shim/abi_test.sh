#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The headers of uDAPL 2.0 are what programs were compiled with: every size, offset and
# value as test/spec/dat2-abi.txt has it, and, where Debian's are installed (libdapl-dev),
# those as well and each function of the same type. And libdat2 exports all that Debian's
# does. A program in C and one in C++ compile against them.
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
build=${DAT_BUILDDIR:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# The headers under $2 (nothing: the system's) have what the table says.
probe() { # name [include path]
    local flags=(-std=gnu11 -w)
    [ -z "${2:-}" ] || flags+=(-I "$2")
    if ! cc "${flags[@]}" "$work/abi.c" -o "$work/abi" 2>"$work/log"; then
        fail "the probe does not compile against $1"
        head "$work/log"
    elif ! "$work/abi" >"$work/log"; then
        fail "$1 differ from the table"
        cat "$work/log"
    else
        echo "$1: $(tail -n 1 "$work/log")"
    fi
}

command -v cc >/dev/null || { echo 'SKIP: there is no C compiler'; exit 77; }
awk -f "$root/test/shim/abi.awk" "$root/test/spec/dat2-abi.txt" >"$work/abi.c"
probe 'own headers' "$root/include"

cat >"$work/program.c" <<'END'
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
int main(void) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    static DAT_DTO_COOKIE cookie;
    static DAT_RMR_TRIPLET remote;
    const char* words;
    if (dat_ia_open((char*)"no such adapter", 8, &async, &ia) == DAT_SUCCESS) {
        return 1;
    }
    dat_strerror_ext_status(DAT_OP_SUCCESS, &words);
    return dat_ib_post_rdma_write_immed(NULL, 0, NULL, cookie, &remote, 1,
                                        DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS;
}
END
# An uninstrumented program cannot be linked to a library that is.
sanitized=$(nm -D "$build/.libs/libdat2.so.2" | grep -cE '__(asan|tsan|ubsan)')
for compiler in 'cc -std=gnu11' 'c++ -x c++'; do
    linked=(-o "$work/program" -x none "$build/.libs/libdat2.so.2")
    [ "$sanitized" -eq 0 ] || linked=(-fsyntax-only)
    $compiler -Wall -Wextra -Werror -I "$root/include" "$work/program.c" "${linked[@]}" \
        2>"$work/log" || {
        fail "a program does not compile with $compiler"
        head "$work/log"
        continue
    }
    [ "$sanitized" -eq 0 ] || continue
    LD_LIBRARY_PATH=$build/.libs "$work/program" || fail "the program of $compiler: status $?"
done

if [ -f /usr/include/dat2/udat.h ]; then
    probe 'Debian headers'
    awk -f "$root/test/shim/prototypes.awk" "$root"/include/dat2/{dat_error,dat,udat,dat_registry}.h \
        >"$work/prototypes.c"
    for place in "$root/include" ''; do
        cc -std=gnu11 ${place:+-I "$place"} -fsyntax-only "$work/prototypes.c" 2>"$work/log" || {
            fail "functions differ${place:+ from themselves}"
            head "$work/log"
        }
    done
    echo "types of functions: $(tail -n 1 "$work/prototypes.c")"
else
    echo 'not compared with Debian: libdapl-dev is not installed'
fi

exports() { nm -D --defined-only "$1" | awk '$2 == "T" {print $3}' | sed 's/@@/@/' | sort; }
for reference in /usr/lib/*/libdat2.so.2; do
    [ -f "$reference" ] || continue
    missing=$(comm -23 <(exports "$reference") <(exports "$build/.libs/libdat2.so.2"))
    [ -z "$missing" ] || fail "not exported: $missing"
    echo "exports all $(exports "$reference" | wc -l) functions of $reference"
done
exit $failed
