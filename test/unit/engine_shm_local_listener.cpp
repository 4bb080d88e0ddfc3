// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How shared memory is agreed on: over the real handshake, and with visitors at the local listener
// that say something else, or nothing.
#include "../transport/sanitized.h"
#include "engine_raw_peer.h"
#include "engine_shm.h"

#include "links/iwarp/connect.h"
#include "links/shm/hello.h"
#include "links/shm/joining.h"
#include "links/shm/local_listener.h"
#include "links/shm/local_socket.h"
#include "links/shm/reaper.h"

#include <arpa/inet.h>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>

using namespace engine_test;

namespace {

// Who is at the other end of each TCP connection is at 198.51.100.1, which is no address of this
// host (RFC 5737).
bool all_are_far = false;

} // namespace

// In place of the C library's.
extern "C" int getpeername(int fd, sockaddr* name, socklen_t* size) noexcept {
    const auto result = static_cast<int>(syscall(SYS_getpeername, fd, name, size));
    if (result == 0 && all_are_far && name->sa_family == AF_INET) {
        reinterpret_cast<sockaddr_in*>(name)->sin_addr.s_addr = htonl(0xc6336401);
    }
    return result;
}

namespace {

dat::engine::Domain::Options sharing(bool on = true) {
    auto o = options();
    o.settings.shm = on;
    o.settings.handshake_limit = std::chrono::seconds(1);
    return o;
}

// A connection made by the handshake; either side may or may not share memory.
struct Met {
    Met(bool near_shares, bool far_shares, std::span<const std::byte> answer = bytes("welcome"))
        : near_domain(sharing(near_shares)), far_domain(sharing(far_shares)) {
        cr_assert_eq(dat::iwarp::connect(near.endpoint, requests.listener.name(), nullptr,
                                         bytes("please"), {}),
                     0);
        cr_assert(run([&] { return requests.arrived != nullptr; }));
        cr_assert_eq(dat::iwarp::accept(far.endpoint, *requests.arrived, answer), 0);
        cr_assert(run([&] { return near.connected() && far.connected(); }));
    }
    template <class Done> bool run(Done done) {
        return run_until(near_domain, done, [&] {
            requests.listener.progress();
            far_domain.progress();
        });
    }
    Requests requests;
    OpenDomain near_domain;
    OpenDomain far_domain;
    Side near{near_domain};
    Side far{far_domain};
};

struct Nobody final : shm::Host {
    void invited() override { ++invitations; }
    void stayed_out() override { ++refusals; }
    void joined(shm::Joint) override { ++times; }
    int invitations = 0;
    int refusals = 0;
    int times = 0;
};

// Any connection, and another one.
shm::TcpEnds some_ends(std::uint16_t port = 7) {
    shm::TcpEnds ends;
    ends.initiator.host[15] = ends.responder.host[15] = 1;
    ends.initiator.port = port;
    ends.responder.port = 4711;
    return ends;
}

// Asks, and comes in if it is let in.
struct Visitor {
    Visitor(OpenDomain& d, const shm::Offer& offer, const shm::TcpEnds& ends = some_ends())
        : domain(d), joined_host(shm::join_host(d, offer, ends, joint)) {}
    ~Visitor() { shm::leave(domain, joint); }
    bool came_in() {
        if (!in) {
            in = shm::welcomed(domain, joint) == shm::Answer::welcome;
        }
        return in;
    }
    OpenDomain& domain;
    shm::Joint joint;
    bool joined_host;
    bool in = false;
};

// A visitor that has found the local listener of an offer.
dat::net::Socket at_the_local_listener(const shm::Offer& offer) {
    std::array<std::uint64_t, 2> name{};
    std::memcpy(name.data(), offer.data(), sizeof name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                     "dat-%016llx%016llx", static_cast<unsigned long long>(name[0]),
                                     static_cast<unsigned long long>(name[1]));
    dat::net::Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
    cr_assert_eq(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address),
                           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                                  static_cast<std::size_t>(length))),
                 0);
    return socket;
}

bool closed(const dat::net::Socket& socket) {
    char answer[256];
    return ::recv(socket.fd(), answer, sizeof answer, MSG_DONTWAIT) == 0;
}

// How many local sockets of that local listener there are.
int sockets_of(const shm::Offer& offer) {
    std::array<std::uint64_t, 2> name{};
    std::memcpy(name.data(), offer.data(), sizeof name);
    char text[64];
    std::snprintf(text, sizeof text, "@dat-%016llx%016llx",
                  static_cast<unsigned long long>(name[0]),
                  static_cast<unsigned long long>(name[1]));
    std::ifstream file("/proc/net/unix");
    int count = 0;
    for (std::string line; std::getline(file, line);) {
        count += line.find(text) != std::string::npos ? 1 : 0;
    }
    return count;
}

} // namespace

Test(engine_shm_local_listener,
     two_that_share__are_linked_by_memory_with_the_private_data_of_both) {
    Met met(true, true);
    cr_assert(met.near.kind == dat::engine::LinkKind::shm);
    cr_assert(met.far.kind == dat::engine::LinkKind::shm);
    cr_assert(text(met.near.events[0].private_data) == "welcome");
    Bytes in(5);
    met.far.receive(in);
    met.near.send<shm::Link>(bytes("hello"));
    cr_assert(met.run([&] { return met.near.requests.size() == 1; }));
    cr_assert(text(in) == "hello");
}

Test(engine_shm_local_listener, one_that_does_not__keeps_both_on_tcp) {
    for (const bool near : {false, true}) {
        Met met(near, !near);
        cr_assert(met.near.kind == dat::engine::LinkKind::iwarp);
        cr_assert(met.far.kind == dat::engine::LinkKind::iwarp);
        Bytes in(5);
        met.far.receive(in);
        met.near.send<dat::engine::Link>(bytes("hello"));
        cr_assert(met.run([&] { return met.near.requests.size() == 1; }));
        cr_assert(text(in) == "hello");
    }
}

// The offer lies in the private data of the reply, behind what the program says, which arrives
// whole. Where it has no room there is none.
Test(engine_shm_local_listener, an_offer__is_made_where_the_private_data_leaves_room) {
    constexpr std::size_t kLongest = dat::iwarp::kMaxPrivateData - sizeof(shm::Offer);
    static_assert(kLongest == 484);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kLongest - 1, kLongest,
                                   kLongest + 1, dat::iwarp::kMaxPrivateData}) {
        const Bytes answer = numbered(size);
        Met met(true, true, answer);
        cr_assert((met.near.kind == dat::engine::LinkKind::shm) == (size <= kLongest), "%zu", size);
        cr_assert(met.near.kind == met.far.kind);
        cr_assert(std::ranges::equal(met.near.events[0].private_data, answer), "%zu", size);
    }
}

// What the initiator makes of a reply with that bit and so many bytes of private data.
static Side::Raised told_by(bool shares, std::size_t size, bool enhanced = true) {
    OpenDomain domain(sharing(shares));
    Side side(domain);
    const dat::net::Socket listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(::bind(listening.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    cr_assert_eq(::listen(listening.fd(), 1), 0);
    cr_assert_eq(dat::iwarp::connect(side.endpoint, listening.local(), nullptr, {}, {}), 0);
    const dat::net::Socket peer(::accept(listening.fd(), nullptr, nullptr));
    const Bytes data = numbered(size);
    dat::iwarp::MpaFrame reply;
    reply.kind = dat::iwarp::MpaKind::reply;
    reply.revision = dat::iwarp::kMpaRevision2;
    reply.from_dat = reply.memory = reply.wide = true;
    if (enhanced) {
        reply.enhanced = dat::iwarp::MpaEnhanced{.ird = 1, .ord = 1};
    }
    reply.private_data = data;
    std::array<std::byte, dat::iwarp::kMpaMaxFrameSize> frame;
    const std::size_t length = encode_mpa_frame(reply, frame);
    cr_assert_eq(::send(peer.fd(), frame.data(), length, 0), static_cast<ssize_t>(length));
    cr_assert(run_until(domain, [&] { return !side.events.empty(); }));
    return side.events[0];
}

// A peer that lies. An offer of a local listener that is none leaves the connection on TCP.
Test(engine_shm_local_listener, a_reply_without_the_offer_that_it_announces__breaks_the_attempt) {
    using dat::core::Event;
    const auto fails = [](const Side::Raised& told) { // EP-42
        return told.event == Event::non_peer_rejected && told.reason == dat::core::Reason::protocol;
    };
    for (const std::size_t size : {std::size_t{0}, sizeof(shm::Offer) - 1}) {
        cr_assert(fails(told_by(true, size)), "%zu", size);
    }
    cr_assert(fails(told_by(true, sizeof(shm::Offer), false)));
    const Side::Raised right = told_by(true, sizeof(shm::Offer) + 3);
    cr_assert(right.event == Event::established);
    cr_assert(std::ranges::equal(right.private_data, numbered(3)));
    // Who did not ask does not look at a bit that is reserved.
    const Side::Raised unasked = told_by(false, 30);
    cr_assert(unasked.event == Event::established);
    cr_assert(std::ranges::equal(unasked.private_data, numbered(30)));
}

// Version 0.1 sends its offer behind the reply, of a layout that nobody has any more: the
// connection stays on TCP, and its frames begin behind that.
Test(engine_shm_local_listener, an_offer_of_version_0_1__is_left_out_of_the_stream) {
    using namespace dat::iwarp;
    for (const bool in_pieces : {false, true}) {
        OpenDomain domain(sharing());
        Side side(domain);
        const Socket listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        cr_assert_eq(::bind(listening.fd(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
        cr_assert_eq(::listen(listening.fd(), 1), 0);
        cr_assert_eq(connect(side.endpoint, listening.local(), nullptr, {}, {}), 0);
        const Socket peer(::accept(listening.fd(), nullptr, nullptr));
        const Bytes data = numbered(40);
        MpaFrame reply;
        reply.kind = MpaKind::reply;
        reply.revision = kMpaRevision2;
        reply.from_dat = reply.memory = true;
        reply.enhanced = MpaEnhanced{.ird = 1, .ord = 1};
        reply.private_data = data;
        Bytes stream(kMpaMaxFrameSize);
        stream.resize(encode_mpa_frame(reply, stream));
        const std::size_t frame = stream.size();
        stream.resize(frame + kUnframedOffer, std::byte{0xff});
        const Bytes message =
            engine_test::send_segment(1, wire::bytes({0x68, 0x65, 0x6c, 0x6c, 0x6f}));
        const Bytes fpdu = engine_test::fpdu(message, false, message.size());
        stream.insert(stream.end(), fpdu.begin(), fpdu.end());
        const auto send = [&](std::size_t from, std::size_t to) {
            cr_assert_eq(::send(peer.fd(), stream.data() + from, to - from, 0),
                         static_cast<ssize_t>(to - from));
        };
        Bytes in(5);
        side.receive(in);
        std::size_t sent = 0;
        for (const std::size_t to : {frame - 1, frame, frame + 1, frame + kUnframedOffer - 1}) {
            if (in_pieces) {
                send(std::exchange(sent, to), to);
                for (int i = 0; i < 3; ++i) {
                    domain.progress();
                }
                cr_assert(side.events.empty(), "%zu", to);
            }
        }
        send(sent, stream.size());
        cr_assert(run_until(domain, [&] { return side.receives.size() == 1; }));
        cr_assert(side.events[0].event == dat::core::Event::established);
        cr_assert(side.kind == dat::engine::LinkKind::iwarp);
        cr_assert(std::ranges::equal(side.events[0].private_data, data));
        cr_assert(text(in) == "hello");
    }
}

// The reply to a peer that asks for memory.
static void asks_for_memory(bool wide, void (*look)(const dat::iwarp::MpaFrame& reply)) {
    using namespace dat::iwarp;
    Requests requests;
    OpenDomain domain(sharing());
    Side side(domain);
    const Socket peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress& at = requests.listener.name();
    cr_assert_eq(::connect(peer.fd(), at.get(), at.size()), 0);
    MpaFrame request;
    request.revision = kMpaRevision2;
    request.from_dat = request.memory = true;
    request.wide = wide;
    request.enhanced =
        MpaEnhanced{.ird = 1, .ord = 1, .peer_to_peer = true, .rtr_rdma_write = true};
    std::array<std::byte, kMpaMaxFrameSize> frame;
    const std::size_t length = encode_mpa_frame(request, frame);
    cr_assert_eq(::send(peer.fd(), frame.data(), length, 0), static_cast<ssize_t>(length));
    cr_assert(run_until(
        domain, [&] { return requests.arrived != nullptr; },
        [&] { requests.listener.progress(); }));
    cr_assert_eq(accept(side.endpoint, *requests.arrived, {}), 0);
    Bytes in(kMpaMaxFrameSize);
    ssize_t got = 0;
    cr_assert(run_until(domain, [&] {
        got = ::recv(peer.fd(), in.data(), in.size(), MSG_DONTWAIT);
        return got > 0;
    }));
    in.resize(static_cast<std::size_t>(got));
    const MpaParse parse = parse_mpa_frame(MpaKind::reply, in);
    cr_assert(parse.status == MpaStatus::complete && parse.size == in.size());
    cr_assert(parse.frame.from_dat);
    look(parse.frame);
}

static void is_offered_memory(const dat::iwarp::MpaFrame& reply) {
    cr_assert(reply.memory);
    cr_assert_eq(reply.private_data.size(), sizeof(shm::Offer));
}
static void is_offered_none(const dat::iwarp::MpaFrame& reply) {
    cr_assert_not(reply.memory);
    cr_assert(reply.private_data.empty());
}

// It is offered none, for it would wait for one behind the reply.
Test(engine_shm_local_listener, version_0_1__is_offered_no_memory) {
    asks_for_memory(false, is_offered_none);
    asks_for_memory(true, is_offered_memory);
}

// Whatever it asks for: with an offer it could join two processes of this host with one another.
Test(engine_shm_local_listener, a_peer_on_another_host__is_offered_no_memory) {
    all_are_far = true;
    asks_for_memory(true, is_offered_none);
}

// Nor is it asked for any, and what it offers all the same is private data.
Test(engine_shm_local_listener, a_peer_on_another_host__is_asked_for_no_memory) {
    all_are_far = true;
    const Side::Raised unasked = told_by(true, 30);
    cr_assert(unasked.event == dat::core::Event::established);
    cr_assert(std::ranges::equal(unasked.private_data, numbered(30)));
}

// A sanitizer needs descriptors to check what it checks.
#ifndef DAT_SANITIZED

// A connection that has so many descriptors left for what sharing takes.
static dat::engine::LinkKind met_with(int spare) {
    Requests requests;
    OpenDomain near_domain(sharing());
    OpenDomain far_domain(sharing());
    Side near(near_domain);
    Side far(far_domain);
    cr_assert(shm::LocalListener::of(far_domain)); // open by now
    cr_assert_eq(dat::iwarp::connect(near.endpoint, requests.listener.name(), nullptr, {}, {}), 0);
    const auto run = [&](auto done) {
        return run_until(near_domain, done, [&] {
            requests.listener.progress();
            far_domain.progress();
        });
    };
    cr_assert(run([&] { return requests.arrived != nullptr; }));
    std::vector<dat::net::Socket> all;
    for (int fd = 0; (fd = dup(STDERR_FILENO)) >= 0;) {
        all.emplace_back(fd);
    }
    for (int i = 0; i < spare; ++i) {
        all.pop_back();
    }
    cr_assert_eq(dat::iwarp::accept(far.endpoint, *requests.arrived, {}), 0);
    cr_assert(run([&] { return near.connected() && far.connected(); }));
    all.clear();
    near.send<dat::engine::Link>(bytes("hello"));
    Bytes in(5);
    far.receive(in);
    cr_assert(run([&] { return near.requests.size() == 1; }));
    cr_assert(text(in) == "hello" && near.kind == far.kind);
    return near.kind;
}

// It takes a socket and the memory of each side: with fewer descriptors there is TCP, and
// no failure. Each in a process of its own: what a connection had is closed by another thread,
// later.
static void expect_with(int spare, dat::engine::LinkKind kind) {
    const rlimit few{200, 200};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    cr_assert(met_with(spare) == kind, "%d descriptors", spare);
}
Test(engine_shm_local_listener, out_of_descriptors__the_connection_stays_on_tcp) {
    expect_with(0, dat::engine::LinkKind::iwarp);
}
Test(engine_shm_local_listener, with_one_descriptor__the_connection_stays_on_tcp) {
    expect_with(1, dat::engine::LinkKind::iwarp);
}
Test(engine_shm_local_listener, with_two_descriptors__the_connection_stays_on_tcp) {
    expect_with(2, dat::engine::LinkKind::iwarp);
}
Test(engine_shm_local_listener, with_three_descriptors__memory_is_shared) {
    expect_with(3, dat::engine::LinkKind::shm);
}

#endif

Test(engine_shm_local_listener, visitors_with_another_cookie_or_none__are_sent_away) {
    OpenDomain domain(sharing());
    shm::LocalListener* local_listener = shm::LocalListener::of(domain);
    Nobody host;
    const shm::Offer offer = local_listener->offer(host, some_ends());
    const auto silent = at_the_local_listener(offer);
    const auto noisy = at_the_local_listener(offer);
    cr_assert_eq(::send(noisy.fd(), "something", 9, 0), 9);
    shm::Offer other = offer;
    other[20] ^= std::byte{1};
    const Visitor stranger(domain, other);
    cr_assert(stranger.joined_host);
    cr_assert(
        run_until(domain, [&] { return closed(noisy) && closed(stranger.joint.wake_socket); }));
    cr_assert(run_until(domain, [&] { return closed(silent); })); // U-65
    cr_assert_eq(host.times, 0);
    cr_assert_eq(host.invitations, 0);
    Visitor right(domain, offer);
    cr_assert(run_until(domain, [&] { return host.invitations == 1; }));
    const Visitor second(domain, offer); // an offer is taken once
    cr_assert(run_until(domain, [&] { return closed(second.joint.wake_socket); }));
    cr_assert(right.came_in());
    cr_assert(run_until(domain, [&] { return host.times == 1; }));
    const Visitor third(domain, offer);
    cr_assert(run_until(domain, [&] { return closed(third.joint.wake_socket); }));
    cr_assert_eq(host.invitations + host.times + host.refusals, 2);
}

// Who comes for another connection than the cookie's joins nobody, and the
// offer stands for whom it was made.
Test(engine_shm_local_listener, a_visitor_from_another_connection__is_sent_away) {
    OpenDomain domain(sharing());
    Nobody host;
    shm::LocalListener* local_listener = shm::LocalListener::of(domain);
    const shm::Offer offer = local_listener->offer(host, some_ends());
    shm::TcpEnds turned = some_ends();
    std::swap(turned.initiator, turned.responder);
    shm::TcpEnds elsewhere = some_ends();
    elsewhere.responder.host[14] = 1;
    for (const shm::TcpEnds& ends : {some_ends(8), turned, elsewhere}) {
        const Visitor wrong(domain, offer, ends);
        cr_assert(run_until(domain, [&] { return closed(wrong.joint.wake_socket); }));
    }
    cr_assert_eq(host.invitations, 0);
    Visitor right(domain, offer);
    cr_assert(run_until(domain, [&] { return right.came_in() && host.times == 1; }));
}

// The layout's number is the first word of what a visitor says, in every version. One of another
// version is sent away, and goes on over TCP; the same bytes with this version's number are let in.
Test(engine_shm_local_listener, a_visitor_of_another_layout__is_sent_away) {
    OpenDomain domain(sharing());
    Nobody host;
    const shm::Offer offer = shm::LocalListener::of(domain)->offer(host, some_ends());
    shm::Hello hello;
    std::memcpy(&hello.cookie, offer.data() + 16, sizeof hello.cookie);
    hello.ends = some_ends();
    std::array<std::byte, sizeof hello> said;
    std::memcpy(said.data(), &hello, sizeof hello);
    // Up to version 0.1, the one before this, and the next.
    for (const std::uint32_t layout : {0x64617431U, shm::kMagic - 1, shm::kMagic + 1}) {
        std::memcpy(said.data(), &layout, sizeof layout);
        const auto visitor = at_the_local_listener(offer);
        cr_assert_eq(::send(visitor.fd(), said.data(), said.size(), 0),
                     static_cast<ssize_t>(said.size()));
        cr_assert(run_until(domain, [&] { return closed(visitor); }), "%x", layout);
        cr_assert_eq(host.invitations, 0, "%x", layout);
    }
    std::memcpy(said.data(), &shm::kMagic, sizeof shm::kMagic);
    const auto visitor = at_the_local_listener(offer);
    cr_assert_eq(::send(visitor.fd(), said.data(), said.size(), 0),
                 static_cast<ssize_t>(said.size()));
    cr_assert(run_until(domain, [&] { return host.invitations == 1; }));
}

// Who was let in and goes leaves the connection where it was.
Test(engine_shm_local_listener, a_visitor_that_does_not_come_in__is_noticed) {
    OpenDomain domain(sharing());
    Nobody host;
    shm::LocalListener* local_listener = shm::LocalListener::of(domain);
    {
        const Visitor gone(domain, local_listener->offer(host, some_ends()));
        cr_assert(run_until(domain, [&] { return host.invitations == 1; }));
    }
    cr_assert(run_until(domain, [&] { return host.refusals == 1; }));
    const Visitor wrong(domain, local_listener->offer(host, some_ends()));
    cr_assert(run_until(domain, [&] { return host.invitations == 2; }));
    cr_assert_eq(::send(wrong.joint.wake_socket.fd(), "something", 9, 0), 9);
    cr_assert(run_until(domain, [&] { return host.refusals == 2; }));
    const Visitor silent(domain, local_listener->offer(host, some_ends()));
    cr_assert(run_until(domain, [&] { return host.refusals == 3; })); // U-65
    const shm::Offer over = local_listener->offer(host, some_ends());
    const Visitor late(domain, over);
    cr_assert(run_until(domain, [&] { return host.invitations == 4; }));
    local_listener->withdraw(over);
    cr_assert_eq(host.refusals, 3);
    cr_assert_eq(host.times, 0);
}

// Memory that is not of the right size, or that its giver could cut, would be the end of
// the process that uses it.
Test(engine_shm_local_listener, memory_that_could_be_cut__is_refused) {
    int error = 0;
    const int cut = memfd_create("dat-test", MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(cut, sizeof(shm::Layout)), 0);
    cr_assert_not(shm::Segment::adopt(cut, error));
    cr_assert_eq(error, -EBADF);
    cr_assert_eq(ftruncate(cut, sizeof(shm::Layout) - 1), 0);
    cr_assert_eq(fcntl(cut, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    cr_assert_not(shm::Segment::adopt(cut, error));
    close(cut);
    int pipe_ends[2];
    cr_assert_eq(pipe(pipe_ends), 0);
    cr_assert_not(shm::Segment::adopt(pipe_ends[0], error));
}

// So many may stand at the local listener and say nothing; an honest one is let in all the same.
Test(engine_shm_local_listener, a_crowd_that_says_nothing__keeps_nobody_out) {
    OpenDomain domain(sharing());
    shm::LocalListener* local_listener = shm::LocalListener::of(domain);
    Nobody host;
    const shm::Offer offer = local_listener->offer(host, some_ends());
    std::vector<dat::net::Socket> crowd;
    for (int i = 0; i < 200; ++i) {
        crowd.push_back(at_the_local_listener(offer));
    }
    Visitor right(domain, offer);
    cr_assert(run_until(domain, [&] { return host.invitations == 1; }));
    for (int i = 0; i < 200; ++i) {
        crowd.push_back(at_the_local_listener(offer));
    }
    cr_assert(run_until(domain, [&] { return closed(crowd[300]); }));
    cr_assert(right.came_in());
    cr_assert(run_until(domain, [&] { return host.times == 1; }));
}

// Nothing with a name is left.
Test(engine_shm_local_listener, a_closed_domain__has_no_local_listener) {
    shm::Offer offer;
    {
        Met met(true, true);
        Nobody host;
        offer = shm::LocalListener::of(met.far_domain)->offer(host, some_ends());
        cr_assert_eq(sockets_of(offer), 2); // that of the connection is called so too
    }
    cr_assert_eq(sockets_of(offer), 0);
}

// The kernel says first that something was not read at the other end (ECONNRESET), and then what
// that had said.
Test(local_socket, a_peer_that_closes_with_something_unread__has_said_what_it_said) {
    for (const int how : {0, 1, 2}) {
        std::array<int, 2> fds{};
        cr_assert_eq(
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
        dat::net::Socket mine(fds[0]);
        dat::net::Socket theirs(fds[1]);
        shm::Reaper reaper;
        Bytes room(16);
        const auto receive = [&] {
            dat::net::Socket fd;
            return how == 2 ? shm::receive_with(mine, room, fd, reaper)
                            : shm::receive(mine, room, how == 1);
        };
        cr_assert_eq(send(theirs.fd(), "first", 5, 0), 5);
        cr_assert_eq(send(theirs.fd(), "seconds", 7, 0), 7);
        cr_assert_eq(send(mine.fd(), "?", 1, 0), 1);
        theirs.close();
        cr_assert_eq(receive(), 5, "%d", how);
        cr_assert_eq(receive(), 7, "%d", how);
        cr_assert_eq(receive(), 0, "%d", how);
    }
}
