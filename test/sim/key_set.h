// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The worlds that a search has met, by their keys, numbered as they came:
// an open-addressing table of numbers.
#ifndef DAT_SIM_KEY_SET_H
#define DAT_SIM_KEY_SET_H

#include "sim/key.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::sim {

class KeySet {
  public:
    struct Entry {
        std::uint32_t number;
        bool fresh; // it was not there before
    };

    Entry insert(const Key& key) {
        if (2 * keys_.size() >= slots_.size()) {
            grow();
        }
        std::uint32_t& slot = slots_[place(key)];
        if (slot != kFree) {
            return {slot, false};
        }
        slot = static_cast<std::uint32_t>(keys_.size());
        keys_.push_back(key);
        return {slot, true};
    }
    std::size_t size() const { return keys_.size(); }

  private:
    static constexpr std::uint32_t kFree = ~0u;

    // Where `key` is, or would be put.
    std::size_t place(const Key& key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = static_cast<std::size_t>(key.low) & mask;
        while (slots_[at] != kFree && !(keys_[slots_[at]] == key)) {
            at = (at + 1) & mask;
        }
        return at;
    }

    void grow() {
        slots_.assign(slots_.empty() ? 1024 : 2 * slots_.size(), kFree);
        for (std::uint32_t i = 0; i < keys_.size(); ++i) {
            slots_[place(keys_[i])] = i;
        }
    }

    std::vector<std::uint32_t> slots_; // a power of two, at most half of them taken
    std::vector<Key> keys_;
};

} // namespace dat::sim

#endif
