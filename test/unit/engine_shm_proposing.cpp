// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Connections between domains that share memory already, which are asked for on a local stream in
// place of TCP: that they are, and what becomes of them when anything is not as it should be.
#include "engine_shm_proposing.h"
#include "../transport/usage.h"

#include <csignal>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

using namespace engine_test;
using dat::core::Reason;
using dat::engine::LinkKind;
using dat::test::open_descriptors;

std::size_t engine_test::g_tcp_sockets = 0;

// In place of the C library's.
extern "C" int socket(int family, int type, int protocol) noexcept {
    g_tcp_sockets += family != AF_UNIX && (type & 0xf) == SOCK_STREAM ? 1 : 0;
    return static_cast<int>(syscall(SYS_socket, family, type, protocol));
}

// --- without TCP ---

Test(engine_shm_proposing, a_later_connection__needs_no_tcp) {
    Pair pair;
    pair.add(1);
    cr_assert(known(pair));
    const std::size_t before = g_tcp_sockets;
    for (int i = 0; i < 10; ++i) {
        pair.add(1);
    }
    pair.add(20);
    cr_assert_eq(g_tcp_sockets, before);
    for (std::size_t i = 0; i < pair.near.size(); ++i) {
        pair.talk(i);
    }
}

Test(engine_shm_proposing, one_that_ends__leaves_its_place_to_the_next) {
    Pair pair;
    pair.add(4);
    const std::size_t before = g_tcp_sockets;
    pair.replace_last(30);
    cr_assert_eq(places().size(), 8u);
    cr_assert_eq(g_tcp_sockets, before);
}

Test(engine_shm_proposing, both_sides__have_the_same_names_for_it) {
    Pair pair;
    pair.add(1);
    std::uint16_t port = 0;
    for (int i = 0; i < 3; ++i) {
        Side& near = ask(pair);
        const auto request = request_of(pair);
        cr_assert_eq(request->local().text(), pair.local_listener.listener.name().text());
        cr_assert(request->peer().loopback());
        cr_assert_neq(request->peer().port(), std::exchange(port, request->peer().port()));
        Side& far = accept(pair, *request);
        cr_assert(pair.run([&] { return near.connected() && far.connected(); }));
        cr_assert(near.kind == LinkKind::shm);
        const auto name = [](Side& side) {
            return static_cast<shm::Link*>(side.endpoint.link())->name();
        };
        cr_assert_eq(name(near).text(), request->peer().text());
        cr_assert_eq(name(far).text(), request->local().text());
    }
}

// All that may be sent, and memory is shared.
Test(engine_shm_proposing, private_data__comes_as_it_was_sent) {
    Pair pair;
    pair.add(1);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{484},
                                   std::size_t{485}, dat::iwarp::kMaxPrivateData}) {
        const Bytes there = numbered(size);
        const Bytes back = numbered(dat::iwarp::kMaxPrivateData - size);
        Side& near = ask(pair, there);
        const auto request = request_of(pair);
        cr_assert(std::ranges::equal(request->private_data(), there));
        Side& far = accept(pair, *request, back);
        cr_assert(pair.run([&] { return near.connected() && far.connected(); }));
        cr_assert(near.kind == LinkKind::shm && far.kind == LinkKind::shm);
        cr_assert(near.events.back().private_data == back);
    }
}

Test(engine_shm_proposing, a_reject__comes_with_its_data) {
    Pair pair;
    pair.add(1);
    const Bytes why = numbered(dat::iwarp::kMaxPrivateData);
    Side& near = ask(pair, bytes("please"));
    cr_assert(request_of(pair)->reject(why));
    cr_assert(pair.run([&] { return !near.events.empty(); }));
    cr_assert(near.events.back().reason == Reason::rejected);
    cr_assert(near.events.back().private_data == why);
    Side& again = ask(pair);
    Side& far = accept(pair, *request_of(pair));
    cr_assert(pair.run([&] { return again.connected() && far.connected(); }));
    cr_assert(again.kind == LinkKind::shm);
}

Test(engine_shm_proposing, a_request_that_is_dropped__is_refused) {
    Pair pair;
    pair.add(1);
    Side& near = ask(pair);
    request_of(pair).reset();
    cr_assert(pair.run([&] { return !near.events.empty(); }));
    cr_assert(near.events.back().reason == Reason::peer_closed ||
              near.events.back().reason == Reason::peer_reset);
}

// --- who listens ---

Test(engine_shm_proposing, a_listener_that_has_closed__refuses) {
    Pair pair;
    pair.add(1);
    pair.local_listener.listener.stop();
    Side& near = ask(pair);
    cr_assert(pair.run([&] { return !near.events.empty(); }));
    cr_assert(near.events.back().reason == Reason::refused);
    cr_assert_not(known(pair));
}

// As that of TCP.
Test(engine_shm_proposing, a_port_that_another_has_by_now__is_its) {
    Pair pair;
    pair.add(1);
    const auto name = pair.local_listener.listener.name();
    pair.local_listener.listener.stop();
    LocalListener other;
    dat::iwarp::Listener taken(other, {});
    cr_assert_eq(taken.bind(name), 0);
    cr_assert_eq(taken.listen(8), 0);
    Side& near = ask(pair);
    cr_assert(pair.run([&] {
        taken.progress();
        return !other.requests.empty();
    }));
    Side& far = accept(pair, *other.requests[0]);
    cr_assert(pair.run([&] { return near.connected() && far.connected(); }));
    cr_assert(pair.local_listener.requests.empty());
}

// A child that the process has made has the socket, and does not accept.
Test(engine_shm_proposing, a_listener_that_a_child_has_too__refuses_when_it_has_closed) {
    Pair pair;
    pair.add(1);
    dat::net::Socket before = stream_to(pair);
    const auto name = known(pair)->name;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    pair.local_listener.listener.stop();
    dat::net::Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address;
    const socklen_t size = shm::address_of(name, address);
    cr_assert_neq(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

// More than wait there are made by TCP.
Test(engine_shm_proposing, a_stream_with_a_crowd__is_not_waited_for) {
    Pair pair;
    pair.add(1);
    const std::size_t before = g_tcp_sockets;
    constexpr std::size_t kAll = 90; // of which 64 are let wait
    for (std::size_t i = 0; i < kAll; ++i) {
        ask(pair);
        pair.far.emplace_back(pair.far_domain);
    }
    cr_assert_gt(g_tcp_sockets, before);
    cr_assert_lt(g_tcp_sockets, before + kAll);
    cr_assert(known(pair));
    cr_assert(pair.run([&] { return pair.local_listener.requests.size() == kAll; }));
    pair.accept(kAll);
    for (std::size_t i = 1; i <= kAll; ++i) {
        cr_assert(pair.near[i].connected() && pair.far[i].connected());
    }
}

// It has told its own name, and no other.
Test(engine_shm_proposing, a_name__is_known_as_long_as_the_peering) {
    Pair pair;
    pair.add(1);
    cr_assert(known(pair));
    pair.end(0);
    cr_assert(pair.run([&] { return places().empty(); }));
    cr_assert_not(known(pair));
    const std::size_t before = g_tcp_sockets;
    pair.add(1);
    cr_assert_gt(g_tcp_sockets, before);
}

// --- who accepts ---

// A listener belongs to no domain: the peering may be another's.
Test(engine_shm_proposing, another_domain_that_accepts__shares_memory_as_well) {
    Pair pair;
    pair.add(1);
    OpenDomain third(sharing());
    {
        Side far(third);
        const std::size_t before = g_tcp_sockets;
        for (int round = 0; round < 2; ++round) {
            Side& near = ask(pair);
            const auto request = request_of(pair);
            Side last(third);
            Side& to = round == 0 ? far : last;
            cr_assert_eq(dat::iwarp::accept(to.endpoint, *request, {}), 0);
            cr_assert(pair.run([&] {
                third.progress();
                return near.connected() && to.connected();
            }));
            cr_assert(near.kind == LinkKind::shm && to.kind == LinkKind::shm);
        }
        cr_assert_eq(g_tcp_sockets, before);
    }
}

// Then the stream is what TCP is else, to its end.
Test(engine_shm_proposing, one_that_shares_no_memory__stays_on_the_stream) {
    Pair pair;
    pair.add(1);
    OpenDomain third; // FI_DAT_SHM=0
    const std::size_t before = g_tcp_sockets;
    for (const bool graceful : {false, true}) {
        Side& near = ask(pair);
        Side far(third);
        const auto request = request_of(pair);
        cr_assert_eq(dat::iwarp::accept(far.endpoint, *request, bytes("welcome")), 0);
        const auto both = [&](auto done) {
            return pair.run([&] {
                third.progress();
                return done();
            });
        };
        cr_assert(both([&] { return near.connected() && far.connected(); }));
        cr_assert(near.kind == LinkKind::iwarp && far.kind == LinkKind::iwarp);
        for (const std::size_t size : {std::size_t{5}, std::size_t{3'000'000}}) {
            const Bytes out = numbered(size);
            Bytes in(size);
            far.receive(in);
            near.send<dat::engine::Link>(out);
            cr_assert(both([&] { return !far.receives.empty() && !near.requests.empty(); }));
            cr_assert(in == out);
            far.receives.take();
            near.requests.take();
        }
        cr_assert(near.endpoint.disconnect(graceful));
        cr_assert(both([&] { return near.ended() && far.ended(); }));
        cr_assert(far.events.back().event == dat::core::Event::disconnected);
    }
    cr_assert_eq(g_tcp_sockets, before);
}

// --- who stays out ---

// Each place that was given is given back, once, whenever the initiator goes.
Test(engine_shm_proposing, an_initiator_that_gives_up__takes_no_place_with_it) {
    Pair pair;
    pair.add(4);
    pair.end(3);
    pair.settle();
    const std::size_t before = open_descriptors();
    for (int round = 0; round < 24; ++round) {
        Side& near = ask(pair);
        const auto request = request_of(pair);
        if (round % 3 == 0) { // before it is accepted, and known to be before
            near.endpoint.disconnect(false);
            pair.settle();
        } else if (round % 3 == 1) { // and not known yet
            near.endpoint.disconnect(false);
        }
        Side& far = accept(pair, *request);
        if (round % 3 == 2) { // and has not read that
            near.endpoint.disconnect(false);
        }
        cr_assert(pair.run([&] { return near.ended() && !far.events.empty(); }));
        cr_assert_not(far.connected());
    }
    pair.settle();
    cr_assert_eq(open_descriptors(), before);
    const std::size_t tcp = g_tcp_sockets;
    pair.add(1);
    pair.talk(pair.near.size() - 1 - 0);
    cr_assert_eq(places().size(), 8u); // it had room for one, and has
    cr_assert_eq(g_tcp_sockets, tcp);
}

Test(engine_shm_proposing, a_responder_that_gives_up__takes_no_place_with_it) {
    Pair pair;
    pair.add(4);
    pair.end(3);
    pair.settle();
    for (int round = 0; round < 10; ++round) {
        Side& near = ask(pair);
        const auto request = request_of(pair);
        Side& far = accept(pair, *request);
        far.endpoint.disconnect(false);
        cr_assert(pair.run([&] { return far.ended() && !near.events.empty(); }));
        cr_assert(pair.run([&] { return near.ended(); }));
        pair.settle();
    }
    pair.add(1);
    cr_assert_eq(places().size(), 8u);
}

// --- who is killed ---

namespace {

// A process that has connected once, asks once more, and is then stopped for good.
struct StoppedInitiator {
    explicit StoppedInitiator(Pair& pair) {
        pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            OpenDomain domain(sharing());
            Side first(domain);
            Side second(domain);
            const auto to = pair.local_listener.listener.name();
            dat::iwarp::connect(first.endpoint, to, nullptr, {}, {});
            if (!run_until(domain, [&] { return first.connected(); })) {
                _exit(2);
            }
            g_tcp_sockets = 0;
            dat::iwarp::connect(second.endpoint, to, nullptr, {}, {});
            if (g_tcp_sockets == 0) {
                raise(SIGSTOP);
            }
            _exit(3);
        }
    }
    void end() {
        kill(pid, SIGKILL);
        int status = 0;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFSIGNALED(status));
    }
    pid_t pid = 0;
};

} // namespace

Test(engine_shm_proposing, an_initiator_that_is_killed__takes_the_place_with_it) {
    for (const bool replied : {false, true}) {
        Pair pair;
        StoppedInitiator initiator(pair);
        Side& first = accept(pair, *request_of(pair));
        cr_assert(pair.run([&] { return first.connected(); }));
        const auto request = request_of(pair);
        Side* second = nullptr;
        if (replied) {
            second = &accept(pair, *request);
            pair.settle();
            cr_assert_not(second->connected());
        }
        initiator.end();
        if (!replied) {
            second = &accept(pair, *request);
        }
        cr_assert(pair.run([&] { return first.ended() && second->ended(); }));
        cr_assert(pair.run([&] { return places().empty(); }));
    }
}

// Whoever waits there, and is not let in, hears the end of it.
Test(engine_shm_proposing, a_responder_that_is_killed__ends_the_attempt) {
    int told[2];
    cr_assert_eq(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        LocalListener local_listener;
        OpenDomain domain(sharing());
        Side side(domain);
        sockaddr_in name{};
        std::memcpy(&name, local_listener.listener.name().get(), sizeof name);
        if (write(told[1], &name, sizeof name) != static_cast<ssize_t>(sizeof name)) {
            _exit(2);
        }
        for (;;) {
            local_listener.listener.progress();
            domain.progress();
            if (local_listener.requests.size() == 1 && local_listener.requests[0]->pending()) {
                dat::iwarp::accept(side.endpoint, *local_listener.requests[0], {});
            }
            if (local_listener.requests.size() == 2) {
                raise(SIGSTOP);
            }
        }
    }
    sockaddr_in name{};
    cr_assert_eq(read(told[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
    const dat::net::SocketAddress to(reinterpret_cast<const sockaddr*>(&name), sizeof name);
    OpenDomain domain(sharing());
    Side first(domain);
    cr_assert_eq(dat::iwarp::connect(first.endpoint, to, nullptr, {}, {}), 0);
    cr_assert(run_until(domain, [&] { return first.connected(); }));
    const std::size_t before = g_tcp_sockets;
    Side second(domain);
    Side third(domain);
    cr_assert_eq(dat::iwarp::connect(second.endpoint, to, nullptr, {}, {}), 0);
    int status = 0;
    cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
    cr_assert(WIFSTOPPED(status));
    cr_assert_eq(dat::iwarp::connect(third.endpoint, to, nullptr, {}, {}), 0);
    cr_assert_eq(g_tcp_sockets, before);
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(run_until(
        domain, [&] { return first.ended() && !second.events.empty() && !third.events.empty(); }));
    cr_assert_not(second.connected() || third.connected());
    cr_assert(run_until(domain, [&] { return places().empty(); }));
}
