// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See message_buffers.h.
#include "links/verbs/message_buffers.h"

#include "base/attempt.h"
#include "engine/kernel.h"
#include "links/verbs/link_parts.h"

#include <cerrno>
#include <infiniband/verbs.h>
#include <sys/mman.h>

namespace dat::verbs {

std::unique_ptr<MessageBuffers> MessageBuffers::make(ibv_pd* pd, std::uint32_t outgoing) {
    std::unique_ptr<MessageBuffers> made;
    const std::size_t size = (std::size_t{kMessages} + outgoing) * kMessageSize;
    if (!base::attempt([&] { made.reset(new MessageBuffers(size)); })) {
        errno = ENOMEM;
        return nullptr;
    }
    const kernel::NoCancel within;
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    made->base_ = static_cast<std::byte*>(memory);
    constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE;
    made->mr_ = ibv_reg_mr(pd, memory, size, kAccess);
    if (!made->mr_) {
        return nullptr;
    }
    made->key_ = made->mr_->lkey;
    return made;
}

MessageBuffers::~MessageBuffers() {
    const int error = errno; // of make()
    const kernel::NoCancel within;
    if (mr_) {
        ibv_dereg_mr(mr_);
    }
    if (base_) {
        munmap(base_, size_);
    }
    errno = error;
}

bool MessageBuffers::give(ibv_qp* qp, std::uint32_t number) {
    ibv_sge into{reinterpret_cast<std::uintptr_t>(at(number)), kMessageSize, key_};
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = receive_id(number);
    wr.sg_list = &into;
    wr.num_sge = 1;
    errno = ibv_post_recv(qp, &wr, &bad);
    return errno == 0;
}

bool MessageBuffers::give_all(ibv_qp* qp) {
    for (std::uint32_t number = 0; number < kMessages; ++number) {
        if (!give(qp, number)) {
            return false;
        }
    }
    return true;
}

} // namespace dat::verbs
