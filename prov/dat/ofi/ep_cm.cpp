// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The connection calls of an endpoint, fi_cm(3), and their DAT meaning. See ep.h.
#include "base/log.h"
#include "links/iwarp/connect.h"
#include "net/bind_source.h"
#include "ofi/cm.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/no_op.h"
#include "ofi/pep.h"
#include "ofi/provider.h"

#include <rdma/fi_cm.h>

#include <cstring>
#include <span>
#include <string>

namespace dat::ofi {
namespace {

void log_refused(const char* call, core::State state) {
    DAT_WARN(ep_ctrl, "%s is not allowed in state %s", call, core::name(state).data());
}

int refuse_without_eq(const char* call) {
    DAT_WARN(ep_ctrl, "%s: the endpoint has no event queue; bind one", call);
    return -FI_ENOEQ;
}

} // namespace

core::State Endpoint::state() {
    const engine::BiasedLockOwner in(biased_lock());
    return engine_.core().visible_state();
}

net::SocketAddress Endpoint::name() {
    const engine::BiasedLockOwner in(biased_lock());
    return name_;
}

net::SocketAddress Endpoint::peer() {
    const engine::BiasedLockOwner in(biased_lock());
    return peer_;
}

std::optional<std::chrono::microseconds> Endpoint::connect_timeout() const {
    const std::uint64_t timeout_us = connect_timeout_us_;
    constexpr std::uint64_t kLongest = std::uint64_t{1} << 50; // 35 years; a clock can count it
    if (timeout_us > kLongest) {
        return std::nullopt;
    }
    return std::chrono::microseconds(timeout_us);
}

// nullptr: `name_` is where to connect from.
const char* Endpoint::source_unfit(const net::SocketAddress& destination) const {
    if (!name_.valid() || name_.wildcard()) {
        return "it is not specific";
    }
    if (name_.family() != destination.family()) {
        return "it is of another family";
    }
    return name_.loopback() != destination.loopback() ? "one of them is loopback" : nullptr;
}

// One who tries again does so from the same port, which is known from here on (U-71).
int Endpoint::connect_from_one_port(const net::SocketAddress& destination,
                                    std::span<const std::byte> data) {
    if (engine_.core().state() != core::State::unconnected) {
        return -EISCONN;
    }
    net::SocketAddress any = name_;
    any.set_port(0);
    int error = 0;
    net::Socket source = net::bind_source(any, error);
    if (!source) {
        return error;
    }
    source.share_port();
    const net::SocketAddress local = source.local();
    const int rc = iwarp::connect(engine_, destination, source, data, connect_timeout());
    if (rc == 0) {
        name_ = local;
    }
    return rc;
}

// Under the lock. 0 or -errno.
int Endpoint::start_connect(const net::SocketAddress& destination,
                            std::span<const std::byte> data) {
    if (verbs::Domain* device = domain_.device()) {
        if (const char* unfit = source_unfit(destination)) {
            DAT_INFO(ep_ctrl, "connecting from %s: %s", name_.text().c_str(), unfit);
            return -EINVAL;
        }
        net::SocketAddress source = name_;
        if (!keeps_port_) {
            source.set_port(0);
        }
        const int rc =
            verbs::connect(*device, engine_, destination, source, data, connect_timeout());
        if (rc == 0) {
            name_ = source;
        }
        return rc;
    }
    if (!keeps_port_) {
        const char* unfit = source_unfit(destination);
        if (unfit && name_.valid()) {
            DAT_INFO(ep_ctrl, "connecting to %s, not from %s: %s", destination.text().c_str(),
                     name_.text().c_str(), unfit);
        }
        return unfit || engine_.connection_options().patience == std::chrono::microseconds::zero()
                   ? iwarp::connect(engine_, destination, unfit ? nullptr : &name_, data,
                                    connect_timeout())
                   : connect_from_one_port(destination, data);
    }
    if (name_.family() != destination.family()) {
        return -EINVAL; // of another family
    }
    if (!source_) {
        if (engine_.core().state() != core::State::unconnected) {
            return -EISCONN;
        }
        int error = 0;
        source_ = net::bind_source(name_, error);
        if (!source_) {
            return error;
        }
    }
    return iwarp::connect(engine_, destination, source_, data, connect_timeout());
}

int Endpoint::dup_connect(Endpoint& other, const void* param, std::size_t size) {
    net::SocketAddress destination;
    {
        const engine::BiasedLockOwner in(other.biased_lock());
        if (other.engine_.core().state() != core::State::connected) {
            log_refused("dup_connect() to where another endpoint is connected",
                        other.engine_.core().visible_state());
            return -FI_EOPBADSTATE;
        }
        destination = other.peer_;
    }
    return connect(destination.get(), param, size);
}

int Endpoint::connect(const void* address, const void* param, std::size_t size) {
    std::span<const std::byte> data;
    if (const int rc = read_private_data("fi_connect()", param, size,
                                         domain_.offering().connection_data, data)) {
        return rc;
    }
    const net::SocketAddress destination = address ? read_address(address) : peer();
    if (!destination.valid() || destination.wildcard() || destination.multicast_or_broadcast() ||
        destination.port() == 0) {
        DAT_WARN(ep_ctrl, "fi_connect(): %s is not the address and port of a host",
                 destination.valid() ? destination.text().c_str() : "the address");
        return -FI_EINVAL;
    }
    if (request_) {
        DAT_WARN(ep_ctrl, "fi_connect(): the endpoint was made from a connection request; call "
                          "fi_accept()");
        return -FI_EOPBADSTATE;
    }
    if (!eq_) {
        return refuse_without_eq("fi_connect()");
    }
    if (const int rc = enable()) {
        return rc;
    }
    const engine::BiasedLockOwner in(biased_lock());
    expect_events();
    const int rc = start_connect(destination, data);
    if (rc == -EISCONN) {
        log_refused("fi_connect()", engine_.core().visible_state());
    } else if (rc) {
        DAT_WARN(ep_ctrl, "fi_connect(): cannot connect from %s to %s: %s", name_.text().c_str(),
                 destination.text().c_str(), std::strerror(-rc));
    } else {
        peer_ = destination;
    }
    return fi_result(rc);
}

int Endpoint::accept(const void* param, std::size_t size) {
    if (!request_) {
        DAT_WARN(ep_ctrl, "fi_accept(): the endpoint has no connection request; make it from the "
                          "info of an FI_CONNREQ event");
        return -FI_EOPBADSTATE;
    }
    if (!eq_) {
        return refuse_without_eq("fi_accept()");
    }
    if (const int rc = enable()) {
        return rc;
    }
    {
        const engine::BiasedLockOwner in(biased_lock());
        expect_events();
    }
    Fabric& fabric = domain_.fabric();
    std::unique_ptr<Request> request = fabric.take_request(request_, this);
    if (!request) {
        DAT_WARN(ep_ctrl, "fi_accept(): the connection request was rejected before");
        return -FI_EINVAL;
    }
    std::span<const std::byte> data;
    const std::size_t limit = request->request->max_private_data();
    int rc = read_private_data("fi_accept()", param, size, limit, data);
    if (rc == 0) {
        const engine::BiasedLockOwner in(biased_lock());
        rc = request->request->accept(engine_, domain_.device(), data);
        if (rc == -EISCONN) {
            log_refused("fi_accept()", engine_.core().visible_state());
        } else if (rc) {
            DAT_WARN(ep_ctrl, "fi_accept(): %s", std::strerror(-rc));
        }
    }
    if (rc) {
        fabric.put_back(std::move(request));
    } else {
        request_ = nullptr;
    }
    return fi_result(rc);
}

void Endpoint::set_up(CompletionQueue* tx, CompletionQueue* rx,
                      const engine::Endpoint::Counters& counters, std::uint64_t tx_reports) {
    tx_cq_ = tx;
    rx_cq_ = rx;
    for (CompletionQueue* cq : {tx, rx}) {
        if (cq) {
            cq->users.add();
        }
    }
    counters_ = counters;
    for_each_counter([](Counter& counter) { counter.users.add(); });
    tx_reports_ = tx_reports;
}

int Endpoint::connect_watched(const net::SocketAddress& destination,
                              std::span<const std::byte> data, std::chrono::microseconds timeout) {
    connect_timeout_us_ = static_cast<std::uint64_t>(timeout.count());
    const int rc = start_connect(destination, data);
    if (rc == 0) {
        peer_ = destination;
    }
    return rc;
}

int Endpoint::accept_watched(Incoming& request, std::span<const std::byte> data) {
    peer_ = request.peer();
    return request.accept(engine_, domain_.device(), data);
}

int Endpoint::disconnect(const char* call, bool graceful) {
    const engine::BiasedLockOwner in(biased_lock());
    if (!engine_.disconnect(graceful)) {
        log_refused(call, engine_.core().visible_state());
        return -FI_EOPBADSTATE;
    }
    if (engine_.last_end().event == core::Event::broken) {
        give_held();
    }
    return 0;
}

int Endpoint::reset() {
    const engine::BiasedLockOwner in(biased_lock());
    if (!engine_.reset()) {
        log_refused("reset()", engine_.core().visible_state());
        return -FI_EOPBADSTATE;
    }
    if (enabled_) {
        (void)prepare(); // else the next connection tries it again
    }
    return 0;
}

int Endpoint::take_request(fid_t request) {
    if (const core::State now = state(); now != core::State::unconnected) {
        log_refused("take_request()", now);
        return -FI_EOPBADSTATE;
    }
    const fid_t before = request_;
    if (!request) {
        if (!before || !domain_.fabric().release_request(before, *this)) {
            DAT_WARN(ep_ctrl, "take_request(): NULL, and the endpoint holds no request");
            return -FI_EINVAL;
        }
        request_ = nullptr;
        return 0;
    }
    if (request == before) {
        return 0;
    }
    if (const int rc = hold(request)) {
        return rc;
    }
    if (before) {
        if (const auto given_up = domain_.fabric().take_request(before, this)) {
            given_up->request->reject({});
        }
    }
    return 0;
}

int Endpoint::set_name(const net::SocketAddress& name) {
    if (const core::State now = state(); now != core::State::unconnected || request_) {
        log_refused("fi_setname()", now);
        return -FI_EOPBADSTATE;
    }
    net::Socket socket;
    if (name.port() != 0 && !domain_.device()) {
        int error = 0;
        socket = net::bind_source(name, error);
        if (!socket) {
            DAT_WARN(ep_ctrl, "fi_setname(): cannot connect from %s: %s", name.text().c_str(),
                     std::strerror(-error));
            return error;
        }
    }
    const engine::BiasedLockOwner in(biased_lock());
    name_ = name;
    keeps_port_ = name.port() != 0;
    source_ = std::move(socket);
    return 0;
}

int Endpoint::take_over(PassiveEndpoint& pep) {
    net::Socket socket;
    net::SocketAddress name;
    if (const int rc = pep.give_socket(socket, name)) {
        return rc;
    }
    socket.share_port();
    const engine::BiasedLockOwner in(biased_lock());
    name_ = name;
    keeps_port_ = true;
    source_ = std::move(socket);
    return 0;
}

int Endpoint::may_close() {
    if (aliases().count() > 0) {
        DAT_WARN(ep_ctrl, "fi_close() of an endpoint: %d of its aliases are open",
                 aliases().count());
        return -FI_EBUSY;
    }
    const core::State now = state();
    if (now != core::State::reserved && now != core::State::passive_connection_pending &&
        now != core::State::tentative_connection_pending) {
        return 0;
    }
    DAT_WARN(ep_ctrl, "fi_close() is not allowed in state %s: %s", core::name(now).data(),
             now == core::State::reserved ? "close the passive endpoint that it is reserved for"
                                          : "accept, reject, refuse or hand off its request");
    return -FI_EBUSY;
}

int Endpoint::reserve() {
    const engine::BiasedLockVisitor in(biased_lock());
    if (request_ || engine_.serve(core::Stimulus::reserve).refused()) {
        log_refused(request_ ? "reserve() of an endpoint that holds a request" : "reserve()",
                    engine_.core().visible_state());
        return -FI_EOPBADSTATE;
    }
    return 0;
}

void Endpoint::unreserve() {
    const engine::BiasedLockVisitor in(biased_lock());
    engine_.serve(core::Stimulus::unreserve);
}

void Endpoint::request_arrived(const fi_info& request) {
    const engine::BiasedLockVisitor in(biased_lock());
    engine_.serve(core::Stimulus::request_arrived);
    request_ = request.handle;
    name_ = net::SocketAddress(static_cast<const sockaddr*>(request.src_addr), request.src_addrlen);
    peer_ =
        net::SocketAddress(static_cast<const sockaddr*>(request.dest_addr), request.dest_addrlen);
}

void Endpoint::request_gone(core::Stimulus how) {
    bool provided = false; // an endpoint that is UNCONNECTED now may be closed at once
    {
        const engine::BiasedLockVisitor in(biased_lock());
        engine_.serve(how);
        request_ = nullptr;
        provided = engine_.core().state() == core::State::provider;
        if (provided) {
            engine_.free();
            given_back_ = true;
        }
    }
    if (provided) {
        delete this;
    }
}

namespace {

int connect(fid_ep* ep, const void* address, const void* param, std::size_t size) {
    return no_throw([&] { return ep_of(ep).connect(address, param, size); });
}

int accept(fid_ep* ep, const void* param, std::size_t size) {
    return no_throw([&] { return ep_of(ep).accept(param, size); });
}

int shutdown(fid_ep* ep, std::uint64_t flags) {
    if (flags != 0) {
        DAT_WARN(ep_ctrl, "fi_shutdown(): flags = 0x%llx; none is offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EBADFLAGS;
    }
    return no_throw(
        [&] { return ep_of(ep).disconnect("fi_shutdown()", parameters().graceful_close); });
}

int set_name(fid_t f, void* address, std::size_t size) {
    const net::SocketAddress name(static_cast<const sockaddr*>(address), size);
    if (!name.valid()) {
        DAT_WARN(ep_ctrl, "fi_setname(): not an IPv4 or IPv6 socket address of %zu bytes", size);
        return -FI_EINVAL;
    }
    return object_of<Endpoint, fid_ep>(f).set_name(name);
}

int get_name(fid_t f, void* address, std::size_t* size) {
    const net::SocketAddress name = object_of<Endpoint, fid_ep>(f).name();
    return name.valid() ? give_address(name, address, size) : -FI_EADDRNOTAVAIL;
}

int get_peer(fid_ep* f, void* address, std::size_t* size) {
    Endpoint& ep = ep_of(f);
    const core::State now = ep.state();
    return now == core::State::unconnected || now == core::State::reserved
               ? -FI_ENOTCONN
               : give_address(ep.peer(), address, size);
}

} // namespace

fi_ops_cm ep_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = set_name,
    .getname = get_name,
    .getpeer = get_peer,
    .connect = connect,
    .listen = DAT_NOT_OFFERED(fi_ops_cm, listen),
    .accept = accept,
    .reject = DAT_NOT_OFFERED(fi_ops_cm, reject),
    .shutdown = shutdown,
    .join = DAT_NOT_OFFERED(fi_ops_cm, join),
};

} // namespace dat::ofi
