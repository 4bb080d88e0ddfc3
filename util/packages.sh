#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The Debian packages that this project needs, named here alone.
#
#   packages.sh build run test vm  installs what is missing (any of the words)
#   packages.sh --list build       prints the names
#
#   build  what configure and make need
#   run    what the main job runs: libfabric's own programs, Open MPI
#   test   what the tests need besides
#   quick  what test/run.sh --quick needs of those
#   vm     what the guest of test/vm needs besides, and the programs that run in it
#   package  what util/package.sh, util/release.sh and test/packages.sh need besides
#   machines  what test/machines.sh needs besides
#   bench  what test/bench measures with, and beside; no test needs it
#
# Nothing is done, and no root is needed, where nothing is missing.
set -u

build=(autoconf automake g++ libcli11-dev libfabric-dev libfmt-dev libibverbs-dev librdmacm-dev
    libtool make nlohmann-json3-dev pkg-config systemtap-sdt-dev)
run=(gcc libfabric-bin libopenmpi-dev openmpi-bin)
test=(abigail-tools chromium clang-14 clang-format-14 clang-tidy-14 codespell cppcheck dapl2-utils git hpcc
    iproute2 libclang-rt-14-dev libcriterion-dev libdapl-dev libpmem-dev librapidcheck-dev mandoc mumps-test pandoc procps
    python3 python3-jsonschema python3-mpi4py python3-yaml rpm scalapack-mpi-test shellcheck tcl tshark util-linux)
quick=(clang-format-14 codespell git libcriterion-dev libpmem-dev librapidcheck-dev mandoc procps python3
    util-linux)
vm=(busybox-static cpio dapl2-utils e2fsprogs gcc-12 ibverbs-providers iproute2 kmod libelf1 librpma0 libssl3
    qemu-system-x86 rdma-core rdmacm-utils tshark xz-utils)
package=(debhelper debootstrap dpkg-dev lintian rpm)
machines=(g++-aarch64-linux-gnu g++-i686-linux-gnu g++-s390x-linux-gnu qemu-user)
bench=(dapl2-utils perftest ucx-utils valgrind)

usage() {
    echo "usage: ${0##*/} [--list] build|run|test|quick|vm|package|machines|bench ..." >&2
    exit 2
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=3 "$@" >>"$log" 2>&1
}

list=no
if [ "${1:-}" = --list ]; then
    list=yes
    shift
fi
[ $# -gt 0 ] || usage
wanted=()
for group; do
    case $group in
    build) wanted+=("${build[@]}") ;;
    run) wanted+=("${run[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    quick) wanted+=("${quick[@]}") ;;
    vm) wanted+=("${vm[@]}") ;;
    machines) wanted+=("${machines[@]}") ;;
    package) wanted+=("${package[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    *) usage ;;
    esac
done
if [ $list = yes ]; then
    printf '%s\n' "${wanted[@]}"
    exit 0
fi

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || {
    echo "This is no Debian system. What is needed, by Debian's names: ${wanted[*]}" >&2
    exit 1
}
missing=()
for package in "${wanted[@]}"; do
    installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo 'all packages are installed'
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "These packages are missing; as root: apt-get install ${missing[*]}" >&2
    exit 1
fi

echo "installing: ${missing[*]}"
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# The package lists may be there and good; only if they are not are they fetched.
apt install --no-install-recommends "${missing[@]}" ||
    { apt update && apt install --no-install-recommends "${missing[@]}"; } || {
    echo 'apt-get failed:' >&2
    tail -n 30 "$log" >&2
    exit 1
}
