// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Objects that come and go, in memory that is kept.
#ifndef DAT_RDM_POOL_H
#define DAT_RDM_POOL_H

#include "base/attempt.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dat::rdm {

// What is taken is as it was given back, or as its constructor left it.
template <class T> class Pool {
  public:
    static constexpr std::size_t kBatch = 64;

    // nullptr: there is no memory.
    T* take() {
        if (free_.empty() && !grow()) [[unlikely]] {
            return nullptr;
        }
        T* const taken = free_.back();
        free_.pop_back();
        return taken;
    }
    void give_back(T& object) noexcept { free_.push_back(&object); } // there is room for all
    bool empty() const { return free_.empty(); }
    std::size_t size() const { return batches_.size() * kBatch; } // taken or not
    std::size_t used() const { return size() - free_.size(); }
    // As made, from the first on.
    T& at(std::size_t index) { return (*batches_[index / kBatch])[index % kBatch]; }

  private:
    bool grow() {
        return base::attempt([&] {
            auto batch = std::make_unique<std::array<T, kBatch>>();
            free_.reserve(size() + kBatch);
            batches_.push_back(std::move(batch));
            for (std::size_t i = kBatch; i-- > 0;) {
                free_.push_back(&(*batches_.back())[i]);
            }
        });
    }

    std::vector<std::unique_ptr<std::array<T, kBatch>>> batches_;
    std::vector<T*> free_;
};

} // namespace dat::rdm

#endif
