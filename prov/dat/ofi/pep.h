// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The passive endpoint: a listener that announces requests to an event queue.
#ifndef DAT_OFI_PEP_H
#define DAT_OFI_PEP_H

#include "core/service_point.h"
#include "ofi/eq.h"
#include "ofi/fid.h"
#include "ofi/incoming.h"
#include "ofi/info.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_dat.h>

#include <memory>
#include <mutex>

namespace dat::ofi {

class Domain;
class Endpoint;
class Fabric;

class PassiveEndpoint final : public fid_pep,
                              public EventSource,
                              public Announcer,
                              private AnyListenerOwner {
  public:
    // Takes the info. Throws std::bad_alloc.
    PassiveEndpoint(Fabric& fabric, Info info, void* context);
    ~PassiveEndpoint();

    Fabric& fabric() { return fabric_; }
    // Bytes of private data that requests carry.
    std::size_t connection_data() const;
    int bind_queue(EventQueue& eq);
    // Where it is or will be bound; family AF_UNSPEC: nowhere yet.
    net::SocketAddress name() const { return bound_ ? listener_->name() : name_; }
    int set_name(const net::SocketAddress& name);
    int set_backlog(int backlog);
    int listen();

    // fi_ext_dat.h: what kind of service point it is (SP-4, SP-10).
    int reserve(Endpoint& ep);
    int provide(Domain& domain, const fi_info* info);
    // Announces the request; it is taken where this returns 0. -FI_EINVAL: not listening;
    // -FI_EAGAIN: the backlog is full. `arrived`: called from progress().
    int take_in(std::unique_ptr<Incoming>& request, bool arrived);
    // After a take_in() that was not from progress(): releases the port if it was the last.
    void came_by_handoff();
    // An endpoint takes over what it is bound to; then it can only be closed.
    int give_socket(net::Socket& socket, net::SocketAddress& name);

    // EventSource
    int wait_fd() const override { return listener_->wait_fd(); }
    void progress() override { listener_->progress(); }
    bool announces() const override { return true; }
    // Announcer
    void event_read() override;
    void event_discarded(fid_t request) override;

  private:
    void announce(std::unique_ptr<Incoming> request) override;
    bool wants_more() override;
    // -FI_EOPBADSTATE where it listens or is taken over; `call` is for the log line.
    int refuse_late(const char* call) const;
    bool is_plain() const { return !reserved_for_ && !provided_from_; }
    int bind_name(const net::SocketAddress& name);
    Info describe(const Incoming& request) const;

    Fabric& fabric_;
    const Info info_;
    net::SocketAddress name_;
    EventQueue* eq_ = nullptr;
    bool bound_ = false;
    bool listening_ = false;
    bool taken_over_ = false;
    int backlog_;
    Domain* provided_from_ = nullptr; // whose endpoints requests come with
    Info provided_info_;
    std::mutex mutex_; // these two
    std::unique_ptr<core::ServicePoint> point_;
    Endpoint* reserved_for_ = nullptr; // until the request has arrived
    const std::unique_ptr<AnyListener> listener_;
};

inline PassiveEndpoint& pep_of(fid_pep* f) { return *static_cast<PassiveEndpoint*>(f); }

extern fi_dat_ops_pep dat_pep_ops; // dat_service.cpp

// fi_passive_ep(3).
int open_pep(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context);

} // namespace dat::ofi

#endif
