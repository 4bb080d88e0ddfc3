// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Processes that measure together: made, pinned, bounded in time, and ended whatever
// happens.
#ifndef DAT_UTIL_PERF_PAIR_H
#define DAT_UTIL_PERF_PAIR_H

#include "case.h"
#include "peer.h"

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace dat::perf {

enum class Ending : std::uint8_t {
    right,
    not_offered, // one side threw NotOffered
    failed,      // one side threw a Failure, died, or took too long
};

// A descriptor that is closed in time.
class Fd {
  public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    ~Fd() { close(); }
    Fd(Fd&& other) noexcept : fd_(other.release()) {}
    Fd& operator=(Fd&& other) noexcept {
        close();
        fd_ = other.release();
        return *this;
    }
    int get() const { return fd_; }
    bool open() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    void close();

  private:
    int fd_;
};

// One process of those that are made.
struct Member {
    std::string name; // "server", for what is said of it
    Role role = Role::server;
    std::size_t seat = 0;  // the processor that it is pinned to, of those that may be used,
    std::size_t seats = 0; // and how many are needed for each to have its own; 0: not pinned
    std::vector<Fd> peers; // sockets that it alone gets, each to another process
};

// What became of them.
struct Outcome {
    Ending ending = Ending::failed;
    std::string why;               // if it did not go right: one line
    int weight = 0;                // how much `why` explains, beside another outcome's
    std::vector<std::string> said; // what each has returned, as bytes
    std::string server;            // run_pair(), run_alone(): the same
    std::string client;
};
// The one of two that explains more, where one has not gone right.
const Outcome& worse(const Outcome& a, const Outcome& b);

// Runs side() in a process for each member, and returns when all have ended: at the latest after
// `limit_s` seconds and a moment, when they are ended by signals. One that does not go right ends
// the others. side() may throw Failure. It has to be called from a process with one thread, which
// has not used libfabric itself.
using MemberSide = std::function<std::string(const Member&, std::vector<Peer>&)>;
Outcome run_members(std::vector<Member> members, const MemberSide& side, int limit_s);

// The same with a server and a client that are connected.
Outcome run_pair(const std::function<std::string(Peer&)>& side, int limit_s);

// Runs alone() the same way, in one process; what it returns is `client`.
Outcome run_alone(const std::function<std::string()>& alone, int limit_s);

// Both ends of a connection between two processes of this host. Throws Failure.
std::pair<Fd, Fd> make_link();

// How many processors this process may use.
std::size_t processors();
// Pins the calling thread to one of them, seat modulo processors(), where there are two at least.
// True: nobody else of so many seats is there.
bool pin_to(std::size_t seat, std::size_t seats);

// Whether the two processes of a pair get processors of their own here.
bool two_processors();

// Whether this process was pinned to a processor of its own.
bool pinned();

template <class T> std::string as_bytes(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
// Of bytes that as_bytes() gave.
template <class T> T from_bytes(const std::string& bytes) {
    T value{};
    if (bytes.size() == sizeof value) {
        std::memcpy(&value, bytes.data(), sizeof value);
    }
    return value;
}

} // namespace dat::perf

#endif
