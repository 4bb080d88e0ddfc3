// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Medians, and how sure they are. Nothing is assumed of how the values are distributed.
#ifndef DAT_UTIL_PERF_STATISTICS_H
#define DAT_UTIL_PERF_STATISTICS_H

#include <cstddef>
#include <vector>

namespace dat::perf {

// The values in the middle, and the quarters below and above them (linear between the
// neighbours). All zero where there are no values.
struct Spread {
    double low = 0; // a quarter of the values is below
    double median = 0;
    double high = 0; // a quarter is above
};
Spread spread(std::vector<double> values);

double median(std::vector<double> values);

// Two of the values themselves (order statistics), between which the median of what they
// were drawn from lies with at least the confidence: the k-th smallest and the k-th
// largest, k as large as that allows. Fewer than six values cannot give 0.95; then it is
// the smallest and the largest, and `confidence` says what that is worth.
struct Interval {
    double low = 0;
    double high = 0;
    double confidence = 0;
};
Interval interval_of_median(std::vector<double> values, double confidence = 0.95);

// Quotients of values that belong together, in order. As many as the shorter has.
std::vector<double> quotients(const std::vector<double>& values, const std::vector<double>& by);

// How probable it is that values drawn from where `before` comes from are ranked as high as
// `now`, or higher, by chance: the rank sum test of Mann, Whitney and Wilcoxon, one-sided, over all
// ways to divide the values; by the normal distribution where there are more than 60. 1 where
// either has no values.
double chance_of_more(const std::vector<double>& before, const std::vector<double>& now);

// The least that it can be with so many values.
double least_chance(std::size_t before, std::size_t now);

// The median of all quotients of one of `now` and one of `before` (Hodges and Lehmann).
double shift(const std::vector<double>& before, const std::vector<double>& now);

// Chances of several comparisons, each so that it may be held against the same bound as one would
// be alone (Holm).
std::vector<double> adjusted(const std::vector<double>& chances);

} // namespace dat::perf

#endif
