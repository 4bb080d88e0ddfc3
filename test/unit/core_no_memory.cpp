// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// core::CompletionQueue, core::Endpoint and core::Matching without memory: what may be outstanding
// has its place, posts are held back before it has not, and what matches is found all the same.
// This program's operator new fails when it is told to.
#include "core/completion.h"
#include "core/endpoint.h"
#include "core/matching.h"

#include <criterion/criterion.h>

#include <cstdlib>
#include <new>

using dat::core::Completion;
using dat::core::CompletionQueue;
using dat::core::DtoStatus;
using dat::core::Endpoint;
using dat::core::PostVerdict;

namespace {

bool no_memory = false;   // for who asks without an exception
bool none_at_all = false; // for anybody

struct Scarce {
    Scarce() { no_memory = true; }
    ~Scarce() { no_memory = false; }
};

struct Queue final : CompletionQueue {
    void wake() override {}
};

struct Poster final : CompletionQueue::Poster {
    void hold(bool on) override { held = on; }
    bool held = false;
};

constexpr std::size_t kLimit = 200; // operations

Completion numbered(std::size_t number) {
    return {nullptr, 0, number, nullptr, 0, 0, DtoStatus::success};
}

} // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return no_memory || none_at_all ? nullptr : std::malloc(size);
}
void* operator new(std::size_t size) {
    void* const memory = none_at_all ? nullptr : std::malloc(size);
    if (!memory) {
        throw std::bad_alloc();
    }
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

Test(core_no_memory, queue_that_cannot_grow__holds_posts_while_all_that_is_out_still_fits) {
    Queue queue;
    Poster poster;
    cr_assert(queue.expect(kLimit));
    queue.join(poster);
    std::size_t pushed = 0;
    const Scarce scarce;
    for (; !poster.held; ++pushed) {
        cr_assert_lt(pushed, 10'000u, "it grows without memory");
        queue.push(numbered(pushed));
    }
    // As many as may be outstanding at that moment; the last one was among them.
    for (std::size_t i = 1; i < kLimit; ++i) {
        queue.push(numbered(pushed++));
    }
    cr_assert_eq(queue.size(), pushed);
    for (std::size_t i = 0; i < pushed; ++i) {
        cr_assert_eq(queue.front().length, i);
        queue.pop();
    }
    queue.try_again();
    cr_assert_not(poster.held, "what has been read is room again");
}

Test(core_no_memory, queue_that_was_short__goes_on_when_memory_is_there_again) {
    Queue queue;
    Poster poster;
    cr_assert(queue.expect(kLimit));
    queue.join(poster);
    {
        const Scarce scarce;
        for (std::size_t i = 0; !poster.held; ++i) {
            queue.push(numbered(i));
        }
        queue.try_again();
        cr_assert(poster.held);
    }
    queue.try_again();
    cr_assert_not(poster.held);
}

Test(core_no_memory, expect_without_memory__changes_nothing) {
    Queue queue;
    Poster poster;
    cr_assert(queue.expect(1));
    queue.join(poster);
    {
        const Scarce scarce;
        cr_assert_not(queue.expect(100'000));
        cr_assert_not(poster.held, "what was expected before is there");
    }
    cr_assert(queue.expect(100'000));
}

Test(core_no_memory, posts_that_are_held__are_refused_as_full_in_each_state_that_takes_them) {
    Endpoint endpoint(4, 4);
    std::uint64_t seq = 0;
    cr_assert_eq(endpoint.post_receive(seq), PostVerdict::posted);
    endpoint.hold_receives(true);
    cr_assert_eq(endpoint.post_receive(seq), PostVerdict::full);
    cr_assert_not(endpoint.takes_receive());
    cr_assert_eq(endpoint.post_request(seq), PostVerdict::refused, "the state comes first");
    endpoint.hold_receives(false);
    cr_assert_eq(endpoint.post_receive(seq), PostVerdict::posted);
}

Test(core_no_memory, matching_that_cannot_grow__finds_the_same) {
    using dat::core::kAnySource;
    using dat::core::Matching;
    constexpr std::uint64_t kMany = 3000;
    static dat::core::UnexpectedMessage messages[kMany];
    static dat::core::PostedReceive receives[kMany];
    for (const bool at_all : {false, true}) {
        Matching matching(1);
        (at_all ? none_at_all : no_memory) = true;
        for (std::uint64_t i = 0; i < kMany; ++i) {
            messages[i].from(i, 1);
            matching.keep(messages[i]);
        }
        std::uint64_t wrong = 0;
        for (std::uint64_t i = kMany; i-- > 0;) { // the one that came last, first
            receives[i].want(i, i % 2 == 0 ? 0 : 0x7fff0000, i % 3 == 0 ? kAnySource : 1);
            wrong += matching.post(receives[i]) == &messages[i] ? 0 : 1;
        }
        for (std::uint64_t i = 0; i < kMany; ++i) {
            wrong += matching.post(receives[i]) == nullptr ? 0 : 1;
        }
        for (std::uint64_t i = kMany; i-- > 0;) {
            wrong += matching.arrive(i, 1) == &receives[i] ? 0 : 1;
        }
        no_memory = none_at_all = false;
        cr_assert_eq(wrong, 0u);
        cr_assert_eq(matching.held() + matching.posted(), 0u);
    }
}
