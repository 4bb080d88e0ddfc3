// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The completion queues of an endpoint. They know how much of it may be outstanding, and that it
// posts: where they have no memory for what may complete, its posts are held back.
#ifndef DAT_ENGINE_ENDPOINT_QUEUES_H
#define DAT_ENGINE_ENDPOINT_QUEUES_H

#include "core/completion.h"
#include "core/endpoint.h"
#include "engine/operation_slots.h"

namespace dat::engine {

class EndpointQueues {
  public:
    // `core`: whose posts are held back.
    explicit EndpointQueues(core::Endpoint& core) : request_poster_(core), receive_poster_(core) {}

    core::CompletionQueue* requests() const { return requests_; }
    core::CompletionQueue* receives() const { return receives_; }

    // In place of those before; nullptr: completions of that direction are not wanted (EPA-2).
    // False: there is no memory for the room that they need; nothing changed.
    bool set(core::CompletionQueue* requests, core::CompletionQueue* receives,
             const OperationLimits& limits);
    // From here on `limits` hold, and no more those `before`. False: as above.
    bool expect(const OperationLimits& limits, const OperationLimits& before);
    // None, from here on.
    void leave(const OperationLimits& limits);
    // A post found no room: there may be some now.
    void look_for_room();

  private:
    // What the queues know of the endpoint.
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

    core::CompletionQueue* requests_ = nullptr;
    core::CompletionQueue* receives_ = nullptr;
    Requests request_poster_;
    Receives receive_poster_;
};

} // namespace dat::engine

#endif
