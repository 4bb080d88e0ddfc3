// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: memory windows, as fi_ext_dat.h offers them.
#include "dat_suite.h"

#include <cstring>

using namespace dat::test;

namespace {

Fid<fid_mr> make_window(Side& side, const Bytes& zone = {}) {
    Fid<fid_mr> window;
    DAT_MUST(dat_of(side.domain())
                 ->window(side.domain(), zone.data(), zone.size(), window.out(), nullptr));
    return window;
}

fi_dat_bind binding(const Fid<fid_mr>& window, fid_mr* mr, void* addr, std::size_t len, Op& op) {
    fi_dat_bind bind{};
    bind.size = sizeof bind;
    bind.window = window.get();
    bind.mr = mr;
    bind.addr = addr;
    bind.len = len;
    bind.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    bind.context = &op;
    return bind;
}

// Binds and waits for it; the new key.
std::uint64_t bind_now(Endpoint& ep, const fi_dat_bind& bind) {
    std::uint64_t key = 0;
    DAT_MUST(ep.dat()->bind_window(ep.get(), &bind, &key));
    Op& op = *static_cast<Op*>(bind.context);
    wait_op(op);
    cr_assert(op.ok());
    cr_assert_eq(op.flags, FI_DAT_BIND);
    cr_assert_eq(fi_mr_key(bind.window), key);
    return key;
}

// A connection whose passive side has memory that is registered, but whose key the
// active side does not know.
struct Windowed {
    std::unique_ptr<Pair> pair;
    Region region;
    Fid<fid_mr> window;

    explicit Windowed(const Transport& transport, std::uint64_t access = FI_REMOTE_READ | FI_RECV)
        : pair(Pair::connected(transport)), region(pair->far, 4096, access),
          window(make_window(pair->far)) {}
    fi_dat_bind bind(std::size_t offset, std::size_t len) {
        return binding(window, region.mr(), region.data() + offset, len, new_op());
    }
    // Byte `at` of a window that begins at `offset`: by its address, or from the window's begin.
    bool writes(std::uint64_t key, std::size_t offset, std::size_t at, std::uint8_t value) {
        const bool by_address = region.at(0).address != 0;
        const std::uint64_t address =
            by_address ? region.at(static_cast<std::int64_t>(offset + at)).address : at;
        Op& write = pair->active.write_confirmed(&value, 1, {address, key});
        wait_op(write);
        return write.ok();
    }
};

} // namespace

// RMR-1, RMR-2, RMR-5, RMR-10.
TRANSPORT_TEST(dat_window, bound__is_reached_by_its_key_alone) {
    only_dat();
    Windowed w(transport);
    cr_assert_eq(fi_mr_key(w.window.get()), FI_KEY_NOTAVAIL);
    const std::uint64_t first = bind_now(w.pair->passive(), w.bind(100, 50));
    cr_assert(w.writes(first, 100, 0, 1) && w.writes(first, 100, 49, 2));
    const std::uint64_t second = bind_now(w.pair->passive(), w.bind(200, 50));
    cr_assert_neq(first, second);
    cr_assert(w.writes(second, 200, 0, 3));
    cr_assert(w.region.data()[100] == 1 && w.region.data()[149] == 2 && w.region.data()[200] == 3);
    cr_assert_not(w.writes(first, 100, 0, 9)); // breaks the connection
    cr_assert_eq(w.region.data()[100], 1);
    wait_shutdown(w.pair->active);
}

// Memory that is registered for its owner alone has no key; its windows have.
TRANSPORT_TEST(dat_window, of_memory_for_local_use__is_reached_and_holds_its_region) {
    only_dat();
    Windowed w(transport, FI_SEND | FI_RECV);
    if (!transport.device)
        cr_assert_eq(fi_mr_key(w.region.mr()), FI_KEY_NOTAVAIL);
    const std::uint64_t first = bind_now(w.pair->passive(), w.bind(100, 50));
    cr_assert(w.writes(first, 100, 0, 1));
    const std::uint64_t second = bind_now(w.pair->passive(), w.bind(200, 50));
    cr_assert(w.writes(second, 200, 0, 3));
    cr_assert(w.region.data()[100] == 1 && w.region.data()[200] == 3);
    cr_assert_eq(fi_close(&w.region.mr()->fid), -FI_EBUSY);
    DAT_MUST(w.window.close());
    w.region.close();
    cr_assert_not(w.writes(second, 200, 0, 9));
    cr_assert_eq(w.region.data()[200], 3);
}

TRANSPORT_TEST(dat_window, beyond_its_end__is_not_reached) {
    only_dat();
    Windowed w(transport);
    const std::uint64_t key = bind_now(w.pair->passive(), w.bind(100, 50));
    cr_assert_not(w.writes(key, 100, 50, 9));
    cr_assert_eq(w.region.data()[150], 0);
}

// RMR-10, LMR-7: a freed window is dead, and only then its region can be closed.
TRANSPORT_TEST(dat_window, closed__lets_go_of_its_region) {
    only_dat();
    Windowed w(transport);
    const std::uint64_t key = bind_now(w.pair->passive(), w.bind(0, 50));
    cr_assert(w.writes(key, 0, 0, 1));
    cr_assert_eq(fi_close(&w.region.mr()->fid), -FI_EBUSY);
    cr_assert(w.writes(key, 0, 0, 2));
    DAT_MUST(w.window.close());
    w.region.close();
    cr_assert_not(w.writes(key, 0, 0, 9));
    cr_assert_eq(w.region.data()[0], 2);
}

// RMR-7.
TRANSPORT_TEST(dat_window, bound_to_nothing__is_unbound) {
    only_dat();
    Windowed w(transport);
    const std::uint64_t key = bind_now(w.pair->passive(), w.bind(0, 50));
    cr_assert_eq(bind_now(w.pair->passive(), w.bind(0, 0)), FI_KEY_NOTAVAIL);
    w.region.close();
    cr_assert_not(w.writes(key, 0, 0, 9));
}

// RMR-4: the key may go out in a message behind the bind, without waiting for it.
TRANSPORT_TEST(dat_window, bind_then_send__the_receiver_can_use_the_key) {
    only_dat();
    Windowed w(transport);
    for (std::uint8_t round = 1; round < 20; ++round) {
        std::uint64_t key = 0;
        Bytes in(sizeof key);
        Op& receive = w.pair->active.recv(in.data(), in.size());
        fi_dat_bind bind = w.bind(round, 1);
        bind.flags = FI_MORE;
        DAT_MUST(w.pair->passive().dat()->bind_window(w.pair->passive().get(), &bind, &key));
        Op& send = w.pair->passive().send(&key, sizeof key);
        wait_op(receive);
        std::memcpy(&key, in.data(), sizeof key);
        cr_assert(w.writes(key, round, 0, round));
        cr_assert_eq(w.region.data()[round], round);
        wait_op(send);
        const Op& bound = *static_cast<Op*>(bind.context);
        cr_assert(bound.ok() && bound.order < send.order);
    }
}

// RMR-8, RMR-9: nothing is posted.
TRANSPORT_TEST(dat_window, bind_that_does_not_fit__is_refused) {
    only_dat();
    Windowed w(transport);
    Endpoint& ep = w.pair->passive();
    const auto refused = [&](const fi_dat_bind& bind, int rc) {
        std::uint64_t key = 5;
        cr_assert_eq(ep.dat()->bind_window(ep.get(), &bind, &key), rc);
        cr_assert_eq(key, 5);
        cr_assert(ep.status().request_idle);
        cr_assert_eq(fi_mr_key(w.window.get()), FI_KEY_NOTAVAIL);
    };
    refused(w.bind(4000, 97), -FI_EINVAL);
    fi_dat_bind bind = w.bind(0, 10);
    bind.addr = w.region.data() - 1;
    refused(bind, -FI_EINVAL);
    bind = w.bind(0, 10);
    bind.access |= FI_SEND;
    refused(bind, -FI_EINVAL);
    bind = w.bind(0, 10);
    bind.flags = FI_INJECT;
    refused(bind, -FI_EINVAL);
    bind = w.bind(0, 10);
    bind.mr = w.window.get();
    refused(bind, -FI_EINVAL);
    bind.mr = nullptr;
    refused(bind, -FI_EINVAL);
    bind = w.bind(0, 10);
    bind.window = w.region.mr();
    refused(bind, -FI_EINVAL);
    const Fid<fid_mr> elsewhere = make_window(w.pair->near);
    bind.window = elsewhere.get();
    refused(bind, -FI_EINVAL);
    const Fid<fid_mr> zoned = make_window(w.pair->far, {1});
    bind.window = zoned.get();
    refused(bind, -FI_EACCES);
    Bytes memory(8);
    const Fid<fid_mr> mr = region_in(w.pair->far, {1}, memory);
    refused(binding(w.window, mr.get(), memory.data(), 8, new_op()), -FI_EACCES);
}

// RMR-3, EP-24, RMR-6.
TRANSPORT_TEST(dat_window, bind_in_disconnected__is_flushed_and_binds_nothing) {
    only_dat();
    Windowed w(transport);
    Endpoint& ep = w.pair->passive();
    Endpoint unconnected(w.pair->far);
    std::uint64_t key = 0;
    fi_dat_bind bind = w.bind(0, 10);
    cr_assert_eq(unconnected.dat()->bind_window(unconnected.get(), &bind, &key), -FI_EOPBADSTATE);
    DAT_MUST(ep.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(ep);
    DAT_MUST(ep.dat()->bind_window(ep.get(), &bind, &key));
    wait_op(*static_cast<Op*>(bind.context));
    cr_assert(static_cast<Op*>(bind.context)->flushed());
    cr_assert_eq(fi_mr_key(w.window.get()), FI_KEY_NOTAVAIL);
    w.region.close(); // nothing holds it
}

// DTO-24: a fenced bind waits for the reads before it.
TRANSPORT_TEST(dat_window, fenced_bind__completes_behind_a_read) {
    only_dat();
    Windowed w(transport);
    Region source(w.pair->near, 1 << 20, FI_REMOTE_READ);
    Bytes in(source.size());
    Op& read = w.pair->passive().read(in.data(), in.size(), source.at(0));
    fi_dat_bind bind = w.bind(0, 10);
    bind.flags = FI_FENCE;
    std::uint64_t key = 0;
    DAT_MUST(w.pair->passive().dat()->bind_window(w.pair->passive().get(), &bind, &key));
    // Under automatic progress the read may have ended by now, and the bind behind it.
    if (transport.progress == FI_PROGRESS_MANUAL)
        cr_assert_eq(fi_mr_key(w.window.get()), FI_KEY_NOTAVAIL);
    wait_op(*static_cast<Op*>(bind.context));
    cr_assert(read.ok());
    cr_assert_eq(fi_mr_key(w.window.get()), key);
}

namespace {

// The peer ends the window by a message. True: that message was taken.
bool invalidated(Windowed& w, const Transport& transport, std::uint64_t key) {
    Bytes in(1);
    Op& receive = w.pair->passive().recv(in.data(), 1);
    Bytes out(1, 4);
    const iovec range{out.data(), 1};
    fi_msg message{};
    message.msg_iov = &range;
    message.iov_count = 1;
    message.data = key;
    message.context = &new_op();
    DAT_MUST(fi_sendmsg(w.pair->active.get(), &message, FI_DAT_INVALIDATE | FI_DAT_SOLICITED));
    wait_op(receive);
    if (receive.ok()) {
        // A device does not say that a message was solicited.
        const std::uint64_t flags = FI_DAT_INVALIDATE | (transport.device ? 0 : FI_DAT_SOLICITED);
        cr_assert_eq(receive.flags & (FI_DAT_INVALIDATE | FI_DAT_SOLICITED), flags);
        cr_assert_eq(receive.data, key);
    }
    return receive.ok();
}

} // namespace

// Send with Invalidate ends a window that allows it.
TRANSPORT_TEST(dat_window, invalidated_by_the_peer__is_unbound) {
    only_dat();
    Windowed w(transport);
    fi_dat_bind bind = w.bind(0, 10);
    bind.access |= FI_DAT_INVALIDATE;
    cr_assert(invalidated(w, transport, bind_now(w.pair->passive(), bind)));
    cr_assert_eq(fi_mr_key(w.window.get()), FI_KEY_NOTAVAIL);
    w.region.close();
}

TRANSPORT_TEST(dat_window, not_to_be_invalidated__breaks_the_connection) {
    only_dat();
    Windowed w(transport);
    const std::uint64_t key = bind_now(w.pair->passive(), w.bind(0, 10));
    cr_assert_not(invalidated(w, transport, key));
    cr_assert_eq(fi_mr_key(w.window.get()), key);
    wait_shutdown(w.pair->passive());
}

// On a device a window ends with the connection by which it was bound; then it may be
// bound by another.
TRANSPORT_TEST(dat_window, of_an_ended_connection__can_be_bound_again) {
    only_dat();
    Windowed w(transport);
    const std::uint64_t before = bind_now(w.pair->passive(), w.bind(100, 50));
    DAT_MUST(w.pair->active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(w.pair->active);
    wait_shutdown(w.pair->passive());
    cr_assert_eq(fi_mr_key(w.window.get()), transport.device ? FI_KEY_NOTAVAIL : before);
    DAT_MUST(w.pair->active.reset());
    Endpoint again = establish(w.pair->active, w.pair->far);
    const std::uint64_t key = bind_now(again, w.bind(200, 50));
    cr_assert_neq(key, before);
    cr_assert(w.writes(key, 200, 0, 5));
    cr_assert_eq(w.region.data()[200], 5);
    cr_assert_not(w.writes(before, 100, 0, 9));
    cr_assert_eq(w.region.data()[100], 0);
}
