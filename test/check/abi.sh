#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What was released stays: each soname and each symbol, with its version, that the libraries of a
# release had (test/spec/abi/VERSION/symbols) is in those that were built; and fi_ext_dat.h of a
# release (beside it) is a part of the present one: no constant has another value, no member
# another place. The types of uDAPL are compared by test/shim/abi_test.sh.
#
#   abi.sh [--record VERSION]   records the libraries that were built as those of a release
set -u

build=${DAT_BUILDDIR:-.}
build=$(cd "$build" && pwd)
. "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
spec=test/spec/abi
libraries="$build/.libs"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# "FILE SONAME", and "FILE SYMBOL@VERSION" of each exported function.
symbols_of() { # file
    local name=${1##*/}
    echo "$name soname $(readelf -dW "$1" | sed -n 's/.*Library soname: \[\(.*\)\].*/\1/p')"
    # A default one (@@) serves who asks for it, as any other does.
    nm -D --defined-only "$1" | awk -v file="$name" '$2 != "A" {sub(/@@/, "@", $NF); print file, $NF}'
}
files=(libdat-fi.so)
[ "${DAT_UDAPL:-yes}" = no ] || files+=(libdat2.so.2 libdat.so.1)
[ "${DAT_RPMA:-yes}" = no ] || files+=(librpma.so.0)
for file in "${files[@]}"; do
    [ -f "$libraries/$file" ] || { echo "$libraries/$file is not there"; exit 1; }
    symbols_of "$libraries/$file" >>"$work/unsorted"
done
LC_ALL=C sort "$work/unsorted" >"$work/symbols"

if [ "${1:-}" = --record ]; then
    mkdir -p "$spec/${2:?names a version}/rdma" && cp "$work/symbols" "$spec/$2/symbols" &&
        cp include/rdma/fi_ext_dat.h "$spec/$2/rdma/"
    exit
fi

bad=0
releases=0
for folder in "$spec"/*/; do
    release=$(basename "$folder")
    releases=$((releases + 1))
    grep -E "^($(IFS='|'; echo "${files[*]}")) " "$folder/symbols" | LC_ALL=C sort >"$work/were"
    gone=$(LC_ALL=C comm -23 "$work/were" "$work/symbols")
    [ -z "$gone" ] || { echo "version $release had, and this one has not:"; echo "$gone"; bad=1; }
    [ -s "$work/were" ] || { echo "$folder/symbols names none of ${files[*]}"; bad=1; }

    # Every constant and member of the old header, as both headers have it.
    header=$work/header # without comments
    cc -fpreprocessed -dD -E -P "$folder/rdma/fi_ext_dat.h" >"$header" 2>/dev/null
    {
        echo '#include <rdma/fi_ext_dat.h>'
        echo '#include <stdio.h>'
        echo 'int main(void) {'
        grep -oE '^#define FI_DAT_[A-Z0-9_]+ +[^ ]' "$header" | awk '{print $2}' |
            grep -v '_OPS$\|_VERSION' | sed 's/.*/printf("& %llx\\n", (unsigned long long)(&));/'
        grep -oE '^ +FI_DAT_[A-Z0-9_]+( =|,)' "$header" | grep -oE '[A-Z0-9_]+' |
            sed 's/.*/printf("& %llx\\n", (unsigned long long)(&));/'
        awk '/^struct [a-z_]+ \{/ {type = $2}
             /^};/ {type = ""}
             type == "" {next}
             match($0, /\(\*[a-z_]+\)/) {member = substr($0, RSTART + 2, RLENGTH - 3)}
             !/\(\*/ && match($0, /[a-z_]+;/) {member = substr($0, RSTART, RLENGTH - 1)}
             member != "" {print type, member; member = ""}' "$header" |
            sed -E 's/(.*) (.*)/printf("\1.\2 %zu %zu\\n", offsetof(struct \1, \2), sizeof(((struct \1*)0)->\2));/'
        echo 'return 0; }'
    } >"$work/probe.c"
    if cc -w -I "$folder" "$work/probe.c" -o "$work/old" 2>"$work/log" &&
        cc -w -I include "$work/probe.c" -o "$work/new" 2>"$work/log"; then
        "$work/old" >"$work/old.out"
        "$work/new" >"$work/new.out"
        diff "$work/old.out" "$work/new.out" || { echo "fi_ext_dat.h differs from that of $release (<)"; bad=1; }
        [ "$(wc -l <"$work/old.out")" -gt 100 ] || { echo "only few values were compared"; bad=1; }
    else
        cat "$work/log"
        echo "what fi_ext_dat.h of $release has is not all in the present one"
        bad=1
    fi
done
[ $releases -gt 0 ] || { echo "$spec has no release"; bad=1; }
[ $bad -eq 0 ] && echo "$releases releases, $(wc -l <"$work/symbols") symbols now, $(wc -l <"$work/old.out") values of fi_ext_dat.h as they were"
exit $bad
