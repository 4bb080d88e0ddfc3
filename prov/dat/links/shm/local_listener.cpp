// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See local_listener.h.
#include "links/shm/local_listener.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/barrier.h"
#include "engine/kernel.h"
#include "engine/proc.h"
#include "engine/random.h"
#include "links/shm/local_socket.h"
#include "links/shm/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace dat::shm {

namespace {

// How long strangers wait once many have come.
constexpr std::chrono::milliseconds kPause{10};

Self self(std::uint64_t domain) {
    const Image image = own_image();
    return {image.address, image.word, domain, engine::barriers_reach() ? 1u : 0u, 0};
}

void explain(Why& why, const char* format, ...) __attribute__((format(printf, 2, 3), cold));
void explain(Why& why, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(why.data(), why.size(), format, args);
    va_end(args);
}

// Why process_vm_readv(2) has failed with `error` for a process of the same user.
void explain_copying(Why& why, int process, int error) {
    const int scope = engine::number_in("/proc/sys/kernel/yama/ptrace_scope", "");
    if (error == EPERM && scope > 0) {
        explain(why, "kernel.yama.ptrace_scope is %d, 0 would let process %d be read", scope,
                process);
    } else if ((error == EPERM || error == ENOSYS) &&
               engine::number_in("/proc/self/status", "Seccomp:\t") > 0) {
        explain(why, "process_vm_readv(2): %s; this process has a seccomp filter",
                std::strerror(error));
    } else {
        explain(why, "process_vm_readv(2) of process %d: %s", process, std::strerror(error));
    }
}

// Before the peer may send anything, so that its first large message is copied already.
void know(LinkParameters& parameters, Why& why, const Self& peer, const net::Socket& wake_socket,
          const Segment& segment) {
    // A process number can get another owner. So nobody's memory is read whom this user
    // may not trace, even where this process could: its peer would be told what is there.
    // Nor that of a process that could not stop this one as well: it could make a copy wait.
    Credentials who;
    if (!credentials_of(wake_socket, who)) {
        explain(why, "the kernel does not say whose process the peer is");
    } else if (who.user != geteuid()) {
        explain(why, "process %d is of user %u, this one of user %u", static_cast<int>(who.process),
                static_cast<unsigned>(who.user), static_cast<unsigned>(geteuid()));
    } else if (!same_process_namespace(who.process)) {
        explain(why, "the peer is in another process namespace");
    } else {
        parameters.peer = {who.process, peer.image_address, peer.image_word};
    }
    errno = 0;
    parameters.pulls = can_pull(parameters.peer);
    if (!parameters.pulls && parameters.peer.process > 0 &&
        base::wants(base::LogLevel::info, base::LogArea::ep_ctrl)) {
        explain_copying(why, static_cast<int>(who.process), errno);
    }
    segment.side(parameters.initiator).mine->pulls.store(parameters.pulls ? 1 : 0);
    parameters.fences = peer.barriers == 0 || !engine::barriers_reach();
}

// The address of a local listener, in the abstract name space: its name begins with a zero byte.
socklen_t address_of(const std::array<std::uint64_t, 2>& name, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                     "dat-%016llx%016llx", static_cast<unsigned long long>(name[0]),
                                     static_cast<unsigned long long>(name[1]));
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(length));
}

template <class Message> bool say(const net::Socket& socket, const Message& message, int fd = -1) {
    return send_with(socket, std::as_bytes(std::span(&message, 1)), fd);
}

TcpEnd end_of(const net::SocketAddress& address) {
    TcpEnd end;
    end.port = address.port();
    if (address.family() == AF_INET6) {
        const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
        std::memcpy(end.host.data(), &v6->sin6_addr, end.host.size());
    } else if (address.family() == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.get());
        end.host[10] = end.host[11] = 0xff;
        std::memcpy(end.host.data() + 12, &v4->sin_addr, 4);
    }
    return end;
}

} // namespace

TcpEnds ends_of(const net::SocketAddress& initiator, const net::SocketAddress& responder) {
    return {end_of(initiator), end_of(responder)};
}

// --- the responder's side ---

// A connection at the local listener: it says what for, and then that it has come in, both within
// a limited time.
class LocalListener::Guest final : private engine::Pollable, private engine::Timer {
  public:
    Guest(LocalListener& local_listener, net::Socket socket)
        : local_listener_(local_listener), socket_(std::move(socket)) {}
    ~Guest() {
        detach();
        let_go(std::move(socket_), local_listener_.reaper_);
    }

    void start() {
        auto& reactor = local_listener_.domain_.handshakes();
        if (reactor.add(socket_.fd(), EPOLLIN, *this) != 0) {
            return leave("epoll is full");
        }
        watched_ = true;
        reactor.arm(*this, local_listener_.domain_.settings().handshake_limit);
        ready(EPOLLIN); // mostly it has spoken already
    }

    bool is_invited() const { return segment_ ? true : false; }
    std::uint64_t cookie() const { return cookie_; }

    void leave(const char* why) {
        DAT_INFO(ep_ctrl, "an offer of shared memory is not taken: %s", why);
        detach();
        let_go(std::move(socket_), local_listener_.reaper_);
        Host* const host = is_invited() ? local_listener_.settle(cookie_) : nullptr;
        local_listener_.dismiss(*this);
        if (host) {
            host->stayed_out();
        }
    }

  private:
    void expired() override { leave("it said nothing"); }
    void lost() override { leave("what it says cannot be waited for any more"); }

    void detach() {
        local_listener_.domain_.handshakes().disarm(*this);
        if (std::exchange(watched_, false)) {
            local_listener_.domain_.handshakes().remove(socket_.fd(), *this);
        }
    }

    void ready(std::uint32_t) override {
        std::array<std::byte, kLongestMessage + 1> room;
        const ssize_t n = receive(socket_, room);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        const std::span bytes(room.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
        if (!is_invited()) {
            ask(parse<Hello>(bytes));
        } else if (const auto joined = parse<Joined>(bytes)) {
            come_in(*joined);
        } else {
            leave("the peer could not use the memory");
        }
    }

    void ask(const std::optional<Hello>& hello) {
        Offered* const offer = hello ? local_listener_.offered(hello->cookie) : nullptr;
        if (!offer || offer->taken || offer->ends != hello->ends) {
            return leave("what came is not for any connection");
        }
        int fd = -1;
        int error = 0;
        Segment segment = Segment::create(fd, error);
        const net::Socket memory(fd);
        if (!segment) {
            return leave(std::strerror(-error));
        }
        know(parameters_, why_, hello->self, socket_, segment);
        Welcome welcome;
        welcome.self = self(local_listener_.id());
        place_ =
            local_listener_.give_place(segment, hello->self, parameters_.peer.process, welcome);
        doorbells_ = welcome.doorbell;
        if (!say(socket_, welcome, memory.fd())) {
            return leave(std::strerror(errno));
        }
        segment_ = std::move(segment);
        cookie_ = hello->cookie;
        offer->taken = true;
        offer->host->invited();
    }

    void come_in(const Joined& joined) {
        if (joined.by_doorbell == 0) {
            local_listener_.forget_doorbells(doorbells_);
            place_ = {};
        }
        Host* const host = local_listener_.settle(cookie_);
        if (!host) {
            return leave("its connection is over");
        }
        detach();
        Joint joint;
        joint.wake_socket = std::move(socket_);
        joint.segment = std::move(segment_);
        joint.parameters = parameters_;
        joint.why = why_;
        joint.place = std::move(place_);
        local_listener_.dismiss(*this);
        host->joined(std::move(joint));
    }

    LocalListener& local_listener_;
    net::Socket socket_;
    bool watched_ = false;
    // Once it is invited.
    Segment segment_;
    std::uint64_t cookie_ = 0;
    LinkParameters parameters_;
    DoorbellPlace place_;
    std::uint64_t doorbells_ = 0; // their number
    Why why_{};
};

LocalListener::LocalListener(engine::Domain& domain)
    : domain_(domain), id_(engine::random_bits() | 1) {}

LocalListener::~LocalListener() {
    guests_.clear();
    dismissed_.clear();
    shut();
}

LocalListener& LocalListener::at(engine::Domain& domain) {
    if (!domain.companion()) {
        domain.companion() = std::make_unique<LocalListener>(domain);
    }
    return *static_cast<LocalListener*>(domain.companion().get());
}

LocalListener* LocalListener::of(engine::Domain& domain) {
    LocalListener& local_listener = at(domain);
    if (local_listener.reaper_.full()) {
        return nullptr;
    }
    if (local_listener.socket_) {
        return &local_listener;
    }
    if (const int error = local_listener.open(); error != 0) {
        DAT_WARN(ep_ctrl, "a connection of one host stays on TCP: no local socket: %s",
                 std::strerror(-error));
        return nullptr;
    }
    return &local_listener;
}

int LocalListener::open() {
    net::Socket socket = local_socket();
    name_ = {engine::random_bits(), engine::random_bits()};
    sockaddr_un address;
    const socklen_t size = address_of(name_, address);
    if (!socket || ::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(socket.fd(), SOMAXCONN) != 0) {
        return -errno;
    }
    const int error = domain_.handshakes().add(socket.fd(), EPOLLIN, *this);
    if (error == 0) {
        watched_ = true;
        socket_ = std::move(socket);
    }
    return error;
}

// Whoever waits there, and what he has sent, goes with it.
void LocalListener::shut() {
    domain_.handshakes().disarm(*this);
    if (std::exchange(watched_, false)) {
        domain_.handshakes().remove(socket_.fd(), *this);
    }
    let_go(std::move(socket_), reaper_);
}

Offer LocalListener::offer(Host& host, const TcpEnds& ends) {
    std::uint64_t cookie = engine::random_bits();
    while (!offers_.emplace(cookie, Offered{&host, ends, false}).second) {
        cookie = engine::random_bits();
    }
    Offer offer;
    std::memcpy(offer.data(), name_.data(), sizeof name_);
    std::memcpy(offer.data() + sizeof name_, &cookie, sizeof cookie);
    return offer;
}

void LocalListener::withdraw(const Offer& offer) {
    std::uint64_t cookie = 0;
    std::memcpy(&cookie, offer.data() + sizeof name_, sizeof cookie);
    const auto found = offers_.find(cookie);
    if (found == offers_.end()) {
        return;
    }
    const bool taken = found->second.taken;
    offers_.erase(found);
    const auto guest = std::find_if(guests_.begin(), guests_.end(), [&](const auto& each) {
        return taken && each->is_invited() && each->cookie() == cookie;
    });
    if (guest != guests_.end()) {
        (*guest)->leave("its connection is over");
    }
}

// --- doorbells ---

DoorbellPlace LocalListener::share(const Segment& memory, const Shared& with, bool initiator) {
    std::erase_if(shared_, [](const Shared& each) { return each.doorbells.expired(); });
    DoorbellPlace place;
    if (!base::attempt([&] {
            const auto doorbells = std::make_shared<Doorbells>(domain_, memory, initiator);
            const std::uint32_t first = doorbells->take();
            shared_.push_back(with);
            shared_.back().doorbells = doorbells;
            place = {doorbells, first};
        })) {
        return {};
    }
    return place;
}

DoorbellPlace LocalListener::give_place(const Segment& memory, const Self& peer, pid_t process,
                                        Welcome& welcome) {
    if (process <= 0 || peer.domain == 0) {
        return {};
    }
    for (const Shared& each : shared_) {
        const auto doorbells = each.doorbells.lock();
        if (!doorbells || each.domain != peer.domain || each.process != process) {
            continue;
        }
        std::uint32_t place = Doorbells::kNone;
        if (!base::attempt([&] { place = doorbells->take(); }) || place == Doorbells::kNone) {
            return {};
        }
        welcome.doorbell = each.number;
        welcome.place = place;
        return {doorbells, place};
    }
    const std::uint64_t number = engine::random_bits() | 1;
    DoorbellPlace place = share(memory, {number, peer.domain, process, {}}, false);
    if (place) {
        welcome.doorbell = number;
        welcome.first = 1;
    }
    return place;
}

void LocalListener::forget_doorbells(std::uint64_t number) {
    std::erase_if(shared_, [&](const Shared& each) { return each.number == number; });
}

DoorbellPlace LocalListener::find_place(const Segment& memory, const Welcome& welcome) {
    if (welcome.doorbell == 0) {
        return {};
    }
    for (const Shared& each : shared_) {
        const auto doorbells = each.doorbells.lock();
        if (!doorbells || each.number != welcome.doorbell || each.domain != 0) {
            continue;
        }
        bool taken = false;
        if (welcome.first != 0 || !base::attempt([&] { taken = doorbells->take(welcome.place); }) ||
            !taken) {
            return {};
        }
        return {doorbells, welcome.place};
    }
    return welcome.first != 0 && welcome.place == 0
               ? share(memory, {welcome.doorbell, 0, 0, {}}, true)
               : DoorbellPlace();
}

LocalListener::Offered* LocalListener::offered(std::uint64_t cookie) {
    const auto found = offers_.find(cookie);
    return found == offers_.end() ? nullptr : &found->second;
}

// It has been taken, or not; who made it, or nullptr.
Host* LocalListener::settle(std::uint64_t cookie) {
    const auto found = offers_.find(cookie);
    if (found == offers_.end()) {
        return nullptr;
    }
    Host* const host = found->second.host;
    offers_.erase(found);
    return host;
}

// Destroyed later: it is running now.
void LocalListener::dismiss(Guest& guest) {
    const auto found = std::find_if(guests_.begin(), guests_.end(),
                                    [&](const auto& each) { return each.get() == &guest; });
    if (found != guests_.end()) {
        dismissed_.push_back(std::move(*found));
        guests_.erase(found);
    }
}

void LocalListener::ready(std::uint32_t) {
    constexpr int kBurst = 64;
    dismissed_.clear();
    for (int i = 0; i < kBurst && watched_; ++i) {
        net::Socket socket(
            kernel::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            return accept_failed(errno);
        }
        if (is_permitted(socket, domain_.settings().shm_peers)) {
            admit(std::move(socket));
        } else {
            turn_away(std::move(socket));
        }
    }
}

void LocalListener::admit(net::Socket socket) {
    // So many may be silent; then the oldest of them leaves.
    constexpr std::size_t kMaxGuests = 64;
    if (guests_.size() >= kMaxGuests) {
        const auto silent = std::find_if(guests_.begin(), guests_.end(),
                                         [](const auto& each) { return !each->is_invited(); });
        if (silent != guests_.end()) {
            (*silent)->leave("too many come and say nothing");
        }
    }
    if (!base::attempt([&] {
            dismissed_.reserve(dismissed_.size() + guests_.size() +
                               1); // so that leaving needs none
            guests_.push_back(std::make_unique<Guest>(*this, std::move(socket)));
        })) {
        DAT_WARN(ep_ctrl, "a connection of one host stays on TCP: out of memory");
        return;
    }
    guests_.back()->start();
}

// Nothing of what a stranger says is read.
void LocalListener::turn_away(net::Socket socket) {
    constexpr std::uint32_t kCrowd = 256;
    Credentials who;
    credentials_of(socket, who);
    DAT_INFO(ep_ctrl,
             "process %d of user %u is sent away from the local socket: it is for user %u; "
             "FI_DAT_SHM_PEERS=any lets in all",
             static_cast<int>(who.process), static_cast<unsigned>(who.user),
             static_cast<unsigned>(geteuid()));
    let_go(std::move(socket), reaper_);
    if (++strangers_ >= kCrowd || reaper_.full()) {
        pause();
    }
}

// However many strangers come, they take a small part of the domain's time, and of its
// descriptors.
void LocalListener::pause() {
    strangers_ = 0;
    domain_.handshakes().remove(socket_.fd(), *this);
    watched_ = false;
    domain_.handshakes().arm(*this, kPause);
}

void LocalListener::expired() {
    if (reaper_.full()) {
        domain_.handshakes().arm(*this, kPause);
        return;
    }
    watched_ = domain_.handshakes().add(socket_.fd(), EPOLLIN, *this) == 0;
    if (!watched_) {
        shut();
    }
}

// Out of descriptors: whoever waits at the local listener is sent away, and stays on TCP. It is
// opened again for the next offer.
void LocalListener::accept_failed(int error) {
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
        DAT_WARN(ep_ctrl, "connections of one host stay on TCP: %s; ulimit -n shows the limit",
                 std::strerror(error));
        shut();
    }
}

// --- the initiator's side ---

bool join_host(engine::Domain& domain, const Offer& offer, const TcpEnds& ends, Joint& joint) {
    if (!base::attempt([&] { LocalListener::at(domain); })) {
        explain(joint.why, "out of memory");
        return false;
    }
    Reaper& reaper = LocalListener::at(domain).reaper();
    std::array<std::uint64_t, 2> name{};
    Hello hello;
    std::memcpy(name.data(), offer.data(), sizeof name);
    std::memcpy(&hello.cookie, offer.data() + sizeof name, sizeof hello.cookie);
    hello.ends = ends;
    hello.self = self(LocalListener::at(domain).id());
    joint.wake_socket = local_socket();
    joint.parameters.initiator = true;
    sockaddr_un address;
    const socklen_t size = address_of(name, address);
    if (!joint.wake_socket ||
        kernel::connect(joint.wake_socket.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
        // The name is random: whoever offered it has a socket of that name, where he is.
        if (joint.wake_socket && errno == ECONNREFUSED) {
            explain(joint.why, "the peer is on another host, or in another network namespace: "
                               "nobody here has its local socket");
        } else {
            explain(joint.why, "no way to its peer's local socket: %s", std::strerror(errno));
        }
    } else if (!is_permitted(joint.wake_socket, domain.settings().shm_peers)) {
        explain(joint.why,
                "its peer's local socket is of another user than %u; FI_DAT_SHM_PEERS=any takes "
                "all",
                static_cast<unsigned>(geteuid()));
    } else {
        // The memory comes next, from whom it is wanted.
        accept_rights(joint.wake_socket, true);
        if (say(joint.wake_socket, hello)) {
            return true;
        }
        explain(joint.why, "its peer's local socket: %s", std::strerror(errno));
    }
    let_go(std::move(joint.wake_socket), reaper);
    return false;
}

Answer welcomed(engine::Domain& domain, Joint& joint) {
    Reaper& reaper = LocalListener::at(domain).reaper();
    std::array<std::byte, kLongestMessage + 1> room;
    net::Socket memory;
    const ssize_t n = receive_with(joint.wake_socket, room, memory, reaper);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return Answer::none_yet;
    }
    int error = n < 0 ? -errno : -EPROTO;
    const auto welcome = parse<Welcome>({room.data(), n > 0 ? static_cast<std::size_t>(n) : 0});
    if (welcome && memory) {
        joint.segment = Segment::adopt(memory.fd(), error);
    }
    if (!joint.segment) {
        explain(joint.why, "no memory from its peer: %s",
                n == 0 ? "it closed the local socket" : std::strerror(-error));
        reaper.take(std::move(memory));
        return Answer::refused;
    }
    know(joint.parameters, joint.why, welcome->self, joint.wake_socket, joint.segment);
    // Nothing comes behind the welcome before the answer to it; what did may have brought
    // descriptors, and would wait in a socket that counts as one that has none.
    accept_rights(joint.wake_socket, false);
    if (refuses_rights(joint.wake_socket) && !is_silent(joint.wake_socket)) {
        accept_rights(joint.wake_socket, true);
        explain(joint.why, "its peer says more than its welcome at the local socket");
        return Answer::refused;
    }
    joint.place = LocalListener::at(domain).find_place(joint.segment, *welcome);
    Joined joined;
    joined.by_doorbell = joint.place ? 1 : 0;
    if (say(joint.wake_socket, joined)) {
        return Answer::welcome;
    }
    explain(joint.why, "its peer's local socket: %s", std::strerror(errno));
    return Answer::refused;
}

void leave(engine::Domain& domain, Joint& joint) {
    if (!joint.wake_socket) { // it has not asked, or is the link's
        return;
    }
    let_go(std::move(joint.wake_socket), LocalListener::at(domain).reaper());
}

namespace {

// Once it has ended for both sides nobody puts more into it. The kernel tells how many descriptors
// are in it since Linux 5.8.
bool may_hold_rights(const net::Socket& socket) {
    if (refuses_rights(socket)) {
        return false;
    }
    shutdown(socket.fd(), SHUT_RDWR);
    std::array<char, 40> file;
    std::snprintf(file.data(), file.size(), "/proc/thread-self/fdinfo/%d", socket.fd());
    return engine::number_in(file.data(), "scm_fds:") != 0;
}

} // namespace

void hang_up(engine::Domain& domain, net::Socket wake_socket) {
    if (wake_socket && may_hold_rights(wake_socket) &&
        !base::attempt([&] { LocalListener::at(domain).reaper().take(std::move(wake_socket)); })) {
        DAT_WARN(ep_ctrl, "the end of a connection may take long: out of memory");
    }
}

} // namespace dat::shm
