// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See pep.h. May include: ofi, libfabric.
#include "ofi/pep.h"

#include "base/log.h"
#include "ofi/cm.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/no_op.h"
#include "ofi/provider.h"

#include <cstring>
#include <new>

namespace dat::ofi {
namespace {

constexpr int kDefaultBacklog = 1024;

int close(fid_t f) {
    delete &object_of<PassiveEndpoint, fid_pep>(f);
    return 0;
}

int bind(fid_t f, fid_t to, std::uint64_t flags) {
    if (to->fclass != FI_CLASS_EQ || flags != 0) {
        DAT_WARN(ep_ctrl, "fi_pep_bind(): only an event queue can be bound, with flags 0");
        return -FI_EINVAL;
    }
    return object_of<PassiveEndpoint, fid_pep>(f).bind_queue(object_of<EventQueue, fid_eq>(to));
}

int control(fid_t f, int command, void* arg) {
    return command == FI_BACKLOG
               ? object_of<PassiveEndpoint, fid_pep>(f).set_backlog(*static_cast<int*>(arg))
               : -FI_ENOSYS;
}

int get_pep_option(fid_t, int level, int name, void* value, std::size_t* size) {
    return get_option(level, name, value, size);
}

int set_pep_option(fid_t, int level, int name, const void* value, std::size_t size) {
    return set_option(level, name, value, size);
}

int set_name(fid_t f, void* address, std::size_t size) {
    const iwarp::SocketAddress name(static_cast<const sockaddr*>(address), size);
    if (!name.valid()) {
        DAT_WARN(ep_ctrl, "fi_setname(): not an IPv4 or IPv6 socket address of %zu bytes", size);
        return -FI_EINVAL;
    }
    return object_of<PassiveEndpoint, fid_pep>(f).set_name(name);
}

int get_name(fid_t f, void* address, std::size_t* size) {
    const iwarp::SocketAddress name = object_of<PassiveEndpoint, fid_pep>(f).name();
    return name.valid() ? give_address(name, address, size) : -FI_EADDRNOTAVAIL;
}

int listen(fid_pep* pep) { return pep_of(pep).listen(); }

int reject(fid_pep* pep, fid_t handle, const void* param, std::size_t size) {
    Fabric& fabric = pep_of(pep).fabric();
    std::unique_ptr<Request> request = fabric.take_request(handle, nullptr);
    if (!request) {
        DAT_WARN(ep_ctrl, "fi_reject(): no such connection request, or it was accepted or rejected "
                          "before");
        return -FI_EINVAL;
    }
    std::span<const std::byte> data;
    const std::size_t limit = request->request->max_private_data();
    if (const int rc = read_private_data("fi_reject()", param, size, limit, data)) {
        fabric.put_back(std::move(request));
        return rc;
    }
    request->request->reject(data);
    return 0;
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_ep g_ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = DAT_NOT_OFFERED(fi_ops_ep, cancel),
    .getopt = get_pep_option,
    .setopt = set_pep_option,
    .tx_ctx = DAT_NOT_OFFERED(fi_ops_ep, tx_ctx),
    .rx_ctx = DAT_NOT_OFFERED(fi_ops_ep, rx_ctx),
    .rx_size_left = DAT_NOT_OFFERED(fi_ops_ep, rx_size_left),
    .tx_size_left = DAT_NOT_OFFERED(fi_ops_ep, tx_size_left),
};

fi_ops_cm g_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = set_name,
    .getname = get_name,
    .getpeer = DAT_NOT_OFFERED(fi_ops_cm, getpeer),
    .connect = DAT_NOT_OFFERED(fi_ops_cm, connect),
    .listen = listen,
    .accept = DAT_NOT_OFFERED(fi_ops_cm, accept),
    .reject = reject,
    .shutdown = DAT_NOT_OFFERED(fi_ops_cm, shutdown),
    .join = DAT_NOT_OFFERED(fi_ops_cm, join),
};

iwarp::SocketAddress source_of(const fi_info& info) {
    return info.src_addr
               ? iwarp::SocketAddress(static_cast<const sockaddr*>(info.src_addr), info.src_addrlen)
               : iwarp::SocketAddress();
}

} // namespace

PassiveEndpoint::PassiveEndpoint(Fabric& fabric, Info info, void* context)
    : fabric_(fabric), info_(std::move(info)), name_(source_of(*info_)), backlog_(kDefaultBacklog),
      listener_(*this, parameters().settings) {
    fid.fclass = FI_CLASS_PEP;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_ep_ops;
    cm = &g_cm_ops;
    fabric_.users.add();
}

// SP-6: what was announced and read stays valid; what was not yet read is refused.
PassiveEndpoint::~PassiveEndpoint() {
    if (eq_) {
        if (listening_) {
            eq_->remove_source(*this);
        }
        eq_->purge(&fid);
        eq_->users.remove();
    }
    fabric_.forget_origin(*this);
    fabric_.users.remove();
}

int PassiveEndpoint::bind_queue(EventQueue& eq) {
    if (eq_) {
        DAT_WARN(ep_ctrl, "fi_pep_bind(): an event queue is bound already");
        return -FI_EINVAL;
    }
    eq_ = &eq;
    eq.users.add();
    return 0;
}

int PassiveEndpoint::bind_name(const iwarp::SocketAddress& name) {
    if (const int rc = listener_.bind(name)) {
        DAT_WARN(ep_ctrl, "cannot listen on %s: %s", name.text().c_str(), std::strerror(-rc));
        return rc;
    }
    bound_ = true;
    return 0;
}

int PassiveEndpoint::set_name(const iwarp::SocketAddress& name) {
    if (listening_) {
        DAT_WARN(ep_ctrl, "fi_setname(): the passive endpoint is listening already");
        return -FI_EOPBADSTATE;
    }
    return no_throw([&] { return bind_name(name); });
}

int PassiveEndpoint::set_backlog(int backlog) {
    if (listening_ || backlog < 1) {
        DAT_WARN(ep_ctrl, "fi_control(FI_BACKLOG) = %d: at least 1, and before fi_listen()",
                 backlog);
        return listening_ ? -FI_EOPBADSTATE : -FI_EINVAL;
    }
    backlog_ = backlog;
    return 0;
}

int PassiveEndpoint::listen() {
    if (!eq_ || listening_) {
        DAT_WARN(ep_ctrl, "fi_listen(): %s",
                 eq_ ? "the passive endpoint is listening already" : "bind an event queue first");
        return eq_ ? -FI_EOPBADSTATE : -FI_ENOEQ;
    }
    return no_throw([&] {
        if (!bound_) {
            if (!name_.valid()) {
                DAT_WARN(ep_ctrl, "fi_listen(): no address; pass an info with src_addr to "
                                  "fi_passive_ep(), or call fi_setname()");
                return -FI_EADDRNOTAVAIL;
            }
            if (const int rc = bind_name(name_)) {
                return rc;
            }
        }
        point_ = std::make_unique<core::ServicePoint>(core::ServicePoint::Kind::consumer,
                                                      static_cast<std::uint32_t>(backlog_));
        if (const int rc = listener_.listen(backlog_)) {
            DAT_WARN(ep_ctrl, "cannot listen on %s: %s", name().text().c_str(), std::strerror(-rc));
            return rc;
        }
        if (const int rc = eq_->add_source(*this)) {
            DAT_WARN(ep_ctrl, "fi_listen(): %s", std::strerror(-rc));
            return rc;
        }
        listening_ = true;
        return 0;
    });
}

// The info of an FI_CONNREQ event: for fi_domain() and fi_endpoint().
Info PassiveEndpoint::describe(fid_t handle, const iwarp::ConnRequest& request) const {
    Info info(fi_dupinfo(info_.get()));
    if (!info) {
        throw std::bad_alloc();
    }
    info->handle = handle;
    std::free(std::exchange(info->src_addr, nullptr));
    info->src_addr = copy_address(request.local(), info->src_addrlen);
    std::free(std::exchange(info->dest_addr, nullptr));
    info->dest_addr = copy_address(request.peer(), info->dest_addrlen);
    info->addr_format = request.local().family() == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    return info;
}

void PassiveEndpoint::announce(std::unique_ptr<iwarp::ConnRequest> request) {
    {
        const std::lock_guard lock(mutex_);
        if (!point_->arrive()) {
            DAT_INFO(ep_ctrl, "a connection request is refused: %d wait in the event queue",
                     backlog_);
            return; // SP-3: destroyed unsettled
        }
    }
    const iwarp::ConnRequest& arrived = *request;
    EventQueue::Event event;
    event.type = FI_CONNREQ;
    event.fid = &fid;
    event.announcer = this;
    const auto data = arrived.private_data();
    event.data.assign(data.begin(), data.end());
    const fid_t handle = fabric_.add_request(std::move(request), *this);
    event.info = describe(handle, arrived).release();
    eq_->push_request(std::move(event));
}

void PassiveEndpoint::event_read() {
    const std::lock_guard lock(mutex_);
    point_->taken();
}

void PassiveEndpoint::event_discarded(fid_t request) { fabric_.discard_request(request); }

int open_pep(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context) {
    return no_throw([&] {
        Info own(info ? fi_dupinfo(info) : nullptr);
        if (!own) {
            return info ? -FI_ENOMEM : -FI_EINVAL;
        }
        *pep = new PassiveEndpoint(fabric_of(fabric), std::move(own), context);
        return 0;
    });
}

} // namespace dat::ofi
