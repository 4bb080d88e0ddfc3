// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See acquaintance.h.
#include "links/shm/acquaintance.h"

#include "base/log.h"
#include "engine/barrier.h"
#include "engine/proc.h"
#include "links/shm/local_socket.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace dat::shm {

namespace {

// Why process_vm_readv(2) has failed with `error` for a process of the same user.
void explain_copying(Why& why, int process, int error) {
    const int scope = engine::number_in("/proc/sys/kernel/yama/ptrace_scope", "");
    if (error == EPERM && scope > 0) {
        explain(why, "kernel.yama.ptrace_scope is %d, 0 would let process %d be read", scope,
                process);
    } else if ((error == EPERM || error == ENOSYS) &&
               engine::number_in("/proc/self/status", "Seccomp:\t") > 0) {
        explain(why, "process_vm_readv(2): %s; this process has a seccomp filter",
                std::strerror(error));
    } else {
        explain(why, "process_vm_readv(2) of process %d: %s", process, std::strerror(error));
    }
}

} // namespace

void explain(Why& why, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(why.data(), why.size(), format, args);
    va_end(args);
}

Self self() {
    const Image image = own_image();
    return {image.address, image.word, engine::barriers_reach() ? 1u : 0u, 0};
}

Acquaintance acquaintance(const Self& peer, const net::Socket& socket) {
    Acquaintance known;
    // A process number can get another owner. So nobody's memory is read whom this user
    // may not trace, even where this process could: its peer would be told what is there.
    // Nor that of a process that could not stop this one as well: it could make a copy wait.
    Credentials who;
    if (!credentials_of(socket, who)) {
        explain(known.why, "the kernel does not say whose process the peer is");
    } else if (who.user != geteuid()) {
        explain(known.why, "process %d is of user %u, this one of user %u",
                static_cast<int>(who.process), static_cast<unsigned>(who.user),
                static_cast<unsigned>(geteuid()));
    } else if (!same_process_namespace(who.process)) {
        explain(known.why, "the peer is in another process namespace");
    } else {
        known.image = {who.process, peer.image_address, peer.image_word};
    }
    errno = 0;
    known.pulls = can_pull(known.image);
    if (!known.pulls && known.image.process > 0 &&
        base::wants(base::LogLevel::info, base::LogArea::ep_ctrl)) {
        explain_copying(known.why, static_cast<int>(who.process), errno);
    }
    known.fences = peer.barriers == 0 || !engine::barriers_reach();
    return known;
}

} // namespace dat::shm
