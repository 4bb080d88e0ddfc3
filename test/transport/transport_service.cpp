// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: service points and connection requests as fi_ext_dat.h offers
// them.
#include "dat_suite.h"

using namespace dat::test;

namespace {

// A passive endpoint of `side`, on a port of its own, that does not listen yet.
Fid<fid_pep> make_point(Side& side, int backlog = 16) {
    Fid<fid_pep> pep;
    DAT_MUST(fi_passive_ep(side.fabric(), side.info(), pep.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep.get(), &side.eq()->fid, 0));
    DAT_MUST(fi_control(&pep->fid, FI_BACKLOG, &backlog));
    return pep;
}

Bytes address_of(const Fid<fid_pep>& pep) {
    Bytes address(128);
    std::size_t size = address.size();
    DAT_MUST(fi_getname(&pep->fid, address.data(), &size));
    address.resize(size);
    return address;
}

fid_ep* endpoint_of(Side& side, const Event& request) {
    fid_ep* ep = nullptr;
    DAT_MUST(dat_of(side.fabric())->request_endpoint(side.fabric(), request.info->handle, &ep));
    return ep;
}

int refuse(Side& side, fid_t request) {
    return dat_of(side.fabric())->refuse(side.fabric(), request);
}

int reject(Side& side, fid_t request, const Bytes& data = {}) {
    return dat_of(side.fabric())->reject(side.fabric(), request, data.data(), data.size());
}

int handoff(Side& side, fid_t request, fid_pep* to) {
    return dat_of(side.fabric())->handoff(side.fabric(), request, to);
}

// An FI_CONNREQ can be read; it stays.
bool request_waits(Side& side) {
    std::uint32_t type = 0;
    fi_eq_cm_entry entry;
    return fi_eq_read(side.eq(), &type, &entry, sizeof entry, FI_PEEK) > 0 && type == FI_CONNREQ;
}

// Two sides; the far one has an endpoint that is reserved for one request.
struct Reserved {
    Pair pair;
    Fid<fid_pep> point;
    Endpoint passive;

    explicit Reserved(const Transport& transport)
        : pair(transport), point(make_point(pair.far)), passive(pair.far) {
        DAT_MUST(dat_of(point.get())->reserve(point.get(), passive.get()));
        DAT_MUST(fi_listen(point.get()));
    }
    Event request() {
        DAT_MUST(pair.active.connect(address_of(point), Bytes{1, 2, 3}));
        return wait_event(pair.far, FI_CONNREQ);
    }
};

void connect_in_vain(Side& side, const Bytes& address) {
    Endpoint other(side);
    DAT_MUST(other.connect(address));
    wait_error(side, FI_ECONNREFUSED);
    require_end(other, FI_DAT_END_NON_PEER_REJECTED);
}

} // namespace

// SP-10, SP-11, EP-12, EP-47, EP-14.
TRANSPORT_TEST(service_reserve, request__comes_with_its_endpoint_and_is_accepted_by_it) {
    only_dat();
    Reserved reserved(transport);
    require_state(reserved.passive, FI_DAT_RESERVED);
    const Event request = reserved.request();
    cr_assert(request.data == (Bytes{1, 2, 3}));
    cr_assert_eq(request.fid, &reserved.point->fid);
    cr_assert_eq(endpoint_of(reserved.pair.far, request), reserved.passive.get());
    require_state(reserved.passive, FI_DAT_PASSIVE_CONNECTION_PENDING);
    DAT_MUST(reserved.passive.accept(Bytes{4}));
    const Event connected = wait_event(reserved.pair.near, FI_CONNECTED);
    cr_assert(connected.data == (Bytes{4}));
    wait_event(reserved.pair.far, FI_CONNECTED);
    exchange(reserved.pair.active, reserved.passive);
}

// EP-10, EP-18, EP-21, EP-22, EP-23, EP-25, FREE-1.
TRANSPORT_TEST(service_reserve, endpoint__refuses_what_the_state_does) {
    only_dat();
    Reserved reserved(transport);
    for (const bool arrived : {false, true}) {
        if (arrived)
            reserved.request();
        cr_assert_eq(reserved.passive.connect(reserved.pair.far), -FI_EOPBADSTATE);
        cr_assert_eq(reserved.passive.disconnect(FI_DAT_ABRUPT), -FI_EOPBADSTATE);
        cr_assert_eq(reserved.passive.reset(), -FI_EOPBADSTATE);
        cr_assert_eq(fi_close(reserved.passive.fid()), -FI_EBUSY);
        cr_assert_eq(fi_send(reserved.passive.get(), "", 0, nullptr, 0, nullptr), -FI_EOPBADSTATE);
        Bytes in(8);
        cr_assert_not(reserved.passive.recv(in.data(), in.size()).done());
        require_state(reserved.passive,
                      arrived ? FI_DAT_PASSIVE_CONNECTION_PENDING : FI_DAT_RESERVED);
    }
    DAT_MUST(reserved.passive.accept());
    wait_event(reserved.pair.near, FI_CONNECTED);
    wait_event(reserved.pair.far, FI_CONNECTED);
}

// SP-13, U-52: the port is released, not kept and refused later.
TRANSPORT_TEST(service_reserve, second_request__finds_nobody) {
    only_dat();
    Reserved reserved(transport);
    const Bytes address = address_of(reserved.point);
    const Event request = reserved.request();
    connect_in_vain(reserved.pair.near, address);
    Fid<fid_pep> again;
    DAT_MUST(
        fi_passive_ep(reserved.pair.far.fabric(), reserved.pair.far.info(), again.out(), nullptr));
    DAT_MUST(fi_setname(&again->fid, const_cast<std::uint8_t*>(address.data()), address.size()));
    DAT_MUST(fi_pep_bind(again.get(), &reserved.pair.far.eq()->fid, 0));
    DAT_MUST(fi_listen(again.get()));
    DAT_MUST(reserved.passive.accept());
    wait_event(reserved.pair.near, FI_CONNECTED);
}

// SP-12, EP-13.
TRANSPORT_TEST(service_reserve, closed_before_a_request__endpoint_is_unconnected) {
    only_dat();
    Reserved reserved(transport);
    const Bytes address = address_of(reserved.point);
    DAT_MUST(reserved.point.close());
    require_state(reserved.passive, FI_DAT_UNCONNECTED);
    connect_in_vain(reserved.pair.near, address);
    DAT_MUST(reserved.passive.connect(reserved.pair.far));
    wait_event(reserved.pair.far, FI_CONNREQ);
}

// U-52, EP-65.
TRANSPORT_TEST(service_reserve, closed_after_the_request__touches_nothing) {
    only_dat();
    Reserved reserved(transport);
    reserved.request();
    DAT_MUST(reserved.point.close());
    require_state(reserved.passive, FI_DAT_PASSIVE_CONNECTION_PENDING);
    DAT_MUST(reserved.passive.accept());
    wait_event(reserved.pair.near, FI_CONNECTED);
    wait_event(reserved.pair.far, FI_CONNECTED);
    exchange(reserved.pair.active, reserved.passive);
}

// SP-6: a request whose event was not read is refused.
TRANSPORT_TEST(service_reserve, closed_with_the_event_unread__refuses_and_frees_the_endpoint) {
    only_dat();
    Reserved reserved(transport);
    reserved.pair.far.asleep = true;
    DAT_MUST(reserved.pair.active.connect(address_of(reserved.point)));
    cr_assert(wait_until([&] { return request_waits(reserved.pair.far); }));
    require_state(reserved.passive, FI_DAT_PASSIVE_CONNECTION_PENDING);
    DAT_MUST(reserved.point.close());
    require_state(reserved.passive, FI_DAT_UNCONNECTED);
    wait_error(reserved.pair.near, FI_ECONNREFUSED);
    require_end(reserved.pair.active, FI_DAT_END_NON_PEER_REJECTED);
}

// CR-7, EP-16: also where the service point has gone.
TRANSPORT_TEST(service_reserve, reject__frees_the_endpoint_and_tells_the_requester) {
    only_dat();
    Reserved reserved(transport);
    const Event request = reserved.request();
    DAT_MUST(reserved.point.close());
    cr_assert_eq(reject(reserved.pair.far, request.info->handle, Bytes(509)), -FI_EINVAL);
    require_state(reserved.passive, FI_DAT_PASSIVE_CONNECTION_PENDING);
    DAT_MUST(reject(reserved.pair.far, request.info->handle, Bytes{9}));
    require_state(reserved.passive, FI_DAT_UNCONNECTED);
    cr_assert(wait_error(reserved.pair.near, FI_ECONNREFUSED).data == (Bytes{9}));
    require_end(reserved.pair.active, FI_DAT_END_PEER_REJECTED);
    cr_assert_eq(reserved.passive.accept(), -FI_EOPBADSTATE);
    cr_assert_eq(reject(reserved.pair.far, request.info->handle), -FI_EINVAL);
}

// CR-6: the requester has gone before the accept.
TRANSPORT_TEST(service_reserve, requester_gone__accept_ends_in_accept_error) {
    only_dat();
    Reserved reserved(transport);
    reserved.request();
    DAT_MUST(reserved.pair.active.close());
    settle(20);
    require_state(reserved.passive, FI_DAT_PASSIVE_CONNECTION_PENDING);
    DAT_MUST(reserved.passive.accept());
    wait_accept_in_vain(reserved.passive, transport);
}

TRANSPORT_TEST(service_reserve, where_it_cannot__is_refused_and_changes_nothing) {
    only_dat();
    Pair pair(transport);
    Endpoint ep(pair.far);
    auto* listening = dat_of(pair.far.pep());
    cr_assert_eq(listening->reserve(pair.far.pep(), ep.get()), -FI_EOPBADSTATE);
    cr_assert_eq(listening->provide(pair.far.pep(), pair.far.domain(), nullptr), -FI_EOPBADSTATE);
    const Fid<fid_pep> point = make_point(pair.far);
    auto* dat = dat_of(point.get());
    cr_assert_eq(dat->reserve(point.get(), pair.active.get()), -FI_EINVAL); // another fabric
    require_state(ep, FI_DAT_UNCONNECTED);
    DAT_MUST(dat->reserve(point.get(), ep.get()));
    Endpoint second(pair.far);
    cr_assert_eq(dat->reserve(point.get(), second.get()), -FI_EINVAL);
    cr_assert_eq(dat->provide(point.get(), pair.far.domain(), nullptr), -FI_EINVAL);
    const Fid<fid_pep> other = make_point(pair.far);
    cr_assert_eq(dat_of(other.get())->reserve(other.get(), ep.get()), -FI_EOPBADSTATE);
    require_state(second, FI_DAT_UNCONNECTED);
    require_state(ep, FI_DAT_RESERVED);
}

// SP-4, EP-48, EPA-5: the Consumer gives it queues, then accepts.
TRANSPORT_TEST(service_provide, request__comes_with_an_endpoint_that_accepts_it) {
    only_dat();
    Pair pair(transport);
    Fid<fid_pep> point = make_point(pair.far);
    DAT_MUST(dat_of(point.get())->provide(point.get(), pair.far.domain(), nullptr));
    DAT_MUST(fi_listen(point.get()));
    DAT_MUST(pair.active.connect(address_of(point)));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    fid_ep* ep = endpoint_of(pair.far, request);
    cr_assert_not_null(ep);
    cr_assert_eq(state_of(ep), FI_DAT_TENTATIVE_CONNECTION_PENDING);
    cr_assert_eq(fi_accept(ep, nullptr, 0), -FI_ENOEQ);
    cr_assert_eq(fi_close(&ep->fid), -FI_EBUSY);
    auto* dat = table_of<fi_dat_ops_ep>(&ep->fid, FI_DAT_EP_OPS);
    fi_dat_ep_attr attr = attr_with(FI_DAT_EP_EQ | FI_DAT_EP_TX_CQ | FI_DAT_EP_RX_CQ);
    attr.eq = pair.far.eq();
    attr.tx_cq = attr.rx_cq = pair.far.cq();
    DAT_MUST(dat->modify(ep, &attr));
    DAT_MUST(fi_enable(ep));
    Bytes in(4);
    Op& receive = new_op();
    DAT_MUST(fi_recv(ep, in.data(), in.size(), nullptr, 0, &receive));
    DAT_MUST(fi_accept(ep, nullptr, 0));
    wait_event(pair.near, FI_CONNECTED);
    cr_assert_eq(wait_event(pair.far, FI_CONNECTED).fid, &ep->fid);
    cr_assert_eq(state_of(ep), FI_DAT_CONNECTED);
    const Bytes out{5, 6, 7, 8};
    wait_op(pair.active.send_confirmed(out.data(), out.size()));
    wait_op(receive);
    cr_assert(receive.ok() && in == out);
    DAT_MUST(point.close());
    DAT_MUST(fi_close(&ep->fid));
    wait_shutdown(pair.active);
}

// EP-16, SP-6: what becomes of the endpoint where its request does not get that far. The
// domain can be closed only if none is left: the end of the test checks it.
TRANSPORT_TEST(service_provide, rejected_refused_or_unread__closes_the_endpoint) {
    only_dat();
    Pair pair(transport);
    for (int way = 0; way < 3; ++way) {
        Fid<fid_pep> point = make_point(pair.far);
        DAT_MUST(dat_of(point.get())->provide(point.get(), pair.far.domain(), nullptr));
        DAT_MUST(fi_listen(point.get()));
        Endpoint active(pair.near);
        DAT_MUST(active.connect(address_of(point)));
        if (way < 2) {
            const Event request = wait_event(pair.far, FI_CONNREQ);
            DAT_MUST(way == 0 ? reject(pair.far, request.info->handle)
                              : refuse(pair.far, request.info->handle));
            cr_assert_eq(refuse(pair.far, request.info->handle), -FI_EINVAL);
        } else {
            pair.far.asleep = true;
            cr_assert(wait_until([&] { return request_waits(pair.far); }));
            pair.far.asleep = false;
        }
        DAT_MUST(point.close());
        wait_error(pair.near, FI_ECONNREFUSED);
        require_end(active, way == 0 ? FI_DAT_END_PEER_REJECTED : FI_DAT_END_NON_PEER_REJECTED);
    }
    cr_assert_eq(fi_close(&pair.far.domain()->fid), -FI_EBUSY); // its CQ
    int left = 0;
    for (const Event& event : pair.far.events())
        left += event.type == FI_CONNREQ;
    cr_assert_eq(left, 0);
}

// SP-3.
TRANSPORT_TEST(service_request, refused__is_as_if_nobody_listened) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    cr_assert_null(endpoint_of(pair.far, request));
    DAT_MUST(refuse(pair.far, request.info->handle));
    wait_error(pair.near, FI_ECONNREFUSED);
    require_end(pair.active, FI_DAT_END_NON_PEER_REJECTED);
    cr_assert_eq(refuse(pair.far, request.info->handle), -FI_EINVAL);
    fid_ep* ep = nullptr;
    cr_assert_eq(
        dat_of(pair.far.fabric())->request_endpoint(pair.far.fabric(), request.info->handle, &ep),
        -FI_EINVAL);
}

// CR-8, U-31.
TRANSPORT_TEST(service_request, handed_off__is_announced_where_it_goes) {
    only_dat();
    Pair pair(transport);
    const Fid<fid_pep> to = make_point(pair.far);
    DAT_MUST(pair.active.connect(pair.far, Bytes{7}));
    const Event first = wait_event(pair.far, FI_CONNREQ);
    cr_assert_eq(handoff(pair.far, first.info->handle, to.get()), -FI_EINVAL); // not listening
    cr_assert_eq(handoff(pair.far, first.info->handle, nullptr), -FI_EINVAL);
    DAT_MUST(fi_listen(to.get()));
    DAT_MUST(handoff(pair.far, first.info->handle, to.get()));
    const Event second = wait_event(pair.far, FI_CONNREQ);
    cr_assert_eq(second.fid, &to->fid);
    cr_assert(second.data == (Bytes{7}));
    cr_assert_eq(handoff(pair.far, first.info->handle, to.get()), -FI_EINVAL);
    Endpoint passive(pair.far, second);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    exchange(pair.active, passive);
}

// CR-8 from one reserved endpoint to another: EP-17, SP-11.
TRANSPORT_TEST(service_request, handed_off_between_reserved__frees_one_and_takes_the_other) {
    only_dat();
    Reserved reserved(transport);
    Side& far = reserved.pair.far;
    Endpoint other(far);
    const Fid<fid_pep> to = make_point(far);
    DAT_MUST(dat_of(to.get())->reserve(to.get(), other.get()));
    DAT_MUST(fi_listen(to.get()));
    const Event first = reserved.request();
    DAT_MUST(handoff(far, first.info->handle, to.get()));
    require_state(reserved.passive, FI_DAT_UNCONNECTED);
    require_state(other, FI_DAT_PASSIVE_CONNECTION_PENDING);
    const Event second = wait_event(far, FI_CONNREQ);
    connect_in_vain(reserved.pair.near, address_of(to));
    cr_assert_eq(handoff(far, second.info->handle, to.get()), -FI_EINVAL); // served its one
    DAT_MUST(other.accept());
    wait_event(reserved.pair.near, FI_CONNECTED);
    wait_event(far, FI_CONNECTED);
    exchange(reserved.pair.active, other);
}

// CR-8: a full backlog keeps the request where it is.
TRANSPORT_TEST(service_request, handed_off_to_a_full_backlog__stays) {
    only_dat();
    Pair pair(transport);
    const Fid<fid_pep> to = make_point(pair.far, 1);
    DAT_MUST(fi_listen(to.get()));
    Endpoint second(pair.near);
    DAT_MUST(pair.active.connect(pair.far));
    const Event a = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(second.connect(pair.far));
    const Event b = wait_event(pair.far, FI_CONNREQ);
    pair.far.asleep = true;
    DAT_MUST(handoff(pair.far, a.info->handle, to.get()));
    cr_assert_eq(handoff(pair.far, b.info->handle, to.get()), -FI_EAGAIN);
    pair.far.asleep = false;
    DAT_MUST(reject(pair.far, b.info->handle));
    wait_error(pair.near, FI_ECONNREFUSED);
    require_end(second, FI_DAT_END_PEER_REJECTED);
}

// GEN-2 of dat_cr_accept: an endpoint that does not fit leaves the request to another.
TRANSPORT_TEST(service_request, let_go__can_be_taken_by_another_endpoint) {
    only_dat();
    Pair pair(transport);
    Endpoint one(pair.far);
    Endpoint two(pair.far);
    cr_assert_eq(one.dat()->take_request(one.get(), nullptr), -FI_EINVAL);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(one.dat()->take_request(one.get(), request.info->handle));
    cr_assert_eq(two.dat()->take_request(two.get(), request.info->handle), -FI_EINVAL);
    cr_assert_eq(one.accept(Bytes(509)), -FI_EINVAL);
    DAT_MUST(one.dat()->take_request(one.get(), nullptr));
    cr_assert_eq(one.accept(), -FI_EOPBADSTATE);
    pair.far.stop_listening(); // SP-6: the request is not affected
    DAT_MUST(two.dat()->take_request(two.get(), request.info->handle));
    DAT_MUST(two.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    exchange(pair.active, two);
}

// EP-11.
TRANSPORT_TEST(service_dup_connect, connected_endpoint__leads_to_the_same_listener) {
    only_dat();
    Pair pair(transport);
    Endpoint second(pair.near);
    const auto dup = [&] {
        return second.dat()->dup_connect(second.get(), pair.active.get(), "ab", 2);
    };
    cr_assert_eq(dup(), -FI_EOPBADSTATE);
    require_state(second, FI_DAT_UNCONNECTED);
    pair.connect();
    DAT_MUST(dup());
    const Event request = wait_event(pair.far, FI_CONNREQ);
    cr_assert(request.data == (Bytes{'a', 'b'}));
    cr_assert_eq(dup(), -FI_EOPBADSTATE);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    exchange(second, passive);
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair.active);
    Endpoint third(pair.near);
    cr_assert_eq(third.dat()->dup_connect(third.get(), pair.active.get(), nullptr, 0),
                 -FI_EOPBADSTATE);
}

// fi_endpoint(3): a passive endpoint as info->handle gives its address and port.
TRANSPORT_TEST(service_source_port, of_a_passive_endpoint__is_connected_from) {
    only_dat();
    Pair pair(transport);
    Fid<fid_pep> pep;
    DAT_MUST(fi_passive_ep(pair.near.fabric(), pair.near.info(), pep.out(), nullptr));
    Bytes any = with_port(pair.near.info()->src_addr, pair.near.info()->src_addrlen, 0);
    DAT_MUST(fi_setname(&pep->fid, any.data(), any.size()));
    const Bytes bound = address_of(pep);
    const Info info(fi_dupinfo(pair.near.info()));
    info->handle = &pep->fid;
    Event as_request;
    as_request.info.reset(fi_dupinfo(info.get()));
    Endpoint active(pair.near, as_request);
    cr_assert_eq(fi_listen(pep.get()), -FI_ENOEQ);
    DAT_MUST(fi_pep_bind(pep.get(), &pair.near.eq()->fid, 0));
    cr_assert_eq(fi_listen(pep.get()), -FI_EOPBADSTATE);
    fid_ep* again = nullptr;
    cr_assert_eq(fi_endpoint(pair.near.domain(), info.get(), &again, nullptr), -FI_EOPBADSTATE);
    DAT_MUST(pep.close());
    for (int round = 0; round < 2; ++round) { // RST-4: the port stays its own
        DAT_MUST(active.connect(pair.far));
        const Event request = wait_event(pair.far, FI_CONNREQ);
        cr_assert_eq(port_of(request.info->dest_addr), port_of(bound.data()));
        DAT_MUST(reject(pair.far, request.info->handle));
        wait_error(pair.near, FI_ECONNREFUSED);
        DAT_MUST(active.reset());
    }
    info->handle = &pair.far.pep()->fid; // of another fabric
    cr_assert_eq(fi_endpoint(pair.near.domain(), info.get(), &again, nullptr), -FI_EINVAL);
}

// fi_cm(3): fi_setname() with a port.
TRANSPORT_TEST(service_source_port, named__is_connected_from) {
    only_dat();
    Pair pair(transport);
    std::uint16_t port = 0;
    {
        const Fid<fid_pep> free_one = make_point(pair.near);
        Bytes any = with_port(pair.near.info()->src_addr, pair.near.info()->src_addrlen, 0);
        DAT_MUST(fi_setname(&free_one->fid, any.data(), any.size()));
        port = port_of(address_of(free_one).data());
    }
    Bytes name = with_port(pair.near.info()->src_addr, pair.near.info()->src_addrlen, port);
    DAT_MUST(fi_setname(pair.active.fid(), name.data(), name.size()));
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    cr_assert_eq(port_of(request.info->dest_addr), port);
}
