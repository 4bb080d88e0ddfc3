// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: what is said once two processes share memory. A real host whose guest says anything
// by the socket of their peering, and asks and proposes by any cookie; a real guest whose host says
// anything, with any descriptor; a real listener at whose local stream anything is proposed; and a
// real initiator whose stream answers anything. Input: an octet that says which, then steps.
//
// What must hold: a place is given once, to who was offered one, or proposed, and comes back when
// both have left it; who asks is answered once; what is announced was proposed to that port, with
// its private data; and when all is over neither a descriptor nor a place in memory is left.
#include "../unit/engine_harness.h"
#include "input.h"

#include "links/iwarp/connect.h"
#include "links/shm/guest.h"
#include "links/shm/joining.h"
#include "links/shm/local_listener.h"
#include "links/shm/local_socket.h"
#include "links/shm/memory.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

using fuzz::Bytes;
using fuzz::Input;
namespace shm = dat::shm;
namespace iwarp = dat::iwarp;
using dat::net::Socket;
using dat::net::SocketAddress;

namespace {

std::size_t open_descriptors() {
    std::array<pollfd, 128> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].fd = static_cast<int>(i);
    }
    FUZZ_CHECK(poll(all.data(), all.size(), 0) >= 0);
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const pollfd& each) { return each.revents != POLLNVAL; }));
}

engine_test::OpenDomain& domain() {
    const auto options = [] {
        auto o = engine_test::options();
        o.settings.shm = true;
        o.settings.handshake_limit = std::chrono::hours(1);
        return o;
    };
    static engine_test::OpenDomain one(options());
    return one;
}

void progress() {
    for (int i = 0; i < 3; ++i) {
        domain().progress();
    }
}

Bytes bytes_of(const auto& message) {
    const auto bytes = std::as_bytes(std::span(&message, 1));
    return {bytes.begin(), bytes.end()};
}

// Mostly as it was.
Bytes spoilt(Input& input, Bytes bytes) {
    const std::uint8_t how = input.octet();
    for (int i = how < 192 ? 0 : how % 4; i > 0 && !bytes.empty(); --i) {
        const std::size_t at = input.octet() % bytes.size();
        bytes[at] = static_cast<std::byte>(input.octet());
    }
    if (how >= 248) {
        bytes.resize(input.octet() % (bytes.size() + 8));
    }
    return bytes;
}

bool say(const Socket& socket, const Bytes& bytes, int fd = -1) {
    return socket && shm::send_with(socket, bytes, fd);
}

shm::TcpEnds ends(std::uint16_t port) {
    shm::TcpEnds out;
    out.initiator.port = port;
    return out;
}

shm::Note note(shm::Topic topic, std::uint64_t value, std::uint32_t place) {
    shm::Note out;
    out.topic = topic;
    out.value = value;
    out.place = place;
    return out;
}

// A note of any topic, of those values mostly.
Bytes any_note(Input& input, std::span<const std::uint64_t> values) {
    const auto topic = static_cast<shm::Topic>(input.octet() % 11);
    const std::uint8_t which = input.octet();
    const std::uint64_t value =
        values.empty() || which >= 224 ? which % 8 : values[which % values.size()];
    const std::uint8_t place = input.octet();
    return spoilt(input, bytes_of(note(topic, value, place < 240 ? place % 24 : place * 0x1000u)));
}

// --- a real host ---

struct Host final : shm::Host {
    void invited() override {
        FUZZ_CHECK(offered && !placed && !is_invited);
        is_invited = true;
    }
    void stayed_out() override {
        FUZZ_CHECK(offered && (is_invited || placed));
        offered = false;
    }
    void joined(shm::Joint joint) override {
        FUZZ_CHECK(offered && (is_invited || placed) && joint.channel);
        FUZZ_CHECK(!joint.parameters.initiator);
        channel = std::move(joint.channel);
        offered = false;
    }
    shm::Offer offer{};
    bool offered = false;
    bool is_invited = false;
    bool placed = false;
    std::shared_ptr<shm::Channel> channel;
};

class AtTheHost {
  public:
    AtTheHost() {
        Host& first = hosts_.emplace_back();
        offer(first, 0);
        socket_ = Socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        sockaddr_un address;
        const socklen_t size = shm::address_of(shm::name_in(first.offer), address);
        FUZZ_CHECK(::connect(socket_.fd(), reinterpret_cast<sockaddr*>(&address), size) == 0);
        shm::Hello hello;
        hello.cookie = shm::cookie_in(first.offer);
        hello.ends = ends(0);
        const shm::Image image = shm::own_image();
        hello.self = {image.address, image.word, 0, 0};
        FUZZ_CHECK(say(socket_, bytes_of(hello)));
        progress();
        std::array<std::byte, 256> room;
        shm::Reaper reaper;
        const ssize_t n = shm::receive_with(socket_, room, memory_, reaper);
        const auto welcome = shm::parse<shm::Welcome>(
            std::span(room).first(n > 0 ? static_cast<std::size_t>(n) : 0));
        FUZZ_CHECK(welcome && memory_);
        id_ = welcome->peering;
        FUZZ_CHECK(say(socket_, bytes_of(shm::Joined{})));
        progress();
        FUZZ_CHECK(first.channel);
        peering_ = first.channel->peering();
    }

    void step(Input& input) {
        switch (const std::uint8_t what = input.octet(); what % 12) {
        case 0:
        case 1:
            if (hosts_.size() < 40) {
                offer(hosts_.emplace_back(), static_cast<std::uint16_t>(hosts_.size()));
            }
            break;
        case 2:
            propose(input, what);
            break;
        case 3: {
            Host& host = hosts_[input.octet() % hosts_.size()];
            local_listener().withdraw(host.offer);
            host.offered = false;
            break;
        }
        case 4: { // it was not told of its place
            Host& host = hosts_[input.octet() % hosts_.size()];
            if (host.offered && host.placed) {
                local_listener().unsaid(host.offer);
                host.offered = false;
            }
            break;
        }
        case 5:
            hosts_[input.octet() % hosts_.size()].channel.reset();
            break;
        case 6: {
            const std::size_t which = input.octet() % hosts_.size();
            shm::Ask ask;
            ask.cookie = shm::cookie_in(hosts_[which].offer);
            ask.ends = ends(static_cast<std::uint16_t>(which + (which > 0 ? 1 : 0)));
            say(socket_, spoilt(input, bytes_of(ask)));
            break;
        }
        case 7: { // a ring, for any place
            if (memory_ && segment().mine) {
                segment().mine->stage.store(input.octet());
            }
            say(socket_, Bytes(1));
            break;
        }
        case 8:
            say(socket_, input.bytes(input.octet()), input.octet() % 8 == 0 ? memory_.fd() : -1);
            break;
        default:
            say(socket_, any_note(input, cookies_));
        }
        if (input.octet() < 200) {
            progress();
            hear();
        }
    }

    void finish() {
        socket_.close();
        FUZZ_CHECK(engine_test::run_until(domain(), [&] { return peering_->is_over(); }));
        for (Host& host : hosts_) {
            FUZZ_CHECK(!host.channel || host.channel->is_over());
            local_listener().withdraw(host.offer);
            host.channel.reset();
        }
        peering_.reset();
        progress();
    }

  private:
    static shm::LocalListener& local_listener() {
        shm::LocalListener* const one = shm::LocalListener::of(domain());
        FUZZ_CHECK(one);
        return *one;
    }
    void offer(Host& host, std::uint16_t port) {
        host.offer = local_listener().offer(host, ends(port), {7, 7});
        host.offered = true;
        cookies_.push_back(shm::cookie_in(host.offer));
    }
    void propose(Input& input, std::uint8_t what) {
        if (hosts_.size() >= 40) {
            return;
        }
        Host& host = hosts_.emplace_back();
        shm::Proposal proposal;
        proposal.peering = what < 224 ? id_ : what;
        proposal.cookie = cookies_[input.octet() % cookies_.size()] + input.octet() % 3;
        shm::Placed placed;
        host.offer = local_listener().offer(host, proposal, {8, 8}, placed);
        host.offered = true;
        host.placed = placed.has_place != 0;
        FUZZ_CHECK(!host.placed || proposal.peering == id_);
        cookies_.push_back(shm::cookie_in(host.offer));
        if (host.placed) {
            for (const Host& each : hosts_) {
                FUZZ_CHECK(!each.channel || each.channel->is_over() ||
                           each.channel->place() != placed.place);
            }
        }
    }
    // Descriptors among it are dropped.
    void hear() {
        std::array<std::byte, 256> room;
        for (int i = 0; i < 64 && socket_; ++i) {
            Socket fd;
            shm::Reaper reaper;
            if (shm::receive_with(socket_, room, fd, reaper) <= 0) {
                return;
            }
        }
    }
    shm::Side segment() {
        if (!mapped_) {
            int error = 0;
            mapped_ = shm::Segment::adopt(memory_.fd(), error);
        }
        return mapped_ ? mapped_.side(true) : shm::Side{};
    }

    std::shared_ptr<shm::Peering> peering_;
    std::deque<Host> hosts_;
    std::vector<std::uint64_t> cookies_;
    std::uint64_t id_ = 0;
    Socket socket_;
    Socket memory_;
    shm::Segment mapped_;
};

// --- a real guest ---

struct Asker final : shm::Peering::Asker {
    void granted(std::shared_ptr<shm::Channel> given, const shm::Name&) override {
        FUZZ_CHECK(asked && given);
        channel = std::move(given);
        asked = false;
    }
    void refused(bool) override {
        FUZZ_CHECK(asked);
        asked = false;
    }
    bool asked = false;
    std::uint64_t cookie = 0;
    std::shared_ptr<shm::Channel> channel;
};

class AtTheGuest {
  public:
    AtTheGuest() {
        shm::Name name{};
        Socket listening = shm::listen_locally(SOCK_SEQPACKET, 4, name);
        FUZZ_CHECK(listening);
        shm::Joint joint;
        FUZZ_CHECK(shm::join_host(domain(), shm::offer_of(name, 1), ends(1), joint));
        socket_ = Socket(::accept4(listening.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        std::array<std::byte, 256> room;
        FUZZ_CHECK(::recv(socket_.fd(), room.data(), room.size(), 0) ==
                   static_cast<ssize_t>(sizeof(shm::Hello)));
        int fd = -1;
        int error = 0;
        const shm::Segment segment = shm::Segment::create(fd, error);
        memory_ = Socket(fd);
        shm::Welcome welcome;
        welcome.peering = 7;
        const shm::Image image = shm::own_image();
        welcome.self = {image.address, image.word, 0, 0};
        FUZZ_CHECK(say(socket_, bytes_of(welcome), fd));
        FUZZ_CHECK(shm::welcomed(domain(), joint) == shm::Answer::welcome);
        channels_.push_back(joint.channel);
        peering_ = joint.channel->peering();
        FUZZ_CHECK(peering_->id() == 7);
    }

    void step(Input& input) {
        switch (const std::uint8_t what = input.octet(); what % 12) {
        case 0:
        case 1:
            if (askers_.size() < 40) {
                Asker& asker = askers_.emplace_back();
                asker.cookie = 100 + input.octet() % 32;
                asker.asked = peering_->ask(asker.cookie, ends(1), asker);
                cookies_.push_back(asker.cookie);
            }
            break;
        case 2: {
            Asker* const asker =
                askers_.empty() ? nullptr : &askers_[input.octet() % askers_.size()];
            if (asker && asker->asked) {
                peering_->forget(asker->cookie);
                asker->asked = false;
            }
            break;
        }
        case 3:
            if (!askers_.empty()) {
                askers_[input.octet() % askers_.size()].channel.reset();
            }
            break;
        case 4: { // what a stream would say of a proposal
            const std::uint64_t cookie = 500 + input.octet();
            if (peering_->propose(cookie)) {
                const std::uint8_t how = input.octet();
                if (how < 160) {
                    keep(peering_->take(cookie, how % 24));
                } else if (how < 200) {
                    peering_->settle(cookie);
                } else {
                    peering_->forgo(cookie);
                    peering_->forgo(cookie); // once more does no harm
                }
            }
            break;
        }
        case 5:
            if (!channels_.empty()) {
                channels_.erase(channels_.begin() +
                                static_cast<std::ptrdiff_t>(input.octet() % channels_.size()));
            }
            break;
        case 6: { // memory, of the right size or not
            int fd = -1;
            int error = 0;
            const shm::Segment segment =
                shm::Segment::create(fd, error, input.octet() % 4 == 0 ? 1 : 3);
            const Socket passed(fd);
            const auto number = static_cast<std::uint64_t>(input.octet() % 4);
            say(socket_, spoilt(input, bytes_of(note(shm::Topic::chunk, number, 0))), fd);
            break;
        }
        case 7:
            say(socket_, Bytes(1));
            break;
        case 8:
            say(socket_, input.bytes(input.octet()), what > 224 ? memory_.fd() : -1);
            break;
        default:
            say(socket_, any_note(input, cookies_));
        }
        if (input.octet() < 200) {
            progress();
            check();
            std::array<std::byte, 256> room;
            for (int i = 0;
                 i < 64 && ::recv(socket_.fd(), room.data(), room.size(), MSG_DONTWAIT) > 0; ++i) {
            }
        }
    }

    void finish() {
        socket_.close();
        // All that was said is read first.
        FUZZ_CHECK(engine_test::run_until(domain(), [&] { return peering_->is_over(); }));
        for (const Asker& asker : askers_) {
            FUZZ_CHECK(!asker.asked);
        }
        askers_.clear();
        channels_.clear();
        peering_.reset();
        progress();
    }

  private:
    void keep(std::shared_ptr<shm::Channel> channel) {
        if (channel) {
            channels_.push_back(std::move(channel));
        }
    }
    // Nobody shares a place with another one.
    void check() {
        std::set<std::uint32_t> used;
        for (const auto& channel : channels_) {
            FUZZ_CHECK(used.insert(channel->place()).second);
        }
        for (const Asker& asker : askers_) {
            FUZZ_CHECK(!asker.channel || used.insert(asker.channel->place()).second);
        }
    }

    std::shared_ptr<shm::Peering> peering_;
    std::vector<std::shared_ptr<shm::Channel>> channels_;
    std::deque<Asker> askers_;
    std::vector<std::uint64_t> cookies_;
    Socket socket_;
    Socket memory_;
};

// --- a real listener ---

struct Requests final : iwarp::ListenerOwner {
    Requests() : listener(*this, domain().settings()) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        FUZZ_CHECK(listener.bind({reinterpret_cast<const sockaddr*>(&address), sizeof address}) ==
                       0 &&
                   listener.listen(16) == 0);
    }
    void announce(std::unique_ptr<iwarp::ConnRequest> request) override {
        all.push_back(std::move(request));
    }
    std::vector<std::unique_ptr<iwarp::ConnRequest>> all;
    iwarp::Listener listener;
};

template <class Done> void run(Requests& requests, Done done) {
    FUZZ_CHECK(engine_test::run_until(domain(), done, [&] { requests.listener.progress(); }));
}

// Its local stream is known by who has connected once.
struct Pair {
    Pair() {
        FUZZ_CHECK(iwarp::connect(near.endpoint, requests.listener.name(), nullptr, {}, {}) == 0);
        run(requests, [&] { return !requests.all.empty(); });
        FUZZ_CHECK(iwarp::accept(far.endpoint, *requests.all[0], {}) == 0);
        run(requests, [&] { return near.connected() && far.connected(); });
        requests.all.clear();
        known = shm::LocalListener::at(domain()).known_listeners().at(requests.listener.name(),
                                                                      nullptr);
        FUZZ_CHECK(known);
        known_peering = known->peering;
    }
    Requests requests;
    engine_test::Side near{domain()};
    engine_test::Side far{domain()};
    // What is idle would stay for a while; the next input is to find nothing of it.
    ~Pair() {
        const auto peering = std::exchange(known_peering, nullptr);
        near.endpoint.free();
        far.endpoint.free();
        progress();
        peering->end();
        progress();
    }
    const shm::KnownListeners::Known* known = nullptr;
    std::shared_ptr<shm::Peering> known_peering;
};

Bytes frame_of(iwarp::MpaKind kind, bool memory, const Bytes& data) {
    iwarp::MpaFrame frame;
    frame.kind = kind;
    frame.revision = iwarp::kMpaRevision2;
    frame.from_dat = frame.wide = true;
    frame.memory = memory;
    frame.enhanced =
        iwarp::MpaEnhanced{.ird = 1, .ord = 1, .peer_to_peer = true, .rtr_rdma_write = true};
    frame.private_data = data;
    Bytes out(iwarp::kMpaMaxFrameSize);
    out.resize(iwarp::encode_mpa_frame(frame, out));
    return out;
}

void attack_listener(Input& input) {
    Pair pair;
    Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address;
    const socklen_t size = shm::address_of(pair.known->name, address);
    FUZZ_CHECK(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    shm::Proposal right;
    right.ends = shm::ends_of(pair.requests.listener.name(), pair.requests.listener.name());
    right.ends.initiator.port = 40000;
    right.peering = pair.known->peering->id();
    right.cookie = input.octet();
    const Bytes data = input.bytes(input.octet());
    Bytes said = spoilt(input, bytes_of(right));
    const Bytes frame = spoilt(input, frame_of(iwarp::MpaKind::request, true, data));
    said.insert(said.end(), frame.begin(), frame.end());
    const std::size_t piece = 1 + input.octet();
    for (std::size_t at = 0; at < said.size(); at += piece) {
        const std::size_t n = std::min(piece, said.size() - at);
        if (::send(socket.fd(), said.data() + at, n, MSG_NOSIGNAL) < 0) {
            break;
        }
        pair.requests.listener.progress();
        pair.requests.listener.progress();
    }
    // Announced exactly if a codec finds both in those bytes.
    const auto ahead = std::span(said).first(std::min(said.size(), sizeof right));
    const auto proposal = shm::parse<shm::Proposal>(ahead);
    const auto parse =
        iwarp::parse_mpa_frame(iwarp::MpaKind::request, std::span(said).subspan(ahead.size()));
    const shm::TcpEnd& responder = right.ends.responder; // whose unused bytes nobody looks at
    const bool is_right = proposal && parse.status == iwarp::MpaStatus::complete &&
                          proposal->ends.responder.host == responder.host &&
                          proposal->ends.responder.port == responder.port;
    FUZZ_CHECK(pair.requests.all.size() <= (is_right ? 1u : 0u));
    if (bytes_of(right) == Bytes(ahead.begin(), ahead.end()) && is_right) {
        FUZZ_CHECK(pair.requests.all.size() == 1);
    }
    engine_test::Side side(domain());
    if (!pair.requests.all.empty()) {
        const auto& request = *pair.requests.all[0];
        FUZZ_CHECK(std::ranges::equal(request.private_data(), parse.frame.private_data));
        FUZZ_CHECK(iwarp::accept(side.endpoint, *pair.requests.all[0], {}) == 0);
        progress();
        say(socket, input.bytes(64));
        progress();
        if (input.octet() % 2 == 0) {
            pair.known->peering->propose(proposal->cookie);
            pair.known->peering->forgo(proposal->cookie);
        }
        // Else it waits, and goes with its endpoint.
    }
    socket.close();
    progress();
    FUZZ_CHECK(!side.connected() || side.kind == dat::engine::LinkKind::iwarp);
}

// --- a real initiator ---

void attack_initiator(Input& input) {
    Pair pair;
    shm::Name name{};
    const Socket listening = shm::listen_locally(SOCK_STREAM, 4, name);
    auto& listeners = shm::LocalListener::at(domain()).known_listeners();
    const SocketAddress to = pair.requests.listener.name();
    const auto peering = pair.known->peering;
    listeners.forget(shm::Name(pair.known->name));
    listeners.remember(to, to, name, peering);
    {
        engine_test::Side side(domain());
        FUZZ_CHECK(iwarp::connect(side.endpoint, to, nullptr, {}, {}) == 0);
        Socket socket(::accept4(listening.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        FUZZ_CHECK(socket);
        shm::Placed placed;
        placed.has_place = input.octet() % 2;
        placed.place = input.octet() % 8;
        placed.name = {input.octet(), 1};
        placed.cookie = input.octet();
        Bytes said = spoilt(input, frame_of(iwarp::MpaKind::reply, input.octet() % 4 != 0,
                                            input.bytes(input.octet())));
        const Bytes behind = spoilt(input, bytes_of(placed));
        said.insert(said.end(), behind.begin(), behind.end());
        const std::size_t piece = 1 + input.octet() * 3;
        for (std::size_t at = 0; at < said.size(); at += piece) {
            const std::size_t n = std::min(piece, said.size() - at);
            if (::send(socket.fd(), said.data() + at, n, MSG_NOSIGNAL) < 0) {
                break;
            }
            progress();
        }
        FUZZ_CHECK(side.events.size() <= 2);
        socket.close();
        FUZZ_CHECK(engine_test::run_until(
            domain(), [&] { return !side.events.empty(); },
            [&] { pair.requests.listener.progress(); }));
        FUZZ_CHECK(!side.connected() || side.kind == dat::engine::LinkKind::shm ||
                   engine_test::run_until(domain(), [&] { return side.ended(); }));
    }
    listeners.forget(name);
    FUZZ_CHECK(!pair.near.ended() && !pair.far.ended());
}

void run(Input& input) {
    switch (input.octet() % 4) {
    case 0: {
        AtTheHost world;
        for (int i = 0; i < 64 && !input.empty(); ++i) {
            world.step(input);
        }
        return world.finish();
    }
    case 1: {
        AtTheGuest world;
        for (int i = 0; i < 64 && !input.empty(); ++i) {
            world.step(input);
        }
        return world.finish();
    }
    case 2:
        return attack_listener(input);
    default:
        attack_initiator(input);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool ready = [] {
        shm::own_image();
        FUZZ_CHECK(shm::LocalListener::of(domain()));
        domain().progress();
        return true;
    }();
    (void)ready;
    const std::size_t before = open_descriptors();
    Input input(data, size);
    run(input);
    FUZZ_CHECK(engine_test::run_until(domain(), [&] { return open_descriptors() == before; }));
    return 0;
}
