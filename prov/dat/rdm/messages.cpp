// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See messages.h: the receives of an endpoint, and what is held.
#include "rdm/messages.h"

#include "base/assert.h"
#include "base/attempt.h"
#include "base/copy.h"
#include "base/log.h"
#include "engine/random.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace dat::rdm {

using core::DtoStatus;
using core::PostVerdict;

Messages::Messages(engine::Domain& domain, const void* zone, const Flags& flags,
                   std::uint32_t max_receives, std::uint32_t max_sends, ReadRegistrar* registrar,
                   std::uint64_t many)
    : domain_(domain), zone_(zone), registrar_(registrar), flags_(flags),
      window_(static_cast<std::uint32_t>(
          std::clamp<std::size_t>(4 * domain.settings().unexpected_bytes, 4096, 1U << 30))),
      many_announced_(many), tagged_(engine::random_bits()), untagged_(engine::random_bits()),
      receives_(max_receives), sends_(max_sends) {}

Messages::~Messages() { DAT_ASSERT(receives_.used() == 0 && sends_.used() == 0); }

// --- memory ---

void Messages::copy(std::span<const engine::Iov> to, std::uint64_t offset,
                    std::span<const engine::Iov> from, std::uint64_t size) {
    std::size_t source = 0;
    std::uint64_t read = 0;
    for (const engine::Iov& piece : to) {
        if (offset >= piece.length) {
            offset -= piece.length;
            continue;
        }
        std::byte* at = piece.base + std::exchange(offset, 0);
        std::uint64_t left = piece.length - static_cast<std::uint64_t>(at - piece.base);
        while (left > 0 && size > 0) {
            const std::uint64_t some = std::min({left, size, from[source].length - read});
            base::copy(at, from[source].base + read, some);
            at += some;
            left -= some;
            size -= some;
            read += some;
            if (read == from[source].length) {
                ++source;
                read = 0;
            }
        }
        if (size == 0) {
            return;
        }
    }
}

Unexpected* Messages::new_unexpected(Peer& peer, std::uint64_t tag, std::size_t behind) {
    const std::size_t size = sizeof(Unexpected) + behind;
    void* memory = nullptr;
    if (size > kSmall) {
        memory = ::operator new(size, std::nothrow);
    } else {
        (void)base::attempt([&] { memory = small_.take(); });
    }
    Unexpected* const made = memory ? new (memory) Unexpected : nullptr;
    if (made) {
        made->from(tag, peer.number_);
        made->turn = peer.turn_;
        made->size = static_cast<std::uint32_t>(behind);
        ++peer.unexpected_;
    }
    return made;
}

void Messages::free(Unexpected& message) {
    const bool is_small = sizeof(Unexpected) + message.size <= kSmall;
    Peer& peer = *peers_[message.source()];
    --peer.unexpected_;
    if (message.turn != peer.turn_ &&
        (message.kind == Kind::message || message.kind == Kind::tagged)) {
        left_ -= message.cost();
    }
    message.~Unexpected();
    if (is_small) {
        small_.give_back(&message);
    } else {
        ::operator delete(&message);
    }
}

// With room for the completions of them all. False: there is no memory, or there are as many as may
// be, and nothing has changed.
template <class T> bool Messages::more(Pool<T>& pool, core::CompletionQueue* cq) {
    const std::size_t added = pool.next_batch();
    if (cq && !cq->expect(added)) {
        return false;
    }
    const bool made = pool.grow();
    if (!made && cq) {
        cq->expect_less(added);
    }
    return made;
}

// The low half of an id is the place in the pool, the high one counts its uses.
Send* Messages::new_send(Peer& peer, const Outgoing& out) {
    if (sends_.empty()) {
        std::size_t made = sends_.size();
        if (!more(sends_, send_cq_)) {
            return nullptr;
        }
        for (; made < sends_.size(); ++made) {
            sends_.at(made).id = made;
        }
    }
    Send* const send = sends_.take();
    send->id += std::uint64_t{1} << 32;
    send->peer = &peer;
    send->waits = send->goes = send->arrived = false;
    send->key_count = 0;
    send->what = out;
    send->what.iov = send->iov.data();
    if (out.injected) {
        std::byte* at = send->copy.data();
        for (std::size_t i = 0; i < out.count; ++i) {
            at = std::copy_n(out.iov[i].base, out.iov[i].length, at);
        }
        send->iov[0] = {send->copy.data(), out.length};
        send->what.count = 1;
    } else {
        std::copy_n(out.iov, out.count, send->iov.begin());
    }
    return send;
}

void Messages::free(Send& send) {
    base::List<Send, Pushed>::remove(send);
    remove_readable(send);
    send.peer = nullptr;
    base::List<Send, OfPeer>::remove(send);
    sends_.give_back(send);
}

// One key for each segment that has any bytes.
bool Messages::add_readable(Send& send) {
    for (std::size_t i = 0; i < send.what.count; ++i) {
        const engine::Iov& memory = send.iov[i];
        if (memory.length == 0) {
            continue;
        }
        std::uint32_t key = 0;
        engine::Region region;
        region.base = memory.base;
        region.length = memory.length;
        region.zone = zone_;
        region.access = engine::kRemoteRead;
        region.announced = true;
        if (registrar_ ? !registrar_->add(memory, key)
                       : !base::attempt([&] { key = domain_.regions().add(region); })) {
            remove_readable(send);
            return false;
        }
        send.keys[send.key_count++] = key;
    }
    return true;
}

void Messages::remove_readable(Send& send) {
    std::size_t removed = 0;
    for (std::size_t i = 0; removed < send.key_count; ++i) {
        if (send.iov[i].length == 0) {
            continue;
        }
        const std::uint32_t key = send.keys[removed++];
        if (registrar_) {
            registrar_->remove(send.iov[i], key);
        } else {
            domain_.regions().remove(key);
        }
    }
    send.key_count = 0;
}

Send* Messages::send_of(std::uint64_t id) {
    const std::size_t index = id & UINT32_MAX;
    if (index >= sends_.size()) {
        return nullptr;
    }
    Send& send = sends_.at(index);
    return send.peer && send.id == id ? &send : nullptr;
}

// --- what the program is told ---

void Messages::report_send(const Outgoing& out, DtoStatus status) {
    if (counters_.send) {
        counters_.send->add(status);
    }
    const bool wanted = status == DtoStatus::success ? out.reported && !out.silent : !out.silent;
    if (wanted && send_cq_) {
        send_cq_->push({out.context, out.completion_flags, out.length, nullptr, 0, 0, status});
    }
}

void Messages::finish(Send& send, DtoStatus status) {
    const Outgoing what = send.what;
    free(send);
    report_send(what, status);
}

// A message of `length` bytes is over, of which `placed` are at `at`. The receive is the pool's
// again where it takes no more. An unsuccessful completion has its tag as data.
void Messages::report(Receive& receive, const Peer& peer, std::uint64_t tag, std::uint8_t flags,
                      std::uint64_t data, std::byte* at, std::uint64_t length, std::uint64_t placed,
                      DtoStatus status) {
    std::uint64_t completion = receive.completion_flags;
    bool last = true;
    if (receive.stays()) [[unlikely]] {
        if (!receive.over &&
            receive.capacity - receive.used < std::max<std::uint64_t>(min_multi_, 1)) {
            receive.over = true;
            matching(receive.tagged).cancel(receive);
        }
        last = receive.over && receive.fetching == 0;
        completion |= last ? flags_.released : 0;
    }
    if (status == DtoStatus::success && placed < length) {
        status = DtoStatus::local_length;
    }
    if (counters_.receive) {
        counters_.receive->add(status);
    }
    void* const context = receive.context;
    const bool wanted = receive.reported || status != DtoStatus::success;
    if (last) {
        receives_.give_back(receive);
    }
    if (!wanted || !receive_cq_) {
        return;
    }
    if (status == DtoStatus::success) [[likely]] {
        const bool has_data = (flags & kHasData) != 0;
        receive_cq_->push({context, completion | (has_data ? flags_.with_data : 0), length, at,
                           has_data ? data : 0, tag, peer.arrival(), peer.source()});
    } else {
        receive_cq_->push(
            {context, completion, placed, at, tag, length - placed, status, peer.source()});
    }
}

// A receive is over without a message.
void Messages::fail(Receive& receive, DtoStatus status) {
    if (receive.fetching > 0) {
        receive.over = true; // the last message in it says so
        return;
    }
    if (counters_.receive) {
        counters_.receive->add(status);
    }
    const std::uint64_t released = receive.stays() ? flags_.released : 0;
    const core::Completion done{receive.context,
                                receive.completion_flags | released,
                                0,
                                receive.count > 0 ? receive.iov[0].base : nullptr,
                                receive.tag(),
                                0,
                                status};
    receives_.give_back(receive);
    if (receive_cq_) {
        receive_cq_->push(done);
    }
}

// --- receives ---

bool Messages::more_receives() { return more(receives_, receive_cq_); }

// A held message was found for the receive, and others may be for one that stays.
void Messages::take_held(core::UnexpectedMessage* found, Receive& receive) {
    core::Matching& matching = this->matching(receive.tagged);
    const bool stays = receive.stays();
    do {
        give(static_cast<Unexpected&>(*found), receive);
        // One that takes no more is the pool's afterwards.
        found = stays && !receive.over ? matching.post(receive) : nullptr;
    } while (found);
    domain_.run_deferred();
}

// A held message, which is held no longer, goes into the receive.
void Messages::give(Unexpected& message, Receive& receive) {
    Peer& peer = *peers_[message.source()];
    const std::uint64_t tag = message.tag();
    const std::uint8_t flags = message.flags;
    std::byte* at = message.behind();
    std::uint64_t data = 0;
    std::uint64_t id = 0;
    if ((flags & kHasData) != 0) {
        std::memcpy(&data, at, sizeof data);
        at += sizeof data;
    }
    const bool announced = message.is_announced();
    if ((flags & kWantsDone) != 0 || announced) {
        std::memcpy(&id, at, sizeof id);
        at += sizeof id;
    }
    const std::size_t size = message.size - static_cast<std::size_t>(at - message.behind());
    if (announced) {
        peer.no_longer_announced();
        std::array<Place, kMaxPlaces> places;
        std::memcpy(places.data(), at, size);
        fetch_into(receive, peer, tag, flags, data, id, {places.data(), size / sizeof(Place)});
    } else {
        const engine::Iov payload{at, size};
        into(receive, peer, tag, flags, data, {&payload, 1}, size);
        if (message.turn == peer.turn_) {
            peer.let_go(message);
            if ((flags & kWantsDone) != 0) {
                peer.owe_done(id);
            }
        }
    }
    free(message);
}

// Where a message of `length` bytes begins in the receive, and how many of them fit there.
std::byte* Messages::take_room(Receive& receive, std::uint64_t length, std::uint64_t& fits) {
    fits = std::min(length, receive.capacity - receive.used);
    std::byte* const at = receive.count > 0 ? receive.iov[0].base + receive.used : nullptr;
    if (receive.stays()) [[unlikely]] {
        receive.used += fits;
    }
    return at;
}

void Messages::into(Receive& receive, const Peer& peer, std::uint64_t tag, std::uint8_t flags,
                    std::uint64_t data, std::span<const engine::Iov> payload,
                    std::uint64_t length) {
    std::uint64_t fits = 0;
    std::byte* const at = take_room(receive, length, fits);
    if (receive.count == 1 && payload.size() == 1) [[likely]] {
        if (fits > 0) {
            base::copy(at, payload[0].base, fits);
        }
    } else {
        copy({receive.iov.data(), receive.count}, receive.stays() ? receive.used - fits : 0,
             payload, fits);
    }
    report(receive, peer, tag, flags, data, at, length, fits);
}

// One whose payload waits at its sender.
void Messages::fetch_into(Receive& receive, Peer& peer, std::uint64_t tag, std::uint8_t flags,
                          std::uint64_t data, std::uint64_t id, std::span<const Place> places) {
    std::uint64_t length = 0;
    for (const Place& place : places) {
        length += place.length;
    }
    if (peer.is_self()) {
        Send* const send = send_of(id);
        into(receive, peer, tag, flags, data, {send->iov.data(), send->what.count}, length);
        return finish(*send, DtoStatus::success);
    }
    Fetch* const fetch = fetches_.take();
    if (!fetch) {
        peer.owner_.give_up(peer);
        return report(receive, peer, tag, flags, data, nullptr, length, 0, DtoStatus::local_ep);
    }
    fetch->peer = &peer;
    fetch->receive = &receive;
    fetch->id = id;
    fetch->tag = tag;
    fetch->data = data;
    fetch->length = length;
    fetch->asked = fetch->offset = 0;
    fetch->reading = 0;
    fetch->flags = flags;
    fetch->segments = static_cast<std::uint8_t>(places.size());
    fetch->segment = 0;
    fetch->status = DtoStatus::success;
    std::copy(places.begin(), places.end(), fetch->places.begin());
    std::byte* const at = take_room(receive, length, fetch->wanted);
    fetch->to = receive.iov;
    fetch->count = receive.count;
    if (receive.stays()) {
        fetch->to[0] = {at, fetch->wanted};
    }
    ++receive.fetching;
    if (receive.stays() &&
        receive.capacity - receive.used < std::max<std::uint64_t>(min_multi_, 1)) {
        receive.over = true;
        matching(receive.tagged).cancel(receive);
    }
    if (fetch->wanted == 0 || peer.copy_at_once(*fetch)) {
        return fetched(*fetch);
    }
    if (peer.copy_with_peer(*fetch)) {
        return;
    }
    peer.to_read_.push(*fetch);
    peer.run_soon();
}

// It is there, or never will be.
void Messages::fetched(Fetch& fetch) {
    base::List<Fetch, OfPeer>::remove(fetch);
    Peer& peer = *fetch.peer;
    Receive& receive = *fetch.receive;
    --receive.fetching;
    const bool good = fetch.status == DtoStatus::success;
    report(receive, peer, fetch.tag, fetch.flags, fetch.data,
           fetch.count > 0 ? fetch.to[0].base : nullptr, fetch.length, good ? fetch.wanted : 0,
           fetch.status);
    if (good && peer.endpoint_) {
        peer.to_say_.push(fetch);
        peer.run_soon();
    } else {
        fetches_.give_back(fetch);
    }
}

// A message that is held no longer, and that nobody wants.
void Messages::drop(Unexpected& message) {
    Peer& peer = *peers_[message.source()];
    const bool announced = message.is_announced();
    if (announced || (message.flags & kWantsDone) != 0) {
        std::uint64_t id = 0;
        const std::size_t at = (message.flags & kHasData) != 0 ? sizeof(std::uint64_t) : 0;
        std::memcpy(&id, message.behind() + at, sizeof id);
        if (peer.is_self()) {
            finish(*send_of(id), DtoStatus::success);
        } else if (message.turn == peer.turn_) {
            peer.owe_done(id);
        }
    }
    if (announced) {
        peer.no_longer_announced();
    } else if (message.turn == peer.turn_) {
        peer.let_go(message);
    }
    free(message);
}

void Messages::peek(const Incoming& in, bool discards, Unexpected** claimed) {
    core::Matching& matching = this->matching(in.tagged);
    auto* const found = static_cast<Unexpected*>(matching.peek(in.tag, in.ignore, in.source));
    const std::uint64_t flags = in.tagged ? flags_.tagged : flags_.message;
    if (claimed) {
        *claimed = found;
    }
    if (!found) {
        if (receive_cq_) {
            receive_cq_->push({in.context, flags, 0, nullptr, in.tag, 0, DtoStatus::no_message});
        }
        return;
    }
    const Peer& peer = *peers_[found->source()];
    std::uint64_t data = 0;
    std::size_t before = 0;
    if ((found->flags & kHasData) != 0) {
        std::memcpy(&data, found->behind(), sizeof data);
        before += sizeof data;
    }
    std::uint64_t length = 0;
    if (found->is_announced()) {
        before += sizeof(std::uint64_t);
        std::array<Place, kMaxPlaces> places;
        std::memcpy(places.data(), found->behind() + before, found->size - before);
        for (std::size_t i = 0; i < (found->size - before) / sizeof(Place); ++i) {
            length += places[i].length;
        }
    } else {
        length = found->size - before - ((found->flags & kWantsDone) != 0 ? sizeof data : 0);
    }
    const core::Completion done{
        in.context,     flags | ((found->flags & kHasData) != 0 ? flags_.with_data : 0),
        length,         nullptr,
        data,           found->tag(),
        peer.arrival(), peer.source()};
    if (claimed) {
        matching.take(*found);
        claimed_.push(*found);
    } else if (discards) {
        matching.take(*found);
        drop(*found);
        domain_.run_deferred();
    }
    if (receive_cq_) {
        receive_cq_->push(done);
    }
}

bool Messages::is_claimed(const Unexpected* message) {
    bool found = false;
    claimed_.each([&](core::UnexpectedMessage& each) { found |= &each == message; });
    return found;
}

// Its sender may have died meanwhile.
PostVerdict Messages::receive_claimed(Unexpected& message, const Incoming& in) {
    if (receives_.empty() && !more_receives()) {
        return PostVerdict::full;
    }
    Receive* const receive = receives_.take();
    fill(*receive, in);
    base::List<core::UnexpectedMessage, core::InOrder>::remove(message);
    if (message.kind == Kind::goodbye) {
        free(message);
        fail(*receive, DtoStatus::flushed);
    } else {
        give(message, *receive);
        domain_.run_deferred();
    }
    return PostVerdict::posted;
}

void Messages::discard_claimed(Unexpected& message, const Incoming& in) {
    base::List<core::UnexpectedMessage, core::InOrder>::remove(message);
    const Peer& peer = *peers_[message.source()];
    const core::Completion done{in.context,
                                in.tagged ? flags_.tagged : flags_.message,
                                0,
                                nullptr,
                                0,
                                message.tag(),
                                peer.arrival(),
                                peer.source()};
    if (message.kind == Kind::goodbye) {
        free(message);
    } else {
        drop(message);
        domain_.run_deferred();
    }
    if (receive_cq_) {
        receive_cq_->push(done);
    }
}

bool Messages::cancel(const void* context) {
    for (core::Matching* matching : {&tagged_, &untagged_}) {
        core::PostedReceive* const found = matching->find_posted(
            [&](const auto& each) { return static_cast<const Receive&>(each).context == context; });
        if (found) {
            matching->cancel(*found);
            fail(static_cast<Receive&>(*found), DtoStatus::flushed);
            return true;
        }
    }
    return false;
}

void Messages::flush() {
    const auto all = [](const auto&) { return true; };
    for (core::Matching* matching : {&tagged_, &untagged_}) {
        matching->cancel_each(all, [&](core::PostedReceive& each) {
            fail(static_cast<Receive&>(each), DtoStatus::flushed);
        });
        matching->take_each(
            all, [&](core::UnexpectedMessage& each) { free(static_cast<Unexpected&>(each)); });
    }
    while (!claimed_.empty()) {
        auto& each = static_cast<Unexpected&>(claimed_.front());
        claimed_.remove(each);
        free(each);
    }
}

} // namespace dat::rdm
