// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The last moments of a socket after its endpoint has gone: the rest of a frame goes
// out, writing is shut down, and what still comes is read and thrown away until the
// peer's end, since closing with unread input would reset the connection and lose
// what was sent. A peer that does not take the rest, because nobody reads there, would
// never see the end behind it: the connection is reset, which it does notice (U-2).
// May include: soft, system headers.
#ifndef DAT_SOFT_IWARP_LINGER_H
#define DAT_SOFT_IWARP_LINGER_H

#include "soft/domain.h"
#include "soft/iwarp/socket.h"
#include "soft/reactor.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::iwarp {

class Linger final : public soft::Lingerer, private soft::Pollable, private soft::Timer {
  public:
    // Does all that can be done at once, and leaves the rest to the domain. `ended`:
    // the peer's end has been seen.
    static void begin(soft::Domain& domain, Socket socket, std::vector<std::byte> rest, bool ended);

    Linger(soft::Domain& domain, Socket socket, std::vector<std::byte> rest, bool ended);
    ~Linger() override;

  private:
    // How long a peer may take nothing.
    static constexpr std::chrono::seconds kPatience{3};

    bool work(); // true: it is done
    std::uint32_t interest() const;
    bool send_rest();
    bool discard();
    std::size_t untaken() const; // bytes, and the end of the stream
    void ready(std::uint32_t events) override;
    void expired() override;

    soft::Domain& domain_;
    Socket socket_;
    std::vector<std::byte> rest_;
    std::size_t sent_ = 0;
    std::size_t untaken_ = 0; // when last looked at
    bool shut_ = false;
    bool ended_;
    bool watched_ = false;
};

} // namespace dat::iwarp

#endif
