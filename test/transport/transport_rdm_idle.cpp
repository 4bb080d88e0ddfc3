// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: connections of reliable datagram peers that nothing uses are let go, and made
// again when they are needed (FI_DAT_RDM_IDLE). The program sees nothing of that.
#include "dice.h"
#include "rdm.h"
#include "suite.h"
#include "usage.h"

#include <array>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <vector>

using namespace dat::test;

namespace {

// A node, and others that each have a connection with it.
struct Star {
    Star(const Transport& transport, std::size_t count) : hub(transport) {
        for (std::size_t i = 0; i < count; ++i) {
            leaves.push_back(std::make_unique<RdmNode>(transport));
            to_leaf.push_back(hub.know(*leaves.back()));
            to_hub.push_back(leaves.back()->know(hub));
        }
    }
    // A message from each leaf, and one back.
    void talks(std::uint64_t tag) {
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            std::uint64_t in = 0;
            const std::uint64_t out = tag * 100 + i;
            RdmOp& received = hub.trecv(tag, &in, sizeof in, 0, FI_ADDR_UNSPEC);
            RdmOp& sent = leaves[i]->tsend(to_hub[i], tag, &out, sizeof out);
            cr_assert(RdmNode::wait(received).ok() && RdmNode::wait(sent).ok());
            cr_assert_eq(in, out);
            std::uint64_t back = 0;
            RdmOp& answered = leaves[i]->trecv(tag, &back, sizeof back);
            RdmOp& answer = hub.tsend(to_leaf[i], tag, &out, sizeof out);
            cr_assert(RdmNode::wait(answered).ok() && RdmNode::wait(answer).ok());
            cr_assert_eq(back, out);
        }
    }
    RdmNode hub;
    std::vector<std::unique_ptr<RdmNode>> leaves;
    std::vector<fi_addr_t> to_leaf;
    std::vector<fi_addr_t> to_hub;
};

constexpr std::size_t kLeaves = 12;

// What the connections of this process hold, each at least one at either end: descriptors, or
// memory that is shared with a device.
std::size_t held(const Transport& transport) {
    if (!transport.device) {
        return open_descriptors();
    }
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
        count += line.find("/uverbs") != std::string::npos;
    }
    return count;
}

// All nodes move on for a while.
void poll_often(std::uint32_t times) {
    for (; times > 0; --times) {
        RdmNode::poll_all();
    }
}

} // namespace

TRANSPORT_TEST(rdm_idle, connections_that_nothing_uses__are_let_go_and_made_again) {
    only_dat();
    setenv("FI_DAT_RDM_IDLE", "20", 1);
    Star star(transport, kLeaves);
    const std::size_t before = held(transport);
    star.talks(1);
    for (std::uint64_t round = 2; round < 5; ++round) {
        star.talks(round);
        RdmNode::wait_until([&] { return held(transport) < before + kLeaves; },
                            "connections to be let go");
    }
    star.talks(9);
}

TRANSPORT_TEST(rdm_idle, unless_it_is_wanted__connections_are_kept) {
    only_dat();
    Star star(transport, kLeaves);
    const std::size_t before = held(transport);
    star.talks(1);
    poll_often(5000);
    cr_assert_geq(held(transport), before + 2 * kLeaves);
    star.talks(2);
}

// What is held here, or waits there, is of the connection: it is kept.
TRANSPORT_TEST(rdm_idle, while_a_message_waits_for_its_receive__the_connection_is_kept) {
    only_dat();
    setenv("FI_DAT_RDM_IDLE", "5", 1);
    for (const std::size_t size : {std::size_t{10}, std::size_t{200'000}}) {
        Two two(transport);
        RdmNode third(transport);
        const fi_addr_t to_third = two.a.know(third);
        const Bytes out = pattern(size, 1);
        RdmOp& sent = two.a.tsend(two.to_b, 1, out.data(), out.size());
        char in = 0;
        RdmOp& other = two.b.trecv(2, &in, 1);
        two.a.tsend(two.to_b, 2, "x", 1);
        RdmNode::wait(other);
        // One that is not used meanwhile goes.
        RdmOp& unheld = third.trecv(3, &in, 1);
        two.a.tsend(to_third, 3, "x", 1);
        RdmNode::wait(unheld);
        const std::size_t both = held(transport);
        RdmNode::wait_until([&] { return held(transport) < both; }, "the other connection");
        poll_often(2000);
        const std::size_t kept = held(transport);
        Bytes got(size);
        RdmOp& received = two.b.trecv(1, got.data(), got.size());
        cr_assert(RdmNode::wait(received).ok() && RdmNode::wait(sent).ok());
        cr_assert(got == out);
        RdmNode::wait_until([&] { return held(transport) < kept; }, "the connection to be let go");
    }
}

// Messages of both sides that cross the goodbye: each arrives, once, in its order.
TRANSPORT_TEST(rdm_idle, messages_that_cross_the_goodbye__lose_neither_themselves_nor_order) {
    only_dat();
    setenv("FI_DAT_RDM_IDLE", "1", 1);
    Two two(transport);
    Dice dice(7);
    struct Way {
        RdmNode& from;
        RdmNode& to;
        fi_addr_t at;
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
    };
    std::array<Way, 2> ways{Way{two.a, two.b, two.to_b}, Way{two.b, two.a, two.to_a}};
    std::deque<std::vector<std::uint64_t>> payloads;
    for (int round = 0; round < 400; ++round) {
        for (Way& way : ways) {
            for (std::uint32_t count = dice.below(4); count > 0; --count) {
                auto& payload = payloads.emplace_back(dice.below(8) == 0 ? 8000 : 4, way.sent++);
                way.from.tsend(way.at, 1, payload.data(), 8 * payload.size());
            }
        }
        // About as long as a connection may be unused, so that some posts meet its end.
        poll_often(dice.below(1500));
        for (Way& way : ways) {
            std::vector<std::uint64_t> in(8000);
            while (way.received < way.sent && dice.below(5) != 0) {
                RdmOp& op = way.to.trecv(1, in.data(), 8 * in.size());
                cr_assert(RdmNode::wait(op).ok());
                cr_assert_eq(in[0], way.received++);
            }
        }
    }
    for (Way& way : ways) {
        std::vector<std::uint64_t> in(8000);
        while (way.received < way.sent) {
            RdmOp& op = way.to.trecv(1, in.data(), 8 * in.size());
            cr_assert(RdmNode::wait(op).ok());
            cr_assert_eq(in[0], way.received++);
        }
    }
}

TRANSPORT_TEST(rdm_size_left, tells_what_may_be_posted) {
    only_dat();
    Two two(transport);
    const auto receives = [&] { return two.b.ep->ops->rx_size_left(two.b.ep); };
    const auto sends = [&] { return two.a.ep->ops->tx_size_left(two.a.ep); };
    const ssize_t all_receives = receives();
    const ssize_t all_sends = sends();
    cr_assert(all_receives > 2 && all_sends > 2);
    std::uint64_t in = 0;
    const Bytes out = pattern(200'000, 1);
    RdmOp& small = two.b.trecv(1, &in, sizeof in);
    cr_assert_eq(receives(), all_receives - 1);
    RdmOp& sent = two.a.tsend(two.to_b, 2, out.data(), out.size());
    two.a.tsend(two.to_b, 1, "12345678", 8);
    cr_assert_leq(sends(), all_sends - 2); // there is no connection yet
    RdmNode::wait(small);
    cr_assert_eq(receives(), all_receives);
    cr_assert_eq(sends(), all_sends - 1);
    Bytes got(out.size());
    RdmOp& large = two.b.trecv(2, got.data(), got.size());
    RdmNode::wait(large);
    RdmNode::wait(sent);
    cr_assert_eq(sends(), all_sends);
}

TRANSPORT_TEST(rdm_idle, a_write_behind_the_goodbye__goes_by_a_new_connection) {
    only_dat();
    setenv("FI_DAT_RDM_IDLE", "5", 1);
    Two two(transport);
    std::array<char, 64> memory{};
    fid_mr* region = nullptr;
    DAT_MUST(fi_mr_reg(two.b.domain, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, 0, 0,
                       &region, nullptr));
    for (char round = 1; round < 4; ++round) {
        RdmOp& written = two.a.op();
        two.a.post([&] {
            return fi_write(two.a.ep, &round, 1, nullptr, two.to_b, two.b.at(memory.data()),
                            fi_mr_key(region), &written);
        });
        cr_assert(RdmNode::wait(written).ok());
        // A message without its receive keeps the connection until it is counted.
        two.a.tsend(two.to_b, 1, "x", 1);
        char in = 0;
        RdmOp& other = two.b.trecv(2, &in, 1);
        two.a.tsend(two.to_b, 2, "x", 1);
        RdmNode::wait(other);
        cr_assert_eq(memory[0], round);
        const std::size_t kept = held(transport);
        RdmNode::wait(two.b.trecv(1, &in, 1));
        RdmNode::wait_until([&] { return held(transport) < kept; }, "the connection to be let go");
    }
    DAT_MUST(fi_close(&region->fid));
}
