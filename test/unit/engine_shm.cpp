// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The shared-memory link between two endpoints that keep to the rules: sizes at their
// boundaries, with and without copying from the peer's memory, room, sleep, and ends.
#include "engine_shm.h"
#include "engine_polled.h"

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

using namespace engine_test;
using dat::engine::Level;
using dat::engine::OpCode;

namespace {

// In a record; beyond; a piece of the ring, and beyond; the ring, and beyond; copied from
// elsewhere in one and in two pieces.
const std::vector<std::size_t> kSizes{0,     1,     95,    96,    97,      16383,         16384,
                                      16385, 16480, 16481, 65535, 65536,   65537,         65632,
                                      65633, 65791, 65792, 65793, 1 << 20, (1 << 20) + 1, 3 << 20};

void every_size(bool pulls) {
    Linked l(pulls);
    for (const std::size_t size : kSizes) {
        const Bytes out = numbered(size);
        Bytes in(size);
        l.b.receive(in, 7);
        l.a.send<shm::Link>(out, 8);
        cr_assert(l.run([&] { return !l.b.receives.empty() && !l.a.requests.empty(); }));
        const auto got = l.b.receives.take();
        const auto done = l.a.requests.take();
        cr_assert(got.size() == 1 && got[0].status == DtoStatus::success && got[0].length == size);
        cr_assert(done.size() == 1 && done[0].status == DtoStatus::success);
        cr_assert(in == out, "%zu bytes", size);
    }
}

std::uint32_t registered(Linked& l, Bytes& memory, std::uint8_t access) {
    return l.domain.regions().add({memory.data(), memory.size(), 0, &Side::zone, access});
}

} // namespace

Test(engine_shm, a_message_of_every_size_arrives__copied_from_the_peer) { every_size(true); }

// process_vm_readv(2) is refused: everything goes through the ring.
Test(engine_shm, a_message_of_every_size_arrives__in_pieces) { every_size(false); }

static void rdma_of_every_size(bool pulls) {
    for (const std::size_t size : kSizes) {
        Linked l(pulls);
        Bytes target(size + 2, std::byte{0x5c});
        const auto key =
            registered(l, target, dat::engine::kRemoteRead | dat::engine::kRemoteWrite);
        const Bytes out = numbered(size);
        Bytes in(size);
        l.a.rma<shm::Link>(OpCode::write, out, key, 1);
        l.a.rma<shm::Link>(OpCode::read, in, key, 1);
        cr_assert(l.run([&] { return l.a.requests.size() == 2; }));
        for (const Completion& done : l.a.requests.take()) {
            cr_assert(done.status == DtoStatus::success);
        }
        cr_assert(in == out, "%zu bytes", size);
        cr_assert(target.front() == std::byte{0x5c} && target.back() == std::byte{0x5c});
    }
}

Test(engine_shm, rdma_of_every_size_is_exact__copied_from_the_peer) { rdma_of_every_size(true); }
Test(engine_shm, rdma_of_every_size_is_exact__in_pieces) { rdma_of_every_size(false); }

static void polled(bool pulls) {
    Linked l(pulls);
    a_write_is_there_when_its_last_word_is<shm::Link>(l, l.domain);
}
Test(engine_shm, a_write__is_there_when_its_last_word_is__copied_from_the_peer) { polled(true); }
Test(engine_shm, a_write__is_there_when_its_last_word_is__in_pieces) { polled(false); }

// DTO-13: a message in several segments, into several.
static void segments(bool pulls) {
    Linked l(pulls);
    Bytes out = numbered(200'000);
    Bytes in(200'000);
    dat::engine::post_receive(l.b.endpoint, [&](dat::engine::Receive& r, std::uint64_t seq) {
        r = {};
        r.capacity = in.size();
        r.signaled = true;
        dat::engine::Iov* iov =
            dat::engine::set_segments(r, 3, l.b.endpoint.receive_extra_segments(seq));
        iov[0] = {in.data(), 1};
        iov[1] = {in.data() + 1, 150'000};
        iov[2] = {in.data() + 150'001, 49'999};
    });
    dat::engine::post_request<shm::Link>(
        l.a.endpoint, false, [&](dat::engine::Request& r, std::uint64_t seq) {
            Side::fill(r, OpCode::send, out, 1);
            dat::engine::Iov* iov =
                dat::engine::set_segments(r, 4, l.a.endpoint.request_extra_segments(seq));
            iov[0] = {out.data(), 70'000};
            iov[1] = {out.data() + 70'000, 0};
            iov[2] = {out.data() + 70'000, 30'000};
            iov[3] = {out.data() + 100'000, 100'000};
        });
    cr_assert(l.run([&] { return !l.b.receives.empty() && !l.a.requests.empty(); }));
    cr_assert(in == out);
}
Test(engine_shm, segments_are_gathered_and_scattered__copied_from_the_peer) { segments(true); }
Test(engine_shm, segments_are_gathered_and_scattered__in_pieces) { segments(false); }

// A short message that asks for no confirmation is complete when the call returns, and
// there when the peer looks: nobody has to do anything for it.
Test(engine_shm, a_short_message_is_there_at_once) {
    Raw p;
    p.side.send<shm::Link>(bytes("hello"), 1, Level::taken);
    cr_assert_eq(p.side.requests.take().size(), 1u);
    const shm::Record* got = p.next();
    cr_assert(got && got->kind == shm::Kind::send && got->size == 5);
    cr_assert(std::memcmp(got->payload.data(), "hello", 5) == 0);
}

// U-61: as long as the peer has not placed it, it is not complete.
Test(engine_shm, a_confirmed_message_completes_when_the_peer_says_so_and_not_before) {
    Raw p;
    p.side.send<shm::Link>(bytes("hello"), 1, Level::placed);
    for (int i = 0; i < 100; ++i) {
        p.domain.progress();
    }
    cr_assert(p.side.requests.empty());
    p.view.mine->placed.store(1);
    p.ring(); // it may sleep by now
    cr_assert(p.run([&] { return p.side.requests.size() == 1; }));
}

namespace {

// Both kinds of completion in one queue, and something to do when the next is pushed.
struct WatchedQueue final : dat::core::CompletionQueue {
    void wake() override {
        arm(false);
        pushed();
    }
    std::function<void()> pushed;
};

// Takes the contexts of what has completed, in its order.
std::vector<std::size_t> contexts(dat::core::CompletionQueue& queue) {
    std::vector<std::size_t> all;
    for (; !queue.empty(); queue.pop()) {
        all.push_back(reinterpret_cast<std::size_t>(queue.front().context));
    }
    return all;
}

} // namespace

// A peer that answers a message has placed it: so the message completes before the answer,
// although both were said after this side had looked for the one, and before it looks for the
// other.
Test(engine_shm, what_a_peer_has_placed__completes_before_what_it_sends_then) {
    WatchedQueue queue;
    Raw p;
    cr_assert(p.side.endpoint.set_queues(&queue, &queue));
    std::array<Bytes, 2> in{Bytes(16), Bytes(16)};
    p.side.receive(in[0], 1);
    p.side.receive(in[1], 2);
    p.side.send<shm::Link>(bytes("question"), 3, Level::placed);
    p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("not an answer"));
    queue.pushed = [&] {
        p.view.mine->placed.store(1);
        p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("answer"));
    };
    queue.arm(true);
    cr_assert(p.run([&] { return queue.size() == 3; }));
    cr_assert(contexts(queue) == (std::vector<std::size_t>{1, 3, 2}));
}

// The same where the program posts a receive, and what waited for that goes into it.
Test(engine_shm, what_a_peer_has_placed__completes_before_what_a_receive_was_posted_for) {
    WatchedQueue queue;
    Raw p;
    cr_assert(p.side.endpoint.set_queues(&queue, &queue));
    Bytes in(shm::kInline);
    std::size_t waiting = 0;
    const auto put = [&] {
        p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("before"));
        p.domain.progress();
        return p.view.peers->records_taken.load() == ++waiting;
    };
    while (put()) { // staged, until there are as many as are kept
    }
    p.side.send<shm::Link>(bytes("question"), 1, Level::placed);
    p.view.mine->placed.store(1);
    for (std::size_t i = 0; i < waiting; ++i) {
        p.side.receive(in, 2);
    }
    cr_assert(p.run([&] { return queue.size() == waiting + 1; }));
    cr_assert_eq(contexts(queue).back(), 2u, "what waited in the ring is after what was placed");
}

// The ring holds 128 records: one more waits, is not lost, and goes when there is room.
Test(engine_shm, a_full_ring_holds_back_the_next_message_until_there_is_room) {
    Raw p;
    for (std::uint32_t i = 0; i < shm::kRecords; ++i) {
        p.side.send<shm::Link>(bytes("x"), i + 1, Level::taken);
        p.side.requests.take();
    }
    p.side.send<shm::Link>(bytes("y"), 1000, Level::taken);
    cr_assert(p.side.requests.empty());
    p.domain.progress();
    cr_assert(p.side.requests.empty());
    for (std::uint32_t i = 0; i < shm::kRecords; ++i) {
        cr_assert(p.next());
    }
    cr_assert(!p.next());
    p.view.mine->records_taken.store(1);
    p.ring();
    cr_assert(p.run([&] { return p.side.requests.size() == 1; }));
    const shm::Record* last = p.next();
    cr_assert(last && last->payload[0] == std::byte{'y'});
}

// While it is awake nobody rings; asleep it is woken once.
Test(engine_shm, a_sleeping_peer_is_rung_once_and_one_that_is_awake_is_not) {
    Raw p;
    p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
    cr_assert(!p.rang());
    p.view.mine->asleep.store(shm::kForRecords);
    p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
    p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
    cr_assert(p.rang());
    cr_assert(!p.rang());
    cr_assert_eq(p.view.mine->asleep.load(), 0u);
}

// It is awake, as far as it has said, but its program may have stopped looking: what it leaves
// untaken is rung for, once.
Test(engine_shm, a_peer_that_is_awake_and_takes_nothing__is_reminded_once) {
    Raw p;
    const auto poll_for = [&](std::chrono::milliseconds time) {
        for (const auto end = dat::engine::Clock::now() + time; dat::engine::Clock::now() < end;) {
            p.domain.progress();
        }
    };
    p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
    cr_assert(p.run([&] { return p.rang(); }));
    poll_for(std::chrono::milliseconds(5));
    cr_assert_not(p.rang());
    p.view.mine->records_taken.store(2);
    p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
    poll_for(std::chrono::milliseconds(5));
    cr_assert_not(p.rang(), "nothing is left");
    p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
    cr_assert(p.run([&] { return p.rang(); }), "of the next as well");
}

// What a peer takes while it copies a large message it takes when it has done: it need not be rung
// for. If it has not by then, it is.
Test(engine_shm, a_peer_that_copies__is_reminded_when_it_has_done) {
    Raw p;
    p.view.mine->copying.store(1);
    p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
    for (const auto end = dat::engine::Clock::now() + std::chrono::milliseconds(5);
         dat::engine::Clock::now() < end;) {
        p.domain.progress();
    }
    cr_assert_not(p.rang());
    p.view.mine->copying.store(0);
    cr_assert(p.run([&] { return p.rang(); }));
}

// Before it sleeps it says so; a record that comes by then keeps it awake.
Test(engine_shm, rest__says_that_the_peer_has_to_ring_unless_there_is_something) {
    Raw p;
    cr_assert(p.domain.rest());
    cr_assert_eq(p.view.peers->asleep.load(), static_cast<unsigned>(shm::kForRecords));
    p.view.peers->asleep.store(0);
    p.ring();
    p.domain.progress(); // rung: awake
    p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("x"));
    cr_assert_not(p.domain.rest());
    cr_assert_eq(p.view.peers->asleep.load(), 0u);
}

// What it waits for wakes it: also what the peer has placed, and also where it was
// posted while asleep.
Test(engine_shm, asleep_with_a_confirmed_message_on_its_way__asks_to_be_woken_for_that) {
    Raw p;
    cr_assert(p.domain.rest());
    p.side.send<shm::Link>(bytes("x"), 1, Level::placed);
    cr_assert_eq(p.view.peers->asleep.load(), unsigned{shm::kForRecords} | shm::kForRoom);
}

// U-9: what has no receive is staged, and the writes behind it go on.
Test(engine_shm, a_write_behind_messages_without_receives_is_placed) {
    Linked l;
    Bytes target(8);
    const auto key = registered(l, target, dat::engine::kRemoteWrite);
    l.a.send<shm::Link>(bytes("early"), 1, Level::taken);
    l.a.rma<shm::Link>(OpCode::write, bytes("12345678"), key, 0);
    cr_assert(l.run([&] { return target[7] == std::byte{'8'}; }));
    Bytes in(5);
    l.b.receive(in);
    cr_assert(l.run([&] { return l.b.receives.size() == 1 && l.a.requests.size() == 2; }));
    cr_assert(text(in) == "early");
}

// U-9: only so much is staged; then nothing is taken until a receive is posted.
Test(engine_shm, beyond_what_may_be_staged_nothing_is_taken) {
    auto o = options();
    o.settings.unexpected_bytes = 1000;
    Linked l(true, o);
    const Bytes out = numbered(90);
    for (int i = 0; i < 60; ++i) {
        l.a.send<shm::Link>(out, 1, Level::placed);
    }
    std::vector<Bytes> in(60, Bytes(90));
    for (int i = 0; i < 60; ++i) {
        l.b.receive(in[static_cast<std::size_t>(i)]);
    }
    cr_assert(l.run([&] { return l.b.receives.size() == 60 && l.a.requests.size() == 60; }));
    for (const Bytes& each : in) {
        cr_assert(each == out);
    }
}

// U-2: what was sent before an abrupt disconnect arrives before its event.
Test(engine_shm, an_abrupt_disconnect_comes_behind_what_was_sent) {
    Linked l;
    std::vector<Bytes> in(3, Bytes(5));
    for (Bytes& each : in) {
        l.b.receive(each);
    }
    for (int i = 0; i < 3; ++i) {
        l.a.send<shm::Link>(bytes("hello"), 1, Level::taken);
    }
    l.a.endpoint.disconnect(false);
    cr_assert(l.run([&] { return l.b.ended(); }));
    const auto got = l.b.receives.take();
    cr_assert_eq(got.size(), 3u);
    cr_assert(got[2].status == DtoStatus::success);
    cr_assert(l.b.events[0].event == Event::disconnected);
}

// DISC-4, U-42: `drained` is the peer's end, behind everything.
Test(engine_shm, a_graceful_disconnect_ends_both_sides_behind_large_messages) {
    Linked l;
    const Bytes out = numbered(300'000);
    std::vector<Bytes> in(4, Bytes(out.size()));
    for (int i = 0; i < 4; ++i) {
        l.a.send<shm::Link>(out, 1, Level::placed);
    }
    l.a.endpoint.disconnect(true);
    for (Bytes& each : in) {
        l.b.receive(each);
    }
    cr_assert(l.run([&] { return l.a.ended() && l.b.ended(); }));
    for (const Completion& done : l.a.requests.take()) {
        cr_assert(done.status == DtoStatus::success);
    }
    cr_assert(in[3] == out);
    cr_assert(l.a.events[0].event == Event::disconnected);
    cr_assert(l.b.events[0].event == Event::disconnected);
}

// RMR-4: in its turn.
Test(engine_shm, more_reads_than_the_peer_serves_wait_and_all_are_answered) {
    Linked l;
    Bytes source = numbered(5000);
    const auto key = registered(l, source, dat::engine::kRemoteRead);
    std::vector<Bytes> in(20, Bytes(source.size()));
    for (Bytes& each : in) {
        l.a.rma<shm::Link>(OpCode::read, each, key, 0);
    }
    cr_assert(l.run([&] { return l.a.requests.size() == 20; }));
    for (const Bytes& each : in) {
        cr_assert(each == source);
    }
}

// The region was closed after its place had been told, before it was copied: the copy is
// void, and asking again finds out.
Test(engine_shm, a_read_of_a_region_that_is_closed_meanwhile_fails_and_gives_nothing) {
    Raw p;
    Bytes in(100'000);
    p.side.rma<shm::Link>(OpCode::read, in, 5, 0);
    const shm::Record* asked = p.next();
    cr_assert(asked && asked->kind == shm::Kind::read && asked->key == 5);
    shm::ReadRequest request;
    std::memcpy(&request, asked->payload.data(), sizeof request);
    cr_assert_eq(request.length, in.size());
    const Bytes source = numbered(in.size());
    const shm::Place place{reinterpret_cast<std::uintptr_t>(source.data()), source.size()};
    p.view.mine->regions_gone.store(1); // one more than the response says
    shm::Record& record = p.begin(shm::Kind::response, shm::kFirst | shm::kLast | shm::kElsewhere);
    record.places = 1;
    record.size = static_cast<std::uint32_t>(source.size());
    record.key = request.number;
    std::memcpy(record.payload.data(), &place, sizeof place);
    p.commit(record);
    const shm::Record* again = nullptr;
    cr_assert(p.run([&] { return (again = p.next()) != nullptr; }));
    cr_assert(again->kind == shm::Kind::read);
    cr_assert(p.side.requests.empty());
}

// The peer's program has its buffer back: what was copied from there is no message.
Test(engine_shm, a_message_whose_buffer_was_given_back_is_not_received) {
    Raw p;
    Bytes in(100'000);
    p.side.receive(in);
    const Bytes source = numbered(in.size());
    const shm::Place place{reinterpret_cast<std::uintptr_t>(source.data()), source.size()};
    p.view.mine->revoked.store(1);
    shm::Record& record = p.begin(shm::Kind::send, shm::kFirst | shm::kLast | shm::kElsewhere);
    record.places = 1;
    record.size = static_cast<std::uint32_t>(source.size());
    std::memcpy(record.payload.data(), &place, sizeof place);
    p.commit(record);
    for (int i = 0; i < 100; ++i) {
        p.domain.progress();
    }
    cr_assert(p.side.receives.empty());
    p.view.mine->end.store(shm::End::closed);
    p.wake_socket.close();
    cr_assert(p.run([&] { return p.side.ended(); }));
    cr_assert(p.side.events[0].event == Event::disconnected);
    const auto got = p.side.receives.take();
    cr_assert(got.size() == 1 && got[0].status == DtoStatus::flushed);
}

// A process that was killed says nothing; the kernel closes its sockets.
Test(engine_shm, a_peer_that_is_gone_without_a_word__ends_behind_what_it_sent) {
    Raw p;
    Bytes in(3);
    p.side.receive(in);
    p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("bye"));
    p.wake_socket.close();
    cr_assert(p.run([&] { return p.side.ended(); }));
    const auto got = p.side.receives.take();
    cr_assert(got.size() == 1 && got[0].status == DtoStatus::success && text(in) == "bye");
    cr_assert(p.side.events[0].event == Event::disconnected);
}

Test(engine_shm, a_peer_that_is_gone_in_the_middle_of_a_message__breaks_the_connection) {
    Raw p;
    Bytes in(1000);
    p.side.receive(in);
    p.put(shm::Kind::send, shm::kFirst, bytes("begin"));
    p.wake_socket.close();
    cr_assert(p.run([&] { return p.side.ended(); }));
    cr_assert(p.side.events[0].event == Event::broken);
    cr_assert(p.side.events[0].reason == dat::core::Reason::end_in_frame);
}

// U-9 b: a peer that closed behind a message without a receive; the message comes first.
Test(engine_shm, a_message_left_behind_by_its_sender_is_still_received) {
    Raw p;
    p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("late"));
    p.view.mine->end.store(shm::End::closed);
    p.wake_socket.close();
    for (int i = 0; i < 100; ++i) {
        p.domain.progress();
    }
    cr_assert_not(p.side.ended());
    Bytes in(4);
    p.side.receive(in);
    cr_assert(p.run([&] { return p.side.ended(); }));
    cr_assert(text(in) == "late");
    cr_assert(p.side.events[0].event == Event::disconnected);
}

// The memory is its program's again when the endpoint has parted, although the socket has no end
// yet.
Test(engine_shm, what_a_message_has_named__is_copied_until_its_sender_has_parted) {
    Raw p;
    dat::engine::Link& link = *p.side.endpoint.link();
    Bytes there = numbered(5000);
    Bytes here(there.size());
    const iovec from{there.data(), there.size()};
    const iovec to{here.data(), here.size()};
    cr_assert(link.copy_from_peer({&from, 1}, {&to, 1}));
    cr_assert(here == there);
    p.view.mine->parted.store(1);
    cr_assert_not(link.copy_from_peer({&from, 1}, {&to, 1}));
    p.view.mine->parted.store(0);
    p.wake_socket.close();
    cr_assert_not(link.copy_from_peer({&from, 1}, {&to, 1}));

    Linked l;
    l.b.send<shm::Link>(numbered(100'000)); // which is owed, and keeps the socket
    l.b.endpoint.disconnect(false);
    cr_assert_not(l.a.endpoint.link()->copy_from_peer({&from, 1}, {&to, 1}));
    Raw without(false);
    cr_assert_not(without.side.endpoint.link()->copy_from_peer({&from, 1}, {&to, 1}));
}

// STS-1: what the peer says of the request that it could not carry out.
Test(engine_shm, a_fault_that_the_peer_found_is_the_status_of_the_oldest_request) {
    Raw p;
    p.side.rma<shm::Link>(OpCode::write, bytes("x"), 1, 0, 11);
    p.side.send<shm::Link>(bytes("x"), 12);
    p.view.mine->end_code.store(
        static_cast<std::uint32_t>(dat::iwarp::TerminateCode::rdmap_access_rights));
    p.view.mine->end.store(shm::End::faulted);
    p.wake_socket.close();
    cr_assert(p.run([&] { return p.side.ended(); }));
    const auto done = p.side.requests.take();
    cr_assert_eq(done.size(), 2u);
    cr_assert(done[0].status == DtoStatus::remote_access);
    cr_assert(done[1].status == DtoStatus::flushed);
    cr_assert(p.side.events[0].event == Event::broken);
}
