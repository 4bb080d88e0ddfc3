// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A peer that writes what it likes into the shared memory: the connection ends, says why,
// and nothing outside of what was registered or posted is touched.
#include "engine_shm.h"

using namespace engine_test;
using dat::engine::OpCode;
using dat::iwarp::TerminateCode;
using shm::Kind;

namespace {

constexpr unsigned kWhole = shm::kFirst | shm::kLast;

struct Target {
    explicit Target(Raw& p, std::uint8_t access, const void* zone = &Side::zone)
        : key(p.domain.regions().add({memory.data() + 64, 64, 0, zone, access})) {}
    bool untouched() const {
        return std::all_of(memory.begin(), memory.end(),
                           [](std::byte b) { return b == std::byte{0x5c}; });
    }
    alignas(8) std::array<std::byte, 192> memory = [] {
        std::array<std::byte, 192> bytes;
        bytes.fill(std::byte{0x5c});
        return bytes;
    }();
    std::uint32_t key;
};

std::span<const std::byte> as_bytes(const auto& value) {
    return std::as_bytes(std::span(&value, 1));
}

} // namespace

Test(engine_shm_attack, kinds_that_do_not_exist) {
    for (const unsigned kind : {0u, 7u, 255u}) {
        Raw p;
        p.put(static_cast<Kind>(kind), kWhole, bytes("x"));
        cr_assert(p.blamed(TerminateCode::rdmap_unexpected_opcode), "kind %u", kind);
    }
}

Test(engine_shm_attack, sizes_beyond_what_a_record_or_a_piece_holds) {
    for (const unsigned flags : {kWhole, kWhole | shm::kSolicited, kWhole | shm::kInRing}) {
        const std::size_t most = (flags & shm::kInRing) != 0 ? shm::kPiece : shm::kInline;
        for (const std::uint32_t size : {static_cast<std::uint32_t>(most + 1), 0xffffffffu}) {
            Raw p;
            Bytes in(1 << 17);
            p.side.receive(in);
            shm::Record& record = p.begin(Kind::send, flags);
            record.size = size;
            p.commit(record);
            cr_assert(p.blamed(TerminateCode::ddp_untagged_invalid_mo), "%x, %u", flags, size);
        }
    }
}

Test(engine_shm_attack, payload_in_two_places) {
    Raw p;
    p.put(Kind::send, kWhole | shm::kInRing | shm::kElsewhere, bytes("x"));
    cr_assert(p.blamed(TerminateCode::ddp_untagged_invalid_mo));
}

Test(engine_shm_attack, places_none_too_many_or_of_another_size) {
    for (const unsigned count : {0u, 5u, 65535u, 2u, 3u}) {
        Raw p;
        Bytes in(4096);
        p.side.receive(in);
        shm::Record& record = p.begin(Kind::send, kWhole | shm::kElsewhere);
        record.places = static_cast<std::uint16_t>(count);
        record.size = 100;
        const std::array<shm::Place, 3> places{{{1, 50}, {2, 51}, {3, ~std::uint64_t{0}}}};
        std::memcpy(record.payload.data(), places.data(), sizeof places);
        p.commit(record);
        cr_assert(p.blamed(TerminateCode::ddp_untagged_invalid_mo), "%u places", count);
    }
}

// This side said that it copies nothing.
Test(engine_shm_attack, places_where_copying_is_not_offered) {
    Raw p(false);
    cr_assert_eq(p.view.peers->pulls.load(), 0u);
    shm::Record& record = p.begin(Kind::send, kWhole | shm::kElsewhere);
    record.places = 1;
    p.commit(record);
    cr_assert(p.blamed(TerminateCode::ddp_untagged_invalid_mo));
}

Test(engine_shm_attack, places_that_are_no_memory) {
    Raw p;
    Bytes in(64, std::byte{0x5c});
    p.side.receive(in);
    shm::Record& record = p.begin(Kind::send, kWhole | shm::kElsewhere);
    record.places = 1;
    record.size = 64;
    const shm::Place place{16, 64};
    std::memcpy(record.payload.data(), &place, sizeof place);
    p.commit(record);
    cr_assert(p.blamed(shm::kUnreadable));
    cr_assert(in == Bytes(64, std::byte{0x5c}));
}

// What waits in the peer's memory counts only if the peer is there behind the copy: its number may
// be another's by now.
Test(engine_shm_attack, places_of_a_peer_that_has_gone) {
    auto o = options();
    o.settings.unexpected_bytes = 16384;
    Raw p(true, o);
    const Bytes out = numbered(20'000); // more than is taken before there is a receive
    Bytes in(out.size());
    shm::Record& record = p.begin(Kind::send, kWhole | shm::kElsewhere);
    record.places = 1;
    record.size = static_cast<std::uint32_t>(out.size());
    const shm::Place place{reinterpret_cast<std::uintptr_t>(out.data()), out.size()};
    std::memcpy(record.payload.data(), &place, sizeof place);
    p.commit(record);
    p.domain.progress(); // it has no receive yet
    p.wake_socket.close();
    p.side.receive(in); // which takes it, before anybody has looked at the wake socket
    cr_assert(p.run([&] { return p.side.ended(); }));
    const auto done = p.side.receives.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert(done[0].status != dat::core::DtoStatus::success);
}

Test(engine_shm_attack, messages_that_do_not_begin_or_begin_twice) {
    {
        Raw p;
        p.put(Kind::send, shm::kLast, bytes("x"));
        cr_assert(p.blamed(TerminateCode::ddp_untagged_invalid_mo));
    }
    {
        Raw p;
        p.put(Kind::send, shm::kFirst, bytes("x"));
        p.put(Kind::send, kWhole, bytes("x"));
        cr_assert(p.blamed(TerminateCode::ddp_untagged_invalid_mo));
    }
}

// DTO-9, U-8: both in one piece and in several.
Test(engine_shm_attack, a_message_longer_than_its_receive) {
    for (const bool pieces : {false, true}) {
        Raw p;
        Bytes in(8, std::byte{0x5c});
        p.side.receive(std::span(in).first(4));
        p.put(Kind::send, pieces ? unsigned{shm::kFirst} : kWhole,
              bytes(pieces ? "1234" : "12345"));
        if (pieces) {
            p.put(Kind::send, shm::kLast, bytes("5"));
        }
        cr_assert(p.blamed(TerminateCode::ddp_untagged_too_long));
        const auto got = p.side.receives.take();
        cr_assert(got.size() == 1 && got[0].status == DtoStatus::local_length);
        cr_assert_eq(got[0].overflow, 1u);
        cr_assert(in[4] == std::byte{0x5c});
    }
}

Test(engine_shm_attack, writes_outside_of_what_is_registered) {
    struct Case {
        std::uint8_t access;
        bool zone;
        std::uint64_t address;
        std::size_t size;
        TerminateCode code;
    };
    static const int other = 0;
    const std::array cases{
        Case{dat::engine::kRemoteRead, true, 0, 1, TerminateCode::rdmap_access_rights},
        Case{dat::engine::kRemoteWrite, false, 0, 1, TerminateCode::rdmap_stag_not_associated},
        Case{dat::engine::kRemoteWrite, true, 64, 1, TerminateCode::rdmap_base_bounds},
        Case{dat::engine::kRemoteWrite, true, 63, 2, TerminateCode::rdmap_base_bounds},
        Case{dat::engine::kRemoteWrite, true, ~std::uint64_t{0}, 2,
             TerminateCode::rdmap_base_bounds},
        Case{dat::engine::kRemoteWrite, true, 0, 65, TerminateCode::rdmap_base_bounds},
    };
    for (const Case& c : cases) {
        Raw p;
        Target target(p, c.access, c.zone ? &Side::zone : &other);
        p.put(Kind::write, kWhole, numbered(c.size), target.key, c.address);
        cr_assert(p.blamed(c.code));
        cr_assert(target.untouched());
    }
    Raw p;
    p.put(Kind::write, kWhole, bytes("x"), 12345, 0);
    cr_assert(p.blamed(TerminateCode::rdmap_invalid_stag));
}

Test(engine_shm_attack, reads_outside_of_what_is_registered) {
    struct Case {
        std::uint8_t access;
        std::uint64_t address;
        std::uint64_t length;
        TerminateCode code;
    };
    const std::array cases{
        Case{dat::engine::kRemoteWrite, 0, 1, TerminateCode::rdmap_access_rights},
        Case{dat::engine::kRemoteRead, 1, 64, TerminateCode::rdmap_base_bounds},
        Case{dat::engine::kRemoteRead, 0, ~std::uint64_t{0}, TerminateCode::rdmap_base_bounds},
    };
    for (const Case& c : cases) {
        Raw p;
        Target target(p, c.access);
        p.put(Kind::read, kWhole, as_bytes(shm::ReadRequest{c.length, 0, 0}), target.key,
              c.address);
        cr_assert(p.blamed(c.code));
        cr_assert(p.next() == nullptr);
    }
}

Test(engine_shm_attack, requests_of_another_size) {
    for (const Kind kind : {Kind::read, Kind::atomic}) {
        Raw p;
        Target target(p, dat::engine::kRemoteRead | dat::engine::kRemoteWrite);
        p.put(kind, kWhole, bytes("x"), target.key, 0);
        cr_assert(p.blamed(TerminateCode::rdmap_unspecified));
    }
}

// U-14.
Test(engine_shm_attack, more_reads_than_were_agreed) {
    Raw p;
    Target target(p, dat::engine::kRemoteRead);
    for (std::uint32_t i = 0; i < 3; ++i) { // two, and the domain answers none in between
        p.put(Kind::read, kWhole, as_bytes(shm::ReadRequest{1, i, 0}), target.key, 0);
    }
    cr_assert(p.blamed(TerminateCode::ddp_untagged_no_buffer));
}

Test(engine_shm_attack, atomics_on_memory_that_is_not_aligned_or_not_there) {
    for (const std::uint64_t address : {1u, 57u, 64u}) {
        Raw p;
        Target target(p, dat::engine::kRemoteRead | dat::engine::kRemoteWrite);
        p.put(Kind::atomic, kWhole, as_bytes(shm::AtomicRequest{1, 0, 0, 0, 0, 0}), target.key,
              address);
        cr_assert(p.blamed(address == 1 ? TerminateCode::rdmap_unspecified
                                        : TerminateCode::rdmap_base_bounds));
        cr_assert(target.untouched());
    }
}

Test(engine_shm_attack, responses_that_nobody_asked_for) {
    for (const Kind kind : {Kind::response, Kind::atomic_response}) {
        Raw p;
        p.put(kind, kWhole, as_bytes(std::uint64_t{1}), 0, 0);
        cr_assert(p.blamed(TerminateCode::rdmap_unexpected_opcode));
    }
}

// Neither shorter nor longer, nor to another read, nor as the answer to an atomic.
Test(engine_shm_attack, responses_that_do_not_fit) {
    for (const std::size_t size : {3u, 5u}) {
        Raw p;
        Bytes in(8, std::byte{0x5c});
        p.side.rma<shm::Link>(OpCode::read, std::span(in).first(4), 5, 0);
        p.put(Kind::response, kWhole, numbered(size), 0);
        cr_assert(p.blamed(TerminateCode::ddp_tagged_base_bounds));
        cr_assert(in[4] == std::byte{0x5c});
    }
    for (const auto& [kind, number] :
         {std::pair{Kind::response, 1u}, {Kind::atomic_response, 0u}}) {
        Raw p;
        Bytes in(8);
        p.side.rma<shm::Link>(OpCode::read, in, 5, 0);
        p.put(kind, kWhole, numbered(8), number);
        cr_assert(p.blamed(TerminateCode::rdmap_unexpected_opcode));
    }
}

Test(engine_shm_attack, keys_that_nobody_may_invalidate) {
    Raw p;
    Target target(p, dat::engine::kRemoteRead);
    Bytes in(4);
    p.side.receive(in);
    shm::Record& record = p.begin(Kind::send, kWhole | shm::kInvalidate);
    record.data = target.key;
    p.commit(record);
    cr_assert(p.blamed(TerminateCode::rdmap_protection_cannot_invalidate));
    cr_assert(p.domain.regions().region(target.key));
}

// What the peer says that it took, or placed, was never sent.
Test(engine_shm_attack, counters_beyond_what_was_sent) {
    for (const std::uint64_t taken : {std::uint64_t{shm::kRecords + 1}, ~std::uint64_t{0}}) {
        Raw p;
        for (std::uint32_t i = 0; i <= shm::kRecords; ++i) { // stuck with the last
            p.side.send<shm::Link>(bytes("x"), 1, dat::engine::Level::taken);
        }
        cr_assert_eq(p.side.requests.size(), shm::kRecords);
        p.view.mine->records_taken.store(taken);
        cr_assert(p.blamed(TerminateCode::ddp_untagged_msn_range));
    }
    for (const std::uint32_t placed : {2u, 0xffffffffu}) {
        Raw p;
        p.side.send<shm::Link>(bytes("x"), 1);
        p.view.mine->placed.store(placed);
        cr_assert(p.blamed(TerminateCode::ddp_untagged_msn_range), "%u", placed);
    }
}

// A wake socket that never stops costs turns, and stops nothing else.
Test(engine_shm_attack, a_bell_that_rings_for_ever) {
    Raw p;
    for (char one = 1; ::send(p.wake_socket.fd(), &one, 1, MSG_DONTWAIT) > 0;) {
    }
    Bytes in(1);
    p.side.receive(in);
    p.put(Kind::send, kWhole, bytes("x"));
    cr_assert(p.run([&] { return p.side.receives.size() == 1; }));
}

// The end is marked with anything: it is an end.
// The program has closed a descriptor that is not its own: a peer that sleeps cannot be woken.
Test(engine_shm_attack, a_bell_that_is_no_descriptor_any_more) {
    OpenDomain domain(options());
    Side side(domain);
    Shared memory;
    Ends ends;
    const int fd = ends.near.fd();
    join(side, std::move(memory.near), std::move(ends.near), parameters(true, true));
    side.events.clear();
    memory.far.side(false).mine->asleep.store(shm::kForRecords);
    cr_assert_eq(::close(fd), 0);
    side.send<shm::Link>(bytes("x"));
    cr_assert(run_until(domain, [&] { return side.ended(); }));
    cr_assert(side.events[0].event == Event::broken);
    cr_assert(side.events[0].reason == dat::core::Reason::resources);
}

Test(engine_shm_attack, ends_that_do_not_exist) {
    for (const std::uint32_t end : {3u, 0xffffffffu}) {
        Raw p;
        p.view.mine->end_code.store(0xffffffff);
        p.view.mine->end.store(static_cast<shm::End>(end));
        p.wake_socket.close();
        cr_assert(p.run([&] { return p.side.ended(); }));
        cr_assert_eq(p.side.events.size(), 1u);
    }
}
