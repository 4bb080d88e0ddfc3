// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The DAT endpoint: state, attempt, and the accounting of both directions.
// No I/O, clock, thread or libfabric; the real domains, the simulator and the
// model search drive the same class. A plain value: copies are independent.
// The owner serializes all calls.
//
// How a domain uses it:
//   1. it calls call() for what the Consumer does, happen() for everything
//      else, and acts on the Outcome: Outcome.event is to be raised now,
//      Outcome.flush says what must complete as flushed;
//   2. it posts, finishes and pops operations through requests() and
//      receives(), and queues every popped completion before it raises an event;
//   3. in State::ending, once quiet(), it calls happen(flushed): the event
//      recorded on entering ENDING comes back to be raised (EP-68);
//   4. in State::disconnect_pending, once requests().idle() and the peer has
//      confirmed delivery, it calls happen(drained) (U-42).
#ifndef DAT_CORE_ENDPOINT_H
#define DAT_CORE_ENDPOINT_H

#include "core/dto_stream.h"
#include "core/ep_state.h"

#include <cstdint>

namespace dat::core {

// The identity of a connection attempt (EP-67). Never reused by an endpoint.
enum class Attempt : std::uint32_t {};

// What a stimulus did.
struct Outcome {
    Verdict verdict;
    Event event; // to be raised now; never `recorded`
    Flush flush; // what the domain must now complete as flushed

    bool refused() const { return verdict == Verdict::refuse || verdict == Verdict::impossible; }
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

// The answer to a post.
enum class PostVerdict : std::uint8_t {
    posted,  // the operation is outstanding
    flushed, // accepted and finished as flushed: pop it and queue its completion (FLS-1)
    refused, // wrong state (EP-23, EP-24)
    full,    // as many outstanding as the stream allows (DTO-5)
};

class Endpoint {
  public:
    // `initial` is unconnected, or tentative_connection_pending for an endpoint
    // that the provider makes for a request (EP-48).
    Endpoint(std::uint32_t request_limit, std::uint32_t receive_limit,
             State initial = State::unconnected)
        : requests_(request_limit), receives_(receive_limit), state_(initial) {
        set_verdicts();
    }

    State state() const { return state_; }
    // EP-68: what a Consumer may see of state().
    State visible_state() const {
        return state_ == State::ending ? State::disconnect_pending : state_;
    }
    // The current attempt. Changes when an attempt begins and when it is over
    // for good (reset, free): happenings of any other are dropped (EP-67).
    Attempt attempt() const { return attempt_; }
    // In State::ending the event that ends the attempt, else Event::none (EP-68).
    Event recorded() const { return recorded_; }

    DtoStream& requests() { return requests_; }
    DtoStream& receives() { return receives_; }
    const DtoStream& requests() const { return requests_; }
    const DtoStream& receives() const { return receives_; }
    // Nothing is outstanding in either direction.
    bool quiet() const { return requests_.idle() && receives_.idle(); }

    // A call of the Consumer (class api). post_request and post_recv go
    // through post_request() and post_receive().
    Outcome call(Stimulus stimulus);

    // A wire, timer or local happening of the attempt `of`. One of another
    // attempt never reaches the table (EP-67): verdict ignore.
    Outcome happen(Stimulus stimulus, Attempt of);

    // Posts an operation; `seq` is its number where the verdict is posted or flushed.
    PostVerdict post_request(std::uint64_t& seq) { return post(request_verdict_, requests_, seq); }
    PostVerdict post_receive(std::uint64_t& seq) { return post(receive_verdict_, receives_, seq); }

    // The verdict would be posted.
    bool takes_request() const {
        return request_verdict_ == PostVerdict::posted && !requests_.full();
    }
    bool takes_receive() const {
        return receive_verdict_ == PostVerdict::posted && !receives_.full();
    }

    // Posts are refused as if as many were outstanding as may be, whatever the state says of
    // them: nobody could be told of their end.
    void hold_requests(bool on) {
        requests_held_ = on;
        set_verdicts();
    }
    void hold_receives(bool on) {
        receives_held_ = on;
        set_verdicts();
    }
    bool holds_receives() const { return receives_held_; }

    // Finishes as flushed what `what` names. For a domain that can let go of
    // its operations at once; another finishes them one by one.
    void flush(Flush what);

    friend bool operator==(const Endpoint&, const Endpoint&) = default;

  private:
    Outcome apply(Stimulus stimulus);
    void enter(State next); // the one place that writes state_
    void set_verdicts();
    static PostVerdict post(PostVerdict verdict, DtoStream& stream, std::uint64_t& seq) {
        seq = stream.next();
        if (verdict != PostVerdict::posted || stream.full()) [[unlikely]] {
            return post_otherwise(verdict, stream);
        }
        stream.post();
        return PostVerdict::posted;
    }
    static PostVerdict post_otherwise(PostVerdict verdict, DtoStream& stream);

    DtoStream requests_;
    DtoStream receives_;
    State state_;
    bool requests_held_ = false;
    bool receives_held_ = false;
    // What the state says of posts, and full where they are held back.
    PostVerdict request_verdict_{};
    PostVerdict receive_verdict_{};
    Event recorded_ = Event::none; // in ENDING: the event that ends the attempt
    Attempt attempt_{0};
};

} // namespace dat::core

#endif
