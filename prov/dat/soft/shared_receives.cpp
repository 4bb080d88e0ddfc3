// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See shared_receives.h. May include: soft.
#include "soft/shared_receives.h"

namespace dat::soft {

// An endpoint that still has too little puts itself back at the end, so that each
// gets its turn.
void SharedReceives::feed() {
    for (std::size_t turns = starved_.size(); turns > 0 && !starved_.empty() && !empty(); --turns) {
        Endpoint& endpoint = *starved_.front();
        starved_.erase(starved_.begin());
        endpoint.receives_shared();
    }
}

bool SharedReceives::cancel(const void* context) {
    std::uint64_t at = head_;
    while (at != tail_ && receives_[at & mask_].context != context) {
        ++at;
    }
    if (at == tail_) {
        return false;
    }
    for (; at + 1 != tail_; ++at) {
        move_receive(receives_[(at + 1) & mask_], receives_[at & mask_], aside(at));
    }
    --tail_;
    return true;
}

} // namespace dat::soft
