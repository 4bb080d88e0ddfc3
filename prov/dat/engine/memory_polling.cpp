// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory_polling.h.
#include "engine/memory_polling.h"

#include "base/reserve.h"
#include "engine/barrier.h"

#include <chrono>
#include <utility>

namespace dat::engine {

void MemoryPolling::expect_link() {
    base::reserve_for(awake_, link_count_ + 1);
    ++link_count_;
}

void MemoryPolling::expect_notifier(Notifier& notifier) {
    base::reserve_for(notifiers_, all_notifiers_.size() + 1);
    all_notifiers_.push_back(&notifier);
    notifier.say_processor(processor_);
}

void MemoryPolling::wake(MemoryLink& link) {
    if (awake_.empty()) { // how often the program looks is not known now
        looked_ = Clock::now();
        patience_ = share_of_polls_ = kPatience;
    }
    const auto place = awake_.size() == awake_.capacity() // then one of them is struck out
                           ? std::find(awake_.begin(), awake_.end(), nullptr)
                           : awake_.end();
    if (place != awake_.end()) {
        *place = &link;
    } else {
        awake_.push_back(&link);
    }
}

void MemoryPolling::let_sleep(MemoryLink& link) {
    if (link.arm()) {
        heavy_barrier();
    }
    if (link.has_news()) {
        link.disarm();
    } else {
        retire(link);
    }
}

void MemoryPolling::retire(const Link& link) {
    std::replace_if(
        awake_.begin(), awake_.end(), [&](const Link* each) { return each == &link; }, nullptr);
    any_struck_ = true;
}

// One that is done strikes itself out. So many in turn: what a program pays for each look does not
// grow with the processes that it shares memory with.
void MemoryPolling::poll_some_notifiers() {
    for (std::size_t left = std::min(notifiers_.size(), kNotifiersARound);
         left > 0 && !notifiers_.empty(); --left) {
        if (next_notifier_ == 0 || next_notifier_ > notifiers_.size()) {
            next_notifier_ = notifiers_.size();
        }
        notifiers_[--next_notifier_]->poll();
    }
}

void MemoryPolling::is_on_processor(int processor) {
    const auto number = static_cast<std::uint32_t>(processor + 1);
    if (number != std::exchange(processor_, number)) {
        for (Notifier* const notifier : all_notifiers_) {
            notifier->say_processor(number);
        }
    }
}

// Each has a cache line of its own, so they are not all looked at where there are many.
bool MemoryPolling::shares_processor() {
    constexpr std::size_t kAtOnce = 16;
    std::size_t left = processor_ != 0 ? std::min(all_notifiers_.size(), kAtOnce) : 0;
    for (; left > 0; --left) {
        next_processor_ = next_processor_ < all_notifiers_.size() ? next_processor_ : 0;
        if (all_notifiers_[next_processor_++]->peer_processor() == processor_) {
            return true;
        }
    }
    return false;
}

void MemoryPolling::looked(Clock::time_point now) {
    // A program that looks so seldom need not keep its links awake. Once may be for want of a
    // processor.
    constexpr std::chrono::milliseconds kSeldom{1};
    const bool late = now - std::exchange(looked_, now) > kSeldom;
    const bool seldom = late && looked_late_;
    looked_late_ = late;
    const std::size_t count = awake_.size();
    share_of_polls_ = count > 0 ? kPatience / static_cast<std::uint32_t>(count) : kPatience;
    patience_ = seldom || count > kFewAwake ? kReactorPeriod : share_of_polls_;
}

// A peer that takes something now and then is not to be reminded.
void MemoryPolling::remind_later(Clock::time_point now) {
    constexpr std::chrono::microseconds kPeriod{10};
    if (std::exchange(untold_is_new_, false)) {
        remind_at_ = now + kPeriod;
        taken_then_ = UINT64_MAX;
    } else if (now >= remind_at_) {
        remind_at_ = now + kPeriod;
        const std::uint64_t taken = untold_->taken_by_peer();
        if (std::exchange(taken_then_, taken) == taken) {
            remind_peer();
        }
    }
}

void MemoryPolling::remind_peer() { std::exchange(untold_, nullptr)->remind_peer(); }

bool MemoryPolling::rest_notifiers() {
    std::erase_if(notifiers_, [](Notifier* notifier) {
        notifier->arm();
        const bool has_news = notifier->has_news();
        if (has_news) {
            notifier->disarm();
        }
        return !has_news;
    });
    return notifiers_.empty();
}

bool MemoryPolling::rest() {
    std::erase(awake_, nullptr);
    bool barrier = false;
    for (MemoryLink* link : awake_) {
        barrier |= link->arm();
    }
    if (barrier) {
        heavy_barrier();
    }
    std::erase_if(awake_, [](MemoryLink* link) {
        const bool has_news = link->has_news();
        if (has_news) {
            link->disarm();
        }
        return !has_news;
    });
    return awake_.empty();
}

} // namespace dat::engine
