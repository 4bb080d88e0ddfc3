// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See srq.h.
#include "dat-shim/srq.h"

#include "dat-shim/evd.h"

#include <rdma/fi_errno.h>

namespace dat::shim {
namespace {

constexpr std::uint64_t kIndexMask = UINT32_MAX;
constexpr std::uint64_t kOneChange = std::uint64_t{1} << 32;

} // namespace

Srq::Srq(Ia& ia, Pz& pz, const Attributes& attributes)
    : Object(ia, kKind, ia.dispatch()), pz_(pz), attributes_(attributes), lmrs_(ia.lmrs()) {
    const auto size = static_cast<std::uint32_t>(attributes.max_recv_dtos);
    slots_ = std::make_unique<Slot[]>(size);
    next_ = std::make_unique<std::atomic<std::uint32_t>[]>(size);
    for (std::uint32_t i = 0; i < size; ++i) {
        next_[i] = i; // the one below: index + 1 of i - 1
    }
    top_ = size;
    ++pz_.users;
}

Srq::~Srq() { --pz_.users; }

Return Srq::create(Ia& ia, Pz& pz, const Attributes& attributes, Srq*& srq) {
    if (!ia.can().shared_receives) {
        return fail(Type::model_not_supported);
    }
    if (attributes.max_recv_dtos <= 0 || attributes.max_recv_dtos > Limits::kMaxSharedDtos ||
        attributes.max_recv_iov < 0 || attributes.max_recv_iov > ia.can().max_segments ||
        attributes.low_watermark != 0) { // SRQ-1
        return bad_argument(3);
    }
    srq = ia.make<Srq>(ia, pz, attributes);
    fi_rx_attr attr{};
    attr.size = static_cast<std::size_t>(attributes.max_recv_dtos);
    attr.iov_limit = static_cast<std::size_t>(ia.can().max_segments);
    if (fi_srx_context(ia.domain(), &attr, &srq->srx_, srq) != 0) {
        ia.destroy(*srq);
        return fail(Type::insufficient_resources, Sub::resource_srq);
    }
    fi_open_ops(&srq->srx_->fid, FI_DAT_SRX_OPS, 0, reinterpret_cast<void**>(&srq->ops_), nullptr);
    return kSuccess;
}

Return Srq::free() {
    if (users.load() > 0) { // U-20
        return fail(Type::invalid_state, Sub::invalid_state_srq_in_use);
    }
    fi_close(&srx_->fid);
    if (Evd* const async = ia().async_evd()) {
        async->forget(*this);
    }
    ia().destroy(*this);
    return kSuccess;
}

// It need not shrink, and has no room to grow: what was granted stays.
Return Srq::resize(std::int32_t max_recv_dtos) {
    if (max_recv_dtos <= 0) {
        return bad_argument(2);
    }
    if (max_recv_dtos < outstanding() || max_recv_dtos < attributes_.low_watermark) {
        return fail(Type::invalid_state);
    }
    return max_recv_dtos > attributes_.max_recv_dtos
               ? fail(Type::insufficient_resources, Sub::resource_srq)
               : kSuccess;
}

Return Srq::set_low_watermark(std::int32_t low_watermark) {
    if (low_watermark < 0 || low_watermark > attributes_.max_recv_dtos) {
        return bad_argument(2);
    }
    attributes_.low_watermark = low_watermark;
    return ops_->set_low_watermark(srx_, static_cast<std::uint32_t>(low_watermark)) == 0
               ? kSuccess
               : fail(Type::insufficient_resources);
}

std::int32_t Srq::available() const {
    std::uint32_t count = 0;
    ops_->available(srx_, &count);
    return static_cast<std::int32_t>(count);
}

Slot* Srq::take() {
    std::uint64_t top = top_.load(std::memory_order_acquire);
    for (;;) {
        const auto index = static_cast<std::uint32_t>(top & kIndexMask);
        if (index == 0) {
            return nullptr;
        }
        const std::uint64_t below = next_[index - 1].load(std::memory_order_relaxed);
        const std::uint64_t changed = ((top & ~kIndexMask) + kOneChange) | below;
        if (top_.compare_exchange_weak(top, changed, std::memory_order_acq_rel)) {
            return &slots_[index - 1];
        }
    }
}

void Srq::release(Slot& slot) {
    const auto index = static_cast<std::uint32_t>(&slot - slots_.get()) + 1;
    outstanding_.fetch_sub(1);
    std::uint64_t top = top_.load(std::memory_order_acquire);
    std::uint64_t changed = 0;
    do {
        next_[index - 1].store(static_cast<std::uint32_t>(top & kIndexMask),
                               std::memory_order_relaxed);
        changed = ((top & ~kIndexMask) + kOneChange) | index;
    } while (!top_.compare_exchange_weak(top, changed, std::memory_order_acq_rel));
}

Return Srq::post(const iovec* segments, std::size_t count, std::uint64_t cookie) {
    Slot* const slot = take(); // SRQ-7
    if (!slot) {
        return kSharedQueueFull;
    }
    *slot = {};
    slot->srq = this;
    slot->cookie = cookie;
    slot->operation = Operation::receive;
    outstanding_.fetch_add(1);
    fi_msg message{segments, nullptr, count, FI_ADDR_UNSPEC, slot, 0};
    if (const ssize_t rc = fi_recvmsg(srx_, &message, FI_COMPLETION); rc != 0) {
        release(*slot);
        if (rc == -FI_EFAULT) { // FI_DAT_CHECK_BUFFERS
            return fail(Type::invalid_address);
        }
        return rc == -FI_EAGAIN ? kSharedQueueFull
                                : fail(Type::insufficient_resources, Sub::resource_srq);
    }
    return kSuccess;
}

} // namespace dat::shim
