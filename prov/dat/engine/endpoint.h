// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The endpoint of the software domain: the DAT core plus what its operations
// are. Neutral about the link that carries them. All calls are made under the
// domain's lock.
//
//   post (engine/post.h) -> Request in its slot -> L::transmit      the link's own
//   link -> finish_request / complete_receive -> CompletionQueue
//   link, handshake -> established / failed / over -> core -> EndpointOwner::raise
#ifndef DAT_ENGINE_ENDPOINT_H
#define DAT_ENGINE_ENDPOINT_H

#include "base/list.h"
#include "core/completion.h"
#include "core/endpoint.h"
#include "engine/half_closed.h"
#include "engine/link.h"
#include "engine/reactor.h"
#include "engine/trace.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace dat::engine {

class Companion;
class Domain;
class SharedReceives;

inline constexpr std::size_t kMaxIov = 4;
inline constexpr std::size_t kInjectSize = 128; // bytes that a post may copy

struct Iov {
    std::byte* base;
    std::size_t length;
};

enum class OpCode : std::uint8_t {
    send,
    send_invalidate,
    write,
    bind, // of a memory window: done on this side, in its turn; the peer sees nothing
    read,
    fetch_add,    // the atomics (RFC 7306): on 8 bytes, operands in the inline area,
    compare_swap, // the old value goes to the segments, if there are any
};

// The peer answers it: its completion waits for that, whatever the level.
constexpr bool is_answered(OpCode op) { return op >= OpCode::read; }
constexpr bool is_atomic(OpCode op) { return op >= OpCode::fetch_add; }

// The operands of an atomic. fetch_add: `data` is added, and no carry goes beyond a
// bit that is set in `mask`. compare_swap: where the bits of `compare_mask` equal
// those of `compare`, the bits of `mask` become those of `data`.
struct AtomicOperands {
    std::uint64_t data;
    std::uint64_t mask;
    std::uint64_t compare;
    std::uint64_t compare_mask;
};

// The only segment of an operation stands in its slot. Several lie aside, in memory
// that belongs to the slot and that most slots never touch; the slot's `iov` says
// where.
template <class Slot> std::span<const Iov> segments_of(const Slot& slot) {
    return {slot.iov_count > 1 ? reinterpret_cast<const Iov*>(slot.iov.base) : &slot.iov,
            slot.iov_count};
}

// Announces `count` segments; they are to be written where this returns. `extra_segments`: the
// slot's room for kMaxIov.
template <class Slot> Iov* set_segments(Slot& slot, std::size_t count, Iov* extra_segments) {
    slot.iov_count = static_cast<std::uint8_t>(count);
    if (count <= 1) [[likely]] {
        return &slot.iov;
    }
    slot.iov = {reinterpret_cast<std::byte*>(extra_segments), 0};
    return extra_segments;
}

// When a request is complete (U-61).
enum class Level : std::uint8_t {
    taken,     // the kernel has its bytes
    left,      // the same, but its bytes lie where they were until the peer has copied them
    placed,    // the peer has placed the data
    delivered, // and, for a message, its receive has completed
};

// What of a request's end is reported. An operation of several requests, posted together, completes
// as its last one does.
enum class Role : std::uint8_t {
    alone,
    silent,    // nothing, ever (fi_inject)
    part,      // of an operation, before its last one
    owed_part, // the same, where the operation's success is not reported
    last,      // of an operation of several
    own,       // of the endpoint's MessageSink, which alone is told
};

// A request in its slot, from the post until its completion. Not initialized, so
// that slots which are never used are never touched: a post sets every member.
struct Request {
    void* context;
    std::uint64_t completion_flags;
    std::uint64_t length; // of all segments
    std::uint64_t remote_address;
    std::uint32_t remote_key; // or, for send_invalidate, the key to invalidate; of a bind, its own
    std::uint32_t ordinal;    // the link's to set: position among what the peer confirms
    std::uint64_t data;       // for the receiver's completion, if has_data
    // What most posts have alike stands together, and is one store.
    OpCode op;
    std::uint8_t iov_count;
    bool solicited; // DTO-22
    bool fence;     // DTO-24
    Role role;
    bool inlined;  // the payload was copied: iov is in the inline area
    bool has_data; // of a send or write
    bool signaled; // a success is reported (DTO-21)
    Level level;
    Iov iov; // as set_segments() left it

    std::span<const Iov> segments() const { return segments_of(*this); }
};

// A posted receive in its slot.
struct Receive {
    void* context;
    std::uint64_t completion_flags;
    std::uint64_t posted_flags; // of a `multi` one: completion_flags as posted
    std::uint64_t capacity;     // of all segments
    std::uint8_t iov_count;
    bool signaled; // a success is reported
    bool multi;    // serves several messages, one behind the other; one segment
    Iov iov;       // as set_segments() left it
    // What came of it, set by complete_receive().
    std::uint64_t length;
    std::uint64_t data;
    std::uint64_t overflow;

    std::span<const Iov> segments() const { return segments_of(*this); }
    // Where a message begins.
    std::byte* address() const {
        if (iov_count == 1) [[likely]] {
            return iov.base;
        }
        return iov_count > 0 ? segments()[0].base : nullptr;
    }
};

// Moves a receive to another slot, whose room for segments is `extra_segments`.
inline void move_receive(const Receive& from, Receive& to, Iov* extra_segments) {
    to = from;
    const auto segments = from.segments();
    std::copy(segments.begin(), segments.end(), set_segments(to, segments.size(), extra_segments));
}

// How something arrived; a bit set, from the link.
enum Arrived : std::uint8_t {
    kPlain = 0,
    kWithData = 1,
    kSolicited = 2,
    kInvalidated = 4, // and `data` is the key
    kByWrite = 8,     // a write, not a message
};

// The completion flags that stand for it; opaque here.
struct ArrivalFlags {
    std::uint64_t with_data = 0;
    std::uint64_t solicited = 0;
    std::uint64_t invalidated = 0;
    std::uint64_t by_write = 0; // in place of the receive's own
    std::uint64_t released = 0; // of a `multi` receive: it serves no more
};

// As text, with a zero at the end.
struct EndpointNames {
    std::array<char, 64> local{};
    std::array<char, 64> peer{};
};

// Who an endpoint belongs to. Called under the domain's lock.
class EndpointOwner {
  public:
    // For those who look (Statistics).
    virtual void tell(EndpointNames&) const {}
    virtual const char* words_for(core::Reason) const { return ""; }
    // The link is known: operation tables may be set for its kind. Comes before
    // the ESTABLISHED event.
    virtual void link_ready(Link& link) = 0;
    // Its private data lies there until this returns. An attempt raises two events at most, one of
    // them with data; room for them is there since the attempt began.
    virtual void raise(const core::ConnectionEvent& event) = 0;
    virtual void soft_watermark_passed() {}
    // After the end by this side's disconnect: the peer has left as well (awaits_peer()). Room for
    // it is there.
    virtual void peer_left() {}

  protected:
    ~EndpointOwner() = default;
};

// Takes the messages of an endpoint that has no receives, as they come. Called under the domain's
// lock, in the middle of the link's work: neither posts to the endpoint nor ends its connection.
class MessageSink {
  public:
    // A whole message, which lies there until this returns. Its peer may be changing it meanwhile:
    // what is looked at is copied before. False: it is none that the peer may send; the connection
    // is broken.
    virtual bool arrived(const std::byte* message, std::size_t size) = 0;
    // Bytes of a message, at most.
    virtual std::size_t longest() const = 0;
    // A request with Role::own is over.
    virtual void finished(void* context, core::DtoStatus status) = 0;
    // A request is over, and Endpoint::tell_of_room() held.
    virtual void has_room() = 0;

  protected:
    ~MessageSink() = default;
};

struct Starved; // the list of SharedReceives that an endpoint may be in
struct Counted; // that of Statistics

// What an endpoint counts besides the numbers of its streams, since it was made.
struct Tally {
    std::uint64_t request_bytes = 0; // of requests that are outstanding or have succeeded
    std::uint64_t receive_bytes = 0; // of messages in receives that succeeded
    std::uint64_t not_ready = 0;     // a message began to wait for a receive
    std::uint64_t number = 0;        // of the endpoint in its domain
    // Of the connection at hand; kind: once it is established.
    std::optional<LinkKind> kind;
    Clock::time_point established{};
    std::uint64_t requests_before = 0; // that had completed when it began, and so on
    std::uint64_t receives_before = 0;
    std::uint64_t request_bytes_before = 0;
    std::uint64_t receive_bytes_before = 0;
    LinkFacts facts; // as the link said last
};

class Endpoint : public base::Hook<Starved>, public base::Hook<Counted>, private Timer {
  public:
    struct Limits {
        std::uint32_t requests = 128; // DTO-5
        std::uint32_t receives = 128;
    };

    // `zone`: whose regions peers may touch through this endpoint (PZ-1); any
    // pointer that names it. `initial`: as core::Endpoint. Throws std::bad_alloc.
    // `named`: posts say for a device what their memory is registered as.
    Endpoint(Domain& domain, EndpointOwner& owner, const Limits& limits, const void* zone,
             core::State initial = core::State::unconnected, bool named = false);
    ~Endpoint(); // after free()
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    Domain& domain() { return domain_; }
    const EndpointOwner& owner() const { return owner_; }
    Tally& tally() { return tally_; }
    const Tally& tally() const { return tally_; }
    const void* zone() const { return zone_; }
    // EPA-7: receives that are posted already belong to the zone before.
    void set_zone(const void* zone);
    bool of_old_zone(std::uint64_t receive) const { return receive < zone_from_; }
    // While no request is outstanding. False, and nothing changed: more receives than
    // that are posted. Throws std::bad_alloc.
    bool resize(const Limits& limits);
    Limits limits() const { return {core_.requests().limit(), core_.receives().limit()}; }
    // RDMA reads that later connections carry at once (RDR-1).
    struct Reads {
        std::uint16_t in = 16;  // of the peer
        std::uint16_t out = 16; // of this side
    };
    void set_reads(const Reads& reads) { reads_ = reads; }
    const Reads& reads() const { return reads_; }
    // SRQ-11; UINT32_MAX: none. May report or end the connection at once.
    void set_watermarks(std::uint32_t soft, std::uint32_t hard);
    // It has one: so a receive that has completed is to count as such at once.
    bool watched() const { return watermark_ != UINT32_MAX; }
    // nullptr: completions of that direction are not wanted (EPA-2). False: there is no memory
    // for the room that they need; nothing changed.
    bool set_queues(core::CompletionQueue* requests, core::CompletionQueue* receives);
    // A post found no room: there may be some now.
    void look_for_room();

    void set_arrival_flags(const ArrivalFlags& flags) { arrival_flags_ = flags; }
    // U-62: a write with data takes a receive.
    void set_writes_take_receives(bool on) { writes_take_receives_ = on; }
    // A `multi` receive is released once fewer bytes of it are left.
    void set_min_multi(std::uint64_t bytes) { min_multi_ = bytes; }
    // Receives come from there; before any is posted or a connection begins.
    // How long a destination where nobody listens is tried again.
    void set_patience(std::chrono::microseconds patience) { patience_ = patience; }
    std::chrono::microseconds patience() const { return patience_; }
    // `context`: whose value goes with each shared receive, as the buffer of its completion.
    void set_shared(SharedReceives* shared, void* const* context = nullptr) {
        shared_ = shared;
        context_ = context;
        set_fast();
    }
    SharedReceives* shared() const { return shared_; }
    // Messages go there and take no receives; before a connection begins.
    void set_sink(MessageSink* sink) {
        sink_ = sink;
        set_fast();
    }
    MessageSink* sink() const { return sink_; }
    // Each request that is over is to be followed by MessageSink::has_room().
    void tell_of_room(bool on) {
        tells_of_room_ = on;
        set_fast();
    }
    // What a kind of link has made for the next connection; nullptr: nothing. Gone with free().
    std::unique_ptr<Companion>& prepared() { return prepared_; }
    template <class Kind> std::unique_ptr<Kind> take_prepared() {
        return std::unique_ptr<Kind>(static_cast<Kind*>(prepared_.release()));
    }
    // What it writes down (FI_DAT_TRACE); nullptr: nothing. Decided when it is made.
    EndpointTrace* trace() { return trace_.get(); }
    // What finished operations are counted by; nullptr: not at all.
    struct Counters {
        core::Counter* send = nullptr;
        core::Counter* write = nullptr;
        core::Counter* read = nullptr;
        core::Counter* receive = nullptr;
        core::Counter* remote_read = nullptr;
        core::Counter* remote_write = nullptr;
    };
    void set_counters(const Counters& counters);

    const core::Endpoint& core() const { return core_; }
    // How the last attempt ended, and why; none before an end and after reset.
    core::Event last_end() const { return last_end_; }
    core::Reason reason() const { return reason_; }
    std::uint32_t terminate_code() const { return terminate_code_; }

    // --- the Consumer's calls; false: refused by the state, nothing changed ---

    // EP-10. begin_connect() first, to know whether it is allowed; then the caller
    // makes a handshake for attempt() and passes it to run(). `timeout`: TMO-1.
    bool begin_connect(std::optional<std::chrono::microseconds> timeout);
    // EP-15.
    bool begin_accept();
    void run(std::unique_ptr<Handshake> handshake) { handshake_ = std::move(handshake); }
    core::Attempt attempt() const { return core_.attempt(); }
    // EP-18, EP-19. Also true where it is a no-op.
    bool disconnect(bool graceful);
    // EP-21.
    bool reset();
    // EP-22: flushes into the queues; nothing comes afterwards. Not while a service
    // point or a request has the endpoint (FREE-1).
    void free();
    // What a service point, or the request that it brought, does to the endpoint: EP-12,
    // EP-13, EP-16, EP-17, EP-47.
    core::Outcome serve(core::Stimulus stimulus);
    // A receive is posted; `seq` is its slot's number. Fill receive(seq), then call
    // receive_filled(seq).
    core::PostVerdict begin_receive(std::uint64_t& seq) { return core_.post_receive(seq); }
    // `taken`: the link has it already.
    void receive_filled(std::uint64_t seq, core::PostVerdict verdict, bool taken = false) {
        if (verdict == core::PostVerdict::flushed || (starved_ && !taken) ||
            core_.receives().outstanding() > watermark_) [[unlikely]] {
            receive_posted(seq, verdict);
        }
    }
    // The same for requests; the link's transmit() is up to the caller (engine/post.h).
    core::PostVerdict begin_request(std::uint64_t& seq) { return core_.post_request(seq); }
    // The same two where it is known that they may be posted: core().takes_request(),
    // takes_receive().
    std::uint64_t begin_taken_request() { return core_.requests().post(); }
    std::uint64_t begin_taken_receive() { return core_.receives().post(); }
    // Several requests that are one operation: the last of them has Role::last, those before it
    // are its parts.
    void begin_divided() {
        ++divided_;
        set_fast();
    }
    // A slot was filled. At the post, since the length is at hand there.
    void count_posted(const Request& request) { tally_.request_bytes += request.length; }
    // After begin_request() said flushed, and the slot was filled (FLS-1).
    void request_flushed() { complete_requests(); }
    // Takes back the oldest receive with that context that no message has taken: its
    // completion is flushed, and those behind it are not affected. False: there is
    // none.
    bool cancel_receive(const void* context);
    // Room for the segments of an operation that has several.
    Iov* request_extra_segments(std::uint64_t seq) {
        return slots_.request_segments + std::size_t{core_.requests().slot(seq)} * kMaxIov;
    }
    Iov* receive_extra_segments(std::uint64_t seq) {
        return slots_.receive_segments + std::size_t{core_.receives().slot(seq)} * kMaxIov;
    }
    // What the memory of each segment is registered as, by its descriptor (fi_mr_desc(3)), which
    // may be nullptr; all of it is nullptr where posts do not say.
    const void** request_names(std::uint64_t seq) {
        return slots_.names ? slots_.names.get() + std::size_t{core_.requests().slot(seq)} * kMaxIov
                            : nullptr;
    }
    const void** receive_names(std::uint64_t seq) {
        return slots_.receive_names
                   ? slots_.receive_names + std::size_t{core_.receives().slot(seq)} * kMaxIov
                   : nullptr;
    }
    Request& request(std::uint64_t seq) { return slots_.requests[core_.requests().slot(seq)]; }
    const Request& request(std::uint64_t seq) const {
        return slots_.requests[core_.requests().slot(seq)];
    }
    Receive& receive(std::uint64_t seq) { return slots_.receives[core_.receives().slot(seq)]; }
    // kInjectSize bytes that belong to a request's slot.
    std::byte* inline_area(std::uint64_t seq) {
        return slots_.inline_areas + std::size_t{core_.requests().slot(seq)} * kInjectSize;
    }
    Link* link() { return link_.get(); }
    const Link* link() const { return link_.get(); }
    // The end of later connections has two halves: a side that the peer has left does so itself
    // by disconnect(), reset() or free(), and who left first is told of that.
    void await_peer(bool on) { awaits_peer_ = on; }
    bool awaits_peer() const { return awaits_peer_; }
    // For HalfClosed: see EndpointOwner.
    void peer_left();
    // It was accepted, it changes something at the peer, and its success is not reported: it
    // goes out also where the connection is ended before it did.
    bool is_owed(const Request& r) const {
        const bool acts = r.op == OpCode::send || r.op == OpCode::send_invalidate ||
                          r.op == OpCode::write || (is_atomic(r.op) && r.iov_count == 0);
        const bool told_of = (r.signaled || r.role == Role::part) && request_cq_;
        return acts && !told_of;
    }
    // Behind the last request that is owed, from `begin` on; `begin` if none is.
    std::uint64_t owed_end(std::uint64_t begin) const;

    // --- the handshake's calls, each at most once an attempt, `of` its attempt ---

    // The handshake ended well. `stimulus`: peer_accepted or handshake_done. The
    // data is what the peer sent (PD-2, PD-3).
    void established(core::Attempt of, core::Stimulus stimulus, std::unique_ptr<Link> link,
                     std::span<const std::byte> private_data);
    // It did not. `stimulus` says how.
    void failed(core::Attempt of, core::Stimulus stimulus, core::Reason reason,
                std::span<const std::byte> private_data = {});

    // --- the link's calls ---

    // The oldest receive that no message has been matched with; false: none.
    bool has_receive() {
        while (match_next_ != core_.receives().next()) {
            const core::DtoStream& stream = core_.receives();
            if (match_next_ >= stream.first() && !stream.finished(match_next_)) [[likely]] {
                return true;
            }
            ++match_next_; // taken back; where it was passed over its slot may be another's
        }
        return shared_ && may_share();
    }
    // That is the receive with this number, which was just posted.
    bool matches_next(std::uint64_t seq) const { return match_next_ == seq; }
    // Takes it.
    void match_posted() { ++match_next_; }
    // Takes it. Precondition: has_receive().
    std::uint64_t match_receive() {
        return match_next_ != core_.receives().next() ? match_next_++ : match_shared();
    }
    // A message, or a part of one, is in that shared receive, which is this endpoint's from
    // here on, also while the connection ends. Precondition: !core().receives().full().
    std::uint64_t adopt(const Receive& shared);
    // The oldest receive of this endpoint's own, and of its zone, that no message has been
    // matched with; nullptr: has_receive() has to look further.
    const Receive* next_receive() {
        const core::DtoStream& stream = core_.receives();
        if (match_next_ == stream.next() || match_next_ < stream.first() ||
            match_next_ < zone_from_ || stream.finished(match_next_)) [[unlikely]] {
            return nullptr;
        }
        return &receive(match_next_);
    }
    // There is a message without a receive: Link::receive_posted() is wanted.
    void set_starved(bool starved);
    bool starved() const { return starved_; }
    // Of SharedReceives: it has some again.
    void receives_shared();
    // A matched receive is over. `how`: of Arrived.
    void complete_receive(std::uint64_t seq, core::DtoStatus status, std::size_t length,
                          std::uint8_t how = kPlain, std::uint64_t data = 0,
                          std::size_t overflow = 0);
    // The same for a plain message that is there.
    [[gnu::always_inline]] void complete_message(std::uint64_t seq, std::size_t length) {
        const Receive& done = receive(seq);
        if (done.multi || !core_.receives().succeed_first(seq)) [[unlikely]] {
            return complete_receive(seq, core::DtoStatus::success, length);
        }
        tally_.receive_bytes += length;
        report_message(done, length, done.address());
    }
    // The same, of a receive of one segment that serves one message.
    [[gnu::always_inline]] void complete_single(std::uint64_t seq, std::size_t length) {
        if (!core_.receives().succeed_first(seq)) [[unlikely]] {
            return complete_receive(seq, core::DtoStatus::success, length);
        }
        const Receive& done = receive(seq);
        tally_.receive_bytes += length;
        report_message(done, length, done.iov.base);
    }
    // The same two, of the next in posting order, for who reads that queue: what would be pushed.
    // False: it would not be, or not there; nothing happened.
    [[gnu::always_inline]] bool give_single(std::uint64_t seq, std::size_t length,
                                            const core::CompletionQueue& to,
                                            core::Success& success) {
        if (fast_receives_ != &to || !core_.receives().succeed_first(seq)) [[unlikely]] {
            return false;
        }
        const Receive& done = receive(seq);
        tally_.receive_bytes += length;
        success = {done.context, done.completion_flags, length, done.iov.base, 0};
        return true;
    }
    [[gnu::always_inline]] bool give_request(std::uint64_t seq, const core::CompletionQueue& to,
                                             core::Success& success) {
        const Request& done = request(seq);
        if (fast_requests_ != &to || !done.signaled || !core_.requests().succeed_first(seq))
            [[unlikely]] {
            return false;
        }
        success = {done.context, done.completion_flags, done.length, nullptr, 0};
        return true;
    }
    // Where a success is pushed that is reported and calls for nothing else; nullptr: there is
    // more to it.
    core::CompletionQueue* fast_queue(bool of_receives) const {
        return of_receives ? fast_receives_ : fast_requests_;
    }
    bool writes_take_receives() const { return writes_take_receives_; }
    // A write with data is placed that takes no receive. False: its completion would
    // be one too many for the queue; ask again when the program has read some.
    bool announce_write(std::size_t length, std::uint8_t how, std::uint64_t data,
                        bool whatever_waits = false);
    // The peer has read, or written, memory of this side under `key`.
    void remote_read(std::uint32_t key);
    void remote_written(std::uint32_t key);
    // RMR-4: everything before the bind has gone out. Completes it.
    void carry_out_bind(std::uint64_t seq);
    // A request is over. Completions go up in posting order.
    [[gnu::always_inline]] void finish_request(std::uint64_t seq, core::DtoStatus status) {
        if (status == core::DtoStatus::success && core_.requests().succeed_first(seq)) [[likely]] {
            const Request& done = request(seq);
            if (fast_requests_ && done.signaled) [[likely]] {
                fast_requests_->push({done.context, done.completion_flags, done.length, nullptr, 0,
                                      0, core::DtoStatus::success});
            } else {
                report(done, status);
            }
        } else if (core_.requests().finish(seq, status)) {
            complete_requests();
        }
    }
    // The connection ends by `stimulus` (peer_disconnected, broken, drained,
    // async_error). Outstanding operations are flushed, the event is raised and the
    // link is retired before this returns: a link returns to its caller at once.
    void over(core::Stimulus stimulus, core::Reason reason, Parting parting,
              std::uint32_t terminate_code = 0);
    // A request failed: it completes with `status`, those behind it as flushed, and
    // the connection is broken (STS-0).
    void request_failed(std::uint64_t seq, core::DtoStatus status, core::Reason reason,
                        Parting parting, std::uint32_t terminate_code = 0);
    // U-9: no receive was posted for the messages of an ending connection within the limit.
    // Logs it, and the connection is broken.
    void receives_missing();

  private:
    // The two ways into the state table, for this side's calls and for what happens to it.
    core::Outcome call(core::Stimulus stimulus);
    core::Outcome happen(core::Stimulus stimulus, core::Attempt of, core::Reason reason,
                         std::uint32_t terminate_code = 0);
    void expired() override; // the connect timeout, or too_many_
    void let_go(Parting parting);
    void part(core::Reason reason, Parting parting);
    void flush(core::Flush what);
    // `from`: the state that the stimulus met.
    void end_attempt(core::State from, core::Stimulus stimulus, core::Flush what,
                     core::Reason reason, Parting parting, std::span<const std::byte> private_data);
    void receive_posted(std::uint64_t seq, core::PostVerdict verdict);
    void complete_requests();
    void complete_receives();
    void count(const Request& request, core::DtoStatus status);
    // After a queue, a counter or shared receives were set, or divided_ has changed.
    void set_fast() {
        const bool all_closely = counted_ || divided_ > 0 || trace_ || tells_of_room_;
        closely_ = all_closely || sink_;
        receives_closely_ = counters_.receive || trace_;
        fast_requests_ = all_closely ? nullptr : request_cq_;
        fast_receives_ = receives_closely_ || context_ ? nullptr : receive_cq_;
    }
    bool may_share() const;
    std::uint64_t match_shared() { return adopt(take_shared()); }
    const Receive& take_shared();
    void passed_watermark(std::uint32_t count);
    bool goes_on(std::uint64_t seq, std::size_t used);
    void report(const Receive& receive, core::DtoStatus status, std::uint64_t seq = kPopped);
    void report(const Receive& r, core::DtoStatus status, std::size_t length, std::uint64_t data,
                std::size_t overflow, std::uint64_t seq = kPopped) {
        if (receives_closely_) [[unlikely]] {
            look_closely(r, status, length, seq);
        }
        const bool success = status == core::DtoStatus::success;
        if ((r.signaled || !success) && receive_cq_) [[likely]] {
            const std::uint64_t released = r.multi && !success ? arrival_flags_.released : 0;
            void* const buffer = context_ ? *context_ : r.address();
            receive_cq_->push(
                {r.context, r.completion_flags | released, length, buffer, data, overflow, status});
        }
    }
    void report(const Request& r, core::DtoStatus status) {
        if (closely_) [[unlikely]] {
            return report_closely(r, status);
        }
        report(r, status, r.length);
    }
    void report(const Request& r, core::DtoStatus status, std::uint64_t length) {
        const bool wanted =
            status == core::DtoStatus::success ? r.signaled : r.role != Role::silent; // DTO-21
        if (wanted && request_cq_) [[likely]] {
            request_cq_->push({r.context, r.completion_flags, length, nullptr, 0, 0, status});
        }
    }
    void report_closely(const Request& r, core::DtoStatus status);
    void report_to_program(const Request& r, core::DtoStatus status);
    // `seq`: kPopped, or that of a receive that is outstanding.
    static constexpr std::uint64_t kPopped = ~std::uint64_t{0};
    void look_closely(const Receive& r, core::DtoStatus status, std::size_t length,
                      std::uint64_t seq);
    [[gnu::always_inline]] void report_message(const Receive& done, std::size_t length,
                                               std::byte* buffer) {
        if (fast_receives_ && done.signaled) [[likely]] {
            fast_receives_->push({done.context, done.completion_flags, length, buffer, 0, 0,
                                  core::DtoStatus::success});
        } else {
            report(done, core::DtoStatus::success, length, 0, 0);
        }
    }
    std::uint64_t flags_of(std::uint8_t how) const;
    void raise(core::Event event, core::Reason reason, std::span<const std::byte> private_data);

    Domain& domain_;
    EndpointOwner& owner_;
    const void* zone_;
    core::Endpoint core_;
    // What the queues know of this endpoint.
    struct Requests final : core::CompletionQueue::Poster {
        explicit Requests(core::Endpoint& of) : core(of) {}
        void hold(bool on) override { core.hold_requests(on); }
        core::Endpoint& core;
    };
    struct Receives final : core::CompletionQueue::Poster {
        explicit Receives(core::Endpoint& of) : core(of) {}
        void hold(bool on) override { core.hold_receives(on); }
        core::Endpoint& core;
    };
    bool expect_more(const Limits& limits);
    void leave_queues();
    Requests request_poster_{core_};
    Receives receive_poster_{core_};
    // The slots of both directions, their extra segments, and the inline areas, in one
    // piece and not initialized: memory that is never used is never touched.
    struct Slots {
        Slots(std::size_t request_count, std::size_t receive_count, bool named);
        std::unique_ptr<std::byte[]> memory;
        Request* requests;
        Receive* receives;
        Iov* request_segments;
        Iov* receive_segments;
        std::byte* inline_areas;
        std::unique_ptr<const void*[]> names; // of segments: those of requests come first
        const void** receive_names;           // in `names`
    };
    Slots slots_;
    core::CompletionQueue* request_cq_ = nullptr;
    core::CompletionQueue* receive_cq_ = nullptr;
    // The same where a success that is reported is a completion, and no more than that.
    core::CompletionQueue* fast_requests_ = nullptr;
    core::CompletionQueue* fast_receives_ = nullptr;
    Tally tally_;
    std::unique_ptr<Handshake> handshake_;
    std::unique_ptr<Link> link_;
    std::unique_ptr<HalfClosed> half_closed_; // of the last connection
    std::unique_ptr<Companion> prepared_;
    std::uint64_t match_next_ = 0; // the receive that the next message takes
    std::uint64_t zone_from_ = 0;  // receives before this one are of another zone
    Reads reads_;
    std::uint32_t soft_watermark_ = UINT32_MAX;
    std::uint32_t hard_watermark_ = UINT32_MAX;
    std::uint32_t watermark_ = UINT32_MAX; // the lower one
    std::uint32_t too_many_ = 0;           // not 0: passed_watermark() is due, with it
    bool starved_ = false;
    bool awaits_peer_ = false;
    bool peer_left_at_once_ = false; // nothing can tell when it does
    bool writes_take_receives_ = false;
    bool counted_ = false;          // counters_ has any
    bool closely_ = false;          // report_closely() is due
    bool receives_closely_ = false; // the same for receives: look_closely()
    std::uint32_t divided_ = 0;     // operations of several requests that are outstanding
    // Of the oldest of them, as far as its requests have completed.
    struct Divided {
        std::uint64_t length = 0;
        core::DtoStatus status = core::DtoStatus::success; // the first that is none
    };
    Divided divided_so_far_;
    SharedReceives* shared_ = nullptr;
    MessageSink* sink_ = nullptr;
    bool tells_of_room_ = false;
    void* const* context_ = nullptr;
    std::chrono::microseconds patience_{0};
    std::uint64_t min_multi_ = 0;
    ArrivalFlags arrival_flags_;
    Counters counters_;
    core::Event last_end_ = core::Event::none;
    core::Reason reason_ = core::Reason::none;
    std::uint32_t terminate_code_ = 0;
    std::unique_ptr<EndpointTrace> trace_;
};

} // namespace dat::engine

#endif
