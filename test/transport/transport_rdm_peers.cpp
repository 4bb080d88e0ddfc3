// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: FI_EP_RDM. Peers that come, go and come again.
#include "rdm.h"
#include "suite.h"

#include <memory>
#include <string>
#include <vector>

using namespace dat::test;

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
