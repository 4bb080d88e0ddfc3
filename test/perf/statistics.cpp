// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Medians, quarters and intervals, against values worked out by hand.
#include "util/perf/statistics.h"
#include "util/perf/histogram.h"

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

// The textbook's distribution of the rank sum: of 20 ways to choose 3 of 6 one has the highest sum,
// one the next; of 70 ways to choose 4 of 8, two have U >= 15.
Test(perf_statistics, rank_sum__counts_the_ways_that_are_as_high) {
    cr_assert(near(chance_of_more({1, 2, 3}, {4, 5, 6}), 1.0 / 20));
    cr_assert(near(chance_of_more({1, 2, 4}, {3, 5, 6}), 2.0 / 20));
    cr_assert(near(chance_of_more({4, 5, 6}, {1, 2, 3}), 1));
    cr_assert(near(chance_of_more({1, 2, 3, 5}, {4, 6, 7, 8}), 2.0 / 70));
    cr_assert(near(chance_of_more({}, {1}), 1));
    cr_assert(near(least_chance(3, 3), 1.0 / 20) && near(least_chance(4, 4), 1.0 / 70));
}

// All equal: each way is as high as another. Of {1, 2} and {2, 3} the two twos share 2.5: of the
// six pairs of ranks {1, 2.5, 2.5, 4} two have at least 6.5.
Test(perf_statistics, rank_sum__shares_the_ranks_of_equal_values) {
    cr_assert(near(chance_of_more({1, 1}, {1, 1}), 1));
    cr_assert(near(chance_of_more({1, 2}, {2, 3}), 2.0 / 6));
}

Test(perf_statistics, rank_sum_of_many__is_as_that_of_few) {
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < 30; ++i) {
        a.push_back(i);
        b.push_back(i + 3.5);
    }
    const double exact = chance_of_more(a, b);
    a.push_back(14.75); // beyond 60 values: by the normal distribution
    cr_assert(std::fabs(exact - chance_of_more(a, b)) < 0.01, "%g", exact);
}

Test(perf_statistics, several_chances__are_held_against_one_bound) {
    const std::vector<double> all = adjusted({0.01, 0.04, 0.03});
    cr_assert(near(all[0], 0.03) && near(all[1], 0.06) && near(all[2], 0.06));
    cr_assert(near(adjusted({0.9, 0.8})[0], 1));
}

Test(perf_statistics, shift__is_the_median_of_all_quotients) {
    cr_assert(near(shift({1, 2, 4}, {2, 4, 8}), 2));
}

Test(perf_histogram, bucket__has_a_thirty_second_of_a_power_of_two) {
    for (std::uint64_t ns :
         {0ULL, 1ULL, 31ULL, 32ULL, 63ULL, 64ULL, 65ULL, 1000ULL, 123456789ULL}) {
        const std::size_t bucket = Histogram::bucket(ns);
        cr_assert(Histogram::begin_ns(bucket) <= ns && ns < Histogram::end_ns(bucket), "%llu",
                  static_cast<unsigned long long>(ns));
        cr_assert(32 * (Histogram::end_ns(bucket) - Histogram::begin_ns(bucket)) <=
                  std::max<std::uint64_t>(ns, 32));
    }
    cr_assert(Histogram::bucket(Histogram::kLongest_ns) == Histogram::kBuckets - 1);
    for (std::size_t i = 1; i < Histogram::kBuckets; ++i) {
        cr_assert_eq(Histogram::bucket(Histogram::begin_ns(i)), i);
        cr_assert_eq(Histogram::bucket(Histogram::begin_ns(i) - 1), i - 1);
    }
}

Test(perf_histogram, percentile__is_what_so_many_took_at_most) {
    Histogram single;
    for (int i = 0; i < 99; ++i) {
        single.record(10);
    }
    single.record(1'000'000);
    cr_assert_eq(single.percentile_ns(50), 10u);
    cr_assert_eq(single.percentile_ns(99), 10u);
    cr_assert_eq(single.percentile_ns(99.9), 1'000'000u);
    cr_assert_eq(single.percentile_ns(100), 1'000'000u);
    Histogram more;
    more.record(Histogram::kLongest_ns + 5);
    single.add(more);
    cr_assert_eq(single.total(), 101u);
    cr_assert_eq(single.most_ns(), Histogram::kLongest_ns + 5);
    cr_assert_eq(Histogram().percentile_ns(50), 0u);
}
