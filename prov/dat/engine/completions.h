// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is told of an endpoint's operations that are over: completions in its queues, counts, and
// what its sink and a trace want to know. That they are over, and in which order, is decided by
// core::DtoStream before.
#ifndef DAT_ENGINE_COMPLETIONS_H
#define DAT_ENGINE_COMPLETIONS_H

#include "core/completion.h"
#include "core/endpoint.h"
#include "engine/endpoint_owner.h"
#include "engine/endpoint_queues.h"
#include "engine/operation.h"
#include "engine/tally.h"
#include "engine/trace.h"

#include <cstddef>
#include <cstdint>

namespace dat::engine {

class Completions {
  public:
    // What finished operations are counted by; nullptr: not at all.
    struct Counters {
        core::Counter* send = nullptr;
        core::Counter* write = nullptr;
        core::Counter* read = nullptr;
        core::Counter* receive = nullptr;
        core::Counter* remote_read = nullptr;
        core::Counter* remote_write = nullptr;
    };
    // `seq` of an operation that is reported: it was popped last, and is none that is outstanding.
    static constexpr std::uint64_t kPopped = ~std::uint64_t{0};

    explicit Completions(core::Endpoint& core) : core_(core), queues_(core) { set_fast(); }
    Completions(const Completions&) = delete;
    Completions& operator=(const Completions&) = delete;

    // --- who is told ---

    // As EndpointQueues.
    bool set_queues(core::CompletionQueue* requests, core::CompletionQueue* receives,
                    const OperationLimits& limits) {
        const bool set = queues_.set(requests, receives, limits);
        set_fast();
        return set;
    }
    void leave_queues(const OperationLimits& limits) {
        queues_.leave(limits);
        set_fast();
    }
    EndpointQueues& queues() { return queues_; }
    void set_counters(const Counters& counters);
    const Counters& counters() const { return counters_; }
    void set_trace(EndpointTrace* trace) {
        trace_ = trace;
        set_fast();
    }
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
    // Whose value goes with each receive in place of where the message begins; nullptr: nothing.
    void set_receive_context(void* const* context) {
        context_ = context;
        set_fast();
    }
    void set_arrival_flags(const ArrivalFlags& flags) { arrival_flags_ = flags; }
    // A `multi` receive is released once fewer bytes of it are left.
    void set_min_multi(std::uint64_t bytes) { min_multi_ = bytes; }
    // U-62: a write with data takes a receive, and is not announced.
    void set_writes_take_receives(bool on) { writes_take_receives_ = on; }
    bool writes_take_receives() const { return writes_take_receives_; }
    Tally& tally() { return tally_; }
    const Tally& tally() const { return tally_; }

    // --- requests ---

    // Several requests that are one operation: the last of them has Role::last, those before it
    // are its parts.
    void begin_divided() {
        ++divided_;
        set_fast();
    }
    // The success of such a request is told to the program.
    bool is_told_of(const Request& r) const {
        return (r.signaled || r.role == Role::part) && queues_.requests();
    }
    [[gnu::always_inline]] void succeeded(const Request& done) {
        if (fast_requests_ && done.signaled) [[likely]] {
            fast_requests_->push({done.context, done.completion_flags, done.length, nullptr, 0, 0,
                                  core::DtoStatus::success});
        } else {
            report(done, core::DtoStatus::success);
        }
    }
    void report(const Request& r, core::DtoStatus status) {
        if (closely_) [[unlikely]] {
            return report_closely(r, status);
        }
        report(r, status, r.length);
    }

    // --- receives ---

    // A plain message is in it.
    [[gnu::always_inline]] void succeeded(const Receive& done, std::size_t length,
                                          std::byte* buffer) {
        tally_.receive_bytes += length;
        if (fast_receives_ && done.signaled) [[likely]] {
            fast_receives_->push({done.context, done.completion_flags, length, buffer, 0, 0,
                                  core::DtoStatus::success});
        } else {
            report(done, core::DtoStatus::success, length, 0, 0);
        }
    }
    // As complete_receive() of the endpoint left it.
    void report(const Receive& r, core::DtoStatus status, std::uint64_t seq = kPopped);
    // A message is in a receive for several. True: it has room for more, and the message
    // is reported by itself; everything posted before it has completed already, since
    // messages come one after the other.
    bool goes_on(Receive& r, std::uint64_t seq, std::size_t used);
    // The completion flags of what arrived so; of Arrived.
    std::uint64_t flags_of(std::uint8_t how) const;
    // A write with data is placed that takes no receive. False: its completion would
    // be one too many for the queue; ask again when the program has read some.
    bool announce_write(std::size_t length, std::uint8_t how, std::uint64_t data,
                        bool whatever_waits = false);

    // --- for who reads the queue himself ---

    // Where a success is pushed that is reported and calls for nothing else; nullptr: there is
    // more to it.
    core::CompletionQueue* fast_requests() const { return fast_requests_; }
    core::CompletionQueue* fast_receives() const { return fast_receives_; }
    // What would be pushed there of an operation that has succeeded.
    static void give(const Request& done, core::Success& success) {
        success = {done.context, done.completion_flags, done.length, nullptr, 0};
    }
    // A receive of one segment, which a plain message is in; it counts as reported.
    void give(const Receive& done, std::size_t length, core::Success& success) {
        tally_.receive_bytes += length;
        success = {done.context, done.completion_flags, length, done.iov.base, 0};
    }

  private:
    // After what it depends on has changed.
    void set_fast() {
        const bool all_closely = counted_ || divided_ > 0 || trace_ || tells_of_room_;
        closely_ = all_closely || sink_;
        receives_closely_ = counters_.receive || trace_;
        fast_requests_ = all_closely ? nullptr : queues_.requests();
        fast_receives_ = receives_closely_ || context_ ? nullptr : queues_.receives();
    }
    void report(const Receive& r, core::DtoStatus status, std::size_t length, std::uint64_t data,
                std::size_t overflow, std::uint64_t seq = kPopped) {
        if (receives_closely_) [[unlikely]] {
            look_closely(r, status, length, seq);
        }
        const bool success = status == core::DtoStatus::success;
        if ((r.signaled || !success) && queues_.receives()) [[likely]] {
            const std::uint64_t released = r.multi && !success ? arrival_flags_.released : 0;
            void* const buffer = context_ ? *context_ : r.address();
            queues_.receives()->push(
                {r.context, r.completion_flags | released, length, buffer, data, overflow, status});
        }
    }
    void report(const Request& r, core::DtoStatus status, std::uint64_t length) {
        const bool wanted =
            status == core::DtoStatus::success ? r.signaled : r.role != Role::silent; // DTO-21
        if (wanted && queues_.requests()) [[likely]] {
            queues_.requests()->push(
                {r.context, r.completion_flags, length, nullptr, 0, 0, status});
        }
    }
    void count(const Request& r, core::DtoStatus status);
    void report_closely(const Request& r, core::DtoStatus status);
    void report_to_program(const Request& r, core::DtoStatus status);
    void look_closely(const Receive& r, core::DtoStatus status, std::size_t length,
                      std::uint64_t seq);

    const core::Endpoint& core_; // what a trace names operations by
    EndpointQueues queues_;
    // Those where a success that is reported is a completion, and no more than that.
    core::CompletionQueue* fast_requests_ = nullptr;
    core::CompletionQueue* fast_receives_ = nullptr;
    Tally tally_;
    bool counted_ = false;          // counters_ has any for requests
    bool closely_ = false;          // report_closely() is due
    bool receives_closely_ = false; // the same for receives: look_closely()
    bool tells_of_room_ = false;
    bool writes_take_receives_ = false;
    std::uint32_t divided_ = 0; // operations of several requests that are outstanding
    // Of the oldest of them, as far as its requests have completed.
    struct Divided {
        std::uint64_t length = 0;
        core::DtoStatus status = core::DtoStatus::success; // the first that is none
    };
    Divided divided_so_far_;
    MessageSink* sink_ = nullptr;
    EndpointTrace* trace_ = nullptr;
    void* const* context_ = nullptr;
    std::uint64_t min_multi_ = 0;
    ArrivalFlags arrival_flags_;
    Counters counters_;
};

} // namespace dat::engine

#endif
