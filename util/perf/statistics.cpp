// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See statistics.h.
#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

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

namespace {

constexpr std::size_t kExact = 60;

// Twice the rank of each, from 2; those that are equal share theirs.
std::vector<std::size_t> double_ranks(const std::vector<double>& all) {
    std::vector<std::size_t> ranks;
    for (const double value : all) {
        const auto below = static_cast<std::size_t>(
            std::ranges::count_if(all, [=](double other) { return other < value; }));
        const auto equal = static_cast<std::size_t>(std::ranges::count(all, value));
        ranks.push_back(2 * below + equal + 1);
    }
    return ranks;
}

// Of all ways to choose `count` of the ranks, the part whose sum is at least that.
double part_with_sum(const std::vector<std::size_t>& ranks, std::size_t count, std::size_t sum) {
    const std::size_t all = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
    std::vector<std::vector<double>> ways(count + 1, std::vector<double>(all + 1));
    ways[0][0] = 1;
    for (const std::size_t rank : ranks) {
        for (std::size_t chosen = count; chosen > 0; --chosen) {
            for (std::size_t at = all; at >= rank; --at) {
                ways[chosen][at] += ways[chosen - 1][at - rank];
            }
        }
    }
    const std::vector<double>& last = ways[count];
    const double total = std::accumulate(last.begin(), last.end(), 0.0);
    return std::accumulate(last.begin() + static_cast<std::ptrdiff_t>(sum), last.end(), 0.0) /
           total;
}

// The same by the normal distribution with the ranks' mean and variance.
double normal_part(const std::vector<std::size_t>& ranks, std::size_t count, std::size_t sum) {
    const auto n = static_cast<double>(ranks.size());
    const auto k = static_cast<double>(count);
    double mean = 0;
    double square = 0;
    for (const std::size_t rank : ranks) {
        mean += static_cast<double>(rank) / n;
        square += static_cast<double>(rank * rank) / n;
    }
    const double variance = k * (n - k) / (n - 1) * (square - mean * mean);
    if (variance <= 0) {
        return 1;
    }
    const double above = static_cast<double>(sum) - 1 - k * mean; // half a rank, doubled
    return std::erfc(above / std::sqrt(2 * variance)) / 2;
}

} // namespace

double chance_of_more(const std::vector<double>& before, const std::vector<double>& now) {
    if (before.empty() || now.empty()) {
        return 1;
    }
    std::vector<double> all = now;
    all.insert(all.end(), before.begin(), before.end());
    const std::vector<std::size_t> ranks = double_ranks(all);
    const std::size_t sum = std::accumulate(
        ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(now.size()), std::size_t{0});
    return all.size() <= kExact ? part_with_sum(ranks, now.size(), sum)
                                : normal_part(ranks, now.size(), sum);
}

double least_chance(std::size_t before, std::size_t now) {
    double ways = 1; // before + now over now
    for (std::size_t i = 1; i <= now; ++i) {
        ways *= static_cast<double>(before + i) / static_cast<double>(i);
    }
    return 1 / ways;
}

double shift(const std::vector<double>& before, const std::vector<double>& now) {
    std::vector<double> all;
    for (const double a : now) {
        for (const double b : before) {
            all.push_back(a / b);
        }
    }
    return median(std::move(all));
}

std::vector<double> adjusted(const std::vector<double>& chances) {
    std::vector<std::size_t> order(chances.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return chances[i]; });
    std::vector<double> all(chances.size());
    double least = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto left = static_cast<double>(order.size() - i);
        least = std::max(least, std::min(1.0, left * chances[order[i]]));
        all[order[i]] = least;
    }
    return all;
}

std::vector<double> quotients(const std::vector<double>& values, const std::vector<double>& by) {
    std::vector<double> all;
    for (std::size_t i = 0; i < std::min(values.size(), by.size()); ++i) {
        all.push_back(values[i] / by[i]);
    }
    return all;
}

} // namespace dat::perf
