// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See domain.h.
#include "links/verbs/domain.h"

#include "base/log.h"
#include "engine/domain.h"
#include "engine/kernel.h"
#include "links/verbs/channel.h"
#include "links/verbs/link.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <utility>

namespace dat::verbs {
namespace {

void make_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

} // namespace

CmEvent copy_of(const rdma_cm_event& event) {
    const rdma_conn_param& param = event.param.conn;
    CmEvent copy;
    copy.type = event.event;
    copy.status = event.status;
    copy.reads = param.initiator_depth;
    if (param.private_data) {
        copy.size = std::min<std::size_t>(param.private_data_len, sizeof copy.data);
        std::memcpy(copy.data, param.private_data, copy.size);
    }
    return copy;
}

bool next_event(rdma_event_channel* channel, CmEvent& event, rdma_cm_id*& id) {
    rdma_cm_event* raw = nullptr;
    if (kernel::uncancelled(rdma_get_cm_event, channel, &raw) != 0) {
        return false;
    }
    id = raw->id;
    event = copy_of(*raw);
    kernel::uncancelled(rdma_ack_cm_event, raw);
    return true;
}

Domain::~Domain() {
    for (const auto& [zone, pd] : pds_) {
        kernel::uncancelled(ibv_dealloc_pd, pd);
    }
    if (completions_) {
        kernel::uncancelled(ibv_destroy_comp_channel, completions_);
    }
    if (anchor_) {
        kernel::uncancelled(rdma_destroy_id, anchor_);
    }
    if (manager_) {
        kernel::uncancelled(rdma_destroy_event_channel, manager_);
    }
}

int Domain::open(const SocketAddress& address, bool raw_data) {
    manager_ = kernel::uncancelled(rdma_create_event_channel);
    if (!manager_ ||
        kernel::uncancelled(rdma_create_id, manager_, &anchor_, nullptr, RDMA_PS_TCP) != 0) {
        return log_failure("fi_domain(): rdma_create_id()", errno);
    }
    SocketAddress any_port = address;
    any_port.set_port(0);
    if (kernel::uncancelled(rdma_bind_addr, anchor_, const_cast<sockaddr*>(any_port.get())) != 0) {
        return log_failure("fi_domain(): rdma_bind_addr() to the address in info->src_addr", errno);
    }
    if (!anchor_->verbs) {
        return log_failure("fi_domain(): no RDMA device has the address in info->src_addr", ENODEV);
    }
    if (const int rc = events_.open(anchor_->verbs, anchor_->port_num)) {
        return rc;
    }
    context_ = events_.context();
    engine_.regions().keep_windows(windows_);
    describe(context_, anchor_->port_num, device_);
    device_.raw_data = raw_data;
    completions_ = kernel::uncancelled(ibv_create_comp_channel, context_);
    if (!completions_) {
        return log_failure("fi_domain(): ibv_create_comp_channel()", errno);
    }
    make_nonblocking(manager_->fd);
    make_nonblocking(completions_->fd);
    int rc = engine_.reactor().add(completions_->fd, EPOLLIN, *this);
    rc = rc ? rc : engine_.handshakes().add(manager_->fd, EPOLLIN, connections_);
    if (rc != 0) {
        return log_failure("fi_domain(): epoll", -rc);
    }
    engine_.set_arrivals(completions_->fd, *this);
    DAT_INFO(domain, "fi_domain(): the domain is the RDMA device %s at %s", device_.name.c_str(),
             address.text().c_str());
    return 0;
}

bool Domain::has(const rdma_cm_id* id) const { return id->verbs == anchor_->verbs; }

int Domain::resolve(const SocketAddress& peer, std::chrono::microseconds limit) const {
    using std::chrono::milliseconds;
    const auto ms = static_cast<int>(std::clamp<std::int64_t>(
        std::chrono::duration_cast<milliseconds>(limit).count(), 1, INT_MAX));
    rdma_cm_id* id = nullptr; // without a channel each call waits
    if (kernel::uncancelled(rdma_create_id, nullptr, &id, nullptr, RDMA_PS_TCP) != 0) {
        return -errno;
    }
    SocketAddress source = address_of(rdma_get_local_addr(anchor_));
    source.set_port(0);
    const bool found =
        kernel::uncancelled(rdma_resolve_addr, id, const_cast<sockaddr*>(source.get()),
                            const_cast<sockaddr*>(peer.get()), ms) == 0 &&
        kernel::uncancelled(rdma_resolve_route, id, ms) == 0;
    const int error = found ? 0 : errno;
    kernel::uncancelled(rdma_destroy_id, id);
    return -error;
}

Link* Domain::taker_of(const SharedQueue& queue) const {
    const auto found = std::ranges::find_if(links_, [&](const Link* link) {
        return link->takes_from(queue) && !link->has_failed_early();
    });
    return found == links_.end() ? nullptr : *found;
}

ibv_pd* Domain::pd(const void* zone) {
    ibv_pd*& pd = pds_[zone];
    if (!pd) {
        pd = kernel::uncancelled(ibv_alloc_pd, context_);
        if (!pd) {
            pds_.erase(zone);
            return nullptr;
        }
    }
    return pd;
}

void Domain::progress_connections() {
    CmEvent event;
    rdma_cm_id* id = nullptr;
    while (next_event(manager_, event, id)) {
        if (id == anchor_ && event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
            device_gone();
        }
        if (id->context) {
            static_cast<CmSink*>(id->context)->happened(event);
        }
    }
}

// It may be said twice: by the connection manager, and by the device.
void Domain::device_gone() {
    if (std::exchange(gone_, true)) {
        return;
    }
    DAT_WARN(domain,
             "the RDMA device %s has been removed, or has failed: its connections end; the kernel "
             "may wait for the domain and its passive endpoints to be closed",
             device_.name.c_str());
    owner_.device_gone();
    CmEvent event;
    event.type = RDMA_CM_EVENT_DEVICE_REMOVAL;
    while (!links_.empty()) {
        Link& link = **links_.begin();
        link.happened(event);
        links_.erase(&link);
    }
}

void Domain::port_down() {
    DAT_WARN(domain, "the port of the RDMA device %s is down", device_.name.c_str());
    owner_.port_down();
}

// Each queue that was armed and has something since: one event of each, for it takes a
// system call more to see that there is no other.
void Domain::ready(std::uint32_t) {
    ibv_cq* cq = nullptr;
    void* link = nullptr;
    std::size_t left = std::max<std::size_t>(links_.size(), 1);
    while (left-- > 0 && kernel::uncancelled(ibv_get_cq_event, completions_, &cq, &link) == 0) {
        ibv_ack_cq_events(cq, 1);
        static_cast<Link*>(link)->called();
    }
}

ibv_mr* Domain::register_memory(const void* zone, void* base, std::size_t length,
                                const Access& access) {
    ibv_pd* const own = pd(zone);
    if (!own) {
        return nullptr;
    }
    // The sink of an RDMA read is, on iWARP, written by the peer.
    const bool writes = access.remote_write || access.local_write;
    const bool by_peer = access.remote_write || (access.local_write && device_.iwarp);
    int flags = (writes ? IBV_ACCESS_LOCAL_WRITE : 0) | (by_peer ? IBV_ACCESS_REMOTE_WRITE : 0) |
                (access.remote_read ? IBV_ACCESS_REMOTE_READ : 0);
    if (device_.atomics && access.remote_write) {
        flags |= IBV_ACCESS_REMOTE_ATOMIC;
    }
    if (device_.windows) {
        flags |= IBV_ACCESS_MW_BIND;
    }
    return memory_.add(own, base, length, flags);
}

std::uint32_t Domain::key_of(const ibv_mr* mr) { return Memory::key_of(*mr); }

int Domain::make_window(const void* zone, const void* base, std::uint32_t key, bool writes,
                        std::uint32_t& made) {
    ibv_mr* const region = memory_.region(base, key, writes);
    if (!region) {
        return -EACCES;
    }
    ibv_pd* const own = pd(zone);
    made = own ? windows_.make(own, region) : 0;
    return made ? 0 : log_failure("bind_window(): ibv_alloc_mw()", errno);
}

} // namespace dat::verbs
