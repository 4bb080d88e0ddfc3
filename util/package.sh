#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Makes packages of this tree, by way of a distribution: nothing is written into the tree.
#
#   package.sh [--install-tools] deb|rpm|dist [FOLDER]
#
#   dist   the archive dat-VERSION.tar.gz
#   deb    Debian packages
#   rpm    RPM packages, and the source package; also on Debian, which has rpmbuild
#
# They are put into FOLDER, by default the current one. --install-tools installs first, as root on
# Debian, what that needs. SOURCE_DATE_EPOCH is the time that they bear; by default that of the last
# commit. DEB_BUILD_OPTIONS=nocheck leaves out the tests that are run in between.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/util/common.sh"
usage() {
    sed -n 's/^#   \(package.sh.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2
    exit 2
}
if [ "${1:-}" = --install-tools ]; then
    bash "$root/util/packages.sh" build test package
    shift
fi
[ $# -eq 1 ] || [ $# -eq 2 ] || usage
kind=$1
case $kind in deb | rpm | dist) ;; *) usage ;; esac
mkdir -p "${2:-.}"
output=$(cd "${2:-.}" && pwd)
: "${SOURCE_DATE_EPOCH:=$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/configure.ac")}"
export SOURCE_DATE_EPOCH
unset MAKEFLAGS MFLAGS MAKELEVEL # of a make that runs this

work=$(mktemp -d "${TMPDIR:-/tmp}/dat-package.XXXXXX")
clean_up() {
    chmod -R u+w "$work" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command quietly; if it fails shows the end of what it said and gives up.
quietly() { # title command...
    local title=$1
    shift
    echo "$title ..." >&2
    "$@" >"$work/log" 2>&1 </dev/null || {
        tail -n 40 "$work/log" >&2
        echo "FAILED: $title" >&2
        exit 1
    }
}

make_dist() {
    cd "$work/tree" && autoreconf -fi && ./configure -q && make dist
}

# dpkg-buildpackage in the unpacked distribution.
make_deb() {
    mkdir "$work/deb" && tar -C "$work/deb" -xf "$work/tree/$archive" && cd "$work/deb/dat-$version" &&
        DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -us -uc -b
}

# Debian's rpm knows nothing of what its dpkg has installed, so BuildRequires are not looked at there.
make_rpm() {
    local nodeps=()
    ! command -v dpkg-query >/dev/null || nodeps=(--nodeps)
    rpmbuild -ta --define "_topdir $work/rpm" --define 'use_source_date_epoch_as_buildtime 1' \
        "${nodeps[@]}" "$work/tree/$archive"
}

copy_source "$root" "$work/tree"
quietly 'making the distribution' make_dist
archive=$(cd "$work/tree" && echo dat-*.tar.gz)
version=${archive#dat-}
version=${version%.tar.gz}
case $kind in
dist) results=("$work/tree/$archive") ;;
deb)
    quietly 'building the Debian packages' make_deb
    results=("$work"/deb/*.deb "$work"/deb/*.buildinfo "$work"/deb/*.changes)
    ;;
rpm)
    quietly 'building the RPM packages' make_rpm
    results=("$work"/rpm/RPMS/*/*.rpm "$work"/rpm/SRPMS/*.rpm)
    ;;
esac
cp "${results[@]}" "$output"
for result in "${results[@]}"; do echo "$output/${result##*/}"; done
