// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See pep.h.
#include "ofi/pep.h"

#include "base/log.h"
#include "net/unmade.h"
#include "ofi/cm.h"
#include "ofi/domain.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/no_op.h"
#include "ofi/provider.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

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

int get_pep_option(fid_t f, int level, int name, void* value, std::size_t* size) {
    return get_option(level, name, object_of<PassiveEndpoint, fid_pep>(f).connection_data(), value,
                      size);
}

int set_pep_option(fid_t, int level, int name, const void* value, std::size_t size) {
    return set_option(level, name, value, size);
}

int set_name(fid_t f, void* address, std::size_t size) {
    const net::SocketAddress name(static_cast<const sockaddr*>(address), size);
    if (!name.valid()) {
        DAT_WARN(ep_ctrl, "fi_setname(): not an IPv4 or IPv6 socket address of %zu bytes", size);
        return -FI_EINVAL;
    }
    return object_of<PassiveEndpoint, fid_pep>(f).set_name(name);
}

int get_name(fid_t f, void* address, std::size_t* size) {
    const net::SocketAddress name = object_of<PassiveEndpoint, fid_pep>(f).name();
    return name.valid() ? give_address(name, address, size) : -FI_EADDRNOTAVAIL;
}

int listen(fid_pep* pep) { return pep_of(pep).listen(); }

int reject(fid_pep* pep, fid_t handle, const void* param, std::size_t size) {
    return pep_of(pep).fabric().reject_request("fi_reject()", handle, param, size);
}

int open_ops(fid_t, const char* name, std::uint64_t flags, void** table, void*) {
    return give_table(dat_pep_ops, FI_DAT_PEP_OPS, name, flags, table);
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = open_ops,
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

net::SocketAddress source_of(const fi_info& info) {
    return info.src_addr
               ? net::SocketAddress(static_cast<const sockaddr*>(info.src_addr), info.src_addrlen)
               : net::SocketAddress();
}

std::unique_ptr<AnyListener> make_listener(AnyListenerOwner& owner, const fi_info& info,
                                           bool raw_data) {
    if (info.domain_attr && info.domain_attr->name &&
        verbs::is_device_name(info.domain_attr->name)) {
        return std::make_unique<HardListener>(owner, raw_data);
    }
    return std::make_unique<SoftListener>(owner, parameters().settings);
}

} // namespace

PassiveEndpoint::PassiveEndpoint(Fabric& fabric, Info info, void* context)
    : fabric_(fabric), info_(std::move(info)), name_(source_of(*info_)), backlog_(kDefaultBacklog),
      listener_(make_listener(*this, *info_, fabric.raw_data())) {
    fid.fclass = FI_CLASS_PEP;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_ep_ops;
    cm = &g_cm_ops;
    fabric_.add_passive(*this); // may throw
    fabric_.users.add();
}

// SP-6: what was announced and read stays valid; what was not yet read is refused.
PassiveEndpoint::~PassiveEndpoint() {
    fabric_.remove_passive(*this);
    if (eq_) {
        if (listening_) {
            eq_->remove_source(*this);
        }
        eq_->purge(&fid);
        eq_->users.remove();
    }
    if (reserved_for_) {
        reserved_for_->unreserve(); // SP-12
    }
    if (provided_from_) {
        provided_from_->users.remove();
    }
    fabric_.forget_origin(*this);
    fabric_.users.remove();
}

std::size_t PassiveEndpoint::connection_data() const {
    auto device = verbs::is_device_name(info_->domain_attr->name ? info_->domain_attr->name : "")
                      ? verbs::device_at(name())
                      : std::optional<verbs::Device>();
    if (device) {
        device->raw_data = fabric_.raw_data();
    }
    return device ? device->request_data() : kMaxConnectionData;
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

int PassiveEndpoint::bind_name(const net::SocketAddress& name) {
    if (const int rc = listener_->bind(name)) {
        DAT_WARN(ep_ctrl, "cannot listen on %s: %s", name.text().c_str(), std::strerror(-rc));
        return rc;
    }
    bound_ = true;
    return 0;
}

int PassiveEndpoint::set_name(const net::SocketAddress& name) {
    if (const int rc = refuse_late("fi_setname()")) {
        return rc;
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

int PassiveEndpoint::refuse_late(const char* call) const {
    if (!listening_ && !taken_over_) {
        return 0;
    }
    DAT_WARN(ep_ctrl, "%s: %s", call,
             listening_ ? "the passive endpoint is listening already"
                        : "an active endpoint has taken over the passive one; close it");
    return -FI_EOPBADSTATE;
}

int PassiveEndpoint::give_socket(net::Socket& socket, net::SocketAddress& name) {
    if (const int rc = refuse_late("fi_endpoint() with info->handle")) {
        return rc;
    }
    if (!bound_) {
        if (!name_.valid()) {
            DAT_WARN(ep_ctrl, "fi_endpoint(): the passive endpoint in info->handle has no address; "
                              "call fi_setname() on it");
            return -FI_EINVAL;
        }
        if (const int rc = bind_name(name_)) {
            return rc;
        }
    }
    name = listener_->name();
    socket = listener_->release();
    taken_over_ = true;
    return 0;
}

int PassiveEndpoint::listen() {
    if (!eq_) {
        DAT_WARN(ep_ctrl, "fi_listen(): bind an event queue first");
        return -FI_ENOEQ;
    }
    if (const int rc = refuse_late("fi_listen()")) {
        return rc;
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
        using Kind = core::ServicePoint::Kind;
        point_ = std::make_unique<core::ServicePoint>(reserved_for_    ? Kind::reserved
                                                      : provided_from_ ? Kind::provider
                                                                       : Kind::consumer,
                                                      static_cast<std::uint32_t>(backlog_));
        if (const int rc = eq_->add_source(*this)) {
            DAT_WARN(ep_ctrl, "fi_listen(): %s", std::strerror(-rc));
            return rc;
        }
        if (const int rc = listener_->listen(backlog_)) {
            DAT_WARN(ep_ctrl, "cannot listen on %s: %s", name().text().c_str(), std::strerror(-rc));
            eq_->remove_source(*this);
            return rc;
        }
        listening_ = true;
        // Who means this host says 127.0.0.1; Debian's /etc/hosts has its name at 127.0.1.1.
        const net::SocketAddress at = name();
        if (at.loopback() && !std::string_view(at.text()).starts_with("127.0.0.1:") &&
            at.family() == AF_INET) {
            net::say_only_local(at);
        }
        return 0;
    });
}

// The info of an FI_CONNREQ event, without the handle: for fi_domain() and fi_endpoint().
Info PassiveEndpoint::describe(const Incoming& request) const {
    Info info(fi_dupinfo(provided_info_ ? provided_info_.get() : info_.get()));
    if (!info) {
        throw std::bad_alloc();
    }
    std::free(std::exchange(info->src_addr, nullptr));
    info->src_addr = copy_address(request.local(), info->src_addrlen);
    std::free(std::exchange(info->dest_addr, nullptr));
    info->dest_addr = copy_address(request.peer(), info->dest_addrlen);
    info->addr_format = request.local().family() == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    return info;
}

void PassiveEndpoint::announce(std::unique_ptr<Incoming> request) {
    const int rc = no_throw([&] { return take_in(request, true); });
    if (rc == -FI_EAGAIN) {
        DAT_INFO(ep_ctrl, "a connection request is refused: %d wait in the event queue", backlog_);
    } else if (rc == -FI_ENOMEM) {
        DAT_WARN(ep_ctrl, "a connection request is refused: out of memory");
    }
    // SP-3: destroyed unsettled where it was not taken
}

bool PassiveEndpoint::wants_more() {
    const std::lock_guard lock(mutex_);
    return point_->listening();
}

void PassiveEndpoint::came_by_handoff() {
    if (!wants_more()) {
        listener_->stop();
    }
}

int PassiveEndpoint::take_in(std::unique_ptr<Incoming>& request, bool arrived) {
    Endpoint* holder = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (!point_ || !point_->listening()) {
            return -FI_EINVAL;
        }
        if (!point_->has_room()) {
            return -FI_EAGAIN;
        }
        holder = reserved_for_;
    }
    EventQueue::Events one(1);
    EventQueue::Event& event = one.front();
    event.type = FI_CONNREQ;
    event.fid = &fid;
    event.announcer = this;
    const auto data = request->private_data();
    event.data.assign(data.begin(), data.end());
    Info info = describe(*request);
    struct GiveBack {
        void operator()(Endpoint* ep) const { ep->request_gone(core::Stimulus::reject); }
    };
    std::unique_ptr<Endpoint, GiveBack> made;
    if (provided_from_) { // EP-48
        made.reset(new Endpoint(*provided_from_, *info, nullptr,
                                core::State::tentative_connection_pending));
        holder = made.get();
    }
    info->handle = fabric_.add_request(request, *this, holder);
    {
        const std::lock_guard lock(mutex_);
        if (!point_->arrive()) { // another one was quicker
            request = std::move(fabric_.take_request(info->handle, nullptr)->request);
            return point_->listening() ? -FI_EAGAIN : -FI_EINVAL;
        }
        reserved_for_ = nullptr;
    }
    if (holder) {
        static_cast<void>(made.release()); // held by its request
        holder->request_arrived(*info);
    }
    event.info = info.release();
    if (arrived) {
        eq_->push_request(std::move(one));
    } else {
        eq_->push(std::move(one));
    }
    return 0;
}

void PassiveEndpoint::event_read() {
    const std::lock_guard lock(mutex_);
    point_->taken();
}

void PassiveEndpoint::event_discarded(fid_t request) { fabric_.discard_request(request); }

int PassiveEndpoint::reserve(Endpoint& ep) {
    if (const int rc = refuse_late("reserve()")) {
        return rc;
    }
    if (!is_plain() || &ep.domain().fabric() != &fabric_) {
        DAT_WARN(ep_ctrl, "reserve(): %s",
                 is_plain() ? "the endpoint belongs to another fabric"
                            : "the passive endpoint has an endpoint, or makes them, already");
        return -FI_EINVAL;
    }
    if (const int rc = ep.reserve()) {
        return rc;
    }
    reserved_for_ = &ep;
    return 0;
}

int PassiveEndpoint::provide(Domain& domain, const fi_info* info) {
    if (const int rc = refuse_late("provide()")) {
        return rc;
    }
    if (!is_plain() || &domain.fabric() != &fabric_) {
        DAT_WARN(ep_ctrl, "provide(): %s",
                 is_plain() ? "the domain belongs to another fabric"
                            : "the passive endpoint has an endpoint, or makes them, already");
        return -FI_EINVAL;
    }
    Info own(fi_dupinfo(info ? info : info_.get()));
    if (!own) {
        return -FI_ENOMEM;
    }
    if (!fits_endpoint("provide()", own.get(), domain.offering())) {
        return -FI_EINVAL;
    }
    own->handle = nullptr;
    provided_info_ = std::move(own);
    provided_from_ = &domain;
    domain.users.add();
    return 0;
}

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
