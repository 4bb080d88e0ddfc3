// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See endpoint_queues.h.
#include "engine/endpoint_queues.h"

namespace dat::engine {
namespace {

bool expect_more(core::CompletionQueue* requests, core::CompletionQueue* receives,
                 const OperationLimits& limits) {
    if (requests && !requests->expect(limits.requests)) {
        return false;
    }
    if (!receives || receives->expect(limits.receives)) {
        return true;
    }
    if (requests) {
        requests->expect_less(limits.requests);
    }
    return false;
}

void expect_less(core::CompletionQueue* requests, core::CompletionQueue* receives,
                 const OperationLimits& limits) {
    if (requests) {
        requests->expect_less(limits.requests);
    }
    if (receives) {
        receives->expect_less(limits.receives);
    }
}

} // namespace

bool EndpointQueues::expect(const OperationLimits& limits, const OperationLimits& before) {
    if (!expect_more(requests_, receives_, limits)) {
        return false;
    }
    expect_less(requests_, receives_, before);
    return true;
}

bool EndpointQueues::set(core::CompletionQueue* requests, core::CompletionQueue* receives,
                         const OperationLimits& limits) {
    if (!expect_more(requests, receives, limits)) {
        return false;
    }
    leave(limits);
    requests_ = requests;
    receives_ = receives;
    if (requests) {
        requests->join(request_poster_);
    }
    if (receives) {
        receives->join(receive_poster_);
    }
    return true;
}

void EndpointQueues::leave(const OperationLimits& limits) {
    expect_less(requests_, receives_, limits);
    if (requests_) {
        requests_->leave(request_poster_);
    }
    if (receives_) {
        receives_->leave(receive_poster_);
    }
    requests_ = receives_ = nullptr;
}

void EndpointQueues::look_for_room() {
    for (core::CompletionQueue* queue : {requests_, receives_}) {
        if (queue && queue->is_short()) {
            queue->try_again();
        }
    }
}

} // namespace dat::engine
