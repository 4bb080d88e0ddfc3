// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What two domains share once for all their connections: what that costs, and what becomes of it.
#include "engine_shm_peering.h"
#include "../transport/sanitized.h"
#include "../transport/usage.h"

#include "links/iwarp/connect.h"
#include "links/shm/hello.h"
#include "links/shm/joining.h"
#include "links/shm/local_socket.h"

#include <csignal>
#include <deque>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace engine_test;
using dat::engine::Level;
using dat::engine::LinkKind;
using dat::test::open_descriptors;

// --- what it costs ---

Test(engine_shm_peering, connections__have_no_descriptors_of_their_own) {
    Pair pair;
    pair.add(1);
    pair.settle();
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 40; ++i) {
        pair.add(1);
    }
    pair.add(60);
    pair.settle();
    cr_assert_eq(open_descriptors(), before);
    for (std::size_t i = 0; i < pair.near.size(); ++i) {
        pair.talk(i);
    }
}

// Those that come while the first is on its way wait for it.
Test(engine_shm_peering, connections_that_begin_together__share_once) {
    Pair alone;
    alone.add(1);
    alone.settle();
    const std::size_t mapped = places().size();
    cr_assert_eq(mapped, 2u);
    const std::size_t before = open_descriptors();
    Pair pair;
    const std::size_t domains = open_descriptors() - before;
    pair.add(4);
    pair.settle();
    cr_assert_eq(places().size() - mapped, 8u); // two chunks, of one place and of three
    cr_assert_leq(open_descriptors() - before,
                  domains + 6); // two listeners, two sets, the two ends
    for (std::size_t i = 0; i < 4; ++i) {
        pair.talk(i);
    }
}

// --- places ---

Test(engine_shm_peering, a_place_is_used_again__when_both_sides_have_left_it) {
    Pair pair;
    pair.add(4);
    pair.replace_last(20);
    cr_assert_eq(places().size(), 8u);
}

// All of what the one before had is gone, and what it seldom touches is given back.
Test(engine_shm_peering, a_place_that_is_used_again__is_empty) {
    Pair pair;
    pair.add(1);
    for (int i = 0; i < 200; ++i) {
        pair.talk(0, numbered(i % 20 == 0 ? 20'000 : 50));
    }
    pair.end(0);
    pair.settle();
    pair.add(1);
    const auto all = places();
    cr_assert_eq(all.size(), 2u);
    for (const shm::Layout* place : all) {
        const auto is_new = [](const shm::Record& record) { return record.stamp.load() == 0; };
        cr_assert(std::ranges::all_of(place->of_initiator, is_new));
        cr_assert(std::ranges::all_of(place->of_responder, is_new));
        for (const shm::Control& control : place->control) {
            cr_assert_eq(control.records_taken.load(), 0u);
            cr_assert_eq(control.bytes_taken.load(), 0u);
            cr_assert_eq(control.revoked.load() + control.parted.load() + control.stage.load(), 0u);
            cr_assert(control.end.load() == shm::End::none);
        }
        cr_assert(
            std::ranges::all_of(place->bytes[0], [](std::byte b) { return b == std::byte{}; }));
    }
    pair.talk(1, numbered(20'000));
}

// The same where little was sent, which stays in the one page.
Test(engine_shm_peering, a_place_of_few_messages__is_empty_as_well) {
    Pair pair;
    pair.add(1);
    for (int round = 0; round < 5; ++round) {
        const auto last = static_cast<std::size_t>(round);
        for (int i = 0; i < 2 + 3 * round; ++i) {
            pair.talk(last);
        }
        pair.end(last);
        pair.settle();
        pair.add(1);
        for (const shm::Layout* place : places()) {
            cr_assert_eq(place->control[0].records_taken.load(), 0u);
            cr_assert_eq(place->of_responder[0].stamp.load(), 0u);
        }
    }
}

// The message of one who has left is for nobody else: the place is another connection's only when
// its receiver has gone as well.
Test(engine_shm_peering, a_place_whose_peer_is_not_ready__is_left_to_it) {
    Pair pair;
    pair.add(1);
    const Bytes late = numbered(300);
    pair.near[0].send<shm::Link>(late, 1, Level::taken);
    cr_assert(pair.near[0].endpoint.disconnect(false));
    pair.settle();
    cr_assert_not(pair.far[0].ended());
    pair.add(3);
    for (std::size_t i = 1; i < 4; ++i) {
        pair.talk(i);
    }
    Bytes in(late.size());
    pair.far[0].receive(in);
    cr_assert(pair.run([&] { return pair.far[0].ended(); }));
    cr_assert(in == late);
}

// --- the end ---

// Nothing is kept for ever, and while it is nothing is to be done for it.
Test(engine_shm_peering, what_no_connection_uses__is_kept_for_a_while) {
    Pair pair;
    pair.add(1);
    pair.end(0);
    pair.settle();
    cr_assert_eq(places().size(), 2u);
    const std::size_t before = open_descriptors();
    pair.add(1);
    pair.settle();
    cr_assert_eq(open_descriptors(), before);
    pair.end(1);
    cr_assert(pair.run([&] { return places().empty(); }));
    cr_assert_eq(open_descriptors(), before - 2); // both ends
    pair.add(2);                                  // and all begins anew
    pair.talk(2);
    pair.talk(3);
}

Test(engine_shm_peering, a_domain_that_is_closed__leaves_nothing) {
    const std::size_t before = open_descriptors();
    {
        Pair pair;
        pair.add(5);
        pair.end(2);
    }
    cr_assert(places().empty());
    cr_assert_eq(open_descriptors(), before);
}

Test(engine_shm_peering, a_peer_that_closes_its_domain__takes_what_is_idle_with_it) {
    Pair pair;
    {
        OpenDomain domain(sharing());
        Side side(domain);
        cr_assert_eq(dat::iwarp::connect(side.endpoint, pair.local_listener.listener.name(),
                                         nullptr, {}, {}),
                     0);
        const auto both = [&](auto done) {
            return pair.run([&] {
                domain.progress();
                return done();
            });
        };
        cr_assert(both([&] { return !pair.local_listener.requests.empty(); }));
        Side& far = pair.far.emplace_back(pair.far_domain);
        cr_assert_eq(dat::iwarp::accept(far.endpoint, *pair.local_listener.requests.front(), {}),
                     0);
        cr_assert(both([&] { return side.connected() && far.connected(); }));
        cr_assert(side.endpoint.disconnect(false));
        cr_assert(both([&] { return far.ended(); }));
    }
    pair.local_listener.requests.clear();
    cr_assert_eq(places().size(), 1u);
    cr_assert(pair.run([&] { return places().empty(); }));
}

namespace {

// A process that accepts connections until it is killed.
struct Child {
    Child() {
        int port[2];
        cr_assert_eq(pipe(port), 0);
        pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve(port[1]);
        }
        cr_assert_eq(read(port[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
        close(port[0]);
        close(port[1]);
    }
    ~Child() { end(); }
    void end() {
        if (pid > 0) {
            kill(std::exchange(pid, 0), SIGKILL);
            waitpid(-1, nullptr, 0);
        }
    }
    [[noreturn]] static void serve(int port) {
        LocalListener local_listener;
        OpenDomain domain(sharing());
        std::deque<Side> sides;
        sockaddr_in name{};
        std::memcpy(&name, local_listener.listener.name().get(), sizeof name);
        if (write(port, &name, sizeof name) != static_cast<ssize_t>(sizeof name)) {
            _exit(1);
        }
        for (;;) {
            local_listener.listener.progress();
            domain.progress();
            while (!local_listener.requests.empty()) {
                dat::iwarp::accept(sides.emplace_back(domain).endpoint,
                                   *local_listener.requests.front(), {});
                local_listener.requests.erase(local_listener.requests.begin());
            }
        }
    }
    dat::net::SocketAddress name() const {
        return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
    }
    pid_t pid = -1;
    sockaddr_in address{};
};

void connect_all(OpenDomain& domain, std::deque<Side>& sides, const Child& child,
                 std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        Side& side = sides.emplace_back(domain);
        cr_assert_eq(dat::iwarp::connect(side.endpoint, child.name(), nullptr, {}, {}), 0);
        cr_assert(run_until(domain, [&] { return side.connected(); }));
        cr_assert(side.kind == LinkKind::shm);
        side.events.clear();
    }
}

} // namespace

Test(engine_shm_peering, a_peer_that_is_killed__ends_each_connection_once, .timeout = 120) {
    Child child;
    OpenDomain domain(sharing());
    std::deque<Side> sides;
    connect_all(domain, sides, child, 50);
    Bytes in(8);
    sides[7].receive(in);
    cr_assert(sides[9].endpoint.disconnect(true)); // which waits for an answer, or has it
    child.end();
    cr_assert(run_until(domain, [&] {
        return std::ranges::all_of(sides, [](const Side& side) { return side.ended(); });
    }));
    for (int i = 0; i < 100; ++i) {
        domain.progress();
    }
    for (const Side& side : sides) {
        cr_assert_eq(side.events.size(), 1u);
        cr_assert(side.events[0].event == dat::core::Event::disconnected);
    }
    cr_assert_eq(sides[7].receives.take().size(), 1u);
    cr_assert(run_until(domain, [&] { return places().empty(); }));
}

// A thousand connections between two processes.
Test(engine_shm_peering, a_thousand_connections_between_two_processes__have_one_socket,
     .timeout = 300) {
    Child child;
    OpenDomain domain(sharing());
    std::deque<Side> sides;
    connect_all(domain, sides, child, 1);
    const std::size_t before = open_descriptors();
    connect_all(domain, sides, child, dat::test::kSanitized ? 99 : 999);
    cr_assert_eq(open_descriptors(), before);
}

// --- what it cannot get ---

#ifndef DAT_SANITIZED // a sanitizer needs descriptors to check what it checks

Test(engine_shm_peering, without_descriptors_for_more_memory__a_connection_stays_on_tcp) {
    Pair pair;
    pair.add(1);
    pair.begin(1);
    const rlimit few{200, 200};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    std::vector<dat::net::Socket> all;
    for (int fd = 0; (fd = dup(STDERR_FILENO)) >= 0;) {
        all.emplace_back(fd);
    }
    pair.accept(1);
    cr_assert(pair.near[1].kind == LinkKind::iwarp && pair.far[1].kind == LinkKind::iwarp);
    all.clear();
    pair.talk(0);
    pair.talk(1);
    pair.add(3); // there are some again
    pair.talk(4);
}

#endif
