#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Runs test suites in a QEMU guest whose kernel has software RDMA devices: rxe (RoCE)
# and siw (iWARP). Works in pure emulation; nothing is installed, and nothing is left
# behind but the guest's kernel in a cache (kernel.sh).
#
#   run.sh [--keep DIR] [--limit SECONDS] [SUITE...]
#
#   SUITE    suite_SUITE.sh of this folder; by default all of them but those with a line
#            `# Only if it is named.` SUITE/TEST: only the tests of that name, a pattern
#   --keep   what the suites leave (console, logs, captures) is copied to DIR
#   --limit  seconds that all of it may take (900); what was not reported by then has failed
#
# A second guest is started where a suite has a line `# Needs a second guest.`; the two are
# joined by a wire, and the second does what the first asks (far.sh). The first has 2 GiB of
# memory, or 4 where a suite has a line `# Needs 4 GiB of memory.`; with `# Needs persistent memory.`
# 64 MiB of it are /dev/pmem0.
#
# DAT_BUILDDIR   a build folder with `make check TESTS=` done; else one is made, and removed
# DAT_EARLIER    another build folder, which suite_speed.sh compares with
# FABTESTS_BIN_DIR  fabtests' programs, for suite_fabtests.sh
# RPMA_EXAMPLES_DIR  the programs of librpma's examples, for suite_rpma.sh
# DAT_VM_ACCEL   `tcg` (emulation, the default) or `kvm`
#
# Prints a line for each test: `ok`, `FAIL` or `skip`, and its name. A suite of which
# no end was seen has failed. The last line is the sum. Exit status 0 if nothing
# failed, 1 if something did, 2 if the guest could not be made or started.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/util/common.sh"
keep=
limit=900
suites=()
while [ $# -gt 0 ]; do
    case $1 in
    --keep) keep=${2:?}; shift ;;
    --limit) limit=${2:?}; shift ;;
    -*) sed -n 's/^#   \(run.sh.*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    *) suites+=("$1") ;;
    esac
    shift
done
if [ ${#suites[@]} -eq 0 ]; then
    for suite in "$here"/suite_*.sh; do
        ! grep -qx '# Only if it is named\.' "$suite" || continue
        suite=${suite##*/suite_}
        suites+=("${suite%.sh}")
    done
fi
two=no
memory=2G
boot_more=
for suite in "${suites[@]}"; do
    file=$here/suite_${suite%%/*}.sh
    [ -f "$file" ] || { echo "there is no suite $suite" >&2; exit 2; }
    ! grep -qx '# Needs a second guest\.' "$file" || two=yes
    ! grep -qx '# Needs 4 GiB of memory\.' "$file" || memory=4G
    ! grep -qx '# Needs persistent memory\.' "$file" || boot_more=' memmap=64M!512M'
done

work=$(mktemp -d "${TMPDIR:-/tmp}/dat-vm.XXXXXX") || exit 2
guests=()
# The limit of a guest hands on a signal that ends it.
end_guests() {
    local guest
    for guest in "${guests[@]}"; do kill "$guest" 2>/dev/null; done
    for guest in "${guests[@]}"; do wait "$guest" 2>/dev/null; done
    guests=()
}
clean_up() {
    end_guests
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

make_build() {
    copy_source "$root" "$work/source" && mkdir "$work/build" && cd "$work/source" &&
        autoreconf -fi && cd "$work/build" && ../source/configure -q &&
        make -j"$(nproc)" && make -j"$(nproc)" check TESTS=
}

build=${DAT_BUILDDIR:-}
if [ -z "$build" ]; then
    build=$work/build
    (make_build) >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log" >&2; exit 2; }
fi
build=$(cd "$build" && pwd) || exit 2
boot=$(bash "$here/kernel.sh") || exit 2
command -v qemu-system-x86_64 >/dev/null ||
    { echo 'qemu-system-x86_64 is missing: bash util/packages.sh vm, as root' >&2; exit 2; }

# What a guest runs. It sees this file system, so the paths are the same there.
mkdir "$work/job" "$work/job2"
write_start() { # file script arguments...
    local file=$1
    shift
    printf 'export DAT_SRCDIR=%q DAT_BUILDDIR=%q dat_two=%q\n' "$root" "$build" $two >"$file"
    [ -z "${FABTESTS_BIN_DIR:-}" ] || printf 'export FABTESTS_BIN_DIR=%q\n' "$FABTESTS_BIN_DIR" >>"$file"
    [ -z "${RPMA_EXAMPLES_DIR:-}" ] ||
        printf 'export RPMA_EXAMPLES_DIR=%q\n' "$RPMA_EXAMPLES_DIR" >>"$file"
    [ -z "${DAT_EARLIER:-}" ] || printf 'export DAT_EARLIER=%q\n' "$DAT_EARLIER" >>"$file"
    printf 'exec bash' >>"$file"
    printf ' %q' "$@" >>"$file"
    echo >>"$file"
}
write_start "$work/job/start" "$here/guest.sh" "${suites[@]}"
write_start "$work/job2/start" "$here/guest2.sh"

# Emulated, most of what a guest takes is the translation of code that it has not run yet: where
# programs and the kernel lie at the same addresses each time, what one has translated serves the
# next, which makes a third of the time less. A string instruction of bytes is emulated byte by byte, so
# the kernel and the C library are not told that those are fast; nor is there AVX.
accel=${DAT_VM_ACCEL:-tcg}
cpu=max,-arch-capabilities
boot_options='console=ttyS0 panic=-1 quiet tsc=reliable no_timer_check'
if [ "$accel" = tcg ]; then
    accel=tcg,thread=multi
    cpu+=,-erms,-fsrm,-avx,-avx2
    boot_options+=' nokaslr norandmaps'
fi

# The ends of the wire are relative names, since those of sockets are short.
boot_guest() { # console job log memory own-end-of-the-wire other-end
    local net=(-nic none)
    [ $two = no ] || net=(-netdev "dgram,id=wire,local.type=unix,local.path=$5,remote.type=unix,remote.path=$6"
        -device "virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:00:00:0${5#wire}")
    (
        cd "$work" && exec timeout -k 10 $((limit - SECONDS > 1 ? limit - SECONDS : 1)) \
            qemu-system-x86_64 -accel "$accel" -cpu $cpu -smp 2 -m "$4" \
            -no-reboot -display none -monitor none -serial "file:$1" "${net[@]}" \
            -kernel "$boot/vmlinuz" -initrd "$boot/initramfs" \
            -append "$boot_options$boot_more" \
            -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
            -virtfs "local,path=$work/$2,mount_tag=job,security_model=none"
    ) >"$work/$3" 2>&1 </dev/null &
    guests+=($!)
}

started=$SECONDS
status=0
boot_guest console job qemu.log $memory wire1 wire2
[ $two = no ] || boot_guest console2 job2 qemu2.log 1G wire2 wire1
wait "${guests[0]}" || status=$?
unset 'guests[0]'
end_guests
tr -d '\r' <"$work/console" 2>/dev/null | sed -n 's/^##dat //p' >"$work/lines"
if [ -n "$keep" ]; then
    mkdir -p "$keep" && cp "$work/console" "$work/qemu.log" "$keep" && cp -r "$work/job/." "$keep"
    [ $two = no ] || cp "$work/console2" "$work/qemu2.log" "$keep"
fi

grep -E '^((ok|FAIL|skip) |\|)' "$work/lines"
passed=$(grep -c '^ok ' "$work/lines")
failed=$(grep -c '^FAIL ' "$work/lines")
skipped=$(grep -c '^skip ' "$work/lines")
complete=yes
for suite in "${suites[@]}"; do
    grep -qxF "end $suite" "$work/lines" && continue
    echo "FAIL $suite: its end was not seen"
    failed=$((failed + 1))
    complete=no
done
if [ $complete = no ]; then
    [ $status -ne 124 ] || echo "ended after $limit s"
    cat "$work/qemu.log"
    tail -n 40 "$work/console"
    [ $two = no ] || tail -n 20 "$work/console2"
fi
echo "guest: $passed passed, $failed failed, $skipped skipped, $((SECONDS - started)) s"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
