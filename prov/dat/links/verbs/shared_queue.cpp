// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See shared_queue.h.
#include "links/verbs/shared_queue.h"

#include "base/assert.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "links/verbs/link_parts.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <infiniband/verbs.h>

namespace dat::verbs {

SharedQueue::SharedQueue(Domain& domain, engine::SharedReceives& receives, ibv_pd* pd,
                         std::uint32_t size)
    : domain_(domain), receives_(receives), pd_(pd), temporary_registrations_(domain) {
    set_size(size);
}

// Before there is one.
void SharedQueue::set_size(std::uint32_t size) {
    slots_.resize(size);
    free_.clear();
    free_.reserve(size);
    for (std::uint32_t number = size; number > 0; --number) {
        free_.push_back(number - 1);
    }
}

std::shared_ptr<SharedQueue> SharedQueue::of(Domain& domain, engine::SharedReceives& receives,
                                             ibv_pd* pd) {
    if (receives.device()) {
        auto* const queue = static_cast<SharedQueue*>(receives.device());
        if (queue->pd_ != pd) {
            DAT_WARN(ep_ctrl, "a connection: its endpoint is of another protection zone than those "
                              "that take from the same shared receive context");
            return nullptr;
        }
        return queue->self_.lock();
    }
    const std::uint32_t size = std::min(receives.limit(), domain.device().shared_size());
    std::shared_ptr<SharedQueue> queue(new SharedQueue(domain, receives, pd, size));
    if (!queue->open(std::min<std::uint32_t>(domain.device().shared_segments, engine::kMaxIov))) {
        return nullptr;
    }
    queue->self_ = queue;
    receives.set_device(queue.get());
    queue->offered();
    return queue;
}

bool SharedQueue::open(std::uint32_t segments) {
    ibv_srq_init_attr attr{};
    attr.srq_context = this;
    attr.attr.max_wr = size();
    attr.attr.max_sge = segments;
    ibv_srq* const made = kernel::uncancelled(ibv_create_srq, pd_, &attr);
    if (!made && errno == ENOMEM && size() > 1) { // what has no place in it waits beside it
        set_size(size() / 2);
        return open(segments);
    }
    if (!made) {
        log_failure("a connection: ibv_create_srq()", errno);
        return false;
    }
    srq_.reset(made, ibv_destroy_srq);
    return true;
}

SharedQueue::~SharedQueue() {
    if (!srq_) {
        return;
    }
    // From here on the device touches no memory of the program: a queue pair that is still
    // there has failed.
    srq_->srq_context = nullptr;
    srq_.reset();
    receives_.set_device(nullptr);
    // The list of those that are free has room for all, and is of no other use any more.
    std::vector<std::uint32_t>& left = free_;
    left.clear();
    for (std::uint32_t number = 0; number < size(); ++number) {
        if (slots_[number].order != kFree) {
            left.push_back(number);
        }
    }
    std::ranges::sort(left, std::greater(), [&](std::uint32_t n) { return slots_[n].order; });
    for (const std::uint32_t number : left) {
        receives_.give_back(slots_[number].receive);
    }
}

void SharedQueue::offered() {
    while (!free_.empty() && !receives_.empty()) {
        const std::uint32_t number = free_.back();
        Slot& slot = slots_[number];
        engine::move_receive(receives_.lend(), slot.receive, slot.extra_segments);
        if (!post(number)) {
            receives_.give_back(slot.receive);
            return;
        }
        slot.order = posted_++;
        free_.pop_back();
    }
}

// What is refused is tried again with the next that is posted, or completed.
bool SharedQueue::post(std::uint32_t number) {
    ibv_sge segments[engine::kMaxIov];
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = receive_id(number);
    wr.sg_list = segments;
    int error = ENOMEM;
    if (temporary_registrations_.gather(pd_, slots_[number].receive.segments(), nullptr,
                                        IBV_ACCESS_LOCAL_WRITE, wr.wr_id, segments, wr.num_sge)) {
        error = ibv_post_srq_recv(srq_.get(), &wr, &bad);
    }
    if (error != 0) {
        temporary_registrations_.end(wr.wr_id);
        DAT_WARN(ep_data, "a shared receive cannot be posted to %s: %s",
                 domain_.device().name.c_str(), std::strerror(std::abs(error)));
    }
    return error == 0;
}

std::uint64_t SharedQueue::completed(std::uint64_t wr_id, engine::Endpoint& endpoint) {
    const std::uint64_t number = seq_of(wr_id);
    Slot& slot = slots_[number];
    DAT_ASSERT(slot.order != kFree);
    temporary_registrations_.end(wr_id);
    const std::uint64_t seq = endpoint.adopt(slot.receive);
    slot.order = kFree;
    free_.push_back(static_cast<std::uint32_t>(number));
    receives_.taken();
    offered();
    return seq;
}

} // namespace dat::verbs
