// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Peers that break the rules, against the software domain: each gets the Terminate
// that the RFCs name, its connection alone ends, memory that it was not given stays
// as it is, and what it can make this side hold is bounded. One thread, loopback.
#include "engine_attack.h"

#include <functional>
#include <malloc.h>

using namespace engine_test;
using dat::engine::OpCode;
using dat::iwarp::Link;

namespace {

struct Breach {
    const char* what;
    std::uint32_t code; // the Terminate that answers
    std::function<Bytes(const Attacked&)> ulpdu;
};

const Breach kBreaches[] = {
    // RFC 5041 7.1 and 7.2: tagged
    {"write, unknown STag", 0x1100, [](auto&) { return tagged(0, 99, 0x1000, kFour); }},
    {"write, other zone", 0x1102, [](auto& w) { return tagged(0, w.foreign, 0x1000, kFour); }},
    {"write, no right", 0x0102, [](auto& w) { return tagged(0, w.read_only, 0x1000, kFour); }},
    {"write, below", 0x1101, [](auto& w) { return tagged(0, w.full, 0xfff, kFour); }},
    {"write, below the page", 0x1101, [](auto& w) { return tagged(0, w.first, 0xfff, kFour); }},
    {"write, above", 0x1101, [](auto& w) { return tagged(0, w.full, 0x103d, kFour); }},
    {"write, far off", 0x1101, [](auto& w) { return tagged(0, w.full, ~0ull, kFour); }},
    {"write, wraps", 0x1101, [](auto& w) { return tagged(0, w.high, ~0ull - 2, kFour); }},
    {"write, too long", 0x1101,
     [](auto& w) { return tagged(0, w.full, 0x1000, wire::filled(60'000, 0xee)); }},
    {"tagged, DDP version", 0x1104, [](auto& w) { return tagged(0, w.full, 0x1000, kFour, 0xc2); }},
    // untagged
    {"send, MSN too low", 0x1203, [](auto&) { return send_segment(0, kFour); }},
    {"send, MSN too high", 0x1203, [](auto&) { return send_segment(2, kFour); }},
    {"send, offset", 0x1204, [](auto&) { return untagged(3, 0, 1, 4, kFour); }},
    {"send, longer than its receive", 0x1205,
     [](auto&) { return send_segment(1, wire::filled(17, 0xee)); }},
    {"send, much longer than its receive", 0x1205,
     [](auto&) { return send_segment(1, wire::filled(65'517, 0xee)); }},
    {"send, no such queue", 0x1201, [](auto&) { return untagged(3, 7, 1, 0, kFour); }},
    {"untagged, DDP version", 0x1206, [](auto&) { return untagged(3, 0, 1, 0, kFour, 0x40); }},
    {"shorter than a header", 0x1000, [](auto&) { return wire::filled(13, 0xc1); }},
    // RFC 5040 7.1 and 7.2
    {"RDMAP version", 0x0205, [](auto&) { return untagged(0x83, 0, 1, 0, kFour); }},
    {"unknown opcode", 0x0206, [](auto&) { return untagged(14, 0, 1, 0, kFour); }},
    {"send on the read queue", 0x0206, [](auto&) { return untagged(3, 1, 1, 0, kFour); }},
    {"tagged send", 0x0206, [](auto& w) { return tagged(3, w.full, 0x1000, kFour); }},
    {"untagged write", 0x0206, [](auto&) { return untagged(0, 0, 1, 0, kFour); }},
    {"response without a read", 0x0206, [](auto&) { return tagged(2, 1, 0, kFour); }},
    {"atomic response without a request", 0x1201,
     [](auto&) { return untagged(11, 5, 1, 0, wire::filled(12, 0)); }},
    {"read, unknown STag", 0x0100, [](auto&) { return read_request(1, 4, 99, 0x1000); }},
    {"read, other zone", 0x0103, [](auto& w) { return read_request(1, 4, w.foreign, 0x1000); }},
    {"read, below", 0x0101, [](auto& w) { return read_request(1, 4, w.full, 0xfff); }},
    {"read, below the page", 0x0101, [](auto& w) { return read_request(1, 4, w.first, 0xffc); }},
    {"read, above", 0x0101, [](auto& w) { return read_request(1, 65, w.full, 0x1000); }},
    {"read, most of all", 0x0101, [](auto& w) { return read_request(1, ~0u, w.full, 0x1000); }},
    {"read, wraps", 0x0101, [](auto& w) { return read_request(1, 4, w.high, ~0ull - 2); }},
    {"read, MSN", 0x1203, [](auto& w) { return read_request(2, 4, w.full, 0x1000); }},
    {"read, oversized", 0x1205,
     [](auto& w) { return read_request(1, 4, w.full, 0x1000) + wire::filled(1, 0); }},
    {"read, huge", 0x1205,
     [](auto& w) { return read_request(1, 4, w.full, 0x1000) + wire::filled(60'000, 0); }},
    {"read, in segments", 0x1204,
     [](auto&) { return untagged(1, 1, 1, 0, wire::filled(28, 0), kUntaggedMore); }},
    {"invalidates what it may not", 0x0109,
     [](auto& w) { return untagged(4, 0, 1, 0, kFour, kUntaggedLast, w.full); }},
};

// RFC 7306 5.2.1.
Bytes atomic(std::uint32_t msn, unsigned op, std::uint32_t stag, std::uint64_t to) {
    const std::uint64_t all = ~std::uint64_t{0};
    return untagged(10, 1, msn, 0,
                    be(op, 4) + be(77, 4) + be(stag, 4) + be(to, 8) + be(1, 8) +
                        be(op == 0 ? 0 : all, 8) + be(0, 8) + be(all, 8));
}

// Of what only a `dat` peer may send.
const Breach kExtendedBreaches[] = {
    {"atomic, unknown STag", 0x0100, [](auto&) { return atomic(1, 0, 99, 0x1000); }},
    {"atomic, other zone", 0x0103, [](auto& w) { return atomic(1, 0, w.foreign, 0x1000); }},
    {"atomic, no right", 0x0102, [](auto& w) { return atomic(1, 0, w.read_only, 0x1000); }},
    {"atomic, below the page", 0x0101, [](auto& w) { return atomic(1, 0, w.first, 0xff8); }},
    {"atomic, half above", 0x0101, [](auto& w) { return atomic(1, 0, w.full, 0x103c); }},
    {"atomic, wraps", 0x0101, [](auto& w) { return atomic(1, 2, w.high, ~0ull - 3); }},
    {"atomic, not aligned", 0x02ff, [](auto& w) { return atomic(1, 0, w.full, 0x1004); }},
    {"atomic, no such operation", 0x02ff, [](auto& w) { return atomic(1, 1, w.full, 0x1000); }},
    {"atomic, MSN", 0x1203, [](auto& w) { return atomic(2, 0, w.full, 0x1000); }},
    {"atomic, oversized", 0x1205,
     [](auto& w) { return atomic(1, 0, w.full, 0x1000) + wire::filled(1, 0); }},
    {"atomic, too short", 0x02ff, [](auto&) { return untagged(10, 1, 1, 0, wire::filled(51, 0)); }},
    {"atomic on the send queue", 0x0206,
     [](auto&) { return untagged(10, 0, 1, 0, wire::filled(52, 0)); }},
    {"data, MSN", 0x1203, [](auto&) { return untagged(8, 0, 2, 0, wire::filled(8, 1)); }},
    {"data, oversized", 0x1205, [](auto&) { return untagged(8, 0, 1, 0, wire::filled(9, 1)); }},
    {"send with data, longer than its receive", 0x1205,
     [](auto&) { return untagged(12, 0, 1, 0, wire::filled(17, 0xee)); }},
};

void each_breach(Peer kind, bool crc, std::span<const Breach> breaches = kBreaches) {
    Attacked w(kind, crc);
    Bystanders others(w);
    for (const Breach& breach : breaches) {
        Bytes guarded = wire::filled(48, kUntouched);
        w.side.receive(std::span(guarded).subspan(16, 16), 1);
        w.put(breach.ulpdu(w));
        const std::uint32_t code = w.terminate_code();
        cr_assert_eq(code, breach.code, "%s: %04x", breach.what, code);
        cr_assert(w.run([&] { return w.side.ended(); }));
        cr_assert(w.side.events.back().event == Event::broken, "%s", breach.what);
        cr_assert(w.untouched(), "%s", breach.what);
        cr_assert_eq(w.side.receives.take().size(), 1u, "%s", breach.what);
        for (std::size_t i = 0; i < 16; ++i) {
            cr_assert(guarded[i] == std::byte{kUntouched} &&
                          guarded[32 + i] == std::byte{kUntouched},
                      "%s", breach.what);
        }
        cr_assert(w.run([&] { return !w.raw.listen(); })); // and then the end
        others.go_on();
        cr_assert(w.side.endpoint.reset());
        w.connect();
    }
}

} // namespace

// RFC 5040 7, RFC 5041 7: with the peer's first frame already, where nothing may be
// sent before it.
Test(engine_attack, each_breach_of_a_foreign_peer_has_its_terminate, .timeout = 60) {
    each_breach(Peer::foreign, false);
}
Test(engine_attack, each_breach_of_a_dat_peer_has_its_terminate, .timeout = 60) {
    each_breach(Peer::dat, false);
}
Test(engine_attack, each_breach_under_crc_has_its_terminate, .timeout = 60) {
    each_breach(Peer::dat, true);
}

// RFC 7306, and what two `dat` peers add.
Test(engine_attack, each_breach_of_an_extension_has_its_terminate, .timeout = 60) {
    each_breach(Peer::dat, false, kExtendedBreaches);
}

// U-14: one more atomic than agreed is not carried out, though those before it were.
Test(engine_attack, more_atomics_than_agreed_are_terminated_without_effect, .timeout = 60) {
    Attacked w;
    alignas(8) std::uint64_t word = 100;
    const std::uint32_t key = w.domain.regions().add(
        {reinterpret_cast<std::byte*>(&word), sizeof word, 0, &Side::zone, Attacked::kBoth});
    Bytes burst;
    for (std::uint32_t msn = 1; msn <= 3; ++msn) {
        burst = burst + w.frame(atomic(msn, 0, key, 0));
    }
    w.write(burst);
    cr_assert_eq(w.terminate_code(), 0x1202u);
    cr_assert(w.run([&] { return w.side.ended(); }));
    cr_assert_eq(word, 102);
    w.domain.regions().remove(key);
}

// RFC 5040 4.8: the Terminate says which segment it is about.
Test(engine_attack, a_terminate_carries_the_header_of_the_segment, .timeout = 60) {
    Attacked w;
    w.put(tagged(0, 99, 0x1234, kFour));
    const Bytes terminate = w.expect(7);
    cr_assert(Bytes(terminate.begin() + 18, terminate.end()) ==
              be(0x1100, 2) + be(0xc000, 2) + be(18, 2) + tagged(0, 99, 0x1234, {}));
}

// What only a `dat` peer may send.
Test(engine_attack, extensions_from_a_foreign_peer_are_refused, .timeout = 60) {
    const std::pair<Bytes, std::uint32_t> segments[] = {
        {untagged(15, 4, 1, 0, {}), 0x1201},                  // Ack
        {untagged(8, 0, 1, 0, wire::filled(8, 0)), 0x0206},   // Immediate Data
        {untagged(10, 1, 1, 0, wire::filled(52, 0)), 0x0206}, // Atomic Request
    };
    Attacked w(Peer::foreign);
    for (const auto& [segment, code] : segments) {
        w.put(segment);
        cr_assert_eq(w.terminate_code(), code);
        cr_assert(w.run([&] { return w.side.ended(); }));
        cr_assert(w.side.endpoint.reset());
        w.connect();
    }
}

// RFC 5044 4.4 and 8: also where the length field is what is wrong.
Test(engine_attack, a_frame_with_a_wrong_crc_is_not_looked_at, .timeout = 60) {
    for (const std::size_t length : {std::size_t{18}, std::size_t{16}, std::size_t{20}}) {
        Attacked w(Peer::dat, true);
        const Bytes segment = tagged(0, w.full, 0x1000, kFour);
        Bytes frame = fpdu(segment, true, segment.size());
        frame[1] = static_cast<std::byte>(length);
        frame[10] ^= length == segment.size() ? std::byte{1} : std::byte{0};
        w.write(frame + Bytes(4));
        cr_assert_eq(w.terminate_code(), 0x2002u);
        cr_assert(w.run([&] { return w.side.ended(); }));
        cr_assert(w.side.events.back().event == Event::broken);
        cr_assert(w.untouched());
    }
}

// RFC 5041 5.2, RFC 5040 5.4: with nothing to move nothing is checked.
Test(engine_attack, segments_of_length_0_are_allowed_whatever_they_name, .timeout = 60) {
    Attacked w;
    Bytes into(4);
    w.side.receive(into, 1);
    w.put(tagged(0, 99, 0, {}));
    w.put(read_request(1, 0, 99, 0));
    cr_assert_eq(w.expect(2).size(), 14u);
    w.put(untagged(3, 0, 1, 0, {}, kUntaggedMore));
    w.put(untagged(3, 0, 1, 0, kFour, kUntaggedMore));
    w.put(untagged(3, 0, 1, 4, {}));
    cr_assert(w.run([&] { return !w.side.receives.empty(); }));
    cr_assert(w.side.receives.take()[0].status == DtoStatus::success);
    cr_assert(into == kFour && w.untouched() && w.side.connected());
}

// U-14. In one piece, so that all come before the first is answered.
Test(engine_attack, more_reads_than_agreed_are_terminated_behind_those_that_are_not,
     .timeout = 60) {
    Attacked w;
    Bytes burst;
    for (std::uint32_t msn = 1; msn <= 3; ++msn) {
        burst = burst + w.frame(read_request(msn, 4, w.full, 0x1000));
    }
    w.write(burst);
    w.expect(2);
    w.expect(2);
    cr_assert_eq(w.terminate_code(), 0x1202u);
    cr_assert(w.run([&] { return w.side.ended(); }));
}

// A response belongs to the oldest read and to nothing else.
Test(engine_attack, responses_that_do_not_fit_their_read_are_refused, .timeout = 60) {
    struct Case {
        std::uint32_t other_stag;
        std::uint64_t to;
        std::size_t size;
        bool last;
        std::uint32_t code;
    };
    const Case cases[] = {
        {1, 0, 8, true, 0x1100},      {0, 1, 8, true, 0x1101},  {0, 0, 9, true, 0x1101},
        {0, 0, 7, true, 0x1101},      {0, 0, 8, false, 0x1101}, {0, ~0ull, 8, true, 0x1101},
        {0, 0, 60'000, true, 0x1101},
    };
    Attacked w;
    for (const Case& c : cases) {
        Bytes guarded = wire::filled(24, kUntouched);
        w.side.rma<Link>(OpCode::read, std::span(guarded).subspan(8, 8), 1, 0, 1);
        const auto stag = static_cast<std::uint32_t>(get(w.expect(1), 18, 4));
        w.put(tagged(2, stag + c.other_stag, c.to, wire::filled(c.size, 0xee),
                     c.last ? kTaggedLast : 0x81));
        cr_assert_eq(w.terminate_code(), c.code);
        cr_assert(w.run([&] { return w.side.ended(); }));
        cr_assert(w.side.requests.take()[0].status == DtoStatus::flushed);
        cr_assert(guarded == wire::filled(24, kUntouched));
        cr_assert(w.side.endpoint.reset());
        w.connect();
    }
}

// U-61: a count beyond what was sent completes what was sent, and nothing later.
Test(engine_attack, acknowledgements_of_what_was_never_sent_complete_nothing, .timeout = 60) {
    Attacked w;
    w.put(untagged(15, 4, 1, 0, {}, kUntaggedLast, 0x7fffffff));
    w.put(untagged(15, 4, 2, 0, {}, kUntaggedLast, 0xffffffff));
    w.settle();
    w.side.send<Link>(bytes("one"), 1);
    w.expect(3);
    w.settle();
    cr_assert(w.side.requests.empty());
    w.put(untagged(15, 4, 3, 0, {}, kUntaggedLast, 1));
    cr_assert(w.run([&] { return !w.side.requests.empty(); }));
    cr_assert(w.side.connected());
}

// The largest frames there are, into receives, regions, and aside.
Test(engine_attack, frames_of_64_kib_are_taken, .timeout = 60) {
    for (const bool crc : {false, true}) {
        Attacked w(Peer::foreign, crc);
        Bytes memory(65'521), one(65'517), two(65'517);
        const std::uint32_t key = w.domain.regions().add(
            {memory.data(), memory.size(), 0, &Side::zone, dat::engine::kRemoteWrite});
        w.side.receive(one, 1);
        w.put(tagged(0, key, 0, wire::filled(65'521, 1)));
        w.put(send_segment(1, wire::filled(65'517, 2)));
        w.put(send_segment(2, wire::filled(65'517, 3)));
        cr_assert(w.run([&] { return w.side.receives.size() == 1; }));
        w.settle();
        w.side.receive(two, 2);
        cr_assert(w.run([&] { return w.side.receives.size() == 2; }));
        cr_assert(memory == wire::filled(65'521, 1));
        cr_assert(one == wire::filled(65'517, 2) && two == wire::filled(65'517, 3));
        w.domain.regions().remove(key);
    }
}

// Each byte by itself, through everything that a session has.
Test(engine_attack, a_trickled_session_works, .timeout = 60) {
    for (const bool crc : {false, true}) {
        Attacked w(Peer::dat, crc);
        Bytes into(3000), staged(40), memory(16), back(8);
        const std::uint32_t key =
            w.domain.regions().add({memory.data(), memory.size(), 0, &Side::zone, Attacked::kBoth});
        w.side.receive(into, 1);
        w.side.rma<Link>(OpCode::read, back, 1, 0, 2);
        const auto stag = static_cast<std::uint32_t>(get(w.expect(1), 18, 4));
        const Bytes session =
            w.frame(send_segment(1, wire::filled(3000, 1))) + w.frame(tagged(0, key, 4, kFour)) +
            w.frame(read_request(1, 16, key, 0)) + w.frame(send_segment(2, wire::filled(40, 2))) +
            w.frame(tagged(2, stag, 0, wire::filled(8, 3)));
        for (const std::byte byte : session) {
            w.write({byte});
            w.domain.progress();
        }
        cr_assert_eq(w.expect(2).size(), 14u + 16u);
        cr_assert(w.run([&] { return !w.side.requests.empty(); }));
        w.side.receive(staged, 3);
        cr_assert(w.run([&] { return w.side.receives.size() == 2; }));
        cr_assert(into == wire::filled(3000, 1) && staged == wire::filled(40, 2));
        cr_assert(back == wire::filled(8, 3) && get(memory, 4, 4) == 0xeeeeeeee);
        w.domain.regions().remove(key);
    }
}

// U-9: what no receive waits for is held up to the limit, then the peer must wait;
// nothing is lost.
Test(engine_attack, a_flood_of_messages_without_receives_is_not_read, .timeout = 240) {
    Attacked w;
    const Bytes burst = [&] {
        Bytes all;
        for (std::uint32_t msn = 1; msn <= 400'000; ++msn) {
            const Bytes frame = w.frame(untagged(3, 0, msn, 0, {}));
            all.insert(all.end(), frame.begin(), frame.end());
        }
        return all;
    }();
    const std::size_t before = mallinfo2().uordblks;
    std::size_t taken = 0;
    for (int quiet = 0; quiet < 300; ++quiet) {
        if (const std::size_t n = w.raw.write_some(std::span(burst).subspan(taken)); n > 0) {
            taken += n;
            quiet = 0;
        }
        w.domain.progress();
    }
    cr_assert_lt(taken, burst.size());
    // A message costs about as much as its overhead of 64 bytes says.
    cr_assert_lt(mallinfo2().uordblks, before + (1 << 20));
    std::byte none{};
    for (int i = 0; i < 5000; ++i) {
        w.side.receive({&none, 0});
        cr_assert(w.run([&] { return !w.side.receives.empty(); }));
        cr_assert(w.side.receives.take()[0].status == DtoStatus::success);
    }
}
