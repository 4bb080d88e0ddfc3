#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The Debian packages as those who install them have them: builds them from a distribution, looks at
# them with lintian, installs them in a Debian of their own (debootstrap) together with dapl2-utils,
# runs there the tests of the packaging (debian/tests), removes them, and looks at what is left. The
# RPM packages are built too, and have the files that Debian's have. By name, since it takes long; as
# root, on Debian 12 with a mirror at hand:
#
#   bash test/packages.sh [FOLDER]
#
# FOLDER   packages that were built before (util/package.sh deb FOLDER)
#
# It makes and removes a folder under TMPDIR, of 1.5 GB, with /proc mounted in it, in a mount namespace
# of its own.
set -u

if [ "${DAT_OWN_MOUNTS:-}" != yes ]; then
    [ "$(id -u)" -eq 0 ] || { echo 'SKIP: this needs root'; exit 77; }
    DAT_OWN_MOUNTS=yes exec unshare --mount bash "${BASH_SOURCE[0]}" "$@"
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d) || exit 1
chroot=$work/debian
clean_up() {
    umount "$chroot/proc" "$chroot/dev/shm" 2>/dev/null
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

. "$root/util/common.sh"
failed=0
check() { # title command...
    local title=$1
    shift
    if "$@" >"$work/log" 2>&1 </dev/null; then
        echo "ok: $title"
    else
        tail -n 30 "$work/log"
        echo "FAILED: $title"
        failed=$((failed + 1))
        return 1
    fi
}
inside() { chroot "$chroot" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
# With loopback alone, as no test needs more.
offline() { unshare --net sh -c 'ip link set lo up && exec "$@"' - chroot "$chroot" env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }

bash "$root/util/packages.sh" build test package || exit 1
debs=${1:-}
if [ -z "$debs" ]; then
    debs=$work/debs
    check 'dpkg-buildpackage in an unpacked distribution' bash "$root/util/package.sh" deb "$debs" || exit 1
fi
packages=$(sed -n 's/^Package: //p' "$root/util/packaging/debian/control")
for package in $packages; do
    check "$package.deb is there" ls "$debs/$package"_*.deb
done
check 'their symbols are in packages of their own' ls "$debs/libdat-fi-dbgsym"_*.deb
# An error or a warning that has no override with a reason.
check 'lintian' lintian --fail-on error,warning --allow-root "$debs"/*.changes

# Which package has which file, of those that both kinds of packages install, by one name.
files_of_debs() {
    local package
    for package in $packages; do
        dpkg-deb --fsys-tarfile "$debs/$package"_*.deb | tar -tf - | grep -v '/$' | sed "s,^\.,$package ,"
    done
}
files_of_rpms() { rpm -qp --nosignature --qf '[%{=NAME} %{FILENAMES}\n]' "$work"/rpms/*.rpm; }
one_name() {
    # Compressed pages, folders of libraries, and what each system keeps of a package.
    sed -E 's,^([^ ]*)-devel ,\1-dev ,; s,\.gz$,,; s,/usr/lib(64|/[a-z0-9_]+-linux-gnu),/usr/lib,' |
        grep -vE '/usr/share/(doc|licenses|lintian|dat/[^ ]*/ld.so.conf)|/usr/lib/(debug|\.build-id)|/ld.so.conf|/usr/src|\.spec$|\.tar' |
        LC_ALL=C sort
}
same_files() {
    rm -f "$work"/rpms/*.src.rpm
    files_of_debs | one_name >"$work/of_debs"
    # Folders of its own are in the list of an RPM package as well.
    files_of_rpms | one_name | grep -F -x -f "$work/of_debs" >"$work/of_both"
    files_of_rpms | one_name | grep -v -x -F -f "$work/of_debs" | grep -vE '/(dat|dat2|rpma|schema)$' >"$work/of_rpms"
    [ ! -s "$work/of_rpms" ] || { echo 'of RPM packages alone:'; cat "$work/of_rpms"; }
    diff "$work/of_debs" "$work/of_both" && [ ! -s "$work/of_rpms" ] && [ "$(wc -l <"$work/of_both")" -gt 50 ]
}
check 'RPM packages from the distribution (rpmbuild)' bash "$root/util/package.sh" rpm "$work/rpms" &&
    check 'they have the files of the Debian packages' same_files

check 'a Debian of its own (debootstrap)' debootstrap --variant=minbase bookworm "$chroot" \
    "$(debian_mirror)" || exit 1
mount -t proc none "$chroot/proc" && mount -t tmpfs none "$chroot/dev/shm" || exit 1
mkdir "$chroot/debs" && cp "$debs"/*.deb "$chroot/debs"
copy_source "$root" "$chroot/source"
cp -R "$root/util/packaging/debian" "$chroot/source/debian"

install() { inside apt-get -qq -y --no-install-recommends install "$@"; }
files=()
for package in $packages; do
    for file in "$chroot/debs/$package"_*.deb; do files+=("${file#"$chroot"}"); done
done
check 'they install beside libdapl2, libdapl-dev and dapl2-utils' install libdapl-dev dapl2-utils "${files[@]}"
inside dpkg-query -W -f '${Package}\n' | sort >"$work/installed"
# What the tests of the packaging depend on besides, and then those tests, each by its name.
check 'what their tests depend on' install build-essential libopenmpi-dev openmpi-bin pkg-config libfabric-bin iproute2
for test in $(sed -n 's/^Tests: //p' "$root/util/packaging/debian/tests/control"); do
    check "debian/tests/$test" offline sh -c 'cd /source && exec "debian/tests/$1"' - "$test"
done
for file in $(inside dpkg -L dat-utils | grep '^/usr/bin/.'); do
    check "${file##*/} runs" offline "$file" --version
done
check 'dat_states prints the states' offline dat_states --format md
which_libdat2() { offline ldd /usr/bin/dtest | grep -F 'libdat2.so.2 =>' | tee /dev/stderr | grep -q "$1"; }
check 'with libdat-default dtest has the library of dat' which_libdat2 /dat/libdat2
check 'libdat-default can be removed' inside apt-get -qq -y remove libdat-default
check 'without it dtest has the genuine one' which_libdat2 ' /lib/.*-gnu/libdat2'
check 'with libdat-default, dapl2-utils needs no libdapl2' sh -c '
    chroot "$1" sh -c "apt-get -qq -y install /debs/libdat-default_*.deb && apt-get -qq -y remove libdapl2 libdapl-dev &&
        dpkg -s dapl2-utils | grep -q \"install ok installed\""' - "$chroot"
# Each path that dpkg has of them is gone, and so is the link.
for package in $packages; do inside dpkg -L "$package" 2>/dev/null; done | sort -u >"$work/paths"
# Unquoted on purpose: one argument a package.
check 'they can be removed' inside apt-get -qq -y purge $packages
left() {
    local path
    while read -r path; do
        [ -d "$chroot$path" ] || { [ ! -e "$chroot$path" ] && [ ! -L "$chroot$path" ]; } || echo "$path"
    done <"$work/paths"
    find "$chroot/etc/ld.so.conf.d" "$chroot/usr/share/dat" "$chroot/usr/lib" -path '*dat*' -newer "$work/installed" 2>/dev/null |
        grep -E '/(00-dat|libdat|dat/)'
}
nothing_is_left() { [ -z "$(left)" ] || { left; return 1; }; }
check 'nothing is left of them' nothing_is_left
echo "$failed failed"
[ $failed -eq 0 ]
