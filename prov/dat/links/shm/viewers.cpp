// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See viewers.h.
#include "links/shm/viewers.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "engine/random.h"
#include "links/shm/local_socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <span>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace dat::shm {

// One that looks. Its socket tells of nothing but its end.
struct Viewers::Viewer final : private engine::Pollable {
    Viewer(Viewers& of, net::Socket socket) : of_(of), socket_(std::move(socket)) {}
    ~Viewer() { leave(); }
    void leave() {
        if (std::exchange(watched_, false)) {
            of_.domain_.handshakes().remove(socket_.fd(), *this);
        }
        let_go(std::move(socket_), of_.reaper_);
    }
    bool watch() {
        watched_ = of_.domain_.handshakes().add(socket_.fd(), EPOLLRDHUP, *this) == 0;
        return watched_;
    }
    const net::Socket& socket() const { return socket_; }

  private:
    void ready(std::uint32_t) override { of_.forget(*this); }
    void lost() override { of_.forget(*this); }

    Viewers& of_;
    net::Socket socket_;
    bool watched_ = false;
};

Viewers::Shared::~Shared() {
    if (page_) {
        munmap(page_, sizeof(engine::page::Page));
    }
}

int Viewers::Shared::open() {
    fd_ = net::Socket(memfd_create("dat-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // Sealed, since a mapping of what is cut off ends its process (SIGBUS).
    if (!fd_ || ftruncate(fd_.fd(), sizeof(engine::page::Page)) != 0 ||
        fcntl(fd_.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        return -errno;
    }
    void* const mapped =
        mmap(nullptr, sizeof(engine::page::Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.fd(), 0);
    if (mapped == MAP_FAILED) {
        return -errno;
    }
    // Who maps it from now on only reads, where the kernel knows of that (Linux 5.1).
    (void)fcntl(fd_.fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    page_ = new (mapped) engine::page::Page;
    return 0;
}

Viewers::Viewers(engine::Domain& domain, const char* name, const char* version)
    : domain_(domain),
      opened_ns_(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                std::chrono::system_clock::now().time_since_epoch())
                                                .count())) {
    engine::page::set_text(name_, name);
    engine::page::set_text(version_, version);
    viewers_.reserve(kMost); // these two: so that nothing else takes memory for them
    gone_.reserve(kMost);
}

Viewers::~Viewers() {
    viewers_.clear();
    gone_.clear();
    domain_.statistics().set_page(nullptr);
    shut();
}

void Viewers::open(engine::Domain& domain, const char* name, const char* version) {
    if (domain.viewers() || domain.settings().stats == engine::Stats::off) {
        return;
    }
    int error = -ENOMEM;
    if (!base::attempt([&] {
            domain.viewers().reset(new Viewers(domain, name, version));
            error = static_cast<Viewers&>(*domain.viewers()).listen();
        }) ||
        error != 0) {
        DAT_INFO(domain, "dat_top(1) cannot look at this domain: %s", std::strerror(-error));
    }
}

int Viewers::listen() {
    net::Socket socket = local_socket();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s%016llx",
                                     engine::page::kSocketPrefix,
                                     static_cast<unsigned long long>(engine::random_bits()));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                             static_cast<std::size_t>(length));
    if (!socket || ::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(socket.fd(), kMost) != 0) {
        return -errno;
    }
    socket_ = std::move(socket);
    watch();
    return watched_ ? 0 : -ENOSPC;
}

void Viewers::watch() { watched_ = domain_.handshakes().add(socket_.fd(), EPOLLIN, *this) == 0; }

void Viewers::shut() {
    domain_.handshakes().disarm(*this);
    if (std::exchange(watched_, false)) {
        domain_.handshakes().remove(socket_.fd(), *this);
    }
    let_go(std::move(socket_), reaper_);
}

void Viewers::ready(std::uint32_t) {
    gone_.clear();
    for (std::size_t i = 0; i < kMost && watched_; ++i) {
        net::Socket socket(
            kernel::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                DAT_INFO(domain, "dat_top(1) cannot look at this domain any more: %s",
                         std::strerror(errno));
                shut(); // who waits there is not asked for again and again
            }
            return;
        }
        Credentials who;
        if (credentials_of(socket, who) && (who.user == geteuid() || who.user == 0)) {
            admit(std::move(socket));
        } else {
            turn_away(std::move(socket));
        }
    }
}

// Memory that all of them see, written before the first does.
bool Viewers::share() {
    int error = -ENOMEM;
    if (!base::attempt([&] {
            shared_ = std::make_unique<Shared>();
            error = shared_->open();
        }) ||
        error != 0) {
        DAT_INFO(domain, "no memory for a page that dat_top(1) could look at: %s",
                 std::strerror(-error));
        shared_.reset();
        return false;
    }
    engine::page::Page& page = *shared_->page();
    page.size = sizeof page;
    page.opened_ns = opened_ns_;
    page.period_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(kPeriod).count());
    page.name = name_;
    page.version = version_;
    page.magic = engine::page::kMagic;
    domain_.statistics().set_page(&page);
    return true;
}

void Viewers::admit(net::Socket socket) {
    if (viewers_.size() == kMost || (!shared_ && !share())) {
        return let_go(std::move(socket), reaper_);
    }
    write();
    std::unique_ptr<Viewer> viewer;
    if (!base::attempt([&] { viewer = std::make_unique<Viewer>(*this, std::move(socket)); })) {
        return;
    }
    viewers_.push_back(std::move(viewer));
    Viewer& added = *viewers_.back();
    const std::uint64_t hello = engine::page::kMagic;
    if (!added.watch() ||
        !send_with(added.socket(), std::as_bytes(std::span(&hello, 1)), shared_->fd())) {
        forget(added);
    }
}

// As LocalListener::turn_away(): nothing of what he says is read, and many of them have to wait.
void Viewers::turn_away(net::Socket socket) {
    constexpr std::uint32_t kCrowd = 64;
    let_go(std::move(socket), reaper_);
    if (++strangers_ >= kCrowd || reaper_.full()) {
        strangers_ = 0;
        domain_.handshakes().remove(socket_.fd(), *this);
        watched_ = false;
        domain_.handshakes().arm(*this, kPeriod);
    }
}

void Viewers::write() {
    domain_.statistics().write();
    if (!armed()) {
        domain_.handshakes().arm(*this, kPeriod);
    }
}

void Viewers::expired() {
    if (!watched_ && socket_ && !reaper_.full()) {
        watch();
        if (!watched_) {
            shut();
        }
    }
    if (!viewers_.empty()) {
        write();
    } else if (!watched_ && socket_) {
        domain_.handshakes().arm(*this, kPeriod);
    }
}

void Viewers::forget(Viewer& viewer) {
    const auto found = std::find_if(viewers_.begin(), viewers_.end(),
                                    [&](const auto& each) { return each.get() == &viewer; });
    if (found == viewers_.end()) {
        return;
    }
    if (gone_.size() == gone_.capacity()) { // none of those runs: this one does
        gone_.clear();
    }
    viewer.leave();
    gone_.push_back(std::move(*found));
    viewers_.erase(found);
    if (viewers_.empty()) {
        domain_.statistics().set_page(nullptr);
        shared_.reset();
        if (watched_) {
            domain_.handshakes().disarm(*this);
        }
    }
}

} // namespace dat::shm
