// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: FI_EP_RDM. Matching, large and unexpected messages, peers that come, cross, go
// and come again, RDMA, atomics, receives for several messages.
#include "rdm.h"
#include "suite.h"

#include <algorithm>
#include <array>
#include <memory>

using namespace dat::test;

namespace {

const std::vector<std::size_t> kSizes{
    0,     1,     7,     64,    72,    96,    97,    128,   1024,   4096,    16000,
    16352, 16353, 16384, 16385, 24576, 65536, 65537, 98304, 262144, 1 << 20, (4 << 20) + 3};

void check(const RdmOp& op, const Bytes& in, std::size_t size, std::uint64_t tag) {
    cr_assert(op.ok(), "size %zu: error %d, %d completions", size, op.err, op.completions);
    cr_assert_eq(op.entry.len, size, "%zu of %zu", op.entry.len, size);
    cr_assert_eq(op.entry.tag, tag);
    const Bytes expected = pattern(size, static_cast<unsigned>(tag));
    cr_assert(same(in.data(), expected.data(), size), "size %zu arrived wrong", size);
}

} // namespace

TRANSPORT_TEST(rdm, tagged_messages_of_all_sizes__arrive_where_the_receive_was_first) {
    only_dat();
    Two two(transport);
    for (const std::size_t size : kSizes) {
        Bytes in(size + 1, 0xaa);
        const Bytes out = pattern(size, static_cast<unsigned>(size));
        RdmOp& receive = two.b.trecv(size, in.data(), size);
        RdmOp& send = two.a.tsend(two.to_b, size, out.data(), size);
        RdmNode::wait(receive);
        RdmNode::wait(send);
        cr_assert(send.ok());
        check(receive, in, size, size);
        cr_assert_eq(in[size], 0xaa);
        cr_assert_eq(receive.entry.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
    }
}

TRANSPORT_TEST(rdm, unexpected_messages_of_all_sizes__arrive_by_their_tags_in_any_order) {
    only_dat();
    Two two(transport);
    std::vector<Bytes> out;
    std::vector<RdmOp*> sends;
    for (const std::size_t size : kSizes) {
        out.push_back(pattern(size, static_cast<unsigned>(size)));
        sends.push_back(&two.a.tsend(two.to_b, size, out.back().data(), size));
    }
    Bytes last(1);
    two.a.tsend(two.to_b, 77, last.data(), 1);
    RdmOp& behind = two.b.trecv(77, last.data(), 1); // so that all before it are there
    RdmNode::wait(behind);
    for (std::size_t i = kSizes.size(); i-- > 0;) {
        Bytes in(kSizes[i]);
        check(RdmNode::wait(two.b.trecv(kSizes[i], in.data(), in.size())), in, kSizes[i],
              kSizes[i]);
        cr_assert(RdmNode::wait(*sends[i]).ok());
    }
}

TRANSPORT_TEST(rdm, what_both_send_first__crosses_and_arrives) {
    only_dat();
    for (int round = 0; round < 10; ++round) {
        Two two(transport);
        Bytes in_a(100);
        Bytes in_b(100);
        const Bytes out = pattern(100, 5);
        RdmOp& at_a = two.a.trecv(5, in_a.data(), 100);
        RdmOp& at_b = two.b.trecv(5, in_b.data(), 100);
        RdmOp& from_a = two.a.tsend(two.to_b, 5, out.data(), 100);
        RdmOp& from_b = two.b.tsend(two.to_a, 5, out.data(), 100);
        for (RdmOp* op : {&at_a, &at_b, &from_a, &from_b}) {
            cr_assert(RdmNode::wait(*op).ok());
        }
        check(at_a, in_a, 100, 5);
        check(at_b, in_b, 100, 5);
    }
}

TRANSPORT_TEST(rdm, a_receive_takes__by_tag_ignored_bits_and_source) {
    only_dat();
    Two two(transport);
    RdmNode c(transport);
    const fi_addr_t from_c = c.know(two.b);
    const fi_addr_t c_at_b = two.b.know(c);
    std::array<char, 4> in{};
    RdmOp& of_c = two.b.trecv(0, in.data(), 1, ~0ull, c_at_b);
    RdmOp& masked = two.b.trecv(0x10, in.data() + 1, 1, 0x0f);
    RdmOp& any = two.b.trecv(0, in.data() + 2, 1, ~0ull);
    two.a.tsend(two.to_b, 0x99, "a", 1);
    RdmNode::wait(any);
    two.a.tsend(two.to_b, 0x1f, "b", 1);
    RdmNode::wait(masked);
    c.tsend(from_c, 0x1f, "c", 1);
    RdmNode::wait(of_c);
    cr_assert(of_c.ok() && masked.ok() && any.ok());
    cr_assert_eq(in[0], 'c');
    cr_assert_eq(in[1], 'b');
    cr_assert_eq(in[2], 'a');
    cr_assert_eq(any.entry.tag, 0x99);
    cr_assert_eq(masked.entry.tag, 0x1f);
    cr_assert_eq(of_c.source, c_at_b);
    cr_assert_eq(any.source, two.to_a);
}

TRANSPORT_TEST(rdm, messages_of_one_sender__are_received_in_their_order) {
    only_dat();
    Two two(transport);
    constexpr int kCount = 400;
    std::vector<std::uint32_t> in(kCount);
    std::vector<Bytes> large(kCount, Bytes(20000));
    std::vector<RdmOp*> receives;
    std::vector<RdmOp*> sends;
    Bytes got(20000);
    for (int i = 0; i < kCount; ++i) {
        // Some are announced, some are not.
        std::memcpy(large[static_cast<std::size_t>(i)].data(), &i, sizeof i);
        sends.push_back(&two.a.tsend(two.to_b, 1, large[static_cast<std::size_t>(i)].data(),
                                     i % 3 == 0 ? 20000 : 4));
        if (i % 2 == 0) {
            RdmNode::poll_all();
        }
    }
    for (int i = 0; i < kCount; ++i) {
        RdmOp& receive = two.b.trecv(1, got.data(), got.size(), i % 5 == 0 ? 0xff00 : 0);
        RdmNode::wait(receive);
        int number = -1;
        std::memcpy(&number, got.data(), sizeof number);
        cr_assert_eq(number, i);
    }
    for (RdmOp* send : sends) {
        cr_assert(RdmNode::wait(*send).ok());
    }
}

// The window of a peer is 256 KiB by default: most of them wait at their sender.
TRANSPORT_TEST(rdm, a_flood_without_receives__does_not_keep_its_last_message_back) {
    only_dat();
    Two two(transport);
    constexpr std::uint64_t kCount = 20000;
    const Bytes out = pattern(64, 3);
    for (std::uint64_t i = 0; i < kCount; ++i) {
        two.a.post([&] { return fi_tinject(two.a.ep, out.data(), 64, two.to_b, i); });
    }
    Bytes in(64);
    RdmOp& last = two.b.trecv(kCount - 1, in.data(), 64);
    RdmNode::wait(last);
    cr_assert(last.ok());
    cr_assert(same(in.data(), out.data(), 64));
    for (std::uint64_t i = 0; i < kCount - 1; ++i) {
        cr_assert(RdmNode::wait(two.b.trecv(i, in.data(), 64)).ok());
    }
}

TRANSPORT_TEST(rdm, a_message_longer_than_its_receive__fills_it_and_says_by_how_much) {
    only_dat();
    Two two(transport);
    for (const std::size_t size :
         {std::size_t{100}, std::size_t{15'000}, std::size_t{60'000}, std::size_t{100'000}}) {
        for (const bool first : {true, false}) {
            const Bytes out = pattern(size, 9);
            Bytes in(61, 0xaa);
            RdmOp* receive = first ? &two.b.trecv(9, in.data(), 60) : nullptr;
            RdmOp& send = two.a.tsend(two.to_b, 9, out.data(), size);
            if (!first) {
                for (int i = 0; i < 100; ++i) {
                    RdmNode::poll_all();
                }
                receive = &two.b.trecv(9, in.data(), 60);
            }
            RdmNode::wait(*receive);
            RdmNode::wait(send);
            cr_assert(send.ok());
            cr_assert_eq(receive->err, FI_ETRUNC);
            cr_assert_eq(receive->olen, size - 60);
            cr_assert_eq(receive->entry.tag, 9);
            cr_assert(same(in.data(), out.data(), 60));
            cr_assert_eq(in[60], 0xaa);
        }
    }
}

// Of up to four segments at either side, whichever way a payload of that length goes.
TRANSPORT_TEST(rdm, segments_of_both_sides__hold_one_message) {
    only_dat();
    Two two(transport);
    for (const std::size_t size :
         {std::size_t{90}, std::size_t{15'000}, std::size_t{20'000}, std::size_t{65'535},
          std::size_t{66'000}, std::size_t{1} << 20}) {
        for (const bool first : {true, false}) {
            for (std::size_t cut = 0; cut < 4; ++cut) {
                const Bytes out = pattern(size, static_cast<unsigned>(cut));
                Bytes in(size + 1, 0xaa);
                const auto segments = [&](const Bytes& of, std::size_t pieces) {
                    std::vector<iovec> iov;
                    std::size_t at = 0;
                    for (std::size_t i = 0; i < pieces; ++i) {
                        const std::size_t end =
                            i + 1 == pieces ? size : size * (i + 1) / (pieces + 1);
                        iov.push_back({const_cast<std::uint8_t*>(of.data()) + at, end - at});
                        at = end;
                    }
                    return iov;
                };
                const auto from = segments(out, 1 + cut);
                const auto to = segments(in, 4 - cut);
                RdmOp& receive = two.b.op();
                const auto post_receive = [&] {
                    two.b.post([&] {
                        return fi_trecvv(two.b.ep, to.data(), nullptr, to.size(), FI_ADDR_UNSPEC, 3,
                                         0, &receive);
                    });
                };
                if (first) {
                    post_receive();
                }
                RdmOp& send = two.a.op();
                two.a.post([&] {
                    return fi_tsendv(two.a.ep, from.data(), nullptr, from.size(), two.to_b, 3,
                                     &send);
                });
                if (!first) {
                    two.a.tsend(two.to_b, 4, "", 0);
                    RdmNode::wait(two.b.trecv(4, nullptr, 0));
                    post_receive();
                }
                cr_assert(RdmNode::wait(receive).ok() && RdmNode::wait(send).ok());
                cr_assert_eq(receive.entry.len, size);
                cr_assert(same(in.data(), out.data(), size), "%zu bytes, cut %zu", size, cut);
                cr_assert_eq(in[size], 0xaa);
            }
        }
    }
}

TRANSPORT_TEST(rdm, remote_data_of_8_bytes__comes_along) {
    only_dat();
    Two two(transport);
    constexpr std::uint64_t kData = 0x123456789abcdef0;
    for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{200000}}) {
        const Bytes out = pattern(size, 2);
        Bytes in(size);
        RdmOp& receive = two.b.trecv(2, in.data(), size);
        RdmOp& send = two.a.op();
        two.a.post([&] {
            return fi_tsenddata(two.a.ep, out.data(), size, nullptr, kData, two.to_b, 2, &send);
        });
        RdmNode::wait(receive);
        RdmNode::wait(send);
        check(receive, in, size, 2);
        cr_assert_neq(receive.entry.flags & FI_REMOTE_CQ_DATA, 0);
        cr_assert_eq(receive.entry.data, kData);
    }
    two.a.post([&] { return fi_tinjectdata(two.a.ep, "x", 1, kData + 1, two.to_b, 3); });
    char got = 0;
    RdmOp& receive = RdmNode::wait(two.b.trecv(3, &got, 1));
    cr_assert_eq(receive.entry.data, kData + 1);
    cr_assert_eq(got, 'x');
}

TRANSPORT_TEST(rdm, peek_claim_and_discard__see_and_take_what_is_there) {
    only_dat();
    Two two(transport);
    const auto peek = [&](std::uint64_t tag, std::uint64_t flags, RdmOp& op) -> RdmOp& {
        fi_msg_tagged msg{};
        msg.addr = FI_ADDR_UNSPEC;
        msg.tag = tag;
        msg.context = &op;
        op.completions = 0;
        op.err = 0;
        two.b.post([&] { return fi_trecvmsg(two.b.ep, &msg, flags); });
        return RdmNode::wait(op);
    };
    cr_assert_eq(peek(1, FI_PEEK, two.b.op()).err, FI_ENOMSG);
    const Bytes out = pattern(70000, 1);
    for (const std::size_t size : {std::size_t{50}, std::size_t{70000}}) {
        std::vector<RdmOp*> sends;
        for (int i = 0; i < 3; ++i) {
            sends.push_back(&two.a.tsend(two.to_b, 1, out.data(), size));
        }
        RdmOp* seen = nullptr;
        do {
            RdmNode::poll_all();
            seen = &peek(1, FI_PEEK, two.b.op());
        } while (seen->err == FI_ENOMSG);
        cr_assert(seen->ok());
        cr_assert_eq(seen->entry.len, size);
        cr_assert_eq(seen->source, two.to_a);
        // The first is claimed, the second discarded, the third received before the first.
        RdmOp& claim = two.b.op();
        cr_assert(peek(1, FI_PEEK | FI_CLAIM, claim).ok());
        RdmNode::wait_until([&] { return peek(1, FI_PEEK | FI_DISCARD, two.b.op()).ok(); },
                            "the second");
        Bytes third(size);
        check(RdmNode::wait(two.b.trecv(1, third.data(), size)), third, size, 1);
        Bytes in(size);
        iovec iov{in.data(), size};
        fi_msg_tagged msg{};
        msg.msg_iov = &iov;
        msg.iov_count = 1;
        msg.addr = FI_ADDR_UNSPEC;
        msg.tag = 1;
        msg.context = &claim;
        claim.completions = 0;
        two.b.post([&] { return fi_trecvmsg(two.b.ep, &msg, FI_CLAIM); });
        check(RdmNode::wait(claim), in, size, 1);
        for (RdmOp* send : sends) {
            cr_assert(RdmNode::wait(*send).ok());
        }
    }
}

TRANSPORT_TEST(rdm, a_cancelled_receive__completes_so_and_takes_nothing) {
    only_dat();
    Two two(transport);
    char in[2] = {};
    RdmOp& first = two.b.trecv(4, in, 1);
    RdmOp& second = two.b.trecv(4, in + 1, 1);
    cr_assert_eq(fi_cancel(&two.b.ep->fid, &first), 0);
    cr_assert_eq(RdmNode::wait(first).err, FI_ECANCELED);
    cr_assert_eq(fi_cancel(&two.b.ep->fid, &first), -FI_ENOENT);
    two.a.tsend(two.to_b, 4, "z", 1);
    cr_assert(RdmNode::wait(second).ok());
    cr_assert_eq(in[1], 'z');
}

TRANSPORT_TEST(rdm, a_delivered_message__is_in_its_receive_when_its_sender_is_told) {
    only_dat();
    Two two(transport);
    for (const std::size_t size : {std::size_t{8}, std::size_t{100000}}) {
        Bytes out = pattern(size, 6);
        RdmOp& send = two.a.op();
        iovec iov{out.data(), size};
        fi_msg_tagged msg{};
        msg.msg_iov = &iov;
        msg.iov_count = 1;
        msg.addr = two.to_b;
        msg.tag = 6;
        msg.context = &send;
        two.a.post(
            [&] { return fi_tsendmsg(two.a.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION); });
        for (int i = 0; i < 200; ++i) {
            RdmNode::poll_all();
        }
        cr_assert(!send.done());
        Bytes in(size);
        RdmOp& receive = two.b.trecv(6, in.data(), size);
        RdmNode::wait(send);
        cr_assert(send.ok() && same(in.data(), out.data(), size));
        check(RdmNode::wait(receive), in, size, 6);
    }
}

TRANSPORT_TEST(rdm, a_message_to_itself__arrives_whatever_comes_first) {
    only_dat();
    RdmNode a(transport);
    const fi_addr_t self = a.know(a);
    for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{300000}}) {
        const Bytes out = pattern(size, 8);
        for (const bool first : {true, false}) {
            Bytes in(size);
            RdmOp* receive = first ? &a.trecv(8, in.data(), size, 0, self) : nullptr;
            RdmOp& send = a.tsend(self, 8, out.data(), size);
            receive = first ? receive : &a.trecv(8, in.data(), size, 0, self);
            check(RdmNode::wait(*receive), in, size, 8);
            cr_assert(RdmNode::wait(send).ok());
            cr_assert_eq(receive->source, self);
        }
    }
}

TRANSPORT_TEST(rdm, rdma_and_atomics__reach_the_memory_of_a_peer_and_its_own) {
    only_dat();
    Two two(transport);
    const fi_addr_t self = two.b.know(two.b);
    std::vector<std::uint64_t> memory(1000);
    fid_mr* mr = nullptr;
    DAT_MUST(fi_mr_reg(two.b.domain, memory.data(), memory.size() * 8,
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 42, 0, &mr, nullptr));
    for (RdmNode* node : {&two.a, &two.b}) {
        const fi_addr_t to = node == &two.a ? two.to_b : self;
        std::vector<std::uint64_t> out(1000, 7);
        RdmOp& write = node->op();
        node->post(
            [&] { return fi_write(node->ep, out.data(), 8000, nullptr, to, 0, 42, &write); });
        RdmNode::wait(write);
        cr_assert(write.ok());
        std::uint64_t add = 5;
        std::uint64_t before = 0;
        RdmOp& atomic = node->op();
        node->post([&] {
            return fi_fetch_atomic(node->ep, &add, 1, nullptr, &before, nullptr, to, 8, 42,
                                   FI_UINT64, FI_SUM, &atomic);
        });
        RdmNode::wait(atomic);
        cr_assert(atomic.ok());
        cr_assert_eq(before, 7);
        std::vector<std::uint64_t> in(1000);
        RdmOp& read = node->op();
        node->post([&] { return fi_read(node->ep, in.data(), 8000, nullptr, to, 0, 42, &read); });
        RdmNode::wait(read);
        cr_assert(read.ok());
        cr_assert_eq(in[0], 7);
        cr_assert_eq(in[1], 12);
        cr_assert(in == memory);
    }
    two.a.close();
    two.b.close();
    DAT_MUST(fi_close(&mr->fid));
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

TRANSPORT_TEST(rdm, a_receive_for_several__takes_them_one_behind_the_other) {
    only_dat();
    Two two(transport);
    Bytes in(5000);
    const std::size_t least = 1000;
    DAT_MUST(
        fi_setopt(&two.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    RdmOp& several = two.b.op();
    iovec iov{in.data(), in.size()};
    fi_msg msg{};
    msg.msg_iov = &iov;
    msg.iov_count = 1;
    msg.addr = FI_ADDR_UNSPEC;
    msg.context = &several;
    two.b.post([&] { return fi_recvmsg(two.b.ep, &msg, FI_MULTI_RECV); });
    for (unsigned i = 0; i < 5; ++i) {
        const Bytes out = pattern(900, i);
        RdmOp& send = two.a.op();
        two.a.post([&] { return fi_send(two.a.ep, out.data(), 900, nullptr, two.to_b, &send); });
        RdmNode::wait_until([&] { return several.completions == static_cast<int>(i) + 1; },
                            "a message");
        cr_assert_eq(several.err, 0);
        cr_assert_eq(several.entry.len, 900);
        cr_assert(same(several.entry.buf, out.data(), 900));
        cr_assert_eq((several.entry.flags & FI_MULTI_RECV) != 0, i == 4);
        cr_assert(RdmNode::wait(send).ok());
    }
}

TRANSPORT_TEST(rdm, nobody_at_an_address__is_told_to_what_was_sent_there) {
    only_dat();
    RdmNode a(transport);
    std::string gone;
    {
        RdmNode b(transport);
        gone = b.address();
    }
    const fi_addr_t to = a.know(gone);
    std::vector<RdmOp*> sends;
    for (int i = 0; i < 10; ++i) {
        sends.push_back(&a.tsend(to, 1, "x", 1));
    }
    for (RdmOp* send : sends) {
        cr_assert_eq(RdmNode::wait(*send).err, FI_ECANCELED);
    }
    cr_assert_eq(RdmNode::wait(a.tsend(to, 1, "x", 1)).err, FI_ECANCELED);
}

TRANSPORT_TEST(rdm, what_was_sent_before_an_endpoint_is_closed__arrives) {
    only_dat();
    RdmNode b(transport);
    const Bytes out = pattern(90, 4);
    for (const bool connected : {false, true}) {
        RdmNode a(transport);
        const fi_addr_t to_b = a.know(b);
        if (connected) {
            a.tsend(to_b, 0, "", 0);
            RdmNode::wait(b.trecv(0, nullptr, 0));
        }
        for (int i = 0; i < 50; ++i) {
            a.post([&] { return fi_tinject(a.ep, out.data(), 90, to_b, 4); });
        }
        a.close();
        Bytes in(90);
        for (int i = 0; i < 50; ++i) {
            check(RdmNode::wait(b.trecv(4, in.data(), 90)), in, 90, 4);
        }
        RdmOp& beyond = b.trecv(0, in.data(), 1, ~0ull);
        for (int i = 0; i < 100; ++i) {
            RdmNode::poll_all();
        }
        cr_assert(!beyond.done());
        DAT_MUST(static_cast<int>(fi_cancel(&b.ep->fid, &beyond)));
        RdmNode::wait(beyond);
    }
}

TRANSPORT_TEST(rdm, another_endpoint_at_the_same_address__is_connected_anew) {
    only_dat();
    RdmNode a(transport);
    std::uint16_t port = 0;
    fi_addr_t to_b = FI_ADDR_NOTAVAIL;
    for (int life = 0; life < 3; ++life) {
        RdmNode::Options options;
        options.port = port;
        RdmNode b(transport, options);
        if (life == 0) {
            to_b = a.know(b);
            port = b.port();
        }
        const fi_addr_t to_a = b.know(a);
        char in = 0;
        RdmOp& receive = b.trecv(1, &in, 1);
        // What is still meant for the one before may be told to be over.
        RdmNode::wait_until(
            [&] {
                if (!receive.done()) {
                    RdmNode::wait(a.tsend(to_b, 1, "q", 1));
                    for (int i = 0; i < 100; ++i) {
                        RdmNode::poll_all();
                    }
                }
                return receive.done();
            },
            "a message to the next");
        cr_assert_eq(in, 'q');
        RdmOp& back = a.trecv(2, &in, 1);
        b.tsend(to_a, 2, "r", 1);
        cr_assert(RdmNode::wait(back).ok());
        cr_assert_eq(back.source, to_b);
    }
}

// A large message that waits for its receive, and receives that name who will never send.
TRANSPORT_TEST(rdm, what_is_outstanding_with_a_peer_that_closes__completes_once) {
    only_dat();
    RdmNode a(transport);
    auto b = std::make_unique<RdmNode>(transport);
    RdmNode c(transport);
    const fi_addr_t to_b = a.know(*b);
    const fi_addr_t c_at_a = a.know(c);
    const Bytes large = pattern(1 << 20, 1);
    RdmOp& announced = a.tsend(to_b, 1, large.data(), large.size());
    a.tsend(to_b, 2, "", 0);
    RdmNode::wait(b->trecv(2, nullptr, 0));
    Bytes in(10);
    RdmOp& of_c = a.trecv(3, in.data(), 10, 0, c_at_a);
    RdmOp& of_any = a.trecv(4, in.data(), 10);
    b.reset();
    cr_assert_eq(RdmNode::wait(announced).err, FI_ECANCELED);
    cr_assert_eq(announced.completions, 1);
    const fi_addr_t to_a = c.know(a);
    c.tsend(to_a, 3, "yes", 3);
    c.tsend(to_a, 4, "too", 3);
    cr_assert(RdmNode::wait(of_c).ok());
    cr_assert(RdmNode::wait(of_any).ok());
}

TRANSPORT_TEST(rdm, counters__count_messages_of_every_kind) {
    only_dat();
    RdmNode::Options options;
    options.counters = true;
    Two two(transport, options);
    std::uint64_t count = 0;
    for (const std::size_t size : {std::size_t{1}, std::size_t{500}, std::size_t{50000}}) {
        Bytes out = pattern(size, 1);
        Bytes in(size);
        RdmOp& receive = two.b.trecv(1, in.data(), size);
        RdmNode::wait(two.a.tsend(two.to_b, 1, out.data(), size));
        RdmNode::wait(receive);
        ++count;
        cr_assert_eq(fi_cntr_read(two.a.sent), count);
        cr_assert_eq(fi_cntr_read(two.b.received), count);
    }
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

TRANSPORT_TEST(rdm, a_thread_that_sleeps__is_woken_by_a_message) {
    only_dat();
    RdmNode::Options options;
    options.wait = FI_WAIT_FD;
    Two two(transport, options);
    for (const std::size_t size : {std::size_t{10}, std::size_t{100000}}) {
        Bytes in(size);
        const Bytes out = pattern(size, 1);
        RdmOp& receive = two.b.trecv(1, in.data(), size);
        two.a.tsend(two.to_b, 1, out.data(), size);
        fi_cq_tagged_entry entry{};
        ssize_t got = -FI_EAGAIN;
        for (int i = 0; i < 2000 && got == -FI_EAGAIN; ++i) {
            got = fi_cq_sread(two.b.cq, &entry, 1, nullptr, 10);
            two.a.poll();
        }
        cr_assert_eq(got, 1);
        cr_assert_eq(entry.op_context, &receive);
        cr_assert_eq(entry.len, size);
    }
}

TRANSPORT_TEST(rdm, many_endpoints__all_send_to_all) {
    only_dat();
    constexpr std::size_t kCount = 12;
    std::vector<std::unique_ptr<RdmNode>> nodes;
    for (std::size_t i = 0; i < kCount; ++i) {
        RdmNode::Options options;
        options.domain_of = i > 0 ? nodes[0].get() : nullptr;
        nodes.push_back(std::make_unique<RdmNode>(transport, options));
    }
    std::vector<fi_addr_t> at;
    for (const auto& each : nodes) {
        at.push_back(nodes[0]->know(*each));
    }
    std::vector<Bytes> in(kCount * kCount, Bytes(200));
    std::vector<RdmOp*> ops;
    const Bytes out = pattern(200, 1);
    for (std::size_t i = 0; i < kCount; ++i) {
        for (std::size_t k = 0; k < kCount; ++k) {
            ops.push_back(&nodes[i]->trecv(k, in[i * kCount + k].data(), 200, 0, at[k]));
            ops.push_back(&nodes[k]->tsend(at[i], k, out.data(), 200));
        }
    }
    for (RdmOp* op : ops) {
        cr_assert(RdmNode::wait(*op).ok());
    }
    while (nodes.size() > 1) { // the first has what the others stand on
        nodes.pop_back();
    }
}

TRANSPORT_TEST(rdm, wrong_calls__are_refused_and_change_nothing) {
    only_dat();
    Two two(transport);
    char byte = 0;
    cr_assert_eq(fi_tsend(two.a.ep, &byte, 1, nullptr, 1000, 1, nullptr), -FI_EINVAL);
    cr_assert_eq(fi_tinject(two.a.ep, &byte, two.a.info().tx_attr->inject_size + 1, two.to_b, 1),
                 -FI_EINVAL);
    cr_assert_eq(fi_tsend(two.a.ep, nullptr, 1, nullptr, two.to_b, 1, nullptr), -FI_EFAULT);
    fi_msg_tagged msg{};
    msg.addr = FI_ADDR_UNSPEC;
    cr_assert_eq(fi_trecvmsg(two.a.ep, &msg, FI_CLAIM), -FI_EINVAL);
    cr_assert_eq(fi_trecvmsg(two.a.ep, &msg, FI_MULTICAST), -FI_EBADFLAGS);
    fi_addr_t number = 1000;
    cr_assert_eq(fi_av_remove(two.a.av, &number, 1, 0), -FI_EINVAL);
    cr_assert_eq(fi_close(&two.a.av->fid), -FI_EBUSY);
    RdmOp& receive = two.b.trecv(1, &byte, 1);
    two.a.tsend(two.to_b, 1, "k", 1);
    cr_assert(RdmNode::wait(receive).ok());
    cr_assert_eq(byte, 'k');
}
