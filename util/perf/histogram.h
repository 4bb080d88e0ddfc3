// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How often single operations took how long, in the way of HdrHistogram: each power of two
// nanoseconds is divided into 32 equal parts, so what is read differs from what was recorded by
// at most 1/32 of it. Fixed size, no allocation, and as it is through a socket.
#ifndef DAT_UTIL_PERF_HISTOGRAM_H
#define DAT_UTIL_PERF_HISTOGRAM_H

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dat::perf {

class Histogram {
  public:
    static constexpr unsigned kPartBits = 5;
    static constexpr std::uint64_t kParts = 1U << kPartBits;
    static constexpr std::uint64_t kLongest_ns = (std::uint64_t{1} << 36) - 1; // 68 s
    static constexpr std::size_t kBuckets = (36 - kPartBits + 1) * kParts;

    // What takes longer counts as the longest; the maximum is kept as it is.
    void record(std::uint64_t ns) {
        ++counts_[bucket(std::min(ns, kLongest_ns))];
        ++total_;
        most_ns_ = std::max(most_ns_, ns);
    }
    void add(const Histogram& other) {
        for (std::size_t i = 0; i < kBuckets; ++i) {
            counts_[i] += other.counts_[i];
        }
        total_ += other.total_;
        most_ns_ = std::max(most_ns_, other.most_ns_);
    }
    std::uint64_t total() const { return total_; }
    std::uint64_t most_ns() const { return most_ns_; }
    std::uint64_t count(std::size_t bucket) const { return counts_[bucket]; }

    // The least that so many of a hundred took at most, as the upper end of its bucket; 0 where
    // nothing was recorded. Of 100 it is the maximum itself.
    std::uint64_t percentile_ns(double percent) const {
        const double wanted = percent / 100 * static_cast<double>(total_);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < kBuckets; ++i) {
            sum += counts_[i];
            if (sum > 0 && static_cast<double>(sum) >= wanted) {
                return std::min(end_ns(i) - 1, most_ns_);
            }
        }
        return most_ns_;
    }

    // A bucket has what took from begin_ns() to below end_ns().
    static std::size_t bucket(std::uint64_t ns) {
        if (ns < kParts) {
            return ns;
        }
        const auto shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kPartBits;
        return ((shift + 1) << kPartBits) + ((ns >> shift) - kParts);
    }
    static std::uint64_t begin_ns(std::size_t bucket) {
        const std::size_t power = bucket >> kPartBits;
        const std::uint64_t part = bucket & (kParts - 1);
        return power == 0 ? part : (kParts + part) << (power - 1);
    }
    static std::uint64_t end_ns(std::size_t bucket) { return begin_ns(bucket + 1); }

  private:
    std::uint64_t total_ = 0;
    std::uint64_t most_ns_ = 0;
    std::array<std::uint32_t, kBuckets> counts_{};
};

} // namespace dat::perf

#endif
