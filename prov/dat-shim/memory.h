// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Protection zones, memory regions, memory windows; and the check of a local segment.
#ifndef DAT_SHIM_MEMORY_H
#define DAT_SHIM_MEMORY_H

#include "dat-shim/object.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <sys/uio.h>
#include <vector>

struct fid_mr;

namespace dat::shim {

class Ep;

// PZ-1: its number is the authorization key of what has it.
class Pz final : public Object {
  public:
    static constexpr Kind kKind = Kind::pz;
    explicit Pz(Ia& ia);
    const std::uint64_t* key() const { return &key_; }
    // As it is in a pass; never 0.
    std::uint64_t pass() const { return key_ << 32; }

    static Return create(Ia& ia, Pz*& pz);
    Return free(); // PZ_IN_USE while `users`

  private:
    const std::uint64_t key_;
};

enum class MemoryType : std::uint32_t {
    virtual_memory = 0,
    lmr = 1,
    shared = 2,
    strongly_ordered = 3
};

class Lmr final : public Object {
  public:
    static constexpr Kind kKind = Kind::lmr;
    struct Asked {
        MemoryType type;
        std::byte* address;      // virtual_memory, shared
        const Lmr* other;        // lmr
        const std::byte* cookie; // shared: 40 bytes
        std::uint64_t length;    // bytes
        Pz* pz;
        std::uint32_t privileges;
        bool zero_based;
    };
    static constexpr std::size_t kCookieSize = 40;

    Lmr(Ia& ia, const Asked& asked);
    ~Lmr() override;

    // LMR-1..LMR-6
    static Return create(Ia& ia, Asked asked, Lmr*& lmr);
    Return free(); // LMR-7

    std::uint32_t lmr_context() const { return lmr_context_; }
    std::uint32_t rmr_context() const { return rmr_context_; }
    fid_mr* region() const { return region_; }
    Asked asked; // address, length: what is registered
    std::array<std::byte, kCookieSize> cookie{};
    void* source_handle = nullptr; // of the LMR that it was made from
    std::uint64_t first() const;   // how the Consumer names its first byte

  private:
    Return open();
    fid_mr* region_ = nullptr;
    std::uint32_t lmr_context_ = 0; // 0: not in the table
    std::uint32_t rmr_context_ = 0; // LMR-5
};

// The registered memory of an IA by lmr_context. Looking up takes no lock: an entry is
// written while nobody may know its context, except who uses a context after dat_lmr_free.
class LmrTable {
  public:
    // What a region is to the fast path: zone and context in one, or 0 without the
    // right. One compare asks for all of it.
    using Pass = std::uint64_t;
    static Pass pass(Pass zone, std::uint32_t context) { return zone | context; }

    struct alignas(64) Entry {
        std::atomic<Pass> to_read{0};
        std::atomic<Pass> to_write{0};
        std::uint64_t end = 0; // behind its last byte, as the Consumer names it
        std::uint64_t length = 0;
        std::uint64_t shift = 0; // to the virtual address
        const Pz* pz = nullptr;
        Lmr* lmr = nullptr;
        std::atomic<std::uint32_t> context{0}; // 0: free
        std::uint32_t privileges = 0;

        void copy(const Entry& other);
    };
    static_assert(sizeof(Entry) == 64);
    struct Region {
        std::uint64_t first; // as the Consumer names it
        std::uint64_t length;
        std::uint64_t shift;
        const Pz* pz;
        Lmr* lmr;
        std::uint32_t privileges;
    };

    LmrTable(); // throws std::bad_alloc
    LmrTable(const LmrTable&) = delete;
    LmrTable& operator=(const LmrTable&) = delete;
    ~LmrTable();
    // 0: the table is full. Throws std::bad_alloc.
    std::uint32_t add(const Region& what);
    void remove(std::uint32_t context);
    // Where that context is, if it is one. Any other has a place too, where it is not.
    const Entry& place(std::uint32_t context) const {
        const std::uint32_t mask = mask_.load(std::memory_order_acquire); // first: see grow()
        return entries_.load(std::memory_order_acquire)[context >> kGenerationBits & mask];
    }
    const Entry* find(std::uint32_t context) const {
        const Entry& entry = place(context);
        return entry.context.load(std::memory_order_relaxed) == context ? &entry : nullptr;
    }

  private:
    static constexpr std::uint32_t kGenerationBits = 12; // so a context is not used again soon
    static constexpr std::uint32_t kEntries = std::uint32_t{1} << (32 - kGenerationBits);
    static constexpr std::uint32_t kFirstEntries = 64;
    struct Free {
        std::uint32_t index;
        std::uint32_t generation;
    };

    void grow(); // throws std::bad_alloc

    std::atomic<Entry*> entries_;
    std::atomic<std::uint32_t> mask_; // as many, less 1; a power of two
    std::mutex mutex_;                // the rest, and writing
    // The table and those before it, which somebody may be reading.
    std::vector<std::unique_ptr<Entry[]>> tables_;
    std::uint32_t used_ = 0;
    std::vector<Free> free_;
};

// DTO-2, DTO-3: a segment of a post becomes memory. `need`: of privilege::.
template <class Triplet>
inline Return check_segment(const LmrTable& table, const Pz* pz, std::uint32_t need,
                            const Triplet& segment, iovec& out) {
    const LmrTable::Entry* entry = table.find(segment.lmr_context);
    if (!entry) [[unlikely]] {
        return fail(Type::privileges_violation);
    }
    if (entry->pz != pz) [[unlikely]] {
        return fail(Type::protection_violation);
    }
    if ((entry->privileges & need) != need) [[unlikely]] {
        return fail(Type::privileges_violation,
                    need == privilege::kLocalRead ? Sub::privileges_read : Sub::privileges_write);
    }
    const std::uint64_t first = segment.virtual_address;
    const std::uint64_t length = segment.segment_length;
    const std::uint64_t rest = entry->end - first; // more than all of it: not within
    if (rest > entry->length || length > rest) [[unlikely]] {
        return bad_argument(3);
    }
    out = {reinterpret_cast<void*>(first + entry->shift), length};
    return kSuccess;
}

// The same in one answer: false where anything is wrong. `zone`: the PZ's pass.
template <std::uint32_t need, class Triplet>
inline bool is_good_segment(const LmrTable& table, LmrTable::Pass zone, const Triplet& segment,
                            iovec& out) {
    const std::uint32_t context = segment.lmr_context;
    const LmrTable::Entry& entry = table.place(context);
    const auto& right = need == privilege::kLocalRead ? entry.to_read : entry.to_write;
    if (right.load(std::memory_order_relaxed) != LmrTable::pass(zone, context)) [[unlikely]] {
        return false;
    }
    const std::uint64_t first = segment.virtual_address;
    const std::uint64_t length = segment.segment_length;
    const std::uint64_t rest = entry.end - first;
    if (rest > entry.length || length > rest) [[unlikely]] {
        return false;
    }
    out = {reinterpret_cast<void*>(first + entry.shift), length};
    return true;
}

// RMR-1..RMR-10
class Rmr final : public Object {
  public:
    static constexpr Kind kKind = Kind::rmr;
    struct Bound { // as of the last bind
        Lmr* lmr = nullptr;
        std::uint32_t lmr_context = 0;
        std::uint64_t address = 0; // as that of the LMR
        std::uint64_t length = 0;  // 0: unbound
        std::uint32_t privileges = 0;
        bool zero_based = false;
    };

    Rmr(Ia& ia, Pz& pz);
    ~Rmr() override;

    static Return create(Pz& pz, Rmr*& rmr);
    Return free();

    std::uint32_t rmr_context() const; // 0: unbound
    fid_mr* window() const { return window_; }
    Pz& pz;
    Bound bound;

  private:
    fid_mr* window_ = nullptr;
};

} // namespace dat::shim

#endif
