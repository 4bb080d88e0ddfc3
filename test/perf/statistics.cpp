// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Medians, quarters and intervals, against values worked out by hand.
// May include: util/perf, std.
#include "util/perf/statistics.h"

#include <criterion/criterion.h>

#include <cmath>
#include <numeric>

using namespace dat::perf;

namespace {

bool near(double a, double b) { return std::fabs(a - b) < 1e-9; }

std::vector<double> up_to(int n) {
    std::vector<double> values(static_cast<std::size_t>(n));
    std::iota(values.rbegin(), values.rend(), 1.0); // the order must not matter
    return values;
}

} // namespace

Test(perf_statistics, median__is_the_middle_or_between_the_two) {
    cr_assert(near(median({3, 1, 2}), 2));
    cr_assert(near(median({4, 1, 3, 2}), 2.5));
    cr_assert(near(median({7}), 7));
    cr_assert(near(median({}), 0));
}

Test(perf_statistics, quarters__are_between_the_neighbours) {
    const Spread five = spread(up_to(5));
    cr_assert(near(five.low, 2) && near(five.median, 3) && near(five.high, 4));
    const Spread four = spread(up_to(4));
    cr_assert(near(four.low, 1.75) && near(four.high, 3.25));
}

// Of n values, all are on one side of the median with probability 2 / 2^n.
Test(perf_statistics, few_values__give_the_extremes_and_what_they_are_worth) {
    const Interval five = interval_of_median(up_to(5));
    cr_assert(near(five.low, 1) && near(five.high, 5));
    cr_assert(near(five.confidence, 1 - 2.0 / 32));
    const Interval one = interval_of_median({3});
    cr_assert(near(one.low, 3) && near(one.high, 3) && near(one.confidence, 0));
    cr_assert(near(interval_of_median({}).confidence, 0));
}

// The textbook's table of the sign test: for 95 % of n = 8 the extremes, of 9 the second
// from either end, of 12 the third, of 20 the sixth.
Test(perf_statistics, interval__is_the_narrowest_that_is_sure_enough) {
    const struct {
        int n;
        double low;
        double confidence;
    } kRows[] = {{6, 1, 0.96875},
                 {8, 1, 0.9921875},
                 {9, 2, 0.9609375},
                 {12, 3, 0.961426},
                 {20, 6, 0.958611}};
    for (const auto& row : kRows) {
        const Interval interval = interval_of_median(up_to(row.n));
        cr_assert(near(interval.low, row.low), "n = %d: %g", row.n, interval.low);
        cr_assert(near(interval.high, row.n + 1 - row.low), "n = %d", row.n);
        cr_assert(std::fabs(interval.confidence - row.confidence) < 1e-6, "n = %d: %g", row.n,
                  interval.confidence);
    }
}

Test(perf_statistics, quotients__are_of_values_that_belong_together) {
    const std::vector<double> all = quotients({2, 9, 4}, {1, 3});
    cr_assert_eq(all.size(), 2u);
    cr_assert(near(all[0], 2) && near(all[1], 3));
}
