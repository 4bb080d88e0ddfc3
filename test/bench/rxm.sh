#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a message of Open MPI takes over `dat;ofi_rxm`, over shared memory and over TCP, beside
# `tcp;ofi_rxm`: half a round trip between two processes, in microseconds, the median of the
# rounds, which alternate. Prints a table in Markdown.
#
#   rxm.sh [--rounds N] BUILD
#
#   --rounds N  how often each is measured (default 5)
#   BUILD       a build folder, with -O2
#
# For a machine that does nothing else. Needs mpicxx and mpirun.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rounds=5
if [ "${1:-}" = --rounds ]; then
    rounds=${2:?}
    shift 2
fi
build=$(cd "${1:?usage: rxm.sh [--rounds N] BUILD}" && pwd)
[ -f "$build/.libs/libdat-fi.so" ] || { echo "$build/.libs/libdat-fi.so was not built" >&2; exit 1; }
export FI_PROVIDER_PATH=$build/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicxx -std=c++20 -O2 -DOMPI_SKIP_MPICXX "$here/mpi_latency.cpp" -o "$work/mpi_latency"

# One run; a line "WAY SIZE MICROSECONDS" for each size.
measure() { # way provider shared-memory
    local root=()
    [ "$(id -u)" -ne 0 ] || root=(--allow-run-as-root)
    FI_PROVIDER=$2 FI_DAT_SHM=$3 timeout 120 mpirun -np 2 --oversubscribe "${root[@]}" \
        --mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include "$2;ofi_rxm" \
        --mca opal_common_ofi_verbose 100 -x FI_PROVIDER -x FI_PROVIDER_PATH -x FI_DAT_SHM \
        "$work/mpi_latency" >"$work/out" 2>"$work/log" ||
        { tail -n 5 "$work/log" >&2; exit 1; }
    [ "$(cat "$work/out" "$work/log" | grep -cF "mtl:ofi:prov: $2;ofi_rxm")" -ge 2 ] ||
        { echo "Open MPI took another provider than $2;ofi_rxm" >&2; exit 1; }
    awk -v way="$1" 'NF == 2 && $1 ~ /^[0-9]+$/ {print way, $1, $2}' "$work/out" >>"$work/figures"
}

for _ in $(seq "$rounds"); do
    measure shm dat 1
    measure wire dat 0
    measure tcp tcp 1
done

echo '| bytes | dat;ofi_rxm | dat;ofi_rxm, FI_DAT_SHM=0 | tcp;ofi_rxm |'
echo '| ---: | ---: | ---: | ---: |'
for size in $(awk '{print $2}' "$work/figures" | sort -nu); do
    row="| $size "
    for way in shm wire tcp; do
        row+="| $(awk -v way=$way -v size="$size" '$1 == way && $2 == size {print $3}' "$work/figures" |
            sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}') "
    done
    echo "$row|"
done
