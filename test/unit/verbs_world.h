// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A domain over the devices of verbs_fake.h, of the address 10.0.0.1, and endpoints that it
// connects to 10.0.0.2, where the fake answers.
#ifndef TEST_UNIT_VERBS_WORLD_H
#define TEST_UNIT_VERBS_WORLD_H

#include "links/verbs/connect.h"
#include "links/verbs/queues.h"

#include "engine_harness.h"
#include "verbs_fake.h"

#include <criterion/criterion.h>
#include <cstdint>
#include <memory>
#include <netinet/in.h>

namespace verbs_test {

using namespace dat;
using core::Event;
using core::Reason;
using engine_test::Side;
using fake::state;

inline dat::verbs::SocketAddress address(std::uint32_t last) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl((10U << 24) + last);
    return verbs::SocketAddress(reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

struct World : verbs::DomainOwner {
    explicit World(const engine::Domain::Options& options = engine_test::options())
        : engine(options), domain(*(made = std::make_unique<verbs::Domain>(
                                        engine, static_cast<verbs::DomainOwner&>(*this)))) {
        cr_assert_eq(engine.opened, 0);
        cr_assert_eq(domain.open(address(1), false), 0);
    }
    void device_gone() override { ++gone; }
    void port_down() override { ++down; }

    template <class Done> void await(Done done) { cr_assert(engine_test::run_until(engine, done)); }
    void read_all() {
        await([] { return state().said.empty(); });
        cr_assert_eq(state().unacknowledged, 0);
        cr_assert_eq(state().read_of_shared, 0);
    }
    verbs::Queues::Kind kind(std::uint32_t requests, std::uint32_t receives) {
        return {.pd = domain.pd(nullptr), .requests = requests, .receives = receives, .port = 1};
    }
    std::unique_ptr<verbs::Queues> queues(std::uint32_t requests = 8, std::uint32_t receives = 8) {
        return verbs::Queues::make(domain, kind(requests, receives), domain.anchor());
    }
    // Returns what it goes out from.
    verbs::SocketAddress connect(Side& side) {
        const engine::BiasedLockOwner in(engine.biased_lock());
        verbs::SocketAddress source = address(1);
        cr_assert_eq(verbs::connect(domain, side.endpoint, address(2), source, {}, {}), 0);
        return source;
    }
    void connected(Side& side) {
        connect(side);
        await([&] { return side.connected(); });
    }

    int gone = 0;
    int down = 0;
    std::unique_ptr<verbs::Domain> made; // outlives the software's part, which ends connections
    engine_test::OpenDomain engine;
    verbs::Domain& domain;
};

inline void assert_ended(const Side& side, Event event, Reason reason) {
    cr_assert(side.ended());
    cr_assert_eq(side.events.back().event, event);
    cr_assert_eq(side.events.back().reason, reason);
}

} // namespace verbs_test

#endif
