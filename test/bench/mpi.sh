#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a message of Open MPI takes, half a round trip between two processes of this host, in
# microseconds: over the endpoint of dat's own and over `dat;ofi_rxm`, through shared memory and
# TCP; beside `tcp;ofi_rxm` and Open MPI's own transports (vader, btl/tcp). The median of the
# rounds, in which the ways alternate, and quotients. Prints tables in Markdown.
#
#   mpi.sh [--rounds N] BUILD [WAY...]
#
#   --rounds N  how often each is measured (default 5)
#   BUILD       a build folder, with -O2
#   WAY         only these: dat dat-tcp rxm rxm-tcp tcp-rxm vader btl-tcp; or tcp, which is the endpoint of
#               libfabric's own tcp provider, of 2.x
#
#   LIBFABRIC_2=DIR  the folder with libfabric.so.1 of 2.x, for the way tcp
#
# For a machine that does nothing else. Needs mpicxx and mpirun.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rounds=5
if [ "${1:-}" = --rounds ]; then
    rounds=${2:?}
    shift 2
fi
build=$(cd "${1:?usage: mpi.sh [--rounds N] BUILD [WAY...]}" && pwd)
shift
[ -f "$build/.libs/libdat-fi.so" ] || { echo "$build/.libs/libdat-fi.so was not built" >&2; exit 1; }
export FI_PROVIDER_PATH=$build/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicxx -std=c++20 -O2 -DOMPI_SKIP_MPICXX "$here/mpi_latency.cpp" -o "$work/mpi_latency"

# One run; a line "WAY SIZE MICROSECONDS" for each size. Words of mpirun say what carries it.
measure() { # way words...
    local way=$1 root=()
    shift
    local -x LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
    [ "$way" != tcp ] || LD_LIBRARY_PATH=${LIBFABRIC_2:?has to name the folder of libfabric 2.x}
    [ "$(id -u)" -ne 0 ] || root=(--allow-run-as-root)
    timeout -k 5 120 mpirun -np 2 --oversubscribe "${root[@]}" -x FI_PROVIDER_PATH -x LD_LIBRARY_PATH "$@" \
        "$work/mpi_latency" >"$work/out" 2>"$work/log" ||
        { tail -n 5 "$work/log" >&2; exit 1; }
    awk -v way="$way" 'NF == 2 && $1 ~ /^[0-9]+$/ {print way, $1, $2}' "$work/out" >>"$work/figures"
}

# Over a provider of libfabric, which Open MPI has to have taken.
by_libfabric() { # way FI_PROVIDER provider FI_DAT_SHM
    measure "$1" --mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include "$3" \
        --mca opal_common_ofi_verbose 100 -x FI_PROVIDER="$2" -x FI_DAT_SHM="$4"
    [ "$(cat "$work/out" "$work/log" | grep -cE "mtl:ofi:prov: $3\$")" -ge 2 ] ||
        { echo "Open MPI took another provider than $3" >&2; exit 1; }
}

one() { # way
    case $1 in
    dat) by_libfabric dat '^ofi_rxm' dat 1 ;;
    dat-tcp) by_libfabric dat-tcp '^ofi_rxm' dat 0 ;;
    rxm) by_libfabric rxm dat 'dat;ofi_rxm' 1 ;;
    rxm-tcp) by_libfabric rxm-tcp dat 'dat;ofi_rxm' 0 ;;
    tcp-rxm) by_libfabric tcp-rxm tcp 'tcp;ofi_rxm' 1 ;;
    tcp) by_libfabric tcp '^ofi_rxm' tcp 1 ;;
    vader) measure vader --mca pml ob1 --mca btl vader,self ;;
    btl-tcp) measure btl-tcp --mca pml ob1 --mca btl tcp,self ;;
    *)
        echo "no way is called '$1': dat dat-tcp rxm rxm-tcp tcp-rxm tcp vader btl-tcp" >&2
        exit 2
        ;;
    esac
}

ways=("$@")
[ $# -gt 0 ] || ways=(dat rxm vader dat-tcp rxm-tcp tcp-rxm btl-tcp)
for _ in $(seq "$rounds"); do
    for way in "${ways[@]}"; do one "$way"; done
done

# A quotient is the median of those of runs that followed each other.
awk -v ways="${ways[*]}" '
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
    function table(columns, by,   n, name, s, i, w) {
        n = split(columns, name, " ")
        printf "| bytes |"
        for (i = 1; i <= n; ++i) if (has[name[i]] && has[by]) printf " %s/%s |", name[i], by
        printf "\n| ---: |"
        for (i = 1; i <= n; ++i) if (has[name[i]] && has[by]) printf " ---: |"
        printf "\n"
        for (s = 1; s <= different; ++s) {
            printf "| %d |", sizes[s]
            for (i = 1; i <= n; ++i) if (has[name[i]] && has[by]) printf " %.2f |", of_all(name[i], sizes[s], by)
            printf "\n"
        }
    }
    {
        has[$1] = 1
        if (!($2 in known)) { known[$2]; sizes[++different] = $2 }
        figure[$1, $2, ++count[$1, $2]] = $3
    }
    END {
        n = split(ways, name, " ")
        printf "| bytes |"
        for (i = 1; i <= n; ++i) printf " %s |", name[i]
        printf "\n| ---: |"
        for (i = 1; i <= n; ++i) printf " ---: |"
        printf "\n"
        for (s = 1; s <= different; ++s) {
            printf "| %d |", sizes[s]
            for (i = 1; i <= n; ++i) printf " %.2f |", of_all(name[i], sizes[s])
            printf "\n"
        }
        if (has["vader"]) { printf "\n"; table("dat rxm", "vader") }
        if (has["btl-tcp"]) { printf "\n"; table("dat-tcp rxm-tcp tcp-rxm", "btl-tcp") }
        if (has["rxm-tcp"]) { printf "\n"; table("dat-tcp", "rxm-tcp") }
        if (has["tcp"]) { printf "\n"; table("dat-tcp", "tcp") }
    }' "$work/figures"
