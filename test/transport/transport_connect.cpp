// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: a connection comes up or is refused. Private data, reject,
// timeouts, listeners.
#include "suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

using namespace dat::test;

namespace {

constexpr std::size_t kMaxData = 508; // U-63, between two `dat` endpoints

std::size_t cm_data_size(fid_t fid) {
    std::size_t size = 0;
    std::size_t length = sizeof size;
    DAT_MUST(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &length));
    return size;
}

// A port that is taken and where nobody listens, for as long as it lives.
class DeafPort {
  public:
    explicit DeafPort(const Transport& transport) {
        socket_ = socket(transport.family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        sockaddr_storage address{};
        address.ss_family = static_cast<sa_family_t>(transport.family);
        socklen_t size = transport.family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if (transport.family == AF_INET)
            reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
            reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
        cr_assert_eq(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
        cr_assert_eq(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
        address_.resize(size);
        std::memcpy(address_.data(), &address, size);
    }
    ~DeafPort() { close(socket_); }
    const void* address() const { return address_.data(); }
    // From now on connections are taken, and closed at once; returns after the first.
    template <class Progress> void hear(Progress&& progress) const {
        cr_assert_eq(listen(socket_, 1), 0);
        int connection = -1;
        while (connection < 0) { // the test has a limit
            progress();
            connection = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK);
        }
        close(connection);
    }

  private:
    int socket_;
    Bytes address_;
};

// Connects with `sent`, accepts with `answered`, and checks what arrives.
void exchange_private_data(const Transport& transport, std::size_t size) {
    Pair pair(transport);
    if (size > cm_data_size(pair.active.fid()))
        cr_skip_test("more than this provider carries");
    const Bytes sent = pattern(size, 3);
    const Bytes answered = pattern(size, 4);
    DAT_MUST(pair.active.connect(pair.far, sent));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    cr_assert(request.data == sent, "the request carried %zu bytes", request.data.size());
    cr_assert_eq(request.fid, &pair.far.pep()->fid);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept(answered));
    const Event connected = wait_event(pair.near, FI_CONNECTED);
    cr_assert(connected.data == answered, "the answer carried %zu bytes", connected.data.size());
    cr_assert_eq(connected.fid, pair.active.fid());
    const Event accepted = wait_event(pair.far, FI_CONNECTED);
    cr_assert_eq(accepted.fid, passive.fid());
    cr_assert(accepted.data.empty());
    require_state(pair.active, FI_DAT_CONNECTED);
    require_state(passive, FI_DAT_CONNECTED);
}

void reject_with(const Transport& transport, std::size_t size) {
    Pair pair(transport);
    const Bytes data = pattern(size, 5);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, data.data(), data.size()));
    const Event refused = wait_error(pair.near, FI_ECONNREFUSED);
    cr_assert_eq(refused.fid, pair.active.fid());
    cr_assert(refused.data == data, "the rejection carried %zu bytes", refused.data.size());
    require_end(pair.active, FI_DAT_END_PEER_REJECTED);
    settle();
    cr_assert(pair.near.events().empty() && pair.far.events().empty());
}

} // namespace

// PD-1, PD-2, PD-3, PD-5, U-63: all of it, and not a byte more.
TRANSPORT_TEST(connect_private_data, none__arrives_as_none) { exchange_private_data(transport, 0); }
TRANSPORT_TEST(connect_private_data, of_1_byte__arrives) { exchange_private_data(transport, 1); }
TRANSPORT_TEST(connect_private_data, of_255_bytes__arrives) {
    exchange_private_data(transport, 255);
}
TRANSPORT_TEST(connect_private_data, of_256_bytes__arrives) {
    exchange_private_data(transport, 256);
}
TRANSPORT_TEST(connect_private_data, of_508_bytes__arrives) {
    exchange_private_data(transport, kMaxData);
}

// U-63: what the option says is what is carried.
TRANSPORT_TEST(connect_private_data, option_of_endpoint_and_listener__says_508) {
    only_dat();
    Pair pair(transport);
    cr_assert_eq(cm_data_size(pair.active.fid()), kMaxData);
    cr_assert_eq(cm_data_size(&pair.far.pep()->fid), kMaxData);
}

// PD-1, CR-4: refused at the call; the endpoint, the request and the peer are
// untouched, so the same call with less data succeeds.
TRANSPORT_TEST(connect_private_data, of_509_bytes__is_refused_and_changes_nothing) {
    only_dat();
    Pair pair(transport);
    const Bytes too_much = pattern(kMaxData + 1);
    cr_assert_eq(pair.active.connect(pair.far, too_much), -FI_EINVAL);
    require_state(pair.active, FI_DAT_UNCONNECTED);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    cr_assert_eq(passive.accept(too_much), -FI_EINVAL);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
}

TRANSPORT_TEST(connect_private_data, of_509_bytes_in_a_reject__is_refused_and_keeps_the_request) {
    only_dat();
    Pair pair(transport);
    const Bytes too_much = pattern(kMaxData + 1);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    cr_assert_eq(fi_reject(pair.far.pep(), request.info->handle, too_much.data(), too_much.size()),
                 -FI_EINVAL);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, nullptr, 0));
    wait_error(pair.near, FI_ECONNREFUSED);
}

// CR-7, EP-41.
TRANSPORT_TEST(connect_reject, without_data__is_refused) { reject_with(transport, 0); }
TRANSPORT_TEST(connect_reject, with_1_byte__delivers_it) { reject_with(transport, 1); }
TRANSPORT_TEST(connect_reject, with_256_bytes__delivers_them) { reject_with(transport, 256); }

// libfabric allows fi_reject() after the endpoint of the request is closed.
TRANSPORT_TEST(connect_reject, after_the_endpoint_of_the_request_is_closed__is_delivered) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.close());
    const Bytes data = pattern(16);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, data.data(), data.size()));
    cr_assert(wait_error(pair.near, FI_ECONNREFUSED).data == data);
}

// EP-42, U-2.
TRANSPORT_TEST(connect_nobody_listens, port_is_closed__is_refused) {
    Side side(transport);
    const DeafPort port(transport);
    Endpoint active(side);
    DAT_MUST(fi_connect(active.get(), port.address(), nullptr, 0));
    const Event refused = wait_error(side, FI_ECONNREFUSED);
    cr_assert_eq(refused.fid, active.fid());
    require_end(active, FI_DAT_END_NON_PEER_REJECTED);
    if (is_dat())
        cr_assert_eq(active.status().reason, FI_DAT_REASON_REFUSED);
    settle();
    cr_assert(side.events().empty());
}

// A server may begin to listen a moment after its client asks.
TRANSPORT_TEST(connect_nobody_listens, with_patience__is_tried_again) {
    only_dat();
    Side side(transport);
    const DeafPort port(transport);
    Endpoint active(side);
    cr_assert_eq(active.dat()->set_patience(active.get(), 60'000'001), -FI_EINVAL);
    DAT_MUST(active.dat()->set_patience(active.get(), 60'000'000));
    DAT_MUST(fi_connect(active.get(), port.address(), nullptr, 0));
    settle();
    cr_assert(side.events().empty());
    port.hear([] { settle(); });
    wait_error(side, FI_ECONNREFUSED);
    cr_assert_neq(active.status().reason, FI_DAT_REASON_REFUSED);
}

// With little of it the end is the same, only later.
TRANSPORT_TEST(connect_nobody_listens, at_the_end_of_patience__is_refused) {
    only_dat();
    Side side(transport);
    const DeafPort port(transport);
    Endpoint active(side);
    DAT_MUST(active.dat()->set_patience(active.get(), 5000));
    DAT_MUST(fi_connect(active.get(), port.address(), nullptr, 0));
    wait_error(side, FI_ECONNREFUSED);
    require_end(active, FI_DAT_END_NON_PEER_REJECTED);
}

// SP-6: closed listeners answer as if they had never been.
TRANSPORT_TEST(connect_nobody_listens, listener_was_closed__is_refused) {
    Pair pair(transport);
    const Bytes address = pair.far.address();
    pair.far.stop_listening();
    DAT_MUST(fi_connect(pair.active.get(), address.data(), nullptr, 0));
    wait_error(pair.near, FI_ECONNREFUSED);
}

// SP-6: a delivered request outlives its listener.
TRANSPORT_TEST(connect_listener_closed, with_a_delivered_request__request_can_be_accepted) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    pair.far.stop_listening();
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
}

// TMO-2, EP-44, U-1.
TRANSPORT_TEST(connect_timeout, request_is_never_answered__times_out_once) {
    only_dat();
    Pair pair(transport);
    // us; a device on a busy machine has asked by then
    const std::uint64_t timeout = transport.device ? 2'000'000 : 150'000;
    DAT_MUST(pair.active.dat()->set_connect_timeout(pair.active.get(), timeout));
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    const Event timed_out = wait_error(pair.near, FI_ETIMEDOUT);
    cr_assert_eq(timed_out.fid, pair.active.fid());
    require_end(pair.active, FI_DAT_END_TIMED_OUT);
    cr_assert_eq(pair.active.status().reason, FI_DAT_REASON_TIMEOUT);
    settle();
    cr_assert(pair.near.events().empty());
    // CR-9, EP-50: nothing is said of the request that is still pending.
    cr_assert(pair.far.events().empty());
}

// TMO-1.
TRANSPORT_TEST(connect_timeout, of_zero__is_refused) {
    only_dat();
    Side side(transport);
    Endpoint endpoint(side);
    cr_assert_eq(endpoint.dat()->set_connect_timeout(endpoint.get(), 0), -FI_EINVAL);
    DAT_MUST(endpoint.dat()->set_connect_timeout(endpoint.get(), FI_DAT_TIMEOUT_INFINITE));
}

// CR-6, EP-52: accept succeeds, and its completion says that it came too late.
TRANSPORT_TEST(connect_requester_gone, before_accept__accept_completion_error_once) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(pair.active.close());
    settle(); // lets the news of the end reach the request first, where it can
    Endpoint passive(pair.far, request);
    Bytes buffer(64);
    Op& receive = passive.recv(buffer.data(), buffer.size());
    DAT_MUST(passive.accept());
    wait_accept_in_vain(passive, transport);
    cr_assert(receive.flushed(), "EP-72, EP-68: flushed before the event");
    settle();
    cr_assert(pair.far.events().empty());
}

// CR-9, U-65: the handshake limit is not about a request that the Consumer has.
TRANSPORT_TEST(connect_request, pending_past_the_handshake_limit__can_be_accepted) {
    only_dat();
    setenv("FI_DAT_HANDSHAKE_TIMEOUT", "1", 1);
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    settle(1500);
    cr_assert(pair.near.events().empty() && pair.far.events().empty());
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
}

// What rxm reads from a request: the peer's address, specific.
TRANSPORT_TEST(connect_request, info__names_the_peer_and_fits_the_domain) {
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    const fi_info* info = request.info.get();
    cr_assert(info && info->handle && info->dest_addr);
    cr_assert_eq(info->ep_attr->type, FI_EP_MSG);
    cr_assert_eq(info->addr_format, pair.far.info()->addr_format);
    cr_assert_str_eq(info->domain_attr->name, pair.far.info()->domain_attr->name);
    const auto family = static_cast<const sockaddr*>(info->dest_addr)->sa_family;
    cr_assert_eq(family, transport.family);
    if (transport.family == AF_INET) {
        const auto* in = static_cast<const sockaddr_in*>(info->dest_addr);
        cr_assert_eq(in->sin_addr.s_addr, inet_addr(transport.address));
    } else {
        const auto* in6 = static_cast<const sockaddr_in6*>(info->dest_addr);
        cr_assert(IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr));
    }
    DAT_MUST(fi_reject(pair.far.pep(), info->handle, nullptr, 0));
    wait_error(pair.near, FI_ECONNREFUSED);
}

// SP-2: one request each, and each finds its own answer.
TRANSPORT_TEST(connect_many, at_once__each_gets_its_own_answer) {
    constexpr unsigned kCount = 24;
    Pair pair(transport);
    std::vector<Endpoint> active;
    for (unsigned i = 0; i < kCount; ++i) {
        active.emplace_back(pair.near);
        DAT_MUST(active.back().connect(pair.far, pattern(40, i)));
    }
    std::vector<Endpoint> passive;
    for (unsigned i = 0; i < kCount; ++i) {
        const Event request = wait_event(pair.far, FI_CONNREQ);
        Bytes answer = request.data;
        answer.push_back(1);
        passive.emplace_back(pair.far, request);
        DAT_MUST(passive.back().accept(answer));
        // The acceptor's own events come between the requests.
        wait_until([&] { return pair.far.events().size() || i + 1 == kCount; });
        std::erase_if(pair.far.events(), [](const Event& e) { return e.type == FI_CONNECTED; });
    }
    for (unsigned i = 0; i < kCount; ++i) {
        const Event connected = wait_event(pair.near, FI_CONNECTED);
        for (unsigned k = 0; k < kCount; ++k) {
            if (connected.fid != active[k].fid())
                continue;
            Bytes expected = pattern(40, k);
            expected.push_back(1);
            cr_assert(connected.data == expected, "endpoint %u got another's answer", k);
        }
    }
}

// EP-10: each state but UNCONNECTED refuses, and nothing happens.
TRANSPORT_TEST(connect_in_wrong_state, pending_connected_or_disconnected__is_refused) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    cr_assert_eq(pair.active.connect(pair.far), -FI_EOPBADSTATE);
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    cr_assert_eq(pair.active.connect(pair.far), -FI_EOPBADSTATE);
    cr_assert_neq(passive.accept(), 0);
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair.active);
    wait_shutdown(passive);
    cr_assert_eq(pair.active.connect(pair.far), -FI_EOPBADSTATE);
    settle();
    cr_assert(pair.near.events().empty() && pair.far.events().empty());
}

TRANSPORT_TEST(connect_accept, without_a_request__is_refused) {
    only_dat();
    Side side(transport);
    Endpoint endpoint(side);
    cr_assert_neq(endpoint.accept(), 0);
    require_state(endpoint, FI_DAT_UNCONNECTED);
}

// The states of both sides on the way (EP-10, EP-15, EP-40, EP-51, EP-71).
TRANSPORT_TEST(connect_states, from_unconnected_to_connected__are_reported) {
    only_dat();
    Pair pair(transport);
    require_state(pair.active, FI_DAT_UNCONNECTED);
    DAT_MUST(pair.active.connect(pair.far));
    require_state(pair.active, FI_DAT_ACTIVE_CONNECTION_PENDING);
    const Event request = wait_event(pair.far, FI_CONNREQ);
    require_state(pair.active, FI_DAT_ACTIVE_CONNECTION_PENDING);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    const fi_dat_ep_state accepted = passive.status().state;
    cr_assert(accepted == FI_DAT_COMPLETION_PENDING || accepted == FI_DAT_CONNECTED);
    wait_event(pair.near, FI_CONNECTED);
    require_state(pair.active, FI_DAT_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    require_state(passive, FI_DAT_CONNECTED);
    cr_assert_eq(passive.status().end, FI_DAT_END_NONE);
    cr_assert(passive.status().recv_idle && passive.status().request_idle);
}

// EP-75: a receive completes only after FI_CONNECTED can be read.
TRANSPORT_TEST(connect_first_message, on_the_passive_side__comes_after_connected) {
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    Bytes in(64);
    Op& receive = passive.recv(in.data(), in.size());
    DAT_MUST(passive.accept());
    // Polls the passive side without taking its event.
    pair.far.asleep = true;
    const auto poll_far = [&] {
        std::uint32_t type = 0;
        alignas(fi_eq_cm_entry) std::uint8_t room[256];
        const ssize_t peeked = fi_eq_read(pair.far.eq(), &type, room, sizeof room, FI_PEEK);
        cr_assert(peeked > 0 || peeked == -FI_EAGAIN, "fi_eq_read: %zd", peeked);
        pair.far.pump_cq();
    };
    cr_assert(wait_until([&] {
        poll_far();
        return !pair.near.events().empty();
    }));
    wait_event(pair.near, FI_CONNECTED);
    const Bytes out = pattern(64);
    pair.active.send(out.data(), out.size());
    cr_assert(wait_until([&] {
        poll_far();
        return receive.done();
    }));
    const std::optional<Event> event = pair.far.read_event();
    cr_assert(event && event->type == FI_CONNECTED, "the message came before the connection");
    cr_assert(receive.ok() && in == out);
}

// EP-25: 128 receives before connect, as ofi_rxm posts them.
TRANSPORT_TEST(connect_receives_posted_before, all__are_used_in_order) {
    constexpr std::size_t kCount = 64;
    Pair pair(transport);
    std::vector<Bytes> in(kCount, Bytes(32));
    std::vector<Op*> receives;
    for (Bytes& buffer : in)
        receives.push_back(&pair.active.recv(buffer.data(), buffer.size()));
    if (is_dat())
        cr_assert(!pair.active.status().recv_idle && pair.active.status().request_idle);
    pair.connect();
    for (std::size_t i = 0; i < kCount; ++i) {
        const Bytes out = pattern(32, static_cast<unsigned>(i));
        wait_op(pair.passive().send(out.data(), out.size()));
    }
    wait_ops(receives);
    for (std::size_t i = 0; i < kCount; ++i) {
        cr_assert(receives[i]->ok());
        cr_assert(in[i] == pattern(32, static_cast<unsigned>(i)));
    }
    require_stream_order(receives);
    if (is_dat())
        cr_assert(pair.active.status().recv_idle);
}

// Listeners: a real port after fi_listen() on port 0, as rxm wants it.
TRANSPORT_TEST(listen_on_port_0, getname__gives_a_real_port_and_address) {
    Side side(transport);
    side.listen();
    cr_assert_neq(side.port(), 0);
    cr_assert_eq(reinterpret_cast<const sockaddr*>(side.address().data())->sa_family,
                 transport.family);
}

TRANSPORT_TEST(listen_name, too_small_a_buffer__says_how_much) {
    Side side(transport);
    side.listen();
    char small[4];
    std::size_t size = sizeof small;
    cr_assert_eq(fi_getname(&side.pep()->fid, small, &size), -FI_ETOOSMALL);
    cr_assert_eq(size, side.address().size());
}

// Of two sockets that share a port only one can listen, so nobody gets this one's before it does.
TRANSPORT_TEST(listen_on_port_0, named_and_not_listening_yet__another_socket_cannot_take_its_port) {
    Side side(transport);
    Fid<fid_pep> pep;
    DAT_MUST(fi_passive_ep(side.fabric(), side.info(), pep.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep.get(), &side.eq()->fid, 0));
    DAT_MUST(fi_setname(&pep->fid, side.info()->src_addr, side.info()->src_addrlen));
    sockaddr_storage name{};
    std::size_t size = sizeof name;
    DAT_MUST(fi_getname(&pep->fid, &name, &size));
    const int other = socket(transport.family, SOCK_STREAM, 0);
    const int on = 1;
    setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const int rc = bind(other, reinterpret_cast<sockaddr*>(&name), static_cast<socklen_t>(size));
    const int error = errno;
    close(other);
    cr_assert_eq(rc, -1);
    cr_assert_eq(error, EADDRINUSE, "%s", strerror(error));
    DAT_MUST(fi_listen(pep.get()));
}

// SP-1.
TRANSPORT_TEST(listen_twice, on_one_port__second_is_refused) {
    Side first(transport);
    first.listen();
    Side second(transport);
    const Bytes address = first.address();
    Fid<fid_pep> pep;
    DAT_MUST(fi_passive_ep(second.fabric(), second.info(), pep.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep.get(), &second.eq()->fid, 0));
    int result = fi_setname(&pep->fid, const_cast<std::uint8_t*>(address.data()), address.size());
    if (result == 0)
        result = fi_listen(pep.get());
    cr_assert_eq(result, -FI_EADDRINUSE, "got %d", result);
    // The first one is unharmed.
    Endpoint active(second);
    establish(active, first);
}

TRANSPORT_TEST(listen_after_setname, with_a_chosen_port__listens_there) {
    Side side(transport);
    std::uint16_t port = 0;
    {
        Side other(transport); // finds a free port
        other.listen();
        port = other.port();
    }
    Fid<fid_pep> pep;
    DAT_MUST(fi_passive_ep(side.fabric(), side.info(), pep.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep.get(), &side.eq()->fid, 0));
    Bytes name = with_port(side.info()->src_addr, side.info()->src_addrlen, port);
    DAT_MUST(fi_setname(&pep->fid, name.data(), name.size()));
    DAT_MUST(fi_listen(pep.get()));
    Bytes got(64);
    std::size_t size = got.size();
    DAT_MUST(fi_getname(&pep->fid, got.data(), &size));
    cr_assert_eq(port_of(got.data()), port);
}

// Programs listen on ports of their own choice that lie among those that the system gives
// to outgoing connections.
TRANSPORT_TEST(listen_on_port, of_an_outgoing_connection__is_free) {
    auto pair = Pair::connected(transport);
    Bytes own(64);
    std::size_t size = own.size();
    DAT_MUST(fi_getname(pair->active.fid(), own.data(), &size));
    const Bytes name =
        with_port(pair->near.info()->src_addr, pair->near.info()->src_addrlen, port_of(own.data()));
    const auto listen = [&] {
        Fid<fid_pep> pep;
        DAT_MUST(fi_passive_ep(pair->near.fabric(), pair->near.info(), pep.out(), nullptr));
        DAT_MUST(fi_pep_bind(pep.get(), &pair->near.eq()->fid, 0));
        DAT_MUST(fi_setname(&pep->fid, const_cast<std::uint8_t*>(name.data()), name.size()));
        DAT_MUST(fi_listen(pep.get()));
    };
    listen();
    DAT_MUST(fi_shutdown(pair->active.get(), 0));
    wait_event(pair->near, FI_SHUTDOWN);
    wait_event(pair->far, FI_SHUTDOWN);
    listen();
}

// EPA-9.
static void require_crosswise(const Endpoint& active, const Endpoint& passive, const Side& far) {
    Bytes own(64);
    Bytes seen(64);
    std::size_t own_size = own.size();
    std::size_t seen_size = seen.size();
    DAT_MUST(fi_getname(active.fid(), own.data(), &own_size));
    DAT_MUST(fi_getpeer(passive.get(), seen.data(), &seen_size));
    cr_assert_eq(own_size, seen_size);
    cr_assert_eq(port_of(own.data()), port_of(seen.data()));
    seen_size = seen.size();
    DAT_MUST(fi_getpeer(active.get(), seen.data(), &seen_size));
    cr_assert_eq(port_of(seen.data()), far.port());
}

TRANSPORT_TEST(connect_names, of_a_connection__match_crosswise) {
    auto pair = Pair::connected(transport);
    require_crosswise(pair->active, pair->passive(), pair->far);
}

// Whatever they share with the first, and are made by.
TRANSPORT_TEST(connect_names, of_later_connections__match_crosswise) {
    auto pair = Pair::connected(transport);
    std::vector<std::uint16_t> ports;
    for (int i = 0; i < 3; ++i) {
        Endpoint active(pair->near);
        DAT_MUST(active.connect(pair->far));
        const Event request = wait_event(pair->far, FI_CONNREQ);
        Bytes from(static_cast<const std::uint8_t*>(request.info->dest_addr),
                   static_cast<const std::uint8_t*>(request.info->dest_addr) +
                       request.info->dest_addrlen);
        cr_assert_eq(port_of(request.info->src_addr), pair->far.port());
        Endpoint passive(pair->far, request);
        DAT_MUST(passive.accept());
        wait_event(pair->near, FI_CONNECTED);
        wait_event(pair->far, FI_CONNECTED);
        require_crosswise(active, passive, pair->far);
        Bytes own(64);
        std::size_t size = own.size();
        DAT_MUST(fi_getname(active.fid(), own.data(), &size));
        own.resize(size);
        cr_assert(own == from);
        ports.push_back(port_of(own.data()));
        DAT_MUST(fi_shutdown(active.get(), 0));
        wait_event(pair->near, FI_SHUTDOWN);
        wait_event(pair->far, FI_SHUTDOWN);
    }
    cr_assert(ports[0] != ports[1] && ports[1] != ports[2]);
}

// The event is of the listener that was called, also with two on one EQ.
TRANSPORT_TEST(listen_two, on_one_eq__each_request_names_its_listener) {
    Pair pair(transport);
    Fid<fid_pep> second;
    DAT_MUST(fi_passive_ep(pair.far.fabric(), pair.far.info(), second.out(), nullptr));
    DAT_MUST(fi_pep_bind(second.get(), &pair.far.eq()->fid, 0));
    DAT_MUST(fi_listen(second.get()));
    Bytes name(64);
    std::size_t size = name.size();
    DAT_MUST(fi_getname(&second->fid, name.data(), &size));
    DAT_MUST(fi_connect(pair.active.get(), name.data(), nullptr, 0));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    cr_assert_eq(request.fid, &second->fid);
    DAT_MUST(fi_reject(second.get(), request.info->handle, nullptr, 0));
    wait_error(pair.near, FI_ECONNREFUSED);
}
