// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Peers that say by the socket of a peering what they may not.
#include "../transport/sanitized.h"
#include "../transport/usage.h"
#include "engine_shm_peering.h"

#include "links/iwarp/connect.h"
#include "links/shm/hello.h"
#include "links/shm/joining.h"
#include "links/shm/local_socket.h"

#include <fcntl.h>
#include <sys/un.h>

#include <cerrno>

using namespace engine_test;
using dat::engine::Level;
using dat::engine::LinkKind;
using dat::test::open_descriptors;

namespace {

struct Nobody final : shm::Host {
    void invited() override { ++invitations; }
    void stayed_out() override { ++refusals; }
    void joined(shm::Joint joint) override { channels.push_back(joint.channel); }
    int invitations = 0;
    int refusals = 0;
    std::vector<std::shared_ptr<shm::Channel>> channels;
};

shm::TcpEnds some_ends(std::uint16_t port = 7) {
    shm::TcpEnds ends;
    ends.initiator.port = port;
    return ends;
}

std::uint64_t cookie_of(const shm::Offer& offer) {
    std::uint64_t cookie = 0;
    std::memcpy(&cookie, offer.data() + 16, sizeof cookie);
    return cookie;
}

void say(const dat::net::Socket& socket, const auto& message, int fd = -1) {
    const auto bytes = std::as_bytes(std::span(&message, 1));
    cr_assert(shm::send_with(socket, bytes, fd));
}

shm::Note note(shm::Topic topic, std::uint64_t value = 0, std::uint32_t place = 0) {
    shm::Note out;
    out.topic = topic;
    out.value = value;
    out.place = place;
    return out;
}

// A guest of a real local listener that is let in, and says what it likes.
struct RawGuest {
    explicit RawGuest(OpenDomain& d) : domain(d) {
        const shm::Offer offer = local_listener().offer(host, some_ends());
        socket = dat::net::Socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
        shm::Name name{};
        std::memcpy(name.data(), offer.data(), sizeof name);
        sockaddr_un address;
        const socklen_t size = shm::address_of(name, address);
        cr_assert_eq(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
        shm::Hello hello;
        hello.cookie = cookie_of(offer);
        hello.ends = some_ends();
        say(socket, hello);
        cr_assert(run_until(domain, [&] { return host.invitations == 1; }));
        std::array<std::byte, 256> room;
        shm::Reaper reaper;
        cr_assert_eq(shm::receive_with(socket, room, memory, reaper),
                     static_cast<ssize_t>(sizeof(shm::Welcome)));
        say(socket, shm::Joined());
        cr_assert(run_until(domain, [&] { return host.channels.size() == 1; }));
    }
    shm::LocalListener& local_listener() const { return *shm::LocalListener::of(domain); }
    // Asks for one more that was offered.
    std::uint64_t ask(std::uint16_t offered = 8, std::uint16_t asked = 8) {
        shm::Ask ask;
        ask.cookie = cookie_of(local_listener().offer(host, some_ends(offered)));
        ask.ends = some_ends(asked);
        say(socket, ask);
        return ask.cookie;
    }
    // What it is told next; rings are left out.
    shm::Note heard() {
        std::array<std::byte, 256> room;
        std::optional<shm::Note> told;
        cr_assert(run_until(domain, [&] {
            const ssize_t n = ::recv(socket.fd(), room.data(), room.size(), MSG_DONTWAIT);
            told = n > 0 ? shm::parse<shm::Note>({room.data(), static_cast<std::size_t>(n)})
                         : std::nullopt;
            return told.has_value();
        }));
        return *told;
    }
    bool is_thrown_out() {
        std::array<std::byte, 256> room;
        return run_until(domain,
                         [&] {
                             ssize_t n = 0;
                             while ((n = ::recv(socket.fd(), room.data(), room.size(),
                                                MSG_DONTWAIT)) > 0) {
                             }
                             return n == 0 || errno == ECONNRESET;
                         }) &&
               host.channels[0]->is_over();
    }
    OpenDomain& domain;
    Nobody host;
    dat::net::Socket socket;
    dat::net::Socket memory;
};

} // namespace

Test(engine_shm_peering, a_guest__asks_for_what_was_offered_to_it_alone) {
    OpenDomain domain(sharing());
    RawGuest guest(domain);
    const std::uint64_t other = guest.ask(8, 9); // for another connection than the cookie's
    shm::Note told = guest.heard();
    cr_assert(told.topic == shm::Topic::refuse && told.value == other);
    shm::Ask unknown;
    unknown.cookie = ~other;
    say(guest.socket, unknown);
    told = guest.heard();
    cr_assert(told.topic == shm::Topic::refuse && told.value == ~other);
    const std::uint64_t cookie = guest.ask();
    cr_assert(guest.heard().topic == shm::Topic::need);
    say(guest.socket, note(shm::Topic::no_room));
    told = guest.heard();
    cr_assert(told.topic == shm::Topic::refuse && told.value == cookie && told.place == 1);
    cr_assert_not(guest.host.channels[0]->is_over());
    cr_assert_eq(guest.host.invitations, 1);
}

Test(engine_shm_peering, a_guest_that_is_given_memory_and_place__comes_in_or_not) {
    OpenDomain domain(sharing());
    RawGuest guest(domain);
    const std::uint64_t first = guest.ask();
    cr_assert(guest.heard().topic == shm::Topic::need);
    say(guest.socket, note(shm::Topic::grow));
    cr_assert(guest.heard().topic == shm::Topic::chunk);
    cr_assert_eq(guest.host.invitations, 1); // not before it has the memory
    say(guest.socket, note(shm::Topic::mapped));
    shm::Note told = guest.heard();
    cr_assert(told.topic == shm::Topic::grant && told.value == first && told.place == 1);
    say(guest.socket, note(shm::Topic::take, first));
    cr_assert(run_until(domain, [&] { return guest.host.channels.size() == 2; }));
    say(guest.socket, note(shm::Topic::take, first)); // once more: nobody's
    const std::uint64_t second = guest.ask(9, 9);
    told = guest.heard();
    cr_assert(told.topic == shm::Topic::grant && told.place == 2);
    say(guest.socket, note(shm::Topic::decline, second));
    cr_assert(run_until(domain, [&] { return guest.host.refusals == 1; }));
    // Its own place it has not left: that is not used again.
    const std::uint64_t third = guest.ask(10, 10);
    told = guest.heard();
    cr_assert(told.topic == shm::Topic::grant && told.value == third && told.place == 3);
    // Nobody wants it any more.
    guest.socket.close();
    cr_assert(run_until(domain, [&] { return guest.host.refusals == 2; }));
    cr_assert_eq(guest.host.channels.size(), 2u);
}

Test(engine_shm_peering, a_guest_that_says_what_it_may_not__ends_its_own_connections_alone,
     .timeout = 120) {
    Pair pair;
    pair.add(2);
    std::vector<std::unique_ptr<RawGuest>> all;
    const auto guest = [&]() -> RawGuest& {
        return *all.emplace_back(std::make_unique<RawGuest>(pair.far_domain));
    };
    for (const shm::Topic topic :
         {shm::Topic{}, shm::Topic::grant, shm::Topic::refuse, shm::Topic::need, shm::Topic::chunk,
          shm::Topic::grow, shm::Topic::mapped, shm::Topic::no_room, shm::Topic{~0u}}) {
        RawGuest& lies = guest();
        say(lies.socket, note(topic));
        cr_assert(lies.is_thrown_out(), "%u", static_cast<unsigned>(topic));
    }
    for (const std::size_t size : {2u, 8u, 23u, 25u, 96u, 200u}) {
        RawGuest& lies = guest();
        cr_assert(shm::send_with(lies.socket, Bytes(size), -1));
        cr_assert(lies.is_thrown_out(), "%zu", size);
    }
    RawGuest& older = guest();
    shm::Note other = note(shm::Topic::take);
    --other.magic;
    say(older.socket, other);
    cr_assert(older.is_thrown_out());
    RawGuest& again = guest();
    say(again.socket, shm::Joined());
    cr_assert(again.is_thrown_out());
    pair.talk(0);
    pair.talk(1);
}

// Nobody lets them in.
Test(engine_shm_peering, descriptors_of_a_guest__are_not_taken) {
    OpenDomain domain(sharing());
    RawGuest guest(domain);
    const std::size_t before = open_descriptors();
    const bool refused =
        !shm::send_with(guest.socket, std::as_bytes(std::span("x", 1)), STDERR_FILENO);
    cr_assert(refused ? errno == EPERM : guest.is_thrown_out());
    cr_assert_leq(open_descriptors(), before);
}

// It asks, and reads no answer: what is kept for it has an end.
Test(engine_shm_peering, a_guest_that_asks_for_ever__is_thrown_out, .timeout = 120) {
    Pair pair;
    pair.add(1);
    RawGuest guest(pair.far_domain);
    const shm::Ask ask;
    bool said = true;
    for (int i = 0; i < 200'000 && said; ++i) {
        said =
            shm::send_with(guest.socket, std::as_bytes(std::span(&ask, 1)), -1) || errno == EAGAIN;
        pair.far_domain.progress();
    }
    cr_assert_not(said);
    cr_assert(guest.host.channels[0]->is_over());
    pair.talk(0);
}

namespace {

// A host that is none of a domain's, which lets in one guest of a real domain, and says what it
// likes.
struct RawHost {
    RawHost() {
        offer[0] = static_cast<std::byte>(getpid());
        offer[1] = static_cast<std::byte>(getpid() >> 8);
        offer[2] = static_cast<std::byte>(next++);
        std::memcpy(name.data(), offer.data(), sizeof name);
        sockaddr_un address;
        const socklen_t size = shm::address_of(name, address);
        const dat::net::Socket listener(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
        cr_assert_eq(::bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
        cr_assert_eq(::listen(listener.fd(), 8), 0);
        shm::Why why{};
        cr_assert(first.joining.begin(offer, {}, why));
        socket = dat::net::Socket(
            ::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        int fd = -1;
        int error = 0;
        memory = shm::Segment::create(fd, error);
        say(socket, shm::Welcome(), fd);
        close(fd);
        cr_assert(run_until(domain, [&] { return first.channel != nullptr; }));
        std::array<std::byte, 256> room;
        for (std::size_t i = 0; i < 2; ++i) { // Hello, Joined
            cr_assert_gt(::recv(socket.fd(), room.data(), room.size(), 0), 0);
        }
        offer[16] = std::byte{1};
        cr_assert(second.joining.begin(offer, {}, why));
        cr_assert_eq(::recv(socket.fd(), room.data(), room.size(), 0),
                     static_cast<ssize_t>(sizeof(shm::Ask)));
        cookie = cookie_of(offer);
    }
    struct Attempt final : shm::Joining::Owner {
        explicit Attempt(OpenDomain& domain) : joining(domain, *this) {}
        void joined(shm::Joint joint) override { channel = joint.channel; }
        void stayed_out(const shm::Why&) override { out = true; }
        std::shared_ptr<shm::Channel> channel;
        bool out = false;
        shm::Joining joining;
    };
    bool is_left() {
        return run_until(domain, [&] { return first.channel->is_over() && second.out; }) &&
               !second.channel;
    }
    static inline int next = 0;
    OpenDomain domain{sharing()};
    Attempt first{domain};
    Attempt second{domain};
    shm::Offer offer{};
    shm::Name name{};
    dat::net::Socket socket;
    shm::Segment memory;
    std::uint64_t cookie = 0;
};

} // namespace

Test(engine_shm_peering, a_host_that_says_what_it_may_not__is_left, .timeout = 120) {
    for (const shm::Topic topic :
         {shm::Topic{}, shm::Topic::chunk, shm::Topic::take, shm::Topic::decline, shm::Topic::grow,
          shm::Topic::mapped, shm::Topic::no_room, shm::Topic{77}}) {
        RawHost host;
        say(host.socket, note(topic, 1));
        cr_assert(host.is_left(), "%u", static_cast<unsigned>(topic));
    }
    // A place that is in use, one that there is no memory of, and one that is none.
    for (const std::uint32_t place :
         {0u, 1u, static_cast<std::uint32_t>(shm::Doorbell::kPlaces), ~0u}) {
        RawHost host;
        say(host.socket, note(shm::Topic::grant, host.cookie, place));
        cr_assert(host.is_left(), "%u", place);
    }
    for (const shm::Topic topic : {shm::Topic::grant, shm::Topic::refuse}) {
        RawHost host; // which nobody has asked
        say(host.socket, note(topic, host.cookie + 1));
        cr_assert(host.is_left());
    }
    RawHost asks;
    say(asks.socket, shm::Ask());
    cr_assert(asks.is_left());
}

Test(engine_shm_peering, memory_of_a_host__has_to_be_what_was_asked_for, .timeout = 120) {
    const auto memory_of = [](std::size_t count) {
        int fd = -1;
        int error = 0;
        shm::Segment::create(fd, error, count);
        return dat::net::Socket(fd);
    };
    OpenDomain domain(sharing());
    const std::size_t before = open_descriptors();
    for (const std::size_t count : {1u, 2u, 4u}) { // not 3
        RawHost host;
        say(host.socket, note(shm::Topic::need));
        cr_assert(run_until(host.domain, [&] { return !shm::is_silent(host.socket); })); // grow
        say(host.socket, note(shm::Topic::chunk, 1), memory_of(count).fd());
        cr_assert(host.is_left(), "%zu", count);
    }
    {
        RawHost host;
        say(host.socket, note(shm::Topic::need));
        say(host.socket, note(shm::Topic::need));
        cr_assert(host.is_left());
    }
    {
        RawHost host; // another number
        say(host.socket, note(shm::Topic::need));
        cr_assert(run_until(host.domain, [&] { return !shm::is_silent(host.socket); }));
        say(host.socket, note(shm::Topic::chunk, 2), memory_of(3).fd());
        cr_assert(host.is_left());
    }
    {
        RawHost host; // a descriptor with something else
        say(host.socket, note(shm::Topic::need));
        cr_assert(run_until(host.domain, [&] { return !shm::is_silent(host.socket); }));
        say(host.socket, note(shm::Topic::refuse, host.cookie), STDERR_FILENO);
        cr_assert(host.is_left());
    }
    {
        RawHost host; // right
        say(host.socket, note(shm::Topic::need));
        cr_assert(run_until(host.domain, [&] { return !shm::is_silent(host.socket); }));
        say(host.socket, note(shm::Topic::chunk, 1), memory_of(3).fd());
        say(host.socket, note(shm::Topic::grant, host.cookie, 3));
        cr_assert(run_until(host.domain, [&] { return host.second.channel != nullptr; }));
        cr_assert_not(host.first.channel->is_over());
    }
    cr_assert(run_until(domain, [&] { return open_descriptors() == before; })); // a thread closes
}

// Whoever asks gives up before the answer comes: what is granted is declined, and left.
Test(engine_shm_peering, what_is_granted_too_late__is_declined) {
    RawHost host;
    say(host.socket, note(shm::Topic::need));
    cr_assert(run_until(host.domain, [&] { return !shm::is_silent(host.socket); }));
    std::array<std::byte, 256> room;
    cr_assert_gt(::recv(host.socket.fd(), room.data(), room.size(), 0), 0); // grow
    int fd = -1;
    int error = 0;
    const shm::Segment more = shm::Segment::create(fd, error, 3);
    say(host.socket, note(shm::Topic::chunk, 1), fd);
    close(fd);
    host.second.joining.abandon();
    say(host.socket, note(shm::Topic::grant, host.cookie, 2));
    std::optional<shm::Note> told;
    cr_assert(run_until(host.domain, [&] {
        const ssize_t n = ::recv(host.socket.fd(), room.data(), room.size(), MSG_DONTWAIT);
        told = n > 0 ? shm::parse<shm::Note>({room.data(), static_cast<std::size_t>(n)}) : told;
        return told && told->topic == shm::Topic::decline;
    }));
    cr_assert_eq(told->value, host.cookie);
    cr_assert_eq(more.side(true, 1).mine->stage.load(), std::uint32_t{shm::kLeft});
    cr_assert(!host.second.channel && !host.second.out);
}
