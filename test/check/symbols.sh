#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The module exports fi_prov_ini alone, and is linked to libfabric: without that
# it would get the oldest version of each libfabric function. libdat and libdat2 export what
# their version scripts name and nothing else, all of it as SUNW_1.1 or DAT_2.0, under the
# soname that programs were linked to, and need no libfabric.
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
echo "$module exports fi_prov_ini alone, and is linked to libfabric"

check_library() { # soname version map
    local library=$libraries/$1 version=$2 map=$3 wanted exported
    [ -f "$library" ] || { echo "$library is not there"; exit 1; }
    wanted=$(sed -nE "s/^ +(dats?_[a-z0-9_]+);\$/\1@@$version/p" "$map" | sort)
    exported=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $NF}' | sort)
    if [ "$exported" != "$wanted" ]; then
        echo "$library does not export what $map names:"
        diff <(echo "$wanted") <(echo "$exported")
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
    echo "$library exports $(echo "$wanted" | wc -l) functions as $version, and needs no libfabric"
}
check_library libdat2.so.2 DAT_2.0 "$shim/udat20/libdat2.map"
check_library libdat.so.1 SUNW_1.1 "$shim/udat12/libdat.map"
