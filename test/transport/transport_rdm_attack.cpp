// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: a peer of a reliable datagram endpoint that keeps to nothing. It is a connected
// endpoint that says what such a peer says, and something else. What it breaks is its own
// connection; others go on, and each operation completes once.
#include "iwarp_bytes.h"
#include "rdm.h"
#include "suite.h"

#include "rdm/wire.h"

#include <algorithm>
#include <array>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <stop_token>
#include <sys/socket.h>
#include <thread>

using namespace dat::test;
using dat::rdm::Head;
using dat::rdm::Kind;
using dat::rdm::Place;

namespace {

constexpr std::uint16_t kPort = 9; // where nobody listens

// The address of a node, as the hello has it.
dat::rdm::Hello at_host_of(const std::string& address) {
    dat::rdm::Hello hello;
    const auto* const name = reinterpret_cast<const sockaddr*>(address.data());
    hello.family = name->sa_family == AF_INET ? 4 : 6;
    if (name->sa_family == AF_INET) {
        hello.host[10] = hello.host[11] = 0xff;
        std::memcpy(hello.host.data() + 12, &reinterpret_cast<const sockaddr_in*>(name)->sin_addr,
                    4);
    } else {
        std::memcpy(hello.host.data(), &reinterpret_cast<const sockaddr_in6*>(name)->sin6_addr, 16);
    }
    return hello;
}

class Hostile {
  public:
    Hostile(const Transport& transport, const RdmNode& victim)
        : side_(transport), endpoint_(side_), victim_(victim.address()) {
        for (int i = 0; i < 32; ++i) { // what the victim says of itself
            endpoint_.recv(room_.data(), room_.size());
        }
    }
    // Says that it is at the victim's own host, at that port. False: it is refused.
    bool connects(std::uint16_t port = kPort) { return connects(at_host_of(victim_), port); }
    bool connects(dat::rdm::Hello hello, std::uint16_t port) {
        if (!hello.from.known()) {
            hello.from = {1, 1};
        }
        hello.number = 1;
        hello.window = 65536;
        hello.port = port;
        Bytes bytes(dat::rdm::kHelloSize);
        put(reinterpret_cast<std::byte*>(bytes.data()), hello);
        const Bytes to(victim_.begin(), victim_.end());
        cr_assert_eq(endpoint_.connect(to, bytes), 0);
        until([&] { return !side_.events().empty(); });
        const bool connected = side_.events().front().type == FI_CONNECTED;
        answer_ = std::move(side_.events().front().data);
        side_.events().pop_front();
        return connected;
    }
    // What the victim says of itself: its identity among the rest.
    dat::rdm::Hello answer() const {
        dat::rdm::Hello hello;
        cr_assert(get(reinterpret_cast<const std::byte*>(answer_.data()), answer_.size(), hello));
        return hello;
    }
    // False: not any more.
    bool say(const Bytes& bytes) {
        return post_when_possible([&] {
                   RdmNode::poll_all();
                   return fi_inject(endpoint_.get(), bytes.data(), bytes.size(), 0);
               }) == 0;
    }
    bool say(Head head, const Bytes& behind = {}) {
        Bytes bytes(sizeof head);
        dat::rdm::put(reinterpret_cast<std::byte*>(bytes.data()), head);
        bytes.insert(bytes.end(), behind.begin(), behind.end());
        return say(bytes);
    }
    void until(const std::function<bool()>& done) {
        cr_assert(wait_until([&] {
            RdmNode::poll_all();
            return done();
        }));
    }
    bool has_ended() {
        side_.pump();
        return !side_.events().empty() && side_.events().front().ends();
    }
    void is_thrown_out(const char* why) {
        cr_assert(wait_until([&] {
                      RdmNode::poll_all();
                      return has_ended();
                  }),
                  "%s", why);
    }

  private:
    std::array<char, 512> room_{};
    Side side_;
    Endpoint endpoint_;
    std::string victim_;
    Bytes answer_; // private data of the last answer
};

// A node, and a peer of it that keeps to all.
struct Victim {
    explicit Victim(const Transport& transport)
        : node(transport), friendly(transport), to_node(friendly.know(node)) {
        talks();
    }
    void talks() {
        char out = 'x';
        char in = 0;
        RdmOp& received = node.trecv(7, &in, 1);
        RdmOp& sent = friendly.tsend(to_node, 7, &out, 1);
        cr_assert(RdmNode::wait(received).ok() && RdmNode::wait(sent).ok() && in == 'x');
    }
    RdmNode node;
    RdmNode friendly;
    fi_addr_t to_node;
};

Bytes numbers(std::initializer_list<std::uint64_t> all) {
    Bytes out(8 * all.size());
    auto* at = reinterpret_cast<std::byte*>(out.data());
    for (const std::uint64_t number : all) {
        at = dat::rdm::put(at, number);
    }
    return out;
}

Bytes places(std::uint64_t id, std::initializer_list<Place> all) {
    Bytes out = numbers({id});
    for (const Place& place : all) {
        const Bytes one = numbers({std::uint64_t{place.length} << 32 | place.key, place.at});
        out.insert(out.end(), one.begin(), one.end());
    }
    return out;
}

} // namespace

// Nobody may pass for a peer at another host: its connection would end, and what is for it come
// here.
TRANSPORT_TEST(rdm_attack, who_says_that_it_is_at_another_host__is_refused) {
    only_dat();
    Victim victim(transport);
    for (const bool v6 : {false, true}) {
        Hostile hostile(transport, victim.node);
        dat::rdm::Hello hello;
        hello.family = v6 ? 6 : 4;
        hello.host = {0x20, 0x01, 0x0d, 0xb8}; // RFC 3849, RFC 5737
        if (!v6) {
            hello.host = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 1};
        }
        cr_assert_not(hostile.connects(hello, kPort));
        victim.talks();
    }
    Hostile honest(transport, victim.node);
    cr_assert(honest.connects());
}

// Nor for the endpoint itself, whose connection with itself would end: who it is each peer knows.
TRANSPORT_TEST(rdm_attack, who_says_that_it_is_the_endpoint_itself__is_refused) {
    only_dat();
    Victim victim(transport);
    Hostile honest(transport, victim.node);
    cr_assert(honest.connects());
    dat::rdm::Hello itself = honest.answer();
    itself.refusal = {};
    Hostile hostile(transport, victim.node);
    cr_assert_not(hostile.connects(itself, itself.port));
    victim.talks();
}

TRANSPORT_TEST(rdm_attack, what_is_no_message__ends_its_connection_alone) {
    only_dat();
    Victim victim(transport);
    struct Case {
        const char* why;
        Bytes behind;
        Head head;
        std::size_t cut = 0; // bytes of the head
    };
    const auto head = [](Kind kind, std::uint8_t flags = 0, std::uint8_t segments = 0,
                         std::uint32_t taken = 0, std::uint64_t tag = 0) {
        return Head{kind, flags, segments, 0, taken, tag};
    };
    const std::array cases{
        Case{"less than a head", {}, head(Kind::tagged), 1},
        Case{"nothing", {}, head(Kind::tagged), sizeof(Head)},
        Case{"kind 0", {}, head(Kind{}), 0},
        Case{"kind 11", {}, head(static_cast<Kind>(11)), 0},
        Case{"kind 255", {}, head(static_cast<Kind>(255)), 0},
        Case{"data that is not there", Bytes(7), head(Kind::tagged, dat::rdm::kHasData), 0},
        Case{"an id that is not there", Bytes(15),
             head(Kind::message, dat::rdm::kHasData | dat::rdm::kWantsDone), 0},
        Case{"more taken than was sent", {}, head(Kind::taken, 0, 0, 1u << 20), 0},
        Case{"less taken than before", {}, head(Kind::taken, 0, 0, ~0u), 0},
        Case{"done with nothing", {}, head(Kind::done, 0, 0, 0, 1), 0},
        Case{"done with anything", {}, head(Kind::done, 0, 0, 0, ~std::uint64_t{0}), 0},
        Case{"five places", places(1, {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}}),
             head(Kind::announced, 0, 5), 0},
        Case{"255 places", places(1, {{1, 1, 0}}), head(Kind::announced, 0, 255), 0},
        Case{"fewer places than it says", places(1, {{1, 1, 0}}), head(Kind::announced, 0, 2), 0},
        Case{"more places than it says", places(1, {{1, 1, 0}, {1, 1, 0}}),
             head(Kind::announced_tagged, 0, 1), 0},
        Case{"a place of no bytes", places(1, {{1, 0, 0}}), head(Kind::announced, 0, 1), 0},
        Case{"an announcement without its id", Bytes(4), head(Kind::announced), 0},
        Case{"a flag that an announcement has not", places(1, {{1, 1, 0}}),
             head(Kind::announced, dat::rdm::kWantsDone, 1), 0},
    };
    std::uint16_t port = kPort;
    for (const Case& each : cases) {
        Hostile hostile(transport, victim.node);
        cr_assert(hostile.connects(++port));
        Bytes bytes(sizeof(Head));
        dat::rdm::put(reinterpret_cast<std::byte*>(bytes.data()), each.head);
        bytes.resize(bytes.size() - each.cut);
        bytes.insert(bytes.end(), each.behind.begin(), each.behind.end());
        hostile.say(bytes);
        hostile.is_thrown_out(each.why);
        victim.talks();
    }
}

// What is kept for it has a bound: the window that it was told of.
TRANSPORT_TEST(rdm_attack, more_than_its_window__ends_its_connection_alone) {
    only_dat();
    Victim victim(transport);
    for (const std::size_t size : {std::size_t{0}, std::size_t{100}}) {
        Hostile hostile(transport, victim.node);
        cr_assert(hostile.connects(static_cast<std::uint16_t>(kPort + size)));
        std::size_t said = 0;
        constexpr std::size_t kFar = 200'000; // far more than any window has
        for (; said < kFar && !hostile.has_ended(); ++said) {
            if (!hostile.say({Kind::tagged, 0, 0, 0, 0, 1'000'000}, Bytes(size))) {
                break;
            }
        }
        cr_assert(said < kFar);
        hostile.is_thrown_out("more than its window");
        victim.talks();
    }
}

// Memory that is none: the receive fails, once, and the connection with it.
TRANSPORT_TEST(rdm_attack, an_announcement_of_what_is_not_there__fails_its_receive) {
    only_dat();
    Victim victim(transport);
    std::array<char, 100'000> in{};
    std::uint16_t port = kPort;
    for (const bool first : {false, true}) { // the receive
        Hostile hostile(transport, victim.node);
        cr_assert(hostile.connects(++port));
        RdmOp* receive = first ? &victim.node.trecv(5, in.data(), in.size()) : nullptr;
        cr_assert(hostile.say({Kind::announced_tagged, 0, 2, 0, 0, 5},
                              places(1, {{12345, 40'000, 0}, {54321, 0xffffffff, 0}})));
        if (!first) {
            settle(20);
            receive = &victim.node.trecv(5, in.data(), in.size());
        }
        hostile.until([&] { return receive->done(); });
        cr_assert(receive->completions == 1 && receive->err != 0);
        cr_assert(std::ranges::all_of(in, [](char c) { return c == 0; }));
        hostile.is_thrown_out("memory that is not there");
        victim.talks();
    }
}

// Numbers of sends can be guessed, and count for the peer that they went to alone.
TRANSPORT_TEST(rdm_attack, done_with_what_went_to_another__ends_its_connection_alone) {
    only_dat();
    Victim victim(transport);
    const Bytes out = pattern(100'000, 3);
    RdmOp& sent = victim.node.tsend(victim.node.know(victim.friendly), 3, out.data(), out.size());
    std::uint16_t port = kPort;
    for (std::uint64_t use = 1; use < 4; ++use) {
        Hostile hostile(transport, victim.node);
        cr_assert(hostile.connects(++port));
        hostile.say({Kind::done, 0, 0, 0, 0, use << 32});
        hostile.is_thrown_out("done with what went to another");
        cr_assert_eq(sent.completions, 0);
    }
    Bytes in(out.size());
    RdmOp& received = victim.friendly.trecv(3, in.data(), in.size());
    cr_assert(RdmNode::wait(received).ok() && RdmNode::wait(sent).ok());
    cr_assert(in == out);
}

namespace {

// Answers a request as a peer does that lets it in. `gives_up`: and ends the connection, which is
// seen with the answer.
raw::Socket answered(raw::Listener& listener, const std::string& address, bool gives_up) {
    raw::Socket socket = listener.accept();
    cr_assert(!raw::read_mpa(socket).reply);
    dat::rdm::Hello hello = at_host_of(address);
    hello.from = {1, 1};
    hello.window = 65536;
    Bytes bytes(dat::rdm::kHelloSize);
    put(reinterpret_cast<std::byte*>(bytes.data()), hello);
    const Bytes reply = encode(raw::Mpa{true, raw::kEnhanced, 2, raw::enhanced(4, 4, bytes)});
    if (!gives_up) {
        socket.write(reply);
        return socket;
    }
    const int fd = socket.release();
    const int on = 1;
    cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
    cr_assert_eq(send(fd, reply.data(), reply.size(), 0), static_cast<ssize_t>(reply.size()));
    cr_assert_eq(shutdown(fd, SHUT_WR), 0);
    return raw::Socket(fd);
}

} // namespace

// On a busy machine an answer may be read when who gave it waits no longer. What is queued does not
// end with such a connection: the peer is asked once more.
WIRE_TEST(rdm_attack, peer_that_gave_up_before_its_answer_is_read__is_asked_again) {
    only_dat();
    RdmNode node(transport);
    raw::Listener listener(transport);
    const std::string address(static_cast<const char*>(listener.address()), node.address().size());
    const char out = 'x';
    RdmOp& sent = node.tsend(node.know(address), 7, &out, 1);
    std::jthread mover([&](const std::stop_token& stop) { // where the program has to
        while (!stop.stop_requested()) {
            fi_cq_read(node.cq, nullptr, 0);
        }
    });
    const raw::Socket first = answered(listener, address, true);
    raw::Socket second = answered(listener, address, false);
    Bytes message;
    while (message.empty() || message.front() != static_cast<std::uint8_t>(Kind::tagged)) {
        message = raw::read_segment(second).payload;
    }
    mover.request_stop();
    mover.join();
    cr_assert_eq(message.size(), sizeof(Head) + 1);
    cr_assert_eq(message.back(), 'x');
    cr_assert(RdmNode::wait(sent).ok());
}

// The receive that it was coming into fails once; others stay posted, and so do those that are like
// it.
WIRE_TEST(rdm_attack, message_whose_rest_never_comes__fails_its_receive_alone) {
    only_dat();
    RdmNode node(transport);
    raw::Listener listener(transport);
    const std::string address(static_cast<const char*>(listener.address()), node.address().size());
    Bytes in(30'000);
    RdmOp& receive = node.trecv(5, in.data(), in.size());
    RdmOp& other = node.trecv(5, in.data(), in.size());
    const char out = 'x';
    node.tsend(node.know(address), 7, &out, 1);
    std::jthread mover([&](const std::stop_token& stop) { // where the program has to
        while (!stop.stop_requested()) {
            fi_cq_read(node.cq, nullptr, 0);
        }
    });
    {
        raw::Socket peer = answered(listener, address, false);
        Bytes message;
        while (message.empty() || message.front() != static_cast<std::uint8_t>(Kind::tagged)) {
            message = raw::read_segment(peer).payload;
        }
        Bytes bytes(sizeof(Head) + 20'000);
        dat::rdm::put(reinterpret_cast<std::byte*>(bytes.data()),
                      Head{Kind::tagged, 0, 0, 0, 0, 5});
        raw::Segment segment = raw::send(1, bytes);
        segment.last = false;
        peer.write(encode(segment));
    }
    mover.request_stop();
    mover.join();
    RdmNode::wait(receive);
    cr_assert_eq(receive.err, FI_ECANCELED);
    settle(20);
    cr_assert(receive.completions == 1 && !other.done());
}
