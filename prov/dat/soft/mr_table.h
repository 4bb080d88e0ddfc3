// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Registered memory of a domain: the only memory that a peer can touch. One
// 32-bit key space for every link. The domain's gate guards it.
// May include: core.
#ifndef DAT_SOFT_MR_TABLE_H
#define DAT_SOFT_MR_TABLE_H

#include "core/completion.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace dat::soft {

// What a peer may do with a region; a bit set.
enum Access : std::uint8_t {
    kRemoteRead = 1,
    kRemoteWrite = 2,
    kRemoteInvalidate = 4, // a Send with Invalidate may end the registration
};

// A registered range. Plain data; the table keeps a copy.
struct Region {
    std::byte* base = nullptr;
    std::uint64_t length = 0;        // bytes
    std::uint64_t address = 0;       // how a peer calls `base`: its virtual address, or 0
    const void* zone = nullptr;      // protection zone; an endpoint of another is refused
    std::uint8_t access = 0;         // of Access
    core::Counter* reads = nullptr;  // of peers' RDMA reads that were answered
    core::Counter* writes = nullptr; // of peers' RDMA writes that were placed
};

// Why an access was refused (RFC 5040 7.1, in the order of its checks).
enum class Refusal : std::uint8_t { none, unknown_key, wrong_zone, no_right, out_of_range };

struct Target {
    std::byte* at = nullptr; // nullptr: refused
    Refusal why = Refusal::none;
};

class MrTable {
  public:
    static constexpr std::uint64_t kKeyLimit = std::uint64_t{1} << 32;

    // Registers under `key`; false where that key is taken.
    bool add(std::uint32_t key, const Region& region) {
        return regions_.emplace(key, region).second;
    }
    // Registers under a random free key and returns it.
    std::uint32_t add(const Region& region);
    // From here on no peer reaches the region. False: no such key.
    bool remove(std::uint32_t key) { return regions_.erase(key) != 0; }

    // The memory behind `length` bytes at `address` of `key`, if an endpoint of
    // `zone` may use it with `access`. A range of length 0 is checked for key,
    // zone and right as well.
    Target find(std::uint32_t key, std::uint64_t address, std::uint64_t length, std::uint8_t access,
                const void* zone) const;

    std::size_t size() const { return regions_.size(); }

    // Binds counters to a region; nullptr leaves that as it is. False: no such key.
    bool count(std::uint32_t key, core::Counter* reads, core::Counter* writes);
    // Regions may have counters: the two below have something to do.
    bool counts() const { return counts_; }
    void count_read(std::uint32_t key) const;
    void count_write(std::uint32_t key) const;

  private:
    bool counts_ = false; // count() was called
    std::unordered_map<std::uint32_t, Region> regions_;
};

} // namespace dat::soft

#endif
