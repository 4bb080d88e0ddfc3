#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The headers of uDAPL 1.2 and 2.0 are what programs were compiled with: every size, offset
# and value as test/spec/dat12-abi.txt and dat2-abi.txt have it, and, where Debian's of 2.0
# are installed (libdapl-dev), those as well (headers_test.sh compares all that they have). And
# libdat2 exports all that Debian's does. A program in C and one in C++ compile against each, and a
# source file that mixes them does not.
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

# The headers of folder dat or dat2 under $3 (nothing: the system's) have what its table says.
probe() { # name dat|dat2 [include path]
    local flags=(-std=gnu11 -w) table=$root/test/spec/dat2-abi.txt least=1300
    [ -z "${3:-}" ] || flags+=(-I "$3")
    [ "$2" = dat2 ] || { table=$root/test/spec/dat12-abi.txt least=1163; }
    awk -v folder="$2" -v least=$least -f "$root/test/shim/abi.awk" "$table" >"$work/abi.c"
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
probe 'own headers of 2.0' dat2 "$root/include"
probe 'own headers of 1.2' dat "$root/include"

cat >"$work/dat2.c" <<'END'
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
cat >"$work/dat.c" <<'END'
#include <dat/udat.h>
#include <dat/dat_registry.h>
int main(void) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    DAT_IA_ATTR attr;
    attr.max_mtu_size = 0; /* names of DAT 1.0 */
    attr.max_rdma_read_per_ep = (DAT_COUNT)attr.max_mtu_size;
    return dat_ia_open((char*)"no such adapter", 8, &async, &ia) == DAT_SUCCESS ||
           dat_cr_reject(NULL) == DAT_SUCCESS || attr.max_rdma_read_per_ep;
}
END
# An uninstrumented program cannot be linked to a library that is.
sanitized=$(nm -D "$build/.libs/libdat2.so.2" | grep -cE '__(asan|tsan|ubsan)')
compile() { # dat|dat2 compiler...
    local name=$1 linked=(-o "$work/program" -x none -L "$build/.libs" "-l$1")
    shift
    [ "$sanitized" -eq 0 ] || linked=(-fsyntax-only)
    "$@" -Wall -Wextra -Werror -I "$root/include" "$work/$name.c" "${linked[@]}" 2>"$work/log" || {
        fail "a program does not compile with $* for $name"
        head "$work/log"
        return
    }
    [ "$sanitized" -eq 0 ] || return
    LD_LIBRARY_PATH=$build/.libs "$work/program" || fail "the program of $* for $name: status $?"
}
for name in dat dat2; do
    compile $name cc -std=gnu11
    compile $name c++ -x c++
done
compile dat cc -std=c99 -pedantic-errors -D_DEFAULT_SOURCE

for mix in 'dat dat2' 'dat2 dat'; do
    printf '#include <%s/udat.h>\n' $mix >"$work/mix.c"
    if cc -I "$root/include" -fsyntax-only "$work/mix.c" 2>"$work/log"; then
        fail "a source file may include the headers of both: $mix"
    elif ! grep -q 'error: #error a source file is for uDAPL 1.2, .* or for uDAPL 2.0' "$work/log"; then
        fail "what is wrong with a mix of headers is not said"
        cat "$work/log"
    fi
done

# A program of 2.0 that is given the library of 1.2 does not start, and says what it lacks:
# the versions of the symbols keep it from calls of other layouts.
if [ "$sanitized" -eq 0 ]; then
    cc -I "$root/include" "$work/dat2.c" -o "$work/program" -L "$build/.libs" -ldat2 &&
        mkdir "$work/wrong" && cp -L "$build/.libs/libdat.so.1" "$work/wrong/libdat2.so.2"
    LD_LIBRARY_PATH=$work/wrong "$work/program" 2>"$work/log" &&
        fail 'a program of 2.0 runs on the library of 1.2'
    grep -q "version .DAT_2.0' not found" "$work/log" || {
        fail 'a program of 2.0 on the library of 1.2 does not say what it lacks'
        cat "$work/log"
    }
fi

if [ -f /usr/include/dat2/udat.h ]; then
    probe 'Debian headers' dat2
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
