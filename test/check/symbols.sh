#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The module exports fi_prov_ini alone, and is linked to libfabric: without that
# it would get the oldest version of each libfabric function; it needs none that came after
# 1.17. libdat and libdat2 export what
# their version scripts name and nothing else, all of it as DAT_1.2 or DAT_2.0, under the
# soname that programs were linked to, and need no libfabric; libdat the same functions as
# SUNW_1.1 too. They reach none of them by way of the dynamic linker.
# Usage: symbols.sh [MODULE [FOLDER OF THE LIBRARIES]]; by default those that were built.
set -u
module=${1:-${DAT_BUILDDIR:-.}/.libs/libdat-fi.so}
libraries=${2:-${DAT_BUILDDIR:-.}/.libs}
shim=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}/prov/dat-shim
[ -f "$module" ] || { echo "$module is not there"; exit 1; }

exported=$(nm -D --defined-only "$module" | awk '{print $NF}' | sort)
if [ "$exported" != fi_prov_ini ]; then
    echo "$module must export fi_prov_ini alone, and exports:"
    echo "${exported:-nothing}"
    exit 1
fi
if ! readelf -d "$module" | grep -q 'NEEDED.*\[libfabric\.so\.'; then
    echo "$module is not linked to libfabric"
    exit 1
fi
# One binary for libfabric 1.17 and later: nothing newer than 1.17 has, and nothing that
# libfabric keeps to itself.
newer=$(nm -D --undefined-only "$module" | awk '{print $NF}' |
    awk -F@ '/@FABRIC_/ {v = $NF; sub(/.*_1\./, "", v); if (v + 0 > 6) print} /^ofi_/ {print}')
if [ -n "$newer" ]; then
    echo "$module needs what libfabric 1.17 does not offer:"
    echo "$newer"
    exit 1
fi
echo "$module exports fi_prov_ini alone, is linked to libfabric, and needs none newer than 1.17"

check_library() { # soname map version [another version]
    local library=$libraries/$1 map=$2 version=$3 another=${4:-} wanted exported called
    [ -f "$library" ] || { echo "$library is not there"; exit 1; }
    wanted=$(sed -nE "s/^ +(dats?_[a-z0-9_]+);\$/ \1@@$version${another:+ \1@$another}/p" "$map" | sort)
    # A line for each function, with all that it is exported as.
    exported=$(nm -D --defined-only "$library" | LC_ALL=C sort -k 3 |
        awk '$2 != "A" {names[$1] = names[$1] " " $NF} END {for (at in names) print names[at]}' | sort)
    if [ "$exported" != "$wanted" ]; then
        echo "$library does not export what $map names:"
        diff <(echo "$wanted") <(echo "$exported")
        exit 1
    fi
    called=$(readelf -rW "$library" | grep -oE '\bdats?_[a-z0-9_]+\b.*')
    if [ -n "$called" ]; then
        echo "$library reaches its own functions by way of the dynamic linker:"
        echo "$called"
        exit 1
    fi
    if ! readelf -d "$library" | grep -F 'SONAME' | grep -qF "[$1]"; then
        echo "$library is not named $1"
        exit 1
    fi
    if readelf -d "$library" | grep -q 'NEEDED.*\[libfabric\.so\.'; then
        echo "$library is linked to libfabric"
        exit 1
    fi
    echo "$library exports $(echo "$wanted" | wc -l) functions as $version${another:+ and $another}," \
        "and needs no libfabric"
}
[ "${DAT_UDAPL:-yes}" != no ] || exit 0 # neither of them was built
check_library libdat2.so.2 "$shim/udat20/libdat2.map" DAT_2.0
check_library libdat.so.1 "$shim/udat12/libdat.map" DAT_1.2 SUNW_1.1
