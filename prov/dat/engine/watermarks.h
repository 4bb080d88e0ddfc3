// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// SRQ-11: how many receives an endpoint may hold that have not completed, before its owner is
// told, and before its connection is ended.
#ifndef DAT_ENGINE_WATERMARKS_H
#define DAT_ENGINE_WATERMARKS_H

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dat::engine {

class Watermarks {
  public:
    // UINT32_MAX: none.
    void set(std::uint32_t soft, std::uint32_t hard) {
        soft_ = soft;
        hard_ = hard;
        lower_ = std::min(soft, hard);
    }
    bool any() const { return lower_ != UINT32_MAX; }
    // So many are more than one of them says.
    bool passed(std::uint32_t count) const { return count > lower_; }
    // Of the soft one: true once for each setting.
    bool soft_passed(std::uint32_t count) {
        if (count <= soft_) {
            return false;
        }
        soft_ = UINT32_MAX;
        lower_ = hard_;
        return true;
    }
    bool hard_passed(std::uint32_t count) const { return count > hard_; }

    // One is passed by so many where nothing can be done about it now.
    void put_off(std::uint32_t count) { put_off_ = count; }
    // What was put off last, which is no more; 0: nothing.
    std::uint32_t take_put_off() { return std::exchange(put_off_, 0); }

  private:
    std::uint32_t soft_ = UINT32_MAX;
    std::uint32_t hard_ = UINT32_MAX;
    std::uint32_t lower_ = UINT32_MAX; // of the two
    std::uint32_t put_off_ = 0;
};

} // namespace dat::engine

#endif
