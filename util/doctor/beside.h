// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What two processes say to each other beside the connection that is tried: lines over a stream
// socket, of this host or to another one.
#ifndef DAT_UTIL_DOCTOR_BESIDE_H
#define DAT_UTIL_DOCTOR_BESIDE_H

#include "doctor/child.h"
#include "perf/channel.h"

#include <optional>
#include <string>

namespace dat::doctor {

using perf::Role;

inline constexpr char kOtherHasEnded[] = "the other side has ended";

class Beside {
  public:
    // The descriptor stays the caller's. Nothing is read from it beyond the lines that are heard,
    // so that others may go on with it.
    Beside(int fd, Role role) : fd_(fd), role_(role) {}

    Role role() const { return role_; }
    bool client() const { return role_ == Role::client; }

    // One line, without its end. Throws std::runtime_error where the other has gone.
    void tell(const std::string& line) const;
    // The next line. meanwhile() is called again and again until then. Throws where the other has
    // gone, says too much, or nothing for 20 s.
    template <class Meanwhile> std::string hear(Meanwhile&& meanwhile) const {
        const auto limit = Clock::now() + std::chrono::seconds(20);
        std::string line;
        while (!heard(line, limit)) {
            meanwhile();
        }
        return line;
    }
    std::string hear() const {
        return hear([this] { sleep(100ms); });
    }
    // The same; nothing where none has come in that time.
    std::optional<std::string> hear_within(std::chrono::milliseconds time) const;
    // Returns when both have come here.
    template <class Meanwhile> void meet(Meanwhile&& meanwhile) const {
        tell("here");
        hear(meanwhile);
    }
    // The same where nothing has to be moved meanwhile.
    void meet() const {
        tell("here");
        hear();
    }
    // Until there is something to hear, or the other has gone.
    void sleep(std::chrono::milliseconds limit) const;

  private:
    bool heard(std::string& line, Clock::time_point limit) const;

    const int fd_;
    const Role role_;
};

// Any bytes as a word, and back; empty where it is none.
std::string to_hex(const std::string& bytes);
std::string from_hex(const std::string& word);

} // namespace dat::doctor

#endif
