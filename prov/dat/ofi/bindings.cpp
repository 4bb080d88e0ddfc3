// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See bindings.h.
#include "ofi/bindings.h"

#include "ofi/errors.h"
#include "ofi/info.h"

namespace dat::ofi {

Bindings::Bindings(Domain& domain, std::uint64_t tx_flags, std::uint64_t rx_flags)
    : domain_(domain), biased_lock_(domain.biased_lock()), tx_flags_(tx_flags),
      rx_flags_(rx_flags) {}

Bindings::~Bindings() {
    for (CompletionQueue* cq : {tx_cq_, rx_cq_}) {
        if (cq) {
            cq->users.remove();
        }
    }
    for_each_counter([](Counter& counter) { counter.users.remove(); });
}

int Bindings::bind_queue(EventQueue& eq) {
    if (eq_ || enabled_ || &eq.fabric() != &domain_.fabric()) {
        DAT_WARN(ep_ctrl, "fi_ep_bind(): %s",
                 eq_        ? "an event queue is bound already"
                 : enabled_ ? "the endpoint is enabled already"
                            : "the event queue belongs to another fabric");
        return enabled_ ? -FI_EOPBADSTATE : -FI_EINVAL;
    }
    const int rc = no_throw([&] { return eq.add_source(domain_); });
    if (rc == 0) {
        eq_ = &eq;
        eq.users.add();
    }
    return rc;
}

int Bindings::bind_queue(CompletionQueue& cq, std::uint64_t flags) {
    constexpr std::uint64_t kDirections = FI_TRANSMIT | FI_RECV;
    const bool tx = (flags & FI_TRANSMIT) != 0;
    const bool rx = (flags & FI_RECV) != 0;
    if ((flags & ~(kDirections | FI_SELECTIVE_COMPLETION)) != 0 || (!tx && !rx)) {
        DAT_WARN(ep_ctrl,
                 "fi_ep_bind(): flags = 0x%llx; FI_TRANSMIT, FI_RECV or both, and "
                 "FI_SELECTIVE_COMPLETION are offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    if (enabled_ || (tx && tx_cq_) || (rx && rx_cq_) || &cq.domain() != &domain_) {
        DAT_WARN(ep_ctrl, "fi_ep_bind(): %s",
                 enabled_                   ? "the endpoint is enabled already"
                 : &cq.domain() != &domain_ ? "the completion queue belongs to another domain"
                                            : "a completion queue is bound already");
        return enabled_ ? -FI_EOPBADSTATE : -FI_EINVAL;
    }
    const std::uint64_t reports = (flags & FI_SELECTIVE_COMPLETION) == 0 ? FI_COMPLETION : 0;
    if (tx) {
        tx_cq_ = &cq;
        tx_reports_ = reports;
        cq.users.add();
    }
    if (rx) {
        rx_cq_ = &cq;
        rx_reports_ = reports;
        cq.users.add();
    }
    return 0;
}

int Bindings::bind_counter(Counter& cntr, std::uint64_t flags) {
    constexpr std::uint64_t kCounted =
        FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    if ((flags & ~kCounted) != 0 || flags == 0) {
        DAT_WARN(ep_ctrl,
                 "fi_ep_bind(): flags = 0x%llx with a counter; FI_SEND, FI_RECV, FI_READ, "
                 "FI_WRITE, FI_REMOTE_READ and FI_REMOTE_WRITE are offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    engine::Endpoint::Counters bound = counters_;
    const auto bind = [&](std::uint64_t flag, core::Counter*& slot) {
        if ((flags & flag) == 0) {
            return true;
        }
        const bool free = !slot;
        slot = &cntr;
        return free;
    };
    bool free = bind(FI_SEND, bound.send);
    free &= bind(FI_RECV, bound.receive);
    free &= bind(FI_READ, bound.read);
    free &= bind(FI_WRITE, bound.write);
    free &= bind(FI_REMOTE_READ, bound.remote_read);
    free &= bind(FI_REMOTE_WRITE, bound.remote_write);
    if (enabled_ || !free || &cntr.domain() != &domain_) {
        DAT_WARN(ep_ctrl, "fi_ep_bind(): %s",
                 enabled_ ? "the endpoint is enabled already"
                 : free   ? "the counter belongs to another domain"
                          : "a counter is bound already for one of these operations");
        return enabled_ ? -FI_EOPBADSTATE : -FI_EINVAL;
    }
    for_each_counter([](Counter& counter) { counter.users.remove(); });
    counters_ = bound;
    for_each_counter([](Counter& counter) { counter.users.add(); });
    return 0;
}

bool are_default_flags(const char* call, const Offering& offering, std::uint64_t flags) {
    const bool sends = (flags & FI_TRANSMIT) != 0;
    const std::uint64_t offered = sends ? offering.tx_op_flags : offering.rx_op_flags;
    if (sends != ((flags & FI_RECV) != 0) && (flags & ~(FI_TRANSMIT | FI_RECV) & ~offered) == 0) {
        return true;
    }
    DAT_WARN(ep_ctrl, "%s = 0x%llx: either FI_TRANSMIT or FI_RECV, and bits of 0x%llx", call,
             static_cast<unsigned long long>(flags), static_cast<unsigned long long>(offered));
    return false;
}

} // namespace dat::ofi
