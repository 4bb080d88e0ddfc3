#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Other machines: builds for each with Debian's cross compiler and that machine's libraries, and runs
# the tests by qemu's emulation of its instructions. By name, since it takes long:
#
#   bash test/machines.sh [--build DIR] [arm64|s390x|i386]...    by default all three
#
#   arm64   the provider; unit, simulator, transport
#   s390x   big endian: the provider; unit, simulator; with a stand-in for Criterion (test/machines), which
#           Debian has not for it
#   i386    32 bits: unit, simulator; not the provider, which takes pointers and sizes of 64 bits for granted
#
# --build DIR   builds in DIR/MACHINE from a copy of the sources in DIR/source, and leaves both there for the
#               next time; by default in a temporary folder
# DAT_MACHINE_TESTS="PROGRAM..."   these in place of those above
#
# Needs Debian 12 and root, or the packages `bash util/packages.sh --list machines`. The libraries are
# unpacked, not installed, in ~/.cache/dat-machines (250 MB each), and are kept there. The kernel runs foreign
# programs through qemu in a user namespace of this script's own, which takes Linux 6.7 with
# binfmt_misc; else they have to be registered (Debian: qemu-user-binfmt).
#
# It emulates on this machine, whose order of memory accesses it cannot weaken: that nothing goes
# wrong is no proof for a CPU with a weaker one. prov/dat/README.md says why each order holds.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/util/common.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dat-machines
keep=
machines=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) keep=$(realpath -m "${2:?names a folder}"); shift ;;
    arm64 | s390x | i386) machines+=("$1") ;;
    *) sed -n 's/^#   \(bash test.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    esac
    shift
done
[ ${#machines[@]} -gt 0 ] || machines=(arm64 s390x i386)

work=$(mktemp -d) || exit 1
clean_up() {
    chmod -R u+w "$work"
    rm -rf "$work"
}
source=${keep:-$work}/source
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

describe() { # machine
    criterion=Debian besides='libdat-fi.la'
    case $1 in
    arm64) triplet=aarch64-linux-gnu emulator=aarch64 tests='unit_core unit_wire unit_engine sim_test'
        tests="$tests test/transport/transport_connection test/transport/transport_data"
        tests="$tests test/transport/transport_queues test/transport/transport_surface"
        besides="$besides test/transport/peer"
        # ELF, 64 bits, little endian, machine 183
        magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' ;;
    s390x) triplet=s390x-linux-gnu emulator=s390x tests='unit_core unit_wire sim_test'
        criterion=stand-in
        magic='\x7fELF\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x16' ;;
    i386) triplet=i686-linux-gnu emulator=i386 tests='unit_core unit_wire sim_test'
        besides=
        magic='\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x03\x00' ;;
    esac
    tests=${DAT_MACHINE_TESTS:-$tests}
}

# The libraries of another machine, by an apt that knows of no other packages.
fetch_libraries() { # machine
    local to=$cache/$1 part=$cache/$1.part archive
    local packages=(libc6-dev libstdc++-12-dev libfabric-dev libibverbs-dev librdmacm-dev librapidcheck-dev)
    [ $criterion = stand-in ] || packages+=(libcriterion-dev)
    [ ! -d "$to" ] || return 0
    rm -rf "$part"
    mkdir -p "$part"/{lists/partial,archives/partial,etc,root} && : >"$part/status" || return 1
    # The release alone: its updates may be in the midst of being mirrored, and no test needs them.
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror) bookworm main" \
        >"$part/etc/debian.list"
    local options=(-o "APT::Architecture=$1" -o "APT::Architectures=$1" -o "Dir::State=$part"
        -o "Dir::State::status=$part/status" -o "Dir::State::lists=$part/lists" -o "Dir::Cache=$part"
        -o "Dir::Cache::archives=$part/archives" -o Dir::Etc::sourcelist=/dev/null
        -o "Dir::Etc::sourceparts=$part/etc" -o APT::Install-Recommends=false
        -o "APT::Sandbox::User=$(id -un)")
    apt-get -qq "${options[@]}" update && apt-get -qq -y "${options[@]}" --download-only install "${packages[@]}" &&
        for archive in "$part"/archives/*.deb; do dpkg -x "$archive" "$part/root" || return 1; done &&
        mv "$part/root" "$to" && rm -rf "$part"
}

build() { # machine
    local libraries=$cache/$1 multiarch=${triplet/i686/i386} flags own=$source/test/machines with=()
    flags="--sysroot=$libraries"
    mkdir -p "$folder" && cd "$folder" || return 1
    if [ $criterion = stand-in ]; then
        "$triplet-g++" "$flags" -std=c++20 -O1 -Wall -Wextra -Werror -c "$own/criterion.cpp" -o criterion.o || return 1
        with=("CRITERION_CFLAGS=-I$own" "CRITERION_LIBS=$folder/criterion.o")
        flags="$flags -isystem $own"
    fi
    env "${with[@]}" PKG_CONFIG_LIBDIR="$libraries/usr/lib/$multiarch/pkgconfig:$libraries/usr/share/pkgconfig" \
            PKG_CONFIG_SYSROOT_DIR="$libraries" "$source/configure" -q --host="$triplet" --enable-werror \
            --disable-commands CXX="$triplet-g++ $flags" CC="$triplet-gcc $flags" CXXFLAGS='-O1 -g0' &&
        make -j"$(nproc)" $besides $tests
}

# Registers the emulator for this namespace alone, where that can be, and runs a program.
run() { # program arguments...
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff'
    case $emulator in
    s390x) mask="$mask\xff\xfe\xff\xff" ;;
    *) mask="$mask\xfe\xff\xff\xff" ;;
    esac
    QEMU_LD_PREFIX=$cache/$machine DAT_SRCDIR=$source DAT_BUILDDIR=$folder \
        unshare --user --map-root-user --mount --net bash -c '
            ip link set lo up
            mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null &&
                echo ":dat-$1:M::$2:$3:/usr/bin/qemu-$1:F" >/proc/sys/fs/binfmt_misc/register
            shift 3
            exec "$@"' - "$emulator" "$magic" "$mask" "$@"
}

bash "$root/util/packages.sh" build test machines || exit 1
mkdir -p "$cache" || exit 1
rm -rf "$source"
mkdir -p "${keep:-$work}" && copy_source "$root" "$source" && (cd "$source" && autoreconf -fi) >"$work/log" 2>&1 ||
    { tail "$work/log"; exit 1; }
failed=0
for machine in "${machines[@]}"; do
    describe "$machine"
    folder=${keep:-$work/build}/$machine
    echo "== $machine"
    fetch_libraries "$machine" >"$work/log" 2>&1 || { tail "$work/log"; echo "FAILED: $machine: its libraries"; failed=1; continue; }
    build "$machine" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; echo "FAILED: $machine: build"; failed=1; continue; }
    for test in $tests; do
        status=0
        run timeout -k 5 1200 "$folder/$test" -j1 --timeout 300 >"$work/log" 2>&1 </dev/null || status=$?
        grep -E 'Synthesis|^\[(FAIL|CRASH)\]' "$work/log"
        if [ $status -eq 0 ]; then echo "ok: $machine: $test"; else
            tail -n 20 "$work/log"
            echo "FAILED: $machine: $test, exit status $status"
            failed=1
        fi
    done
done
exit $failed
