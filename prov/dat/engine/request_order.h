// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The order of requests, whatever link carries them: which may go next, and which of those that
// have gone wait for the peer to place them. The link numbers them as it posts their bytes; it
// keeps what its reads are told apart by. Under the domain's lock.
#ifndef DAT_ENGINE_REQUEST_ORDER_H
#define DAT_ENGINE_REQUEST_ORDER_H

#include "engine/endpoint.h"

#include <algorithm>
#include <cstdint>

namespace dat::engine {

// DTO-24. Once it has begun nothing holds a request up. `begun`: some of it has gone; `waiting`: a
// read or atomic before it waits for its answer.
inline bool is_fenced(const Request& request, bool begun, bool waiting) {
    return request.fence && !begun && waiting;
}

// Whether a request may go next; a bind never does, carry_out_binds() sees to it.
// `asks`: it needs an answer, which is_answered() knows if the link adds none. `served`: the peer
// serves one request more that needs one (RDR-2).
inline bool may_go(const Request& request, bool begun, bool waiting, bool asks, bool served) {
    return (!asks || served) && request.op != OpCode::bind && !is_fenced(request, begun, waiting);
}

// RMR-4: carries out the binds whose turn it is. `next`: the request that is to go next, of which
// nothing has gone if it is a bind; it is moved behind them.
inline void carry_out_binds(Endpoint& endpoint, std::uint64_t& next, bool waiting) {
    while (next != endpoint.core().requests().next()) {
        const Request& request = endpoint.request(next);
        if (request.op != OpCode::bind || is_fenced(request, false, waiting)) {
            return;
        }
        endpoint.carry_out_bind(next++);
    }
}

// The requests that have gone and complete once the peer has placed them (U-61).
class Confirmations {
  public:
    explicit Confirmations(Endpoint& endpoint)
        : endpoint_(endpoint), next_(endpoint.core().requests().next()) {}

    bool awaited() const { return count_ > 0; }
    // It has gone, as number `ordinal` of the messages and writes. Precondition: its level is
    // not Level::taken.
    void await(Request& request, std::uint32_t ordinal) {
        request.ordinal = ordinal;
        ++count_;
    }
    // The peer has placed so many messages and writes: completes those among the requests before
    // `end`, which have gone. Requests complete in posting order, so one that waits is outstanding
    // still, and its slot its own.
    void placed(std::uint32_t ordinal, std::uint64_t end) {
        next_ = std::max(next_, endpoint_.core().requests().first());
        for (; next_ < end; ++next_) {
            const Request& request = endpoint_.request(next_);
            if (is_answered(request.op) || request.op == OpCode::bind ||
                request.level == Level::taken) {
                continue; // its answer confirms it, or nothing need
            }
            if (static_cast<std::int32_t>(ordinal - request.ordinal) < 0) {
                return;
            }
            --count_;
            endpoint_.finish_request(next_, core::DtoStatus::success);
        }
    }

  private:
    Endpoint& endpoint_;
    std::uint64_t next_;      // the oldest request that may wait
    std::uint32_t count_ = 0; // that wait
};

} // namespace dat::engine

#endif
