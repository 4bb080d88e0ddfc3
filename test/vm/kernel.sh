#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Makes what the guest boots, from Debian's packages and without installing any of
# them: the kernel, and an initramfs with the modules that it needs. Debian's kernel
# leaves siw out; it is built from the source package of the same version.
#
#   kernel.sh            prints the folder that holds `vmlinuz` and `initramfs`
#
# The folder is made on first use (a minute or two, 220 MB to download) and kept in
# DAT_VM_CACHE, by default dat-vm in the user's cache folder, under the version of the
# kernel and of what lies in the initramfs. Only the newest is kept.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${DAT_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/dat-vm}

# Modules that the guest loads, each after what it needs. crc32_generic is what rxe
# asks the kernel for by name, so that no dependency says it.
wanted='crc32_generic crc32c_generic virtio_pci 9pnet_virtio 9p overlay veth virtio_net
    ib_uverbs rdma_ucm rdma_rxe siw sch_netem nd_e820 nd_pmem ext4'

die() {
    echo "kernel.sh: $*" >&2
    exit 1
}

# The package that a metapackage stands for today.
depends_on() {
    apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' |
        head -n 1
}

find_versions() {
    image=$(depends_on linux-image-amd64)
    if [ -z "$image" ]; then
        [ "$(id -u)" -ne 0 ] || apt-get -qq -o Acquire::Retries=3 update >&2
        image=$(depends_on linux-image-amd64)
    fi
    [ -n "$image" ] || die 'apt knows no linux-image-amd64: apt-get update?'
    release=${image#linux-image-}                     # 6.1.0-NN-amd64
    series=$(echo "$release" | cut -d. -f1,2)         # 6.1
    version=$(apt-cache show --no-all-versions "$image" | sed -n 's/^Version: //p')
    [ -n "$version" ] || die "apt knows no version of $image"
}

# linux-kbuild is one package for the series, and only its newest version is kept: while the signed
# images of a new version are still to come it is newer than they are, which the headers allow (>=).
fetch() {
    apt-get -qq -o Acquire::Retries=3 download "$image=$version" \
        "linux-headers-$release=$version" "linux-headers-${release%-amd64}-common=$version" \
        "linux-kbuild-$series" "linux-source-$series=$version"
}

# Where the mirror has newer packages than the lists say, the lists are fetched first.
download() {
    mkdir packages
    cd packages
    if ! fetch; then
        rm -f -- *.deb
        apt-get -qq -o Acquire::Retries=3 update
        find_versions
        fetch
    fi
    cd ..
}

unpack() {
    local package
    mkdir system
    for package in packages/linux-image-* packages/linux-headers-* packages/linux-kbuild-*; do
        dpkg-deb -x "$package" system
    done
    dpkg-deb --fsys-tarfile packages/linux-source-*.deb |
        tar -xO "./usr/src/linux-source-$series.tar.xz" |
        tar -xJ --strip-components=1 "linux-source-$series/drivers/infiniband/sw/siw"
}

build_siw() {
    local headers=$work/system/usr/src/linux-headers-$release
    # The one path in there that says where the headers would be installed.
    echo "include $work/system/usr/src/linux-headers-${release%-amd64}-common/Makefile" \
        >"$headers/Makefile"
    make -j"$(nproc)" -C "$headers" M="$work/drivers/infiniband/sw/siw" CONFIG_RDMA_SIW=m modules
    install -D -m 644 drivers/infiniband/sw/siw/siw.ko "system/lib/modules/$release/extra/siw.ko"
}

# The modules in the order in which they load, and that order as a list.
copy_modules() {
    local module file
    /sbin/depmod -b system "$release"
    mkdir -p initramfs/modules
    for module in $wanted; do
        /sbin/modprobe -d system -S "$release" --show-depends "$module" |
            sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++' | while read -r file; do
        cp "$file" initramfs/modules/
        echo "/modules/${file##*/}"
    done >initramfs/modules/order
}

make_initramfs() {
    mkdir -p initramfs/bin initramfs/dev initramfs/proc initramfs/sys initramfs/host initramfs/top
    cp /bin/busybox initramfs/bin/busybox
    ln -s busybox initramfs/bin/sh
    copy_modules
    install -m 755 "$here/init" initramfs/init
    (cd initramfs && find . | cpio -o -H newc --quiet | gzip -1) >"$done/initramfs"
    cp "system/boot/vmlinuz-$release" "$done/vmlinuz"
}

for tool in apt-get dpkg-deb make gcc-12 xz cpio gzip /sbin/depmod /bin/busybox; do
    command -v "$tool" >/dev/null || die "$tool is missing: bash util/packages.sh build vm, as root"
done
find_versions
contents=$(cat "${BASH_SOURCE[0]}" "$here/init" | sha256sum | cut -c1-12)
key=$version-$contents
if [ -f "$cache/$key/initramfs" ]; then
    echo "$cache/$key"
    exit 0
fi

mkdir -p "$cache"
# Beside its place, so that it appears there at once or not at all.
work=$(mktemp -d "$cache/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"
done=$work/done
mkdir "$done"
make_all() {
    download
    unpack
    build_siw
    make_initramfs
    echo "$version-$contents" >key
}
# In the background, since a shell whose failure is looked at goes on after failures.
make_all >log 2>&1 &
wait $! || {
    tail -n 30 log >&2
    die 'the guest kernel could not be made'
}
key=$(cat key)
find "$cache" -mindepth 1 -maxdepth 1 ! -path "$work" ! -name '.making.*' -exec rm -rf {} +
mv "$done" "$cache/$key" 2>/dev/null || [ -f "$cache/$key/initramfs" ] ||
    die "$cache/$key could not be made"
echo "$cache/$key"
