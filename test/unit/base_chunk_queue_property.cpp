// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Properties of base::ChunkQueue, against std::deque.
#include "base/chunk_queue.h"

#include <criterion/criterion.h>
#include <rapidcheck.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

using dat::base::ChunkQueue;

namespace {

using Queue = ChunkQueue<int, 4>; // small chunks: the edges are met often

std::vector<int> drain(Queue& queue) {
    std::vector<int> out;
    for (; !queue.empty(); queue.pop()) {
        out.push_back(queue.front());
    }
    return out;
}

enum class Step : std::uint8_t { push, pop, keep_ready, remove };

void check_same(Queue& queue, const std::deque<int>& model) {
    RC_ASSERT(queue.size() == model.size());
    RC_ASSERT(queue.empty() == model.empty());
    if (!model.empty()) {
        RC_ASSERT(queue.front() == model.front());
    }
}

void walk(const std::vector<std::pair<Step, std::uint8_t>>& steps) {
    Queue queue;
    std::deque<int> model;
    for (const auto& [step, value] : steps) {
        switch (step) {
        case Step::push:
            RC_ASSERT(queue.push(value));
            model.push_back(value);
            break;
        case Step::pop:
            if (!model.empty()) {
                queue.pop();
                model.pop_front();
            }
            break;
        case Step::keep_ready:
            RC_ASSERT(queue.keep_ready(value % 16));
            RC_ASSERT(queue.is_ready());
            break;
        case Step::remove: {
            const int divisor = value % 4 + 1;
            queue.remove_if([divisor](int item) { return item % divisor == 0; });
            std::erase_if(model, [divisor](int item) { return item % divisor == 0; });
            break;
        }
        }
        check_same(queue, model);
    }
    RC_ASSERT(drain(queue) == std::vector<int>(model.begin(), model.end()));
}

} // namespace

Test(base_chunk_queue, any_use__agrees_with_a_deque) {
    cr_assert(rc::check("ChunkQueue behaves as std::deque", [] {
        const auto step = rc::gen::weightedElement<Step>(
            {{10, Step::push}, {8, Step::pop}, {1, Step::keep_ready}, {1, Step::remove}});
        walk(*rc::gen::container<std::vector<std::pair<Step, std::uint8_t>>>(
            rc::gen::pair(step, rc::gen::arbitrary<std::uint8_t>())));
    }));
}
