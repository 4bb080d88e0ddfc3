// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See random.h.
#include "engine/random.h"

#include "engine/kernel.h"

#include <random>
#include <sys/random.h>

namespace dat::engine {

std::uint64_t random_bits() {
    const kernel::NoCancel within;
    std::uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
        std::random_device device; // a kernel without getrandom(2)
        bits = (std::uint64_t{device()} << 32) | device();
    }
    return bits;
}

} // namespace dat::engine
