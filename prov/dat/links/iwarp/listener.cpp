// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Listeners: their ports, and who is let in there. See connect.h.
#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "links/iwarp/arrival.h"
#include "links/iwarp/connect.h"
#include "links/shm/local_socket.h"
#include "net/bind_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace dat::iwarp {

namespace {

constexpr std::chrono::milliseconds kLookAgain{100};

} // namespace

// --- one port ---

int Listener::Port::open(Socket&& socket) {
    if (const int error = listener_.reactor_.add(socket.fd(), EPOLLIN, *this); error != 0) {
        return error;
    }
    accepting_ = true;
    socket_ = std::move(socket);
    return 0;
}

Socket Listener::Port::take() {
    listener_.reactor_.disarm(*this);
    if (std::exchange(accepting_, false)) {
        listener_.reactor_.remove(socket_.fd(), *this);
    }
    return std::move(socket_);
}

void Listener::Port::close() { take().close(); }

// One that comes alone is one accept(2): that there is no other is told by the next round. Where
// each round finds some they are twice as many.
void Listener::Port::ready(std::uint32_t) {
    constexpr int kMaxBurst = 64;
    const int burst = std::exchange(burst_, std::min(2 * burst_, kMaxBurst));
    for (int i = 0; i < burst && socket_; ++i) {
        Socket socket(
            kernel::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            return accept_failed(errno);
        }
        listener_.let_in(std::move(socket), is_local_);
    }
}

void Listener::Port::accept_failed(int error) {
    if (error != EMFILE && error != ENFILE && error != ENOMEM && error != ENOBUFS) {
        return; // nothing there, or a connection that died in the queue
    }
    DAT_WARN(ep_ctrl, "cannot accept a connection on %s: %s; ulimit -n shows the limit",
             listener_.name_.text().c_str(), std::strerror(error));
    // The connection stays in the queue and the descriptor readable: look again later.
    listener_.reactor_.remove(socket_.fd(), *this);
    accepting_ = false;
    listener_.reactor_.arm(*this, kLookAgain);
}

void Listener::Port::expired() {
    accepting_ = listener_.reactor_.add(socket_.fd(), EPOLLIN, *this) == 0;
    if (!accepting_) {
        listener_.reactor_.arm(*this, kLookAgain);
    }
}

// --- the listener ---

Listener::Listener(ListenerOwner& owner, const engine::Settings& settings)
    : owner_(owner), settings_(settings) {}

Listener::~Listener() {
    end_all(arrivals_);
    end_all(finished_);
    close_ports();
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
    socket_.no_delay(); // these two are handed on to what is accepted
    socket_.keep_alive(settings_.keepalive);
    const int fd = socket_.fd();
    if (const int error = port_.open(std::move(socket_)); error != 0) {
        return error;
    }
    if (::listen(fd, backlog) < 0) {
        const int error = -errno;
        socket_ = port_.take();
        return error;
    }
    port_.socket().share_port(); // with its connections, whose ends may outlive it
    backlog_ = backlog;
    listening_ = true;
    return 0;
}

void Listener::stop() {
    const std::lock_guard lock(mutex_);
    close_ports();
}

// Connections whose request is not whole yet are refused when it is.
void Listener::close_ports() {
    if (local_port_.socket()) {
        // A child that this process has made has it, too, and does not accept.
        ::shutdown(local_port_.socket().fd(), SHUT_RDWR);
    }
    local_port_.close();
    local_name_ = {};
    port_.close();
    socket_.close();
}

void Listener::progress() {
    const std::lock_guard lock(mutex_);
    if (listening_) {
        if (reactor_.run() == 0) {
            port_.calm();
            local_port_.calm();
        }
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

void Listener::let_in(Socket socket, bool local) {
    // So many may be unfinished; then the oldest makes room, since those that never
    // finish are older than those that will.
    constexpr std::size_t kMaxArrivals = 512;
    if (local && !may_come_in(socket)) {
        shm::let_go(std::move(socket), *reaper_);
        if (reaper_->full()) {
            local_port_.close();
        }
        return;
    }
    if (arrival_count_ == kMaxArrivals) {
        Arrival& oldest = arrivals_.front();
        oldest.detach();
        finish(oldest);
    }
    std::unique_ptr<Arrival> arrival;
    if (!base::attempt(
            [&] { arrival = std::make_unique<Arrival>(*this, std::move(socket), local); })) {
        DAT_WARN(ep_ctrl, "a connection is refused: out of memory");
        return;
    }
    arrivals_.push(*arrival);
    ++arrival_count_;
    arrival.release()->start();
}

// Nothing of what a stranger says on a local stream is read.
bool Listener::may_come_in(const Socket& socket) {
    if (!shm::is_permitted(socket, settings_.shm_peers)) {
        std::array<char, 96> where;
        std::snprintf(where.data(), where.size(), "the local stream of %s", name_.text().c_str());
        shm::say_sent_away(socket, where.data());
        return false;
    }
    shm::Credentials who;
    return shm::credentials_of(socket, who) && shm::may_be_read(who, shm::refuses_rights(socket));
}

// What the local stream of this port is called, for who asks for memory. None: there is none, or he
// does not.
shm::Name Listener::name_for(const Arrived& arrived) {
    if (!settings_.shm || !arrived.frame.memory || arrived.frame.memory_of_0_1()) {
        return {};
    }
    if (local_port_.socket() || !port_.socket()) {
        return local_name_;
    }
    shm::Name name{};
    int error = 0;
    if (!base::attempt(
            [&] { reaper_ = reaper_ ? std::move(reaper_) : std::make_unique<shm::Reaper>(); })) {
        error = -ENOMEM;
    } else if (Socket socket = shm::listen_locally(SOCK_STREAM, backlog_, name)) {
        error = local_port_.open(std::move(socket));
    } else {
        error = -errno;
    }
    if (error != 0) {
        DAT_INFO(ep_ctrl, "connections to %s are all made by TCP: no local stream: %s",
                 name_.text().c_str(), std::strerror(-error));
        return {};
    }
    local_name_ = name;
    return name;
}

} // namespace dat::iwarp
