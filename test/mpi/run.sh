#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Open MPI over `dat` itself and over `dat;ofi_rxm`: mpi_suite.cpp on 2, 4 and 8 processes, over
# shared memory and over TCP, and a process that dies.
#
#   run.sh [PREFIX]
#
# PREFIX is where the provider was installed; without it DAT_BUILDDIR names a build folder,
# whose mpi_suite is used if it is there.
#
# DAT_MPI_RANKS    numbers of processes ("2 4 8")
# DAT_MPI_DYING    number of processes where one dies (4)
# DAT_MPI_PROVIDERS  "dat dat;ofi_rxm"; over a device dat;ofi_rxm alone
# DAT_MPI_LINKS    "shm tcp"; verbs: the RDMA device of the interface in FI_DAT_IFACE
# DAT_MPI_MOST     bytes of the largest message (16 MiB)
# DAT_MPI_IWARP    1: without what cannot be over iWARP devices (fabtests-config/README.md)
# DAT_MPI_LIMIT_S  seconds after which a run of mpirun counts as hung (240)
#
# Prints a line for each check, `ok ...` or `FAIL ...`. Exit status 0 if all was right.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../util/common.sh"
limit=${DAT_MPI_LIMIT_S:-240}
most=${DAT_MPI_MOST:-16777216}
device=()
[ -z "${DAT_MPI_IWARP:-}" ] || device=(iwarp)

if [ -n "${1:-}" ]; then
    FI_PROVIDER_PATH=$1/lib/libfabric
else
    FI_PROVIDER_PATH=$(cd "${DAT_BUILDDIR:?names no build folder}" && pwd)/.libs
fi
[ -e "$FI_PROVIDER_PATH/libdat-fi.so" ] || { echo "FAIL $FI_PROVIDER_PATH holds no libdat-fi.so"; exit 1; }
export FI_PROVIDER_PATH

scratch=$(mktemp -d "${TMPDIR:-/tmp}/dat-mpi.XXXXXX") || exit 1
# Open MPI's own files, too.
export TMPDIR=$scratch
running=
clean_up() {
    trap '' HUP INT TERM
    [ -z "$running" ] || end_session "$running"
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=0
verdict() { # title status
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        echo "FAIL $1"
        failed=1
    fi
}

# One run, in a session of its own; sets `status`, 124 if it took too long. More processes
# than cores: they yield.
mpi() { # ranks words...
    local ranks=$1 options
    shift
    options=(-np "$ranks" --oversubscribe --mca mpi_yield_when_idle 1
        --mca pml cm --mca mtl ofi --mca osc pt2pt
        --mca opal_common_ofi_provider_include "$provider" --mca opal_common_ofi_verbose 100
        -x FI_PROVIDER -x FI_PROVIDER_PATH)
    [ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
    status=0
    SECONDS=0
    setsid -w timeout -k 5 "$limit" mpirun "${options[@]}" "$program" "$@" \
        >"$scratch/log" 2>&1 </dev/null &
    running=$!
    wait "$running" || status=$?
    [ $SECONDS -lt "$limit" ] || status=124
}

# What was started has gone, or goes within a minute, now that mpirun has.
nothing_stays() {
    local left
    for _ in $(seq 600); do
        left=$(session_members "$running")
        [ -n "$left" ] || return 0
        sleep 0.1
    done
    echo "processes are left: $left"
    return 1
}

# Each process says which provider it took; pml cm has nothing else to fall back on. Where it
# is to be a device, the provider says that its domain is one.
took_dat() { # ranks link
    [ "$(grep -cE "mtl:ofi:prov: $provider\$" "$scratch/log")" -ge "$1" ] || return
    [ "$2" != verbs ] || [ "$(grep -c ':dat:domain:.*: the domain is the RDMA device ' "$scratch/log")" -ge "$1" ]
}

everything() { # ranks link
    local line good=0
    mpi "$1" everything "$most" "${device[@]}"
    while read -r line; do
        good=1
        verdict "$provider, $1 processes, $2: ${line#*: }" "$([[ $line == right:* ]] && echo 0 || echo 1)"
    done < <(grep -E '^(right|WRONG): ' "$scratch/log")
    [ $good -eq 1 ] && [ $status -eq 0 ] && nothing_stays && took_dat "$1" "$2"
    good=$?
    verdict "$provider, $1 processes, $2: mpirun ends with 0, all took it" $good
    [ $good -eq 0 ] || { echo "exit status $status"; tail -n 40 "$scratch/log"; }
    end_session "$running"
}

# mpirun has to say it, and end, and take the others with it.
death() { # ranks link
    local good
    mpi "$1" die
    [ $status -ne 0 ] && [ $status -ne 124 ] && grep -q 'exited on signal 9' "$scratch/log" &&
        nothing_stays && took_dat "$1" "$2"
    good=$?
    verdict "$provider, $1 processes, $2: one is killed, mpirun ends with an error and nothing stays" $good
    [ $good -eq 0 ] || tail -n 40 "$scratch/log"
    end_session "$running"
}

program=${DAT_BUILDDIR:-}/test/mpi/mpi_suite
if [ ! -x "$program" ]; then
    program=$scratch/mpi_suite
    if ! mpicxx -std=c++20 -O2 -Wall -Wextra -DOMPI_SKIP_MPICXX "$here/mpi_suite.cpp" -o "$program"; then
        echo 'FAIL mpi_suite.cpp was not compiled'
        exit 1
    fi
fi
for link in ${DAT_MPI_LINKS:-shm tcp}; do
    case $link in
    verbs) export FI_DAT_TRANSPORT=verbs FI_LOG_LEVEL=info FI_LOG_PROV=dat ;;
    shm) export FI_DAT_SHM=1 ;;
    *) export FI_DAT_SHM=0 ;;
    esac
    for provider in ${DAT_MPI_PROVIDERS:-dat "dat;ofi_rxm"}; do
        case $link:$provider in
        verbs:dat) continue ;;
        *:dat) export FI_PROVIDER=^ofi_rxm ;; # which Open MPI would take else, as one of `dat`
        *) export FI_PROVIDER=dat ;;
        esac
        for ranks in ${DAT_MPI_RANKS:-2 4 8}; do everything "$ranks" "$link"; done
        death "${DAT_MPI_DYING:-4}" "$link"
    done
done
exit $failed
