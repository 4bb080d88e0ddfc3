#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The last release and this tree talk to each other, each as the one that listens, over TCP and with
# shared memory offered: the connections of test/compat/program, Debian's fi_pingpong, and a ring of
# Open MPI with every other process of the other version. Where their shared memory has unlike
# layouts the connections are to be on TCP. And each function that a library of the release has is in
# this one's, with the same types (abidiff, from the debugging information of both). Needs a git clone,
# from which the release is built, and some minutes; so it runs by name:
#
#   DAT_BUILDDIR=BUILD bash test/compat/upgrade.sh
#
# BUILD is a build folder in which `make` and `make test/compat/program` have been done.
# DAT_OLD_BUILDDIR=DIR   such a folder of the release, where it has been built before
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/util/common.sh"
skip() {
    echo "SKIP: $*"
    exit 77
}
build=$(cd "${DAT_BUILDDIR:?names a build folder}" && pwd)
[ -f "$build/.libs/libdat-fi.so" ] || { echo "$build/.libs/libdat-fi.so is not there"; exit 1; }
program=$build/test/compat/program
[ -x "$program" ] || { echo "$program was not built"; exit 1; }
work=$(mktemp -d) || exit 1
server=
clean_up() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What the last release was, as util/release.sh has it: its tag, or the commit that stands for it.
read -r release commit < <(bash "$root/util/release.sh" --last-release)
old=${DAT_OLD_BUILDDIR:-}
if [ -z "$old" ]; then
    git -C "$root" cat-file -e "$commit" 2>/dev/null || skip "this is no git clone with $release ($commit)"
    mkdir "$work/source" && git -C "$root" archive "$commit" | tar -C "$work/source" -xf - || exit 1
    echo "building version $release ($commit) ..."
    (cd "$work/source" && autoreconf -fi && ./configure -q --disable-commands --without-criterion --without-rapidcheck &&
        make -j"$(nproc)") \
        >"$work/log" 2>&1 || { tail -n 30 "$work/log"; echo "version $release was not built"; exit 1; }
    old=$work/source
fi
old=$old/.libs
new=$build/.libs
failed=0
passed=0
export FI_PROVIDER=dat FI_LOG_LEVEL=info FI_LOG_PROV=dat

verdict() { # title log status
    if [ "$3" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok: $1"
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        tail -n 15 "$2"
    fi
}

# The first word of shared memory's messages and layout.
layout_of() { # folder of sources, or commit
    sed -nE 's/.*kMagic = (0x[0-9a-f]+);.*/\1/p' | head -n 1
}
layout_new=$(cat "$root"/prov/dat/links/shm/hello.h | layout_of)
layout_old=$(git -C "$root" grep -h 'kMagic = 0x' "$commit" -- prov/dat/links/shm prov/dat/soft/shm 2>/dev/null | layout_of)
if [ -n "$layout_old" ] && [ "$layout_old" != "$layout_new" ]; then
    link=TCP
    echo "shared memory: layout $layout_old and $layout_new, so TCP is to be used"
else
    link='shared memory'
fi

# Two processes, one of each version.
pair() { # listener connector shm title
    local log=$work/pair status=0 wanted=$link
    [ "$3" = 1 ] || wanted=TCP
    FI_PROVIDER_PATH=$1 DAT_PEER_PROVIDER_PATH=$2 FI_DAT_SHM=$3 DAT_PEER_SHM=$3 \
        timeout -k 5 120 "$program" >"$log" 2>&1 || status=$?
    if [ $status -eq 0 ] && ! grep -q "uses $wanted" "$log"; then
        echo "no connection says that it uses $wanted" >>"$log"
        status=1
    fi
    if [ "$wanted" = TCP ] && grep -q 'uses shared memory' "$log"; then
        echo 'a connection uses shared memory' >>"$log"
        status=1
    fi
    verdict "$4" "$log" $status
}
for shm in 0 1; do
    pair "$old" "$new" $shm "listens: $release, connects: this one, FI_DAT_SHM=$shm"
    pair "$new" "$old" $shm "listens: this one, connects: $release, FI_DAT_SHM=$shm"
done

# The libraries, by their public headers; what came since is no matter.
compare() { # file
    local log=$work/abidiff status=0
    abidiff --no-added-syms --drop-private-types --headers-dir1 "$work/headers/include" \
        --headers-dir2 "$root/include" "$old/$1" "$new/$1" >"$log" 2>&1 || status=$?
    if ! readelf -SW "$old/$1" "$new/$1" | grep -c '\.debug_info' | grep -qx 2; then
        echo 'built without debugging information, so that no type was compared' >>"$log"
        status=1
    fi
    verdict "$1 has the functions and types of $release" "$log" $status
}
if command -v abidiff >/dev/null && git -C "$root" cat-file -e "$commit" 2>/dev/null; then
    mkdir "$work/headers" && git -C "$root" archive "$commit" include | tar -C "$work/headers" -xf - || exit 1
    for file in libdat-fi.so libdat2.so.2 libdat.so.1 librpma.so.0; do
        if [ ! -f "$old/$file" ]; then
            echo "not compared: $release has no $file"
        elif [ ! -f "$new/$file" ]; then
            echo "not compared: $file was not built"
        else
            compare "$file"
        fi
    done
else
    echo 'not compared: there is no abidiff (Debian: abigail-tools), or no git clone'
fi

# A ring of four, two of each.
if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then
    mpicc -O1 "$root/util/mpi_ring.c" -o "$work/ring" || exit 1
    common=(--mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include 'dat;ofi_rxm')
    [ "$(id -u)" -ne 0 ] || common+=(--allow-run-as-root)
    one=(-np 1 -x FI_PROVIDER -x "FI_PROVIDER_PATH=$old" "$work/ring")
    other=(-np 1 -x FI_PROVIDER -x "FI_PROVIDER_PATH=$new" "$work/ring")
    FI_LOG_LEVEL=warn timeout -k 5 120 mpirun --oversubscribe "${common[@]}" \
        "${one[@]}" : "${other[@]}" : "${one[@]}" : "${other[@]}" >"$work/mpi" 2>&1 &&
        grep -q '^mpi_ring: .* ok$' "$work/mpi"
    verdict 'Open MPI: a ring of four, two of each version' "$work/mpi" $?
else
    echo 'not run: Open MPI is not installed'
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
