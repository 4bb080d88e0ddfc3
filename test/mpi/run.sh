#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Open MPI, or MPICH, over `dat` itself and over `dat;ofi_rxm`: mpi_suite.cpp on 2, 4 and 8
# processes, over shared memory and over TCP, and a process that dies.
#
#   run.sh [PREFIX]
#
# PREFIX is where the provider was installed; without it DAT_BUILDDIR names a build folder,
# whose mpi_suite is used if it is there.
#
# DAT_MPI          openmpi; mpich: one that was built with --with-device=ch4:ofi, for which
#                  see dat_mpi(7)
# DAT_MPI_PREFIX   where that MPI was installed; else its commands are found in PATH
# DAT_MPI_RANKS    numbers of processes ("2 4 8")
# DAT_MPI_DYING    number of processes where one dies (4)
# DAT_MPI_PROVIDERS  "dat dat;ofi_rxm"
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
kind=${DAT_MPI:-openmpi}
case $kind in
openmpi | mpich) ;;
*) echo "FAIL DAT_MPI=$kind is neither openmpi nor mpich"; exit 1 ;;
esac
[ -z "${DAT_MPI_PREFIX:-}" ] || PATH=$DAT_MPI_PREFIX/bin:$PATH
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
# The MPI's own files, too.
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

# The mpirun of each, in `start`. More processes than cores: they yield, MPICH's always. Its
# processes of one host would not use libfabric (MPIR_CVAR_NOLOCAL).
start_openmpi() { # ranks
    start=(mpirun -np "$1" --oversubscribe --mca mpi_yield_when_idle 1
        --mca pml cm --mca mtl ofi --mca osc pt2pt
        --mca opal_common_ofi_provider_include "$provider" --mca opal_common_ofi_verbose 100
        -x FI_PROVIDER -x FI_PROVIDER_PATH)
    [ "$(id -u)" -ne 0 ] || start+=(--allow-run-as-root)
}
start_mpich() { # ranks
    start=(mpiexec.hydra -n "$1" -genv MPIR_CVAR_NOLOCAL 1 -genv MPIR_CVAR_DEBUG_SUMMARY 1)
}

# One run, in a session of its own; sets `status`, 124 if it took too long.
mpi() { # ranks words...
    local start=()
    "start_$kind" "$1"
    shift
    status=0
    SECONDS=0
    setsid -w timeout -k 5 "$limit" "${start[@]}" "$program" "$@" \
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

# Each process says which provider it took, of MPICH the first; pml cm, as ch4:ofi, has nothing
# else to fall back on. Where it is to be a device, the provider says that its domain is one.
took_dat() { # ranks link
    case $kind in
    openmpi) [ "$(grep -cE "mtl:ofi:prov: $provider\$" "$scratch/log")" -ge "$1" ] || return ;;
    mpich) grep -qE "^libfabric provider: $provider( |\$)" "$scratch/log" || return ;;
    esac
    [ "$2" != verbs ] || [ "$(grep -c ':dat:domain:.*: the domain is the RDMA device ' "$scratch/log")" -ge "$1" ]
}

suite() { # ranks link words...
    local line good=0
    mpi "$1" "${@:3}"
    while read -r line; do
        good=1
        verdict "$provider, $1 processes, $2: ${line#*: }" "$([[ $line == right:* ]] && echo 0 || echo 1)"
    done < <(grep -E '^(right|WRONG): ' "$scratch/log")
    [ $good -eq 1 ] && [ $status -eq 0 ] && nothing_stays && took_dat "$1" "$2"
    good=$?
    verdict "$provider, $1 processes, $2: $3: mpirun ends with 0, all took it" $good
    [ $good -eq 0 ] || { echo "exit status $status"; tail -n 40 "$scratch/log"; }
    end_session "$running"
}

# mpirun has to say it, and end, and take the others with it.
declare -A killed=([openmpi]='exited on signal 9' [mpich]='Killed (signal 9)')
death() { # ranks link
    local good
    mpi "$1" die
    [ $status -ne 0 ] && [ $status -ne 124 ] && grep -q "${killed[$kind]}" "$scratch/log" &&
        nothing_stays && took_dat "$1" "$2"
    good=$?
    verdict "$provider, $1 processes, $2: one is killed, mpirun ends with an error and nothing stays" $good
    [ $good -eq 0 ] || tail -n 40 "$scratch/log"
    end_session "$running"
}

program=${DAT_BUILDDIR:-}/test/mpi/mpi_suite # with the mpicxx that configure found
if [ -n "${DAT_MPI:-}${DAT_MPI_PREFIX:-}" ] || [ ! -x "$program" ]; then
    program=$scratch/mpi_suite
    if ! mpicxx -std=c++20 -O2 -Wall -Wextra -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX \
        "$here/mpi_suite.cpp" -o "$program"; then
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
        case $kind:$link:$provider in
        openmpi:*:dat) export FI_PROVIDER=^ofi_rxm ;; # which it would take else, as one of `dat`
        openmpi:*) export FI_PROVIDER=dat ;;
        mpich:*) export FI_PROVIDER=$provider ;;
        esac
        for ranks in ${DAT_MPI_RANKS:-2 4 8}; do
            suite "$ranks" "$link" everything "$most" "${device[@]}"
        done
        if [ "$link" != verbs ]; then
            suite 3 "$link" threads
            suite 3 "$link" spawn
        fi
        death "${DAT_MPI_DYING:-4}" "$link"
    done
done
exit $failed
