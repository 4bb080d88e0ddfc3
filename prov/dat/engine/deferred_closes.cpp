// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See deferred_closes.h.
#include "engine/deferred_closes.h"

namespace dat::engine {

void DeferredCloses::end_all() {
    destroy(open_);
    destroy(dismissed_);
}

void DeferredCloses::add(std::unique_ptr<DeferredClose> deferred_close) {
    // Peers that leave the end open must not use up the descriptors.
    constexpr std::size_t kMost = 256;
    if (count_ == kMost) {
        DeferredClose* last = &open_.front();
        bool found = false;
        open_.each([&](DeferredClose& each) {
            if (!found && !each.owes()) {
                found = true;
                last = &each;
            }
        });
        dismiss(*last);
    }
    open_.push(*deferred_close.release());
    ++count_;
}

bool DeferredCloses::dismiss(DeferredClose& deferred_close) {
    if (deferred_close.dismissed_) { // not buried yet
        return false;
    }
    deferred_close.dismissed_ = true;
    --count_;
    open_.remove(deferred_close);
    dismissed_.push(deferred_close);
    return true;
}

bool DeferredCloses::owes() {
    bool any = false;
    open_.each([&](const DeferredClose& each) { any = any || each.owes(); });
    return any;
}

void DeferredCloses::destroy(List& owned) {
    while (!owned.empty()) {
        delete &owned.pop();
    }
}

} // namespace dat::engine
