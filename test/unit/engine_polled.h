// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory that a program looks at to learn that a write has come, over any link.
#ifndef TEST_UNIT_ENGINE_POLLED_H
#define TEST_UNIT_ENGINE_POLLED_H

#include "engine_harness.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <criterion/criterion.h>
#include <span>
#include <thread>
#include <vector>

namespace engine_test {

// A thread that looks at the last word of a write sees all of it when it sees that. Of the pair,
// a writes and b is written to.
template <class Link, class Pair>
void a_write_is_there_when_its_last_word_is(Pair& pair, dat::engine::Domain& domain) {
    // Fewer where both threads wait for processors.
    constexpr std::uint64_t kRounds = 500;
    constexpr std::chrono::seconds kLongest{4};
    using Clock = std::chrono::steady_clock;
    for (const std::size_t words : {1u, 9u, 100u, 2000u, 20'000u}) {
        std::vector<std::uint64_t> target(words);
        std::vector<std::uint64_t> out(words);
        const auto bytes_of = [](std::vector<std::uint64_t>& v) {
            return std::as_writable_bytes(std::span(v));
        };
        const auto key = domain.regions().add({bytes_of(target).data(), bytes_of(target).size(), 0,
                                               &Side::zone, dat::engine::kRemoteWrite});
        std::atomic<std::uint64_t> seen{0};
        std::atomic<std::uint64_t> torn{0};
        std::atomic<std::uint64_t> last{kRounds};
        std::thread poller([&] {
            for (std::uint64_t round = 1; round <= last; ++round) {
                while (std::atomic_ref(target.back()).load(std::memory_order_acquire) != round) {
                    if (round > last) {
                        return;
                    }
                }
                for (std::uint64_t& word : target) {
                    torn += std::atomic_ref(word).load(std::memory_order_relaxed) != round;
                }
                seen = round;
            }
        });
        const auto end = Clock::now() + kLongest;
        for (std::uint64_t round = 1; round <= last; ++round) {
            std::ranges::fill(out, round);
            pair.a.template rma<Link>(dat::engine::OpCode::write, bytes_of(out), key, 0);
            cr_assert(pair.run([&] { return !pair.a.requests.empty() && seen == round; }));
            pair.a.requests.take();
            if (Clock::now() > end) {
                last = round;
            }
        }
        poller.join();
        cr_assert_eq(torn.load(), 0u, "%zu words", words);
        domain.regions().remove(key);
    }
}

} // namespace engine_test

#endif
