#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The manual pages of calls: the example of each compiles, for both versions of the API and
# without a warning; and udat(3) has a line for each call of uDAPL 1.2 that the library
# exports. The lines of dat.conf in dat_migration(7) are adapters, and its limits those of one.
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
# The table of limits in dat_migration(7), as the adapter tells them.
cat >"$work/limits.c" <<'END'
#include <netinet/in.h>
#include <dat2/udat.h>
#include <stdio.h>
int main(void) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL, now;
    DAT_EP_HANDLE ep;
    DAT_IA_HANDLE ia;
    DAT_IA_ATTR attr;
    DAT_EP_PARAM param;
    DAT_PROVIDER_ATTR provider;
    if (dat_ia_open("lo", 8, &async, &ia) != DAT_SUCCESS ||
        dat_ia_query(ia, &now, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider) != DAT_SUCCESS ||
        dat_ep_create(ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL, &ep) !=
            DAT_SUCCESS ||
        dat_ep_query(ep, DAT_EP_FIELD_ALL, &param) != DAT_SUCCESS || attr.max_rdma_size != attr.max_message_size ||
        param.ep_attr.max_recv_dtos != param.ep_attr.max_request_dtos ||
        param.ep_attr.max_rdma_read_in != param.ep_attr.max_rdma_read_out) {
        return 1;
    }
    printf("event dispatcher\t%d events\n", attr.max_evd_qlen);
    printf("shared receive queue\t%d receives\n", attr.max_recv_per_srq);
    printf("segments of a request or receive\t%d\n", attr.max_iov_segments_per_dto);
    printf("message, RDMA\t%d GiB less 1 byte\n", (int)(((unsigned long long)attr.max_message_size + 1) >> 30));
    printf("private data\t%d bytes of each of connect and accept, of a reject in uDAPL 2.0\n",
           provider.max_private_data_size);
    printf("operations of an endpoint\t%d requests and %d receives\n", attr.max_dto_per_ep, attr.max_dto_per_ep);
    printf("the same without attributes\t%d of each, %d RDMA reads in each direction\n",
           param.ep_attr.max_recv_dtos, param.ep_attr.max_rdma_read_in);
    return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS;
}
END
compare_limits() {
    sed -n '/^\.SS Limits/,/^\.TE/p' "$root/man/dat_migration.7" | grep "$(printf '\t')" >"$work/written"
    cc -Wall -Werror -I "$root/include" "$work/limits.c" -L "$build" -ldat2 -o "$work/limits" || fail 'limits.c'
    LD_LIBRARY_PATH=$build FI_DAT_TRANSPORT=soft "$work/limits" >"$work/told" || fail 'the limits are not told'
    diff "$work/written" "$work/told" || fail 'dat_migration(7) has other limits (<) than dat_ia_query tells (>)'
}
if nm -D "$build/libdat2.so.2" | grep -qE '__(asan|tsan|ubsan)'; then
    echo 'adapters of dat_migration(7) are not opened: the library is sanitized'
else
    compare_limits
    open_names u2.0 dat2 ''
    open_names u1.2 dat -DAPI_12
fi

while read -r call; do
    grep -q "^\\\\fB$call\\\\fR" "$root/man/udat.3" || fail "udat(3) does not have $call"
done < <(sed -nE 's/^ +(dat_[a-z0-9_]+);$/\1/p' "$root/prov/dat-shim/udat12/libdat.map")
echo "$count examples compile"
exit $failed
