// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Making connections over rdma_cm: listener, connection request, and both sides of the
// handshake, which never block.
#ifndef DAT_LINKS_VERBS_CONNECT_H
#define DAT_LINKS_VERBS_CONNECT_H

#include "core/service_point.h"
#include "engine/endpoint.h"
#include "links/verbs/device.h"
#include "links/verbs/domain.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace dat::verbs {

class Channel; // of events, with who needs it

// A connection request that a listener announced. Destroyed unsettled it is refused (its
// requester: NON_PEER_REJECTED). Belongs to one thread at a time.
class ConnRequest {
  public:
    // What the listener knows of it, and goes on to tell.
    struct Pending {
        std::atomic<bool> gone{false}; // CR-6
    };

    ConnRequest(std::shared_ptr<Channel> channel, rdma_cm_id* id, std::unique_ptr<Pending> pending,
                const Device& device, const CmEvent& event);
    ~ConnRequest();
    ConnRequest(const ConnRequest&) = delete;
    ConnRequest& operator=(const ConnRequest&) = delete;

    const SocketAddress& peer() const { return peer_; }
    const SocketAddress& local() const { return local_; }
    std::span<const std::byte> private_data() const { return private_data_; }
    std::size_t max_private_data() const { return device_.reply_data(); }
    std::size_t max_reject_data() const { return device_.reject_data(); }
    // CR-7. False: settled before.
    bool reject(std::span<const std::byte> private_data);

  private:
    friend int accept(Domain&, engine::Endpoint&, ConnRequest&, std::span<const std::byte>);

    void refuse();

    core::ConnRequest core_;
    std::shared_ptr<Channel> channel_;
    rdma_cm_id* id_; // nullptr: settled
    std::unique_ptr<Pending> pending_;
    const Device device_;
    const std::uint8_t reads_; // that the peer serves
    SocketAddress peer_;
    SocketAddress local_;
    std::vector<std::byte> private_data_;
};

// Begins EP-10; as iwarp::connect(). `source`: an address of the device, whose port counts if it
// has one. Where the attempt has begun it is what the connection goes out from, with a port.
int connect(Domain& domain, engine::Endpoint& endpoint, const SocketAddress& destination,
            SocketAddress& source, std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout);

// EP-14, EP-15; as iwarp::accept(). -ENODEV: the request arrived at another device.
int accept(Domain& domain, engine::Endpoint& endpoint, ConnRequest& request,
           std::span<const std::byte> private_data);

class ListenerOwner {
  public:
    virtual void announce(std::unique_ptr<ConnRequest> request) = 0;
    virtual bool wants_more() { return true; }

  protected:
    ~ListenerOwner() = default;
};

// Listens on an address of a device; as iwarp::Listener.
class Listener {
  public:
    // `raw_data`: of its requests.
    Listener(ListenerOwner& owner, bool raw_data) : owner_(owner), raw_data_(raw_data) {}
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    int bind(const SocketAddress& address);
    int listen(int backlog);
    void stop();
    SocketAddress name() const { return name_; }
    void progress();
    // -1: not bound.
    int wait_fd() const;

  private:
    void arrived(rdma_cm_id* id, const CmEvent& event);

    ListenerOwner& owner_;
    const bool raw_data_;
    std::mutex mutex_; // those below, but for name_
    std::shared_ptr<Channel> channel_;
    rdma_cm_id* id_ = nullptr;
    Device device_; // what id_ is bound to, if that is one
    SocketAddress name_;
};

} // namespace dat::verbs

#endif
