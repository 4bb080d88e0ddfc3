// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See completion.h: where a queue takes its room from.
#include "core/completion.h"

#include "base/log.h"

namespace dat::core {

// Until the next chunk begins, what is ready suffices for all that may be outstanding. So it does
// for as long as posts are held back from the moment that it would not do so any more.
bool CompletionQueue::expect(std::size_t operations) {
    if (!queue_.keep_ready(expected_ + operations)) {
        queue_.keep_ready(expected_);
        return false;
    }
    expected_ += operations;
    return true;
}

void CompletionQueue::expect_less(std::size_t operations) {
    expected_ -= operations;
    replenish();
}

// A chunk is full. False: a completion that nobody posted is lost.
bool CompletionQueue::turn_over() {
    const bool there = queue_.begin_chunk();
    replenish();
    if (!there) {
        DAT_WARN(cq, "a completion is lost: out of memory");
    }
    return there;
}

void CompletionQueue::replenish() {
    const bool ready = queue_.keep_ready(expected_);
    if (ready != short_) {
        return;
    }
    short_ = !ready;
    if (short_) {
        DAT_WARN(cq, "out of memory for completions: posts are refused until some are read");
    }
    posters_.each([&](Poster& poster) { poster.hold(short_); });
}

} // namespace dat::core
