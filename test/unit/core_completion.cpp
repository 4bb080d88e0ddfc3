// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// core::CompletionQueue: what a source offers.
#include "core/completion.h"

#include <criterion/criterion.h>

using dat::core::Completion;
using dat::core::CompletionQueue;
using dat::core::DtoStatus;
using dat::core::Success;

namespace {

struct Queue final : CompletionQueue {
    void wake() override { ++wakes; }
    int wakes = 0;
};

// Has so many successes, whose lengths count down.
struct Batch final : CompletionQueue::Source {
    explicit Batch(std::size_t count) : left(count) {}
    bool give(const CompletionQueue& to, Success& success) noexcept override {
        asked_by = &to;
        if (left == 0) {
            return false;
        }
        success = {nullptr, 0, left--, nullptr, 0};
        return true;
    }
    std::size_t left;
    const CompletionQueue* asked_by = nullptr;
};

constexpr Completion kDone{nullptr, 0, 0, nullptr, 0, 0, DtoStatus::success};

} // namespace

Test(core_completion, what_is_offered__is_drawn_in_order_until_there_is_no_more) {
    Queue queue;
    Batch batch(2);
    cr_assert(queue.offer(batch));
    cr_assert(queue.offered() && queue.empty());
    Success success{};
    cr_assert(queue.draw(success) && success.length == 2);
    cr_assert(queue.draw(success) && success.length == 1);
    cr_assert_eq(batch.asked_by, &queue);
    cr_assert(!queue.draw(success));
    cr_assert(!queue.offered());
}

Test(core_completion, source_that_stops__is_not_asked_and_another_may_offer) {
    Queue queue;
    Batch batch(1);
    Batch other(1);
    cr_assert(queue.offer(batch));
    cr_assert(!queue.offer(other), "one at a time");
    queue.stop(other);
    cr_assert(queue.offered(), "that was not its own");
    queue.stop(batch);
    cr_assert(!queue.offered());
    cr_assert(queue.offer(other));
}

Test(core_completion, queue_that_has_some_or_is_slept_on__takes_no_offer) {
    Queue queue;
    Batch batch(1);
    queue.push(kDone);
    cr_assert(!queue.offer(batch), "what was pushed comes first");
    queue.pop();
    queue.arm(true);
    cr_assert(!queue.offer(batch), "who sleeps is woken by a push only");
    queue.push(kDone);
    cr_assert_eq(queue.wakes, 1);
    queue.pop();
    queue.arm(false);
    cr_assert(queue.offer(batch));
}
