// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The endpoint of the software domain, as links and those who use it see it: the DAT core, and
// beside it the slots of its operations, which receives messages take, what is told of those that
// are over, and what carries the connection. Neutral about the link. All calls are made under the
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
#include "engine/completions.h"
#include "engine/connection.h"
#include "engine/endpoint_owner.h"
#include "engine/link.h"
#include "engine/operation.h"
#include "engine/operation_slots.h"
#include "engine/reactor.h"
#include "engine/receive_matching.h"
#include "engine/tally.h"
#include "engine/trace.h"
#include "engine/watermarks.h"

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

struct Starved; // the list of SharedReceives that an endpoint may be in
struct Counted; // that of Statistics

class Endpoint : public base::Hook<Starved>, public base::Hook<Counted>, private Timer {
  public:
    using Limits = OperationLimits;
    using Counters = Completions::Counters;

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
    // How operations that are over are told of.
    Completions& completions() { return completions_; }
    Tally& tally() { return completions_.tally(); }
    const Tally& tally() const { return completions_.tally(); }
    const void* zone() const { return zone_; }
    // EPA-7: receives that are posted already belong to the zone before.
    void set_zone(const void* zone);
    bool of_old_zone(std::uint64_t receive) const { return matching_.of_old_zone(receive); }
    // While no request is outstanding. False, and nothing changed: more receives than
    // that are posted. Throws std::bad_alloc.
    bool resize(const Limits& limits);
    Limits limits() const { return {core_.requests().limit(), core_.receives().limit()}; }
    ConnectionOptions& connection_options() { return connection_options_; }
    const ConnectionOptions& connection_options() const { return connection_options_; }
    const ConnectionOptions::Reads& reads() const { return connection_options_.reads; }
    // SRQ-11; UINT32_MAX: none. May report or end the connection at once.
    void set_watermarks(std::uint32_t soft, std::uint32_t hard);
    // It has one: so a receive that has completed is to count as such at once.
    bool watched() const { return watermarks_.any(); }
    // nullptr: completions of that direction are not wanted (EPA-2). False: there is no memory
    // for the room that they need; nothing changed.
    bool set_queues(core::CompletionQueue* requests, core::CompletionQueue* receives) {
        return completions_.set_queues(requests, receives, limits());
    }
    // A post found no room: there may be some now.
    void look_for_room() { completions_.queues().look_for_room(); }
    // Receives come from there; before any is posted or a connection begins.
    // `context`: whose value goes with each shared receive, as the buffer of its completion.
    void set_shared(SharedReceives* shared, void* const* context = nullptr) {
        matching_.set_shared(shared);
        completions_.set_receive_context(context);
    }
    SharedReceives* shared() const { return matching_.shared(); }
    // Messages go there and take no receives; before a connection begins.
    void set_sink(MessageSink* sink) { completions_.set_sink(sink); }
    MessageSink* sink() const { return completions_.sink(); }
    // What a kind of link has made for the next connection; nullptr: nothing. Gone with free().
    std::unique_ptr<Companion>& prepared() { return prepared_; }
    template <class Kind> std::unique_ptr<Kind> take_prepared() {
        return std::unique_ptr<Kind>(static_cast<Kind*>(prepared_.release()));
    }
    // What it writes down (FI_DAT_TRACE); nullptr: nothing. Decided when it is made.
    EndpointTrace* trace() { return trace_.get(); }
    const core::Endpoint& core() const { return core_; }
    Link* link() { return connection_.link(); } // nullptr: not connected
    const Link* link() const { return connection_.link(); }
    // Of the last attempt; none before an end and after reset.
    const AttemptEnd& last_end() const { return last_end_; }

    // --- the Consumer's calls; false: refused by the state, nothing changed ---

    // EP-10. begin_connect() first, to know whether it is allowed; then the caller
    // makes a handshake for attempt() and passes it to run(). `timeout`: TMO-1.
    bool begin_connect(std::optional<std::chrono::microseconds> timeout);
    // EP-15.
    bool begin_accept();
    void run(std::unique_ptr<Handshake> handshake) { connection_.begin(std::move(handshake)); }
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

    // --- posts (engine/post.h) ---

    // A receive is posted; `seq` is its slot's number. Fill receive(seq), then call
    // receive_filled(seq).
    core::PostVerdict begin_receive(std::uint64_t& seq) { return core_.post_receive(seq); }
    // `taken`: the link has it already.
    void receive_filled(std::uint64_t seq, core::PostVerdict verdict, bool taken = false) {
        if (verdict == core::PostVerdict::flushed || (starved() && !taken) ||
            watermarks_.passed(core_.receives().outstanding())) [[unlikely]] {
            receive_posted(seq, verdict);
        }
    }
    // The same for requests; the link's transmit() is up to the caller.
    core::PostVerdict begin_request(std::uint64_t& seq) { return core_.post_request(seq); }
    // The same two where it is known that they may be posted: core().takes_request(),
    // takes_receive().
    std::uint64_t begin_taken_request() { return core_.requests().post(); }
    std::uint64_t begin_taken_receive() { return core_.receives().post(); }
    // A slot was filled. At the post, since the length is at hand there.
    void count_posted(const Request& request) { tally().request_bytes += request.length; }
    // After begin_request() said flushed, and the slot was filled (FLS-1).
    void request_flushed() { complete_requests(); }
    // Takes back the oldest receive with that context that no message has taken: its completion is
    // flushed, and those behind it are not affected. False: there is none.
    bool cancel_receive(const void* context);

    // --- the slot of an operation that is outstanding, or was popped last ---

    Request& request(std::uint64_t seq) { return slots_.request(request_at(seq)); }
    const Request& request(std::uint64_t seq) const { return slots_.request(request_at(seq)); }
    Receive& receive(std::uint64_t seq) { return slots_.receive(receive_at(seq)); }
    Iov* request_extra_segments(std::uint64_t seq) { return slots_.request_iov(request_at(seq)); }
    Iov* receive_extra_segments(std::uint64_t seq) { return slots_.receive_iov(receive_at(seq)); }
    // What the memory of each segment is registered as, by its descriptor (fi_mr_desc(3)), which
    // may be nullptr; all of it is nullptr where posts do not say.
    const void** request_names(std::uint64_t seq) { return slots_.request_names(request_at(seq)); }
    const void** receive_names(std::uint64_t seq) { return slots_.receive_names(receive_at(seq)); }
    std::byte* inline_area(std::uint64_t seq) { return slots_.inline_area(request_at(seq)); }
    // It was accepted, it changes something at the peer, and its success is not reported: it
    // goes out also where the connection is ended before it did.
    bool is_owed(const Request& r) const { return only_acts(r) && !completions_.is_told_of(r); }
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
    // For HalfClosed: see EndpointOwner.
    void peer_left();

    // --- the link's calls ---

    // The oldest receive that no message has been matched with; false: none.
    bool has_receive() { return matching_.has_receive(core_); }
    // That is the receive with this number, which was just posted.
    bool matches_next(std::uint64_t seq) const { return matching_.next() == seq; }
    // Takes it.
    void match_posted() { matching_.take(); }
    // Takes it. Precondition: has_receive().
    std::uint64_t match_receive() {
        return matching_.all_matched(core_.receives()) ? match_shared() : matching_.take();
    }
    // A message, or a part of one, is in that shared receive, which is this endpoint's from
    // here on, also while the connection ends. Precondition: !core().receives().full().
    std::uint64_t adopt(const Receive& shared);
    // The oldest receive of this endpoint's own, and of its zone, that no message has been
    // matched with; nullptr: has_receive() has to look further.
    const Receive* next_receive() {
        return matching_.next_is_fit(core_.receives()) ? &receive(matching_.next()) : nullptr;
    }
    // There is a message without a receive: Link::receive_posted() is wanted.
    void set_starved(bool starved);
    bool starved() const { return matching_.starved(); }
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
        completions_.succeeded(done, length, done.address());
    }
    // The same, of a receive of one segment that serves one message.
    [[gnu::always_inline]] void complete_single(std::uint64_t seq, std::size_t length) {
        if (!core_.receives().succeed_first(seq)) [[unlikely]] {
            return complete_receive(seq, core::DtoStatus::success, length);
        }
        const Receive& done = receive(seq);
        completions_.succeeded(done, length, done.iov.base);
    }
    // For who reads that queue: the success of the next in posting order, which is what would be
    // pushed. False: it would not be, or not there; nothing happened.
    [[gnu::always_inline]] bool give_single(std::uint64_t seq, std::size_t length,
                                            const core::CompletionQueue& to,
                                            core::Success& success) {
        if (completions_.fast_receives() != &to || !core_.receives().succeed_first(seq))
            [[unlikely]] {
            return false;
        }
        completions_.give(receive(seq), length, success);
        return true;
    }
    [[gnu::always_inline]] bool give_request(std::uint64_t seq, const core::CompletionQueue& to,
                                             core::Success& success) {
        const Request& done = request(seq);
        if (completions_.fast_requests() != &to || !done.signaled ||
            !core_.requests().succeed_first(seq)) [[unlikely]] {
            return false;
        }
        Completions::give(done, success);
        return true;
    }
    // Where a success is pushed that is reported and calls for nothing else; nullptr: there is
    // more to it.
    core::CompletionQueue* fast_queue(bool of_receives) const {
        return of_receives ? completions_.fast_receives() : completions_.fast_requests();
    }
    // The peer has read, or written, memory of this side under `key`.
    void remote_read(std::uint32_t key);
    void remote_written(std::uint32_t key);
    // RMR-4: everything before the bind has gone out. Completes it.
    void carry_out_bind(std::uint64_t seq);
    // A request is over. Completions go up in posting order.
    [[gnu::always_inline]] void finish_request(std::uint64_t seq, core::DtoStatus status) {
        if (status == core::DtoStatus::success && core_.requests().succeed_first(seq)) [[likely]] {
            completions_.succeeded(request(seq));
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
    void expired() override; // the connect timeout, or a watermark's turn
    void stop_timer();
    void flush(core::Flush what);
    // `from`: the state that the stimulus met.
    void end_attempt(core::State from, core::Stimulus stimulus, core::Flush what,
                     core::Reason reason, Parting parting, std::span<const std::byte> private_data);
    void receive_posted(std::uint64_t seq, core::PostVerdict verdict);
    void complete_requests();
    void complete_receives();
    std::uint32_t request_at(std::uint64_t seq) const { return core_.requests().slot(seq); }
    std::uint32_t receive_at(std::uint64_t seq) const { return core_.receives().slot(seq); }
    std::uint64_t match_shared() { return adopt(matching_.take_shared()); }
    void passed_watermark(std::uint32_t count);
    void raise(core::Event event, core::Reason reason, std::span<const std::byte> private_data);

    Domain& domain_;
    EndpointOwner& owner_;
    const void* zone_;
    core::Endpoint core_;
    OperationSlots slots_;
    Completions completions_;
    Connection connection_;
    ConnectionOptions connection_options_;
    std::unique_ptr<Companion> prepared_;
    ReceiveMatching matching_;
    Watermarks watermarks_;
    AttemptEnd last_end_;
    std::unique_ptr<EndpointTrace> trace_;
};

} // namespace dat::engine

#endif
