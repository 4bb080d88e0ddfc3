// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: FI_EP_RDM. RDMA and atomics, and what counts them.
#include "rdm.h"
#include "suite.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace dat::test;

TRANSPORT_TEST(rdm, rdma_and_atomics__reach_the_memory_of_a_peer_and_its_own) {
    only_dat();
    Two two(transport);
    const fi_addr_t self = two.b.know(two.b);
    std::vector<std::uint64_t> memory(1000);
    fid_mr* mr = nullptr;
    DAT_MUST(fi_mr_reg(two.b.domain, memory.data(), memory.size() * 8,
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 42, 0, &mr, nullptr));
    const std::uint64_t base = two.b.at(memory.data());
    const std::uint64_t key = fi_mr_key(mr);
    const bool atomics = (transport.missing_caps & FI_ATOMIC) == 0;
    for (RdmNode* node : {&two.a, &two.b}) {
        const fi_addr_t to = node == &two.a ? two.to_b : self;
        std::vector<std::uint64_t> out(1000, 7);
        RdmOp& write = node->op();
        node->post(
            [&] { return fi_write(node->ep, out.data(), 8000, nullptr, to, base, key, &write); });
        RdmNode::wait(write);
        cr_assert(write.ok());
        std::uint64_t add = 5;
        std::uint64_t before = 0;
        RdmOp& atomic = node->op();
        if (atomics) {
            node->post([&] {
                return fi_fetch_atomic(node->ep, &add, 1, nullptr, &before, nullptr, to, base + 8,
                                       key, FI_UINT64, FI_SUM, &atomic);
            });
            RdmNode::wait(atomic);
            cr_assert(atomic.ok());
            cr_assert_eq(before, 7);
        }
        std::vector<std::uint64_t> in(1000);
        RdmOp& read = node->op();
        node->post(
            [&] { return fi_read(node->ep, in.data(), 8000, nullptr, to, base, key, &read); });
        RdmNode::wait(read);
        cr_assert(read.ok());
        cr_assert_eq(in[0], 7);
        cr_assert_eq(in[1], atomics ? 12 : 7);
        cr_assert(in == memory);
    }
    two.a.close();
    two.b.close();
    DAT_MUST(fi_close(&mr->fid));
}

// What an operation named its memory by has gone when others have its place.
TRANSPORT_TEST(rdm, a_descriptor_that_is_closed__is_not_looked_at_again) {
    only_dat();
    Two two(transport);
    std::array<char, 64> memory{};
    fid_mr* region = nullptr;
    DAT_MUST(fi_mr_reg(two.b.domain, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, 7, 0,
                       &region, nullptr));
    std::array<char, 64> out{};
    for (int i = 0; i < 70; ++i) { // more than a connection has places
        fid_mr* local = nullptr;
        DAT_MUST(
            fi_mr_reg(two.a.domain, out.data(), out.size(), FI_WRITE, 0, 100, 0, &local, nullptr));
        RdmOp& written = two.a.op();
        two.a.post([&] {
            return fi_write(two.a.ep, out.data(), out.size(), fi_mr_desc(local), two.to_b,
                            two.b.at(memory.data()), fi_mr_key(region), &written);
        });
        cr_assert(RdmNode::wait(written).ok());
        DAT_MUST(fi_close(&local->fid));
    }
    for (std::uint64_t tag = 0; tag < 70; ++tag) {
        for (const std::size_t size : {std::size_t{2000}, std::size_t{100'000}}) {
            Bytes in(size);
            const Bytes sent = pattern(size, static_cast<unsigned>(tag));
            RdmOp& receive = two.a.trecv(tag, in.data(), size);
            RdmOp& send = two.b.tsend(two.to_a, tag, sent.data(), size);
            cr_assert(RdmNode::wait(receive).ok() && RdmNode::wait(send).ok());
            cr_assert(in == sent);
            RdmOp& back = two.b.trecv(tag, in.data(), size);
            RdmOp& answer = two.a.tsend(two.to_b, tag, sent.data(), size);
            cr_assert(RdmNode::wait(back).ok() && RdmNode::wait(answer).ok());
        }
    }
    DAT_MUST(fi_close(&region->fid));
}

// MPICH's keys of windows have the uppermost bit.
TRANSPORT_TEST(rdm, keys_of_8_bytes__reach_the_memory_of_a_peer) {
    only_dat();
    Two two(transport);
    cr_assert_eq(two.a.info().domain_attr->mr_key_size, 8);
    constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
    constexpr std::uint64_t kKeys[] = {1, kTop | 1, kTop, kTop - 1, 0, ~std::uint64_t{0}};
    std::array<std::array<std::uint64_t, 100>, std::size(kKeys)> memory{};
    std::vector<fid_mr*> regions;
    const auto enter = [&](std::uint64_t key, std::array<std::uint64_t, 100>& at) {
        fid_mr* mr = nullptr;
        const int rc = fi_mr_reg(two.b.domain, at.data(), sizeof at,
                                 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &mr, nullptr);
        if (rc == 0) {
            cr_assert_eq(fi_mr_key(mr), key);
            regions.push_back(mr);
        }
        return rc;
    };
    for (std::size_t i = 0; i < std::size(kKeys); ++i) {
        cr_assert_eq(enter(kKeys[i], memory[i]), 0);
    }
    cr_assert_eq(enter(kTop | 1, memory[0]), -FI_ENOKEY);
    for (std::size_t i = 0; i < std::size(kKeys); ++i) {
        const std::uint64_t value = 7 + i;
        RdmOp& write = two.a.op();
        two.a.post(
            [&] { return fi_write(two.a.ep, &value, 8, nullptr, two.to_b, 8, kKeys[i], &write); });
        RdmOp& atomic = two.a.op();
        std::uint64_t before = 0;
        two.a.post([&] {
            return fi_fetch_atomic(two.a.ep, &value, 1, nullptr, &before, nullptr, two.to_b, 8,
                                   kKeys[i], FI_UINT64, FI_SUM, &atomic);
        });
        std::uint64_t in[2] = {};
        const iovec local{in, sizeof in};
        const fi_rma_iov parts[] = {{8, 8, kKeys[i]}, {0, 8, kKeys[i]}};
        RdmOp& read = two.a.op();
        fi_msg_rma message{};
        message.msg_iov = &local;
        message.iov_count = 1;
        message.addr = two.to_b;
        message.rma_iov = parts;
        message.rma_iov_count = 2;
        message.context = &read;
        two.a.post([&] { return fi_readmsg(two.a.ep, &message, FI_COMPLETION); });
        RdmNode::wait(read);
        cr_assert(write.ok() && atomic.ok() && read.ok());
        cr_assert_eq(before, value);
        cr_assert_eq(in[0], 2 * value);
        cr_assert_eq(in[1], 0);
        cr_assert_eq(memory[i][1], 2 * value);
    }
    two.a.close();
    two.b.close();
    for (fid_mr* mr : regions) {
        DAT_MUST(fi_close(&mr->fid));
    }
}

// MPICH's dynamic windows: NULL and all bytes there can be, before there is any memory.
TRANSPORT_TEST(rdm, a_region_of_all_memory__is_what_is_mapped_when_a_peer_comes) {
    only_dat();
    Two two(transport);
    constexpr std::uint64_t kRights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    fid_mr* mr = nullptr;
    cr_assert_eq(fi_mr_reg(two.b.domain, nullptr, 4096, kRights, 0, 42, 0, &mr, nullptr),
                 -FI_EINVAL);
    DAT_MUST(fi_mr_reg(two.b.domain, nullptr, SIZE_MAX, kRights, 0, 42, 0, &mr, nullptr));
    constexpr std::size_t kSize = 100000;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const mapped =
        mmap(nullptr, kSize + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(mapped != MAP_FAILED);
    auto* const memory = static_cast<std::uint8_t*>(mapped);
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::vector<std::uint8_t> out(kSize, 7);
    std::vector<std::uint8_t> in(kSize);
    std::uint64_t before = 0;
    const std::uint64_t add = 5;
    const auto carried_out = [&](const std::function<ssize_t(RdmOp&)>& call) {
        RdmOp& op = two.a.op();
        two.a.post([&] { return call(op); });
        RdmNode::wait(op);
        return op.ok();
    };
    const auto write = [&](std::uintptr_t at) {
        return carried_out([&](RdmOp& op) {
            const iovec local{const_cast<std::uint8_t*>(out.data()), kSize};
            const fi_rma_iov there{at, kSize, 42};
            fi_msg_rma message{};
            message.msg_iov = &local;
            message.iov_count = 1;
            message.addr = two.to_b;
            message.rma_iov = &there;
            message.rma_iov_count = 1;
            message.context = &op;
            return fi_writemsg(two.a.ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
        });
    };
    const auto read = [&](std::uintptr_t at) {
        return carried_out([&](RdmOp& op) {
            return fi_read(two.a.ep, in.data(), kSize, nullptr, two.to_b, at, 42, &op);
        });
    };
    const auto sum = [&](std::uintptr_t at) {
        return carried_out([&](RdmOp& op) {
            return fi_fetch_atomic(two.a.ep, &add, 1, nullptr, &before, nullptr, two.to_b, at, 42,
                                   FI_UINT64, FI_SUM, &op);
        });
    };
    cr_assert(write(address) && read(address) && sum(address));
    cr_assert(in == out);
    cr_assert_eq(before, 0x0707070707070707);
    cr_assert_eq(memory[0], 12);
    // What is not mapped, or not so, and what no process has.
    cr_assert_eq(mprotect(memory, page, PROT_READ), 0);
    cr_assert(read(address));
    cr_assert(!write(address));
    cr_assert(!sum(address));
    cr_assert_eq(mprotect(memory, page, PROT_NONE), 0);
    cr_assert(!read(address));
    cr_assert(!read(0));
    cr_assert(!write(0));
    cr_assert(!read(UINTPTR_MAX - kSize));
    cr_assert(read(address + page));
    two.a.close();
    two.b.close();
    DAT_MUST(fi_close(&mr->fid));
    cr_assert_eq(munmap(memory, kSize + 2 * page), 0);
}

// So MPICH waits for what it has put.
TRANSPORT_TEST(rdm, an_injected_write__is_counted_at_the_level_of_the_endpoint) {
    only_dat();
    RdmNode::Options options;
    options.counters = true;
    options.tx_op_flags = FI_DELIVERY_COMPLETE;
    Two two(transport, options);
    std::vector<std::uint64_t> memory(2);
    fid_mr* mr = nullptr;
    DAT_MUST(fi_mr_reg(two.b.domain, memory.data(), memory.size() * 8,
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 42, 0, &mr, nullptr));
    const auto there = [&](std::size_t i) { return std::atomic_ref(memory[i]).load() == 7; };
    const std::uint64_t value = 7;
    const auto inject = [&](std::size_t i) {
        two.a.post([&] { return fi_inject_write(two.a.ep, &value, 8, two.to_b, i * 8, 42); });
    };
    inject(0);
    RdmNode::wait_until([&] { return fi_cntr_read(two.a.written) == 1; }, "the counter");
    cr_assert(there(0));
    // Of a peer that nobody moves.
    inject(1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (std::chrono::steady_clock::now() < end) {
        const bool counted = fi_cntr_read(two.a.written) == 2;
        cr_assert(!counted || there(1));
        two.a.poll();
    }
    RdmNode::wait_until([&] { return fi_cntr_read(two.a.written) == 2; }, "the counter");
    cr_assert(there(1));
    const std::uint64_t one = 1;
    two.a.post(
        [&] { return fi_inject_atomic(two.a.ep, &one, 1, two.to_b, 0, 42, FI_UINT64, FI_SUM); });
    RdmNode::wait_until([&] { return fi_cntr_read(two.a.written) == 3; }, "the counter");
    cr_assert_eq(memory[0], 8);
    two.a.close();
    two.b.close();
    DAT_MUST(fi_close(&mr->fid));
}

// A large message is read by its receiver, which is the provider's affair (fi_cntr(3):
// FI_REMOTE_READ counts operations of the peer's program).
TRANSPORT_TEST(rdm, reads_of_a_peer__are_counted_and_messages_that_it_reads_are_not) {
    only_dat();
    RdmNode::Options options;
    options.counters = true;
    Two two(transport, options);
    Bytes out = pattern(std::size_t{4} << 20, 1);
    Bytes in(out.size());
    const auto send_to_b = [&] {
        RdmOp& receive = two.b.trecv(1, in.data(), in.size());
        cr_assert(RdmNode::wait(two.a.tsend(two.to_b, 1, out.data(), out.size())).ok());
        cr_assert(RdmNode::wait(receive).ok());
    };
    send_to_b();
    cr_assert_eq(fi_cntr_read(two.a.read_by_peers), 0);
    fid_mr* mr = nullptr;
    DAT_MUST(
        fi_mr_reg(two.a.domain, out.data(), out.size(), FI_REMOTE_READ, 0, 42, 0, &mr, nullptr));
    const fi_addr_t to_a = two.b.know(two.a);
    RdmOp& read = two.b.op();
    two.b.post([&] { return fi_read(two.b.ep, in.data(), 1000, nullptr, to_a, 0, 42, &read); });
    cr_assert(RdmNode::wait(read).ok());
    RdmNode::wait_until([&] { return fi_cntr_read(two.a.read_by_peers) == 1; }, "the counter");
    DAT_MUST(fi_close(&mr->fid));
    send_to_b();
    cr_assert_eq(fi_cntr_read(two.a.read_by_peers), 1);
}
