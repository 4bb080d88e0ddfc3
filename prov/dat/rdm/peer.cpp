// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See messages.h: the connection with a peer, and what goes to it.
#include "rdm/limits.h"
#include "rdm/messages.h"

#include "base/assert.h"
#include "base/attempt.h"
#include "rdm/post.h"

#include <algorithm>
#include <cstring>
#include <sys/uio.h>
#include <utility>

namespace dat::rdm {

using core::DtoStatus;
using core::PostVerdict;

Peer::Peer(Messages& messages, PeerOwner& owner, std::uint32_t number)
    : messages_(messages), owner_(owner), number_(number) {
    if (messages_.peers_.size() <= number) {
        messages_.peers_.resize(number + 1);
    }
    messages_.peers_[number] = this;
}

Peer::~Peer() {
    DAT_ASSERT(queued_.empty() && waiting_.empty() && pushing_.empty() && to_read_.empty() &&
               reading_.empty() && shared_.empty());
    messages_.peers_[number_] = nullptr;
}

void Peer::run_soon() { messages_.domain_.defer(*this); }

// --- the connection ---

void Peer::connected(engine::Endpoint& endpoint, std::uint32_t window, bool accepted) {
    endpoint_ = &endpoint;
    const engine::LinkKind kind = endpoint.link()->kind();
    const bool device = kind == engine::LinkKind::verbs;
    kind_ = endpoint.trace() && !device ? engine::LinkKind::in_process : kind;
    eager_ = device ? kEagerVerbs : kind_ == engine::LinkKind::shm ? kEagerShm : kEagerIwarp;
    buffers_ = device ? verbs::kMessages : kUncounted;
    freed_ = 0;
    window_ = window;
    sent_ = told_ = taken_ = said_taken_ = held_ = reads_ = 0;
    said_goodbye_ = tells_ = paused_ = false;
    release_ = {};
    confirmed_ = greets_ = !accepted;
    flowing_ = confirmed_ && queued_.empty();
    run_soon();
}

void Peer::go_on() {
    confirmed_ = true;
    paused_ = false;
    flowing_ = queued_.empty() && has_buffer();
    run_soon();
}

void Peer::parted() {
    if (endpoint_ && tells_) {
        endpoint_->completions().tell_of_room(false);
    }
    if (endpoint_) {
        lose_announced();
        ++turn_;
        messages_.left_ += std::exchange(held_, 0);
    }
    endpoint_ = nullptr;
    flowing_ = tells_ = confirmed_ = paused_ = false;
}

bool Peer::is_quiet() const {
    return endpoint_ && confirmed_ && !greets_ && release_ == Kind{} && idle() && held_ == 0 &&
           announced_ == 0 && !placing_ && to_read_.empty() && reading_.empty() &&
           shared_.empty() && endpoint_->core().requests().idle();
}

std::uint64_t Peer::activity() const {
    return (endpoint_ ? endpoint_->core().requests().next() : 0) + taken_ + held_ + announced_ +
           told_;
}

void Peer::say_of_release(Kind kind) {
    release_ = kind;
    if (kind != Kind::decline) {
        paused_ = true;
        flowing_ = false;
    }
    run_soon();
}

void Peer::fail() {
    const bool died = !said_goodbye_;
    flowing_ = false;
    while (!waiting_.empty()) {
        messages_.finish(waiting_.front(), DtoStatus::flushed);
    }
    while (!queued_.empty()) {
        --queued_count_;
        messages_.finish(queued_.front(), DtoStatus::flushed);
    }
    lose_announced();
    for (core::Matching* const matching : {&messages_.tagged_, &messages_.untagged_}) {
        if (died && matching->any_posted()) {
            matching->source_died(number_, [&](core::PostedReceive& each) {
                messages_.fail(static_cast<Receive&>(each), DtoStatus::flushed);
            });
        }
    }
    said_goodbye_ = false;
}

// What the peer has announced cannot be read any more.
void Peer::lose_announced() {
    lose_placed();
    for (base::List<Fetch, OfPeer>* const list : {&to_read_, &reading_, &shared_}) {
        while (!list->empty()) {
            Fetch& fetch = list->front();
            fetch.status = DtoStatus::flushed;
            messages_.fetched(fetch);
        }
    }
    while (!to_say_.empty()) {
        messages_.fetches_.give_back(to_say_.pop());
    }
    if (announced_ == 0) {
        return;
    }
    const auto is_announced = [this](const core::UnexpectedMessage& each) {
        return each.source() == number_ && static_cast<const Unexpected&>(each).is_announced();
    };
    for (core::Matching* const matching : {&messages_.tagged_, &messages_.untagged_}) {
        matching->take_each(is_announced, [&](core::UnexpectedMessage& each) {
            messages_.free(static_cast<Unexpected&>(each));
        });
    }
    messages_.claimed_.each([&](core::UnexpectedMessage& each) {
        if (is_announced(each)) {
            static_cast<Unexpected&>(each).kind = Kind::goodbye;
        }
    });
    messages_.announced_ -= std::exchange(announced_, 0);
}

bool Peer::is_unused() const {
    const auto names_it = [this](const core::PostedReceive& each) {
        return each.source() == number_;
    };
    return !endpoint_ && unexpected_ == 0 && idle() && to_read_.empty() && reading_.empty() &&
           shared_.empty() && !messages_.tagged_.find_posted(names_it) &&
           !messages_.untagged_.find_posted(names_it);
}

bool Peer::owes() {
    bool any = false;
    const auto look = [&](const Send& send) {
        any = any || send.what.silent || !send.what.reported;
    };
    queued_.each(look);
    waiting_.each(look);
    return any;
}

// --- out ---

PostVerdict Peer::send_now(const Outgoing& out, Send* waiting) {
    switch (kind_) {
    case engine::LinkKind::shm:
        return post<shm::Link>(out, waiting);
    case engine::LinkKind::iwarp:
        return post<iwarp::Link>(out, waiting);
    case engine::LinkKind::verbs:
        return send_on_device(out, waiting);
    default:
        return post<engine::Link>(out, waiting);
    }
}

// Each takes a buffer of the peer's. Precondition: has_buffer().
PostVerdict Peer::send_on_device(const Outgoing& out, Send* waiting) {
    DAT_ASSERT(has_buffer());
    return with_buffer([&] { return post<engine::Link>(out, waiting); });
}

// The peer's device has room for so many more messages.
void Peer::got_buffers(std::uint32_t count) {
    buffers_ += count;
    flowing_ = confirmed_ && !paused_ && queued_.empty() && has_buffer();
    run_soon();
}

void Peer::buffer_free() {
    ++freed_;
    if (owes_buffers()) { // else what is sent anyway says it
        run_soon();
    }
}

PostVerdict Peer::send_otherwise(const Outgoing& out) {
    if (self_) {
        return send_to_self(out);
    }
    if (flowing_ && !room(kReserve)) {
        return PostVerdict::full;
    }
    if (flowing_ && is_eager(out) && !out.delivered) {
        // The window is full. Who only sends has not heard yet what the peer has taken meanwhile.
        messages_.domain_.progress();
        if (flowing_ && fits(out)) {
            return send_now(out, nullptr);
        }
    }
    if (confirmed_ && !has_buffer() && queued_count_ >= verbs::kMessages) {
        return PostVerdict::full; // as where the queue of its requests has no room
    }
    Send* const send = messages_.new_send(*this, out);
    if (!send) {
        return PostVerdict::full;
    }
    queued_.push(*send);
    ++queued_count_;
    if (confirmed_ && !paused_) {
        send_queued();
    } else {
        owner_.wanted(*this);
    }
    messages_.domain_.run_deferred();
    return PostVerdict::posted;
}

// The oldest that is queued, whose completion is the request's: it is queued no longer when it is
// posted, since the connection may end within, and then what is queued completes, or goes out
// again. False: there is no room now.
bool Peer::send_as_request(Send& send) {
    queued_.pop();
    --queued_count_;
    if (!went(send_now(send.what, nullptr))) {
        queued_.push_front(send);
        ++queued_count_;
        return false;
    }
    messages_.free(send);
    return true;
}

// Those that may go now.
void Peer::send_queued() {
    while (!queued_.empty() && confirmed_ && !paused_ && has_buffer()) {
        Send& send = queued_.front();
        const Outgoing& out = send.what;
        const bool here = is_eager(out) && has_window(out);
        if (here && !out.delivered) {
            if (!send_as_request(send)) {
                break;
            }
            continue;
        }
        // It waits before it is posted, since a link that is to be woken polls within: its answer
        // may come, or the connection end, before this returns.
        const std::uint64_t id = send.id;
        queued_.pop();
        --queued_count_;
        waiting_.push(send);
        send.waits = true;
        send.goes = here;
        const Announced said =
            here ? (went(send_now(out, &send)) ? Announced::went : Announced::later)
                 : announce(send);
        if (said == Announced::went) {
            continue;
        }
        if (said == Announced::never) {
            messages_.finish(send, DtoStatus::local_ep);
            continue;
        }
        if (send.peer != this || send.id != id || !send.waits) {
            return; // the connection has ended in between
        }
        waiting_.remove(send);
        send.waits = send.goes = false;
        queued_.push_front(send);
        ++queued_count_;
        break;
    }
    flowing_ = confirmed_ && queued_.empty() && has_buffer();
    if (!queued_.empty()) {
        run_soon(); // so that it hears of room
    }
}

// `never`: its memory cannot be registered with the device. `later`: there is no room, or no
// memory, now.
Peer::Announced Peer::announce(Send& send) {
    if (!room(kReserve) || !has_buffer()) {
        return Announced::later;
    }
    const Outgoing& out = send.what;
    const bool asked_for = is_asked_for(out);
    if (!asked_for && !messages_.add_readable(send)) {
        return messages_.registrar_ ? Announced::never : Announced::later;
    }
    const std::uint8_t segments = asked_for ? out.length > 0 : send.key_count;
    std::array<std::byte, kMaxAnnouncement> bytes;
    const auto flags = static_cast<std::uint8_t>(out.has_data ? kHasData : 0);
    const Head head =
        plain_head(out.tagged ? Kind::announced_tagged : Kind::announced, out.tag, flags, segments);
    std::byte* const at = put_places(put_head(bytes.data(), head, out, &send), send);
    if (!post_own(bytes.data(), static_cast<std::size_t>(at - bytes.data()), out.fence)) {
        messages_.remove_readable(send);
        return Announced::later;
    }
    has_said(head);
    return Announced::went;
}

// Where the payload is, if anywhere.
std::byte* Peer::put_places(std::byte* at, const Send& send) const {
    const Outgoing& out = send.what;
    if (is_asked_for(out)) {
        return out.length > 0 ? put(at, Place{0, static_cast<std::uint32_t>(out.length), 0}) : at;
    }
    const bool named = kind_ == engine::LinkKind::shm || kind_ == engine::LinkKind::verbs;
    std::size_t count = 0;
    for (std::size_t i = 0; i < out.count; ++i) {
        const engine::Iov& memory = out.iov[i];
        if (memory.length > 0) {
            const auto address = reinterpret_cast<std::uintptr_t>(memory.base);
            at = put(at, Place{send.keys[count++], static_cast<std::uint32_t>(memory.length),
                               named ? address : std::uintptr_t{0}});
        }
    }
    return at;
}

// Of what the endpoint says by itself, which has said it only once it is posted.
Head Peer::plain_head(Kind kind, std::uint64_t tag, std::uint8_t flags,
                      std::uint8_t segments) const {
    return {kind, flags, segments, static_cast<std::uint8_t>(freed_), taken_, tag};
}

void Peer::has_said(const Head& head) {
    said_taken_ = head.taken;
    freed_ -= head.freed;
}

// A message of the endpoint's own. False: there is no room now.
// `kept`: of the peer's buffers so many are left.
bool Peer::post_own(const std::byte* bytes, std::size_t size, bool fence, std::uint32_t kept) {
    if (buffers_ <= kept) {
        return false;
    }
    engine::Endpoint& endpoint = *endpoint_;
    const auto fill = [&](engine::Request& request, std::uint64_t seq) {
        std::byte* const area = endpoint.inline_area(seq);
        std::memcpy(area, bytes, size);
        request = {};
        request.length = size;
        request.op = engine::OpCode::send;
        request.role = engine::Role::own;
        request.fence = fence;
        request.inlined = true;
        request.iov_count = 1;
        request.iov = {area, size};
    };
    return went(
        with_buffer([&] { return engine::post_request<engine::Link>(endpoint, false, fill); }));
}

bool Peer::say(Kind kind, std::uint64_t tag) {
    std::array<std::byte, sizeof(Head)> bytes;
    const Head head = plain_head(kind, tag);
    put(bytes.data(), head);
    const bool last = kind == Kind::taken || kind == Kind::goodbye;
    if (!post_own(bytes.data(), bytes.size(), false, last ? 0 : kKeptBuffers)) {
        return false;
    }
    has_said(head);
    return true;
}

bool Peer::say_goodbye() { return !endpoint_ || say(Kind::goodbye, 0); }

// The next that is asked for of a message: the rest of its segment, or so much as is read at once.
// `to`: where it goes, of which a device takes one piece.
std::uint64_t Peer::next_read(const Fetch& fetch, std::span<iovec, engine::kMaxIov> to,
                              std::size_t& count) const {
    const bool device = kind_ == engine::LinkKind::verbs;
    const std::uint64_t most = device ? kReadOnDevice : UINT64_MAX;
    std::uint64_t length = std::min(
        {fetch.places[fetch.segment].length - fetch.offset, fetch.wanted - fetch.asked, most});
    count = engine::gather({fetch.to.data(), fetch.count}, fetch.asked, length, to);
    if (device && count > 1) {
        count = 1;
        length = to[0].iov_len;
    }
    return length;
}

// Asks for what is announced, and matched.
void Peer::ask() {
    while (!to_read_.empty() && reads_ < kReads && endpoint_) {
        Fetch& fetch = to_read_.front();
        const Place place = fetch.places[fetch.segment];
        const std::uint64_t offset = fetch.offset;
        std::array<iovec, engine::kMaxIov> to;
        std::size_t count = 0;
        const std::uint64_t length = next_read(fetch, to, count);
        engine::Endpoint& endpoint = *endpoint_;
        ++reads_;
        ++fetch.reading;
        fetch.asked += length;
        fetch.offset += length;
        if (fetch.offset == place.length) {
            fetch.offset = 0;
            ++fetch.segment;
        }
        const bool last = fetch.asked == fetch.wanted;
        if (last) {
            to_read_.remove(fetch);
            reading_.push(fetch);
        }
        const PostVerdict verdict = engine::post_request<engine::Link>(
            endpoint, false, [&](engine::Request& request, std::uint64_t seq) {
                request = {};
                request.context = static_cast<Posted*>(&fetch);
                request.length = length;
                request.remote_key = place.key;
                request.remote_address =
                    (kind_ == engine::LinkKind::verbs ? place.at : std::uint64_t{0}) + offset;
                request.op = engine::OpCode::read;
                request.role = engine::Role::own;
                engine::Iov* const at =
                    engine::set_segments(request, count, endpoint.request_extra_segments(seq));
                for (std::size_t i = 0; i < count; ++i) {
                    at[i] = {static_cast<std::byte*>(to[i].iov_base), to[i].iov_len};
                }
            });
        if (!went(verdict)) {
            --reads_;
            --fetch.reading;
            fetch.asked -= length;
            if (fetch.offset == 0) {
                --fetch.segment;
            }
            fetch.offset = offset;
            if (last) {
                reading_.remove(fetch);
                to_read_.push_front(fetch);
            }
            return;
        }
    }
}

void Peer::say_done() {
    while (!to_say_.empty() && endpoint_) {
        Fetch& fetch = to_say_.front();
        if (!say(Kind::done, fetch.id)) {
            return;
        }
        to_say_.remove(fetch);
        messages_.fetches_.give_back(fetch);
    }
}

void Peer::finished(void* context, DtoStatus status) {
    if (!context) {
        return;
    }
    Posted& posted = *static_cast<Posted*>(context);
    if (posted.is_send) {
        Send& send = static_cast<Send&>(posted);
        send.goes = false;
        if (send.arrived) {
            messages_.finish(send, DtoStatus::success);
        }
        if (!pushing_.empty()) {
            run_soon();
        }
        return;
    }
    Fetch& fetch = static_cast<Fetch&>(posted);
    --reads_;
    --fetch.reading;
    if (fetch.status == DtoStatus::success) {
        fetch.status = status;
    }
    if (fetch.reading == 0 && (fetch.asked == fetch.wanted || status != DtoStatus::success)) {
        messages_.fetched(fetch);
    }
    if (!to_read_.empty()) {
        run_soon();
    }
}

void Peer::has_room() { run_soon(); }

// In the middle of no link's work.
void Peer::run() {
    if (!confirmed_) {
        return;
    }
    greets_ = greets_ && !say(Kind::taken, 0);
    if (endpoint_ && release_ != Kind{} && say(release_, 0)) {
        release_ = {};
    }
    if (paused_) {
        return tell_of_room(release_ != Kind{} && has_buffer());
    }
    ask();
    say_done();
    const bool asked = ask_to_push();
    copy_some();
    push_pieces();
    if (endpoint_ && (owes_credit() || owes_buffers())) {
        say(Kind::taken, 0);
    }
    if (endpoint_ && !queued_.empty() && room(kReserve)) {
        send_queued();
    }
    if (!endpoint_) {
        return;
    }
    const bool to_send = greets_ || release_ != Kind{} || !to_say_.empty() || !queued_.empty() ||
                         !asked || (!pushing_.empty() && !pushing_.front().goes) || owes_credit();
    // What waits for a buffer of the peer's hears of it by a message.
    tell_of_room((to_send && has_buffer()) || (!to_read_.empty() && reads_ < kReads));
}

// `more`: there is more to be posted than there was room for.
void Peer::tell_of_room(bool more) {
    if (!endpoint_) {
        return;
    }
    if (more != tells_) {
        tells_ = more;
        endpoint_->completions().tell_of_room(more);
    }
    if (more && endpoint_->core().requests().idle()) { // a queue of completions is full
        run_soon();
    }
}

} // namespace dat::rdm
