// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: reads and writes over several remote segments (rma_iov_count of
// fi_rma(3)).
#include "suite.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

using namespace dat::test;

namespace {

constexpr std::uint64_t kAll =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::size_t kOffered = 4;

using Lengths = std::vector<std::size_t>;

std::size_t sum(const Lengths& lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
}

// A connection whose provider has several segments; nullptr: it offers one.
std::unique_ptr<Pair> connect(const Transport& transport, const SideOptions& near = {}) {
    only_dat();
    auto pair = Pair::connected(transport, near);
    if (pair->near.info()->tx_attr->rma_iov_limit < kOffered)
        return nullptr;
    return pair;
}
#define CONNECTED(pair, ...)                                                                       \
    auto pair = connect(__VA_ARGS__);                                                              \
    if (!pair)                                                                                     \
    cr_skip_test("one remote segment is offered")

// An operation: the local bytes in pieces, the remote ones anywhere.
struct Work {
    std::vector<iovec> local;
    std::vector<fi_rma_iov> remote;
    std::uint64_t flags = FI_COMPLETION;
    std::uint64_t data = 0;

    fi_msg_rma message(void* context) const {
        return {local.data(),  nullptr,       local.size(), FI_ADDR_UNSPEC,
                remote.data(), remote.size(), context,      data};
    }
};

std::vector<iovec> pieces_of(std::uint8_t* at, const Lengths& lengths) {
    std::vector<iovec> pieces;
    for (const std::size_t length : lengths) {
        pieces.push_back({at, length});
        at += length;
    }
    return pieces;
}

// Segments of these lengths with gaps of one byte between them, the last one first.
std::vector<fi_rma_iov> backwards(const Region& region, const Lengths& lengths) {
    std::vector<fi_rma_iov> segments(lengths.size());
    std::int64_t at = 0;
    for (std::size_t i = lengths.size(); i-- > 0;) {
        const Remote remote = region.at(at);
        segments[i] = {remote.address, lengths[i], remote.key};
        at += static_cast<std::int64_t>(lengths[i]) + 1;
    }
    return segments;
}

// What backwards() makes of them.
Bytes laid_out(const Bytes& data, const Lengths& lengths, std::size_t size) {
    Bytes memory(size);
    std::size_t at = 0;
    std::size_t end = data.size();
    for (std::size_t i = lengths.size(); i-- > 0;) {
        end -= lengths[i];
        std::copy_n(data.data() + end, lengths[i], memory.data() + at);
        at += lengths[i] + 1;
    }
    return memory;
}

using Call = ssize_t (*)(fid_ep*, const fi_msg_rma*, std::uint64_t);

Op& post(Endpoint& from, Call call, const Work& work) {
    Op& op = new_op();
    const fi_msg_rma message = work.message(&op);
    DAT_MUST(post_when_possible([&] { return call(from.get(), &message, work.flags); }));
    return op;
}

ssize_t write_over(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) {
    return fi_writemsg(ep, msg, flags);
}
ssize_t read_over(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) {
    return fi_readmsg(ep, msg, flags);
}

const std::vector<std::pair<Lengths, Lengths>> kShapes{
    // local, remote
    {{2}, {1, 1}},
    {{1, 1}, {2, 0}},
    {{10, 20, 30, 40}, {40, 30, 20, 10}},
    {{100}, {0, 50, 0, 50}},
    {{1, 98, 1}, {33, 33, 34}},
    {{70'000, 1, 0, 3}, {3, 40'000, 1, 30'000}},
    {{4096, 4096, 4096, 4096}, {1, 16'382, 1}},
    {{3 << 20}, {1 << 20, 1, (1 << 20) - 1, 1 << 20}},
};

} // namespace

TRANSPORT_TEST(rma_remote_segments, of_each_shape__are_written_and_read_exactly) {
    CONNECTED(pair, transport);
    for (const auto& [local, remote] : kShapes) {
        const std::size_t size = sum(local);
        Region memory(pair->far, size + remote.size(), kAll);
        Bytes data = pattern(size, static_cast<unsigned>(size));
        const Work write{pieces_of(data.data(), local), backwards(memory, remote),
                         FI_COMPLETION | FI_TRANSMIT_COMPLETE};
        Op& written = post(pair->active, write_over, write);
        wait_op(written);
        cr_assert(written.ok(), "%zu bytes: %d", size, written.err);
        cr_assert_eq(written.len, size);
        cr_assert_eq(written.flags, FI_RMA | FI_WRITE);
        const Bytes expected = laid_out(data, remote, memory.size());
        cr_assert(same(memory.data(), expected.data(), expected.size()), "%zu bytes", size);
        cr_assert(memory.guards_whole());

        Bytes back(size);
        const Work read{pieces_of(back.data(), local), write.remote};
        Op& done = post(pair->active, read_over, read);
        wait_op(done);
        cr_assert(done.ok(), "%zu bytes: %d", size, done.err);
        cr_assert_eq(done.len, size);
        cr_assert_eq(done.flags, FI_RMA | FI_READ);
        cr_assert(back == data, "%zu bytes", size);
    }
    settle(20);
    cr_assert_eq(pair->near.completions(), 2 * kShapes.size(), "one for each operation");
    cr_assert_eq(pair->far.completions(), 0);
}

// More than the queue holds, among others: in posting order, each once (DISC-8).
TRANSPORT_TEST(rma_remote_segments, of_many_operations__complete_in_posting_order) {
    CONNECTED(pair, transport);
    constexpr std::size_t kPart = 700;
    Region memory(pair->far, 4 * (kPart + 1), kAll);
    Bytes out = pattern(4 * kPart);
    Bytes in(4 * kPart);
    const Lengths parts(4, kPart);
    const Work write{pieces_of(out.data(), {4 * kPart}), backwards(memory, parts)};
    const Work read{pieces_of(in.data(), {4 * kPart}), write.remote};
    std::vector<Op*> ops;
    Bytes notes(100);
    std::vector<Op*> receives;
    for (std::size_t i = 0; i < 100; ++i) {
        receives.push_back(&pair->passive().recv(&notes[i], 1));
        ops.push_back(&post(pair->active, write_over, write));
        ops.push_back(&pair->active.send(out.data(), 1));
        ops.push_back(&post(pair->active, read_over, read));
    }
    wait_ops(ops);
    wait_ops(receives);
    require_stream_order(ops);
    for (const Op* op : ops)
        cr_assert(op->ok());
    cr_assert(in == out);
}

// DTO-15: all of it is there when a later message has arrived; injected, it is copied.
TRANSPORT_TEST(rma_remote_segments, injected_before_a_message__are_visible_with_it) {
    CONNECTED(pair, transport);
    const std::size_t size = pair->near.info()->tx_attr->inject_size;
    const Lengths parts{1, size - 3, 1, 1};
    Region memory(pair->far, size + 4, kAll);
    const Bytes data = pattern(size);
    Bytes scratch = data;
    Op& written = post(pair->active, write_over,
                       {pieces_of(scratch.data(), {5, size - 5}), backwards(memory, parts),
                        FI_COMPLETION | FI_INJECT});
    std::fill(scratch.begin(), scratch.end(), std::uint8_t{0});
    std::uint8_t note = 0;
    Op& receive = pair->passive().recv(&note, 1);
    wait_op(pair->active.send(data.data(), 1));
    wait_op(receive);
    cr_assert(written.ok());
    const Bytes expected = laid_out(data, parts, memory.size());
    cr_assert(same(memory.data(), expected.data(), expected.size()));
}

// DTO-24: the fence stands before the first of them.
TRANSPORT_TEST(rma_remote_segments, fenced__wait_for_the_reads_before_them) {
    CONNECTED(pair, transport);
    constexpr std::size_t kSize = 1 << 20;
    Region source(pair->far, kSize, kAll);
    Region copy(pair->far, kSize + 4, kAll);
    const Bytes data = pattern(kSize);
    std::copy_n(data.data(), kSize, source.data());
    Region local(pair->near, kSize, kAll);
    const Lengths quarters(4, kSize / 4);
    pair->active.read(local.data(), kSize, source.at(0));
    Op& written = post(pair->active, write_over,
                       {pieces_of(local.data(), {kSize}), backwards(copy, quarters),
                        FI_COMPLETION | FI_TRANSMIT_COMPLETE | FI_FENCE});
    wait_op(written);
    const Bytes expected = laid_out(data, quarters, copy.size());
    cr_assert(written.ok() && same(copy.data(), expected.data(), expected.size()));
}

// Remote CQ data comes once, behind the last segment.
TRANSPORT_TEST(rma_remote_segments, with_data__are_told_of_once) {
    CONNECTED(pair, transport);
    const Lengths parts{100, 50'000, 3, 200};
    Region memory(pair->far, sum(parts) + 4, kAll);
    Bytes data = pattern(sum(parts));
    const Bytes expected = laid_out(data, parts, memory.size());
    std::vector<Op> told;
    pair->far.intercept = [&](void* context, const Op& op) {
        if (!context) {
            told.push_back(op);
            cr_assert(same(memory.data(), expected.data(), expected.size()), "not whole yet");
        }
        return !context;
    };
    Op& written = post(pair->active, write_over,
                       {pieces_of(data.data(), {sum(parts)}), backwards(memory, parts),
                        FI_COMPLETION | FI_REMOTE_CQ_DATA, 0xabcdef12});
    wait_op(written);
    wait_until([&] { return !told.empty(); });
    settle(20);
    pair->far.intercept = nullptr;
    cr_assert(written.ok());
    cr_assert_eq(told.size(), 1);
    cr_assert_eq(told[0].data, 0xabcdef12);
    cr_assert_eq(told[0].flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
}

// A success that is not asked for is not reported, whatever number of requests it took.
TRANSPORT_TEST(rma_remote_segments, unsignalled__complete_silently) {
    SideOptions options;
    options.selective = true;
    CONNECTED(pair, transport, options);
    const Lengths parts(4, 64);
    Region memory(pair->far, 4 * 65, kAll);
    Bytes data = pattern(4 * 64);
    post(pair->active, write_over,
         {pieces_of(data.data(), {4 * 64}), backwards(memory, parts), FI_TRANSMIT_COMPLETE});
    Op& read = post(pair->active, read_over,
                    {pieces_of(data.data(), {4 * 64}), backwards(memory, parts), FI_COMPLETION});
    wait_op(read);
    settle(20);
    cr_assert(read.ok());
    cr_assert_eq(pair->near.completions(), 1, "the read's only");
}

// Counters count operations (fi_cntr(3)).
TRANSPORT_TEST(rma_remote_segments, counted__are_one) {
    SideOptions options;
    fid_cntr* bound = nullptr;
    options.before_enable = [&](fid_ep* ep) {
        if (bound)
            DAT_MUST(fi_ep_bind(ep, &bound->fid, FI_WRITE));
    };
    only_dat();
    Pair pair(transport, options);
    if (pair.near.info()->tx_attr->rma_iov_limit < kOffered)
        cr_skip_test("one remote segment is offered");
    Fid<fid_cntr> writes;
    fi_cntr_attr attr{};
    DAT_MUST(fi_cntr_open(pair.near.domain(), &attr, writes.out(), nullptr));
    bound = writes.get();
    Endpoint counted(pair.near);
    Endpoint far = establish(counted, pair.far);
    const Lengths parts(4, 64);
    Region memory(pair.far, 4 * 65, kAll);
    Bytes data = pattern(4 * 64);
    for (int i = 0; i < 3; ++i)
        wait_op(post(counted, write_over,
                     {pieces_of(data.data(), {4 * 64}), backwards(memory, parts)}));
    cr_assert_eq(fi_cntr_read(writes.get()), 3);
}

namespace {

// Each segment in turn has a key that was never given: one error, that of the access, and
// nothing of that segment or behind it moves.
void refuse_each(const Transport& transport, Call call, std::uint64_t flags) {
    for (std::size_t bad = 0; bad < kOffered; ++bad) {
        CONNECTED(pair, transport);
        constexpr std::size_t kPart = 5000;
        Region memory(pair->far, kOffered * kPart, kAll);
        Region local(pair->near, kOffered * kPart, kAll);
        std::fill_n(local.data(), local.size(), std::uint8_t{0x55});
        Work work;
        work.flags = flags;
        work.local = pieces_of(local.data(), {local.size()});
        for (std::size_t i = 0; i < kOffered; ++i) {
            const Remote at = memory.at(static_cast<std::int64_t>(i * kPart));
            work.remote.push_back({at.address, kPart, i == bad ? 0x7badbad : at.key});
        }
        const Work good{pieces_of(local.data(), {kPart}),
                        {{memory.at(0).address, kPart, memory.at(0).key}}};
        Op& before = post(pair->active, read_over, good);
        wait_op(before);
        std::fill_n(local.data(), local.size(), std::uint8_t{0x55});
        Op& op = post(pair->active, call, work);
        Op& behind = post(pair->active, call, good);
        wait_shutdown(pair->active);
        wait_shutdown(pair->passive());
        require_once({&before, &op, &behind});
        cr_assert(before.ok());
        cr_assert_eq(op.err, FI_EACCES, "segment %zu: %d", bad, op.err);
        cr_assert_eq(op.prov_errno, 6, "segment %zu: %d", bad, op.prov_errno);
        cr_assert(behind.flushed(), "segment %zu: %d", bad, behind.err);
        const bool wrote = call == write_over;
        const std::uint8_t* const sink = wrote ? memory.data() : local.data();
        for (std::size_t i = bad * kPart; i < kOffered * kPart; ++i)
            cr_assert_eq(sink[i], wrote ? 0 : 0x55, "byte %zu, segment %zu refused", i, bad);
        cr_assert(memory.guards_whole() && local.guards_whole());
        settle(20);
        cr_assert_eq(pair->near.completions(), 3, "one for each operation");
    }
}

} // namespace

TRANSPORT_TEST(rma_remote_segments, of_which_one_may_not_be_written__fail_once) {
    refuse_each(transport, write_over, FI_COMPLETION | FI_TRANSMIT_COMPLETE);
}
TRANSPORT_TEST(rma_remote_segments, of_which_one_may_not_be_read__fail_once) {
    refuse_each(transport, read_over, FI_COMPLETION);
}

// FLS-1: after the end an operation is flushed, and is one.
TRANSPORT_TEST(rma_remote_segments, posted_after_the_end__are_flushed_once) {
    CONNECTED(pair, transport);
    Region memory(pair->far, 4 * 65, kAll);
    Bytes data(4 * 64);
    const Work work{pieces_of(data.data(), {4 * 64}), backwards(memory, Lengths(4, 64))};
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair->active);
    Op& write = post(pair->active, write_over, work);
    Op& read = post(pair->active, read_over, work);
    wait_op(write);
    wait_op(read);
    settle(20);
    cr_assert(write.flushed() && read.flushed());
    cr_assert_eq(pair->near.completions(), 2);
}

// What is refused changes nothing: the connection goes on.
TRANSPORT_TEST(rma_remote_segments, beyond_the_limit_or_of_another_length__are_refused) {
    CONNECTED(pair, transport);
    cr_assert_eq(pair->near.info()->tx_attr->rma_iov_limit, kOffered);
    Region memory(pair->far, 100, kAll);
    Bytes data = pattern(20);
    const Remote at = memory.at(0);
    const auto result = [&](const std::vector<std::size_t>& lengths, std::uint64_t key) {
        Work work{pieces_of(data.data(), {10, 10}), {}};
        for (const std::size_t length : lengths)
            work.remote.push_back({at.address, length, key});
        Op& op = new_op();
        const fi_msg_rma message = work.message(&op);
        const ssize_t written = fi_writemsg(pair->active.get(), &message, FI_COMPLETION);
        const ssize_t read = fi_readmsg(pair->active.get(), &message, FI_COMPLETION);
        cr_assert_eq(written, read);
        return static_cast<int>(written);
    };
    cr_assert_eq(result({}, at.key), -FI_EINVAL);
    cr_assert_eq(result({4, 4, 4, 4, 4}, at.key), -FI_EINVAL);
    cr_assert_eq(result({5, 5, 5, 4}, at.key), -FI_EINVAL);
    cr_assert_eq(result({5, 5, 5, 6}, at.key), -FI_EINVAL);
    cr_assert_eq(result({19}, at.key), -FI_EINVAL);
    // Which add up to 20 where the sum has 64 bits.
    cr_assert_eq(result({SIZE_MAX, 21}, at.key), -FI_EINVAL);
    cr_assert_eq(result({5, 15}, std::uint64_t{1} << 32), -FI_EKEYREJECTED);
    Op& op = post(pair->active, write_over,
                  {pieces_of(data.data(), {20}),
                   {{at.address, 5, at.key},
                    {at.address, 5, at.key},
                    {at.address, 5, at.key},
                    {at.address, 5, at.key}},
                   FI_COMPLETION | FI_TRANSMIT_COMPLETE});
    wait_op(op);
    cr_assert(op.ok() && same(memory.data(), data.data() + 15, 5), "the last one came last");
    cr_assert_eq(pair->near.completions(), 1);
}
