// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: making a connection with a peer that sends anything: a listener and its
// requests, the responder up to ready-to-receive, the initiator up to the reply; all of
// them real, over TCP on loopback, in one thread. Input: an octet that says which side
// is attacked, one for the sizes of the pieces that the peer sends, then its bytes.
//
// What must hold: one attempt, one end at most, and none after it; a request is announced
// exactly if the codec finds one in those bytes, and with its private data; no descriptor
// is left (or soon there are none).
#include "../unit/engine_harness.h"
#include "input.h"

#include "links/iwarp/connect.h"
#include "links/iwarp/link.h"

#include <arpa/inet.h>
#include <cerrno>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dat::iwarp;
using fuzz::Bytes;
using fuzz::Input;

namespace {

SocketAddress loopback() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

// libFuzzer has a timer; a connection that it interrupts is made all the same.
bool connects(int fd, const SocketAddress& name) {
    if (::connect(fd, name.get(), name.size()) == 0) {
        return true;
    }
    if (errno != EINTR) {
        return false;
    }
    pollfd made{fd, POLLOUT, 0};
    while (poll(&made, 1, 10'000) < 0 && errno == EINTR) {
    }
    int error = 0;
    socklen_t size = sizeof error;
    return (made.revents & POLLOUT) != 0 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

int dial(const SocketAddress& name) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(fd >= 0 && connects(fd, name));
    return fd;
}

class ListeningSocket {
  public:
    ListeningSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const SocketAddress any = loopback();
        FUZZ_CHECK(::bind(fd_, any.get(), any.size()) == 0 && ::listen(fd_, 16) == 0);
    }
    SocketAddress name() const {
        sockaddr_in address{};
        socklen_t size = sizeof address;
        getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
        return {reinterpret_cast<const sockaddr*>(&address), size};
    }
    int accept() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

  private:
    int fd_;
};

// The attacker's end. Closing resets, so that no port waits for its time to pass.
class Peer {
  public:
    explicit Peer(int fd) : fd_(fd) {
        const linger at_once{1, 0};
        const int on = 1;
        setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ~Peer() { close(); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    // False: this side has ended it.
    bool send(const Bytes& piece) {
        return ::send(fd_, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    }
    void discard() {
        static Bytes room(64 * 1024);
        // What comes is less.
        (void)!::recv(fd_, room.data(), room.size(), MSG_DONTWAIT);
    }
    void end_stream() { ::shutdown(fd_, SHUT_WR); }
    void close() {
        if (fd_ >= 0) {
            ::close(std::exchange(fd_, -1));
        }
    }

  private:
    int fd_;
};

struct LocalListener final : ListenerOwner {
    LocalListener() : listener(*this, {}) {
        FUZZ_CHECK(listener.bind(loopback()) == 0 && listener.listen(64) == 0);
    }
    void announce(std::unique_ptr<ConnRequest> arrived) override {
        requests.push_back(std::move(arrived));
    }
    Listener listener;
    std::vector<std::unique_ptr<ConnRequest>> requests;
};

dat::engine::Domain& domain() {
    static engine_test::OpenDomain one([] {
        auto o = engine_test::options();
        o.settings.crc = dat::engine::Crc::off;
        o.settings.shm = true; // offers are looked at, and made
        o.settings.keepalive = std::chrono::seconds(0);
        o.settings.unexpected_bytes = 256;
        return o;
    }());
    return one;
}

// Until the bytes of loopback have gone through, if there are any.
template <class Also> void progress(Peer& peer, Also also, int times = 2) {
    for (int i = 0; i < times; ++i) {
        peer.discard();
        also();
        domain().progress();
    }
}

// Small ones, but not many: each takes a while.
std::size_t piece_size(std::uint8_t sizes, std::size_t before) {
    constexpr std::size_t kMost = 16;
    return (sizes & 7) == 0 || before >= kMost ? 1024 : (std::size_t{sizes} >> 3) * 4 + 1;
}

// The rest of the input, in pieces.
void send_all(Input& input, Peer& peer, std::uint8_t sizes) {
    for (std::size_t i = 0; !input.empty() && peer.send(input.bytes(piece_size(sizes, i))); ++i) {
        progress(
            peer, [] {}, 1);
    }
    progress(peer, [] {});
}

void finish(engine_test::Side& side, Peer& peer) {
    peer.end_stream();
    progress(peer, [] {});
    peer.close();
    progress(peer, [] {});
    const auto ends = std::count_if(side.events.begin(), side.events.end(), [](const auto& e) {
        return e.event != dat::core::Event::established;
    });
    FUZZ_CHECK(ends <= 1 && side.events.size() <= 2);
    const std::size_t events = side.events.size();
    side.endpoint.free();
    progress(peer, [] {});
    FUZZ_CHECK(side.events.size() == events);
}

// This side listens: requests, then the responder.
void attack_listener(Input& input, std::uint8_t how, std::uint8_t sizes) {
    static LocalListener local_listener;
    const auto listen = [] { local_listener.listener.progress(); };
    Peer peer(dial(local_listener.listener.name()));
    Input looked_at = input;
    const Bytes all = looked_at.rest();
    const MpaParse parse = parse_mpa_frame(MpaKind::request, all);
    // So much of the stream that the request is in it, if there is one.
    const std::size_t first = parse.status == MpaStatus::complete ? parse.size : all.size();
    Bytes request = input.bytes(first);
    for (std::size_t at = 0, i = 0; at < request.size(); ++i) {
        const std::size_t size = std::min(piece_size(sizes, i), request.size() - at);
        const auto begin = request.begin() + static_cast<std::ptrdiff_t>(at);
        if (!peer.send({begin, begin + static_cast<std::ptrdiff_t>(size)})) {
            break;
        }
        at += size;
        progress(peer, listen, 1);
    }
    progress(peer, listen);
    const bool complete = parse.status == MpaStatus::complete;
    const auto deadline = dat::engine::Clock::now() + std::chrono::seconds(5);
    while (complete && local_listener.requests.empty() && dat::engine::Clock::now() < deadline) {
        progress(peer, listen);
    }
    FUZZ_CHECK(local_listener.requests.size() == (complete ? 1u : 0u));
    if (local_listener.requests.empty()) {
        peer.close();
        return progress(peer, listen);
    }
    const std::unique_ptr<ConnRequest> arrived = std::move(local_listener.requests.front());
    local_listener.requests.clear();
    const auto data = arrived->private_data();
    FUZZ_CHECK(std::equal(data.begin(), data.end(), parse.frame.private_data.begin(),
                          parse.frame.private_data.end()));
    if ((how & 2) != 0) {
        FUZZ_CHECK(arrived->reject({}));
        return;
    }
    engine_test::Side side(domain());
    FUZZ_CHECK(accept(side.endpoint, *arrived, {}) == 0);
    send_all(input, peer, sizes);
    finish(side, peer);
}

// This side connects: the reply, and what is behind it.
void attack_initiator(Input& input, std::uint8_t sizes) {
    static const ListeningSocket listening;
    engine_test::Side side(domain());
    FUZZ_CHECK(connect(side.endpoint, listening.name(), nullptr, {}, {}) == 0);
    Peer peer(listening.accept());
    progress(peer, [] {});
    send_all(input, peer, sizes);
    finish(side, peer);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const std::uint8_t how = input.octet();
    const std::uint8_t sizes = input.octet();
    if ((how & 1) != 0) {
        attack_initiator(input, sizes);
    } else {
        attack_listener(input, how, sizes);
    }
    return 0;
}
