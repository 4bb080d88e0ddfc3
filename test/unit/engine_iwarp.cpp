// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The software domain over its iWARP link, below libfabric: what the transport suite
// cannot reach through the public interface. Both sides in one thread, over loopback.
#include "engine_harness.h"
#include "engine_listener.h"
#include "engine_polled.h"
#include "engine_raw_peer.h"

#include "links/iwarp/connect.h"
#include "links/iwarp/link.h"

#include <array>
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <cstring>
#include <memory>
#include <numeric>

using namespace engine_test;
using dat::core::Reason;
using dat::engine::OpCode;
using dat::iwarp::Link;

namespace {

dat::engine::Domain::Options with_crc(bool crc) {
    auto o = options();
    o.settings.crc = crc ? dat::engine::Crc::on : dat::engine::Crc::off;
    o.settings.rnr_limit = std::chrono::seconds(1);
    o.settings.end_grace = std::chrono::milliseconds(300);
    return o;
}

struct IwarpPair {
    explicit IwarpPair(bool crc = false) : IwarpPair(with_crc(crc)) {}
    explicit IwarpPair(const dat::engine::Domain::Options& o) : domain(o) { connect(); }

    void connect() {
        {
            const dat::engine::BiasedLockOwner inside(domain.biased_lock());
            cr_assert_eq(dat::iwarp::connect(a.endpoint, local_listener.listener.name(), nullptr,
                                             bytes("hi"), {}),
                         0);
        }
        cr_assert(run([&] { return !local_listener.requests.empty(); }));
        {
            const dat::engine::BiasedLockOwner inside(domain.biased_lock());
            cr_assert(text(local_listener.requests[0]->private_data()) == "hi");
            cr_assert_eq(
                dat::iwarp::accept(b.endpoint, *local_listener.requests[0], bytes("welcome")), 0);
        }
        local_listener.requests.clear();
        cr_assert(run([&] { return a.connected() && b.connected(); }));
        cr_assert(text(a.events.back().private_data) == "welcome");
    }

    template <class Done> bool run(Done done) {
        return run_until(domain, done, [&] { local_listener.listener.progress(); });
    }

    OpenDomain domain;
    LocalListener local_listener;
    Side a{domain};
    Side b{domain};
};

std::vector<std::byte> pattern(std::size_t size) {
    std::vector<std::byte> data(size);
    for (std::size_t i = 0; i < size; ++i) {
        data[i] = static_cast<std::byte>(i * 131 + (i >> 8));
    }
    return data;
}

constexpr std::size_t kSizes[] = {0,     1,     511,   512,   513,    2047,   2048,   4096,
                                  65023, 65024, 65025, 65536, 130048, 130049, 262145, 1000003};

void transfer_all_sizes(bool crc) {
    IwarpPair p(crc);
    for (const std::size_t size : kSizes) {
        const auto data = pattern(size);
        std::vector<std::byte> into(size), memory(size), back(size);
        const std::uint32_t key =
            p.domain.regions().add({memory.data(), size, 0x1000, &Side::zone,
                                    dat::engine::kRemoteWrite | dat::engine::kRemoteRead});
        p.b.receive(into, size);
        p.a.send<Link>(data, 1);
        p.a.rma<Link>(OpCode::write, data, key, 0x1000, 2);
        p.a.rma<Link>(OpCode::read, back, key, 0x1000, 3);
        std::vector<Completion> sent;
        cr_assert(p.run([&] {
            for (const Completion& c : p.a.requests.take()) {
                sent.push_back(c);
            }
            return sent.size() == 3;
        }));
        for (std::size_t i = 0; i < 3; ++i) {
            cr_assert(sent[i].status == DtoStatus::success);
            cr_assert_eq(sent[i].context, reinterpret_cast<void*>(i + 1));
            cr_assert_eq(sent[i].length, size);
        }
        const auto received = p.b.receives.take();
        cr_assert_eq(received.size(), 1u);
        cr_assert_eq(received[0].length, size);
        cr_assert(into == data && memory == data && back == data);
        p.domain.regions().remove(key);
    }
}

// Messages of those sizes, all at once, into receives that are posted already.
void transfer_together(bool crc, std::span<const std::size_t> sizes) {
    IwarpPair p(crc);
    std::vector<std::vector<std::byte>> data, into;
    for (const std::size_t size : sizes) {
        data.push_back(pattern(size));
        data.back().insert(data.back().end(), 1, static_cast<std::byte>(data.size()));
        into.emplace_back(size + 1);
        p.b.receive(into.back(), into.size());
    }
    for (const auto& each : data) {
        cr_assert(p.a.send<Link>(each, 1, dat::engine::Level::taken) == PostVerdict::posted);
    }
    std::vector<Completion> received;
    cr_assert(p.run([&] {
        for (const Completion& c : p.b.receives.take()) {
            received.push_back(c);
        }
        return received.size() == data.size();
    }));
    for (std::size_t i = 0; i < data.size(); ++i) {
        cr_assert(received[i].status == DtoStatus::success);
        cr_assert_eq(received[i].context, reinterpret_cast<void*>(i + 1));
        cr_assert_eq(received[i].length, data[i].size());
        cr_assert(into[i] == data[i], "message %zu of %zu bytes", i, data[i].size());
    }
    cr_assert(p.run([&] { return p.a.requests.size() == data.size(); }));
}

// Small messages of one side, each with its number, as many as it can be rid of.
class Flood {
  public:
    explicit Flood(IwarpPair& pair) : pair_(pair), ring_(kRing, std::vector<std::byte>(kSize)) {}

    // Until the socket takes no more. Returns how many are posted.
    std::uint32_t run() {
        constexpr int kStill = 200; // rounds in which nothing moves
        for (int still = 0; still < kStill; ++still) {
            while (post()) {
                still = 0;
            }
            pair_.domain.progress();
            pair_.a.requests.take();
        }
        return posted_;
    }
    // The next that came.
    static bool is(std::span<const std::byte> message, std::uint32_t number) {
        return message.size() == kSize && std::memcmp(message.data(), &number, 4) == 0 &&
               message.back() == static_cast<std::byte>(number);
    }
    static constexpr std::size_t kSize = 500;

  private:
    static constexpr std::size_t kRing = 128; // as many as are outstanding

    bool post() {
        std::vector<std::byte>& next = ring_[posted_ % kRing];
        if (pair_.a.endpoint.core().requests().full()) {
            return false;
        }
        std::memcpy(next.data(), &posted_, 4);
        next.back() = static_cast<std::byte>(posted_);
        cr_assert(pair_.a.send<Link>(next, 1, dat::engine::Level::taken) == PostVerdict::posted);
        ++posted_;
        return true;
    }

    IwarpPair& pair_;
    std::vector<std::vector<std::byte>> ring_;
    std::uint32_t posted_ = 0;
};

void fill_the_socket(bool crc) {
    auto o = with_crc(crc);
    o.settings.unexpected_bytes = 4096; // then the receiver stops reading
    IwarpPair p(o);
    Flood flood(p);
    const std::uint32_t posted = flood.run();
    cr_assert(p.a.endpoint.core().requests().full());
    std::array<std::byte, Flood::kSize> into;
    for (std::uint32_t i = 0; i < posted; ++i) {
        p.b.receive(into, i);
        cr_assert(p.run([&] { return !p.b.receives.empty(); }));
        cr_assert(p.b.receives.take()[0].status == DtoStatus::success);
        cr_assert(Flood::is(into, i), "message %u", i);
    }
}

constexpr std::size_t kMixed[] = {64,    20000, 3000, 70000, 8,     0,    16384, 4096,  511,
                                  512,   16383, 1,    65024, 65003, 2048, 2047,  100,   32768,
                                  16380, 7,     7,    7,     4096,  4096, 4096,  40000, 12};

} // namespace

Test(engine_iwarp, a_write__is_there_when_its_last_word_is, .timeout = 60) {
    for (const bool crc : {false, true}) {
        IwarpPair p(crc);
        a_write_is_there_when_its_last_word_is<Link>(p, p.domain);
    }
}

// DTO-12: whichever way each of them takes through the link.
Test(engine_iwarp, messages_of_mixed_sizes__arrive_whole_and_in_order, .timeout = 60) {
    transfer_together(false, kMixed);
    transfer_together(true, kMixed);
}

// DTO-12: where the socket takes part of a frame, the rest of it comes first.
Test(engine_iwarp, small_messages_that_fill_the_socket__arrive_whole_and_in_order, .timeout = 60) {
    fill_the_socket(false);
    fill_the_socket(true);
}

// DTO-1, DTO-12, U-61: around every boundary that the link has of its own.
Test(engine_iwarp, all_sizes_without_crc, .timeout = 60) { transfer_all_sizes(false); }
Test(engine_iwarp, all_sizes_with_crc, .timeout = 60) { transfer_all_sizes(true); }

// RFC 5040 5.1: a Send with Invalidate ends the registration if it may be ended so.
Test(engine_iwarp, send_with_invalidate_ends_the_registration, .timeout = 60) {
    IwarpPair p;
    std::vector<std::byte> into(4), memory(16);
    const std::uint32_t key =
        p.domain.regions().add({memory.data(), memory.size(), 0x40, &Side::zone,
                                dat::engine::kRemoteWrite | dat::engine::kRemoteInvalidate});
    p.b.receive(into);
    dat::engine::post_request<Link>(p.a.endpoint, false,
                                    [&](dat::engine::Request& r, std::uint64_t) {
                                        Side::fill(r, OpCode::send_invalidate, bytes("bye!"), 1);
                                        r.remote_key = key;
                                    });
    cr_assert(p.run([&] { return !p.a.requests.empty() && !p.b.receives.empty(); }));
    cr_assert(p.b.receives.take()[0].status == DtoStatus::success);
    cr_assert(!p.domain.regions().remove(key)); // it has gone already
    cr_assert(p.a.connected());
}

Test(engine_iwarp, invalidating_a_key_that_may_not_be_breaks_this_connection_only, .timeout = 60) {
    IwarpPair p;
    std::vector<std::byte> into(4), memory(16);
    const std::uint32_t key = p.domain.regions().add(
        {memory.data(), memory.size(), 0, &Side::zone, dat::engine::kRemoteWrite});
    p.b.receive(into);
    dat::engine::post_request<Link>(p.a.endpoint, false,
                                    [&](dat::engine::Request& r, std::uint64_t) {
                                        Side::fill(r, OpCode::send_invalidate, bytes("bye!"), 1);
                                        r.remote_key = key;
                                    });
    cr_assert(p.run([&] { return p.a.ended() && p.b.ended(); }));
    cr_assert(p.a.events.back().event == Event::broken);
    cr_assert_eq(p.a.endpoint.last_end().terminate_code, 0x0109u);
    cr_assert(p.a.requests.take()[0].status == DtoStatus::remote_access);
    cr_assert(p.domain.regions().remove(key));
}

// Each refusal of tagged access with its Terminate (RFC 5040 7.2, RFC 5041 7.2).
struct Violation {
    OpCode op;
    std::uint8_t rights;
    bool own_zone;
    bool right_key;
    std::uint64_t address;
    std::uint32_t code;
};

Test(engine_iwarp, each_violation_has_its_terminate_and_moves_no_byte, .timeout = 60) {
    static constexpr int other_zone = 0;
    constexpr std::uint8_t both = dat::engine::kRemoteRead | dat::engine::kRemoteWrite;
    const Violation violations[] = {
        {OpCode::write, both, true, false, 0, 0x1100},
        {OpCode::write, both, false, true, 0, 0x1102},
        {OpCode::write, dat::engine::kRemoteRead, true, true, 0, 0x0102},
        {OpCode::write, both, true, true, 13, 0x1101},
        {OpCode::write, both, true, true, ~std::uint64_t{0}, 0x1101},
        {OpCode::read, both, true, false, 0, 0x0100},
        {OpCode::read, both, false, true, 0, 0x0103},
        {OpCode::read, dat::engine::kRemoteWrite, true, true, 0, 0x0102},
        {OpCode::read, both, true, true, 13, 0x0101},
    };
    IwarpPair p;
    for (const Violation& v : violations) {
        std::vector<std::byte> memory(16), local(4, std::byte{0x55});
        const std::uint32_t key = p.domain.regions().add(
            {memory.data(), memory.size(), 0,
             v.own_zone ? static_cast<const void*>(&Side::zone) : &other_zone, v.rights});
        p.a.rma<Link>(v.op, local, v.right_key ? key : key + 1, v.address);
        cr_assert(p.run([&] { return p.a.ended() && p.b.ended(); }));
        cr_assert_eq(p.a.endpoint.last_end().terminate_code, v.code, "%x instead of %x",
                     p.a.endpoint.last_end().terminate_code, v.code);
        cr_assert(p.a.requests.take()[0].status == DtoStatus::remote_access);
        cr_assert(memory == std::vector<std::byte>(16));
        cr_assert(local == std::vector<std::byte>(4, std::byte{0x55}));
        p.domain.regions().remove(key);
        cr_assert(p.a.endpoint.reset() && p.b.endpoint.reset());
        p.connect();
    }
}

// U-9 (a): a graceful end whose requests can never complete is bounded, and says why.
Test(engine_iwarp, a_drain_that_cannot_end_is_cut_by_the_receiver_not_ready_limit, .timeout = 60) {
    IwarpPair p;
    p.a.send<Link>(bytes("nobody wants this"), 1);
    p.a.send<Link>(bytes("nor this"), 2);
    p.a.endpoint.disconnect(true);
    cr_assert(p.run([&] { return p.a.ended() && p.b.ended(); }));
    const auto sent = p.a.requests.take();
    cr_assert_eq(sent.size(), 2u);
    cr_assert(sent[0].status == DtoStatus::receiver_not_ready);
    cr_assert(sent[1].status == DtoStatus::flushed);
    cr_assert(p.a.events.back().event == Event::disconnected); // U-4
    cr_assert(p.a.events.back().reason == Reason::rnr_timeout);
    cr_assert(p.b.events.back().event == Event::broken);
}

// U-67: the peer has closed behind a message for which no receive comes.
Test(engine_iwarp, a_message_left_behind_by_its_sender_waits_no_longer_than_the_grace,
     .timeout = 60) {
    IwarpPair p;
    p.a.send<Link>(bytes("left behind"), 1, dat::engine::Level::taken);
    cr_assert(p.run([&] { return !p.a.requests.empty(); }));
    p.a.endpoint.disconnect(false);
    cr_assert(p.a.ended());
    cr_assert(p.run([&] { return p.b.ended(); }));
    cr_assert(p.b.events.back().event == Event::disconnected);
    cr_assert(p.b.events.back().reason == Reason::peer_closed);
}

// And one that comes in time gets it, before the end is told (U-2).
Test(engine_iwarp, a_message_left_behind_by_its_sender_is_still_received, .timeout = 60) {
    IwarpPair p;
    const auto data = pattern(300000); // more than is staged: reading has stopped
    p.a.send<Link>(bytes("first"), 1, dat::engine::Level::taken);
    p.a.send<Link>(data, 2, dat::engine::Level::taken);
    cr_assert(p.run([&] { return p.a.requests.size() == 2; }));
    p.a.endpoint.disconnect(false);
    std::vector<std::byte> one(8), two(data.size());
    for (int i = 0; i < 200; ++i) {
        p.domain.progress();
    }
    cr_assert(!p.b.ended());
    p.b.receive(one);
    p.b.receive(two);
    cr_assert(p.run([&] { return p.b.ended(); }));
    const auto received = p.b.receives.take();
    cr_assert_eq(received.size(), 2u);
    cr_assert(received[1].status == DtoStatus::success);
    cr_assert(two == data);
    cr_assert(p.b.events.back().event == Event::disconnected);
    cr_assert(p.b.events.back().reason == Reason::peer_closed);
}

// U-61: a request that is to be placed is not complete while its message is staged.
Test(engine_iwarp, a_staged_message_is_not_yet_placed, .timeout = 60) {
    IwarpPair p;
    std::vector<std::byte> memory(8), into(8);
    const std::uint32_t key = p.domain.regions().add(
        {memory.data(), memory.size(), 0, &Side::zone, dat::engine::kRemoteWrite});
    p.a.send<Link>(bytes("staged"), 1);
    p.a.rma<Link>(OpCode::write, bytes("after"), key, 0, 2);
    cr_assert(p.run([&] { return text(std::span(memory).first(5)) == "after"; }));
    for (int i = 0; i < 200; ++i) {
        p.domain.progress();
    }
    cr_assert(p.a.requests.empty());
    p.b.receive(into);
    cr_assert(p.run([&] { return p.a.requests.size() == 2; }));
    p.domain.regions().remove(key);
}

// DTO-27, RDR-2: more reads than may be outstanding are queued, and all complete.
Test(engine_iwarp, reads_beyond_the_negotiated_depth_wait_their_turn, .timeout = 60) {
    IwarpPair p;
    const auto memory = pattern(100 * 16);
    std::vector<std::byte> back(memory.size());
    const std::uint32_t key =
        p.domain.regions().add({const_cast<std::byte*>(memory.data()), memory.size(), 0,
                                &Side::zone, dat::engine::kRemoteRead});
    for (std::size_t i = 0; i < 100; ++i) {
        p.a.rma<Link>(OpCode::read, std::span(back).subspan(i * 16, 16), key, i * 16, i);
    }
    cr_assert(p.run([&] { return p.a.requests.size() == 100; }));
    std::size_t next = 0;
    for (const Completion& c : p.a.requests.take()) {
        cr_assert(c.status == DtoStatus::success);
        cr_assert_eq(c.context, reinterpret_cast<void*>(next++));
    }
    cr_assert(back == memory);
}

// LMR-7: closing a region ends what a peer may do, also in the middle of a transfer.
Test(engine_iwarp, a_region_closed_under_a_write_takes_no_further_byte, .timeout = 60) {
    IwarpPair p;
    const std::size_t size = 8 << 20;
    std::vector<std::byte> data(size, std::byte{1}), memory(size);
    const std::uint32_t key =
        p.domain.regions().add({memory.data(), size, 0, &Side::zone, dat::engine::kRemoteWrite});
    p.a.rma<Link>(OpCode::write, data, key, 0, 1);
    cr_assert(p.run([&] { return memory[0] == std::byte{1}; }));
    p.domain.regions().remove(key);
    const auto sum = [&] {
        return std::accumulate(
            memory.begin(), memory.end(), std::size_t{0},
            [](std::size_t n, std::byte b) { return n + std::to_integer<std::size_t>(b); });
    };
    const std::size_t placed = sum();
    cr_assert_lt(placed, size);
    cr_assert(p.run([&] { return p.a.ended() && p.b.ended(); }));
    cr_assert_eq(sum(), placed);
    cr_assert(p.a.requests.take()[0].status == DtoStatus::remote_access);
}

// EP-67, RST-4: lives of one pair of endpoints, ended from either side, either way.
Test(engine_iwarp, endpoints_are_reset_and_connected_again, .timeout = 60) {
    IwarpPair p;
    std::vector<std::byte> into(8);
    for (int round = 0; round < 50; ++round) {
        p.b.receive(into);
        p.a.send<Link>(bytes("again"));
        cr_assert(p.run([&] { return p.a.requests.size() + p.b.receives.size() == 2; }));
        p.a.requests.take();
        p.b.receives.take();
        (round % 2 ? p.a : p.b).endpoint.disconnect(round % 3 == 0);
        cr_assert(p.run([&] { return p.a.ended() && p.b.ended(); }));
        cr_assert(p.a.events.back().event == Event::disconnected);
        cr_assert(p.b.events.back().event == Event::disconnected);
        cr_assert(p.a.endpoint.reset() && p.b.endpoint.reset());
        p.connect();
    }
    cr_assert_eq(p.a.events.size(), 101u);
}

// A peer that does not wait for the reply: what comes along with its request, in one piece or
// byte by byte, is the beginning of its stream.
Test(engine_iwarp, what_comes_behind_a_request__begins_the_stream, .timeout = 60) {
    using namespace engine_test;
    const auto frame = [](const Bytes& ulpdu) { return fpdu(ulpdu, false, ulpdu.size()); };
    const Bytes hello = wire::chars("hello");
    const Bytes stream = wire::chars("MPA ID Req Frame") + wire::bytes({0x14, 2}) + be(4, 2) +
                         be(0x8002, 2) + be(0x8002, 2) + frame(tagged(0, 0, 0, {})) +
                         frame(send_segment(1, hello));
    for (const bool in_bytes : {false, true}) {
        OpenDomain domain;
        LocalListener local_listener;
        Side side(domain);
        std::vector<std::byte> in(hello.size());
        side.receive(in);
        RawPeer peer;
        cr_assert(peer.connect(local_listener.listener.name().port()));
        std::size_t sent = 0;
        cr_assert(run_until(
            domain, [&] { return side.receives.size() == 1; },
            [&] {
                const std::size_t left = stream.size() - sent;
                sent += peer.write_some(std::span(stream).subspan(
                    sent, in_bytes ? std::min<std::size_t>(1, left) : left));
                local_listener.listener.progress();
                if (!local_listener.requests.empty()) {
                    cr_assert(in_bytes || sent == stream.size());
                    cr_assert_eq(dat::iwarp::accept(side.endpoint, *local_listener.requests[0], {}),
                                 0);
                    local_listener.requests.clear();
                }
            }));
        cr_assert(side.events[0].event == Event::established);
        cr_assert(std::ranges::equal(in, hello));
    }
}
