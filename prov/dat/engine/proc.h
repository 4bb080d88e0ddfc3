// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the kernel tells in the files of /proc. No point of cancellation, and no allocation. Any
// thread.
#ifndef DAT_ENGINE_PROC_H
#define DAT_ENGINE_PROC_H

#include <span>
#include <string_view>

namespace dat::engine {

// The beginning of a file, as far as there is room; empty: it cannot be read. System calls.
std::string_view text_of(const char* file, std::span<char> room) noexcept;

// The number behind `key`, of which only the first 4 KiB are looked at; -1: there is none.
int number_in(const char* file, const char* key) noexcept;

} // namespace dat::engine

#endif
