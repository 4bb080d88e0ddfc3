// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The other process of a pair, beside what is measured: addresses and numbers that both
// have to know go through a stream socket, on one host or between two.
#ifndef DAT_UTIL_PERF_PEER_H
#define DAT_UTIL_PERF_PEER_H

#include "channel.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace dat::perf {

// Where several processes or threads wait for each other, in memory that they share, zero at
// first. They meet as often as they like.
struct Crowd {
    std::atomic<std::uint32_t> arrived;
};

class Peer {
  public:
    // Takes the descriptor, of a connected stream socket.
    Peer(int fd, Role role) : fd_(fd), role_(role) {}
    ~Peer();
    Peer(Peer&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), role_(other.role_), in_(std::move(other.in_)),
          crowd_(other.crowd_), size_(other.size_), meetings_(other.meetings_) {}
    Peer& operator=(Peer&&) = delete;

    Role role() const { return role_; }
    bool client() const { return role_ == Role::client; }
    int fd() const { return fd_; }

    // Up to 16 MiB.
    void tell(const std::string& message);

    // What the peer tells next. meanwhile() is called again and again until then: a
    // provider may need that in order to carry out what the peer asks for.
    template <class Meanwhile> std::string hear(Meanwhile&& meanwhile) {
        std::string message;
        const auto begin = Clock::now();
        while (!arrived(message)) {
            meanwhile();
            give_up_after(begin, kPatience_s);
        }
        return message;
    }
    // The same, asleep until then.
    std::string hear() { return hear_within(kPatience_s); }
    std::string hear_within(int patience_s);

    template <class T> void tell_value(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        tell(std::string(reinterpret_cast<const char*>(&value), sizeof value));
    }
    template <class T, class Meanwhile> T hear_value(Meanwhile&& meanwhile) {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        take(hear(meanwhile), &value, sizeof value);
        return value;
    }

    // Returns when both processes have come here.
    template <class Meanwhile> void meet(Meanwhile&& meanwhile) {
        tell("here");
        hear(meanwhile);
    }

    // Several pairs that measure at the same time, `size` of them, begin together.
    void join_crowd(Crowd* crowd, std::size_t size) {
        crowd_ = crowd;
        size_ = size;
    }
    // Returns when all of them have come here; at once where there is one pair.
    template <class Meanwhile> void meet_crowd(Meanwhile&& meanwhile) {
        if (!crowd_) {
            return;
        }
        ++meetings_;
        crowd_->arrived.fetch_add(1, std::memory_order_acq_rel);
        const auto begin = Clock::now();
        while (crowd_->arrived.load(std::memory_order_acquire) < meetings_ * size_) {
            meanwhile();
            give_up_after(begin, kPatience_s);
        }
    }

  private:
    bool arrived(std::string& message);
    static void take(const std::string& message, void* value, std::size_t size);
    static void give_up_after(Clock::time_point begin, int patience_s);

    int fd_;
    Role role_;
    std::string in_; // what has come of the next message, and of those behind it
    Crowd* crowd_ = nullptr;
    std::size_t size_ = 1;
    std::size_t meetings_ = 0;
};

} // namespace dat::perf

#endif
