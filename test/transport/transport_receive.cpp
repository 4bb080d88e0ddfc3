// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: receives beyond fi_recv(): shared contexts, buffers for several
// messages, receives that are taken back.
#include "suite.h"

#include <cstring>

using namespace dat::test;

namespace {

// A side whose endpoints draw from one shared context.
struct SharedSide {
    explicit SharedSide(const Transport& transport) : side(transport, options(*this)) {
        DAT_MUST(fi_srx_context(side.domain(), side.info()->rx_attr, srx.out(), nullptr));
        side.listen();
    }
    static SideOptions options(SharedSide& self) {
        SideOptions options;
        options.before_enable = [&self](fid_ep* ep) {
            DAT_MUST(fi_ep_bind(ep, &self.srx->fid, 0));
        };
        return options;
    }
    Op& recv(Bytes& into) {
        Op& op = new_op();
        DAT_MUST(fi_recv(srx.get(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, &op));
        return op;
    }
    Side side;
    Fid<fid_ep> srx;
};

} // namespace

// fi_srx_context(3): a message of any endpoint takes the oldest receive.
TRANSPORT_TEST(shared_receive, messages_of_two_connections__take_the_oldest_each) {
    only_dat();
    SharedSide shared(transport);
    Side other(transport);
    Endpoint first(other);
    Endpoint second(other);
    Endpoint first_here = establish(first, shared.side);
    Endpoint second_here = establish(second, shared.side);
    std::vector<Bytes> in(4, Bytes(10));
    std::vector<Op*> receives;
    for (Bytes& buffer : in)
        receives.push_back(&shared.recv(buffer));
    for (std::size_t i = 0; i < in.size(); ++i) {
        Endpoint& from = i % 2 == 0 ? first : second;
        const auto byte = static_cast<std::uint8_t>(i + 1);
        wait_op(from.send_confirmed(&byte, 1));
    }
    wait_ops(receives);
    for (std::size_t i = 0; i < in.size(); ++i) {
        cr_assert(receives[i]->ok() && receives[i]->len == 1);
        cr_assert_eq(in[i][0], i + 1);
    }
}

// U-9: messages that came before the receives take them, from all connections.
TRANSPORT_TEST(shared_receive, posted_late__serve_all_who_wait) {
    only_dat();
    SharedSide shared(transport);
    Side other(transport);
    Endpoint first(other);
    Endpoint second(other);
    Endpoint first_here = establish(first, shared.side);
    Endpoint second_here = establish(second, shared.side);
    constexpr std::size_t kEach = 3;
    std::vector<Op*> sends;
    for (std::size_t i = 0; i < kEach; ++i) {
        sends.push_back(&first.send_confirmed("a", 1));
        sends.push_back(&second.send_confirmed("b", 1));
    }
    settle(20);
    for (const Op* send : sends)
        cr_assert(!send->done(), "no receive was there");
    std::vector<Bytes> in(2 * kEach, Bytes(4));
    std::vector<Op*> receives;
    for (Bytes& buffer : in)
        receives.push_back(&shared.recv(buffer));
    wait_ops(receives);
    wait_ops(sends);
    std::size_t from_first = 0;
    for (const Bytes& buffer : in)
        from_first += buffer[0] == 'a' ? 1 : 0;
    cr_assert_eq(from_first, kEach);
}

// The end of one connection takes nothing away that no message has taken.
TRANSPORT_TEST(shared_receive, end_of_a_connection__leaves_the_rest_for_others) {
    only_dat();
    SharedSide shared(transport);
    Side other(transport);
    Endpoint first(other);
    Endpoint second(other);
    Endpoint first_here = establish(first, shared.side);
    Endpoint second_here = establish(second, shared.side);
    Bytes in(10);
    Op& receive = shared.recv(in);
    DAT_MUST(first.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(first);
    wait_shutdown(first_here);
    cr_assert(!receive.done());
    wait_op(second.send_confirmed("still", 5));
    wait_op(receive);
    cr_assert(receive.ok() && std::memcmp(in.data(), "still", 5) == 0);
}

// What no message has taken stays, in its order, where no connection is left.
TRANSPORT_TEST(shared_receive, end_of_the_last_connection__leaves_the_rest_in_order) {
    only_dat();
    SharedSide shared(transport);
    Side other(transport);
    std::vector<Bytes> in(4, Bytes(10));
    std::vector<Op*> receives;
    for (Bytes& buffer : in)
        receives.push_back(&shared.recv(buffer));
    const ssize_t size = static_cast<ssize_t>(shared.side.info()->rx_attr->size);
    for (std::size_t i = 0; i < 2; ++i) {
        Endpoint there(other);
        Endpoint here = establish(there, shared.side);
        const auto byte = static_cast<std::uint8_t>(i + 1);
        wait_op(there.send_confirmed(&byte, 1));
        wait_op(*receives[i]);
        cr_assert(receives[i]->ok() && in[i][0] == byte);
        DAT_MUST(there.disconnect(FI_DAT_ABRUPT));
        wait_shutdown(there);
        wait_shutdown(here);
        cr_assert_eq(shared.srx->ops->rx_size_left(shared.srx.get()),
                     size - static_cast<ssize_t>(in.size() - i - 1));
    }
    DAT_MUST(static_cast<int>(fi_cancel(&shared.srx->fid, receives[2])));
    Endpoint there(other);
    Endpoint here = establish(there, shared.side);
    wait_op(there.send_confirmed("last", 5));
    wait_op(*receives[3]);
    cr_assert(receives[3]->ok() && std::memcmp(in[3].data(), "last", 5) == 0);
    cr_assert(!receives[2]->done());
    cr_assert_eq(shared.srx->ops->rx_size_left(shared.srx.get()), size);
}

// FI_RM_ENABLED, U-33, fi_cancel(3), OBJ rules.
TRANSPORT_TEST(shared_receive, limits_and_wrong_calls__are_answered) {
    only_dat();
    SharedSide shared(transport);
    Endpoint ep(shared.side);
    Bytes in(1);
    cr_assert_eq(fi_recv(ep.get(), in.data(), 1, nullptr, 0, nullptr), -FI_EOPBADSTATE);
    cr_assert_eq(fi_close(&shared.srx->fid), -FI_EBUSY);
    const ssize_t room = shared.srx->ops->rx_size_left(shared.srx.get());
    cr_assert_eq(room, static_cast<ssize_t>(shared.side.info()->rx_attr->size));
    std::vector<Op*> posted;
    for (ssize_t i = 0; i < room; ++i)
        posted.push_back(&shared.recv(in));
    Op& one_more = new_op();
    cr_assert_eq(fi_recv(shared.srx.get(), in.data(), 1, nullptr, 0, &one_more), -FI_EAGAIN);
    DAT_MUST(static_cast<int>(fi_cancel(&shared.srx->fid, posted.front())));
    cr_assert_eq(fi_cancel(&shared.srx->fid, posted.front()), -FI_ENOENT);
    cr_assert_eq(shared.srx->ops->rx_size_left(shared.srx.get()), 1);
    fi_rx_attr attr = *shared.side.info()->rx_attr;
    attr.size = std::size_t{1} << 40;
    fid_ep* none = nullptr;
    cr_assert_eq(fi_srx_context(shared.side.domain(), &attr, &none, nullptr), -FI_EINVAL);
    const iovec iov{in.data(), 1};
    const fi_msg msg{&iov, nullptr, 1, 0, nullptr, 0};
    cr_assert_eq(fi_recvmsg(shared.srx.get(), &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
}

namespace {

// A connection whose passive side has posted one buffer for several messages, and
// what was reported of it.
struct Multi {
    explicit Multi(const Transport& transport, std::size_t size, std::size_t least)
        : pair(Pair::connected(transport)), buffer(size) {
        DAT_MUST(fi_setopt(pair->passive().fid(), FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                           sizeof least));
        pair->far.intercept = [this](void* context, const Op& op) {
            if (context == this)
                seen.push_back(op);
            return context == this;
        };
        const iovec iov{buffer.data(), buffer.size()};
        const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, this, 0};
        DAT_MUST(static_cast<int>(
            fi_recvmsg(pair->passive().get(), &msg, FI_MULTI_RECV | FI_COMPLETION)));
    }
    ~Multi() {
        pair->passive().close(); // what is reported then comes here too
        pair->far.intercept = nullptr;
    }
    std::unique_ptr<Pair> pair;
    Bytes buffer;
    std::vector<Op> seen;
};

} // namespace

// FI_MULTI_RECV: one behind the other; released when less than the minimum is left.
TRANSPORT_TEST(multi_receive, messages__lie_one_behind_the_other) {
    only_dat();
    Multi multi(transport, 100, 30);
    const Bytes out = pattern(25);
    for (int i = 0; i < 3; ++i)
        wait_op(multi.pair->active.send_confirmed(out.data(), out.size()));
    wait_until([&] { return multi.seen.size() == 3; });
    cr_assert_eq(multi.seen.size(), 3);
    for (std::size_t i = 0; i < 3; ++i) {
        const Op& op = multi.seen[i];
        cr_assert(op.err == 0 && op.len == 25);
        cr_assert_eq(op.buf, multi.buffer.data() + 25 * i);
        cr_assert(std::memcmp(op.buf, out.data(), 25) == 0);
        cr_assert_eq((op.flags & FI_MULTI_RECV) != 0, i == 2, "25 of 100 are left");
    }
    // It is used up: the next message takes the next receive.
    Bytes in(10);
    Op& next = multi.pair->passive().recv(in.data(), in.size());
    wait_op(multi.pair->active.send_confirmed("next", 4));
    wait_op(next);
    cr_assert(next.ok() && next.len == 4 && multi.seen.size() == 3);
}

// DISC-3: what is left of it is given back, flushed, once.
TRANSPORT_TEST(multi_receive, end_of_the_connection__gives_it_back) {
    only_dat();
    Multi multi(transport, 100, 10);
    wait_op(multi.pair->active.send_confirmed("x", 1));
    wait_until([&] { return multi.seen.size() == 1; });
    DAT_MUST(multi.pair->passive().disconnect(FI_DAT_ABRUPT));
    wait_shutdown(multi.pair->passive());
    cr_assert_eq(multi.seen.size(), 2);
    cr_assert_eq(multi.seen[1].err, FI_ECANCELED);
    cr_assert(multi.seen[1].flags & FI_MULTI_RECV);
}

TRANSPORT_TEST(multi_receive, in_several_segments__is_refused) {
    only_dat();
    Pair pair(transport);
    Bytes in(10);
    const iovec iov[2] = {{in.data(), 5}, {in.data() + 5, 5}};
    const fi_msg msg{iov, nullptr, 2, FI_ADDR_UNSPEC, nullptr, 0};
    cr_assert_eq(fi_recvmsg(pair.active.get(), &msg, FI_MULTI_RECV), -FI_EINVAL);
    std::size_t least = 77;
    std::size_t size = sizeof least;
    DAT_MUST(fi_setopt(pair.active.fid(), FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, size));
    least = 0;
    DAT_MUST(fi_getopt(pair.active.fid(), FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &size));
    cr_assert_eq(least, 77);
    cr_assert_eq(
        fi_setopt(pair.active.fid(), FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, size - 1),
        -FI_EINVAL);
}

TRANSPORT_TEST(receive_for_several_messages, on_a_device__is_refused) {
    only_dat();
    Pair pair(transport);
    const bool device = pair.near.device();
    Bytes in(10);
    const iovec iov{in.data(), in.size()};
    const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, nullptr, 0};
    cr_assert_eq(fi_recvmsg(pair.active.get(), &msg, FI_MULTI_RECV), device ? -FI_EBADFLAGS : 0);
    std::uint64_t flags = FI_RECV | FI_MULTI_RECV;
    cr_assert_eq(fi_control(pair.active.fid(), FI_SETOPSFLAG, &flags), device ? -FI_EINVAL : 0);
}

// fi_cancel(3): it completes once, and those before and behind it as ever.
TRANSPORT_TEST(cancelled_receive, in_the_middle__leaves_the_others) {
    only_dat();
    auto pair = Pair::connected(transport);
    std::vector<Bytes> in(3, Bytes(4));
    std::vector<Op*> ops;
    for (Bytes& buffer : in)
        ops.push_back(&pair->passive().recv(buffer.data(), buffer.size()));
    cr_assert_eq(fi_cancel(pair->passive().fid(), ops[1]), 0);
    wait_op(*ops[1]);
    cr_assert(ops[1]->flushed());
    cr_assert_eq(fi_cancel(pair->passive().fid(), ops[1]), -FI_ENOENT);
    cr_assert(!ops[0]->done() && !ops[2]->done());
    wait_op(pair->active.send_confirmed("a", 1));
    wait_op(pair->active.send_confirmed("b", 1));
    wait_op(*ops[0]);
    wait_op(*ops[2]);
    cr_assert(ops[0]->ok() && in[0][0] == 'a');
    cr_assert(ops[2]->ok() && in[2][0] == 'b');
    require_once(ops);
}

// Before there is a connection, and down to none: the endpoint is idle again (EPA-10).
TRANSPORT_TEST(cancelled_receive, of_all_before_connecting__leaves_the_endpoint_idle) {
    only_dat();
    Pair pair(transport);
    std::vector<Op*> ops;
    Bytes in(4);
    for (int i = 0; i < 3; ++i)
        ops.push_back(&pair.active.recv(in.data(), in.size()));
    for (Op* op : {ops[2], ops[0], ops[1]})
        cr_assert_eq(fi_cancel(pair.active.fid(), op), 0);
    wait_ops(ops);
    cr_assert(pair.active.status().recv_idle);
    // A connection made afterwards works as ever.
    Op& receive = pair.active.recv(in.data(), in.size());
    pair.connect();
    wait_op(pair.passive().send_confirmed("x", 1));
    wait_op(receive);
    cr_assert(receive.ok() && in[0] == 'x');
    require_once(ops);
}

// A message has taken it: it is not taken back any more.
TRANSPORT_TEST(cancelled_receive, that_has_completed__is_not_found) {
    only_dat();
    auto pair = Pair::connected(transport);
    Bytes in(4);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send_confirmed("x", 1));
    cr_assert_eq(fi_cancel(pair->passive().fid(), &receive), -FI_ENOENT);
    wait_op(receive);
    cr_assert(receive.ok());
}
