// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Many connections between two domains that share memory: those that had nothing lately are not
// looked at until their peer has rung for them.
#include "engine_shm.h"

#include "links/iwarp/connect.h"
#include "links/shm/doorbell.h"

#include <deque>
#include <fstream>
#include <poll.h>
#include <string>

using namespace engine_test;
using dat::engine::Level;

namespace {

constexpr std::size_t kMany = 40;

dat::engine::Domain::Options crowded() {
    auto o = options();
    o.settings.shm = true;
    return o;
}

// All shared memory of this process, each twice: as either domain has mapped it.
std::vector<shm::Layout*> memories() {
    std::vector<shm::Layout*> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:dat") == std::string::npos) {
            continue;
        }
        std::size_t digits = 0; // two chunks that lie side by side are two lines
        const auto from = std::stoull(line, &digits, 16);
        const auto to = std::stoull(line.substr(digits + 1), nullptr, 16);
        for (auto at = from; at < to; at += sizeof(shm::Layout)) {
            all.push_back(reinterpret_cast<shm::Layout*>(at));
        }
    }
    return all;
}

// How many ends are left to a doorbell.
std::size_t left_to_doorbells() {
    std::size_t count = 0;
    for (const shm::Layout* memory : memories()) {
        for (const shm::Control& control : memory->control) {
            count += (control.asleep.load() & shm::kByDoorbell) != 0 ? 1 : 0;
        }
    }
    return count / 2;
}

// So many connections, made by the handshake, from one domain to the other.
struct Crowd {
    explicit Crowd(std::size_t count = kMany, const dat::engine::Domain::Options& o = crowded())
        : near_domain(o), far_domain(o) {
        for (std::size_t i = 0; i < count; ++i) {
            add();
        }
    }
    void add() {
        Side& from = near.emplace_back(near_domain);
        Side& to = far.emplace_back(far_domain);
        cr_assert_eq(dat::iwarp::connect(from.endpoint, requests.listener.name(), nullptr, {}, {}),
                     0);
        cr_assert(run([&] { return requests.arrived != nullptr; }));
        cr_assert_eq(dat::iwarp::accept(to.endpoint, *requests.arrived, {}), 0);
        requests.arrived.reset();
        cr_assert(run([&] { return from.connected() && to.connected(); }));
        cr_assert(from.kind == dat::engine::LinkKind::shm);
    }
    // Until the idle ones are not looked at any more.
    void settle() {
        for (int i = 0; i < 1000; ++i) {
            near_domain.progress();
            far_domain.progress();
        }
    }
    // The first ones are left to the doorbell whatever they carry: others are busy, and looked at.
    void busy_elsewhere() {
        settle();
        for (std::size_t i = kMany / 2; i < kMany; ++i) {
            talk(i);
        }
    }
    template <class Done> bool run(Done done) {
        return run_until(near_domain, done, [&] {
            requests.listener.progress();
            far_domain.progress();
        });
    }
    // A message there, and one back.
    void talk(std::size_t i, Level level = Level::taken) {
        Bytes there(1);
        Bytes back(1);
        far[i].receive(there);
        near[i].receive(back);
        near[i].send<shm::Link>(bytes("a"), 1, level);
        cr_assert(run([&] { return !far[i].receives.empty() && !near[i].requests.empty(); }), "%zu",
                  i);
        far[i].send<shm::Link>(bytes("b"), 1, level);
        cr_assert(run([&] { return !near[i].receives.empty() && !far[i].requests.empty(); }), "%zu",
                  i);
        cr_assert(text(there) == "a" && text(back) == "b");
        for (Side* side : {&near[i], &far[i]}) {
            side->receives.take();
            side->requests.take();
        }
    }
    Requests requests;
    OpenDomain near_domain;
    OpenDomain far_domain;
    std::deque<Side> near;
    std::deque<Side> far;
};

// Nothing more is there to be moved, and whoever moves something wakes this domain.
void put_to_rest(OpenDomain& domain) {
    for (int i = 0; i < 1000 && !domain.rest(); ++i) {
        domain.progress();
    }
    cr_assert(domain.rest());
}

bool is_woken(OpenDomain& domain) {
    pollfd fd{domain.wait_fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
}

} // namespace

Test(engine_shm_doorbell, few_connections__are_looked_at_one_by_one) {
    constexpr std::size_t kFew = 3;
    auto o = crowded();
    o.shared =
        true; // else each domain gives its processor away for the other, which this thread has
    Crowd crowd(kFew, o);
    // Where the process is not given a processor for a millisecond, again and again, it counts as a
    // program that looks seldom, whose links are left to doorbells until they carry something.
    std::size_t left = kFew;
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::seconds(30);
         Clock::now() < end && left > 0;) {
        for (std::size_t i = 0; i < kFew; ++i) {
            crowd.talk(i);
        }
        crowd.settle();
        left = left_to_doorbells();
    }
    cr_assert_eq(left, 0u);
    crowd.talk(2);
}

Test(engine_shm_doorbell, many_connections__carry_messages_in_turn_whatever_is_not_looked_at) {
    Crowd crowd;
    crowd.settle();
    cr_assert(left_to_doorbells() >= kMany, "%zu", left_to_doorbells());
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < kMany; ++i) {
            crowd.talk(i);
        }
    }
}

// More messages than are taken at a time, all of them behind one ring.
Test(engine_shm_doorbell, more_than_is_taken_at_a_time__is_taken_all_the_same) {
    Crowd crowd;
    crowd.busy_elsewhere();
    constexpr std::size_t kMessages = shm::kRecords;
    std::vector<Bytes> in(kMessages, Bytes(1));
    for (Bytes& each : in) {
        crowd.far.front().receive(each);
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
        crowd.near.front().send<shm::Link>(bytes("x"), 1, Level::taken);
    }
    cr_assert(crowd.run([&] { return crowd.far.front().receives.size() == kMessages; }));
}

// The ring has stopped at a message that waits for a receive, and nobody rings for what is behind
// it again: messages, and a write for which nobody posts anything.
Test(engine_shm_doorbell, what_stood_behind_a_message_without_a_receive__is_taken_with_it) {
    auto o = crowded();
    o.settings.unexpected_bytes = 16384;
    Crowd crowd(kMany, o);
    crowd.busy_elsewhere();
    Bytes memory(8);
    const auto key = crowd.far_domain.regions().add(
        {memory.data(), memory.size(), 0, &Side::zone, dat::engine::kRemoteWrite});
    Side& near = crowd.near.front();
    Side& far = crowd.far.front();
    const Bytes large = numbered(20'000);
    near.send<shm::Link>(large, 1, Level::taken);
    crowd.settle();
    for (std::size_t i = 0; i < 100; ++i) {
        near.send<shm::Link>(bytes("x"), 1, Level::taken);
    }
    near.rma<shm::Link>(dat::engine::OpCode::write, bytes("w"), static_cast<std::uint32_t>(key), 0);
    crowd.settle();
    cr_assert(memory[0] == std::byte{});
    Bytes in(large.size());
    far.receive(in);
    cr_assert(crowd.run([&] { return memory[0] == std::byte('w'); }));
    cr_assert_eq(far.receives.size(), 1u);
}

Test(engine_shm_doorbell, confirmations__are_rung_for_as_well) {
    Crowd crowd;
    crowd.settle();
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < kMany; ++i) {
            crowd.talk(i, Level::placed);
        }
    }
}

// One of many rings for all: by a descriptor of its own, once.
Test(engine_shm_doorbell, a_domain_that_sleeps__is_woken_by_any_of_them) {
    Crowd crowd;
    crowd.settle();
    for (const std::size_t i : {std::size_t{0}, kMany / 2, kMany - 1}) {
        put_to_rest(crowd.far_domain);
        cr_assert_not(is_woken(crowd.far_domain));
        Bytes in(1);
        crowd.far[i].receive(in);
        crowd.near[i].send<shm::Link>(bytes("x"), 1, Level::taken);
        cr_assert(is_woken(crowd.far_domain));
        cr_assert(crowd.run([&] { return !crowd.far[i].receives.empty(); }));
        crowd.far[i].receives.take();
    }
}

Test(engine_shm_doorbell, what_was_rung_for_as_it_went_to_sleep__keeps_it_awake) {
    Crowd crowd;
    crowd.settle();
    put_to_rest(crowd.far_domain);
    crowd.far_domain.progress();
    Bytes in(1);
    crowd.far.front().receive(in);
    crowd.near.front().send<shm::Link>(bytes("x"), 1, Level::taken); // which wakes it
    crowd.far_domain.progress();
    crowd.far_domain.progress();
    cr_assert(!crowd.far.front().receives.empty());
}

namespace {

// The sleeping domain is woken by another connection than the first, and gets its message. What
// was rung before, by the socket of them all, has been heard.
void expect_others_to_wake(Crowd& crowd) {
    for (int i = 0; i < 1000 && is_woken(crowd.far_domain); ++i) {
        crowd.far_domain.progress();
    }
    put_to_rest(crowd.far_domain);
    cr_assert_not(is_woken(crowd.far_domain));
    Bytes in(1);
    crowd.far[1].receive(in);
    crowd.near[1].send<shm::Link>(bytes("x"), 1, Level::taken);
    cr_assert(is_woken(crowd.far_domain));
    cr_assert(crowd.run([&] { return !crowd.far[1].receives.empty(); }));
    crowd.far[1].receives.take();
    crowd.near[1].requests.take();
}

} // namespace

// The ring for all was for a connection that is closed here before it is heard.
Test(engine_shm_doorbell, a_ring_by_a_connection_that_is_closed__is_not_the_last) {
    Crowd crowd;
    crowd.settle();
    put_to_rest(crowd.far_domain);
    crowd.near.front().send<shm::Link>(bytes("x"), 1, Level::taken);
    cr_assert(is_woken(crowd.far_domain));
    cr_assert(crowd.far.front().endpoint.disconnect(false));
    expect_others_to_wake(crowd);
}

// The peer rang for all, by a connection that it ended in order at once, which rings for that
// connection alone.
Test(engine_shm_doorbell, a_ring_and_the_end_of_its_connection__are_both_heard) {
    Crowd crowd;
    crowd.settle();
    crowd.far.front().send<shm::Link>(bytes("y"), 1, Level::placed);
    put_to_rest(crowd.far_domain);
    Bytes in(1);
    crowd.near.front().receive(in);
    for (int i = 0; i < 1000 && crowd.near.front().receives.empty(); ++i) {
        crowd.near_domain.progress();
    }
    cr_assert_not(crowd.near.front().receives.empty());
    cr_assert(is_woken(crowd.far_domain));
    cr_assert(crowd.near.front().endpoint.disconnect(true));
    cr_assert(crowd.run([&] { return crowd.far.front().ended() && crowd.near.front().ended(); }));
    expect_others_to_wake(crowd);
}

// The memory of the first connection has the doorbells of those that came after it.
Test(engine_shm_doorbell, the_end_of_the_first_connection__leaves_the_others_alone) {
    Crowd crowd;
    crowd.settle();
    cr_assert(crowd.near.front().endpoint.disconnect(false));
    cr_assert(crowd.run([&] { return crowd.far.front().ended(); }));
    for (std::size_t i = 1; i < kMany; ++i) {
        crowd.talk(i);
    }
}

// A place is used again, and what rings for the connection that had it does nothing.
Test(engine_shm_doorbell, connections_come_and_go) {
    Crowd crowd;
    for (int round = 0; round < 3; ++round) {
        crowd.settle();
        for (std::size_t i = crowd.near.size() - kMany; i < crowd.near.size(); i += 2) {
            cr_assert(crowd.near[i].endpoint.disconnect(i % 4 == 0));
        }
        crowd.settle();
        for (std::size_t i = 0; i < kMany / 2; ++i) {
            crowd.add();
        }
        crowd.settle();
        for (std::size_t i = 0; i < kMany / 2; ++i) {
            crowd.talk(crowd.near.size() - 1 - i);
        }
    }
}

Test(engine_shm_doorbell, a_peer_that_rings_for_everything_and_nothing__harms_nobody) {
    Crowd crowd;
    crowd.settle();
    for (const std::uint64_t bits : {~std::uint64_t{0}, std::uint64_t{0}}) {
        for (int round = 0; round < 50; ++round) {
            for (shm::Layout* memory : memories()) {
                for (shm::Doorbell& doorbell : memory->doorbells) {
                    for (auto& places : doorbell.places) {
                        places.store(bits);
                    }
                    doorbell.words.store(~bits);
                    doorbell.words.store(bits);
                }
            }
            crowd.near_domain.progress();
            crowd.far_domain.progress();
        }
    }
    for (std::size_t i = 0; i < kMany; ++i) {
        crowd.talk(i);
    }
}

Test(engine_shm_doorbell, places__are_given_once_and_not_beyond_the_last) {
    OpenDomain domain(crowded());
    Shared memory;
    shm::Doorbells doorbells(domain, memory.near, true);
    cr_assert_eq(doorbells.take(), 0u);
    cr_assert_not(doorbells.take(0));
    cr_assert(doorbells.take(5));
    for (std::uint32_t i = 1; i < shm::Doorbell::kPlaces - 1; ++i) {
        cr_assert_neq(doorbells.take(), shm::Doorbells::kNone);
    }
    cr_assert_eq(doorbells.take(), shm::Doorbells::kNone);
    cr_assert_not(doorbells.take(shm::Doorbell::kPlaces));
    doorbells.give_back(7);
    cr_assert_eq(doorbells.take(), 7u);
}
