// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the two handshakes of a connection share. See connect.h.
#ifndef DAT_LINKS_IWARP_HANDSHAKE_H
#define DAT_LINKS_IWARP_HANDSHAKE_H

#include "base/assert.h"
#include "base/attempt.h"
#include "base/log.h"
#include "engine/domain.h"
#include "engine/kernel.h"
#include "links/iwarp/mpa.h"
#include "links/shm/local_listener.h"
#include "net/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace dat::iwarp {

using net::Socket;
using net::SocketAddress;

// Where the peer does not say how many it can serve (RFC 5044 has no field for it).
inline constexpr std::uint16_t kUnknownReadDepth = 1;

// How many RDMA reads at once: what this side wants, and the peer allows.
inline std::uint16_t depth(std::uint16_t wanted, std::uint16_t offered) {
    return offered == kMpaNoDepth ? wanted : std::min(offered, wanted);
}

// What goes to an address of this host leaves it by no wire.
inline bool wants_crc(engine::Crc setting, const SocketAddress& local, const SocketAddress& peer) {
    return setting == engine::Crc::on ||
           (setting == engine::Crc::automatic && !peer.loopback() && !peer.same_host(local));
}

// Shared memory is offered at the end of a reply's private data, behind what the program says;
// where that leaves no room the connection stays on TCP.
inline bool leaves_room(std::span<const std::byte> private_data) {
    return private_data.size() + sizeof(shm::Offer) <= mpa_max_private_data(true);
}

// What both handshakes share: a socket in the domain's reactor, of TCP or a local stream, a frame
// that goes out and one that comes in.
class TcpHandshake : public engine::Handshake, protected engine::Pollable, protected engine::Timer {
  public:
    // Made before the attempt, whose begin() makes it that one's.
    explicit TcpHandshake(engine::Endpoint& endpoint)
        : endpoint_(endpoint), domain_(endpoint.domain()) {}

    void abandon() override { detach(); }

  protected:
    void begin(Socket socket) {
        attempt_ = endpoint_.attempt();
        socket_ = std::move(socket);
    }

    // A link of the connection that has been made. nullptr: there is no memory for it, and the
    // attempt has failed by `otherwise`.
    template <class L, class... Arguments>
    std::unique_ptr<L> make_link(core::Stimulus otherwise, Arguments&&... arguments) {
        std::unique_ptr<L> link;
        if (!base::attempt([&] {
                link = std::make_unique<L>(endpoint_, std::forward<Arguments>(arguments)...);
            })) {
            DAT_WARN(ep_ctrl, "a connection fails as it begins: out of memory");
            fail(otherwise, core::Reason::resources);
        }
        return link;
    }

    int watch(std::uint32_t events) {
        if (watched_) {
            return domain_.handshakes().modify(socket_.fd(), events, *this) ? 0 : -EBADF;
        }
        const int error = domain_.handshakes().add(socket_.fd(), events, *this);
        watched_ = error == 0;
        return error;
    }

    // Takes the socket out of the reactor; with it goes every call to this object.
    Socket detach() {
        domain_.handshakes().disarm(*this);
        ignore();
        return std::move(socket_);
    }

    // The socket stays, and tells of nothing.
    void ignore() {
        if (std::exchange(watched_, false)) {
            domain_.handshakes().remove(socket_.fd(), *this);
        }
    }

    // The peer has closed; for a requester while its request was pending, CR-6.
    bool gone() const {
        std::byte one;
        const ssize_t n = kernel::recv(socket_.fd(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    }

    // Which link the connection has, and why: one line for each.
    void log_tcp(const char* why) const {
        DAT_INFO(ep_ctrl, "the connection with %s uses %s: %s", peer_.text().c_str(),
                 is_local_ ? "a local stream" : "TCP", why);
    }
    void log_memory(const shm::Joint& joint) const {
        DAT_INFO(
            ep_ctrl, "the connection with %s uses shared memory: large messages from there %s%s",
            peer_.text().c_str(), joint.parameters.pulls ? "are copied once" : "come in pieces: ",
            joint.parameters.pulls ? "" : joint.why.data());
    }

    // The same for those who look.
    static void say_why(engine::Link& link, const shm::Joint& joint) {
        std::array<char, sizeof(shm::Why) + 64> text{};
        std::snprintf(text.data(), text.size(), "large messages from there %s%s",
                      joint.parameters.pulls ? "are copied once" : "come in pieces: ",
                      joint.parameters.pulls ? "" : joint.why.data());
        link.say_why(text.data());
    }

    void lost() override {
        endpoint_.failed(attempt_, core::Stimulus::broken, core::Reason::resources, {});
    }

    void fail(core::Stimulus stimulus, core::Reason reason, std::span<const std::byte> data = {}) {
        if (reason == core::Reason::refused && tries_again()) {
            pending_ = {};
            return;
        }
        explain();
        endpoint_.failed(attempt_, stimulus, reason, data);
    }

    // Reports `stimulus` from the reactor, after the caller's call has returned.
    void fail_soon(core::Stimulus stimulus, core::Reason reason) {
        pending_ = {stimulus, reason};
        domain_.handshakes().arm(*this, engine::Clock::now());
    }
    bool fails_soon() const { return pending_.reason != core::Reason::none; }
    void fail_now() { fail(pending_.stimulus, pending_.reason); }

    // Nobody listened. True: that is not the end of it.
    virtual bool tries_again() { return false; }
    // It is the end of the attempt.
    virtual void explain() {}

    // Encodes the frame to be sent, between what is said around it.
    void prepare(const MpaFrame& frame, std::span<const std::byte> ahead = {},
                 std::span<const std::byte> behind = {}) {
        const auto at = std::ranges::copy(ahead, buffer_.begin()).out;
        const std::size_t size = encode_mpa_frame(frame, {at, buffer_.end()});
        DAT_ASSERT(size > 0);
        std::ranges::copy(behind, at + static_cast<std::ptrdiff_t>(size));
        out_size_ = ahead.size() + size + behind.size();
        out_done_ = 0;
    }

    // Sends what is left of it. 1: all is sent; 0: not yet; -errno.
    int send() {
        const ssize_t n = kernel::send(socket_.fd(), buffer_.data() + out_done_,
                                       out_size_ - out_done_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        }
        out_done_ += static_cast<std::size_t>(n);
        return out_done_ == out_size_ ? 1 : 0;
    }

    // Some of it is sent.
    bool begun() const { return out_done_ > 0; }

    engine::Endpoint& endpoint_;
    engine::Domain& domain_;
    core::Attempt attempt_{};
    Socket socket_;
    SocketAddress local_; // its own address, once it is connected
    SocketAddress peer_;  // where it goes to, or comes from
    bool is_local_ = false;
    // Room for the largest frame, and what is said around it; first for what goes out, then for
    // what comes in.
    static constexpr std::size_t kMostAround =
        std::max({kUnframedOffer, sizeof(shm::Proposal), sizeof(shm::Placed)});
    std::array<std::byte, kMpaMaxFrameSize + kMostAround> buffer_;

  private:
    struct Pending {
        core::Stimulus stimulus = core::Stimulus::refused;
        core::Reason reason = core::Reason::none;
    } pending_;
    std::size_t out_size_ = 0;
    std::size_t out_done_ = 0;
    bool watched_ = false;
};

} // namespace dat::iwarp

#endif
