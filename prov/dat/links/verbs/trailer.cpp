// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See trailer.h.
#include "links/verbs/trailer.h"

#include "base/assert.h"

#include <algorithm>

namespace dat::verbs {
namespace {

// The trailer: magic, length, and a check over both and the size of the frame.
constexpr unsigned kMagic = 0xda;
constexpr unsigned kRefusal = 0xff; // in place of a length

unsigned check(unsigned length, std::size_t frame) {
    const unsigned word = kMagic << 16 | length << 8 | static_cast<unsigned>(frame & 0xff);
    return (word * 0x9e3779b1U) >> 16;
}

void finish(std::span<std::byte> frame, unsigned length) {
    const unsigned sum = check(length, frame.size());
    std::byte* const at = frame.data() + frame.size() - kTrailer;
    at[0] = std::byte(kMagic);
    at[1] = std::byte(length);
    at[2] = std::byte(sum >> 8 & 0xff);
    at[3] = std::byte(sum & 0xff);
}

} // namespace

void pad(std::span<const std::byte> data, std::span<std::byte> frame) {
    DAT_ASSERT(data.size() + kTrailer <= frame.size() && frame.size() <= 255);
    const auto end = std::copy(data.begin(), data.end(), frame.begin());
    std::fill(end, frame.end(), std::byte{0});
    finish(frame, static_cast<unsigned>(data.size()));
}

void pad_refusal(std::span<std::byte> frame) {
    std::ranges::fill(frame, std::byte{0});
    finish(frame, kRefusal);
}

Content content_of(std::span<const std::byte> frame) {
    if (frame.size() < kTrailer) {
        return {frame};
    }
    const std::byte* const at = frame.data() + frame.size() - kTrailer;
    const auto length = std::to_integer<unsigned>(at[1]);
    const unsigned sum = std::to_integer<unsigned>(at[2]) << 8 | std::to_integer<unsigned>(at[3]);
    const bool refusal = length == kRefusal;
    const std::size_t size = refusal ? 0 : length;
    if (at[0] != std::byte(kMagic) || sum != check(length, frame.size()) ||
        size + kTrailer > frame.size()) {
        return {frame};
    }
    const auto padding = frame.subspan(size, frame.size() - kTrailer - size);
    if (std::ranges::any_of(padding, [](std::byte byte) { return byte != std::byte{0}; })) {
        return {frame};
    }
    return {frame.first(size), refusal, true};
}

} // namespace dat::verbs
