// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See messages.h: what is announced by a process of this host, and lies in its memory. Up to
// kCopiedAtOnce it is copied from there (process_vm_readv(2)) as soon as its receive is there. What
// is longer both sides copy, if its sender polls: it pushes pieces, from the beginning on, through
// memory that stays in the caches, which is nearly three times as fast. Where no piece has come for
// kPatience rounds, or the sender sleeps, the receiver copies by itself, from the end on. It is
// whole where the two meet. Over a device a small message that is announced comes as a piece too,
// and no other way.
#include "engine/post.h"
#include "links/shm/segment.h"
#include "rdm/limits.h"
#include "rdm/messages.h"
#include "rdm/post.h"

#include <algorithm>
#include <array>

namespace dat::rdm {

using core::DtoStatus;
using core::PostVerdict;

namespace {

// Of a piece: with what stands before it no longer than the link carries at once.
constexpr std::size_t kPieceHead = sizeof(Head) + sizeof(std::uint64_t);
constexpr std::uint64_t kPiece = shm::kPiece - 64;
constexpr std::uint32_t kNotAsked = UINT32_MAX; // in place of rounds
static_assert(kPieceHead <= 64);
static_assert(kPieceHead + kEagerVerbs <= verbs::kMessageSize && kEagerVerbs <= kPiece);

} // namespace

// Those bytes of it, from the peer's memory. False: it cannot be had so.
bool Peer::copy_here(const Fetch& fetch, std::uint64_t first, std::uint64_t end) {
    std::array<iovec, kMaxPlaces> from;
    std::size_t pieces = 0;
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < fetch.segments && begin < end; ++i) {
        const Place& place = fetch.places[i];
        const std::uint64_t skip =
            first > begin ? std::min<std::uint64_t>(first - begin, place.length) : 0;
        const std::uint64_t until = std::min<std::uint64_t>(end - begin, place.length);
        if (skip < until) {
            if (place.at == 0) {
                return false;
            }
            from[pieces++] = {reinterpret_cast<void*>(place.at + skip), until - skip};
        }
        begin += place.length;
    }
    std::array<iovec, engine::kMaxIov> to;
    const std::size_t count =
        engine::gather({fetch.to.data(), fetch.count}, first, end - first, to);
    return endpoint_->link()->copy_from_peer({from.data(), pieces}, {to.data(), count});
}

// True: it is there.
bool Peer::copy_at_once(Fetch& fetch) {
    return endpoint_ && fetch.wanted <= kCopiedAtOnce && copy_here(fetch, 0, fetch.wanted);
}

// Begins. False: it cannot be had so.
bool Peer::copy_with_peer(Fetch& fetch) {
    if (!endpoint_) {
        return false;
    }
    const bool asked_for = kind_ == engine::LinkKind::verbs && fetch.places[0].at == 0;
    const auto is_shared = [&] {
        return fetch.wanted > kCopiedAtOnce && endpoint_->link()->copies_from_peer() &&
               std::all_of(fetch.places.begin(), fetch.places.begin() + fetch.segments,
                           [](const Place& place) { return place.at != 0; });
    };
    if (!asked_for && !is_shared()) {
        return false;
    }
    fetch.left = fetch.wanted;
    fetch.rounds = asked_for || endpoint_->link()->peer_may_push() ? kNotAsked : kPatience;
    shared_.push(fetch);
    run_soon();
    return true;
}

// Asks for pieces of the oldest. False: for some there is no room now.
bool Peer::ask_to_push() {
    const auto next = [this] {
        std::uint32_t seen = 0;
        Fetch* const fetch = shared_.find(
            [&](const Fetch& each) { return each.rounds == kNotAsked || ++seen == kReads; });
        return fetch && fetch->rounds == kNotAsked ? fetch : nullptr;
    };
    while (Fetch* const fetch = next()) {
        if (!endpoint_ || !say(Kind::push, fetch->id)) {
            return false;
        }
        fetch->rounds = 0;
    }
    return true;
}

// Some of what both copy, where the peer does not go on.
void Peer::copy_some() {
    if (shared_.empty() || !endpoint_ || kind_ == engine::LinkKind::verbs) {
        return;
    }
    Fetch& fetch = shared_.front();
    run_soon();
    if (fetch.rounds < kPatience) {
        ++fetch.rounds;
        return;
    }
    const std::uint64_t first =
        fetch.left - std::min<std::uint64_t>(kCopiedAtOnce, fetch.left - fetch.asked);
    if (!copy_here(fetch, first, fetch.left)) {
        shared_.remove(fetch);
        fetch.asked = 0;
        to_read_.push(fetch);
        return;
    }
    fetch.left = first;
    if (fetch.asked == fetch.left) {
        messages_.fetched(fetch);
    }
}

// One that comes late, of what is whole by now or comes otherwise, is thrown away.
bool Peer::take_piece(std::uint64_t id, const std::byte* at, std::size_t size) {
    if (size < sizeof(std::uint64_t)) {
        return false;
    }
    std::uint64_t offset = 0;
    at = get(at, offset);
    Fetch* const fetch = shared_.find([=](const Fetch& each) { return each.id == id; });
    if (!fetch || offset != fetch->asked) {
        return true;
    }
    const std::uint64_t length =
        std::min<std::uint64_t>(size - sizeof offset, fetch->left - fetch->asked);
    const engine::Iov payload{const_cast<std::byte*>(at), length};
    Messages::copy({fetch->to.data(), fetch->count}, fetch->asked, {&payload, 1}, length);
    fetch->asked += length;
    fetch->rounds = 0;
    if (fetch->asked == fetch->left) {
        messages_.fetched(*fetch);
    }
    return true;
}

bool Peer::take_push(std::uint64_t id) {
    Send* const send = messages_.send_of(id);
    if (!send || send->peer != this || !send->waits ||
        (kind_ == engine::LinkKind::verbs && !is_asked_for(send->what))) {
        return false;
    }
    if (send->what.count < kMaxIov && !base::List<Send, Pushed>::holds(*send)) {
        send->pushed = 0;
        pushing_.push(*send);
        run_soon();
    }
    return true;
}

// As many as there is room for.
void Peer::push_pieces() {
    while (!pushing_.empty() && endpoint_ && room(kReserve) && has_buffer()) {
        Send& send = pushing_.front();
        if (send.pushed == send.what.length) {
            pushing_.remove(send);
        } else if (send.goes || !push_piece(send)) {
            return; // finished() goes on
        }
    }
}

// False: there is no room now.
bool Peer::push_piece(Send& send) {
    const std::uint64_t offset = send.pushed;
    const std::uint64_t length = std::min(kPiece, send.what.length - offset);
    std::array<iovec, engine::kMaxIov> from;
    const std::size_t count =
        engine::gather({send.iov.data(), send.what.count}, offset, length, from);
    send.goes = true;
    send.pushed += length;
    engine::Endpoint& endpoint = *endpoint_;
    const auto fill = [&](engine::Request& request, std::uint64_t seq) {
        std::byte* const area = endpoint.inline_area(seq);
        put(put(area, head_of<engine::Link>(Kind::piece, 0, send.id)), offset);
        request = {};
        request.context = static_cast<Posted*>(&send);
        request.length = kPieceHead + length;
        request.op = engine::OpCode::send;
        request.role = engine::Role::own;
        engine::Iov* const to =
            engine::set_segments(request, count + 1, endpoint.request_extra_segments(seq));
        to[0] = {area, kPieceHead};
        for (std::size_t i = 0; i < count; ++i) {
            to[i + 1] = {static_cast<std::byte*>(from[i].iov_base), from[i].iov_len};
        }
    };
    if (!went(with_buffer(
            [&] { return engine::post_request<engine::Link>(endpoint, false, fill); }))) {
        send.goes = false;
        send.pushed -= length;
        return false;
    }
    return true;
}

} // namespace dat::rdm
