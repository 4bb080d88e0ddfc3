// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the fuzz targets share: an input taken apart from its front, and a check that
// holds in every build.
#ifndef TEST_FUZZ_INPUT_H
#define TEST_FUZZ_INPUT_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

// Ends the run as a finding.
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);    \
            std::abort();                                                                          \
        }                                                                                          \
    } while (false)

namespace fuzz {

using Bytes = std::vector<std::byte>;

// Numbers and bytes from the front of an input; zeros behind its end.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size)
        : rest_(reinterpret_cast<const std::byte*>(data), size) {}

    bool empty() const { return rest_.empty(); }
    std::size_t size() const { return rest_.size(); }
    std::uint8_t octet() {
        if (rest_.empty()) {
            return 0;
        }
        const auto value = std::to_integer<std::uint8_t>(rest_.front());
        rest_ = rest_.subspan(1);
        return value;
    }
    std::uint16_t word() {
        const std::uint8_t high = octet();
        return static_cast<std::uint16_t>(high << 8 | octet());
    }
    std::uint32_t number() {
        const std::uint16_t high = word();
        return std::uint32_t{high} << 16 | word();
    }
    // In memory of their own, so that a sanitizer sees every read beyond them.
    Bytes bytes(std::size_t most) {
        const auto front = rest_.first(std::min(most, rest_.size()));
        rest_ = rest_.subspan(front.size());
        return {front.begin(), front.end()};
    }
    Bytes rest() { return bytes(rest_.size()); }

  private:
    std::span<const std::byte> rest_;
};

} // namespace fuzz

#endif
