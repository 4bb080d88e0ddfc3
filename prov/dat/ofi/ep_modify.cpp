// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Changing an endpoint before it is connected (EPA-5): modify() of fi_ext_dat.h. Everything
// is checked before anything changes.
#include "base/log.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/info.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace dat::ofi {
namespace {

constexpr std::uint64_t kMask = FI_DAT_EP_EQ | FI_DAT_EP_TX_CQ | FI_DAT_EP_RX_CQ |
                                FI_DAT_EP_AUTH_KEY | FI_DAT_EP_TX_SIZE | FI_DAT_EP_RX_SIZE |
                                FI_DAT_EP_READ_IN | FI_DAT_EP_READ_OUT;

bool allowed(core::State state, std::uint64_t mask) {
    switch (state) {
    case core::State::unconnected:
    case core::State::tentative_connection_pending:
        return true;
    case core::State::reserved:
    case core::State::passive_connection_pending:
        return (mask & FI_DAT_EP_AUTH_KEY) == 0;
    default:
        return false;
    }
}

// A number of `attr` that the mask names, within its range.
bool in_range(const char* name, std::uint64_t mask, std::uint64_t bit, std::size_t value,
              std::size_t least, std::size_t most) {
    if ((mask & bit) == 0 || (value >= least && value <= most)) {
        return true;
    }
    DAT_WARN(ep_ctrl, "modify(): %s = %zu; from %zu to %zu are offered", name, value, least, most);
    return false;
}

bool queue_fits(const char* name, std::uint64_t mask, std::uint64_t bit, fid_cq* queue,
                std::uint64_t flags, Domain& domain) {
    if ((mask & bit) == 0) {
        return true;
    }
    if ((flags & ~FI_SELECTIVE_COMPLETION) != 0) {
        DAT_WARN(ep_ctrl, "modify(): %s_flags = 0x%llx; FI_SELECTIVE_COMPLETION is offered", name,
                 static_cast<unsigned long long>(flags));
        return false;
    }
    if (queue && &cq_of(queue).domain() != &domain) {
        DAT_WARN(ep_ctrl, "modify(): %s belongs to another domain", name);
        return false;
    }
    return true;
}

bool values_fit(const fi_dat_ep_attr& attr, Domain& domain) {
    const std::uint64_t mask = attr.mask;
    if ((mask & ~kMask) != 0) {
        DAT_WARN(ep_ctrl, "modify(): mask = 0x%llx has other bits than 0x%llx",
                 static_cast<unsigned long long>(mask), static_cast<unsigned long long>(kMask));
        return false;
    }
    if ((mask & FI_DAT_EP_EQ) != 0 && attr.eq && &eq_of(attr.eq).fabric() != &domain.fabric()) {
        DAT_WARN(ep_ctrl, "modify(): eq belongs to another fabric");
        return false;
    }
    const std::size_t most = domain.offering().queue_size;
    return queue_fits("tx_cq", mask, FI_DAT_EP_TX_CQ, attr.tx_cq, attr.tx_cq_flags, domain) &&
           queue_fits("rx_cq", mask, FI_DAT_EP_RX_CQ, attr.rx_cq, attr.rx_cq_flags, domain) &&
           in_range("tx_size", mask, FI_DAT_EP_TX_SIZE, attr.tx_size, 1, most) &&
           in_range("rx_size", mask, FI_DAT_EP_RX_SIZE, attr.rx_size, 1, most) &&
           in_range("read_in", mask, FI_DAT_EP_READ_IN, attr.read_in, 0, FI_DAT_MAX_READS) &&
           in_range("read_out", mask, FI_DAT_EP_READ_OUT, attr.read_out, 0, FI_DAT_MAX_READS);
}

} // namespace

// Under the lock.
void Endpoint::replace_queue(CompletionQueue*& slot, CompletionQueue* cq) {
    if (slot) {
        slot->users.remove();
    }
    slot = cq;
    if (cq) {
        cq->users.add();
    }
}

int Endpoint::modify(const fi_dat_ep_attr& given) {
    fi_dat_ep_attr attr{};
    std::memcpy(&attr, &given, std::min(given.size, sizeof attr));
    const std::uint64_t mask = attr.mask;
    if (!values_fit(attr, domain_)) {
        return -FI_EINVAL;
    }
    ZoneHandle zone;
    if ((mask & FI_DAT_EP_AUTH_KEY) != 0) {
        zone = domain_.zone("modify()", attr.auth_key, attr.auth_key_size);
        if (!zone) {
            return -FI_EINVAL;
        }
    }
    EventQueue* const new_eq = attr.eq ? &eq_of(attr.eq) : nullptr;
    const bool changes_eq = (mask & FI_DAT_EP_EQ) != 0 && new_eq != eq_;
    if (changes_eq && new_eq) {
        if (const int rc = new_eq->add_source(domain_)) {
            return rc;
        }
    }
    const int rc = change(attr, std::move(zone));
    if (rc) {
        if (changes_eq && new_eq) {
            new_eq->remove_source(domain_);
        }
        return rc;
    }
    if (changes_eq) {
        EventQueue* const old = std::exchange(eq_, new_eq);
        if (new_eq) {
            new_eq->users.add();
        }
        if (old) {
            old->remove_source(domain_);
            old->purge(&fid);
            old->users.remove();
        }
    }
    return 0;
}

// What the lock guards.
int Endpoint::change(const fi_dat_ep_attr& attr, ZoneHandle zone) {
    const std::uint64_t mask = attr.mask;
    const engine::BiasedLockOwner in(biased_lock());
    const core::State state = engine_.core().visible_state();
    if (!allowed(state, mask)) {
        DAT_WARN(ep_ctrl, "modify() with mask = 0x%llx is not allowed in state %s",
                 static_cast<unsigned long long>(mask), core::name(state).data());
        return -FI_EOPBADSTATE;
    }
    const engine::Endpoint::Limits before = engine_.limits();
    engine::Endpoint::Limits limits = before;
    if ((mask & FI_DAT_EP_TX_SIZE) != 0) {
        limits.requests = static_cast<std::uint32_t>(attr.tx_size);
    }
    if ((mask & FI_DAT_EP_RX_SIZE) != 0) {
        limits.receives = static_cast<std::uint32_t>(attr.rx_size);
    }
    if ((mask & (FI_DAT_EP_TX_SIZE | FI_DAT_EP_RX_SIZE)) != 0 && !engine_.resize(limits)) {
        DAT_WARN(ep_ctrl, "modify(): rx_size = %zu, and %u receives are posted", attr.rx_size,
                 engine_.core().receives().outstanding());
        return -FI_EINVAL;
    }
    const auto queue = [&](std::uint64_t bit, fid_cq* cq, CompletionQueue* now) {
        return (mask & bit) == 0 ? now : cq ? &cq_of(cq) : nullptr;
    };
    if (enabled_ && !engine_.set_queues(queue(FI_DAT_EP_TX_CQ, attr.tx_cq, tx_cq_),
                                        queue(FI_DAT_EP_RX_CQ, attr.rx_cq, rx_cq_))) {
        (void)engine_.resize(before);
        return -FI_ENOMEM;
    }
    if ((mask & (FI_DAT_EP_TX_SIZE | FI_DAT_EP_RX_SIZE)) != 0) {
        sizes_are_default_ = false;
    }
    engine::ConnectionOptions::Reads reads = engine_.reads();
    if ((mask & FI_DAT_EP_READ_IN) != 0) {
        reads.in = static_cast<std::uint16_t>(attr.read_in);
    }
    if ((mask & FI_DAT_EP_READ_OUT) != 0) {
        reads.out = static_cast<std::uint16_t>(attr.read_out);
    }
    engine_.connection_options().reads = reads;
    if ((mask & FI_DAT_EP_TX_CQ) != 0) {
        replace_queue(tx_cq_, attr.tx_cq ? &cq_of(attr.tx_cq) : nullptr);
        tx_unwanted_ = !attr.tx_cq;
        tx_reports_ = (attr.tx_cq_flags & FI_SELECTIVE_COMPLETION) == 0 ? FI_COMPLETION : 0;
    }
    if ((mask & FI_DAT_EP_RX_CQ) != 0) {
        replace_queue(rx_cq_, attr.rx_cq ? &cq_of(attr.rx_cq) : nullptr);
        rx_unwanted_ = !attr.rx_cq;
        rx_reports_ = (attr.rx_cq_flags & FI_SELECTIVE_COMPLETION) == 0 ? FI_COMPLETION : 0;
    }
    if (zone) {
        engine_.set_zone(zone.get());
        zone_ = std::move(zone);
    }
    return 0;
}

} // namespace dat::ofi
