// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Peers that end a connection in every way there is, at the worst moment, and those
// that never begin one, against the software domain. One thread, loopback.
#include "../transport/usage.h"
#include "engine_attack.h"

#include <malloc.h>
#include <sys/resource.h>

using namespace engine_test;
using dat::core::Reason;
using dat::iwarp::Link;
using dat::test::open_descriptors;

namespace {} // namespace

// U-2: between frames it is a disconnect, inside one the connection is broken.
Test(engine_attack_end, at_each_byte_of_a_frame__is_broken, .timeout = 60) {
    for (const bool crc : {false, true}) {
        Attacked w(Peer::dat, crc);
        const Bytes whole = w.frame(send_segment(1, wire::filled(3000, 1)));
        for (const std::size_t cut : {std::size_t{1}, std::size_t{2}, std::size_t{19},
                                      std::size_t{25}, std::size_t{2500}, whole.size() - 1}) {
            Bytes into(3000);
            w.side.receive(into, 1);
            w.write(wire::cut(whole, cut));
            w.raw.shutdown_write();
            cr_assert(w.run([&] { return w.side.ended(); }));
            cr_assert(w.side.events.back().event == Event::broken, "%zu", cut);
            cr_assert(w.side.events.back().reason == Reason::end_in_frame, "%zu", cut);
            cr_assert_eq(w.side.receives.take().size(), 1u);
            cr_assert(w.side.endpoint.reset());
            w.connect();
        }
    }
}

Test(engine_attack_end, between_frames__is_a_disconnect, .timeout = 60) {
    Attacked w;
    Bytes into(4);
    for (const bool reset : {false, true}) {
        w.side.receive(into, 1);
        w.put(send_segment(1, kFour));
        cr_assert(w.run([&] { return !w.side.receives.empty(); }));
        w.side.receives.take();
        w.side.receive(into, 2);
        if (reset) {
            w.raw.reset();
        } else {
            w.raw.close();
        }
        cr_assert(w.run([&] { return w.side.ended(); }));
        cr_assert(w.side.events.back().event == Event::disconnected);
        cr_assert(w.side.events.back().reason ==
                  (reset ? Reason::peer_reset : Reason::peer_closed));
        cr_assert(w.side.receives.take()[0].status == DtoStatus::flushed);
        cr_assert(w.side.endpoint.reset());
        w.connect();
    }
}

// U-67: the grace runs also where the system reports the peer's end again and again.
Test(engine_attack_end, by_reset_behind_a_staged_message__waits_no_longer_than_the_grace,
     .timeout = 60) {
    Attacked w;
    w.put(send_segment(1, kFour));
    w.settle();
    w.raw.reset();
    cr_assert(w.run([&] { return w.side.ended(); }));
    cr_assert(w.side.events.back().event == Event::disconnected);
    cr_assert(w.side.events.back().reason == Reason::peer_reset);
}

// And what it had sent is received meanwhile, even if this side has more to send.
Test(engine_attack_end, by_reset_behind_a_staged_message__leaves_it_to_be_received, .timeout = 60) {
    Attacked w;
    Bytes into(4);
    w.put(send_segment(1, kFour));
    w.settle();
    w.raw.reset();
    w.settle();
    w.side.send<Link>(bytes("too late"), 1);
    w.settle();
    w.side.send<Link>(bytes("too late"), 2);
    w.settle();
    cr_assert(w.side.connected());
    w.side.receive(into, 1);
    cr_assert(w.run([&] { return w.side.ended(); }));
    cr_assert(into == kFour);
    cr_assert(w.side.events.back().event == Event::disconnected);
    cr_assert(w.side.events.back().reason == Reason::peer_reset);
    cr_assert_eq(w.side.requests.take().size(), 2u);
}

// U-42: after its goodbye this side has nothing to say any more, whatever is asked.
Test(engine_attack_end, requests_of_the_peer_behind_our_goodbye__are_not_answered, .timeout = 60) {
    Attacked w;
    Bytes into(4);
    w.side.receive(into, 1);
    cr_assert(w.side.endpoint.disconnect(true));
    cr_assert(w.run([&] { return !w.raw.listen(); }));
    w.put(send_segment(1, kFour));
    w.put(wire::bytes({0xc1, 0x50}) + be(w.full, 4) + be(0x1000, 8)); // asks for an Ack
    w.put(read_request(1, 16, w.full, 0x1000));
    cr_assert(w.run([&] { return !w.side.receives.empty(); }));
    w.settle();
    w.raw.shutdown_write();
    cr_assert(w.run([&] { return w.side.ended(); }));
    cr_assert(w.side.receives.take()[0].status == DtoStatus::success);
    cr_assert(w.side.events.back().event == Event::disconnected);
    cr_assert(w.side.events.back().reason == Reason::local);
}

// U-2: the peer has gone, so what waits for it is flushed.
Test(engine_attack_end, half_closed_by_the_peer_while_draining__flushes, .timeout = 60) {
    Attacked w;
    w.side.send<Link>(bytes("unconfirmed"), 1);
    w.expect(3);
    cr_assert(w.side.endpoint.disconnect(true));
    w.settle();
    cr_assert(!w.side.ended());
    w.raw.shutdown_write();
    cr_assert(w.run([&] { return w.side.ended(); }));
    cr_assert(w.side.requests.take()[0].status == DtoStatus::flushed);
    cr_assert(w.side.events.back().event == Event::disconnected);
}

// STS-1: what a Terminate says of the oldest request.
Test(engine_attack_end, by_each_class_of_terminate__has_its_status, .timeout = 60) {
    const std::pair<std::uint32_t, DtoStatus> classes[] = {
        {0x0000, DtoStatus::remote_responder}, {0x0101, DtoStatus::remote_access},
        {0x0206, DtoStatus::bad_response},     {0x1000, DtoStatus::remote_responder},
        {0x1102, DtoStatus::remote_access},    {0x1202, DtoStatus::receiver_not_ready},
        {0x1203, DtoStatus::bad_response},     {0x1205, DtoStatus::remote_responder},
        {0x2002, DtoStatus::transport},        {0xf7ff, DtoStatus::transport},
    };
    Attacked w;
    for (const auto& [code, status] : classes) {
        w.side.send<Link>(bytes("one"), 1);
        w.side.send<Link>(bytes("two"), 2);
        w.put(terminate_segment(code));
        cr_assert(w.run([&] { return w.side.ended(); }));
        const auto done = w.side.requests.take();
        cr_assert_eq(done.size(), 2u);
        cr_assert(done[0].status == status, "%04x", code);
        cr_assert(done[1].status == DtoStatus::flushed);
        cr_assert(w.side.events.back().event == Event::broken);
        cr_assert(w.side.events.back().reason == Reason::terminate);
        cr_assert_eq(w.side.endpoint.last_end().terminate_code, code);
        cr_assert(w.side.endpoint.reset());
        w.connect();
    }
}

Test(engine_attack_end, by_a_terminate_without_a_code__is_broken, .timeout = 60) {
    Attacked w;
    w.put(untagged(7, 2, 1, 0, {}));
    cr_assert(w.run([&] { return w.side.ended(); }));
    cr_assert(w.side.events.back().event == Event::broken);
}

// A peer that does not close: what lingers for it is given up after a while, also if
// its end comes in that very moment.
Test(engine_attack_end, never_answered__does_not_linger_for_ever, .timeout = 60) {
    Attacked w;
    const std::size_t before = open_descriptors();
    w.put(tagged(0, 99, 0, kFour));
    cr_assert(w.run([&] { return w.side.ended(); }));
    cr_assert_eq(open_descriptors(), before);
    // Nobody looks until both the limit has passed and the peer has closed.
    pollfd fd{w.domain.wait_fd(), POLLIN, 0};
    const auto begun = std::chrono::steady_clock::now();
    const auto waited = [&] { return std::chrono::steady_clock::now() - begun; };
    while (waited() < std::chrono::milliseconds(5200)) {
        if (poll(&fd, 1, 100) > 0 && waited() < std::chrono::seconds(4)) {
            w.domain.progress();
        }
    }
    w.raw.close();
    w.settle();
    cr_assert_eq(open_descriptors(), before - 2);
}

// Nor can such peers use up the descriptors, however fast they come.
Test(engine_attack_end, never_answered_by_hundreds__keeps_a_bounded_number_of_sockets,
     .timeout = 60) {
    constexpr std::size_t kPeers = 400;
    constexpr std::size_t kLingering = 256;
    Attacked w;
    Bystanders others(w);
    const std::size_t before = open_descriptors();
    std::vector<RawPeer> peers;
    for (std::size_t i = 0; i < kPeers; ++i) {
        w.put(tagged(0, 99, 0, kFour));
        cr_assert(w.run([&] { return w.side.ended(); }));
        peers.push_back(std::move(w.raw));
        cr_assert(w.side.endpoint.reset());
        w.connect();
    }
    cr_assert_leq(open_descriptors(), before + kPeers + kLingering);
    others.go_on();
    peers.clear();
    cr_assert(w.run([&] { return open_descriptors() <= before; }));
}

// U-65: connections that never finish the handshake take a bounded number of
// descriptors, and a good peer gets through among them.
Test(engine_attack_flood, of_connections_that_send_no_request__lets_others_in, .timeout = 60) {
    constexpr std::size_t kFlood = 2000;
    constexpr std::size_t kUnfinished = 512;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8192);
    setrlimit(RLIMIT_NOFILE, &limit);
    cr_assert_geq(limit.rlim_cur, kFlood + kUnfinished + 100);

    Attacked w;
    Bystanders others(w);
    std::vector<RawPeer> flood(kFlood);
    const std::size_t descriptors = open_descriptors();
    const std::size_t memory = mallinfo2().uordblks;
    const Bytes half = wire::chars("MPA ID Re");
    for (std::size_t i = 0; i < kFlood; ++i) {
        cr_assert(flood[i].connect(w.local_listener.listener.name().port()));
        if (i % 2 == 0) {
            flood[i].write_some(half);
        }
        w.local_listener.listener.progress();
    }
    for (int i = 0; i < 100; ++i) {
        w.local_listener.listener.progress();
    }
    cr_assert_leq(open_descriptors(), descriptors + kFlood + kUnfinished);
    cr_assert_leq(mallinfo2().uordblks, memory + kUnfinished * 2048);
    w.side.endpoint.disconnect(false);
    cr_assert(w.side.endpoint.reset());
    w.connect();
    others.go_on();
    flood.clear();
    cr_assert(w.run([&] { return open_descriptors() <= descriptors; }));
}
