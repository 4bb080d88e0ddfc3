// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An event as the objects have it; udat/ gives it the layout of an API version.
#ifndef DAT_SHIM_EVENT_H
#define DAT_SHIM_EVENT_H

#include "dat-shim/codes.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dat::shim {

class Cr;
class Object;

// EVD-22: whether it wakes who waits, and where only solicited completions do.
inline constexpr std::uint8_t kNotifies = 1;
inline constexpr std::uint8_t kSolicited = 2;
inline constexpr std::uint8_t kAlways = kNotifies | kSolicited;

struct Event {
    struct Dto {
        void* ep;
        std::uint64_t cookie;
        std::uint32_t status;
        std::uint32_t length;
        std::uint32_t rmr_context; // that a message with invalidate ended
        std::uint32_t immediate;
        Operation operation;
    };
    struct Bind {
        void* rmr;
        std::uint64_t cookie;
        std::uint32_t status;
    };
    struct Request {
        void* service_point;
        Cr* cr;
    };
    struct Connection {
        void* ep;
        std::uint32_t size;
        void* data;
    };
    struct Async {
        void* object;
        std::int32_t reason;
    };

    Number number;
    std::uint8_t notice;   // of kNotifies, kSolicited
    const Object* subject; // with whose end it goes
    union {
        Dto dto;
        Bind bind;
        Request request;
        Connection connection;
        Async async;
        void* pointer; // of a software event
    };
};

// A FIFO that does not allocate while it stays as full as it was.
class EventQueue {
  public:
    bool empty() const { return count_ == 0; }
    std::size_t size() const { return count_; }
    Event& front() { return slots_[first_ & (slots_.size() - 1)]; }
    void pop() {
        ++first_;
        --count_;
    }
    // For so many more. Throws std::bad_alloc.
    void make_room(std::size_t more) {
        while (count_ + more > slots_.size()) {
            grow();
        }
    }
    // Throws std::bad_alloc where there is no room.
    void push(const Event& event) {
        if (count_ == slots_.size()) {
            grow();
        }
        slots_[(first_ + count_++) & (slots_.size() - 1)] = event;
    }
    // Takes out what `gone` says yes to, by the event.
    template <class Predicate> void remove_if(Predicate&& gone) {
        const std::size_t count = std::exchange(count_, 0);
        for (std::size_t i = 0; i < count; ++i) {
            const Event event = slots_[(first_ + i) & (slots_.size() - 1)];
            if (!gone(event)) {
                slots_[(first_ + count_++) & (slots_.size() - 1)] = event;
            }
        }
    }

  private:
    void grow() {
        std::vector<Event> larger(slots_.empty() ? 16 : slots_.size() * 2);
        for (std::size_t i = 0; i < count_; ++i) {
            larger[i] = slots_[(first_ + i) & (slots_.size() - 1)];
        }
        slots_ = std::move(larger);
        first_ = 0;
    }

    std::vector<Event> slots_; // as many as a power of two
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

} // namespace dat::shim

#endif
