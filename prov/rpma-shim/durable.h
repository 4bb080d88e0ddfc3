// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How what is written to memory outlives the host (RPMA_FLUSH_TYPE_PERSISTENT).
#ifndef DAT_RPMA_DURABLE_H
#define DAT_RPMA_DURABLE_H

#include <cstddef>
#include <cstdint>

namespace dat::rpma {

enum class Durability : std::uint8_t {
    none,   // memory of no file, or a private copy of one: nothing outlives the process
    file,   // msync(2)
    direct, // mapped with MAP_SYNC: what has left the caches of the CPU is there
};

// Of all of the range. Reads what the kernel says of this process's mappings, which takes long.
Durability durability_of(const void* address, std::size_t size);

// Returns when it is durable. 0 or -errno. Blocks; no point of cancellation. Functions for
// fi_dat_ops_domain.set_flush().
int flush_file(void*, void* address, std::size_t size);
int flush_direct(void*, void* address, std::size_t size);

} // namespace dat::rpma

#endif
