// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See plain.h.
#include "plain.h"

namespace fuzz {

bool all_are(std::span<const std::byte> bytes, std::byte value) {
    // Not memcmp(): a sanitizer would look at all of it first.
    std::byte differ{0};
    for (const std::byte each : bytes) {
        differ |= each ^ value;
    }
    return differ == std::byte{0};
}

std::size_t count_with(std::span<const pollfd> all, short events) {
    std::size_t count = 0;
    for (const pollfd& each : all) {
        count += each.revents == events ? 1 : 0;
    }
    return count;
}

void fill(std::span<std::byte> bytes, std::byte value) {
    for (std::byte& each : bytes) {
        each = value;
    }
}

void clear(std::span<std::byte> bytes) { fill(bytes, std::byte{0}); }

void fill_message(std::span<std::byte> bytes, std::uint32_t message, std::size_t offset) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t at = offset + i;
        bytes[i] = static_cast<std::byte>(message * 31 + at * 7 + (at >> 8));
    }
}

namespace {
std::byte of_response(std::size_t read, std::size_t at) {
    return static_cast<std::byte>(read * 59 + at * 3 + (at >> 8));
}
} // namespace

void fill_response(std::span<std::byte> bytes, std::size_t read, std::size_t offset) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = of_response(read, offset + i);
    }
}

bool is_response(std::span<const std::byte> bytes, std::size_t read) {
    bool same = true;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        same &= bytes[i] == of_response(read, i);
    }
    return same;
}

} // namespace fuzz
