// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See joining.h.
#include "links/shm/joining.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "links/shm/local_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace dat::shm {

// --- at the local listener ---

bool join_host(engine::Domain& domain, const Offer& offer, const TcpEnds& ends, Joint& joint) {
    if (!base::attempt([&] { LocalListener::at(domain); })) {
        explain(joint.why, "out of memory");
        return false;
    }
    Reaper& reaper = LocalListener::at(domain).reaper();
    Hello hello;
    joint.name = name_in(offer);
    hello.cookie = cookie_in(offer);
    hello.ends = ends;
    hello.self = self();
    joint.wake_socket = local_socket();
    joint.parameters.initiator = true;
    sockaddr_un address;
    const socklen_t size = address_of(joint.name, address);
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
        if (send_with(joint.wake_socket, std::as_bytes(std::span(&hello, 1)), -1)) {
            return true;
        }
        explain(joint.why, "its peer's local socket: %s", std::strerror(errno));
    }
    let_go(std::move(joint.wake_socket), reaper);
    return false;
}

Answer welcomed(engine::Domain& domain, Joint& joint) {
    LocalListener& local_listener = LocalListener::at(domain);
    std::array<std::byte, kLongestMessage + 1> room;
    net::Socket memory;
    const ssize_t n = receive_with(joint.wake_socket, room, memory, local_listener.reaper());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return Answer::none_yet;
    }
    int error = n < 0 ? -errno : -EPROTO;
    const auto welcome = parse<Welcome>({room.data(), n > 0 ? static_cast<std::size_t>(n) : 0});
    Segment segment;
    if (welcome && memory) {
        segment = Segment::adopt(memory.fd(), error);
    }
    if (!segment) {
        explain(joint.why, "no memory from its peer: %s",
                n == 0 ? "it closed the local socket" : std::strerror(-error));
        local_listener.reaper().take(std::move(memory));
        return Answer::refused;
    }
    const Acquaintance known = acquaintance(welcome->self, joint.wake_socket);
    segment.side(true).mine->pulls.store(known.pulls ? 1 : 0);
    // Nothing comes behind the welcome before the answer to it; what did may have brought
    // descriptors, and would wait in a socket that counts as one that has none.
    accept_rights(joint.wake_socket, false);
    if (refuses_rights(joint.wake_socket) && !is_silent(joint.wake_socket)) {
        accept_rights(joint.wake_socket, true);
        explain(joint.why, "its peer says more than its welcome at the local socket");
        return Answer::refused;
    }
    const auto peering = local_listener.keep(std::move(joint.wake_socket), std::move(segment), true,
                                             known, joint.name, welcome->peering);
    joint.listener = welcome->listener;
    joint.channel = peering ? peering->first() : nullptr;
    if (joint.channel && peering->join()) {
        describe(joint, known, true);
        return Answer::welcome;
    }
    explain(joint.why, "no way to share memory with its peer, which may be out of it, or gone");
    return Answer::refused;
}

void leave(engine::Domain& domain, Joint& joint) {
    joint.channel.reset();
    if (joint.wake_socket) { // else it has not asked, or it is the peering's
        let_go(std::move(joint.wake_socket), LocalListener::at(domain).reaper());
    }
}

// --- by whichever way ---

bool Joining::begin(const Offer& offer, const TcpEnds& ends, Why& why) {
    offer_ = offer;
    ends_ = ends;
    name_ = name_in(offer);
    cookie_ = cookie_in(offer);
    return try_all(why);
}

bool Joining::try_all(Why& why) {
    if (!base::attempt([&] { LocalListener::at(domain_); })) {
        explain(why, "out of memory");
        return false;
    }
    LocalListener& local_listener = LocalListener::at(domain_);
    if (auto peering = local_listener.peering_at(name_);
        peering && peering->ask(cookie_, ends_, *this)) {
        peering_ = std::move(peering);
        need_ = Overheard::Need(local_listener.overheard());
        stage_ = Stage::asks;
        return true;
    }
    const bool any_comes = std::ranges::any_of(local_listener.joining(), [&](const Joining* each) {
        return each->stage_ == Stage::comes && each->name_ == name_;
    });
    return any_comes && queue(Stage::waits) ? true : come(why);
}

bool Joining::come(Why& why) {
    joint_ = {};
    if (!join_host(domain_, offer_, ends_, joint_)) {
        why = joint_.why;
        return false;
    }
    if (queue(Stage::comes)) {
        if (domain_.handshakes().add(joint_.wake_socket.fd(), EPOLLIN, *this) == 0) {
            return true;
        }
        unqueue();
    }
    explain(why, "the peer's local socket cannot be waited for");
    shm::leave(domain_, joint_);
    return false;
}

bool Joining::queue(Stage stage) {
    auto& all = LocalListener::at(domain_).joining();
    const bool done = base::attempt([&] { all.push_back(this); });
    stage_ = done ? stage : Stage::none;
    return done;
}

void Joining::unqueue() {
    stage_ = Stage::none;
    std::erase(LocalListener::at(domain_).joining(), this);
}

// What this one was waited for is over: each of them may ask now, or come itself.
void Joining::wake_those_behind() const {
    auto& all = LocalListener::at(domain_).joining();
    for (;;) {
        const auto next = std::ranges::find_if(all, [&](const Joining* each) {
            return each->stage_ == Stage::waits && each->name_ == name_;
        });
        const bool any_comes = std::ranges::any_of(all, [&](const Joining* each) {
            return each->stage_ == Stage::comes && each->name_ == name_;
        });
        if (next == all.end() || any_comes) {
            return;
        }
        (*next)->again();
    }
}

void Joining::again() {
    unqueue();
    Why why{};
    if (!try_all(why)) {
        owner_.stayed_out(why);
    }
}

void Joining::abandon() {
    switch (std::exchange(stage_, Stage::none)) {
    case Stage::none:
        return;
    case Stage::waits:
        return unqueue();
    case Stage::comes:
        domain_.handshakes().remove(joint_.wake_socket.fd(), *this);
        unqueue();
        shm::leave(domain_, joint_);
        return wake_those_behind();
    case Stage::asks:
        need_ = {};
        return std::exchange(peering_, nullptr)->forget(cookie_);
    }
}

void Joining::ready(std::uint32_t) {
    domain_.handshakes().remove(joint_.wake_socket.fd(), *this);
    Answer answer = welcomed(domain_, joint_);
    if (answer == Answer::none_yet) {
        if (domain_.handshakes().add(joint_.wake_socket.fd(), EPOLLIN, *this) == 0) {
            return;
        }
        explain(joint_.why, "the peer's local socket cannot be waited for any more");
        answer = Answer::refused;
    }
    finish(answer == Answer::welcome);
}

void Joining::lost() {
    domain_.handshakes().remove(joint_.wake_socket.fd(), *this);
    finish(false);
}

// Of who comes.
void Joining::finish(bool in) {
    unqueue();
    Joint joint = std::exchange(joint_, {});
    if (!in) {
        shm::leave(domain_, joint);
    }
    wake_those_behind();
    if (in) {
        owner_.joined(std::move(joint));
    } else {
        owner_.stayed_out(joint.why);
    }
}

void Joining::granted(std::shared_ptr<Channel> channel, const Name& listener) {
    stage_ = Stage::none;
    need_ = {};
    Joint joint;
    describe(joint, std::exchange(peering_, nullptr)->known(), true);
    joint.channel = std::move(channel);
    joint.listener = listener;
    owner_.joined(std::move(joint));
}

// The offer stands where the peering has ended, which either side lets it when it is idle, or is
// full.
void Joining::refused(bool here_alone) {
    stage_ = Stage::none;
    need_ = {};
    peering_.reset();
    Why why{};
    explain(why, "the peer has no place for it, or does not want it any more");
    if (!here_alone || std::exchange(has_asked_, true) || !try_all(why)) {
        owner_.stayed_out(why);
    }
}

} // namespace dat::shm
