#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The main job as a container runs it, without an engine of containers: a user without privileges,
# in a user namespace of its own, with process, mount, IPC and network namespaces; every file system
# read-only but a small /tmp and /dev/shm; no network but loopback; and behind a filter of system calls
# (confined.c). It works, and the log says what was lost: the one copy of large messages, since a
# process's memory cannot be read there, and barriers that the sleeper pays.
#
# Who is root becomes the user 65534 first.
set -u

# No user namespace may mount a /proc of its own where a file of its parent's is hidden, as
# test/run.sh hides one.
if findmnt --noheadings /proc/kallsyms >/dev/null; then
    exec unshare --mount bash -c 'umount /proc/kallsyms && exec bash "$0"' "${BASH_SOURCE[0]}"
fi

root=$(cd "${DAT_SRCDIR:-$(dirname "${BASH_SOURCE[0]}")/../..}" && pwd)
build=$(cd "${DAT_BUILDDIR:-.}" && pwd)
skip() {
    echo "SKIP: $*"
    exit 77
}
for program in fi_pingpong fi_info setpriv unshare; do
    command -v $program >/dev/null || skip "$program is not installed"
done
nm -D "$build/.libs/libdat-fi.so" | grep -qE '__(asan|tsan|ubsan)' &&
    skip 'fi_pingpong cannot load a provider that is built with a sanitizer'

# Where another user may read; what TMPDIR names may be root's.
work=$(mktemp -d /tmp/dat-container.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$work/provider" "$work/tmp" && cp "$build/.libs/libdat-fi.so" "$work/provider" &&
    cp "$root/util/main_job.sh" "$root/util/mpi_ring.c" "$build/test/container/confined" "$work" || exit 1
chmod -R a+rX "$work"

# What is done inside, as root of the user namespace. Mounts that this namespace has from its parent
# can be made read-only, one by one; those of the kernel's own file systems are left.
cat >"$work/inside" <<'END'
set -u
lost() {
    echo "cannot be tried here: $*"
    exit 77
}
ip link set lo up || lost 'loopback'
mount --make-rprivate / || lost 'private mounts'
mount -t tmpfs -o mode=1777,size=256m none /dev/shm || lost '/dev/shm'
mkdir /dev/shm/work && cp -R "$1"/. /dev/shm/work || exit 1
mount -t tmpfs -o mode=1777,size=256m none /tmp || lost '/tmp'
mount -o remount,bind,ro / || lost 'a read-only root'
if (: >/usr/dat-container-test) 2>/dev/null || (: >/etc/dat-container-test) 2>/dev/null; then
    echo 'the root can be written to'
    exit 1
fi
if ip route get 192.0.2.1 >/dev/null 2>&1; then
    echo 'there is a network besides loopback'
    exit 1
fi
cd /dev/shm/work || exit 1
export HOME=/tmp TMPDIR=/tmp FI_PROVIDER_PATH=/dev/shm/work/provider DAT_JOB_ITERATIONS=1 DAT_JOB_LIMIT_S=115
exec ./confined bash -c '
    FI_LOG_LEVEL=info FI_LOG_PROV=dat bash main_job.sh "" pingpong || exit 1
    if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then
        bash main_job.sh "" ring || exit 1
    fi
    grep -q "^Seccomp:.*2" /proc/self/status && echo "behind a filter"
'
END
as=()
[ "$(id -u)" -ne 0 ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all)
own=(unshare --user --map-root-user --mount --net --pid --ipc --uts --fork --kill-child --mount-proc)
cd / || exit 1
"${as[@]}" "${own[@]}" true 2>"$work/log" ||
    skip "this kernel gives users no namespaces of their own: $(tail -n 1 "$work/log")"
status=0
timeout -k 5 240 "${as[@]}" "${own[@]}" bash "$work/inside" "$work" >"$work/log" 2>&1 </dev/null || status=$?
if [ $status -eq 77 ]; then
    skip "$(tail -n 1 "$work/log")"
elif [ $status -ne 0 ]; then
    tail -n 60 "$work/log"
    echo "FAILED: the main job, exit status $status"
    exit 1
fi
grep '^== ' "$work/log"
said=$(grep -oE 'uses shared memory: .*' "$work/log" | sort -u)
grep -qE 'come in pieces: (process_vm_readv\(2\): Operation not permitted; this process has a seccomp filter|kernel.yama.ptrace_scope is )' <<<"$said" || {
    grep -F 'dat:' "$work/log" | head -n 20
    echo "FAILED: the log does not say what was lost, but: ${said:-nothing of shared memory}"
    exit 1
}
fences=$(grep -m 1 -oE 'membarrier\(2\): Operation not permitted; .*' "$work/log") || {
    echo 'FAILED: the log does not say that membarrier(2) is refused'
    exit 1
}
grep -q '^behind a filter$' "$work/log" || { echo 'FAILED: there was no filter'; exit 1; }
printf 'it works, and says:\n%s\n%s\n' "$said" "$fences"
