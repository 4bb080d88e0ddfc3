// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: FI_EP_RDM. Messages: matching, large and unexpected ones, receives for several,
// counters; and the refusal of wrong calls.
#include "rdm.h"
#include "suite.h"

#include <array>

using namespace dat::test;

namespace {

const std::vector<std::size_t> kSizes{
    0,     1,     7,     64,    72,    96,    97,    128,   1024,   4096,    16000,        16352,
    16353, 16384, 16385, 65520, 65536, 65537, 65776, 98304, 262144, 1 << 20, (4 << 20) + 3};

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

// Whether the sender goes on polling or not, and however often.
TRANSPORT_TEST(rdm, a_large_message__arrives_whoever_polls) {
    only_dat();
    Two two(transport);
    Bytes small(1);
    RdmOp& first = two.b.trecv(1, small.data(), 1);
    cr_assert(RdmNode::wait(two.a.tsend(two.to_b, 1, small.data(), 1)).ok());
    cr_assert(RdmNode::wait(first).ok());
    for (const std::size_t size : {100000UL, 1UL << 20, (5UL << 20) + 7}) {
        for (const int often : {0, 1, 3, 100}) {
            if (often == 0 && !transport.shm)
                continue; // it is read from a sender that answers
            Bytes in(size);
            const Bytes out = pattern(size, static_cast<unsigned>(often));
            RdmOp& receive = two.b.trecv(1, in.data(), in.size());
            RdmOp& send = two.a.tsend(two.to_b, 1, out.data(), size);
            for (int i = 0; !receive.done(); ++i) {
                two.b.poll();
                if (often > 0 && i % often == 0)
                    two.a.poll();
            }
            cr_assert(receive.ok());
            cr_assert(same(in.data(), out.data(), size), "%zu, %d", size, often);
            cr_assert(RdmNode::wait(send).ok());
        }
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
    // Beyond the first 2048 each waits with its sender: an emulated device takes its time for them.
    const std::uint64_t count = transport.device ? 4000 : 20000;
    const Bytes out = pattern(64, 3);
    for (std::uint64_t i = 0; i < count; ++i) {
        two.a.post([&] { return fi_tinject(two.a.ep, out.data(), 64, two.to_b, i); });
    }
    Bytes in(64);
    RdmOp& last = two.b.trecv(count - 1, in.data(), 64);
    RdmNode::wait(last);
    cr_assert(last.ok());
    cr_assert(same(in.data(), out.data(), 64));
    for (std::uint64_t i = 0; i < count - 1; ++i) {
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

TRANSPORT_TEST(rdm, a_thread_that_sleeps__is_woken_by_a_message) {
    only_dat();
    RdmNode::Options options;
    options.wait = FI_WAIT_FD;
    Two two(transport, options);
    for (const std::size_t size : {std::size_t{10}, std::size_t{100000}}) {
        Bytes in(size);
        const Bytes out = pattern(size, 1);
        RdmOp& receive = two.b.trecv(1, in.data(), size);
        RdmOp& send = two.a.tsend(two.to_b, 1, out.data(), size);
        fi_cq_tagged_entry entry{};
        ssize_t got = -FI_EAGAIN;
        for (int i = 0; i < 2000 && got == -FI_EAGAIN; ++i) {
            got = fi_cq_sread(two.b.cq, &entry, 1, nullptr, 10);
            two.a.poll();
        }
        cr_assert_eq(got, 1);
        cr_assert_eq(entry.op_context, &receive);
        cr_assert_eq(entry.len, size);
        cr_assert(RdmNode::wait(send).ok());
    }
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
