// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The messages of a reliable datagram endpoint over a device, where each takes one of the peer's
// buffers.
#include "rdm_connected.h"

#include <array>
#include <criterion/criterion.h>
#include <vector>

using namespace rdm_test;

namespace {

constexpr std::uint32_t kBuffers = dat::verbs::kMessages;

struct Registrar final : dat::rdm::ReadRegistrar {
    bool add(const dat::engine::Iov& memory, std::uint32_t& key) override {
        key = static_cast<std::uint32_t>(memory.length); // of one length each
        there += left > 0;
        return left-- > 0;
    }
    void remove(const dat::engine::Iov& memory, std::uint32_t key) override {
        cr_assert_eq(key, memory.length);
        --there;
    }
    int there = 0;
    int left = 1000; // that it takes
};

struct OnDevice : Connected {
    explicit OnDevice(Registrar* registrar = nullptr)
        : Connected(dat::rdm::kManyAnnounced, options(), LinkKind::verbs, registrar) {
        static_cast<KeepingLink&>(*endpoint.link()).copies_ = false;
        for (std::uint32_t i = 0; i < iovs.size(); ++i) {
            bytes[i] = std::byte(i);
            iovs[i] = {&bytes[i], 1};
        }
    }
    bool sends_one() {
        const bool sent = peer.send(of_one(iovs[sent_])) == PostVerdict::posted;
        sent_ += sent;
        return sent;
    }
    Head head_of(std::uint64_t seq) {
        Head head;
        dat::rdm::get(endpoint.request(seq).segments()[0].base, head);
        return head;
    }
    // The payloads of what has been posted, which has gone.
    std::vector<std::byte> gone() {
        std::vector<std::byte> all;
        domain.run_deferred();
        while (!posted.empty()) {
            const std::uint64_t seq = posted.front();
            if (head_of(seq).kind == Kind::message) {
                all.push_back(endpoint.request(seq).segments()[0].base[sizeof(Head)]);
            }
            posted.pop_front();
            endpoint.finish_request(seq, DtoStatus::success);
            domain.run_deferred();
        }
        return all;
    }
    // One comes, and its buffer is the device's again.
    bool hears_one(std::uint8_t freed = 0) {
        const bool good = hears(Kind::taken, 0, 0, freed);
        peer.buffer_free();
        domain.run_deferred();
        return good;
    }
    std::size_t sent_ = 0;
    std::array<std::byte, 100> bytes;
    std::array<dat::engine::Iov, 100> iovs;
};

} // namespace

// The greeting has taken one, and one is kept.
Test(rdm_device, no_more_messages_go__than_the_peer_has_buffers) {
    OnDevice c;
    std::vector<std::byte> all;
    for (std::uint32_t i = 0; i < kBuffers + 10; ++i) {
        cr_assert(c.sends_one());
        const auto some = c.gone();
        all.insert(all.end(), some.begin(), some.end());
    }
    cr_assert_eq(all.size(), kBuffers - 2);
    cr_assert_eq(c.endpoint.core().requests().outstanding(), 0u);
    cr_assert(c.hears(Kind::taken, 0, 0, 4));
    auto some = c.gone();
    cr_assert_eq(some.size(), 4u);
    all.insert(all.end(), some.begin(), some.end());
    cr_assert(c.hears(Kind::taken, 0, 0, kBuffers - 4));
    some = c.gone();
    all.insert(all.end(), some.begin(), some.end());
    cr_assert_eq(all.size(), kBuffers + 10);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        cr_assert_eq(all[i], std::byte(i), "in their order");
    }
    cr_assert(c.peer.flows(), "as before");
}

// Who does not hear of any buffer is told to come again.
Test(rdm_device, what_waits_for_buffers__is_bounded) {
    OnDevice c;
    while (c.sends_one()) {
        c.gone();
        cr_assert_lt(c.sent_, 99u);
    }
    cr_assert_eq(c.sent_, kBuffers - 2 + kBuffers);
    cr_assert(c.hears(Kind::taken, 0, 0, kBuffers - 1));
    cr_assert_eq(c.gone().size(), kBuffers - 1);
    cr_assert(c.sends_one());
}

// Both sides may have sent all that they may: what is free is said all the same.
Test(rdm_device, what_is_free_again__is_said_by_the_buffer_that_is_kept) {
    OnDevice c;
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
        cr_assert(c.sends_one());
        c.gone();
    }
    for (std::uint32_t i = 1; i < kBuffers / 2; ++i) {
        cr_assert(c.hears_one());
        cr_assert(c.posted.empty(), "what is sent anyway will say it");
    }
    cr_assert(c.hears_one());
    cr_assert_eq(c.posted.size(), 1u);
    const Head head = c.head_of(c.posted.front());
    cr_assert(head.kind == Kind::taken);
    cr_assert_eq(head.freed, kBuffers / 2);
    c.gone();
    for (std::uint32_t i = 0; i < kBuffers; ++i) { // there is none left to say it by
        cr_assert(c.hears_one());
    }
    cr_assert(c.posted.empty());
    cr_assert(c.hears(Kind::taken, 0, 0, 1));
    cr_assert(c.sends_one());
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    cr_assert(c.head_of(c.posted.front()).kind == Kind::taken);
    cr_assert_eq(c.head_of(c.posted.front()).freed, kBuffers);
}

Test(rdm_device, what_is_sent__says_what_is_free) {
    OnDevice c;
    cr_assert(c.hears_one());
    cr_assert(c.hears_one());
    cr_assert(c.sends_one());
    cr_assert_eq(c.head_of(c.posted.front()).freed, 2);
    c.gone();
    cr_assert(c.sends_one());
    cr_assert_eq(c.head_of(c.posted.front()).freed, 0);
    c.gone();
}

Test(rdm_device, more_buffers_than_there_are__are_refused) {
    OnDevice c; // whose greeting is out
    cr_assert_not(c.hears(Kind::taken, 0, 0, 2));
    cr_assert(c.hears(Kind::taken, 0, 0, 1));
    cr_assert_not(c.hears(Kind::taken, 0, 0, 1));
    Connected elsewhere;
    cr_assert_not(elsewhere.hears(Kind::taken, 0, 0, 1));
}

// A piece would be longer than a buffer.
Test(rdm_device, to_push_what_is_announced__is_refused) {
    OnDevice c;
    Bytes payload(100'000);
    const dat::engine::Iov iov{payload.data(), payload.size()};
    cr_assert(c.peer.send(of_one(iov)) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    const std::uint64_t id = c.id_of_first();
    c.gone();
    cr_assert_not(c.hears(Kind::push, id));
    cr_assert(c.hears(Kind::done, id));
}

namespace {

struct NoRegistrar {
    NoRegistrar() { registrar.left = 0; }
    Registrar registrar;
};

// Messages of 4000 bytes until the window is full, and then one that is announced and not
// registered.
struct FullWindow : NoRegistrar, OnDevice {
    FullWindow() : OnDevice(&registrar), payload(4000) {
        for (std::size_t i = 0; i < payload.size(); ++i) {
            payload[i] = std::byte(i % 251);
        }
        iov = {payload.data(), payload.size()};
        for (std::uint32_t i = 0; i < 65536 / 4064; ++i) {
            cr_assert(peer.send(of_one(iov)) == PostVerdict::posted);
            cr_assert_eq(gone().size(), 1u);
        }
        const std::array<dat::engine::Iov, 2> halves{dat::engine::Iov{payload.data(), 1000},
                                                     dat::engine::Iov{payload.data() + 1000, 3000}};
        const dat::rdm::Outgoing out{.iov = halves.data(), .count = 2, .length = 4000};
        cr_assert(peer.send(out) == PostVerdict::posted);
        domain.run_deferred();
        cr_assert_eq(posted.size(), 1u);
        id = id_of_first();
        const std::byte* at = first() + sizeof(Head) + sizeof id;
        dat::rdm::Place place;
        dat::rdm::get(at, place);
        const Head head = head_of(posted.front());
        cr_assert(head.kind == Kind::announced && head.segments == 1);
        cr_assert(place.key == 0 && place.length == 4000 && place.at == 0);
        gone();
        sends.take();
    }
    const std::byte* first() { return endpoint.request(posted.front()).segments()[0].base; }

    Bytes payload;
    dat::engine::Iov iov;
    std::uint64_t id = 0;
};

} // namespace

Test(rdm_device, a_small_message_that_is_announced__goes_when_it_is_asked_for) {
    FullWindow c;
    cr_assert(c.hears(Kind::push, c.id));
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    const Head head = c.head_of(c.posted.front());
    cr_assert(head.kind == Kind::piece);
    cr_assert_eq(head.tag, c.id);
    std::uint64_t offset = 1;
    dat::rdm::get(c.first() + sizeof head, offset);
    cr_assert_eq(offset, 0u);
    Bytes sent;
    std::size_t head_left = sizeof head + sizeof offset;
    const dat::engine::Request& request = c.endpoint.request(c.posted.front());
    for (std::size_t i = 0; i < request.iov_count; ++i) {
        const dat::engine::Iov& some = request.segments()[i];
        sent.insert(sent.end(), some.base + head_left, some.base + some.length);
        head_left = 0;
    }
    cr_assert(sent == c.payload);
    c.gone();
    cr_assert(c.sends.take().empty(), "its receiver has not said that it is there");
    cr_assert(c.hears(Kind::done, c.id));
    cr_assert_eq(c.sends.take().size(), 1u);
}

Test(rdm_device, what_is_asked_for__takes_a_buffer_of_the_peers) {
    FullWindow c;
    std::uint32_t left = kBuffers - 1 - 65536 / 4064 - 1 - 1; // a greeting, these, and one is kept
    cr_assert(c.hears(Kind::push, c.id));
    c.gone();
    --left;
    // The window has room for it again, and each takes one.
    cr_assert(c.hears(Kind::taken, 0, 4064));
    for (; left > 0; --left) {
        cr_assert(c.sends_one());
        cr_assert_eq(c.gone().size(), 1u);
    }
    cr_assert_not(c.peer.flows());
    cr_assert(c.hears(Kind::push, c.id, 4064));
    cr_assert(c.gone().empty() && c.posted.empty());
    cr_assert(c.hears(Kind::taken, 0, 4064, 1));
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    cr_assert(c.head_of(c.posted.front()).kind == Kind::piece);
    cr_assert_not(c.peer.flows());
    c.gone();
}

// It has no address to be read at.
Test(rdm_device, a_small_message_that_is_announced__is_asked_for_by_its_receive) {
    OnDevice c;
    Bytes memory(3000);
    const std::array<dat::engine::Iov, 2> into{dat::engine::Iov{memory.data(), 1000},
                                               dat::engine::Iov{memory.data() + 1000, 2000}};
    dat::rdm::Messages::Incoming in{};
    in.iov = into.data();
    in.count = into.size();
    in.length = memory.size();
    std::array<std::byte, sizeof(Head) + 8 + sizeof(dat::rdm::Place)> announced;
    std::byte* at = dat::rdm::put(announced.data(), Head{Kind::announced, 0, 1, 0, 0, 0});
    at = dat::rdm::put(at, std::uint64_t{99});
    dat::rdm::put(at, dat::rdm::Place{0, 3000, 0});
    cr_assert(c.peer.arrived(announced.data(), announced.size()));
    cr_assert(c.messages.receive(in) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    cr_assert(c.head_of(c.posted.front()).kind == Kind::push);
    cr_assert_eq(c.head_of(c.posted.front()).tag, 99u);
    c.gone();
    for (std::uint32_t i = 0; i < 2 * dat::rdm::kPatience; ++i) {
        c.domain.run_deferred();
        cr_assert(c.posted.empty(), "it comes in no other way");
    }
    Bytes piece(sizeof(Head) + 8 + memory.size(), std::byte(7));
    dat::rdm::put(dat::rdm::put(piece.data(), Head{Kind::piece, 0, 0, 0, 0, 99}), std::uint64_t{0});
    cr_assert(c.peer.arrived(piece.data(), piece.size()));
    c.domain.run_deferred();
    cr_assert(memory == Bytes(memory.size(), std::byte(7)));
    const auto done = c.receives.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert_eq(done[0].length, memory.size());
    cr_assert(c.head_of(c.posted.front()).kind == Kind::done);
    c.gone();
}

// By its address, in pieces of one segment each, of no more than is registered at once.
Test(rdm_device, what_is_announced__is_read_in_pieces) {
    OnDevice c;
    constexpr std::uint64_t kLong = 2 * dat::rdm::kReadOnDevice + 100;
    constexpr std::uint64_t kShort = 50;
    std::vector<Bytes> memory{Bytes(dat::rdm::kReadOnDevice + 7), Bytes(kLong)};
    const std::array<dat::engine::Iov, 2> into{
        dat::engine::Iov{memory[0].data(), memory[0].size()},
        dat::engine::Iov{memory[1].data(), memory[1].size()}};
    dat::rdm::Messages::Incoming in{};
    in.iov = into.data();
    in.count = into.size();
    in.length = memory[0].size() + memory[1].size();
    cr_assert(c.messages.receive(in) == PostVerdict::posted);
    std::array<std::byte, sizeof(Head) + 8 + 2 * sizeof(dat::rdm::Place)> bytes;
    std::byte* at = dat::rdm::put(bytes.data(), Head{Kind::announced, 0, 2, 0, 0, 0});
    at = dat::rdm::put(at, std::uint64_t{99});
    at = dat::rdm::put(at, dat::rdm::Place{11, kLong, 0x10000});
    dat::rdm::put(at, dat::rdm::Place{12, kShort, 0x900000});
    cr_assert(c.peer.arrived(bytes.data(), bytes.size()));
    c.domain.run_deferred();
    std::uint64_t read = 0;
    for (; !c.posted.empty(); c.posted.pop_front()) {
        const std::uint64_t seq = c.posted.front();
        const dat::engine::Request request = c.endpoint.request(seq);
        if (request.op != dat::engine::OpCode::read) {
            cr_assert(c.head_of(seq).kind == Kind::done);
            cr_assert_eq(c.head_of(seq).tag, 99u);
            c.endpoint.finish_request(seq, DtoStatus::success);
            continue;
        }
        cr_assert_eq(request.iov_count, 1);
        cr_assert_leq(request.length, dat::rdm::kReadOnDevice);
        const bool first = read < kLong;
        cr_assert_eq(request.remote_key, first ? 11u : 12u);
        cr_assert_eq(request.remote_address, first ? 0x10000 + read : 0x900000 + read - kLong);
        const std::byte* const to = read < memory[0].size()
                                        ? memory[0].data() + read
                                        : memory[1].data() + read - memory[0].size();
        cr_assert_eq(request.iov.base, to);
        read += request.length;
        c.endpoint.finish_request(seq, DtoStatus::success);
        c.domain.run_deferred();
    }
    cr_assert_eq(read, kLong + kShort);
    const auto done = c.receives.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert_eq(done[0].length, kLong + kShort);
}

// For as long as the peer may read it.
Test(rdm_device, what_is_announced__is_registered_until_it_is_done) {
    Registrar registrar;
    OnDevice c(&registrar);
    Bytes payload(30'000);
    const std::array<dat::engine::Iov, 3> iov{dat::engine::Iov{payload.data(), 10'000},
                                              dat::engine::Iov{payload.data(), 0},
                                              dat::engine::Iov{payload.data() + 10'000, 20'000}};
    const dat::rdm::Outgoing out{.iov = iov.data(), .count = iov.size(), .length = payload.size()};
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(registrar.there, 2);
    const std::uint64_t id = c.id_of_first();
    c.gone();
    cr_assert_eq(registrar.there, 2);
    cr_assert(c.hears(Kind::done, id));
    cr_assert_eq(registrar.there, 0);
    cr_assert_eq(c.sends.take().size(), 1u);
}

// As by RLIMIT_MEMLOCK: that message fails, and none behind it.
Test(rdm_device, what_cannot_be_registered__fails_alone) {
    Registrar registrar;
    OnDevice c(&registrar);
    Bytes payload(20'000);
    const std::array<dat::engine::Iov, 2> iov{dat::engine::Iov{payload.data(), 10'000},
                                              dat::engine::Iov{payload.data() + 10'000, 10'000}};
    const dat::rdm::Outgoing out{.iov = iov.data(), .count = iov.size(), .length = payload.size()};
    registrar.left = 1; // of two
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    cr_assert(c.sends_one());
    c.domain.run_deferred();
    cr_assert_eq(registrar.there, 0);
    auto done = c.sends.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert(done[0].status == DtoStatus::local_ep);
    cr_assert_eq(c.gone().size(), 1u);
    registrar.left = 2;
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(registrar.there, 2);
}
