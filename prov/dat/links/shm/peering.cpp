// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See peering.h: the socket, what is told by it, and the end. Joining and memory stand in
// peering_places.cpp.
#include "links/shm/peering.h"

#include "base/assert.h"
#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "links/shm/local_listener.h"
#include "links/shm/local_socket.h"

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

namespace dat::shm {

// --- a connection's part of it ---

Channel::Channel(std::shared_ptr<Peering> peering, std::uint32_t place, const Side& side)
    : peering_(std::move(peering)), place_(place), side_(side) {}

Channel::~Channel() {
    side_.mine->stage.store(kLeft, std::memory_order_seq_cst);
    if (!hung_up_) {
        wake_peer();
    }
    peering_->give_back(place_);
}

void Channel::attend(Party& party, Attends as) const {
    peering_->doorbells_.attend(place_, party, as);
}

void Channel::leave(Attends as) const { peering_->doorbells_.leave(place_, as); }

bool Channel::is_over() const { return peering_->is_over(); }

// The local socket has no end yet, of whatever rings are in it.
bool Channel::is_peer_there() const {
    return !is_over() && !kernel::has_event(peering_->socket_.fd(), 0) && peer_stage() == kThere;
}

void Channel::wake_peer() const {
    peering_->doorbells_.ring_for_peer(place_);
    peering_->send_ring();
}

void Channel::ring() const {
    if (peering_->doorbells_.ring(place_)) {
        peering_->send_ring();
    }
}

void Channel::watch() const { peering_->doorbells_.watch(); }

void Channel::ignore() const { peering_->doorbells_.ignore(); }

void Channel::ring_here() const { peering_->doorbells_.ring_here(place_); }

void Channel::hang_up() {
    hung_up_ = true;
    side_.mine->stage.store(kGone, std::memory_order_release);
    wake_peer();
}

// --- beginning and end ---

std::shared_ptr<Peering> Peering::begin(engine::Domain& domain, Keeper* keeper, net::Socket socket,
                                        Segment first, bool guest, const Acquaintance& known) {
    std::shared_ptr<Peering> peering;
    if (!base::attempt([&] {
            peering = std::make_shared<Peering>(domain, keeper, std::move(socket), std::move(first),
                                                guest, known);
        })) {
        DAT_WARN(ep_ctrl, "a connection of one host ends as it begins: out of memory");
        return nullptr;
    }
    if (const int error = domain.reactor().add(peering->socket_.fd(), EPOLLIN, *peering);
        error != 0) {
        DAT_WARN(ep_ctrl, "a connection ends as it begins: epoll: %s", std::strerror(-error));
        return nullptr;
    }
    peering->watched_ = true;
    if (keeper && !keeper->overheard().add(peering->socket_, *peering)) {
        DAT_WARN(ep_ctrl, "a connection of one host ends as it begins: out of memory");
        return nullptr;
    }
    return peering;
}

Peering::Peering(engine::Domain& domain, Keeper* keeper, net::Socket socket, Segment first,
                 bool guest, const Acquaintance& known)
    : domain_(domain), keeper_(keeper), socket_(std::move(socket)),
      refuses_(refuses_rights(socket_)), guest_(guest), known_(known), chunks_{std::move(first)},
      doorbells_(domain, chunks_.front(), guest) {
    chunks_.reserve(kChunks);
}

Peering::~Peering() { hang_up(); }

void Peering::hang_up() {
    net::Socket socket = detach();
    if (keeper_) {
        return shm::hang_up(std::move(socket), keeper_->reaper());
    }
    if (!base::attempt(
            [&] { shm::hang_up(std::move(socket), LocalListener::at(domain_).reaper()); })) {
        DAT_WARN(ep_ctrl, "the end of a connection may take long: out of memory");
    }
}

net::Socket Peering::detach() {
    domain_.reactor().disarm(*this);
    if (std::exchange(watched_, false)) {
        domain_.reactor().remove(socket_.fd(), *this);
        if (keeper_) {
            keeper_->overheard().remove(*this);
        }
    }
    if (socket_lost_) { // what that number stands for now is not known
        socket_.close();
    }
    return std::move(socket_);
}

void Peering::end() {
    if (is_over()) {
        return;
    }
    const auto until_it_is_done = shared_from_this();
    hang_up();
    unsaid_.clear();
    waiting_.clear();
    proposed_.clear();
    given_.clear();
    for (const auto& [cookie, asker] : std::exchange(asked_, {})) {
        if (asker) {
            asker->refused(true);
        }
    }
    doorbells_.tell_all([](Party& party) { party.peer_gone(); });
    if (keeper_) {
        keeper_->ended(*this);
    }
}

// This side cannot wake the peer, or be woken.
void Peering::tell_lost() {
    const auto until_it_is_done = shared_from_this();
    doorbells_.tell_all([](Party& party) { party.lost(); });
    end();
}

void Peering::expired() {
    if (socket_lost_) {
        tell_lost();
    } else {
        end();
    }
}

// --- what is said ---

void Peering::send_ring() {
    // A socket that is full rings already; a peer that has gone is noticed elsewhere.
    const char one = 1;
    static_assert(sizeof one == kRingSize);
    if (socket_ && kernel::send(socket_.fd(), &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        (errno == EBADF || errno == ENOTSOCK)) [[unlikely]] {
        socket_lost_ = true;
        domain_.reactor().arm(*this, engine::Clock::now());
    }
}

void Peering::note(Topic topic, std::uint64_t value, std::uint32_t place, const Name& listener) {
    Note note;
    note.topic = topic;
    note.place = place;
    note.value = value;
    note.listener = listener;
    say(std::as_bytes(std::span(&note, 1)));
}

// What finds no room waits for it. False: it is not said, nor will be.
bool Peering::say(std::span<const std::byte> bytes, int fd) {
    if (!socket_) {
        return false;
    }
    if (unsaid_.empty()) {
        if (send_with(socket_, bytes, fd)) {
            return true;
        }
        if (errno != EAGAIN && errno != ENOBUFS) {
            return false; // the end of the socket is noticed elsewhere
        }
    }
    if (fd >= 0) {
        return false;
    }
    Unsaid later;
    std::memcpy(later.bytes.data(), bytes.data(), bytes.size());
    later.size = bytes.size();
    if (unsaid_.size() == kMostUnsaid ||
        !base::attempt([&] { unsaid_.push_back(later); })) { // it asks, and does not listen
        domain_.reactor().arm(*this, engine::Clock::now());
        return false;
    }
    return unsaid_.size() > 1 || domain_.reactor().modify(socket_.fd(), EPOLLIN | EPOLLOUT, *this);
}

void Peering::say_on() {
    while (!unsaid_.empty() &&
           send_with(socket_, std::span(unsaid_.front().bytes).first(unsaid_.front().size), -1)) {
        unsaid_.pop_front();
    }
    if (unsaid_.empty()) {
        (void)domain_.reactor().modify(socket_.fd(), EPOLLIN, *this);
    }
}

// --- what is heard ---

// What this side was woken for does not wait for the socket to be read; who has rung meanwhile has
// said so before.
void Peering::ready(std::uint32_t events) {
    const auto until_it_is_done = shared_from_this();
    if ((events & EPOLLOUT) != 0) {
        say_on();
    }
    doorbells_.look();
    if (!is_over() && !hear()) {
        return end();
    }
    doorbells_.look();
}

// A peer that rings, or asks, for ever is left doing so. False: it has gone, or breaks the rules.
bool Peering::hear() {
    constexpr int kBurst = 16;
    std::array<std::byte, kLongestMessage + 1> room;
    for (int i = 0; i < kBurst && !is_over(); ++i) {
        net::Socket fd;
        const bool lets_one_in = guest_ && growing_;
        const ssize_t n = lets_one_in ? receive_with(socket_, room, fd, keeper_->reaper())
                                      : receive(socket_, room, refuses_);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        if (n <= 0) {
            return false;
        }
        const bool right = heed({room.data(), static_cast<std::size_t>(n)}, fd);
        if (fd) {
            keeper_->reaper().take(std::move(fd));
        }
        if (!right) {
            DAT_INFO(ep_ctrl, "process %d says what nobody may who shares memory",
                     static_cast<int>(known_.image.process));
            return false;
        }
    }
    return true;
}

bool Peering::heed(std::span<const std::byte> message, net::Socket& fd) {
    if (message.size() == kRingSize) {
        return !fd;
    }
    if (!keeper_) {
        return false;
    }
    if (const auto ask = parse<Ask>(message); ask && !guest_) {
        heed_ask(*ask);
        return true;
    }
    const auto note = parse<Note>(message);
    return note && (guest_ ? heed_host(*note, fd) : heed_guest(*note));
}

} // namespace dat::shm
