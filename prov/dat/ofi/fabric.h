// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The fabric object, and the connection requests that were announced on it and
// not yet settled.
#ifndef DAT_OFI_FABRIC_H
#define DAT_OFI_FABRIC_H

#include "ofi/fid.h"
#include "ofi/incoming.h"

#include <rdma/fabric.h>
#include <rdma/fi_ext_dat.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

namespace dat::ofi {

class Endpoint;
class PassiveEndpoint;

// fi_info.handle of an FI_CONNREQ event. Lives until it is accepted or rejected
// (CR-9), also where the endpoint made from it is closed: then while the passive
// endpoint lives that could reject it. The fabric's lock guards it.
struct Request {
    using ByHandle = std::map<fid_t, std::unique_ptr<Request>>;
    struct fid handle;
    std::unique_ptr<Incoming> request;
    PassiveEndpoint* origin = nullptr; // nullptr: closed
    Endpoint* holder = nullptr;        // the endpoint that fi_accept() would connect
    bool held_before = false;          // an endpoint was made from it, maybe closed since
    bool bound = false;                // to its holder, in PASSIVE or TENTATIVE (EP-47, EP-48)
    ByHandle::node_type place;         // among the fabric's, while it is taken out of there
};

class Fabric final : public fid_fabric {
  public:
    Fabric(std::uint32_t api, void* context);

    Users users;

    // fi_dat_ops_fabric.
    bool raw_data() const { return raw_data_.load(std::memory_order_relaxed); }
    void set_raw_data(bool raw) { raw_data_.store(raw, std::memory_order_relaxed); }

    // Requests. All take the lock; the pointers that come in are compared, never
    // followed, so that a handle that is gone is refused.
    // Takes it in; the handle to give away. `holder`: an endpoint that it is bound to. Throws
    // std::bad_alloc, and leaves it then.
    fid_t add_request(std::unique_ptr<Incoming>& request, PassiveEndpoint& origin,
                      Endpoint* holder = nullptr);
    // Makes `holder` the one that accepts it; false: settled, or held by another.
    bool hold_request(fid_t handle, Endpoint& holder);
    // `holder` lets go of it: it can be rejected, or held again.
    void drop_request(fid_t handle, Endpoint& holder);
    // `holder` gives it back, as if nobody had held it. False: it is not the holder.
    bool release_request(fid_t handle, const Endpoint& holder);
    // The endpoint that holds it; false: settled before.
    bool holder_of(fid_t handle, Endpoint*& holder);
    // Takes it out, to settle it; nullptr: settled before. `by`: its holder for an
    // accept, nullptr for a reject.
    std::unique_ptr<Request> take_request(fid_t handle, const Endpoint* by);
    // A settling that failed. Takes no memory.
    void put_back(std::unique_ptr<Request> request);
    // fi_reject(3): 0, or -FI_EINVAL; `call` is for the log line.
    int reject_request(const char* call, fid_t handle, const void* param, std::size_t size);
    // The event that announced it is thrown away unread.
    void discard_request(fid_t handle);
    // `origin` is being closed.
    void forget_origin(const PassiveEndpoint& origin);

    // Passive endpoints that are open. The pointer that comes in is compared only.
    void add_passive(PassiveEndpoint& pep);
    void remove_passive(PassiveEndpoint& pep);
    // nullptr: it is none of this fabric.
    PassiveEndpoint* find_passive(fid_t pep);

    // Addresses of a request; false: settled before.
    bool addresses(fid_t handle, net::SocketAddress& local, net::SocketAddress& peer);

  private:
    std::atomic<bool> raw_data_{false};
    std::mutex mutex_; // the two below
    Request::ByHandle requests_;
    std::unordered_map<fid_t, PassiveEndpoint*> passive_;
};

inline Fabric& fabric_of(fid_fabric* f) { return *static_cast<Fabric*>(f); }

// Settles a request that was taken out, other than by an accept: with `reject` the peer
// gets PEER_REJECTED and that data, else it sees that nobody listens. The endpoint that
// it was bound to is free again, or gone (CR-7). Not under a lock.
void settle(std::unique_ptr<Request> request, bool reject, std::span<const std::byte> data = {});
// The endpoint that a request was bound to, which goes elsewhere or is settled: EP-16 or
// EP-17. Not under a lock.
void unbind(const Request& request);

// Logs that a request was settled before, and returns -FI_EINVAL.
int refuse_settled(const char* call);

extern fi_dat_ops_fabric dat_fabric_ops; // dat_service.cpp

// fi_fabric(3).
int open_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context);

} // namespace dat::ofi

#endif
