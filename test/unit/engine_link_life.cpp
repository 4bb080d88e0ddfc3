// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The life of a link: its table against the oracle, test/spec/link-transitions.tsv, and links over
// TCP and over shared memory that go through it.
#include "engine_attack.h"
#include "engine_shm.h"
#include "life_oracle.h"

#include "engine/link_life.h"
#include "links/iwarp/link.h"

#include <criterion/criterion.h>

using namespace engine_test;
using dat::engine::kLinkTable;
using dat::engine::Level;
using dat::engine::LinkEvent;
using dat::engine::LinkState;
using Tcp = dat::iwarp::Link;

namespace {

template <class L> LinkState state(const Side& side) {
    return static_cast<const L*>(side.endpoint.link())->state();
}

} // namespace

Test(engine_link_life, table__is_the_oracle) {
    life_test::assert_is_oracle<LinkState, LinkEvent>(kLinkTable, "link-transitions.tsv");
}

// What a link asks of its state is what the two halves of the state's name say.
Test(engine_link_life, questions__go_by_the_halves_of_the_state) {
    using enum LinkEvent;
    for (const bool drains : {false, true}) {
        for (const bool says : {false, true}) {
            for (const int ends : {0, 1, 2}) {
                dat::engine::LinkLife life;
                for (int i = 0; i < ends; ++i) {
                    life.happen(i == 0 ? peer_ended : all_taken);
                }
                if (drains || says) {
                    life.happen(drain);
                }
                if (says) {
                    life.happen(goodbye);
                }
                cr_assert_eq(life.drains(), drains || says);
                cr_assert_eq(life.said_goodbye(), says);
                cr_assert_eq(life.is_silent(), says);
                cr_assert_eq(life.peer_ended(), ends > 0);
                cr_assert_eq(life.waits(), ends == 2);
                cr_assert_eq(life.is_open(), !drains && !says && ends == 0);
                cr_assert_eq(life.is_limited(), !life.is_open());
                life.happen(part);
                cr_assert(life.is_over() && life.is_silent());
                cr_assert(!life.peer_ended() && !life.waits() && !life.said_goodbye());
                cr_assert(!life.is_limited() && !life.is_open());
            }
        }
    }
}

// --- over shared memory ---

Test(engine_link_life, shm__drains_while_a_request_is_out) {
    Linked l;
    const Bytes out = numbered(300'000);
    Bytes in(out.size());
    l.a.send<shm::Link>(out, 1, Level::placed);
    cr_assert(state<shm::Link>(l.a) == LinkState::open);
    l.a.endpoint.disconnect(true);
    cr_assert(state<shm::Link>(l.a) == LinkState::draining);
    l.b.receive(in);
    cr_assert(l.run([&] { return l.a.ended() && l.b.ended(); }));
    cr_assert(in == out);
}

Test(engine_link_life, shm__the_peer_ends_in_each_half) {
    for (const bool drains : {false, true}) {
        Raw p;
        if (drains) {
            p.side.send<shm::Link>(bytes("unconfirmed"), 1);
            p.side.endpoint.disconnect(true);
            cr_assert(state<shm::Link>(p.side) == LinkState::draining);
        }
        p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("late"));
        p.view.mine->end.store(shm::End::closed);
        p.ring();
        const LinkState waits = drains ? LinkState::draining_waits : LinkState::open_waits;
        cr_assert(p.run([&] { return state<shm::Link>(p.side) == waits; }));
        p.wake_socket.close(); // tells the same once more
        for (int i = 0; i < 100; ++i) {
            p.domain.progress();
        }
        cr_assert(state<shm::Link>(p.side) == waits);
        if (!drains) {
            p.side.endpoint.disconnect(true); // nothing is to be sent: goodbye at once
            cr_assert(state<shm::Link>(p.side) == LinkState::said_waits);
        }
        Bytes in(4);
        p.side.receive(in);
        cr_assert(p.run([&] { return p.side.ended(); }));
    }
}

Test(engine_link_life, shm__the_peer_ends_behind_our_goodbye) {
    Raw p;
    p.side.endpoint.disconnect(true);
    cr_assert(state<shm::Link>(p.side) == LinkState::said);
    p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("late"));
    p.view.mine->end.store(shm::End::closed);
    p.ring();
    cr_assert(p.run([&] { return state<shm::Link>(p.side) == LinkState::said_waits; }));
    const auto& link = static_cast<const shm::Link&>(*p.side.endpoint.link());
    Bytes in(4);
    p.side.receive(in);
    cr_assert(p.side.ended());
    cr_assert(link.state() == LinkState::over); // destroyed when the domain's progress ends
}

// --- over TCP ---

namespace {

// Brings `w` there: the peer's end is seen behind a message that waits for its receive.
bool left_behind(Attacked& w, LinkState waits) {
    w.put(send_segment(1, kFour));
    w.raw.shutdown_write();
    return w.run([&] { return state<Tcp>(w.side) == waits; });
}

} // namespace

Test(engine_link_life, tcp__the_peer_ends_in_each_half, .timeout = 60) {
    for (const bool drains : {false, true}) {
        Attacked w;
        if (drains) {
            w.side.send<Tcp>(bytes("unconfirmed"), 1);
            w.expect(3);
            cr_assert(w.side.endpoint.disconnect(true));
            cr_assert(state<Tcp>(w.side) == LinkState::draining);
        }
        cr_assert(left_behind(w, drains ? LinkState::draining_waits : LinkState::open_waits));
        if (!drains) {
            cr_assert(w.side.endpoint.disconnect(true)); // nothing is to be sent
            cr_assert(state<Tcp>(w.side) == LinkState::said_waits);
        }
        Bytes into(4);
        w.side.receive(into, 1);
        cr_assert(w.run([&] { return w.side.ended(); }));
    }
}

Test(engine_link_life, tcp__the_peer_ends_behind_our_goodbye, .timeout = 60) {
    Attacked w;
    cr_assert(w.side.endpoint.disconnect(true));
    cr_assert(state<Tcp>(w.side) == LinkState::said);
    cr_assert(left_behind(w, LinkState::said_waits));
    const auto& link = static_cast<const Tcp&>(*w.side.endpoint.link());
    Bytes into(4);
    w.side.receive(into, 1);
    cr_assert(w.side.ended());
    cr_assert(link.state() == LinkState::over); // destroyed when the domain's progress ends
    cr_assert(w.side.events.back().reason == dat::core::Reason::local);
}

// Reading has stopped, since too much waits: the end is seen before what came ahead of it.
Test(engine_link_life, tcp__the_peer_ends_while_reading_has_stopped, .timeout = 60) {
    for (const bool drains : {false, true}) {
        Attacked w;
        const Bytes large(60'000);
        std::uint32_t msn = 0;
        for (int i = 0; i < 3; ++i) { // more than is staged, and no more than the socket holds
            w.put(send_segment(++msn, large));
        }
        w.settle();
        w.raw.shutdown_write();
        cr_assert(w.run([&] { return state<Tcp>(w.side) == LinkState::open_ended; }));
        if (drains) {
            cr_assert(w.side.endpoint.disconnect(true));
            cr_assert(state<Tcp>(w.side) == LinkState::said_ended);
        }
        std::vector<Bytes> in(msn, Bytes(large.size()));
        for (Bytes& each : in) {
            w.side.receive(each);
        }
        cr_assert(w.run([&] { return w.side.ended(); }));
    }
}
