// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A connection at a listener whose request has not come whole yet; U-65 limits how long that takes.
// Under the listener's lock.
#ifndef DAT_LINKS_IWARP_ARRIVAL_H
#define DAT_LINKS_IWARP_ARRIVAL_H

#include "base/list.h"
#include "engine/reactor.h"
#include "links/iwarp/connect.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace dat::iwarp {

class Listener::Arrival final : public base::Hook<Listener::Arrival>,
                                private engine::Pollable,
                                private engine::Timer {
  public:
    // `local`: the socket is a local stream.
    Arrival(Listener& listener, Socket socket, bool local)
        : listener_(listener), socket_(std::move(socket)), is_local_(local) {}
    ~Arrival() { detach(); }

    // The request may be there as soon as the connection is.
    void start();
    // No call reaches it any more.
    void detach();

  private:
    void drop(const char* why);
    void expired() override { drop("the handshake limit"); }
    void ready(std::uint32_t) override { read_all(); }
    void lost() override { drop("its listener is lost"); }
    bool read_all();
    bool read_some();
    bool has_proposal();
    void announce(const MpaParse& parse);
    Arrived arrived(const MpaParse& parse);
    void refuse(const MpaParse& parse);
    Socket take_socket();
    void over();
    std::size_t ahead() const { return is_local_ ? sizeof(shm::Proposal) : 0; }

    Listener& listener_;
    Socket socket_;
    const bool is_local_;
    bool watched_ = false;
    std::optional<shm::Proposal> proposal_;
    SocketAddress local_; // as it says
    SocketAddress peer_;
    std::size_t in_ = 0;
    // What is ahead of the request, and that.
    std::array<std::byte, sizeof(shm::Proposal) + kMpaMaxFrameSize> buffer_;
};

} // namespace dat::iwarp

#endif
