// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The last moments of a socket after its endpoint has gone: what is left to send goes
// out, writing is shut down, and what still comes is read and thrown away until the
// peer's end, since closing with unread input would reset the connection and lose
// what was sent. A peer that does not take the rest, because nobody reads there, would
// never see the end behind it: the connection is reset, which it does notice (U-2), and
// that is logged.
#ifndef DAT_LINKS_IWARP_CLOSING_LINK_H
#define DAT_LINKS_IWARP_CLOSING_LINK_H

#include "engine/domain.h"
#include "engine/reactor.h"
#include "links/iwarp/remainder.h"
#include "net/socket.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace dat::iwarp {

using net::Socket;

class ClosingLink final : public engine::DeferredClose,
                          private engine::Pollable,
                          private engine::Timer {
  public:
    // The domain's reactor watches the socket for `by`, for these events; nullptr: it does not.
    struct Watched {
        engine::Pollable* by = nullptr;
        std::uint32_t interest = 0;
    };
    // Does all that can be done at once, and leaves the rest to the domain. `incoming`: where
    // the peer's stream stands. `ended`: its end has been seen. `watched` is over.
    static void begin(engine::Domain& domain, Socket socket, const Watched& watched, Remainder rest,
                      const FrameCounter& incoming, bool ended);

    // Where there is no memory for it, the socket stays the caller's, and watched.
    ClosingLink(engine::Domain& domain, Socket&& socket, const Watched& watched, Remainder&& rest,
                const FrameCounter& incoming, bool ended);
    // Resets the connection if something has not been sent; logged.
    ~ClosingLink() override;
    bool owes() const override { return !shut_; }

  private:
    // How long a peer may take nothing, and how long all of it may last.
    static constexpr std::chrono::seconds kPatience{3};
    static constexpr std::chrono::seconds kLongest{30};

    bool work(); // true: it is done
    std::uint32_t interest() const;
    std::size_t limit();
    void send_rest();
    bool discard();
    std::size_t untaken() const; // bytes, and the end of the stream
    void give_up();
    void ready(std::uint32_t events) override;
    void lost() override;
    void expired() override;

    engine::Domain& domain_;
    Socket socket_;
    Remainder rest_;
    FrameCounter incoming_;
    const engine::Clock::time_point deadline_;
    std::size_t sent_ = 0;
    std::size_t untaken_ = 0;    // when last looked at
    std::uint32_t interest_ = 0; // for what the reactor watches, where it does
    bool watched_ = false;       // it does
    bool blocked_ = false;       // the socket is full
    bool shut_ = false;          // all is out, or nobody will ever take it
    bool ended_;
};

} // namespace dat::iwarp

#endif
