// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Objects that come and go, in memory that is kept.
#ifndef DAT_RDM_POOL_H
#define DAT_RDM_POOL_H

#include "base/attempt.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dat::rdm {

// So many at most. What is taken is as it was given back, or as its constructor left it.
template <class T> class Pool {
  public:
    static constexpr std::size_t kBatch = 64;

    explicit Pool(std::size_t most = std::size_t(-1)) : most_(most) {}

    // nullptr: there is no memory, or as many are taken as may be.
    T* take() {
        if (empty() && !grow()) [[unlikely]] {
            return nullptr;
        }
        return free_[--free_count_];
    }
    void give_back(T& object) noexcept { free_[free_count_++] = &object; }
    bool empty() const { return free_count_ == 0; }
    std::size_t size() const { return size_; } // taken or not
    std::size_t used() const { return size_ - free_count_; }
    std::size_t left() const { return most_ - used(); }
    // As made, from the first on.
    T& at(std::size_t index) { return (*batches_[index / kBatch])[index % kBatch]; }

    // What grow() adds.
    std::size_t next_batch() const { return std::min(kBatch, most_ - size_); }
    // False: there is no memory, or there are as many as may be.
    bool grow() {
        const std::size_t added = next_batch();
        return added > 0 && base::attempt([&] {
                   auto batch = std::make_unique<std::array<T, kBatch>>();
                   free_.resize(size_ + added);
                   batches_.push_back(std::move(batch));
                   for (std::size_t i = added; i-- > 0;) {
                       give_back((*batches_.back())[i]);
                   }
                   size_ += added;
               });
    }

  private:
    const std::size_t most_;
    std::size_t size_ = 0;
    std::vector<std::unique_ptr<std::array<T, kBatch>>> batches_;
    std::vector<T*> free_; // the first free_count_; there is room for all
    std::size_t free_count_ = 0;
};

} // namespace dat::rdm

#endif
