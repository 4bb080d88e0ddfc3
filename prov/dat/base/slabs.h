// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Blocks of one size that lie side by side and are not touched before they are used: what is large
// and seldom touched does not tear small objects around it apart into more pages.
// (std::pmr::unsynchronized_pool_resource does this too, but that of GCC 12 ends the process where
// an allocation fails.)
#ifndef DAT_BASE_SLABS_H
#define DAT_BASE_SLABS_H

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace dat::base {

// Size: bytes of a block, a multiple of its alignment, which is that of any object.
template <std::size_t Size> class Slabs {
  public:
    static_assert(Size % alignof(std::max_align_t) == 0);

    // Uninitialized. Throws std::bad_alloc, and nothing has changed then.
    void* take() {
        if (free_.empty()) {
            grow();
        }
        void* const block = free_.back();
        free_.pop_back();
        return block;
    }
    void give_back(void* block) noexcept { free_.push_back(block); } // there is room for all

  private:
    static constexpr std::size_t kBlocks = 64; // of a slab

    void grow() {
        auto slab = std::make_unique_for_overwrite<std::byte[]>(kBlocks * Size);
        free_.reserve((slabs_.size() + 1) * kBlocks);
        slabs_.push_back(std::move(slab));
        for (std::size_t i = kBlocks; i-- > 0;) {
            free_.push_back(slabs_.back().get() + i * Size);
        }
    }

    std::vector<std::unique_ptr<std::byte[]>> slabs_;
    std::vector<void*> free_;
};

} // namespace dat::base

#endif
