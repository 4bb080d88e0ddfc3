// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See statistics.h. May include: std.
#include "statistics.h"

#include <algorithm>
#include <cmath>

namespace dat::perf {
namespace {

// The value at a part, 0 to 1, of sorted values.
double at_part(const std::vector<double>& sorted, double part) {
    const double place = part * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

// How probable it is that the median is below the k-th smallest of n values, k from 1:
// that fewer than k of n fall below it, each with probability 1/2.
double below_kth(std::size_t n, std::size_t k) {
    double sum = 0;
    double term = std::pow(0.5, static_cast<double>(n)); // n over 0
    for (std::size_t i = 0; i < k; ++i) {
        sum += term;
        term *= static_cast<double>(n - i) / static_cast<double>(i + 1);
    }
    return sum;
}

} // namespace

Spread spread(std::vector<double> values) {
    if (values.empty()) {
        return {};
    }
    std::sort(values.begin(), values.end());
    return {at_part(values, 0.25), at_part(values, 0.5), at_part(values, 0.75)};
}

double median(std::vector<double> values) { return spread(std::move(values)).median; }

Interval interval_of_median(std::vector<double> values, double confidence) {
    if (values.empty()) {
        return {};
    }
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    std::size_t k = 1;
    while (2 * (k + 1) <= n && 1 - 2 * below_kth(n, k + 1) >= confidence) {
        ++k;
    }
    return {values[k - 1], values[n - k], std::max(0.0, 1 - 2 * below_kth(n, k))};
}

std::vector<double> quotients(const std::vector<double>& values, const std::vector<double>& by) {
    std::vector<double> all;
    for (std::size_t i = 0; i < std::min(values.size(), by.size()); ++i) {
        all.push_back(values[i] / by[i]);
    }
    return all;
}

} // namespace dat::perf
