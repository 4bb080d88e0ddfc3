// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Listeners and the requests that arrive on them. See connect.h.
#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "engine/trace.h"
#include "links/iwarp/connect.h"
#include "net/bind_source.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/epoll.h>
#include <utility>

namespace dat::iwarp {

ConnRequest::ConnRequest(Socket socket, std::chrono::seconds keepalive, const MpaFrame& frame,
                         std::span<const std::byte> private_data)
    : socket_(std::move(socket)), keepalive_(keepalive), peer_(socket_.peer()),
      local_(socket_.local()), arrived_ns_(engine::trace_now_ns()), frame_(frame),
      dat_peer_(frame.from_dat), private_data_(private_data.begin(), private_data.end()) {
    frame_.private_data = {};
}

namespace {

// A reply that refuses, in one piece: the socket is new, so it takes it.
void send_reject(const Socket& socket, const MpaFrame& request, bool dat_peer,
                 std::span<const std::byte> private_data) {
    MpaFrame reply;
    reply.kind = MpaKind::reply;
    reply.revision = request.revision;
    reply.reject = true;
    reply.crc = request.crc;
    reply.from_dat = dat_peer;
    if (request.enhanced) {
        reply.enhanced = MpaEnhanced{};
    }
    reply.private_data = private_data;
    std::array<std::byte, kMpaMaxFrameSize> buffer;
    const std::size_t size = encode_mpa_frame(reply, buffer);
    if (kernel::send(socket.fd(), buffer.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        DAT_INFO(ep_ctrl, "the reject did not reach its requester: %s", std::strerror(errno));
    }
    ::shutdown(socket.fd(), SHUT_WR);
}

} // namespace

bool ConnRequest::reject(std::span<const std::byte> private_data) {
    if (!core_.settle(core::ConnRequest::Fate::rejected)) {
        return false;
    }
    send_reject(socket_, frame_, dat_peer_, private_data);
    socket_.close();
    return true;
}

// A connection whose request has not come whole yet; U-65 limits how long.
class Listener::Arrival final : public base::Hook<Listener::Arrival>,
                                private engine::Pollable,
                                private engine::Timer {
  public:
    Arrival(Listener& listener, Socket socket) : listener_(listener), socket_(std::move(socket)) {}
    ~Arrival() { detach(); }

    // The request may be there as soon as the connection is.
    void start() {
        if (read_all()) {
            return;
        }
        if (const int error = listener_.reactor_.add(socket_.fd(), EPOLLIN, *this); error != 0) {
            DAT_WARN(ep_ctrl, "a connection is refused: epoll: %s", std::strerror(-error));
            return over();
        }
        watched_ = true;
        listener_.reactor_.arm(*this, listener_.settings_.handshake_limit);
    }

    // No call reaches it any more.
    void detach() {
        listener_.reactor_.disarm(*this);
        if (std::exchange(watched_, false)) {
            listener_.reactor_.remove(socket_.fd(), *this);
        }
    }

  private:
    void drop(const char* why) {
        DAT_INFO(ep_ctrl, "a connection from %s is dropped before its request was whole: %s",
                 socket_.peer().text().c_str(), why);
        over();
    }

    void expired() override { drop("the handshake limit"); }

    void ready(std::uint32_t) override { read_all(); }

    void lost() override { drop("its listener is lost"); }

    // Reads what is there. True: it is over, one way or the other.
    bool read_all() {
        while (read_some()) {
        }
        return !socket_;
    }

    // False: no more is to be had now.
    bool read_some() {
        const MpaParse before = parse_mpa_frame(MpaKind::request, {buffer_.data(), in_});
        const ssize_t n = kernel::recv(socket_.fd(), buffer_.data() + in_, before.size, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return false;
        }
        if (n <= 0) {
            drop(n < 0 ? std::strerror(errno) : "the peer closed it");
            return false;
        }
        in_ += static_cast<std::size_t>(n);
        const MpaParse parse = parse_mpa_frame(MpaKind::request, {buffer_.data(), in_});
        if (parse.status == MpaStatus::complete) {
            announce(parse.frame);
        } else if (parse.status == MpaStatus::error) {
            refuse(parse);
        }
        return parse.status == MpaStatus::need_more;
    }

    void announce(const MpaFrame& frame) {
        std::unique_ptr<ConnRequest> request;
        if (!base::attempt([&] {
                request = std::make_unique<ConnRequest>(
                    take_socket(), listener_.settings_.keepalive, frame, frame.private_data);
            })) {
            DAT_WARN(ep_ctrl, "a connection request is refused: out of memory");
            return over();
        }
        listener_.finish(*this);
        listener_.owner_.announce(std::move(request));
        if (!listener_.owner_.wants_more()) {
            listener_.close_port();
        }
    }

    void refuse(const MpaParse& parse) {
        DAT_WARN(ep_ctrl, "the MPA request of %s is unusable: %s (%u)",
                 socket_.peer().text().c_str(), text(parse.error), parse.value);
        if (parse.error == MpaError::markers_demanded) { // it can be told
            send_reject(socket_, parse.frame, parse.frame.from_dat, {});
        }
        over();
    }

    Socket take_socket() {
        detach();
        return std::move(socket_);
    }

    void over() {
        take_socket();
        listener_.finish(*this);
    }

    Listener& listener_;
    Socket socket_;
    bool watched_ = false;
    std::size_t in_ = 0;
    std::array<std::byte, kMpaMaxFrameSize> buffer_;
};

Listener::Listener(ListenerOwner& owner, const engine::Settings& settings)
    : owner_(owner), settings_(settings) {}

Listener::~Listener() {
    end_all(arrivals_);
    end_all(finished_);
    reactor_.disarm(resume_);
    if (accepting_) {
        reactor_.remove(socket_.fd(), *this);
    }
}

int Listener::bind(const SocketAddress& address) {
    if (listening_) {
        return -EINVAL;
    }
    int error = 0;
    Socket socket = net::bind_source(address, error);
    if (!socket) {
        return error;
    }
    if (reactor_.fd() < 0) {
        error = reactor_.open();
        if (error != 0) {
            return error;
        }
    }
    socket_ = std::move(socket);
    name_ = socket_.local();
    return 0;
}

int Listener::listen(int backlog) {
    const std::lock_guard lock(mutex_);
    if (!socket_ || listening_) {
        return -EINVAL;
    }
    socket_.tune(settings_.keepalive); // handed on to what is accepted
    if (const int error = reactor_.add(socket_.fd(), EPOLLIN, *this); error != 0) {
        return error;
    }
    if (::listen(socket_.fd(), backlog) < 0) {
        const int error = -errno;
        reactor_.remove(socket_.fd(), *this);
        return error;
    }
    listening_ = accepting_ = true;
    return 0;
}

void Listener::stop() {
    const std::lock_guard lock(mutex_);
    close_port();
}

// Connections whose request is not whole yet are refused when it is.
void Listener::close_port() {
    reactor_.disarm(resume_);
    if (std::exchange(accepting_, false)) {
        reactor_.remove(socket_.fd(), *this);
    }
    socket_.close();
}

void Listener::progress() {
    const std::lock_guard lock(mutex_);
    if (listening_) {
        reactor_.run();
        end_all(finished_);
    }
}

// Destroyed at the end of progress(): it is running now.
void Listener::finish(Arrival& arrival) {
    arrivals_.remove(arrival);
    finished_.push(arrival);
    --arrival_count_;
}

void Listener::end_all(base::List<Arrival, Arrival>& arrivals) {
    while (!arrivals.empty()) {
        delete &arrivals.pop();
    }
}

void Listener::ready(std::uint32_t) {
    // So many may be unfinished; then the oldest makes room, since those that never
    // finish are older than those that will.
    constexpr std::size_t kMaxArrivals = 512;
    constexpr int kBurst = 64;
    for (int i = 0; i < kBurst && socket_; ++i) {
        Socket socket(
            kernel::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            return accept_failed(errno);
        }
        if (arrival_count_ == kMaxArrivals) {
            Arrival& oldest = arrivals_.front();
            oldest.detach();
            finish(oldest);
        }
        std::unique_ptr<Arrival> arrival;
        if (!base::attempt(
                [&] { arrival = std::make_unique<Arrival>(*this, std::move(socket)); })) {
            DAT_WARN(ep_ctrl, "a connection is refused: out of memory");
            continue;
        }
        arrivals_.push(*arrival);
        ++arrival_count_;
        arrival.release()->start();
    }
}

void Listener::accept_failed(int error) {
    if (error != EMFILE && error != ENFILE && error != ENOMEM && error != ENOBUFS) {
        return; // nothing there, or a connection that died in the queue
    }
    DAT_WARN(ep_ctrl, "cannot accept a connection on %s: %s; ulimit -n shows the limit",
             name_.text().c_str(), std::strerror(error));
    // The connection stays in the queue and the descriptor readable: look again later.
    reactor_.remove(socket_.fd(), *this);
    accepting_ = false;
    look_later();
}

void Listener::look_later() { reactor_.arm(resume_, std::chrono::milliseconds(100)); }

void Listener::resume() {
    accepting_ = reactor_.add(socket_.fd(), EPOLLIN, *this) == 0;
    if (!accepting_) {
        look_later();
    }
}

} // namespace dat::iwarp
