// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: RDMA read and write. Sizes, order against messages, and
// what a peer must not touch.
#include "suite.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/mman.h>

using namespace dat::test;

namespace {

constexpr std::uint64_t kAll =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

const std::vector<std::size_t> kSizes{
    0,     1,     63,    64,    65,     4095,    4096,          4097,
    16384, 65535, 65536, 65537, 262144, 1 << 20, (1 << 20) + 1, 4 << 20};

SideOptions with_mr_mode(int mr_mode) {
    SideOptions options;
    options.mr_mode = mr_mode;
    return options;
}

constexpr int kBasicMode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

void writes_and_reads(Endpoint& initiator, Side& target) {
    Region memory(target, kSizes.back(), kAll);
    Region local(initiator.side(), kSizes.back(), kAll);
    for (const std::size_t size : kSizes) {
        const Bytes data = pattern(size, static_cast<unsigned>(size) + 1);
        const std::size_t offset = (memory.size() - size) / 2;
        std::copy_n(data.data(), size, local.data());
        Op& written = initiator.write_confirmed(local.data(), size,
                                                memory.at(static_cast<std::int64_t>(offset)));
        wait_op(written);
        cr_assert(written.ok(), "write of %zu: %d", size, written.err);
        std::memset(local.data(), 0, size);
        Op& read = initiator.read(local.data(), size, memory.at(static_cast<std::int64_t>(offset)));
        wait_op(read);
        cr_assert(read.ok(), "read of %zu: %d", size, read.err);
        cr_assert(same(local.data(), data.data(), size), "read of %zu", size);
        cr_assert(same(memory.data() + offset, data.data(), size), "write of %zu", size);
    }
    cr_assert(memory.guards_whole() && local.guards_whole());
}

enum class Access { write, read };

// One access that the target has to refuse: the initiator learns it, nothing
// moves, both sides of this connection end, and another connection goes on
// (DTO-16, STS-0, EP-56).
void require_refused(Pair& pair, Region& memory, Access access, std::size_t size, Remote remote) {
    Endpoint other(pair.near);
    Endpoint other_end = establish(other, pair.far);
    Region local(pair.near, size + 1, kAll);
    std::fill_n(local.data(), local.size(), std::uint8_t{0x55});
    Op& op = access == Access::write ? pair.active.write_confirmed(local.data(), size, remote)
                                     : pair.active.read(local.data(), size, remote);
    wait_shutdown(pair.active);
    wait_shutdown(pair.passive());
    require_once({&op});
    cr_assert_eq(op.err, FI_EACCES, "got %d", op.err);
    cr_assert_eq(op.prov_errno, 6, "got %d", op.prov_errno);
    cr_assert(memory.guards_whole(), "written outside of the region");
    cr_assert(memory.all(0), "the region was written");
    cr_assert(local.guards_whole() && local.all(0x55), "the sink was written");
    require_end(pair.active, FI_DAT_END_BROKEN);
    require_end(pair.passive(), FI_DAT_END_BROKEN);

    Bytes in(100);
    const Bytes out = pattern(100);
    Op& receive = other_end.recv(in.data(), in.size());
    wait_op(other.send(out.data(), out.size()));
    wait_op(receive);
    cr_assert(receive.ok() && in == out, "another connection was harmed");
    settle(20);
    cr_assert(pair.near.events().empty() && pair.far.events().empty());
}

void refuse_at(const Transport& transport, int mr_mode, Access access, std::int64_t offset,
               std::size_t size) {
    only_dat();
    auto pair = Pair::connected(transport, with_mr_mode(mr_mode), with_mr_mode(mr_mode));
    Region memory(pair->far, 4096, kAll);
    require_refused(*pair, memory, access, size, memory.at(offset));
}

void refuse_right(const Transport& transport, Access access, std::uint64_t rights) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 4096, rights);
    require_refused(*pair, memory, access, 16, memory.at(0));
}

} // namespace

// DTO-16, DTO-11.
TRANSPORT_TEST(rma_sizes, written_and_read_by_active_side__are_exact) {
    auto pair = Pair::connected(transport);
    writes_and_reads(pair->active, pair->far);
}

TRANSPORT_TEST(rma_sizes, written_and_read_by_passive_side__are_exact) {
    auto pair = Pair::connected(transport);
    writes_and_reads(pair->passive(), pair->near);
}

TRANSPORT_TEST(rma_sizes, with_virtual_addresses__are_exact) {
    auto pair = Pair::connected(transport, with_mr_mode(kBasicMode), with_mr_mode(kBasicMode));
    writes_and_reads(pair->active, pair->far);
}

// What an application asks for as a key it gets, where keys are its own.
TRANSPORT_TEST(rma_key, requested__is_the_key) {
    Side side(transport);
    if (side.info()->domain_attr->mr_mode & FI_MR_PROV_KEY)
        cr_skip_test("keys are the provider's");
    Bytes memory(64);
    const std::uint64_t key = 5 | (1U << 31); // as ofi_rxm asks
    Fid<fid_mr> mr;
    DAT_MUST(fi_mr_reg(side.domain(), memory.data(), memory.size(), FI_REMOTE_READ, 0, key, 0,
                       mr.out(), nullptr));
    cr_assert_eq(fi_mr_key(mr.get()), key);
    Fid<fid_mr> again;
    cr_assert_eq(fi_mr_reg(side.domain(), memory.data(), memory.size(), FI_REMOTE_READ, 0, key, 0,
                           again.out(), nullptr),
                 -FI_ENOKEY);
    DAT_MUST(mr.close());
    DAT_MUST(fi_mr_reg(side.domain(), memory.data(), memory.size(), FI_REMOTE_READ, 0, key, 0,
                       again.out(), nullptr));
}

// ofi_rxm registers so (OFI_MR_NOCACHE); a flag that means something is refused.
TRANSPORT_TEST(rma_region, that_is_not_to_be_cached__is_registered_like_any_other) {
    Side side(transport);
    Bytes memory(64);
    const auto result = [&](std::uint64_t flags) {
        Fid<fid_mr> mr;
        return fi_mr_reg(side.domain(), memory.data(), memory.size(), FI_SEND, 0, 1, flags,
                         mr.out(), nullptr);
    };
    cr_assert_eq(result(1ULL << 60), 0);
    cr_assert_eq(result(1ULL << 59), -FI_EBADFLAGS);
}

// A key that is asked for is ignored, so it need not be free, nor one that could be given. Some
// devices give such memory no remote key either.
TRANSPORT_TEST(rma_region, that_no_peer_may_reach__takes_no_key_and_is_closed) {
    Side side(transport);
    Bytes memory(64);
    Fid<fid_mr> taken;
    DAT_MUST(fi_mr_reg(side.domain(), memory.data(), memory.size(), FI_REMOTE_READ, 0, 1, 0,
                       taken.out(), nullptr));
    for (const std::uint64_t access :
         {std::uint64_t{FI_SEND | FI_RECV}, std::uint64_t{FI_READ | FI_WRITE}}) {
        Fid<fid_mr> regions[3];
        const std::uint64_t requested[] = {1, 2, std::uint64_t{1} << 40};
        for (std::size_t i = 0; i < 3; ++i) {
            DAT_MUST(fi_mr_reg(side.domain(), memory.data(), memory.size(), access, 0, requested[i],
                               0, regions[i].out(), nullptr));
            if (!transport.device)
                cr_assert_eq(fi_mr_key(regions[i].get()), FI_KEY_NOTAVAIL);
        }
        Fid<fid_mr> reached;
        DAT_MUST(fi_mr_reg(side.domain(), memory.data(), memory.size(), FI_REMOTE_READ, 0, 2, 0,
                           reached.out(), nullptr));
        cr_assert_neq(fi_mr_key(reached.get()), fi_mr_key(regions[1].get()));
        for (Fid<fid_mr>& mr : regions)
            DAT_MUST(mr.close());
    }
}

// The tagged offset of RFC 5041 has 64 bits: a region may be longer than any operation.
TRANSPORT_TEST(rma_region, longer_than_4_gib__is_reached_to_its_end_and_no_further) {
    only_dat();
    if (transport.device)
        cr_skip_test("a device holds all of it in memory");
    constexpr std::size_t kFar = (std::size_t{1} << 32) + 4096;
    constexpr std::size_t kLength = kFar + 8192;
    void* const at = mmap(nullptr, kLength, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        cr_skip_test("there is no room for 4 GiB of addresses");
    auto* const memory = static_cast<std::uint8_t*>(at);
    {
        auto pair = Pair::connected(transport);
        Fid<fid_mr> mr;
        DAT_MUST(fi_mr_reg(pair->far.domain(), memory, kLength, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                           5, 0, mr.out(), nullptr));
        const Remote begin{0, fi_mr_key(mr.get())};
        for (const std::size_t size : {std::size_t{8}, std::size_t{8192}}) {
            const std::size_t offset = kLength - size;
            const Bytes data = pattern(size, static_cast<unsigned>(size));
            wait_op(pair->active.write_confirmed(data.data(), size, {offset, begin.key}));
            cr_assert(same(memory + offset, data.data(), size));
            Bytes back(size);
            wait_op(pair->active.read(back.data(), size, {offset, begin.key}));
            cr_assert(back == data);
            // What the same offset would be without its upper half.
            cr_assert_eq(memory[offset - (std::size_t{1} << 32)], 0);
        }
        const std::uint64_t value = 0;
        Op& beyond = pair->active.write_confirmed(&value, 8, {kLength - 7, begin.key});
        wait_op(beyond);
        cr_assert_neq(beyond.err, 0);
        wait_shutdown(pair->active);
    }
    munmap(at, kLength);
}

// DTO-15: written data is there when a later message has arrived.
TRANSPORT_TEST(rma_order, write_then_send__is_visible_when_the_message_is) {
    constexpr std::size_t kRounds = 60;
    constexpr std::size_t kSize = 20'000;
    auto pair = Pair::connected(transport);
    Region memory(pair->far, kSize, kAll);
    for (std::size_t round = 1; round <= kRounds; ++round) {
        const std::size_t size = 1 + (round * 997) % kSize;
        const Bytes data(size, static_cast<std::uint8_t>(round));
        std::uint8_t note = 0;
        Op& receive = pair->passive().recv(&note, 1);
        Op& write = pair->active.write(data.data(), size, memory.at(0));
        Op& send = pair->active.send(data.data(), 1);
        wait_op(receive);
        cr_assert(receive.ok() && note == round);
        for (std::size_t i = 0; i < size; ++i)
            cr_assert_eq(memory.data()[i], round, "byte %zu of %zu", i, size);
        wait_op(write);
        wait_op(send);
    }
}

// U-61.
TRANSPORT_TEST(rma_level, confirmed_write__is_in_its_place) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, kSizes.back(), kAll);
    for (const std::size_t size : kSizes) {
        const Bytes data = pattern(size, static_cast<unsigned>(size) + 1);
        wait_op(pair->active.write_confirmed(data.data(), size, memory.at(0)));
        cr_assert(same(memory.data(), data.data(), size), "write of %zu", size);
    }
}

// DTO-15: the target's application hears nothing of a write.
TRANSPORT_TEST(rma_silence, write_and_read__make_no_completion_at_the_target) {
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 100, kAll);
    Bytes local(100, 1);
    wait_op(pair->active.write_confirmed(local.data(), local.size(), memory.at(0)));
    wait_op(pair->active.read(local.data(), local.size(), memory.at(0)));
    settle(20);
    cr_assert_eq(pair->far.completions(), 0);
}

// U-14, RDR-2: more reads than the peer takes at once wait at the initiator.
TRANSPORT_TEST(rma_reads, more_than_the_limit_outstanding__all_complete_in_order) {
    constexpr std::size_t kSize = 3000;
    auto pair = Pair::connected(transport);
    const std::size_t count = pair->near.info()->tx_attr->size;
    Region memory(pair->far, count * kSize, kAll);
    const Bytes data = pattern(memory.size());
    std::memcpy(memory.data(), data.data(), data.size());
    Bytes local(memory.size());
    std::vector<Op*> reads;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * kSize;
        reads.push_back(
            &pair->active.read(local.data() + at, kSize, memory.at(static_cast<std::int64_t>(at))));
    }
    wait_ops(reads);
    require_stream_order(reads);
    for (const Op* read : reads)
        cr_assert(read->ok());
    cr_assert(local == data);
}

// DTO-24: what is fenced takes its bytes when the reads before it have brought them.
TRANSPORT_TEST(rma_fence, on_each_operation__waits_for_the_reads_before_it) {
    only_dat();
    auto pair = Pair::connected(transport);
    constexpr std::size_t kSize = 1 << 20;
    Region source(pair->far, kSize, kAll);
    Region copy(pair->far, kSize, kAll);
    Region local(pair->near, kSize, kAll);
    const iovec iov{local.data(), kSize};
    const auto fenced = [&](auto call, const Region& region) -> Op& {
        const Remote remote = region.at(0);
        const fi_rma_iov rma{remote.address, kSize, remote.key};
        Op& op = new_op();
        const fi_msg_rma msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &rma, 1, &op, 0};
        DAT_MUST(static_cast<int>(call(pair->active.get(), &msg, FI_COMPLETION | FI_FENCE)));
        return op;
    };
    const auto fill = [&](unsigned seed) {
        const Bytes data = pattern(kSize, seed);
        std::copy_n(data.data(), kSize, source.data());
        return data;
    };

    Bytes data = fill(1);
    const Op& read = pair->active.read(local.data(), kSize, source.at(0));
    wait_op(fenced(fi_writemsg, copy));
    wait_op(fenced(fi_readmsg, copy)); // behind the write: it has arrived
    cr_assert(read.ok() && same(copy.data(), data.data(), kSize), "a write overtook the read");

    data = fill(2);
    Bytes in(kSize);
    Op& receive = pair->passive().recv(in.data(), kSize);
    pair->active.read(local.data(), kSize, source.at(0));
    const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &new_op(), 0};
    DAT_MUST(static_cast<int>(fi_sendmsg(pair->active.get(), &msg, FI_COMPLETION | FI_FENCE)));
    wait_op(receive);
    cr_assert(receive.ok() && same(in.data(), data.data(), kSize), "a message overtook the read");

    data = fill(3);
    pair->active.read(local.data(), kSize, copy.at(0));
    Op& second = fenced(fi_readmsg, source);
    wait_op(second);
    cr_assert(second.ok() && same(local.data(), data.data(), kSize), "a read overtook the read");
}

// Requests of all kinds complete in posting order (DISC-8).
TRANSPORT_TEST(rma_mixed, reads_writes_and_sends__complete_in_posting_order) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 40'000, kAll);
    Bytes local(40'000, 3);
    std::vector<Bytes> in(10, Bytes(2000));
    std::vector<Op*> receives;
    std::vector<Op*> requests;
    for (Bytes& buffer : in)
        receives.push_back(&pair->passive().recv(buffer.data(), buffer.size()));
    for (std::size_t i = 0; i < in.size(); ++i) {
        requests.push_back(&pair->active.read(local.data(), 20'000, memory.at(0)));
        requests.push_back(&pair->active.write(local.data() + 20'000, 20'000, memory.at(20'000)));
        requests.push_back(&pair->active.send(local.data() + 20'000, 2000));
    }
    wait_ops(requests);
    wait_ops(receives);
    require_stream_order(requests);
    require_stream_order(receives);
}

// Both sides read a lot from each other at once.
TRANSPORT_TEST(rma_reads, large_ones_both_ways__do_not_block_each_other) {
    constexpr std::size_t kSize = 2 << 20;
    auto pair = Pair::connected(transport);
    Region at_near(pair->near, kSize, kAll);
    Region at_far(pair->far, kSize, kAll);
    const Bytes near_data = pattern(kSize, 1);
    const Bytes far_data = pattern(kSize, 2);
    std::memcpy(at_near.data(), near_data.data(), kSize);
    std::memcpy(at_far.data(), far_data.data(), kSize);
    Bytes to_near(kSize);
    Bytes to_far(kSize);
    std::vector<Op*> reads;
    for (int i = 0; i < 4; ++i) {
        reads.push_back(&pair->active.read(to_near.data(), kSize, at_far.at(0)));
        reads.push_back(&pair->passive().read(to_far.data(), kSize, at_near.at(0)));
    }
    wait_ops(reads);
    cr_assert(to_near == far_data && to_far == near_data);
}

// FI_PROGRESS_AUTO: a target that polls nothing serves its peer.
static void serve_while_asleep(const Transport& transport) {
    SideOptions options;
    options.progress = FI_PROGRESS_AUTO;
    auto pair = Pair::connected(transport, options, options);
    Region memory(pair->far, 1 << 20, kAll);
    pair->far.asleep = true;
    const Bytes out = pattern(1 << 20);
    Bytes in(out.size());
    wait_op(pair->active.write_confirmed(out.data(), out.size(), memory.at(0)));
    Op& read = pair->active.read(in.data(), in.size(), memory.at(0));
    wait_op(read);
    cr_assert(read.ok() && in == out);
}
TRANSPORT_TEST(rma_progress, auto_and_the_target_never_polls__accesses_complete) {
    only_dat();
    serve_while_asleep(transport);
}

TRANSPORT_TEST(rma_segments, gathered_write_and_scattered_read__are_exact) {
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 70'000, kAll);
    Bytes out = pattern(70'000);
    Bytes in(70'000);
    const std::array<iovec, 4> gather{{{out.data(), 1},
                                       {out.data() + 1, 4000},
                                       {out.data() + 4001, 60'000},
                                       {out.data() + 64'001, 5'999}}};
    const std::array<iovec, 4> scatter{{{in.data(), 30'000},
                                        {in.data() + 30'000, 1},
                                        {in.data() + 30'001, 39'000},
                                        {in.data() + 69'001, 999}}};
    const Remote remote = memory.at(0);
    Op& written = new_op();
    DAT_MUST(fi_writev(pair->active.get(), gather.data(), nullptr, 4, FI_ADDR_UNSPEC,
                       remote.address, remote.key, &written));
    Op& read = new_op();
    DAT_MUST(post_when_possible([&] {
        return fi_readv(pair->active.get(), scatter.data(), nullptr, 4, FI_ADDR_UNSPEC,
                        remote.address, remote.key, &read);
    }));
    wait_op(written);
    wait_op(read);
    cr_assert(written.ok() && read.ok());
    cr_assert(in == out);
}

TRANSPORT_TEST(rma_inject, write__arrives_without_completion) {
    auto pair = Pair::connected(transport);
    const std::size_t size = pair->near.info()->tx_attr->inject_size;
    Region memory(pair->far, size, kAll);
    const Bytes out = pattern(size);
    Bytes scratch = out;
    const Remote to = memory.at(0);
    DAT_MUST(fi_inject_write(pair->active.get(), scratch.data(), size, FI_ADDR_UNSPEC, to.address,
                             to.key));
    std::fill(scratch.begin(), scratch.end(), std::uint8_t{0});
    std::uint8_t note = 0;
    Op& receive = pair->passive().recv(&note, 1);
    wait_op(pair->active.send(out.data(), 1));
    wait_op(receive);
    cr_assert(same(memory.data(), out.data(), size));
    cr_assert_eq(pair->near.completions(), 1, "the send's only");
}

// The last byte of a region is accessible: the boundary from inside.
TRANSPORT_TEST(rma_bounds, first_and_last_byte__are_accessible) {
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 4096, kAll);
    const std::uint8_t one = 1;
    std::uint8_t got = 0;
    for (const std::int64_t offset : {0, 4095}) {
        Op& write = pair->active.write_confirmed(&one, 1, memory.at(offset));
        wait_op(write);
        Op& read = pair->active.read(&got, 1, memory.at(offset));
        wait_op(read);
        cr_assert(write.ok() && read.ok() && got == 1);
    }
    cr_assert(memory.data()[0] == 1 && memory.data()[4095] == 1 && memory.guards_whole());
}

// The boundary from outside, by one byte, with offsets and with virtual addresses.
TRANSPORT_TEST(rma_bounds, write_behind_the_end__is_refused) {
    refuse_at(transport, 0, Access::write, 4096, 1);
}
TRANSPORT_TEST(rma_bounds, write_over_the_end__is_refused) {
    refuse_at(transport, 0, Access::write, 4090, 7);
}
TRANSPORT_TEST(rma_bounds, write_longer_than_the_region__is_refused) {
    refuse_at(transport, 0, Access::write, 0, 4097);
}
TRANSPORT_TEST(rma_bounds, write_before_the_start__is_refused) {
    refuse_at(transport, kBasicMode, Access::write, -1, 1);
}
TRANSPORT_TEST(rma_bounds, write_over_the_start__is_refused) {
    refuse_at(transport, kBasicMode, Access::write, -1, 2);
}
TRANSPORT_TEST(rma_bounds, write_that_wraps_round_the_address_space__is_refused) {
    refuse_at(transport, 0, Access::write, -1, 2);
}
TRANSPORT_TEST(rma_bounds, read_behind_the_end__is_refused) {
    refuse_at(transport, 0, Access::read, 4096, 1);
}
TRANSPORT_TEST(rma_bounds, read_over_the_end__is_refused) {
    refuse_at(transport, kBasicMode, Access::read, 4090, 7);
}
TRANSPORT_TEST(rma_bounds, read_before_the_start__is_refused) {
    refuse_at(transport, kBasicMode, Access::read, -1, 1);
}
TRANSPORT_TEST(rma_bounds, read_that_wraps_round_the_address_space__is_refused) {
    refuse_at(transport, 0, Access::read, -1, 2);
}

TRANSPORT_TEST(rma_rights, write_without_remote_write__is_refused) {
    refuse_right(transport, Access::write, kAll & ~FI_REMOTE_WRITE);
}
TRANSPORT_TEST(rma_rights, read_without_remote_read__is_refused) {
    refuse_right(transport, Access::read, kAll & ~FI_REMOTE_READ);
}

TRANSPORT_TEST(rma_key, that_was_never_given__is_refused) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 4096, kAll);
    require_refused(*pair, memory, Access::write, 16, {0, 0x7badbad});
}
TRANSPORT_TEST(rma_key, that_was_never_given__is_refused_for_reads) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 4096, kAll);
    require_refused(*pair, memory, Access::read, 16, {0, 0x7badbad});
}
TRANSPORT_TEST(rma_key, of_a_closed_region__is_refused) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 4096, kAll);
    const Remote remote = memory.at(0);
    memory.close();
    require_refused(*pair, memory, Access::write, 16, remote);
}
// The region is of the initiator's domain, not of the target's.
TRANSPORT_TEST(rma_key, of_another_domain__is_refused) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region mine(pair->near, 4096, kAll);
    require_refused(*pair, mine, Access::write, 16, mine.at(0));
}

// DISC-8: the refused one has its error, what follows is flushed, what came
// before has succeeded.
TRANSPORT_TEST(rma_refused, among_others__earlier_succeed_and_later_are_flushed) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 4096, kAll);
    const Bytes out = pattern(4096);
    std::vector<Op*> ops;
    for (int i = 0; i < 5; ++i)
        ops.push_back(&pair->active.write_confirmed(out.data(), out.size(), memory.at(0)));
    ops.push_back(&pair->active.write_confirmed(out.data(), 1, memory.at(4096)));
    for (int i = 0; i < 5; ++i)
        ops.push_back(&pair->active.write_confirmed(out.data(), 1, memory.at(0)));
    wait_shutdown(pair->active);
    wait_shutdown(pair->passive());
    require_once(ops);
    require_stream_order(ops);
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const int expected = i < 5 ? 0 : i == 5 ? FI_EACCES : FI_ECANCELED;
        cr_assert_eq(ops[i]->err, expected, "write %zu: %d", i, ops[i]->err);
    }
}

// RMA needs no receive, and takes none.
TRANSPORT_TEST(rma_without_receives, posted__leaves_them_alone) {
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 100, kAll);
    Bytes in(10);
    Op& receive = pair->passive().recv(in.data(), in.size());
    Bytes local(100, 9);
    wait_op(pair->active.write_confirmed(local.data(), local.size(), memory.at(0)));
    cr_assert(!receive.done());
    wait_op(pair->active.send(local.data(), 10));
    wait_op(receive);
    cr_assert(receive.ok() && in == Bytes(10, 9));
}
