#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The module exports fi_prov_ini alone, and is linked to libfabric: without that
# it would get the oldest version of each libfabric function.
# Usage: symbols.sh [MODULE]; by default the one that was built.
set -u
module=${1:-${DAT_BUILDDIR:-.}/.libs/libdat-fi.so}
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
