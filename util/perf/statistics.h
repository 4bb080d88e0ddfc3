// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Medians, and how sure they are. Nothing is assumed of how the values are distributed.
// May include: std.
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

} // namespace dat::perf

#endif
