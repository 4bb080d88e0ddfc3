// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See inbox.h.
#include "engine/inbox.h"

#include "base/assert.h"
#include "base/attempt.h"
#include "base/copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dat::engine {

using core::DtoStatus;

std::size_t gather(std::span<const Iov> iov, std::uint64_t offset, std::uint64_t size,
                   std::span<iovec, kMaxIov> out) {
    std::size_t count = 0;
    for (const Iov& piece : iov) {
        if (size == 0) {
            break;
        }
        if (offset >= piece.length) {
            offset -= piece.length;
            continue;
        }
        const auto length = std::min<std::uint64_t>(piece.length - offset, size);
        out[count++] = {piece.base + offset, length};
        offset = 0;
        size -= length;
    }
    DAT_ASSERT(size == 0);
    return count;
}

bool Inbox::too_much(std::size_t more) const {
    const std::size_t bytes = more + (waiting_ ? waiting_->bytes : 0);
    return bytes > endpoint_.domain().settings().unexpected_bytes ||
           (waiting_ && waiting_->unannounced.size() > kUnannounced);
}

Inbox::Waiting& Inbox::waiting() {
    if (!waiting_) {
        waiting_ = std::make_unique<Waiting>();
    }
    return *waiting_;
}

void Inbox::forget_waiting() {
    if (waiting_ && waiting_->staged.empty() && waiting_->unannounced.empty()) {
        waiting_.reset();
    }
}

bool Inbox::begin(std::span<const std::byte> start) {
    DAT_ASSERT(!open());
    if (endpoint_.sink()) {
        return collect(start);
    }
    if (!has_staged() && endpoint_.has_receive()) {
        return match();
    }
    return stage();
}

bool Inbox::match() {
    receive_ = endpoint_.match_receive();
    if (endpoint_.of_old_zone(receive_)) [[unlikely]] {
        endpoint_.complete_receive(receive_, DtoStatus::local_protection, 0);
        return fail(Wrong::old_zone);
    }
    assembling_ = true;
    return true;
}

// One for the MessageSink, which comes in pieces. It does not count as one that waits for a
// receive: the sink bounds it.
bool Inbox::collect(std::span<const std::byte> start) {
    if (!base::attempt([&] { waiting().staged.emplace_back(); })) {
        return fail(Wrong::no_memory);
    }
    waiting_->staged.back().ordinal = taken_ + 1; // so far is placed what came before it
    MessageSink& sink = *endpoint_.sink();
    waiting_->placement = start.size() >= sink.longest_head()
                              ? sink.begins(start.data(), start.size())
                              : MessageSink::Placement{};
    return true;
}

// Head, payload that there is room for, and the rest of it; head and rest are kept here.
bool Inbox::collect_room(std::uint64_t begin, std::uint64_t end, Room& out) {
    const MessageSink::Placement& to = waiting_->placement;
    std::vector<std::byte>& kept = waiting_->staged.back().data;
    const std::uint64_t head = to.head == 0 ? end : std::clamp<std::uint64_t>(to.head, begin, end);
    const std::uint64_t placed =
        to.head == 0 ? end : std::clamp<std::uint64_t>(to.head + to.capacity, begin, end);
    const std::uint64_t size = end - (to.head == 0 ? 0 : std::min(end - to.head, to.capacity));
    if (kept.size() < size && !base::attempt([&] { kept.resize(size); })) {
        return fail(Wrong::no_memory);
    }
    const Iov all{kept.data(), kept.size()};
    out.count = 0;
    out.add({&all, 1}, begin, head - begin);
    out.add({to.segments, to.count}, head - to.head, placed - head);
    out.add({&all, 1}, placed - to.capacity, end - placed);
    return true;
}

bool Inbox::finish_collected() {
    ++taken_;
    const MessageSink::Placement placed_in = std::exchange(waiting_->placement, {});
    const std::vector<std::byte> message = std::move(waiting_->staged.back().data);
    waiting_->staged.pop_back();
    const std::uint64_t size = std::exchange(received_, 0);
    forget_waiting();
    if (placed_in.head > 0) {
        endpoint_.sink()->placed(size - placed_in.head);
        return true;
    }
    return endpoint_.sink()->arrived(message.data(), message.size()) || fail(Wrong::not_expected);
}

bool Inbox::stage() { // U-9
    if (!base::attempt([&] { waiting().staged.emplace_back(); })) {
        return fail(Wrong::no_memory);
    }
    waiting_->staged.back().ordinal = taken_ + 1;
    waiting_->bytes += kStagedOverhead;
    endpoint_.set_starved(true);
    return true;
}

bool Inbox::room(std::size_t size, Room& out, std::size_t skip) {
    const std::uint64_t begin = received_ + skip;
    const std::uint64_t end = begin + size;
    if (assembling_) {
        const Receive& receive = endpoint_.receive(receive_);
        if (end > receive.capacity) {
            return overlong(end);
        }
        out.count = 0;
        out.add(receive.segments(), begin, size);
        return true;
    }
    if (endpoint_.sink()) {
        return end <= endpoint_.sink()->longest() ? collect_room(begin, end, out)
                                                  : fail(Wrong::not_expected);
    }
    Staged& message = waiting_->staged.back();
    if (message.data.size() < end) {
        const std::size_t before = message.data.size();
        if (!base::attempt([&] { message.data.resize(end); })) {
            return fail(Wrong::no_memory);
        }
        waiting_->bytes += end - before;
    }
    out.pieces[0] = {message.data.data() + begin, size};
    out.count = size > 0 ? 1 : 0;
    return true;
}

bool Inbox::finish(std::uint8_t how, std::uint64_t value) {
    if ((how & kInvalidated) != 0 && !invalidate(value)) {
        return false;
    }
    if (endpoint_.sink()) [[unlikely]] {
        return finish_collected();
    }
    ++taken_;
    const std::uint64_t size = std::exchange(received_, 0);
    if (std::exchange(assembling_, false)) {
        endpoint_.complete_receive(receive_, DtoStatus::success, size, how, value);
    } else {
        Staged& message = waiting_->staged.back();
        message.whole = true;
        message.how = how;
        message.value = value;
    }
    return true;
}

// The key of a message that invalidates must be one that may be ended so (RFC 5040 5.1).
bool Inbox::invalidate(std::uint64_t value) {
    const auto key = static_cast<std::uint32_t>(value);
    MrTable& regions = endpoint_.domain().regions();
    const Target target = regions.find(key, 0, 0, kRemoteInvalidate, endpoint_.zone());
    if (target.why != Refusal::none && target.why != Refusal::out_of_range) {
        if (std::exchange(assembling_, false)) {
            endpoint_.complete_receive(receive_, DtoStatus::local_protection, 0);
        }
        return fail(Wrong::cannot_invalidate);
    }
    regions.remove(key);
    return true;
}

bool Inbox::overlong(std::uint64_t size) {
    const std::uint64_t capacity = endpoint_.receive(receive_).capacity;
    assembling_ = false;
    endpoint_.complete_receive(receive_, DtoStatus::local_length, 0, kPlain, 0, size - capacity);
    return fail(Wrong::too_long);
}

bool Inbox::written(std::uint64_t length, std::uint8_t how, std::uint64_t value) {
    ++taken_;
    if (!endpoint_.completions().writes_take_receives()) {
        if ((awaits_room() || !endpoint_.completions().announce_write(length, how, value)) &&
            !base::attempt([&] {
                waiting().unannounced.push_back({length, value, how});
            })) {
            return fail(Wrong::no_memory);
        }
        return true;
    }
    if (!has_staged() && endpoint_.has_receive()) {
        endpoint_.complete_receive(endpoint_.match_receive(), DtoStatus::success, length, how,
                                   value);
        return true;
    }
    if (!stage()) {
        return false;
    }
    Staged& staged = waiting_->staged.back();
    staged.ordinal = taken_;
    staged.whole = true;
    staged.how = how;
    staged.value = value;
    staged.length = length;
    return true;
}

void Inbox::announce_writes() {
    while (awaits_room()) {
        const Unannounced& write = waiting_->unannounced.front();
        if (!endpoint_.completions().announce_write(write.length, write.how, write.value)) {
            return;
        }
        waiting_->unannounced.pop_front();
    }
}

void Inbox::announce_rest() {
    for (; awaits_room(); waiting_->unannounced.pop_front()) {
        const Unannounced& write = waiting_->unannounced.front();
        endpoint_.completions().announce_write(write.length, write.how, write.value, true);
    }
}

bool Inbox::receive_posted() {
    announce_writes();
    while (has_staged() && endpoint_.has_receive()) {
        Staged message = std::move(waiting_->staged.front());
        waiting_->staged.pop_front();
        waiting_->bytes -= message.data.size() + kStagedOverhead;
        if (!hand_over(message)) {
            return false;
        }
    }
    endpoint_.set_starved(has_staged());
    forget_waiting();
    return true;
}

// Moves a staged message into the next receive. One that is still arriving goes on there.
bool Inbox::hand_over(Staged& message) {
    if (!match()) {
        return false;
    }
    const Receive& receive = endpoint_.receive(receive_);
    if (message.data.size() > receive.capacity) {
        return overlong(message.data.size());
    }
    std::array<iovec, kMaxIov> to;
    const std::size_t count = gather(receive.segments(), 0, message.data.size(), to);
    const std::byte* from = message.data.data();
    for (std::size_t i = 0; i < count; ++i) {
        base::copy(static_cast<std::byte*>(to[i].iov_base), from, to[i].iov_len);
        from += to[i].iov_len;
    }
    if (message.whole) {
        assembling_ = false;
        const std::uint64_t length =
            (message.how & kByWrite) != 0 ? message.length : message.data.size();
        endpoint_.complete_receive(receive_, DtoStatus::success, length, message.how,
                                   message.value);
    }
    return true;
}

} // namespace dat::engine
