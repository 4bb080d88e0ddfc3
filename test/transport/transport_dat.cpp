// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: endpoints, memory and events as fi_ext_dat.h offers them beyond
// libfabric.
#include "dat_suite.h"

#include <cstdlib>
#include <cstring>

using namespace dat::test;

namespace {

constexpr std::uint64_t kAll = FI_DAT_EP_EQ | FI_DAT_EP_TX_CQ | FI_DAT_EP_RX_CQ |
                               FI_DAT_EP_AUTH_KEY | FI_DAT_EP_TX_SIZE | FI_DAT_EP_RX_SIZE |
                               FI_DAT_EP_READ_IN | FI_DAT_EP_READ_OUT;

int modify(const Endpoint& ep, const fi_dat_ep_attr& attr) {
    return ep.dat()->modify(ep.get(), &attr);
}

// What fi_tx_size_left() and fi_rx_size_left() say, which libfabric deprecates.
ssize_t tx_room(const Endpoint& ep) { return ep.get()->ops->tx_size_left(ep.get()); }
ssize_t rx_room(const Endpoint& ep) { return ep.get()->ops->rx_size_left(ep.get()); }

void set_zone(const Endpoint& ep, const Bytes& zone) {
    fi_dat_ep_attr attr = attr_with(FI_DAT_EP_AUTH_KEY);
    attr.auth_key = zone.data();
    attr.auth_key_size = zone.size();
    DAT_MUST(modify(ep, attr));
}

// A side whose event queue gets asynchronous events as well.
struct AsyncQueue {
    Side& side;

    explicit AsyncQueue(Side& s) : side(s) {
        DAT_MUST(fi_domain_bind(side.domain(), &side.eq()->fid, FI_DAT_ASYNC));
    }
    // It is the next event.
    void require(fid_t object, fi_dat_async what) {
        const Event event = wait_event(side, FI_DAT_ASYNC_EVENT);
        fi_eq_entry entry{};
        cr_assert_eq(event.data.size(), sizeof entry);
        std::memcpy(&entry, event.data.data(), sizeof entry);
        cr_assert(entry.fid == object && entry.context == object->context && entry.data == what);
    }
    void require_empty() {
        pump_all();
        cr_assert(side.events().empty());
    }
};

// The most requests, and as many receives, that fi_getinfo(3) offers.
std::size_t largest_queue(const Transport& transport) {
    const Side side(transport);
    const Info hints(fi_dupinfo(side.info()));
    hints->domain_attr->cq_data_size = 0; // which a device has for who gives it receives
    std::size_t offered = 1;
    for (std::size_t refused = 1 << 17; refused - offered > 1;) {
        const std::size_t size = (offered + refused) / 2;
        hints->tx_attr->size = hints->rx_attr->size = size;
        fi_info* found = nullptr;
        if (fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found) == 0) {
            offered = size;
        } else {
            refused = size;
        }
        fi_freeinfo(found);
    }
    cr_assert_gt(offered, 1);
    return offered;
}

// Endpoints with as much of both as is offered; one more is refused.
SideOptions with_largest_queues(const Transport& transport) {
    SideOptions options;
    options.before_enable = [most = largest_queue(transport)](fid_ep* ep) {
        auto* dat = table_of<fi_dat_ops_ep>(&ep->fid, FI_DAT_EP_OPS);
        fi_dat_ep_attr attr = attr_with(FI_DAT_EP_TX_SIZE | FI_DAT_EP_RX_SIZE);
        attr.tx_size = attr.rx_size = most + 1;
        cr_assert_eq(dat->modify(ep, &attr), -FI_EINVAL);
        attr.tx_size = attr.rx_size = most;
        DAT_MUST(dat->modify(ep, &attr));
    };
    return options;
}

} // namespace

// ---- modify ----------------------------------------------------------------

TRANSPORT_TEST(dat_modify, largest_sizes_that_are_offered__connect) {
    only_dat();
    auto pair = Pair::connected(transport, with_largest_queues(transport),
                                with_largest_queues(transport.other()));
    Bytes in(5);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send("large", 5));
    wait_op(receive);
    cr_assert(receive.ok() && std::memcmp(in.data(), "large", 5) == 0);
}

// EPA-5, EPA-6.
TRANSPORT_TEST(dat_modify, in_a_wrong_state__is_refused) {
    only_dat();
    Pair pair(transport);
    const fi_dat_ep_attr attr = [] {
        fi_dat_ep_attr sizes = attr_with(FI_DAT_EP_TX_SIZE);
        sizes.tx_size = 8;
        return sizes;
    }();
    DAT_MUST(modify(pair.active, attr));
    pair.connect();
    cr_assert_eq(modify(pair.active, attr), -FI_EOPBADSTATE);
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair.active);
    cr_assert_eq(modify(pair.active, attr), -FI_EOPBADSTATE);
    DAT_MUST(pair.active.reset());
    DAT_MUST(modify(pair.active, attr));
    const Bytes zone{1};
    Fid<fid_pep> pep; // EPA-5: the zone not in RESERVED
    DAT_MUST(fi_passive_ep(pair.near.fabric(), pair.near.info(), pep.out(), nullptr));
    DAT_MUST(dat_of(pep.get())->reserve(pep.get(), pair.active.get()));
    DAT_MUST(modify(pair.active, attr));
    fi_dat_ep_attr with_zone = attr_with(FI_DAT_EP_AUTH_KEY);
    with_zone.auth_key = zone.data();
    with_zone.auth_key_size = 1;
    cr_assert_eq(modify(pair.active, with_zone), -FI_EOPBADSTATE);
}

// EPA-6: all or nothing.
TRANSPORT_TEST(dat_modify, with_a_value_that_is_not_offered__changes_nothing) {
    only_dat();
    Pair pair(transport);
    const auto refused = [&](fi_dat_ep_attr attr) {
        attr.mask |= FI_DAT_EP_TX_SIZE;
        attr.tx_size = attr.tx_size ? attr.tx_size : 5;
        cr_assert_eq(modify(pair.active, attr), -FI_EINVAL);
        cr_assert_eq(tx_room(pair.active), 128);
    };
    fi_dat_ep_attr attr = attr_with(kAll << 1);
    refused(attr);
    attr = attr_with(FI_DAT_EP_TX_SIZE);
    attr.tx_size = 32769;
    refused(attr);
    refused(attr_with(FI_DAT_EP_RX_SIZE)); // 0
    attr = attr_with(FI_DAT_EP_READ_OUT);
    attr.read_out = FI_DAT_MAX_READS + 1;
    refused(attr);
    attr = attr_with(FI_DAT_EP_EQ);
    attr.eq = pair.far.eq();
    refused(attr);
    attr = attr_with(FI_DAT_EP_RX_CQ);
    attr.rx_cq = pair.far.cq();
    refused(attr);
    attr = attr_with(FI_DAT_EP_TX_CQ);
    attr.tx_cq = pair.near.cq();
    attr.tx_cq_flags = FI_TRANSMIT;
    refused(attr);
    const Bytes key(FI_DAT_MAX_AUTH_KEY + 1);
    attr = attr_with(FI_DAT_EP_AUTH_KEY);
    attr.auth_key = key.data();
    attr.auth_key_size = key.size();
    refused(attr);
    attr.auth_key = nullptr;
    attr.auth_key_size = 1;
    refused(attr);
}

// EPA-3, EPA-5: receives that are posted stay, in their order.
TRANSPORT_TEST(dat_modify, sizes__limit_posts_and_keep_receives) {
    only_dat();
    Pair pair(transport);
    std::vector<Bytes> in(5, Bytes(1));
    std::vector<Op*> receives;
    for (std::size_t i = 0; i < 3; ++i)
        receives.push_back(&pair.active.recv(in[i].data(), 1));
    fi_dat_ep_attr attr = attr_with(FI_DAT_EP_TX_SIZE | FI_DAT_EP_RX_SIZE);
    attr.tx_size = 2;
    attr.rx_size = 2;
    cr_assert_eq(modify(pair.active, attr), -FI_EINVAL);
    cr_assert_eq(tx_room(pair.active), 128);
    attr.rx_size = 5;
    DAT_MUST(modify(pair.active, attr));
    cr_assert_eq(tx_room(pair.active), 2);
    cr_assert_eq(rx_room(pair.active), 2);
    for (std::size_t i = 3; i < 5; ++i)
        receives.push_back(&pair.active.recv(in[i].data(), 1));
    cr_assert_eq(fi_recv(pair.active.get(), in[0].data(), 1, nullptr, 0, nullptr), -FI_EAGAIN);
    pair.connect();
    for (std::uint8_t i = 0; i < 5; ++i)
        wait_op(pair.passive().send(&i, 1));
    wait_ops(receives);
    require_stream_order(receives);
    for (std::uint8_t i = 0; i < 5; ++i)
        cr_assert(receives[i]->ok() && in[i][0] == i);
    const std::vector<Bytes> out(4, Bytes(1)); // more than there is room for at once
    std::vector<Op*> done;
    for (std::size_t i = 0; i < out.size(); ++i)
        done.push_back(&pair.passive().recv(in[i].data(), 1));
    for (const Bytes& each : out)
        done.push_back(&pair.active.send(each.data(), 1));
    wait_ops(done);
}

// EPA-2: without a queue completions of that direction are not reported.
TRANSPORT_TEST(dat_modify, no_completion_queue__loses_completions_only) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(modify(pair.active, attr_with(FI_DAT_EP_TX_CQ | FI_DAT_EP_RX_CQ)));
    Bytes in(8);
    Bytes out(8, 3);
    Op& receive = new_op();
    DAT_MUST(fi_recv(pair.active.get(), in.data(), in.size(), nullptr, 0, &receive));
    pair.connect();
    Op& send = new_op();
    Bytes there(8);
    Op& taken = pair.passive().recv(there.data(), there.size());
    DAT_MUST(fi_send(pair.active.get(), out.data(), out.size(), nullptr, 0, &send));
    wait_op(taken);
    wait_op(pair.passive().send_confirmed(out.data(), out.size()));
    cr_assert(there == out);
    cr_assert(wait_until([&] { return in == out; })); // nothing says when
    settle(20);
    cr_assert(!receive.done() && !send.done());
    cr_assert(pair.active.status().recv_idle && pair.active.status().request_idle);
}

// U-12, EP-73: no event queue, no connection.
TRANSPORT_TEST(dat_modify, no_event_queue__connects_only_with_one) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(modify(pair.active, attr_with(FI_DAT_EP_EQ)));
    cr_assert_eq(pair.active.connect(pair.far), -FI_ENOEQ);
    require_state(pair.active, FI_DAT_UNCONNECTED);
    fi_dat_ep_attr attr = attr_with(FI_DAT_EP_EQ);
    attr.eq = pair.near.eq();
    DAT_MUST(modify(pair.active, attr));
    pair.connect();
    exchange(pair.active, pair.passive());
}

// RDR-1: how many reads either side serves.
TRANSPORT_TEST(dat_modify, reads__are_limited_by_both_sides) {
    only_dat();
    Pair pair(transport);
    Region source(pair.far, 64, FI_REMOTE_READ);
    fi_dat_ep_attr attr = attr_with(FI_DAT_EP_READ_OUT | FI_DAT_EP_READ_IN);
    attr.read_out = 2;
    DAT_MUST(modify(pair.active, attr)); // serves none
    pair.connect();
    Bytes in(64);
    std::vector<Op*> reads;
    for (std::size_t i = 0; i < 8; ++i)
        reads.push_back(&pair.active.read(in.data() + 8 * i, 8, source.at(0)));
    wait_ops(reads);
    for (const Op* read : reads)
        cr_assert(read->ok());
    Region other(pair.near, 64, FI_REMOTE_READ);
    cr_assert_eq(fi_read(pair.passive().get(), in.data(), 8, nullptr, 0, other.at(0).address,
                         other.at(0).key, nullptr),
                 -FI_EOPNOTSUPP);
}

// ---- protection zones --------------------------------------------------------

// PZ-1: by modify(), by fi_ep_attr, by fi_domain_attr.
TRANSPORT_TEST(dat_zone, region_of_another__is_not_reached) {
    only_dat();
    const Bytes red{'r', 'e', 'd'};
    const Bytes blue{'b', 'l', 'u', 'e'};
    for (const bool allowed : {true, false}) {
        Pair pair(transport);
        Bytes memory(16);
        const Fid<fid_mr> mr = region_in(pair.far, red, memory);
        pair.connect([&](Endpoint& passive) { set_zone(passive, allowed ? red : blue); });
        const Bytes out(16, 7);
        Op& write =
            pair.active.write_confirmed(out.data(), out.size(), begin_of(pair.far, memory, mr));
        wait_op(write);
        cr_assert_eq(write.ok(), allowed);
        cr_assert_eq(write.prov_errno, allowed ? 0 : 6); // REMOTE_ACCESS
        cr_assert((memory == out) == allowed);
    }
}

TRANSPORT_TEST(dat_zone, of_an_endpoints_info__is_its_zone) {
    only_dat();
    Pair pair(transport);
    std::uint8_t key[] = {1, 2};
    Bytes memory(4);
    const Fid<fid_mr> mr = region_in(pair.far, Bytes(key, key + 2), memory);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    request.info->ep_attr->auth_key = static_cast<std::uint8_t*>(std::malloc(sizeof key));
    std::memcpy(request.info->ep_attr->auth_key, key, sizeof key);
    request.info->ep_attr->auth_key_size = FI_DAT_MAX_AUTH_KEY + 1;
    fid_ep* refused = nullptr;
    cr_assert_eq(fi_endpoint(pair.far.domain(), request.info.get(), &refused, nullptr), -FI_EINVAL);
    request.info->ep_attr->auth_key_size = sizeof key;
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    const Bytes out(4, 9);
    Op& write = pair.active.write_confirmed(out.data(), out.size(), begin_of(pair.far, memory, mr));
    wait_op(write);
    cr_assert(write.ok() && memory == out);
}

// EPA-7, U-32.
TRANSPORT_TEST(dat_zone, changed_under_a_receive__fails_it_when_a_message_comes) {
    only_dat();
    Pair pair(transport);
    Bytes old(8);
    Op& receive = pair.active.recv(old.data(), old.size());
    set_zone(pair.active, {5});
    pair.connect();
    const Bytes out(8, 1);
    pair.passive().send(out.data(), out.size());
    wait_op(receive);
    cr_assert(receive.err == FI_EACCES && receive.prov_errno == 4); // LOCAL_PROTECTION
    wait_shutdown(pair.active);
    require_end(pair.active, FI_DAT_END_BROKEN);
    cr_assert(old == Bytes(8));
}

TRANSPORT_TEST(dat_zone, key_that_is_too_long__is_refused_everywhere) {
    only_dat();
    Pair pair(transport);
    const Bytes key(FI_DAT_MAX_AUTH_KEY + 1);
    std::uint8_t byte = 0;
    const iovec range{&byte, 1};
    fi_mr_attr attr{};
    attr.mr_iov = &range;
    attr.iov_count = 1;
    attr.auth_key = const_cast<std::uint8_t*>(key.data());
    attr.auth_key_size = key.size();
    fid_mr* mr = nullptr;
    cr_assert_eq(fi_mr_regattr(pair.near.domain(), &attr, 0, &mr), -FI_EINVAL);
    cr_assert_eq(dat_of(pair.near.domain())
                     ->window(pair.near.domain(), key.data(), key.size(), &mr, nullptr),
                 -FI_EINVAL);
}

// F-LMR-1 of 2.0: a region that begins at 0 in a domain of virtual addresses.
TRANSPORT_TEST(dat_region, zero_based__is_named_by_offset) {
    only_dat();
    SideOptions options;
    options.mr_mode = FI_MR_VIRT_ADDR;
    const auto pair = Pair::connected(transport, {}, options);
    Bytes memory(16);
    const Fid<fid_mr> mr = region_in(pair->far, {}, memory, FI_DAT_ZERO_BASED);
    const Bytes out{1, 2, 3, 4};
    Op& write = pair->active.write_confirmed(out.data(), out.size(), {4, fi_mr_key(mr.get())});
    wait_op(write);
    cr_assert(write.ok() && std::memcmp(memory.data() + 4, out.data(), 4) == 0);
}

TRANSPORT_TEST(dat_region, zero_based__is_refused_by_devices_alone) {
    only_dat();
    Side side(transport);
    std::uint8_t byte = 0;
    const iovec range{&byte, 1};
    fi_mr_attr attr{};
    attr.mr_iov = &range;
    attr.iov_count = 1;
    attr.access = FI_REMOTE_READ;
    Fid<fid_mr> mr;
    cr_assert_eq(fi_mr_regattr(side.domain(), &attr, FI_DAT_ZERO_BASED, mr.out()),
                 side.device() ? -FI_EINVAL : 0);
}

// ---- flags of completions -----------------------------------------------------

// DTO-23.
TRANSPORT_TEST(dat_flags, unsignalled__is_with_the_completion) {
    only_dat();
    const auto pair = Pair::connected(transport);
    Bytes in(1);
    Bytes out(1, 4);
    Op& receive = new_op();
    Op& send = new_op();
    iovec range{in.data(), 1};
    fi_msg message{};
    message.msg_iov = &range;
    message.iov_count = 1;
    message.context = &receive;
    DAT_MUST(fi_recvmsg(pair->passive().get(), &message, FI_DAT_UNSIGNALLED));
    range.iov_base = out.data();
    message.context = &send;
    DAT_MUST(fi_sendmsg(pair->active.get(), &message, FI_DAT_UNSIGNALLED));
    wait_op(receive);
    wait_op(send);
    cr_assert_eq(receive.flags, FI_RECV | FI_MSG | FI_DAT_UNSIGNALLED);
    cr_assert_eq(send.flags, FI_SEND | FI_MSG | FI_DAT_UNSIGNALLED);
}

// ---- receive counts, watermarks, asynchronous events ----------------------------

// SRQ-12.
TRANSPORT_TEST(dat_receives, query__counts_what_has_not_completed) {
    only_dat();
    const auto pair = Pair::connected(transport);
    const auto count = [&] {
        std::uint32_t allocated = 99;
        std::uint32_t span = 99;
        DAT_MUST(pair->passive().dat()->recv_query(pair->passive().get(), &allocated, &span));
        cr_assert_eq(allocated, span);
        return allocated;
    };
    cr_assert_eq(count(), 0);
    Bytes in(2);
    Op& first = pair->passive().recv(in.data(), 1);
    pair->passive().recv(in.data() + 1, 1);
    cr_assert_eq(count(), 2);
    pair->active.send(in.data(), 1);
    wait_op(first);
    cr_assert_eq(count(), 1);
    DAT_MUST(pair->passive().dat()->recv_query(pair->passive().get(), nullptr, nullptr));
}

// SRQ-11, EP-63: once for each setting, also at once.
TRANSPORT_TEST(dat_receives, soft_watermark__is_reported_once) {
    only_dat();
    Pair pair(transport);
    AsyncQueue async(pair.near);
    fid_ep* ep = pair.active.get();
    DAT_MUST(pair.active.dat()->set_watermark(ep, 1, FI_DAT_WATERMARK_INFINITE));
    Bytes in(3);
    pair.active.recv(in.data(), 1);
    async.require_empty();
    pair.active.recv(in.data(), 1);
    async.require(pair.active.fid(), FI_DAT_ASYNC_RECV_WATERMARK);
    pair.active.recv(in.data(), 1);
    async.require_empty();
    DAT_MUST(pair.active.dat()->set_watermark(ep, 2, FI_DAT_WATERMARK_INFINITE));
    async.require(pair.active.fid(), FI_DAT_ASYNC_RECV_WATERMARK);
    pair.connect();
    DAT_MUST(pair.active.dat()->set_watermark(ep, 0, FI_DAT_WATERMARK_INFINITE));
    DAT_MUST(pair.active.close()); // takes its events with it
    async.require_empty();
}

// SRQ-11, EP-56.
TRANSPORT_TEST(dat_receives, hard_watermark__breaks_the_connection) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.dat()->set_watermark(pair.active.get(), FI_DAT_WATERMARK_INFINITE, 1));
    pair.connect();
    Bytes in(2);
    Op& first = pair.active.recv(in.data(), 1);
    require_state(pair.active, FI_DAT_CONNECTED);
    Op& second = pair.active.recv(in.data(), 1);
    wait_shutdown(pair.active);
    require_end(pair.active, FI_DAT_END_BROKEN);
    cr_assert_eq(pair.active.status().reason, FI_DAT_REASON_WATERMARK);
    cr_assert(first.flushed() && second.flushed());
    wait_shutdown(pair.passive());
    // Passed before the connection: broken as soon as there is one.
    DAT_MUST(pair.active.reset());
    pair.active.recv(in.data(), 1);
    pair.active.recv(in.data(), 1);
    require_state(pair.active, FI_DAT_UNCONNECTED);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_shutdown(pair.active);
    cr_assert_eq(pair.active.status().reason, FI_DAT_REASON_WATERMARK);
}

// A device's queue may hold fewer, and complete fewer; the rest waits beside it.
TRANSPORT_TEST(dat_receives, largest_shared_context__connects) {
    only_dat();
    fid_ep* shared = nullptr;
    SideOptions options = with_largest_queues(transport.other());
    options.before_enable = [&shared, resize = options.before_enable](fid_ep* ep) {
        resize(ep);
        DAT_MUST(fi_ep_bind(ep, &shared->fid, 0));
    };
    Side near(transport);
    Side far(transport.other(), options);
    far.listen();
    Fid<fid_ep> srx;
    fi_rx_attr attr{};
    attr.size = 1 << 20;
    DAT_MUST(fi_srx_context(far.domain(), &attr, srx.out(), nullptr));
    shared = srx.get();
    Bytes in(5);
    Op& receive = new_op();
    DAT_MUST(fi_recv(shared, in.data(), in.size(), nullptr, 0, &receive));
    Endpoint active(near);
    const Endpoint passive = establish(active, far);
    wait_op(active.send("large", 5));
    wait_op(receive);
    cr_assert(receive.ok() && std::memcmp(in.data(), "large", 5) == 0);
}

// SRQ-6, SRQ-8, U-37, U-64: a shared receive context.
TRANSPORT_TEST(dat_receives, shared__count_low_watermark_and_last_event) {
    only_dat();
    Pair pair(transport);
    AsyncQueue async(pair.far);
    Fid<fid_ep> srx;
    fi_rx_attr attr{};
    attr.size = 4;
    DAT_MUST(fi_srx_context(pair.far.domain(), &attr, srx.out(), nullptr));
    auto* dat = table_of<fi_dat_ops_srx>(&srx->fid, FI_DAT_SRX_OPS);
    const auto available = [&] {
        std::uint32_t count = 99;
        DAT_MUST(dat->available(srx.get(), &count));
        return count;
    };
    Bytes in(3);
    std::vector<Op*> receives;
    for (std::size_t i = 0; i < 3; ++i) {
        receives.push_back(&new_op());
        DAT_MUST(fi_recv(srx.get(), &in[i], 1, nullptr, 0, receives.back()));
    }
    cr_assert_eq(available(), 3);
    cr_assert_eq(dat->set_low_watermark(srx.get(), 5), -FI_EINVAL);
    DAT_MUST(dat->set_low_watermark(srx.get(), 3));
    async.require_empty();

    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    request.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    Fid<fid_ep> ep;
    int mark = 0;
    DAT_MUST(fi_endpoint(pair.far.domain(), request.info.get(), ep.out(), &mark));
    DAT_MUST(fi_ep_bind(ep.get(), &pair.far.cq()->fid, FI_TRANSMIT | FI_RECV));
    DAT_MUST(fi_ep_bind(ep.get(), &pair.far.eq()->fid, 0));
    DAT_MUST(fi_ep_bind(ep.get(), &srx->fid, 0));
    DAT_MUST(fi_accept(ep.get(), nullptr, 0));
    wait_event(pair.far, FI_CONNECTED);
    wait_event(pair.near, FI_CONNECTED);

    const std::uint8_t out = 6;
    for (std::size_t i = 0; i < 2; ++i) {
        pair.active.send(&out, 1);
        wait_op(*receives[i]);
        cr_assert_eq(receives[i]->buf, &mark); // whose endpoint it was
    }
    cr_assert_eq(available(), 1);
    async.require(&srx->fid, FI_DAT_ASYNC_LOW_WATERMARK);
    async.require_empty();
    DAT_MUST(dat->set_low_watermark(srx.get(), 2));
    async.require(&srx->fid, FI_DAT_ASYNC_LOW_WATERMARK);
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    async.require(&ep->fid, FI_DAT_ASYNC_EP_BROKEN);
    cr_assert_eq(wait_event(pair.far, FI_SHUTDOWN).fid, &ep->fid);
    async.require_empty();
    cr_assert_eq(available(), 1);
}

// fi_domain(3): the event queue of endpoints that have none of their own.
TRANSPORT_TEST(dat_async, queue_of_the_domain__serves_its_endpoints) {
    only_dat();
    Pair pair(transport);
    fid_eq* eq = pair.near.eq();
    cr_assert_eq(fi_domain_bind(pair.near.domain(), &pair.far.eq()->fid, 0), -FI_EINVAL);
    cr_assert_eq(fi_domain_bind(pair.near.domain(), &eq->fid, FI_REG_MR), -FI_EINVAL);
    DAT_MUST(fi_domain_bind(pair.near.domain(), &eq->fid, 0));
    cr_assert_eq(fi_domain_bind(pair.near.domain(), &eq->fid, 0), -FI_EINVAL);
    Fid<fid_ep> ep;
    DAT_MUST(fi_endpoint(pair.near.domain(), pair.near.info(), ep.out(), nullptr));
    DAT_MUST(fi_ep_bind(ep.get(), &pair.near.cq()->fid, FI_TRANSMIT | FI_RECV));
    auto* dat = table_of<fi_dat_ops_ep>(&ep->fid, FI_DAT_EP_OPS);
    DAT_MUST(dat->set_watermark(ep.get(), 0, FI_DAT_WATERMARK_INFINITE));
    DAT_MUST(fi_enable(ep.get()));
    std::uint8_t in = 0;
    DAT_MUST(fi_recv(ep.get(), &in, 1, nullptr, 0, &new_op()));
    DAT_MUST(fi_connect(ep.get(), pair.far.address().data(), nullptr, 0));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, nullptr, 0));
    // The next event, since those that are asynchronous were not asked for.
    cr_assert_eq(wait_error(pair.near, FI_ECONNREFUSED).fid, &ep->fid);
}
