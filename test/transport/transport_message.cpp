// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: sends and receives. Sizes, segments, order, inject, what
// happens with no receive posted and with one that is too short.
#include "suite.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

using namespace dat::test;

namespace {

// Around the sizes where an implementation may change its ways.
const std::vector<std::size_t> kSizes{
    0,     1,     7,     63,    64,     65,     127,     128,           129,
    1023,  1024,  1025,  1460,  4095,   4096,   4097,    9000,          16384,
    65000, 65535, 65536, 65537, 131072, 262143, 1 << 20, (1 << 20) + 1, 4 << 20};

// One message of each size, all ways round: `from` to `to`.
void every_size(Endpoint& from, Endpoint& to, Op& (Endpoint::*send)(const void*, std::size_t)) {
    Bytes in(kSizes.back() + 1);
    for (const std::size_t size : kSizes) {
        const Bytes out = pattern(size, static_cast<unsigned>(size));
        std::fill(in.begin(), in.end(), std::uint8_t{0xAA});
        Op& receive = to.recv(in.data(), size + 1);
        Op& request = (from.*send)(out.data(), size);
        wait_op(request);
        wait_op(receive);
        cr_assert(request.ok() && receive.ok(), "size %zu: %d %d", size, request.err, receive.err);
        cr_assert_eq(receive.len, size, "DTO-11: %zu of %zu", receive.len, size);
        cr_assert(same(in.data(), out.data(), size), "size %zu arrived wrong", size);
        cr_assert_eq(in[size], 0xAA, "size %zu: written behind the message", size);
    }
}

struct Stream {
    std::vector<Bytes> buffers;
    std::vector<Op*> ops;
};

void post_receives(Endpoint& to, Stream& stream, std::size_t count, std::size_t size) {
    const std::size_t first = stream.buffers.size();
    stream.buffers.resize(first + count, Bytes(size));
    for (std::size_t i = first; i < first + count; ++i)
        stream.ops.push_back(&to.recv(stream.buffers[i].data(), size));
}

// Receives got messages number 0, 1, 2 ... of `size` bytes, in order.
void check_received(const Stream& stream, std::size_t size) {
    for (std::size_t i = 0; i < stream.ops.size(); ++i) {
        cr_assert(stream.ops[i]->ok(), "receive %zu: error %d", i, stream.ops[i]->err);
        cr_assert_eq(stream.ops[i]->len, size);
        const Bytes expected = pattern(size, static_cast<unsigned>(i));
        cr_assert(same(stream.buffers[i].data(), expected.data(), size),
                  "message %zu is not in its place", i);
    }
    require_stream_order(stream.ops);
}

// The messages that check_received() expects.
void send_numbered(Endpoint& from, Stream& stream, std::size_t count, std::size_t size) {
    const std::size_t first = stream.buffers.size();
    stream.buffers.resize(first + count);
    for (std::size_t i = first; i < first + count; ++i) {
        stream.buffers[i] = pattern(size, static_cast<unsigned>(i));
        stream.ops.push_back(&from.send(stream.buffers[i].data(), size));
    }
}

} // namespace

// DTO-8, DTO-11, DTO-12.
TRANSPORT_TEST(message_sizes, from_active_side__arrive_whole) {
    auto pair = Pair::connected(transport);
    every_size(pair->active, pair->passive(), &Endpoint::send);
}

TRANSPORT_TEST(message_sizes, from_passive_side__arrive_whole) {
    auto pair = Pair::connected(transport);
    every_size(pair->passive(), pair->active, &Endpoint::send);
}

// U-61.
TRANSPORT_TEST(message_sizes, with_transmit_complete__arrive_whole) {
    auto pair = Pair::connected(transport);
    every_size(pair->active, pair->passive(), &Endpoint::send_confirmed);
}

// U-65: nobody has to be first.
TRANSPORT_TEST(message_first, from_active_side__arrives) {
    auto pair = Pair::connected(transport);
    Bytes in(5);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send("hello", 5));
    wait_op(receive);
    cr_assert(receive.ok() && std::memcmp(in.data(), "hello", 5) == 0);
}

TRANSPORT_TEST(message_first, from_passive_side__arrives) {
    auto pair = Pair::connected(transport);
    Bytes in(5);
    Op& receive = pair->active.recv(in.data(), in.size());
    wait_op(pair->passive().send("hello", 5));
    wait_op(receive);
    cr_assert(receive.ok() && std::memcmp(in.data(), "hello", 5) == 0);
}

TRANSPORT_TEST(message_first, from_both_sides_at_once__both_arrive) {
    auto pair = Pair::connected(transport);
    Bytes at_active(5);
    Bytes at_passive(5);
    Op& first = pair->active.recv(at_active.data(), 5);
    Op& second = pair->passive().recv(at_passive.data(), 5);
    pair->active.send("there", 5);
    pair->passive().send("hello", 5);
    wait_op(first);
    wait_op(second);
    cr_assert(std::memcmp(at_active.data(), "hello", 5) == 0);
    cr_assert(std::memcmp(at_passive.data(), "there", 5) == 0);
}

// DTO-12: more than the queues hold, so that posts meet -FI_EAGAIN.
TRANSPORT_TEST(message_many, outstanding__complete_in_order) {
    constexpr std::size_t kSize = 200;
    auto pair = Pair::connected(transport);
    const std::size_t count = 3 * pair->near.info()->tx_attr->size;
    Stream receives;
    Stream sends;
    receives.buffers.reserve(count); // addresses stay
    sends.buffers.reserve(count);
    const std::size_t batch = pair->far.info()->rx_attr->size / 2;
    while (sends.ops.size() < count) {
        post_receives(pair->passive(), receives, batch, kSize);
        send_numbered(pair->active, sends, batch, kSize);
    }
    wait_ops(sends.ops);
    wait_ops(receives.ops);
    check_received(receives, kSize);
    require_stream_order(sends.ops);
}

// Large enough that no socket buffer takes it: both have to read while they write.
TRANSPORT_TEST(message_many, large_ones_both_ways_at_once__do_not_block_each_other) {
    constexpr std::size_t kSize = 1 << 20;
    constexpr std::size_t kCount = 8;
    auto pair = Pair::connected(transport);
    Stream at_active;
    Stream at_passive;
    Stream from_active;
    Stream from_passive;
    for (Stream* stream : {&at_active, &at_passive, &from_active, &from_passive})
        stream->buffers.reserve(kCount);
    post_receives(pair->active, at_active, kCount, kSize);
    post_receives(pair->passive(), at_passive, kCount, kSize);
    send_numbered(pair->active, from_active, kCount, kSize);
    send_numbered(pair->passive(), from_passive, kCount, kSize);
    wait_ops(at_active.ops);
    wait_ops(at_passive.ops);
    wait_ops(from_active.ops);
    wait_ops(from_passive.ops);
    check_received(at_active, kSize);
    check_received(at_passive, kSize);
}

// DTO-1.
TRANSPORT_TEST(message_segments, four_gathered_and_four_scattered__fill_in_order) {
    auto pair = Pair::connected(transport);
    cr_assert_geq(pair->near.info()->tx_attr->iov_limit, 4);
    cr_assert_geq(pair->far.info()->rx_attr->iov_limit, 4);
    Bytes out = pattern(70'000);
    Bytes in(70'000 + 500, 0xAA);
    std::array<iovec, 4> gather{{{out.data(), 1},
                                 {out.data() + 1, 0}, // DTO-2: an empty one is skipped
                                 {out.data() + 1, 4999},
                                 {out.data() + 5000, 65'000}}};
    std::array<iovec, 4> scatter{{{in.data(), 3},
                                  {in.data() + 3, 60'000},
                                  {in.data() + 60'003, 9'000},
                                  {in.data() + 69'003, 1'497}}};
    Op& receive = new_op();
    DAT_MUST(fi_recvv(pair->passive().get(), scatter.data(), nullptr, 4, FI_ADDR_UNSPEC, &receive));
    Op& request = new_op();
    DAT_MUST(fi_sendv(pair->active.get(), gather.data(), nullptr, 4, FI_ADDR_UNSPEC, &request));
    wait_op(request);
    wait_op(receive);
    cr_assert(request.ok() && receive.ok());
    cr_assert_eq(receive.len, out.size());
    cr_assert(std::memcmp(in.data(), out.data(), out.size()) == 0);
    cr_assert_eq(in[out.size()], 0xAA, "DTO-1: the rest is untouched");
}

// DTO-6: the array of segments is the caller's again when the post returns.
TRANSPORT_TEST(message_segments, array_reused_after_the_post__does_no_harm) {
    auto pair = Pair::connected(transport);
    Bytes in(4096);
    const Bytes out = pattern(in.size());
    std::array<iovec, 2> segments{{{in.data(), 1000}, {in.data() + 1000, 3096}}};
    Op& receive = new_op();
    DAT_MUST(
        fi_recvv(pair->passive().get(), segments.data(), nullptr, 2, FI_ADDR_UNSPEC, &receive));
    segments = {};
    wait_op(pair->active.send(out.data(), out.size()));
    wait_op(receive);
    cr_assert(receive.ok() && in == out);
}

// DTO-2.
TRANSPORT_TEST(message_segments, more_than_the_limit__are_refused) {
    only_dat();
    auto pair = Pair::connected(transport);
    Bytes memory(64);
    std::vector<iovec> segments(pair->near.info()->tx_attr->iov_limit + 1, {memory.data(), 1});
    Op& op = new_op();
    cr_assert_eq(fi_sendv(pair->active.get(), segments.data(), nullptr, segments.size(),
                          FI_ADDR_UNSPEC, &op),
                 -FI_EINVAL);
    cr_assert_eq(fi_recvv(pair->active.get(), segments.data(), nullptr, segments.size(),
                          FI_ADDR_UNSPEC, &op),
                 -FI_EINVAL);
    settle(20);
    cr_assert(!op.done());
    require_state(pair->active, FI_DAT_CONNECTED);
}

// DTO-4.
TRANSPORT_TEST(message_sizes, above_max_msg_size__are_refused) {
    only_dat();
    auto pair = Pair::connected(transport);
    const std::size_t limit = pair->near.info()->ep_attr->max_msg_size;
    if (limit == SIZE_MAX)
        cr_skip_test("no limit");
    Bytes memory(64);
    Op& op = new_op();
    cr_assert_neq(
        fi_send(pair->active.get(), memory.data(), limit + 1, nullptr, FI_ADDR_UNSPEC, &op), 0);
    settle(20);
    cr_assert(!op.done());
    require_state(pair->active, FI_DAT_CONNECTED);
}

// An endpoint's own limit is that of the info that it is made of.
TRANSPORT_TEST(message_sizes, above_what_the_info_of_the_endpoint_says__are_refused) {
    only_dat();
    constexpr std::size_t kLimit = 16;
    Side far(transport);
    far.listen();
    Side near(transport);
    near.info()->ep_attr->max_msg_size = kLimit;
    Endpoint active(near);
    DAT_MUST(active.connect(far));
    Endpoint passive(far, wait_event(far, FI_CONNREQ));
    DAT_MUST(passive.accept());
    wait_event(near, FI_CONNECTED);
    Bytes memory(kLimit + 1);
    cr_assert_eq(
        fi_send(active.get(), memory.data(), kLimit + 1, nullptr, FI_ADDR_UNSPEC, &new_op()),
        -FI_EMSGSIZE);
    Op& receive = passive.recv(memory.data(), kLimit);
    wait_op(active.send(memory.data(), kLimit));
    wait_op(receive);
    cr_assert(receive.ok() && receive.len == kLimit);
}

// Inject: the buffer is free at once, and success makes no completion.
TRANSPORT_TEST(message_inject, up_to_its_size__arrives_without_completion) {
    auto pair = Pair::connected(transport);
    const std::size_t limit = pair->near.info()->tx_attr->inject_size;
    cr_assert_gt(limit, 0);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, limit - 1, limit}) {
        const Bytes out = pattern(size, 9);
        Bytes scratch = out;
        Bytes in(limit + 1);
        Op& receive = pair->passive().recv(in.data(), in.size());
        DAT_MUST(post_when_possible(
            [&] { return fi_inject(pair->active.get(), scratch.data(), size, FI_ADDR_UNSPEC); }));
        std::fill(scratch.begin(), scratch.end(), std::uint8_t{0});
        wait_op(receive);
        cr_assert(receive.ok() && receive.len == size);
        cr_assert(same(in.data(), out.data(), size), "inject of %zu", size);
    }
    settle(20);
    cr_assert_eq(pair->near.completions(), 0);
}

TRANSPORT_TEST(message_inject, above_its_size__is_refused) {
    only_dat();
    auto pair = Pair::connected(transport);
    const Bytes out(pair->near.info()->tx_attr->inject_size + 1);
    cr_assert_eq(fi_inject(pair->active.get(), out.data(), out.size(), FI_ADDR_UNSPEC), -FI_EINVAL);
    require_state(pair->active, FI_DAT_CONNECTED);
}

TRANSPORT_TEST(message_inject, flag_on_sendmsg__buffer_is_free_at_once) {
    auto pair = Pair::connected(transport);
    const Bytes out = pattern(100);
    Bytes scratch = out;
    Bytes in(100);
    Op& receive = pair->passive().recv(in.data(), in.size());
    Op& request = new_op();
    const iovec iov{scratch.data(), scratch.size()};
    const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &request, 0};
    DAT_MUST(fi_sendmsg(pair->active.get(), &msg, FI_INJECT | FI_COMPLETION));
    std::fill(scratch.begin(), scratch.end(), std::uint8_t{0});
    wait_op(request);
    wait_op(receive);
    cr_assert(receive.ok() && in == out);
}

// Selective completion: success is reported only where asked for.
TRANSPORT_TEST(message_selective, without_fi_completion__reports_no_success) {
    SideOptions options;
    options.selective = true;
    auto pair = Pair::connected(transport, options);
    Stream receives;
    receives.buffers.reserve(3);
    post_receives(pair->passive(), receives, 3, 10);
    Op& silent = pair->active.send("0123456789", 10);
    Op& asked = new_op();
    char text[] = "0123456789";
    const iovec iov{text, 10};
    const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &asked, 0};
    DAT_MUST(fi_sendmsg(pair->active.get(), &msg, FI_COMPLETION));
    Op& also_silent = pair->active.send("0123456789", 10);
    wait_op(asked);
    wait_ops(receives.ops);
    settle(20);
    cr_assert(!silent.done() && !also_silent.done());
}

// U-9: no receive posted is no error; sends wait.
TRANSPORT_TEST(message_no_receive, small_ones__wait_and_arrive_in_order) {
    constexpr std::size_t kSize = 100;
    constexpr std::size_t kCount = 20;
    auto pair = Pair::connected(transport);
    Stream sends;
    Stream receives;
    sends.buffers.reserve(kCount);
    receives.buffers.reserve(kCount);
    send_numbered(pair->active, sends, kCount, kSize);
    settle();
    post_receives(pair->passive(), receives, kCount, kSize);
    wait_ops(receives.ops);
    wait_ops(sends.ops);
    check_received(receives, kSize);
}

// U-9, U-42: far more than is staged (FI_DAT_UNEXPECTED) and than a socket buffers.
TRANSPORT_TEST(message_no_receive, more_than_is_staged__all_arrive_in_order) {
    constexpr std::size_t kSize = 300'000;
    constexpr std::size_t kCount = 40;
    auto pair = Pair::connected(transport);
    Stream sends;
    Stream receives;
    sends.buffers.reserve(kCount);
    receives.buffers.reserve(kCount);
    send_numbered(pair->active, sends, kCount, kSize);
    settle();
    require_state(pair->passive(), FI_DAT_CONNECTED);
    for (std::size_t i = 0; i < kCount; i += 4) {
        post_receives(pair->passive(), receives, 4, kSize);
        wait_ops(receives.ops);
    }
    wait_ops(sends.ops);
    check_received(receives, kSize);
}

// The staging limit at its smallest, and at sizes that just fit or just do not.
TRANSPORT_TEST(message_no_receive, around_the_staging_limit__all_arrive_in_order) {
    constexpr std::size_t kLimit = 4096;
    setenv("FI_DAT_UNEXPECTED", "4096", 1);
    auto pair = Pair::connected(transport);
    for (const std::size_t size : {kLimit - 1, kLimit, kLimit + 1, std::size_t{1}}) {
        constexpr std::size_t kCount = 6;
        Stream sends;
        Stream receives;
        sends.buffers.reserve(kCount);
        receives.buffers.reserve(kCount);
        send_numbered(pair->active, sends, kCount, size);
        settle(20);
        post_receives(pair->passive(), receives, kCount, size);
        wait_ops(receives.ops);
        wait_ops(sends.ops);
        check_received(receives, size);
    }
}

// architecture.md, "No receive posted": what needs no receive goes on.
TRANSPORT_TEST(message_no_receive, on_both_sides__reads_still_complete) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->near, 1000, FI_REMOTE_READ | FI_READ);
    std::fill_n(memory.data(), memory.size(), std::uint8_t{7});
    const Bytes out = pattern(1000);
    Op& waiting = pair->passive().send(out.data(), out.size());
    wait_op(pair->active.send(out.data(), out.size()));
    wait_op(waiting);
    Bytes in(1000);
    Op& read = pair->passive().read(in.data(), in.size(), memory.at(0));
    wait_op(read);
    cr_assert(read.ok());
    cr_assert(in == Bytes(1000, 7));
}

// U-61: FI_TRANSMIT_COMPLETE is about the peer's having placed the data, so it
// waits where a plain send does not.
TRANSPORT_TEST(message_transmit_complete, with_no_receive_and_nothing_staged__waits_for_it) {
    only_dat();
    setenv("FI_DAT_UNEXPECTED", "0", 1);
    auto pair = Pair::connected(transport);
    const Bytes out = pattern(1000);
    Op& plain = pair->active.send(out.data(), out.size());
    Op& confirmed = pair->active.send_confirmed(out.data(), out.size());
    wait_op(plain);
    settle();
    cr_assert(!confirmed.done(), "completed without a place for the data");
    Stream receives;
    receives.buffers.reserve(2);
    post_receives(pair->passive(), receives, 2, 1000);
    wait_op(confirmed);
    cr_assert(confirmed.ok());
    wait_ops(receives.ops);
}

// DTO-9, U-8, STS-0, DISC-8.
TRANSPORT_TEST(message_too_long, for_the_receive__breaks_the_connection_on_both_sides) {
    only_dat();
    auto pair = Pair::connected(transport);
    Bytes in(200, 0xAA);
    Op& receive = pair->passive().recv(in.data(), 100);
    Op& later = pair->passive().recv(in.data() + 150, 50);
    const Bytes out = pattern(101);
    Op& request = pair->active.send_confirmed(out.data(), out.size());
    wait_shutdown(pair->passive());
    wait_shutdown(pair->active);
    require_once({&receive, &later, &request});
    cr_assert_eq(receive.err, FI_ETRUNC, "got %d", receive.err);
    cr_assert_eq(receive.prov_errno, 2);
    cr_assert(later.flushed());
    cr_assert_eq(request.err, FI_EREMOTEIO, "got %d", request.err);
    cr_assert_eq(request.prov_errno, 7);
    for (std::size_t i = 100; i < in.size(); ++i)
        cr_assert_eq(in[i], 0xAA, "written behind the receive");
    require_end(pair->passive(), FI_DAT_END_BROKEN);
    require_end(pair->active, FI_DAT_END_BROKEN);
    settle();
    cr_assert(pair->near.events().empty() && pair->far.events().empty());
}

TRANSPORT_TEST(message_too_long, for_a_receive_posted_later__breaks_the_connection) {
    only_dat();
    auto pair = Pair::connected(transport);
    const Bytes out = pattern(3000);
    Op& request = pair->active.send(out.data(), out.size());
    wait_op(request);
    settle(20);
    Bytes in(2999);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_shutdown(pair->passive());
    wait_shutdown(pair->active);
    cr_assert_eq(receive.err, FI_ETRUNC, "got %d", receive.err);
    require_end(pair->passive(), FI_DAT_END_BROKEN);
    require_end(pair->active, FI_DAT_END_BROKEN);
}

// EP-23.
TRANSPORT_TEST(message_in_wrong_state, before_connected__is_refused) {
    only_dat();
    Pair pair(transport);
    Region memory(pair.near, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
    Op& op = new_op();
    const auto require_refused = [&](const Endpoint& endpoint) {
        fid_ep* ep = endpoint.get();
        const Remote to = memory.at(0);
        cr_assert_eq(fi_send(ep, memory.data(), 8, nullptr, FI_ADDR_UNSPEC, &op), -FI_EOPBADSTATE);
        cr_assert_eq(fi_inject(ep, memory.data(), 8, FI_ADDR_UNSPEC), -FI_EOPBADSTATE);
        cr_assert_eq(
            fi_write(ep, memory.data(), 8, nullptr, FI_ADDR_UNSPEC, to.address, to.key, &op),
            -FI_EOPBADSTATE);
        cr_assert_eq(
            fi_read(ep, memory.data(), 8, nullptr, FI_ADDR_UNSPEC, to.address, to.key, &op),
            -FI_EOPBADSTATE);
    };
    require_refused(pair.active);
    DAT_MUST(pair.active.connect(pair.far));
    require_refused(pair.active);
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    require_refused(passive);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    cr_assert(!op.done());
    cr_assert(pair.active.status().request_idle);
}

// Several connections between the same two sides do not touch each other.
TRANSPORT_TEST(message_connections, several_on_one_cq__stay_apart) {
    constexpr unsigned kCount = 8;
    Pair pair(transport);
    std::vector<Endpoint> active;
    std::vector<Endpoint> passive;
    for (unsigned i = 0; i < kCount; ++i) {
        active.emplace_back(pair.near);
        passive.push_back(establish(active.back(), pair.far));
    }
    std::vector<Bytes> in(kCount, Bytes(5000));
    std::vector<Bytes> out;
    std::vector<Op*> receives;
    for (unsigned i = 0; i < kCount; ++i) {
        out.push_back(pattern(5000, i));
        receives.push_back(&passive[i].recv(in[i].data(), in[i].size()));
    }
    for (unsigned i = kCount; i-- > 0;)
        active[i].send(out[i].data(), out[i].size());
    wait_ops(receives);
    for (unsigned i = 0; i < kCount; ++i)
        cr_assert(receives[i]->ok() && in[i] == out[i], "connection %u", i);
}

// An endpoint may be connected to one of its own domain.
TRANSPORT_TEST(message_loop, within_one_domain__arrives) {
    Side side(transport);
    side.listen();
    Endpoint active(side);
    DAT_MUST(active.connect(side));
    const Event request = wait_event(side, FI_CONNREQ);
    Endpoint passive(side, request);
    DAT_MUST(passive.accept());
    wait_event(side, FI_CONNECTED);
    wait_event(side, FI_CONNECTED);
    Bytes in(1000);
    const Bytes out = pattern(1000);
    Op& receive = passive.recv(in.data(), in.size());
    wait_op(active.send(out.data(), out.size()));
    wait_op(receive);
    cr_assert(in == out);
}
