// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See messages.h: what comes from a peer, the endpoint itself among them.
#include "base/copy.h"
#include "rdm/limits.h"
#include "rdm/messages.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace dat::rdm {

using core::DtoStatus;
using core::PostVerdict;

std::size_t Peer::longest() const { return kMaxHead + std::max(kEagerShm, kEagerIwarp); }

void Peer::took(std::uint32_t cost) {
    taken_ += cost;
    if (owes_credit()) [[unlikely]] {
        run_soon();
    }
}

// A message of this connection is held no longer.
void Peer::let_go(Unexpected& message) {
    const std::uint32_t cost = message.cost();
    held_ -= cost;
    took(cost);
}

bool Peer::may_announce() const {
    return announced_ < kFewAnnounced ||
           (announced_ < kMaxAnnounced && messages_.announced_ < messages_.many_announced_);
}

void Peer::one_more_announced() {
    ++announced_;
    ++messages_.announced_;
}

void Peer::no_longer_announced() {
    --announced_;
    --messages_.announced_;
}

void Peer::owe_done(std::uint64_t id) {
    if (!endpoint_ || self_) {
        return;
    }
    Fetch* const answer = messages_.fetches_.take();
    if (!answer) {
        return owner_.give_up(*this);
    }
    answer->peer = this;
    answer->receive = nullptr;
    answer->id = id;
    to_say_.push(*answer);
    run_soon();
}

// What every message begins with. False: it says that more was taken than was sent.
[[gnu::always_inline]] inline bool Peer::take_head(const std::byte* message, Head& head) {
    get(message, head);
    // The compiler may not read it again from where the peer can change it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (head.taken - told_ > sent_ - told_) [[unlikely]] {
        return false;
    }
    told_ = head.taken;
    if (!confirmed_) [[unlikely]] {
        owner_.confirmed(*this);
    }
    return true;
}

// False: it says that more buffers are free again than it was sent messages.
bool Peer::take_freed(const Head& head) {
    if (head.freed == 0) {
        return true;
    }
    if (buffers_ == kUncounted || head.freed > verbs::kMessages - buffers_) {
        return false;
    }
    got_buffers(head.freed);
    return true;
}

// The receive of a message that is not whole is looked for now, so that the rest of it comes
// straight there. One that stays for many messages has to know how long this one is.
engine::MessageSink::Placement Peer::begins(const std::byte* start, std::size_t) {
    Header& header = placing_head_;
    if (!endpoint_ || !take_head(start, header.head) ||
        (header.head.kind != Kind::message && header.head.kind != Kind::tagged)) {
        return {}; // arrived() says what is wrong
    }
    const bool tagged = header.head.kind == Kind::tagged;
    header.head.tag = tagged ? header.head.tag : 0;
    core::Matching& matching = messages_.matching(tagged);
    core::PostedReceive* const found = matching.arrive(header.head.tag, number_);
    if (!found || found->stays()) {
        return {};
    }
    const std::byte* at = start + sizeof(Head);
    header.data = header.id = 0;
    if ((header.head.flags & kHasData) != 0) {
        at = get(at, header.data);
    }
    if ((header.head.flags & kWantsDone) != 0) {
        at = get(at, header.id);
    }
    header.size = static_cast<std::size_t>(at - start);
    placing_ = static_cast<Receive*>(found);
    return {header.size, placing_->iov.data(), placing_->count, placing_->capacity};
}

void Peer::placed(std::uint64_t length) {
    Receive& receive = *std::exchange(placing_, nullptr);
    const Header& header = placing_head_;
    messages_.report(receive, *this, header.head.tag, header.head.flags, header.data,
                     receive.count > 0 ? receive.iov[0].base : nullptr, length,
                     std::min(length, receive.capacity));
    took(cost_of(length));
    if ((header.head.flags & kWantsDone) != 0) {
        owe_done(header.id);
    }
}

// The rest of the message will not come.
void Peer::lose_placed() {
    if (placing_) {
        messages_.report(*std::exchange(placing_, nullptr), *this, placing_head_.head.tag, 0, 0,
                         nullptr, 0, 0, DtoStatus::flushed);
    }
}

// Bytes between the head of a message and its payload.
static std::size_t beside_head(std::uint8_t flags) {
    return ((flags & kHasData) != 0 ? sizeof(std::uint64_t) : 0) +
           ((flags & kWantsDone) != 0 ? sizeof(std::uint64_t) : 0);
}

[[gnu::always_inline]] inline Receive* Peer::arrive(bool tagged, std::uint64_t tag) {
    return static_cast<Receive*>(messages_.matching(tagged).arrive(tag, number_));
}

// A message that says nothing else, into a receive of one segment that takes one message, and has
// room for it. False: there is more to it, and nothing has happened but that `found` is posted no
// more.
[[gnu::always_inline]] inline bool Peer::take_plain(Receive& receive, std::uint64_t tag,
                                                    const std::byte* at, std::size_t size) {
    if (receive.count != 1 || size > receive.capacity || receive.stays()) [[unlikely]] {
        return false;
    }
    messages_.into_plain(receive, *this, tag, at, size);
    took(cost_of(size));
    return true;
}

[[gnu::always_inline]] inline bool Peer::take_message(const Head& head, bool tagged,
                                                      const std::byte* at, std::size_t size) {
    const std::uint64_t tag = tagged ? head.tag : 0;
    if (!head.is_plain()) [[unlikely]] {
        return take_freed(head) && size >= beside_head(head.flags) &&
               take_otherwise(head, tag, arrive(tagged, tag), at, size);
    }
    Receive* const found = arrive(tagged, tag);
    return (found && take_plain(*found, tag, at, size)) ||
           take_otherwise(head, tag, found, at, size);
}

bool Peer::arrived(const std::byte* message, std::size_t size) {
    Head head;
    if (size < sizeof head || !endpoint_ || !take_head(message, head)) [[unlikely]] {
        return false;
    }
    const std::byte* const at = message + sizeof head;
    size -= sizeof head;
    switch (head.kind) {
    case Kind::message:
        return take_message(head, false, at, size);
    case Kind::tagged:
        return take_message(head, true, at, size);
    default:
        return take_freed(head) && take_other(head, at, size);
    }
}

// What brings no payload that is there, or a piece of it.
bool Peer::take_other(const Head& head, const std::byte* at, std::size_t size) {
    switch (head.kind) {
    case Kind::announced:
    case Kind::announced_tagged:
        return take_announced(head, at, size);
    case Kind::done:
        return take_done(head.tag);
    case Kind::taken:
        return true;
    case Kind::goodbye:
        said_goodbye_ = true;
        return true;
    case Kind::ask:
        owner_.asked(*this);
        return true;
    case Kind::agree:
        owner_.agreed(*this);
        return true;
    case Kind::decline:
        owner_.declined(*this);
        return true;
    case Kind::push:
        return take_push(head.tag);
    case Kind::piece:
        return take_piece(head.tag, at, size);
    default:
        return false;
    }
}

// `receive`: that which it goes into; nullptr: it is to be held.
bool Peer::take_otherwise(const Head& head, std::uint64_t tag, Receive* receive,
                          const std::byte* at, std::size_t size) {
    const std::size_t before = beside_head(head.flags);
    const std::size_t length = size - before;
    const std::uint32_t cost = cost_of(length);
    if (receive) {
        std::uint64_t data = 0;
        std::uint64_t id = 0;
        if ((head.flags & kHasData) != 0) {
            at = get(at, data);
        }
        if ((head.flags & kWantsDone) != 0) [[unlikely]] {
            at = get(at, id);
        }
        const engine::Iov payload{const_cast<std::byte*>(at), length};
        messages_.into(*receive, *this, tag, head.flags, data, {&payload, 1}, length);
        took(cost);
        if (id != 0) [[unlikely]] {
            owe_done(id);
        }
        return true;
    }
    if (taken_ + held_ + cost - said_taken_ > messages_.window()) {
        return false; // more than it may
    }
    Unexpected* const held = messages_.new_unexpected(*this, tag, size);
    if (!held) {
        return false;
    }
    held->kind = head.kind;
    held->flags = head.flags;
    std::byte* to = held->behind();
    for (std::size_t i = 0; i < before; i += sizeof(std::uint64_t)) {
        std::uint64_t number = 0;
        at = get(at, number);
        std::memcpy(to, &number, sizeof number);
        to += sizeof number;
    }
    if (length > 0) {
        base::copy(to, at, length);
    }
    held_ += cost;
    messages_.matching(head.kind == Kind::tagged).keep(*held);
    return true;
}

bool Peer::take_announced(const Head& head, const std::byte* at, std::size_t size) {
    const bool has_data = (head.flags & kHasData) != 0;
    const std::size_t segments = head.segments;
    if (segments > kMaxPlaces || (head.flags & ~kHasData) != 0 ||
        size != (has_data ? 16 : 8) + segments * sizeof(Place)) {
        return false;
    }
    const bool tagged = head.kind == Kind::announced_tagged;
    const std::uint64_t tag = tagged ? head.tag : 0;
    std::uint64_t data = 0;
    std::uint64_t id = 0;
    std::array<Place, kMaxPlaces> places;
    if (has_data) {
        at = get(at, data);
    }
    at = get(at, id);
    for (std::size_t i = 0; i < segments; ++i) {
        at = get(at, places[i]);
        if (places[i].length == 0) {
            return false;
        }
    }
    core::Matching& matching = messages_.matching(tagged);
    if (core::PostedReceive* const found = matching.arrive(tag, number_)) {
        messages_.fetch_into(static_cast<Receive&>(*found), *this, tag, head.flags, data, id,
                             {places.data(), segments});
        return true;
    }
    Unexpected* const held = may_announce() ? messages_.new_unexpected(*this, tag, size) : nullptr;
    if (!held) {
        return false;
    }
    one_more_announced();
    held->kind = head.kind;
    held->flags = head.flags;
    std::byte* to = held->behind();
    if (has_data) {
        std::memcpy(to, &data, sizeof data);
        to += sizeof data;
    }
    std::memcpy(to, &id, sizeof id);
    if (segments > 0) {
        std::memcpy(to + sizeof id, places.data(), segments * sizeof(Place));
    }
    matching.keep(*held);
    return true;
}

bool Peer::take_done(std::uint64_t id) {
    Send* const send = messages_.send_of(id);
    if (!send || send->peer != this || !send->waits) {
        return false;
    }
    if (send->goes) { // until that is over its memory is not the program's
        send->arrived = true;
    } else {
        messages_.finish(*send, DtoStatus::success);
    }
    return true;
}

// --- to itself ---

PostVerdict Peer::send_to_self(const Outgoing& out) {
    core::Matching& matching = messages_.matching(out.tagged);
    const std::uint64_t tag = out.tagged ? out.tag : 0;
    const auto flags = static_cast<std::uint8_t>(out.has_data ? kHasData : 0);
    if (core::PostedReceive* const found = matching.arrive(tag, number_)) {
        messages_.into(static_cast<Receive&>(*found), *this, tag, flags, out.data,
                       {out.iov, out.count}, out.length);
        messages_.report_send(out, DtoStatus::success);
        return PostVerdict::posted;
    }
    const std::size_t before = out.has_data ? sizeof out.data : 0;
    const bool here = !out.delivered && out.length <= kEagerShm &&
                      held_ + cost_of(out.length) <= messages_.window();
    Unexpected* const held = messages_.new_unexpected(
        *this, tag,
        here ? before + out.length
             : before + sizeof(std::uint64_t) + (out.length > 0 ? sizeof(Place) : 0));
    Send* const send = here || !held ? nullptr : messages_.new_send(*this, out);
    if (!held || (!here && !send)) {
        if (held) {
            messages_.free(*held);
        }
        return PostVerdict::full;
    }
    held->flags = flags;
    std::byte* at = held->behind();
    if (out.has_data) {
        std::memcpy(at, &out.data, sizeof out.data);
        at += sizeof out.data;
    }
    if (here) {
        held->kind = out.tagged ? Kind::tagged : Kind::message;
        for (std::size_t i = 0; i < out.count; ++i) {
            if (out.iov[i].length > 0) {
                base::copy(at, out.iov[i].base, out.iov[i].length);
                at += out.iov[i].length;
            }
        }
        held_ += cost_of(out.length);
        messages_.report_send(out, DtoStatus::success);
    } else {
        held->kind = out.tagged ? Kind::announced_tagged : Kind::announced;
        std::memcpy(at, &send->id, sizeof send->id);
        if (out.length > 0) {
            const Place place{0, static_cast<std::uint32_t>(out.length), 0};
            std::memcpy(at + sizeof send->id, &place, sizeof place);
        }
        send->waits = true;
        waiting_.push(*send);
        one_more_announced();
    }
    matching.keep(*held);
    return PostVerdict::posted;
}

} // namespace dat::rdm
