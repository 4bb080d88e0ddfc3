/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a command behind a filter of system calls that refuses, with EPERM, what the default
 * profiles of container engines have refused: tracing and what reads the memory of other
 * processes, io_uring, membarrier(2), userfaultfd(2), bpf(2), keys, mounts and the like. May
 * include: POSIX, Linux.
 *
 *   confined COMMAND [ARGUMENT...]
 *
 * Exit status 77: this kernel has no such filters; 1: it could not be set, or refuses nothing.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#elif defined __i386__
#define MACHINE AUDIT_ARCH_I386
#elif defined __s390x__
#define MACHINE AUDIT_ARCH_S390X
#endif

static const int refused[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_membarrier,
    SYS_userfaultfd,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_kcmp,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_setns,
    SYS_unshare,
    SYS_open_by_handle_at,
    SYS_move_pages,
    SYS_mbind,
    SYS_set_mempolicy,
    SYS_personality,
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
};
enum { kRefused = sizeof refused / sizeof *refused };

int main(int argc, char** argv) {
    struct sock_filter code[2 * kRefused + 5];
    struct sock_fprog program = {.filter = code};
    unsigned short n = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: confined COMMAND [ARGUMENT...]\n");
        return 2;
    }
#ifdef MACHINE
    /* Of another machine's calls none is let through. */
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < kRefused; ++i) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        fprintf(stderr, "confined: seccomp: %s\n", strerror(errno));
        return errno == EINVAL || errno == ENOSYS ? 77 : 1;
    }
#else
    (void)program;
    (void)n;
    (void)code;
    fprintf(stderr, "confined: there is no filter for this machine\n");
    return 77;
#endif
    errno = 0;
    if (syscall(SYS_membarrier, 0, 0, 0) != -1 || errno != EPERM) {
        fprintf(stderr, "confined: the filter refuses nothing\n");
        return 1;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "confined: %s: %s\n", argv[1], strerror(errno));
    return 1;
}
