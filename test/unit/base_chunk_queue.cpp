// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// base::ChunkQueue by example.
#include "base/chunk_queue.h"

#include <criterion/criterion.h>

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

} // namespace

Test(base_chunk_queue, items__leave_in_the_order_they_came) {
    Queue queue;
    std::vector<int> expected;
    for (int i = 0; i < 100; ++i) {
        queue.push(i);
        expected.push_back(i);
    }
    cr_assert_eq(queue.size(), 100u);
    cr_assert(drain(queue) == expected);
    cr_assert(queue.empty());
}

// One chunk full to its last item, emptied, and used again.
Test(base_chunk_queue, chunk_filled_and_emptied__is_used_again) {
    Queue queue;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 4; ++i) {
            queue.push(i);
        }
        const std::vector<int> expected{0, 1, 2, 3};
        cr_assert(drain(queue) == expected);
    }
}

Test(base_chunk_queue, remove_if__keeps_the_order_of_the_rest) {
    Queue queue;
    for (int i = 0; i < 10; ++i) {
        queue.push(i);
    }
    queue.remove_if([](int item) { return item % 3 == 0; });
    const std::vector<int> expected{1, 2, 4, 5, 7, 8};
    cr_assert(drain(queue) == expected);
}
