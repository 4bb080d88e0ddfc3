#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a message of Open MPI takes over `dat;ofi_rxm`, over shared memory and over TCP, beside
# `tcp;ofi_rxm`: half a round trip between two processes, in microseconds, the median of the
# rounds, which alternate, and quotients. Prints a table in Markdown.
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
    FI_PROVIDER=$2 FI_DAT_SHM=$3 timeout -k 5 120 mpirun -np 2 --oversubscribe "${root[@]}" \
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

# A quotient is the median of those of runs that followed each other.
awk '
    function median(of, n,   i, j, t) {
        for (i = 2; i <= n; ++i)
            for (j = i; j > 1 && of[j] < of[j - 1]; --j) { t = of[j]; of[j] = of[j - 1]; of[j - 1] = t }
        return n % 2 ? of[(n + 1) / 2] : (of[n / 2] + of[n / 2 + 1]) / 2
    }
    function of_all(way, size, by,   i, n, v) {
        n = count[way, size]
        for (i = 1; i <= n; ++i) v[i] = figure[way, size, i] / (by ? figure[by, size, i] : 1)
        return median(v, n)
    }
    {
        if (!($2 in known)) { known[$2]; sizes[++different] = $2 }
        figure[$1, $2, ++count[$1, $2]] = $3
    }
    END {
        print "| bytes | dat;ofi_rxm | dat;ofi_rxm, FI_DAT_SHM=0 | tcp;ofi_rxm | dat/tcp | FI_DAT_SHM=0/tcp |"
        print "| ---: | ---: | ---: | ---: | ---: | ---: |"
        for (s = 1; s <= different; ++s)
            printf "| %d | %.2f | %.2f | %.2f | %.2f | %.2f |\n", sizes[s], of_all("shm", sizes[s]),
                of_all("wire", sizes[s]), of_all("tcp", sizes[s]), of_all("shm", sizes[s], "tcp"),
                of_all("wire", sizes[s], "tcp")
    }' "$work/figures"
