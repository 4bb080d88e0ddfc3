// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Random numbers that a peer cannot guess: keys, steering tags, names.
#ifndef DAT_ENGINE_RANDOM_H
#define DAT_ENGINE_RANDOM_H

#include <cstdint>

namespace dat::engine {

// 64 bits from the kernel (getrandom(2)), drawn some at a time by each thread, and drawn anew in a
// process that has been forked. Does not fail and does not block once the system is up. From any
// thread. For set-up only.
std::uint64_t random_bits();

} // namespace dat::engine

#endif
