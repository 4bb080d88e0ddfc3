// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What targets do with many bytes, compiled without coverage and sanitizers: as part of a
// target it would take most of its time.
#ifndef TEST_FUZZ_PLAIN_H
#define TEST_FUZZ_PLAIN_H

#include <cstddef>
#include <cstdint>
#include <poll.h>
#include <span>

namespace fuzz {

// Whether each byte is that one.
bool all_are(std::span<const std::byte> bytes, std::byte value);

// How many of them have just that in `revents`.
std::size_t count_with(std::span<const pollfd> all, short events);

void fill(std::span<std::byte> bytes, std::byte value);

// Zeros.
void clear(std::span<std::byte> bytes);

// Message number `message` of a peer that sends; `offset`: of the first byte within it.
void fill_message(std::span<std::byte> bytes, std::uint32_t message, std::size_t offset);

// The response to read number `read`.
void fill_response(std::span<std::byte> bytes, std::size_t read, std::size_t offset);
bool is_response(std::span<const std::byte> bytes, std::size_t read);

} // namespace fuzz

#endif
