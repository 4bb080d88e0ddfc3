// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The active endpoint. Its operation tables: before fi_enable() one that refuses,
// then one for an endpoint whose link is not known, and from the first connection
// on the one for that kind of link.
#ifndef DAT_OFI_EP_H
#define DAT_OFI_EP_H

#include "engine/endpoint.h"
#include "net/socket.h"
#include "ofi/bindings.h"
#include "ofi/fid.h"
#include "ofi/srx.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_dat.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace dat::ofi {

class Incoming;
class PassiveEndpoint;

// Whose endpoint is none of the program's: told of what would be an event. Called under the lock.
class EndpointWatcher {
  public:
    // As engine::EndpointOwner::raise().
    virtual void raised(const core::ConnectionEvent& event) = 0;

  protected:
    ~EndpointWatcher() = default;
};

class Endpoint final : public fid_ep, public Bindings, private engine::EndpointOwner {
  public:
    // `initial`: as core::Endpoint. `watcher`: has its events instead of an event queue. Throws
    // std::bad_alloc.
    Endpoint(Domain& domain, const fi_info& info, void* context,
             core::State initial = core::State::unconnected, EndpointWatcher* watcher = nullptr);
    // FREE-2: what was outstanding is flushed into the queues, events that were not
    // read are gone, nothing comes afterwards.
    ~Endpoint();

    engine::Endpoint& engine() { return engine_; }

    int bind_shared(SharedContext& srx);
    int enable();

    std::size_t inject_size() const { return inject_size_; }
    std::size_t read_segments() const { return domain_.offering().limits.read_segments; }
    std::size_t message_size() const { return message_size_; }
    // The same for whatever peer: check_long() is asked about more.
    std::size_t narrow_size() const { return narrow_size_; }
    void set_min_multi(std::size_t least);
    // Takes the protection zone; nullptr: the info's auth_key is none, which is logged.
    static ZoneHandle zone_of(Domain& domain, const fi_info& info);

    // Connection management; 0 or -FI_E*, logged.
    int connect(const void* address, const void* param, std::size_t size);
    int accept(const void* param, std::size_t size);
    // Those of an endpoint with a watcher, under the lock: gives it these queues; makes it ready;
    // connects; accepts. 0 or -errno.
    void set_up(CompletionQueue* tx, CompletionQueue* rx,
                const engine::Endpoint::Counters& counters, std::uint64_t tx_reports);
    int make_ready();
    int connect_watched(const net::SocketAddress& destination, std::span<const std::byte> data,
                        std::chrono::microseconds timeout);
    int accept_watched(Incoming& request, std::span<const std::byte> data);
    int disconnect(const char* call, bool graceful);
    int reset();
    int dup_connect(Endpoint& other, const void* param, std::size_t size);
    int take_request(fid_t request); // nullptr: lets go of one
    // Connects from the address and port that the passive endpoint is bound to.
    int take_over(PassiveEndpoint& pep);
    Users& aliases() { return aliases_; } // fi_ep_alias(3)
    // FREE-1: 0, or -FI_EBUSY.
    int may_close();
    int modify(const fi_dat_ep_attr& attr);
    int bind_window(const fi_dat_bind& bind, std::uint64_t& key);

    // What a service point and its request do to it (EP-12, EP-13, EP-47, EP-48). Any
    // thread, not under a lock.
    int reserve();
    void unreserve();
    void request_arrived(const fi_info& request);
    // It went elsewhere, or is settled. Closes the endpoint if it was made for it (EP-16).
    void request_gone(core::Stimulus how);

    int set_name(const net::SocketAddress& name);
    // Where it is connected, or would connect, from and to.
    net::SocketAddress name();
    net::SocketAddress peer();
    void set_connect_timeout(std::uint64_t timeout_us) { connect_timeout_us_ = timeout_us; }
    fi_dat_ep_status status();
    core::State state();

  private:
    void tell(engine::EndpointNames& names) const override;
    const char* words_for(core::Reason reason) const override;
    void link_ready(engine::Link& link) override;
    void note_peer(engine::LinkKind kind);
    void raise(const core::ConnectionEvent& event) override;
    // Before an attempt begins: room for the events that it may raise. Throws std::bad_alloc.
    void expect_events();
    void soft_watermark_passed() override;
    void peer_left() override;
    bool is_held_back(const core::ConnectionEvent& event) const;
    void give_held();
    // Holds the request whose handle is `handle`; 0 or -FI_EINVAL.
    int hold(fid_t handle);
    // So that less has to be done while a connection is made.
    int prepare(bool fewer_do = false); // as verbs::prepare()
    const char* source_unfit(const net::SocketAddress& destination) const;
    int connect_from_one_port(const net::SocketAddress& destination,
                              std::span<const std::byte> data);
    int start_connect(const net::SocketAddress& destination, std::span<const std::byte> data);
    int change(const fi_dat_ep_attr& attr, ZoneHandle zone);
    void replace_queue(CompletionQueue*& slot, CompletionQueue* cq);
    std::optional<std::chrono::microseconds> connect_timeout() const;

    EndpointWatcher* const watcher_;
    ZoneHandle zone_; // guarded by the lock
    // For the events of an attempt: of the first, which may have private data, and of its end;
    // and for the one that says that it is broken. Guarded by the lock.
    EventQueue::Events room_;
    EventQueue::Events async_room_;
    EventQueue::Events held_; // the end, while await_peer() holds it back
    SharedContext* srx_ = nullptr;
    const std::uint64_t caps_;
    bool tx_unwanted_ = false; // EPA-2: modify() said that there is to be no queue
    bool rx_unwanted_ = false;
    const std::size_t inject_size_;
    bool sizes_are_default_;         // the program has asked for no number of operations
    const std::size_t message_size_; // bytes, at most
    const std::size_t narrow_size_;
    net::SocketAddress name_; // these four: guarded by the lock
    net::SocketAddress peer_;
    bool keeps_port_ = false;             // connects from the port of name_ as well
    net::Socket source_;                  // bound to it; none: it has been used
    std::atomic<fid_t> request_{nullptr}; // what fi_accept() answers
    bool given_back_ = false;             // closed by request_gone()
    bool was_connected_ = false;          // in this attempt; guarded by the lock
    std::atomic<std::uint64_t> connect_timeout_us_{FI_DAT_TIMEOUT_INFINITE};
    Users aliases_;
    engine::Endpoint engine_;
};

inline Endpoint& ep_of(fid_ep* f) { return static_cast<Endpoint&>(*f); }

// Whether an endpoint can be made from it; if not, logs why.
bool fits_endpoint(const char* call, const fi_info* info, const Offering& offering);

// fi_endpoint(3).
int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context);

// Operation tables, in the files of the same name.
extern fi_ops_cm ep_cm_ops;
extern fi_ops_msg msg_ops_not_enabled;
extern fi_ops_rma rma_ops_not_enabled;
extern fi_ops_atomic atomic_ops_not_enabled;
extern fi_ops_msg msg_ops_unconnected;
extern fi_ops_rma rma_ops_unconnected;
extern fi_ops_atomic atomic_ops_unconnected;
extern fi_ops_msg msg_ops_iwarp;
extern fi_ops_rma rma_ops_iwarp;
extern fi_ops_atomic atomic_ops_iwarp;
extern fi_ops_msg msg_ops_shm;
extern fi_ops_rma rma_ops_shm;
extern fi_ops_atomic atomic_ops_shm;
extern fi_ops_msg msg_ops_verbs;
extern fi_ops_rma rma_ops_verbs;
extern fi_ops_atomic atomic_ops_verbs;
extern fi_ops_msg msg_ops_checked;
extern fi_ops_rma rma_ops_checked;
extern fi_ops_atomic atomic_ops_checked;
extern fi_dat_ops_ep dat_ep_ops;

} // namespace dat::ofi

#endif
