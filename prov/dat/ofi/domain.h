// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The access domain.
#ifndef DAT_OFI_DOMAIN_H
#define DAT_OFI_DOMAIN_H

#include "engine/domain.h"
#include "engine/kernel.h"
#include "links/verbs/domain.h"
#include "ofi/eq.h"
#include "ofi/fid.h"
#include "ofi/info.h"
#include "ofi/zone.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_ext_dat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>

namespace dat::ofi {

class Endpoint;
class Fabric;

class Domain final : public fid_domain, public EventSource, private verbs::DomainOwner {
  public:
    Domain(Fabric& fabric, const fi_domain_attr& attr, void* context);
    ~Domain();

    int open() { return engine_.open(); } // 0 or -errno
    // As fi_domain_attr has it; nullptr: it has none.
    void set_name(const char* name) { engine::page::set_text(name_, name ? name : ""); }
    // After open(): it is the domain of the device that the address is on. 0 or -errno, logged.
    int open_device(const net::SocketAddress& address);
    // nullptr: it is a software domain.
    verbs::Domain* device() { return device_.get(); }
    const Offering& offering() const { return offering_; }
    // Before anything is opened on it. False: the authorization key is none.
    bool set_zone(const fi_domain_attr& attr);

    Users users; // endpoints, completion queues, memory regions
    Fabric& fabric() { return fabric_; }
    engine::Domain& engine() { return engine_; }
    engine::BiasedLock& biased_lock() { return engine_.biased_lock(); }
    // How a peer names a region's first byte: by its virtual address, or by 0.
    bool virtual_addresses() const { return virtual_addresses_; }
    // FI_MR_LOCAL: operations say what their memory is registered as.
    bool names_memory() const { return names_memory_; }
    // Who chooses keys: the provider, or fi_mr_reg()'s caller.
    bool provider_keys() const { return provider_keys_; }
    // Those that a caller chooses may have 8 bytes: it was opened for FI_EP_RDM.
    bool long_keys() const { return long_keys_; }

    // The protection zone of an authorization key; nullptr: the key is not one that is
    // offered, which is logged. Throws std::bad_alloc.
    ZoneHandle zone(const char* call, const std::uint8_t* key, std::size_t size) {
        return zones_.find(call, key, size, zone_);
    }

    // fi_domain_bind(3).
    int bind_queue(EventQueue& eq, std::uint64_t flags);
    // Of endpoints that have none of their own; nullptr: none.
    EventQueue* event_queue() { return eq_; }
    // Where asynchronous events go; nullptr: nowhere.
    EventQueue* async_queue() { return async_ ? eq_ : nullptr; }
    // An asynchronous event of an object of the domain. Also under the lock. `made`: room for it,
    // none: it takes memory, and is lost where there is none, which is logged.
    void raise_async(fid_t object, fi_dat_async what, EventQueue::Events made = {});
    static constexpr std::size_t kAsyncSize = sizeof(fi_eq_entry); // bytes of its data
    // To dat_top(1), from here on. Under the lock.
    void show();
    // A line of the log for what it has done (FI_DAT_STATS=1).
    void summarize();
    // Who is told when the device has gone. In any thread.
    void add(Endpoint& ep);
    void remove(Endpoint& ep);

    // With a progress thread a reader of events moves connections that are being made,
    // and no more: data is nothing to wake it for. Without one it moves everything.
    int wait_fd() const override {
        return progress_thread_ ? engine_.handshakes_fd() : engine_.wait_fd();
    }
    // It is entered only with a reason.
    void progress() override {
        if (progress_thread_) {
            engine_.look_at_handshakes_as_outsider();
        } else if (engine_.has_put_off() || kernel::is_readable(engine_.wait_fd())) {
            engine_.progress_as_outsider();
        }
    }
    bool announces() const override { return false; }
    void catch_up() override { engine_.progress_handshakes_as_outsider(); }

  private:
    void device_gone() override;
    void port_down() override { raise_async(&fid, FI_DAT_ASYNC_PORT_DOWN); }

    Fabric& fabric_;
    engine::page::Text<64> name_{};
    bool virtual_addresses_; // these two: a device has no choice
    bool provider_keys_;
    const bool names_memory_;
    const bool long_keys_;
    const bool progress_thread_;
    Zones zones_;
    ZoneHandle zone_;          // where no key is given
    EventQueue* eq_ = nullptr; // these two: set once, under the lock
    bool async_ = false;
    std::mutex endpoints_mutex_;              // within the lock
    std::unordered_set<Endpoint*> endpoints_; // of a device
    Offering offering_;
    std::unique_ptr<verbs::Domain> device_; // outlives the links in engine_
    engine::Domain engine_;
};

inline Domain& domain_of(fid_domain* f) { return *static_cast<Domain*>(f); }

// fi_domain(3).
int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

} // namespace dat::ofi

#endif
