// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The other process of a pair, beside what is measured: addresses and numbers that both
// have to know go through a pair of Unix sockets. May include: util/perf, std.
#ifndef DAT_UTIL_PERF_PEER_H
#define DAT_UTIL_PERF_PEER_H

#include "channel.h"

#include <cstddef>
#include <string>
#include <type_traits>

namespace dat::perf {

class Peer {
  public:
    // Takes the descriptor, of one end of a pair that keeps messages apart.
    Peer(int fd, Role role) : fd_(fd), role_(role) {}
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    Role role() const { return role_; }
    bool client() const { return role_ == Role::client; }

    void tell(const std::string& message);

    // What the peer tells next. meanwhile() is called again and again until then: a
    // provider may need that in order to carry out what the peer asks for.
    template <class Meanwhile> std::string hear(Meanwhile&& meanwhile) {
        std::string message;
        const auto begin = Clock::now();
        while (!arrived(message)) {
            meanwhile();
            give_up_after(begin);
        }
        return message;
    }
    // The same, asleep until then.
    std::string hear() {
        return hear([this] { sleep(); });
    }

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

  private:
    bool arrived(std::string& message);
    void sleep() const;
    static void take(const std::string& message, void* value, std::size_t size);
    static void give_up_after(Clock::time_point begin);

    const int fd_;
    const Role role_;
};

} // namespace dat::perf

#endif
