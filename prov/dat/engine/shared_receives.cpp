// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See shared_receives.h.
#include "engine/shared_receives.h"

namespace dat::engine {

// An endpoint that still has too little puts itself back at the end, so that each
// gets its turn.
void SharedReceives::feed() {
    base::List<Endpoint, Starved> due;
    due.take(starved_);
    while (!due.empty() && !empty()) {
        due.pop().receives_shared();
    }
    due.take(starved_);
    starved_.take(due);
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
        move_receive(receives_[(at + 1) & mask_], receives_[at & mask_], extra_segments(at));
    }
    --tail_;
    return true;
}

} // namespace dat::engine
