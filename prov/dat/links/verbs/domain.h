// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the connections of one domain share on a device: its context, protection domains,
// memory, and the two channels by which the device calls. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_DOMAIN_H
#define DAT_LINKS_VERBS_DOMAIN_H

#include "engine/endpoint.h"
#include "engine/reactor.h"
#include "links/verbs/device.h"
#include "links/verbs/device_events.h"
#include "links/verbs/memory.h"
#include "links/verbs/windows.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_set>

struct ibv_comp_channel;
struct ibv_context;
struct ibv_pd;
struct rdma_cm_event;
struct rdma_cm_id;
struct rdma_event_channel;

namespace dat::engine {
class Domain;
}

namespace dat::verbs {

// What happened to a connection, or one that is being made. A copy: the event itself has
// been acknowledged.
struct CmEvent {
    int type = 0; // rdma_cm_event_type
    int status = 0;
    std::uint8_t reads = 0; // of a request or reply: RDMA reads that the peer serves at once
    std::size_t size = 0;
    std::byte data[256];
    std::span<const std::byte> private_data() const { return {data, size}; }
};

CmEvent copy_of(const rdma_cm_event& event);

// The context of each rdma_cm_id on a domain's channel.
class CmSink {
  public:
    virtual void happened(const CmEvent& event) = 0;

  protected:
    ~CmSink() = default;
};

// Takes the next event of a channel, with the one whom it concerns; false: there is none.
bool next_event(rdma_event_channel* channel, CmEvent& event, rdma_cm_id*& id);

class Link;
class SharedQueue;

// Who a domain belongs to. Called under the lock.
class DomainOwner {
  public:
    // EP-62: every connection ends with it.
    virtual void device_gone() = 0;
    // Connections end as far as the device, or its retries, find that they have.
    virtual void port_down() = 0;

  protected:
    ~DomainOwner() = default;
};

class Domain final : private engine::Pollable {
  public:
    Domain(engine::Domain& engine, DomainOwner& owner) : engine_(engine), owner_(owner) {}
    // No link, handshake or region is left; `soft` may have gone.
    ~Domain();
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    // The device that `address` is on; `raw_data`: of its connections. 0 or -errno, logged.
    int open(const SocketAddress& address, bool raw_data);

    engine::Domain& engine() { return engine_; }
    const Device& device() const { return device_; }
    // Of this domain alone: what the device says of the queues that are made on it, nobody else
    // reads.
    ibv_context* context() const { return context_; }
    // Whether the id is bound to the domain's device.
    bool has(const rdma_cm_id* id) const;
    // Resolves the address of a peer, and then the route, waiting for each of them as long. 0 or
    // -errno. Not under the lock; from any thread.
    int resolve(const SocketAddress& peer, std::chrono::microseconds limit) const;
    rdma_event_channel* manager() const { return manager_; }
    rdma_cm_id* anchor() const { return anchor_; }
    ibv_comp_channel* completions() const { return completions_; }
    Memory& memory() { return memory_; }
    Windows& windows() { return windows_; }
    // Bytes of inline data that a queue pair is asked for: what the last was given.
    std::uint32_t inline_size() const { return inline_size_; }
    void set_inline_size(std::uint32_t size) { inline_size_ = size; }
    // Of a protection zone; nullptr: errno. It lives as long as the domain.
    ibv_pd* pd(const void* zone);

    // Links that have a queue pair.
    void add(Link& link) { links_.insert(&link); }
    void remove(Link& link) { links_.erase(&link); }
    // One of them that takes from that queue and has not failed; nullptr: none.
    Link* taker_of(const SharedQueue& queue) const;

    // The device has been taken away, or has failed.
    void device_gone();
    void port_down();

    // Reads the events of connections that are there.
    void progress_connections();

    // For fi_mr_reg(3): what peers, and this side, may do. nullptr: errno.
    struct Access {
        bool local_write = false;
        bool remote_read = false;
        bool remote_write = false;
    };
    ibv_mr* register_memory(const void* zone, void* base, std::size_t length, const Access& access);
    void deregister(ibv_mr* mr) { memory_.remove(mr); }
    static std::uint32_t key_of(const ibv_mr* mr); // as Memory has it
    // The key of a bind of a window of `zone` to memory of the region with `key`, which
    // begins at `base`. 0 or -errno; -EACCES: peers could write what this side may not.
    int make_window(const void* zone, const void* base, std::uint32_t key, bool writes,
                    std::uint32_t& made);

  private:
    struct Connections final : engine::Pollable {
        explicit Connections(Domain& domain) : domain_(domain) {}
        void ready(std::uint32_t) override { domain_.progress_connections(); }
        Domain& domain_;
    };
    void ready(std::uint32_t events) override; // completions_

    engine::Domain& engine_;
    DomainOwner& owner_;
    Device device_;
    rdma_event_channel* manager_ = nullptr;
    ibv_comp_channel* completions_ = nullptr;
    rdma_cm_id* anchor_ = nullptr; // bound to the address: keeps the context
    ibv_context* context_ = nullptr;
    std::map<const void*, ibv_pd*> pds_;
    Memory memory_;
    Windows windows_;
    Connections connections_{*this};
    std::unordered_set<Link*> links_;
    bool gone_ = false;
    std::uint32_t inline_size_ = engine::kInjectSize;
    DeviceEvents events_{*this};
};

} // namespace dat::verbs

#endif
