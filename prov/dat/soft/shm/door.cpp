// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See door.h. May include: soft, base, system headers.
#include "soft/shm/door.h"

#include "base/log.h"
#include "soft/barrier.h"
#include "soft/random.h"
#include "soft/shm/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace dat::shm {

namespace {

constexpr std::uint32_t kMagic = 0x64617431; // of this layout of Hello, Welcome and Layout

// What one side tells of itself.
struct Self {
    std::uint64_t probe_address; // of a word of its memory, to try pull() with
    std::uint64_t probe_value;
    std::uint32_t barriers; // its heavy_barrier() reaches others, and theirs reach it
    std::uint32_t unused;
};
struct Hello {
    std::uint32_t magic;
    std::uint32_t unused;
    std::uint64_t cookie;
    Self self;
};
struct Welcome {
    std::uint32_t magic;
    std::uint32_t unused;
    Self self;
};

Self self() {
    static const std::uint64_t probe = soft::random_bits();
    return {reinterpret_cast<std::uintptr_t>(&probe), probe, soft::barriers_reach() ? 1u : 0u, 0};
}

void know(LinkParameters& parameters, const Self& peer, const iwarp::Socket& bell) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    // A process number can get another owner. So nobody's memory is read whom this user
    // may not trace, even where this process could: its peer would be told what is there.
    if (getsockopt(bell.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
        credentials.uid == geteuid()) {
        parameters.peer = credentials.pid; // 0: of a process namespace that is not seen here
    }
    parameters.pulls = can_pull(parameters.peer, peer.probe_address, peer.probe_value);
    parameters.fences = peer.barriers == 0 || !soft::barriers_reach();
    if (!parameters.pulls) {
        DAT_INFO(ep_ctrl,
                 "large messages from process %d come in pieces: its memory cannot be "
                 "read from here (process_vm_readv(2))",
                 static_cast<int>(parameters.peer));
    }
}

iwarp::Socket local_socket() {
    return iwarp::Socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// The address of a door, in the abstract name space: its name begins with a zero byte.
socklen_t address_of(const std::array<std::uint64_t, 2>& name, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                     "dat-%016llx%016llx", static_cast<unsigned long long>(name[0]),
                                     static_cast<unsigned long long>(name[1]));
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(length));
}

// One descriptor along with the message, or none.
union Ancillary {
    cmsghdr header;
    std::array<char, CMSG_SPACE(sizeof(int))> room;
};

bool send_with(const iwarp::Socket& socket, const Hello& hello, int fd) {
    iovec bytes{const_cast<Hello*>(&hello), sizeof hello};
    Ancillary ancillary{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.room.data();
    message.msg_controllen = ancillary.room.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return ::sendmsg(socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof hello;
}

// -1: no whole message. Else the descriptor that came along, the caller's; `fd` is none
// where the message had none.
ssize_t receive_with(const iwarp::Socket& socket, Hello& hello, iwarp::Socket& fd) {
    iovec bytes{&hello, sizeof hello};
    Ancillary ancillary{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.room.data();
    message.msg_controllen = ancillary.room.size();
    const ssize_t n = ::recvmsg(socket.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) {
        return n;
    }
    // The room is for one: of more the kernel closes the others.
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        int passed = -1;
        std::memcpy(&passed, CMSG_DATA(header), sizeof passed);
        fd = iwarp::Socket(passed);
    }
    return n;
}

} // namespace

// --- the responder's side ---

// A connection at the door that has not said what for, for a limited time.
class Door::Guest final : private soft::Pollable, private soft::Timer {
  public:
    Guest(Door& door, iwarp::Socket socket) : door_(door), socket_(std::move(socket)) {}
    ~Guest() { detach(); }

    void start() {
        auto& reactor = door_.domain_.handshakes();
        if (reactor.add(socket_.fd(), EPOLLIN, *this) != 0) {
            return leave("epoll is full");
        }
        watched_ = true;
        reactor.arm(*this, door_.domain_.settings().handshake_limit);
        ready(EPOLLIN); // mostly it has spoken already
    }

    void leave(const char* why) {
        DAT_INFO(ep_ctrl, "an offer of shared memory is not taken: %s", why);
        detach();
        socket_.close();
        door_.dismiss(*this);
    }

  private:
    void expired() override { leave("it said nothing"); }

    void detach() {
        door_.domain_.handshakes().disarm(*this);
        if (std::exchange(watched_, false)) {
            door_.domain_.handshakes().remove(socket_.fd(), *this);
        }
    }

    void ready(std::uint32_t) override {
        Hello hello{};
        iwarp::Socket memory;
        const ssize_t n = receive_with(socket_, hello, memory);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        Host* host =
            n == sizeof hello && hello.magic == kMagic ? door_.host_of(hello.cookie) : nullptr;
        if (!host) {
            return leave("what came is not for any connection");
        }
        Joint joint;
        int error = memory ? 0 : -EBADF;
        if (memory) {
            joint.segment = Segment::adopt(memory.fd(), error);
        }
        if (!joint.segment) {
            return leave(std::strerror(-error));
        }
        detach();
        joint.bell = std::move(socket_);
        know(joint.parameters, hello.self, joint.bell);
        const Welcome welcome{kMagic, 0, self()};
        const bool sent = ::send(joint.bell.fd(), &welcome, sizeof welcome,
                                 MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof welcome;
        door_.dismiss(*this);
        if (sent) {
            host->joined(std::move(joint));
        }
    }

    Door& door_;
    iwarp::Socket socket_;
    bool watched_ = false;
};

Door::Door(soft::Domain& domain) : domain_(domain) {}

Door::~Door() {
    guests_.clear();
    if (socket_) {
        domain_.handshakes().remove(socket_.fd(), *this);
    }
}

Door* Door::of(soft::Domain& domain) {
    if (!domain.companion()) {
        domain.companion() = std::make_unique<Door>(domain);
    }
    auto* door = static_cast<Door*>(domain.companion().get());
    if (door->socket_) {
        return door;
    }
    if (const int error = door->open(); error != 0) {
        DAT_WARN(ep_ctrl, "a connection of one host stays on TCP: no local socket: %s",
                 std::strerror(-error));
        return nullptr;
    }
    return door;
}

int Door::open() {
    iwarp::Socket socket = local_socket();
    name_ = {soft::random_bits(), soft::random_bits()};
    sockaddr_un address;
    const socklen_t size = address_of(name_, address);
    if (!socket || ::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(socket.fd(), SOMAXCONN) != 0) {
        return -errno;
    }
    const int error = domain_.handshakes().add(socket.fd(), EPOLLIN, *this);
    if (error == 0) {
        socket_ = std::move(socket);
    }
    return error;
}

Offer Door::offer(Host& host) {
    std::uint64_t cookie = soft::random_bits();
    while (!hosts_.emplace(cookie, &host).second) {
        cookie = soft::random_bits();
    }
    Offer offer;
    std::memcpy(offer.data(), name_.data(), sizeof name_);
    std::memcpy(offer.data() + sizeof name_, &cookie, sizeof cookie);
    return offer;
}

void Door::withdraw(const Offer& offer) {
    std::uint64_t cookie = 0;
    std::memcpy(&cookie, offer.data() + sizeof name_, sizeof cookie);
    hosts_.erase(cookie);
}

// The offer can be taken once.
Host* Door::host_of(std::uint64_t cookie) {
    const auto found = hosts_.find(cookie);
    Host* host = found == hosts_.end() ? nullptr : found->second;
    if (host) {
        hosts_.erase(found);
    }
    return host;
}

// Destroyed later: it is running now.
void Door::dismiss(Guest& guest) {
    const auto found = std::find_if(guests_.begin(), guests_.end(),
                                    [&](const auto& each) { return each.get() == &guest; });
    if (found != guests_.end()) {
        dismissed_.push_back(std::move(*found));
        guests_.erase(found);
    }
}

void Door::ready(std::uint32_t) {
    // So many may be silent; then the oldest leaves.
    constexpr std::size_t kMaxGuests = 64;
    constexpr int kBurst = 64;
    dismissed_.clear();
    for (int i = 0; i < kBurst; ++i) {
        iwarp::Socket socket(
            ::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            return accept_failed(errno);
        }
        if (guests_.size() == kMaxGuests) {
            guests_.front()->leave("too many come and say nothing");
        }
        guests_.push_back(std::make_unique<Guest>(*this, std::move(socket)));
        guests_.back()->start();
    }
}

// Out of descriptors: whoever waits at the door is sent away, and stays on TCP. It is
// opened again for the next offer.
void Door::accept_failed(int error) {
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
        DAT_WARN(ep_ctrl, "connections of one host stay on TCP: %s; ulimit -n shows the limit",
                 std::strerror(error));
        domain_.handshakes().remove(socket_.fd(), *this);
        socket_.close();
    }
}

// --- the initiator's side ---

bool knock(const Offer& offer, Joint& joint) {
    std::array<std::uint64_t, 2> name{};
    Hello hello{kMagic, 0, 0, self()};
    std::memcpy(name.data(), offer.data(), sizeof name);
    std::memcpy(&hello.cookie, offer.data() + sizeof name, sizeof hello.cookie);
    joint.bell = local_socket();
    sockaddr_un address;
    const socklen_t size = address_of(name, address);
    if (!joint.bell ||
        ::connect(joint.bell.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
        DAT_INFO(ep_ctrl, "a connection stays on TCP: no way to its peer's local socket: %s",
                 std::strerror(errno));
        return false;
    }
    int fd = -1;
    int error = 0;
    joint.segment = Segment::create(fd, error);
    const iwarp::Socket memory(fd);
    joint.parameters.initiator = true;
    if (!joint.segment || !send_with(joint.bell, hello, memory.fd())) {
        DAT_WARN(ep_ctrl, "a connection stays on TCP: shared memory: %s",
                 std::strerror(error != 0 ? -error : errno));
        return false;
    }
    return true;
}

Answer welcomed(Joint& joint) {
    Welcome welcome{};
    const ssize_t n = ::recv(joint.bell.fd(), &welcome, sizeof welcome, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return Answer::none_yet;
    }
    if (n != sizeof welcome || welcome.magic != kMagic) {
        return Answer::refused;
    }
    know(joint.parameters, welcome.self, joint.bell);
    return Answer::welcome;
}

} // namespace dat::shm
