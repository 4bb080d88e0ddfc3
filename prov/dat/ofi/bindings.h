// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an endpoint of either type is bound to, and what applies to its operations by default.
#ifndef DAT_OFI_BINDINGS_H
#define DAT_OFI_BINDINGS_H

#include "base/log.h"
#include "engine/endpoint.h"
#include "ofi/cntr.h"
#include "ofi/cq.h"
#include "ofi/domain.h"
#include "ofi/eq.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::ofi {

class Bindings {
  public:
    Domain& domain() { return domain_; }
    const Domain& domain() const { return domain_; }
    engine::BiasedLock& biased_lock() { return biased_lock_; }

    // fi_ep_bind(3); 0 or -FI_E*, logged.
    int bind_queue(EventQueue& eq);
    int bind_queue(CompletionQueue& cq, std::uint64_t flags);
    int bind_counter(Counter& cntr, std::uint64_t flags);

    // Defaults for calls without flags, and what applies to those with.
    std::uint64_t tx_flags() const { return tx_flags_; }
    std::uint64_t rx_flags() const { return rx_flags_; }
    void set_tx_flags(std::uint64_t flags) { tx_flags_ = flags; }
    void set_rx_flags(std::uint64_t flags) { rx_flags_ = flags; }
    // The same, with FI_COMPLETION wherever a success is reported.
    std::uint64_t tx_usual() const { return tx_flags_ | tx_reports_; }
    std::uint64_t rx_usual() const { return rx_flags_ | rx_reports_; }
    // Whether a success is reported, by the flags of an operation.
    bool tx_reported(std::uint64_t flags) const {
        return ((flags | tx_reports_) & FI_COMPLETION) != 0;
    }
    bool rx_reported(std::uint64_t flags) const {
        return ((flags | rx_reports_) & FI_COMPLETION) != 0;
    }
    // Those of an injected write, or atomic: it completes for its counter alone, at the level that
    // is the endpoint's default.
    std::uint64_t injected_flags() const {
        constexpr std::uint64_t kLevels = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
        return FI_INJECT | (counters_.write ? tx_flags_ & kLevels : 0);
    }
    // FI_OPT_MIN_MULTI_RECV, in bytes.
    std::size_t min_multi() const { return min_multi_; }

  protected:
    static constexpr std::size_t kDefaultMinMulti = 64; // bytes

    Bindings(Domain& domain, std::uint64_t tx_flags, std::uint64_t rx_flags);
    ~Bindings(); // nothing reports to the queues and counters any more
    Bindings(const Bindings&) = delete;
    Bindings& operator=(const Bindings&) = delete;

    template <class Call> void for_each_counter(Call&& call) {
        for (core::Counter* counter :
             {counters_.send, counters_.write, counters_.read, counters_.receive,
              counters_.remote_read, counters_.remote_write}) {
            if (counter) {
                call(static_cast<Counter&>(*counter));
            }
        }
    }

    Domain& domain_;
    engine::BiasedLock& biased_lock_; // the domain's, in one step
    EventQueue* eq_ = nullptr;
    CompletionQueue* tx_cq_ = nullptr;
    CompletionQueue* rx_cq_ = nullptr;
    engine::Endpoint::Counters counters_;
    std::uint64_t tx_flags_;
    std::uint64_t rx_flags_;
    // FI_COMPLETION, or 0: what each operation has besides its flags.
    std::uint64_t tx_reports_ = FI_COMPLETION;
    std::uint64_t rx_reports_ = FI_COMPLETION;
    std::size_t min_multi_ = kDefaultMinMulti;
    bool enabled_ = false;
};

// Whether `flags` are FI_TRANSMIT or FI_RECV, not both, and flags that operations of that direction
// may have by default; if not, logs why for `call`.
bool are_default_flags(const char* call, const Offering& offering, std::uint64_t flags);

// fi_control(FI_GETOPSFLAG) and (FI_SETOPSFLAG), of Endpoint or RdmEndpoint; 0 or -FI_EINVAL.
template <class Any> int get_default_flags(const Any& ep, std::uint64_t& flags) {
    if ((flags & (FI_TRANSMIT | FI_RECV)) == (FI_TRANSMIT | FI_RECV) ||
        (flags & (FI_TRANSMIT | FI_RECV)) == 0) {
        DAT_WARN(ep_ctrl, "fi_control(FI_GETOPSFLAG): set either FI_TRANSMIT or FI_RECV");
        return -FI_EINVAL;
    }
    flags = (flags & FI_TRANSMIT) != 0 ? ep.tx_flags() : ep.rx_flags();
    return 0;
}

template <class Any> int set_default_flags(Any& ep, const Offering& offering, std::uint64_t flags) {
    if (!are_default_flags("fi_control(FI_SETOPSFLAG)", offering, flags)) {
        return -FI_EINVAL;
    }
    const std::uint64_t wanted = flags & ~(FI_TRANSMIT | FI_RECV);
    const engine::BiasedLockOwner in(ep.biased_lock());
    if ((flags & FI_TRANSMIT) != 0) {
        ep.set_tx_flags(wanted);
    } else {
        ep.set_rx_flags(wanted);
    }
    return 0;
}

// fi_getopt(3) and fi_setopt(3) of FI_OPT_MIN_MULTI_RECV; 0 or -FI_E*.
inline int get_min_multi(const Bindings& ep, void* value, std::size_t* size) {
    const std::size_t least = ep.min_multi();
    const bool fits = *size >= sizeof least;
    *size = sizeof least;
    if (!fits) {
        return -FI_ETOOSMALL;
    }
    std::memcpy(value, &least, sizeof least);
    return 0;
}

template <class Any> int set_min_multi(Any& ep, const void* value, std::size_t size) {
    std::size_t least = 0;
    if (size != sizeof least) {
        DAT_WARN(ep_ctrl, "fi_setopt(FI_OPT_MIN_MULTI_RECV): a value of %zu bytes; it has %zu",
                 size, sizeof least);
        return -FI_EINVAL;
    }
    std::memcpy(&least, value, sizeof least);
    ep.set_min_multi(least);
    return 0;
}

} // namespace dat::ofi

#endif
