// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What TCP alone costs: non-blocking sockets, one send(2) a message, polled, or waited
// for with poll(2). RDMA it has none.
#ifndef DAT_UTIL_PERF_RAW_SIDE_H
#define DAT_UTIL_PERF_RAW_SIDE_H

#include "buffer.h"
#include "channel.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dat::perf {

class RawSide {
  public:
    // `bulk`: the size of the messages of connection 1; 0: as the others.
    RawSide(std::size_t size, bool waits, std::string address = "127.0.0.1", std::size_t bulk = 0);
    ~RawSide();
    RawSide(const RawSide&) = delete;
    RawSide& operator=(const RawSide&) = delete;

    Address open(Role role);
    void join(Role role, const Address& peer);
    void end();
    void ended();
    std::size_t depth() const { return kQueue; }
    void receive(std::size_t) {} // a socket takes what comes
    bool send(std::size_t connection);
    bool write(const Region&) { no_rdma(); }
    bool read(const Region&) { no_rdma(); }
    bool add(const Region&) { no_rdma(); }
    Region region() const { return {}; }
    Done poll(std::size_t connection);
    Done look(std::size_t connection);
    void poll_each(std::span<Done> done);
    char* out() { return out_.data(); }
    char* in() { return in_.data(); }

  private:
    struct Connection {
        int fd;
        std::size_t size;        // of a message
        std::size_t left = 0;    // bytes of a message that the socket has taken in part
        std::size_t arrived = 0; // bytes of the message that is coming
        std::uint64_t sent = 0;  // messages since poll_each()
    };
    [[noreturn]] static void no_rdma();
    void add_connection(int fd);
    bool flush(Connection& c);
    std::uint64_t take(Connection& c);

    const std::size_t size_;
    const bool waits_;
    const std::string address_;
    const std::size_t bulk_;
    int listener_ = -1;
    std::uint64_t sent_ = 0; // messages of all connections since look()
    std::vector<Connection> connections_;
    Buffer out_;
    Buffer in_;
};

} // namespace dat::perf

#endif
