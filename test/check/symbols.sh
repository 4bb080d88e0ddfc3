#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The module exports fi_prov_ini alone, and is linked to libfabric: without that
# it would get the oldest version of each libfabric function; of which it needs none that
# came after 1.17. libdat2 exports what its
# version script names and nothing else, all of it as DAT_2.0, under the soname that
# programs were linked to, and needs no libfabric.
# Usage: symbols.sh [MODULE [LIBDAT2]]; by default those that were built.
set -u
module=${1:-${DAT_BUILDDIR:-.}/.libs/libdat-fi.so}
libdat2=${2:-${DAT_BUILDDIR:-.}/.libs/libdat2.so.2}
map=${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}/prov/dat-shim/udat20/libdat2.map
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
    awk -F@ '/@FABRIC_/ {v = $NF; sub(/.*_1\./, "", v); if (v > 6) print} /^ofi_/ {print}')
if [ -n "$newer" ]; then
    echo "$module needs what libfabric 1.17 does not offer:"
    echo "$newer"
    exit 1
fi
echo "$module exports fi_prov_ini alone, is linked to libfabric, and needs none newer than 1.17"

[ -f "$libdat2" ] || { echo "$libdat2 is not there"; exit 1; }
wanted=$(sed -nE 's/^ +(dats?_[a-z0-9_]+);$/\1@@DAT_2.0/p' "$map" | sort)
exported=$(nm -D --defined-only "$libdat2" | awk '$2 != "A" {print $NF}' | sort)
if [ "$exported" != "$wanted" ]; then
    echo "$libdat2 does not export what $map names:"
    diff <(echo "$wanted") <(echo "$exported")
    exit 1
fi
if ! readelf -d "$libdat2" | grep -q 'SONAME.*\[libdat2\.so\.2\]'; then
    echo "$libdat2 is not named libdat2.so.2"
    exit 1
fi
if readelf -d "$libdat2" | grep -q 'NEEDED.*\[libfabric\.so\.'; then
    echo "$libdat2 is linked to libfabric"
    exit 1
fi
echo "$libdat2 exports $(echo "$wanted" | wc -l) functions as DAT_2.0, and needs no libfabric"
