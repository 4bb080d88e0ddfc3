#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The binary interface of librpma 1.2: the symbols of the library with their version, and the
# values and sizes of its header, are those of test/spec/rpma-abi.txt, which were taken from the
# genuine one.
set -u

root=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}
library=${DAT_BUILDDIR:-.}/.libs/librpma.so.0
table=$root/test/spec/rpma-abi.txt
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

sed -n 's/^symbol //p' "$table" >"$work/wanted"
nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sort >"$work/found"
diff "$work/wanted" "$work/found" >"$work/difference" || {
    echo 'FAIL: symbols that are missing (<), or are too many (>)'
    cat "$work/difference"
    status=1
}
readelf -d "$library" | grep -q 'SONAME.*\[librpma\.so\.0\]' || {
    echo 'FAIL: its name is not librpma.so.0'
    status=1
}

{
    echo '#include <librpma.h>'
    sed -n 's/^value \(.*\) \([^ ]*\)$/_Static_assert((long)(\1) == \2, "\1 is \2");/p' "$table"
} >"$work/values.c"
cc -std=c11 -I"$root/include" -fsyntax-only "$work/values.c" || status=1
echo "$(wc -l <"$work/wanted") symbols, $(grep -c ^value "$table") values"
exit $status
