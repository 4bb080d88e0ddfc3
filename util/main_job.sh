#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The main job of the provider, with programs that know nothing of it: Debian's
# fi_pingpong between two processes over loopback, then Open MPI over
# endpoints of its own.
#
#   main_job.sh [PREFIX] [pingpong|ring]
#
# PREFIX is where the provider was installed; without it, or with "", libfabric
# looks where it always does. Without a second word both parts are run.
#
# DAT_JOB_PROVIDER='tcp;ofi_rxm' runs another provider, for comparison.
# DAT_JOB_ITERATIONS   round trips a size of fi_pingpong (100)
# DAT_JOB_RANKS        processes of the MPI ring (4)
# DAT_JOB_LIMIT_S      seconds after which a part counts as hung (120)
#
# Exit status 0 if all was right.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=${1:-}
part=${2:-all}
provider=${DAT_JOB_PROVIDER:-dat}
core=${provider%;ofi_rxm} # without a layer above it
iterations=${DAT_JOB_ITERATIONS:-100}
ranks=${DAT_JOB_RANKS:-4}
limit=${DAT_JOB_LIMIT_S:-120}

# Says why libfabric could not load a provider from the folder $1, and fails; libfabric itself
# passes over it without a word, and then has no such provider.
is_usable() {
    local module=$1/lib$core-fi.so
    if [ ! -e "$1" ]; then
        echo "$1 is not there"
    elif [ ! -d "$1" ]; then
        echo "$1 is no folder"
    elif [ ! -r "$1" ] || [ ! -x "$1" ]; then
        echo "$1 cannot be read by user $(id -u): $(stat -c 'it is of user %u, with the mode %a' "$1")"
    elif [ -e "$module" ] && [ ! -r "$module" ]; then
        echo "$module cannot be read by user $(id -u)"
    else
        return 0
    fi
    return 1
}

if [ -n "$prefix" ]; then
    export FI_PROVIDER_PATH="$prefix/lib/libfabric"
fi
if [ -n "${FI_PROVIDER_PATH:-}" ]; then
    IFS=: read -r -a folders <<<"$FI_PROVIDER_PATH"
    for folder in "${folders[@]}"; do
        is_usable "$folder" >&2 || {
            echo "FAILED: it is a folder of FI_PROVIDER_PATH, from which libfabric loads providers" >&2
            exit 1
        }
    done
fi
export FI_PROVIDER="$core"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/dat-job.XXXXXX") || exit 1
pids=()
clean_up() {
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command bounded in time, in the background, so that a signal to this
# script is acted on at once. Its process is the last of `pids`.
start() { # output command...
    local output=$1
    shift
    timeout -k 5 "$limit" "$@" >"$output" 2>&1 &
    pids+=($!)
}

# What the exit status $1 of a bounded command says.
meaning() {
    case $1 in
    0) echo 'all processes ended well' ;;
    124 | 137) echo "exit status $1: no end within $limit s (DAT_JOB_LIMIT_S), it hung and was ended" ;;
    *) echo "exit status $1" ;;
    esac
}

# Is TCP port $1 in use here, in state $2 (0A is listening) or, without it, in any?
# Asked of the kernel, not by connecting: fi_pingpong's server takes one
# connection only.
in_use() {
    local files=(/proc/net/tcp)
    [ ! -r /proc/net/tcp6 ] || files+=(/proc/net/tcp6)
    awk -v port="$(printf ':%04X$' "$1")" -v state="${2:-}" \
        '$2 ~ port && (state == "" || $4 == state) {found = 1} END {exit !found}' "${files[@]}"
}

# Prints a TCP port that nobody uses, below those that the kernel gives to
# outgoing connections: one of those, even where it has ended (TIME_WAIT), is
# refused to fi_pingpong's server.
free_port() {
    local first port
    read -r first _ </proc/sys/net/ipv4/ip_local_port_range
    [ "$first" -gt 12000 ] || first=32768
    port=$((first - 1 - RANDOM % 8192))
    while in_use "$port"; do port=$((port - 1)); done
    echo "$port"
}

# The result rows of fi_pingpong in file $1 whose messages were all acknowledged.
rows() {
    awk -v n="$iterations" '$1 ~ /^[0-9.]+[kmg]?$/ && $2 == n && $3 == "=" n {rows++}
        END {print rows + 0}' "$1"
}

run_pingpong() {
    local port server client status=0 sizes
    local options=(-p "$core" -e msg -c -I "$iterations" -S all)
    port=$(free_port)

    echo "== fi_pingpong: two processes, provider $core, all sizes, 127.0.0.1"
    start "$scratch/server" fi_pingpong "${options[@]}" -B "$port"
    server=${pids[-1]}
    while ! in_use "$port" 0A; do
        if ! kill -0 "$server" 2>/dev/null; then
            cat "$scratch/server"
            echo '== fi_pingpong: FAILED: the server ended before it was listening'
            return 1
        fi
        sleep 0.05
    done
    start "$scratch/client" fi_pingpong "${options[@]}" -P "$port" 127.0.0.1
    client=${pids[-1]}
    wait "$client" || status=$?
    # A failed client leaves a server that waits for ever.
    [ $status -eq 0 ] || kill "$server" 2>/dev/null
    wait "$server" || status=$?
    pids=()

    cat "$scratch/client"
    sizes=$(rows "$scratch/client")
    if [ $status -ne 0 ] || [ "$sizes" -lt 2 ] || [ "$sizes" -ne "$(rows "$scratch/server")" ]; then
        echo '-- the server said:'
        cat "$scratch/server"
        echo "== fi_pingpong: FAILED ($(meaning $status); $sizes sizes complete)"
        return 1
    fi
    echo "== fi_pingpong: ok, $sizes sizes, every byte checked"
}

# Open MPI names the provider that it took, once a rank, where its verbosity is
# 1 or more. pml cm with mtl ofi has nothing else to fall back on. libfabric lists
# the provider under ofi_rxm first, which Open MPI would take for the provider.
run_ring() {
    local status=0 chosen filter=^ofi_rxm
    [ "$provider" = "$core" ] || filter=$core
    local options=(-np "$ranks" --oversubscribe
        --mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include "$provider"
        --mca opal_common_ofi_verbose 100 -x "FI_PROVIDER=$filter")
    [ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
    [ -z "${FI_PROVIDER_PATH:-}" ] || options+=(-x FI_PROVIDER_PATH)

    echo "== Open MPI: a ring of $ranks processes over $provider"
    if ! mpicc -O2 -Wall -Wextra "$here/mpi_ring.c" -o "$scratch/mpi_ring"; then
        echo '== Open MPI: FAILED: mpi_ring.c was not compiled'
        return 1
    fi
    start "$scratch/ring" mpirun "${options[@]}" "$scratch/mpi_ring"
    wait "${pids[-1]}" || status=$?
    pids=()

    chosen=$(grep -c "mtl:ofi:prov: $provider\$" "$scratch/ring")
    if [ $status -ne 0 ] || [ "$chosen" -lt "$ranks" ] ||
        ! grep '^mpi_ring: .* ok$' "$scratch/ring"; then
        tail -n 60 "$scratch/ring"
        echo "== Open MPI: FAILED ($(meaning $status); $chosen of $ranks processes took $provider)"
        return 1
    fi
    grep -m 1 -o "mtl:ofi:prov: $provider\$" "$scratch/ring"
    echo "== Open MPI: ok, its log names $provider in each of $ranks processes"
}

failed=0
case $part in
pingpong) run_pingpong || failed=1 ;;
ring) run_ring || failed=1 ;;
all)
    run_pingpong || failed=1
    run_ring || failed=1
    ;;
*) echo "usage: ${0##*/} [PREFIX] [pingpong|ring]" >&2; exit 2 ;;
esac
exit $failed
