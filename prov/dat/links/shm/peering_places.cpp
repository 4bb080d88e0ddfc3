// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See peering.h: who asks for a connection, who is given a place for it, and the memory that it is
// in.
#include "links/shm/peering.h"

#include "base/assert.h"
#include "base/attempt.h"
#include "base/log.h"
#include "base/reserve.h"
#include "links/shm/local_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace dat::shm {

template <class Change> void Peering::change(Change&& change) {
    const bool before = is_idle();
    change();
    if (keeper_ && is_idle() != before && !is_over()) {
        keeper_->idle(*this, !before);
    }
}

// --- places ---

Side Peering::side(std::uint32_t place) const {
    const std::size_t chunk = chunk_of(place);
    return chunks_[chunk].side(guest_, place - first_of(chunk));
}

std::shared_ptr<Channel> Peering::open(std::uint32_t place) {
    std::shared_ptr<Channel> channel;
    bool taken = false;
    const bool done = base::attempt([&] {
        if (place >= capacity()) {
            return;
        }
        if (!guest_) {
            base::reserve_for(left_, std::max(used_, place + 1));
        }
        taken = doorbells_.take(place);
        if (taken) {
            channel = std::make_shared<Channel>(shared_from_this(), place, side(place));
        }
    });
    if (!channel) {
        if (taken && !done) {
            doorbells_.give_back(place);
        }
        return nullptr;
    }
    change([&] { ++channel_count_; });
    return channel;
}

std::shared_ptr<Channel> Peering::first() {
    used_ = 1;
    auto channel = open(0);
    if (!channel) {
        end();
    }
    return channel;
}

// This side looks at it no more. The host uses it again when the guest does not either.
void Peering::give_back(std::uint32_t place) {
    if (guest_) {
        doorbells_.give_back(place);
        full_ = false;
    } else {
        left_.push_back(place); // there is room
    }
    change([&] { --channel_count_; });
}

// A few at a time.
void Peering::look_at_left() {
    constexpr std::size_t kAtOnce = 16;
    for (std::size_t i = std::min(left_.size(), kAtOnce); i > 0; --i) {
        next_left_ = next_left_ < left_.size() ? next_left_ : 0;
        const std::uint32_t place = left_[next_left_];
        if (side(place).peers->stage.load(std::memory_order_acquire) < kLeft) {
            ++next_left_;
            continue;
        }
        left_[next_left_] = left_.back();
        left_.pop_back();
        doorbells_.give_back(place);
    }
}

// --- the host's side ---

// nullptr: there is none now.
std::shared_ptr<Channel> Peering::place_for_one() {
    look_at_left();
    std::uint32_t place = Doorbells::kNone;
    if (!base::attempt([&] { place = doorbells_.take(); }) || place == Doorbells::kNone) {
        return nullptr;
    }
    doorbells_.give_back(place);
    if (place >= capacity()) {
        return nullptr;
    }
    if (place < used_) {
        chunks_[chunk_of(place)].renew(place - first_of(chunk_of(place)));
    }
    auto channel = open(place);
    used_ = std::max(used_, place + 1);
    return channel;
}

void Peering::place(std::uint64_t cookie, std::shared_ptr<Channel> channel) {
    if (channel) {
        note(Topic::grant, cookie, channel->place(), keeper_->listener_of(cookie));
    } else {
        note(Topic::refuse, cookie, 1);
    }
    keeper_->placed(*this, cookie, std::move(channel));
}

std::shared_ptr<Channel> Peering::place_at_once(std::uint64_t cookie) {
    if (!waiting_.empty() || is_over() || given_.contains(cookie) ||
        !base::attempt([&] { given_.emplace(cookie, 0); })) {
        return nullptr;
    }
    auto channel = place_for_one();
    if (channel) {
        given_[cookie] = channel->place();
    } else {
        given_.erase(cookie);
    }
    return channel;
}

// It may never have known of the place, and then it has not left it: the place is free as soon as
// this side has left it.
void Peering::not_taken(std::uint64_t cookie) {
    if (const auto found = given_.find(cookie); found != given_.end()) {
        side(found->second).peers->stage.store(kLeft, std::memory_order_release);
        given_.erase(found);
    }
}

void Peering::heed_ask(const Ask& ask) {
    if (!keeper_->asked(*this, ask.cookie, ask.ends)) {
        return note(Topic::refuse, ask.cookie);
    }
    if (!base::attempt([&] { change([&] { waiting_.push_back(ask.cookie); }); })) {
        return place(ask.cookie, nullptr);
    }
    place_all();
}

void Peering::place_all() {
    while (!waiting_.empty()) {
        auto channel = place_for_one();
        if (!channel) {
            break;
        }
        const std::uint64_t cookie = waiting_.front();
        change([&] { waiting_.pop_front(); });
        place(cookie, std::move(channel));
    }
    if (waiting_.empty() || growing_) {
        return;
    }
    if (chunks_.size() == kChunks || is_over()) {
        return refuse_all();
    }
    growing_ = true;
    note(Topic::need);
}

void Peering::refuse_all() {
    while (!waiting_.empty()) {
        const std::uint64_t cookie = waiting_.front();
        change([&] { waiting_.pop_front(); });
        place(cookie, nullptr);
    }
}

void Peering::withdraw(std::uint64_t cookie) {
    change([&] {
        if (std::erase(waiting_, cookie) > 0) {
            note(Topic::refuse, cookie);
        }
    });
}

bool Peering::heed_guest(const Note& note) {
    switch (note.topic) {
    case Topic::take:
        given_.erase(note.value);
        keeper_->taken(*this, note.value, true);
        return true;
    case Topic::decline:
        not_taken(note.value);
        keeper_->taken(*this, note.value, false);
        return true;
    case Topic::grow:
        if (!growing_ || next_chunk_) {
            return false;
        }
        send_chunk();
        return true;
    case Topic::mapped:
        if (!next_chunk_) {
            return false;
        }
        growing_ = false;
        chunks_.push_back(std::exchange(next_chunk_, {})); // there is room
        place_all();
        return true;
    case Topic::no_room:
        if (!std::exchange(growing_, false)) {
            return false;
        }
        next_chunk_ = {};
        refuse_all();
        return true;
    default:
        return false;
    }
}

// The guest lets one descriptor in.
void Peering::send_chunk() {
    Note given;
    given.topic = Topic::chunk;
    given.value = chunks_.size();
    int fd = -1;
    int error = 0;
    next_chunk_ = Segment::create(fd, error, places_in(chunks_.size()));
    const net::Socket memory(fd);
    if (next_chunk_ && say(std::as_bytes(std::span(&given, 1)), memory.fd())) {
        return;
    }
    DAT_WARN(ep_ctrl, "connections of one host stay on TCP: no memory to share: %s",
             std::strerror(next_chunk_ ? EAGAIN : -error));
    next_chunk_ = {};
    growing_ = false;
    say(std::as_bytes(std::span(&given, 1)));
    refuse_all();
}

// --- the guest's side ---

bool Peering::join() {
    const Joined joined;
    return say(std::as_bytes(std::span(&joined, 1)));
}

bool Peering::ask(std::uint64_t cookie, const TcpEnds& ends, Asker& asker) {
    Ask ask;
    ask.cookie = cookie;
    ask.ends = ends;
    bool is_new = false;
    if (is_over() ||
        !base::attempt([&] { change([&] { is_new = asked_.emplace(cookie, &asker).second; }); })) {
        return false;
    }
    if (is_new && !say(std::as_bytes(std::span(&ask, 1)))) {
        change([&] { asked_.erase(cookie); });
        return false;
    }
    return is_new;
}

void Peering::forget(std::uint64_t cookie) {
    if (const auto found = asked_.find(cookie); found != asked_.end()) {
        found->second = nullptr;
    }
}

bool Peering::propose(std::uint64_t cookie) {
    return !is_over() && base::attempt([&] { change([&] { proposed_.insert(cookie); }); });
}

void Peering::settle(std::uint64_t cookie) {
    change([&] { proposed_.erase(cookie); });
}

std::shared_ptr<Channel> Peering::take(std::uint64_t cookie, std::uint32_t place) {
    auto channel = is_over() ? nullptr : open(place);
    note(channel ? Topic::take : Topic::decline, cookie);
    settle(cookie);
    return channel;
}

void Peering::forgo(std::uint64_t cookie) {
    if (proposed_.contains(cookie)) {
        note(Topic::decline, cookie);
        settle(cookie);
    }
}

bool Peering::heed_grant(const Note& note) {
    const auto found = asked_.find(note.value);
    if (found == asked_.end()) {
        return false;
    }
    Asker* const asker = found->second;
    const bool granted = note.topic == Topic::grant;
    const bool right = !granted || (note.place < capacity() && !doorbells_.is_taken(note.place));
    auto channel = granted && right ? open(note.place) : nullptr;
    change([&] { asked_.erase(found); });
    full_ = !granted && note.place != 0;
    if (granted) { // what is declined is left at once
        this->note(asker && channel ? Topic::take : Topic::decline, note.value);
    }
    if (asker && channel) {
        asker->granted(std::move(channel), note.listener);
    } else if (asker) {
        asker->refused(full_);
    }
    return right;
}

bool Peering::heed_host(const Note& note, net::Socket& fd) {
    if (fd && note.topic != Topic::chunk) {
        return false;
    }
    switch (note.topic) {
    case Topic::grant:
    case Topic::refuse:
        return heed_grant(note);
    case Topic::need:
        return make_room();
    case Topic::chunk:
        return heed_chunk(note, fd);
    default:
        return false;
    }
}

// What was passed besides would wait in a socket that counts as one that has none. Where that
// cannot be excluded it is one that has to be looked at first.
void Peering::let_none_in() {
    if (refuses_) {
        accept_rights(socket_, false);
        if (holds_rights(socket_)) {
            accept_rights(socket_, true);
            refuses_ = false;
        }
    }
}

bool Peering::make_room() {
    if (growing_ || chunks_.size() == kChunks) {
        return false;
    }
    growing_ = true;
    accept_rights(socket_, true);
    note(Topic::grow);
    return true;
}

bool Peering::heed_chunk(const Note& note, net::Socket& fd) {
    if (!std::exchange(growing_, false) || note.value != chunks_.size()) {
        return false;
    }
    let_none_in();
    if (!fd) {
        return true;
    }
    int error = 0;
    if (Segment segment = Segment::adopt(fd.fd(), error, places_in(chunks_.size()))) {
        fd.close();
        chunks_.push_back(std::move(segment)); // there is room
        this->note(Topic::mapped);
        return true;
    }
    DAT_INFO(ep_ctrl, "connections of one host stay on TCP: no memory to share: %s",
             std::strerror(-error));
    this->note(Topic::no_room);
    return error != -EBADF;
}

} // namespace dat::shm
