// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What either end of a local stream may say, and what comes of all else.
#include "../transport/usage.h"
#include "engine_shm_proposing.h"

#include <cerrno>
#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>

using namespace engine_test;
using dat::core::Reason;
using dat::engine::LinkKind;
using dat::test::open_descriptors;

namespace {

// An initiator that says what it likes.
struct RawInitiator {
    explicit RawInitiator(Pair& pair) : socket(stream_to(pair)) {
        proposal.ends =
            shm::ends_of(pair.local_listener.listener.name(), pair.local_listener.listener.name());
        proposal.ends.initiator.port = 40000;
        proposal.peering = known(pair)->peering->id();
        proposal.cookie = 4711;
        frame.revision = dat::iwarp::kMpaRevision2;
        frame.from_dat = frame.wide = frame.memory = true;
        frame.enhanced = dat::iwarp::MpaEnhanced{
            .ird = 1, .ord = 1, .peer_to_peer = true, .rtr_rdma_write = true};
    }
    void say(std::size_t at_most = SIZE_MAX) {
        std::array<std::byte, 1024> bytes;
        std::memcpy(bytes.data(), &proposal, sizeof proposal);
        const std::size_t size =
            sizeof proposal +
            dat::iwarp::encode_mpa_frame(frame, std::span(bytes).subspan(sizeof proposal));
        const std::size_t said = std::min(size, at_most);
        cr_assert_eq(::send(socket.fd(), bytes.data(), said, MSG_NOSIGNAL),
                     static_cast<ssize_t>(said));
    }
    // All that has come. -1: nothing; 0: the end.
    ssize_t hear() {
        heard = ::recv(socket.fd(), room.data(), room.size(), MSG_DONTWAIT);
        return heard;
    }
    bool is_closed() { return hear() == 0 || (heard < 0 && errno == ECONNRESET); }
    shm::Placed placed() {
        const auto bytes = std::span(room).first(static_cast<std::size_t>(heard));
        const auto parse = dat::iwarp::parse_mpa_frame(dat::iwarp::MpaKind::reply, bytes);
        cr_assert(parse.status == dat::iwarp::MpaStatus::complete && parse.frame.memory);
        const auto placed = shm::parse<shm::Placed>(bytes.subspan(parse.size));
        cr_assert(placed.has_value());
        return *placed;
    }
    dat::net::Socket socket;
    shm::Proposal proposal;
    dat::iwarp::MpaFrame frame;
    std::array<std::byte, 1024> room;
    ssize_t heard = -1;
};

} // namespace

Test(engine_shm_proposing, a_proposal_of_another_port__is_dropped) {
    Pair pair;
    pair.add(1);
    const auto is_dropped = [&](auto spoil) {
        RawInitiator raw(pair);
        spoil(raw);
        raw.say();
        return pair.run([&] { return raw.is_closed(); }) && pair.local_listener.requests.empty();
    };
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.magic ^= 1; }));
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.kind += 1; }));
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.ends.responder.port ^= 1; }));
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.ends.responder.host[15] ^= 2; }));
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.ends.responder.host[3] ^= 2; }));
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.ends.initiator.host[3] ^= 2; }));
    // It is none of this host, or root's.
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.ends.initiator.host[12] = 192; }));
    cr_assert(is_dropped([](RawInitiator& raw) { raw.proposal.ends.initiator.port = 1023; }));
    pair.add(1);
}

Test(engine_shm_proposing, one_that_goes_in_the_middle_of_it__is_forgotten) {
    Pair pair;
    pair.add(1);
    const std::size_t before = open_descriptors();
    for (std::size_t said = 0; said < sizeof(shm::Proposal) + 24; said += 5) {
        RawInitiator raw(pair);
        if (said > 0) {
            raw.say(said);
        }
        pair.local_listener.listener.progress();
        raw.socket.close();
        pair.local_listener.listener.progress();
    }
    pair.local_listener.listener.progress();
    cr_assert(pair.local_listener.requests.empty());
    cr_assert_eq(open_descriptors(), before);
}

// A peering that nobody has is no reason to refuse: it is offered what any other is.
Test(engine_shm_proposing, one_of_no_peering__is_made_an_offer) {
    Pair pair;
    pair.add(1);
    RawInitiator raw(pair);
    raw.proposal.peering ^= 1;
    raw.say();
    const auto request = request_of(pair);
    Side& far = accept(pair, *request);
    cr_assert(pair.run([&] { return raw.hear() > 0; }));
    cr_assert_eq(raw.placed().has_place, 0u);
    cr_assert(raw.placed().name != shm::Name{});
    raw.socket.close();
    cr_assert(pair.run([&] { return !far.events.empty(); }));
}

// It is who says the peering, not who knows its number, that may take the place.
Test(engine_shm_proposing, a_place__is_taken_by_the_peering_alone) {
    Pair pair;
    pair.add(2); // where there is a place for two more
    RawInitiator raw(pair);
    raw.say();
    Side& far = accept(pair, *request_of(pair));
    cr_assert(pair.run([&] { return raw.hear() > 0; }));
    cr_assert_eq(raw.placed().has_place, 1u);
    pair.settle();
    cr_assert_not(far.connected());
    raw.socket.close();
    pair.settle();
    cr_assert_not(far.connected());
    // Its guest says so; what it does with the place is its own affair.
    known(pair)->peering->propose(raw.proposal.cookie);
    known(pair)->peering->forgo(raw.proposal.cookie);
    cr_assert(pair.run([&] { return !far.events.empty(); }));
    cr_assert_not(far.connected());
}

// Two of one cookie: the second is made an offer.
Test(engine_shm_proposing, a_cookie_that_is_used_already__gives_no_place) {
    Pair pair;
    pair.add(2); // where there is a place for two more
    RawInitiator first(pair);
    RawInitiator second(pair);
    first.say();
    second.say();
    const auto one = request_of(pair);
    const auto two = request_of(pair);
    accept(pair, *one);
    accept(pair, *two);
    cr_assert(pair.run([&] { return first.heard > 0 || first.hear() > 0; }));
    cr_assert(pair.run([&] { return second.heard > 0 || second.hear() > 0; }));
    cr_assert_eq(first.placed().has_place + second.placed().has_place, 1u);
}

namespace {

// A host whose stream answers what it likes.
struct RawResponder {
    explicit RawResponder(Pair& pair) {
        shm::Name name{};
        listening = shm::listen_locally(SOCK_STREAM, 8, name);
        cr_assert(listening);
        const auto peering = known(pair)->peering;
        auto& listeners = at(pair.near_domain).known_listeners();
        const auto to = pair.local_listener.listener.name();
        listeners.forget(known(pair)->name);
        listeners.remember(to, to, name, peering);
    }
    void answer(shm::Placed placed, std::size_t at_most = SIZE_MAX, bool memory = true) {
        dat::net::Socket socket(::accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC));
        cr_assert(socket);
        std::array<std::byte, 1024> bytes;
        cr_assert_gt(::recv(socket.fd(), bytes.data(), bytes.size(), 0), 0);
        dat::iwarp::MpaFrame reply;
        reply.kind = dat::iwarp::MpaKind::reply;
        reply.revision = dat::iwarp::kMpaRevision2;
        reply.from_dat = reply.wide = true;
        reply.memory = memory;
        reply.enhanced = dat::iwarp::MpaEnhanced{
            .ird = 1, .ord = 1, .peer_to_peer = true, .rtr_rdma_write = true};
        const std::size_t size = dat::iwarp::encode_mpa_frame(reply, bytes);
        std::memcpy(bytes.data() + size, &placed, sizeof placed);
        const std::size_t said = std::min(size + (memory ? sizeof placed : 0), at_most);
        cr_assert_eq(::send(socket.fd(), bytes.data(), said, MSG_NOSIGNAL),
                     static_cast<ssize_t>(said));
        accepted = std::move(socket);
    }
    dat::net::Socket listening;
    dat::net::Socket accepted;
};

} // namespace

// A place that is none, or in use, is declined; the connection stays where it is.
Test(engine_shm_proposing, a_place_that_cannot_be__is_not_used) {
    Pair pair;
    pair.add(2);
    RawResponder raw(pair);
    for (const std::uint32_t place : {0u, 1u, 4000u, UINT32_MAX}) {
        Side& near = ask(pair);
        shm::Placed placed;
        placed.has_place = 1;
        placed.place = place;
        raw.answer(placed);
        cr_assert(pair.run([&] { return near.connected(); }));
        cr_assert(near.kind == LinkKind::iwarp, "%u", place);
        raw.accepted.close();
        cr_assert(pair.run([&] { return near.ended(); }));
    }
    pair.talk(0);
    pair.talk(1);
}

Test(engine_shm_proposing, a_reply_that_is_nonsense__ends_the_attempt) {
    Pair pair;
    pair.add(1);
    RawResponder raw(pair);
    Side& wrong = ask(pair);
    shm::Placed placed;
    placed.magic ^= 1;
    raw.answer(placed);
    cr_assert(pair.run([&] { return !wrong.events.empty(); }));
    cr_assert(wrong.events.back().reason == Reason::protocol);
    for (std::size_t said = 1; said < 60; said += 9) {
        Side& near = ask(pair);
        raw.answer({}, said);
        raw.accepted.close();
        cr_assert(pair.run([&] { return !near.events.empty(); }));
        cr_assert_not(near.connected());
    }
    pair.talk(0);
}

Test(engine_shm_proposing, a_reply_without_memory__is_one_of_tcp) {
    Pair pair;
    pair.add(1);
    RawResponder raw(pair);
    Side& near = ask(pair);
    raw.answer({}, SIZE_MAX, false);
    cr_assert(pair.run([&] { return near.connected(); }));
    cr_assert(near.kind == LinkKind::iwarp);
    raw.accepted.close();
    cr_assert(pair.run([&] { return near.ended(); }));
    pair.talk(0);
}

// Who has that name by now is not who told it.
Test(engine_shm_proposing, another_process_of_that_name__is_not_spoken_to) {
    Pair pair;
    pair.add(1);
    int ready[2];
    int told[2];
    cr_assert_eq(pipe(ready) + pipe(told), 0);
    const auto name = known(pair)->name;
    const auto peering = known(pair)->peering;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        shm::Name other{};
        const dat::net::Socket listening = shm::listen_locally(SOCK_STREAM, 8, other);
        if (!listening || write(ready[1], &other, sizeof other) != sizeof other) {
            _exit(2);
        }
        pollfd comes{listening.fd(), POLLIN, 0};
        poll(&comes, 1, -1);
        const int fd = ::accept(listening.fd(), nullptr, nullptr);
        char one = 0;
        const ssize_t n = ::recv(fd, &one, 1, 0);
        _exit(n == 0 ? 0 : 3);
    }
    shm::Name other{};
    cr_assert_eq(read(ready[0], &other, sizeof other), static_cast<ssize_t>(sizeof other));
    auto& listeners = at(pair.near_domain).known_listeners();
    const auto to = pair.local_listener.listener.name();
    // As if the process that told it had closed its own, and another had got the same.
    listeners.forget(name);
    listeners.remember(to, to, other, peering);
    const std::size_t before = g_tcp_sockets;
    pair.add(1);
    cr_assert_gt(g_tcp_sockets, before);
    int status = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0, "%x", status);
}
