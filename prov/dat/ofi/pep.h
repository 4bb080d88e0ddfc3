// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The passive endpoint: a listener that announces requests to an event queue.
// May include: ofi, soft/iwarp, libfabric.
#ifndef DAT_OFI_PEP_H
#define DAT_OFI_PEP_H

#include "core/service_point.h"
#include "ofi/eq.h"
#include "ofi/fid.h"
#include "ofi/info.h"
#include "soft/iwarp/connect.h"

#include <rdma/fi_endpoint.h>

#include <memory>
#include <mutex>

namespace dat::ofi {

class Fabric;

class PassiveEndpoint final : public fid_pep,
                              public EventSource,
                              public Announcer,
                              private iwarp::ListenerOwner {
  public:
    // Takes the info. Throws std::bad_alloc.
    PassiveEndpoint(Fabric& fabric, Info info, void* context);
    ~PassiveEndpoint();

    Fabric& fabric() { return fabric_; }
    int bind_queue(EventQueue& eq);
    // Where it is or will be bound; family AF_UNSPEC: nowhere yet.
    iwarp::SocketAddress name() const { return bound_ ? listener_.name() : name_; }
    int set_name(const iwarp::SocketAddress& name);
    int set_backlog(int backlog);
    int listen();

    // EventSource
    int wait_fd() const override { return listener_.wait_fd(); }
    void progress() override { listener_.progress(); }
    bool has_work() const override { return false; }
    bool announces() const override { return true; }
    // Announcer
    void event_read() override;
    void event_discarded(fid_t request) override;

  private:
    void announce(std::unique_ptr<iwarp::ConnRequest> request) override;
    int bind_name(const iwarp::SocketAddress& name);
    Info describe(fid_t handle, const iwarp::ConnRequest& request) const;

    Fabric& fabric_;
    const Info info_;
    iwarp::SocketAddress name_;
    EventQueue* eq_ = nullptr;
    bool bound_ = false;
    bool listening_ = false;
    int backlog_;
    std::mutex mutex_; // point_
    std::unique_ptr<core::ServicePoint> point_;
    iwarp::Listener listener_;
};

inline PassiveEndpoint& pep_of(fid_pep* f) { return *static_cast<PassiveEndpoint*>(f); }

// fi_passive_ep(3).
int open_pep(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context);

} // namespace dat::ofi

#endif
