// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which links of a domain are read at each progress without asking the kernel which of them have
// something: those that had something lately, as long as they are few. That costs a system call
// for each; where they are more, one call that asks for all (epoll) costs less, and none is read
// so, until there are few again. Serialized by the domain's lock.
#ifndef DAT_ENGINE_DIRECT_POLLING_H
#define DAT_ENGINE_DIRECT_POLLING_H

#include "engine/link.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dat::engine {

class DirectPolling {
  public:
    // So many at most. Beyond, reading each in vain takes longer than asking.
    static constexpr std::size_t kMost = 4;
    // Where there were more, so many of those links that had something lately are few again.
    static constexpr std::size_t kFew = kMost / 2;
    // Arrivals that "lately" means there.
    static constexpr std::uint32_t kLately = 1024;

    bool none() const { return count_ == 0; }
    bool polls(const Link& link) const { return link.polled_directly_; }

    // The link has received something, and is not among them.
    void received(Link& link) {
        if (many_) {
            return count(link);
        }
        if (count_ < kMost) {
            links_[count_++] = &link;
            link.polled_directly_ = true;
        } else if (std::find(links_.begin(), links_.end(), nullptr) == links_.end()) {
            give_up();
        }
    }

    // It has had nothing for long, or ends. Struck out, not removed: poll() may be walking over it.
    void stop(Link& link) {
        if (link.polled_directly_) {
            std::replace(links_.begin(), links_.begin() + static_cast<std::ptrdiff_t>(count_),
                         &link, static_cast<Link*>(nullptr));
            link.polled_directly_ = false;
        }
    }

    void poll() {
        for (std::size_t i = 0; i < count_; ++i) {
            if (links_[i]) [[likely]] {
                links_[i]->poll();
            }
        }
    }

    // None of them had anything, for so many polls.
    bool is_idle(std::uint32_t polls) const {
        return std::all_of(links_.begin(), links_.begin() + static_cast<std::ptrdiff_t>(count_),
                           [=](const Link* link) { return !link || link->idle_polls() >= polls; });
    }

    // Those that were struck out are gone. Not within poll().
    void compact() {
        const auto end = links_.begin() + static_cast<std::ptrdiff_t>(count_);
        count_ =
            static_cast<std::size_t>(std::remove(links_.begin(), end, nullptr) - links_.begin());
    }

  private:
    void give_up() {
        for (std::size_t i = 0; i < count_; ++i) {
            if (links_[i]) {
                links_[i]->polled_directly_ = false;
            }
        }
        count_ = 0;
        many_ = true;
        begin_counting();
    }

    void begin_counting() {
        ++turn_;
        arrivals_ = 0;
        different_ = 0;
    }

    // Where there are many: how many different ones.
    void count(Link& link) {
        if (link.counted_in_ != turn_) {
            link.counted_in_ = turn_;
            ++different_;
        }
        if (++arrivals_ == kLately) {
            many_ = different_ > kFew;
            begin_counting();
        }
    }

    std::array<Link*, kMost> links_{}; // nullptr: struck out
    std::size_t count_ = 0;
    bool many_ = false;
    std::uint32_t turn_ = 0; // of counting
    std::uint32_t arrivals_ = 0;
    std::uint32_t different_ = 0;
};

} // namespace dat::engine

#endif
