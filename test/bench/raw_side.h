// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What TCP alone costs: non-blocking sockets, polled, one send(2) a message.
// May include: test/bench, std.
#ifndef DAT_TEST_BENCH_RAW_SIDE_H
#define DAT_TEST_BENCH_RAW_SIDE_H

#include "channel.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::bench {

class RawSide {
  public:
    explicit RawSide(std::size_t size);
    ~RawSide();
    RawSide(const RawSide&) = delete;
    RawSide& operator=(const RawSide&) = delete;

    std::uint16_t listen();
    void accept();
    void connect(std::uint16_t port);
    void end();
    void ended();
    void receive(std::size_t) {} // a socket takes what comes
    bool send(std::size_t connection);
    Done poll(std::size_t connection);

  private:
    struct Connection {
        int fd;
        std::size_t left = 0;    // bytes of a message that the socket has taken in part
        std::size_t arrived = 0; // bytes of the message that is coming
        std::uint64_t sent = 0;  // messages since poll()
    };
    void add(int fd);
    bool flush(Connection& c);

    const std::size_t size_;
    int listener_ = -1;
    std::vector<Connection> connections_;
    std::vector<char> out_;
    std::vector<char> in_;
};

} // namespace dat::bench

#endif
