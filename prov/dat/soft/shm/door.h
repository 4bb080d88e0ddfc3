// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How two `dat` processes that have just met over TCP come to share memory. The one
// that accepts offers: the name of its door, an abstract Unix socket which only
// processes of its network namespace can reach and which leaves nothing behind, and a
// cookie that stands for the connection. The other knocks: connects there, and hands
// over the cookie and the memory. The local connection stays, as the bell of the link.
// Whatever goes wrong, the connection stays on TCP. Under the domain's gate.
// May include: soft, soft/iwarp/socket.h, system headers.
//
//   initiator                                     responder
//                    <-- TCP: MPA reply, Offer --  Door::offer()
//   knock()          -- Unix: Hello, memfd    -->  Door: checks, Host::joined()
//   welcomed()       <-- Unix: Welcome        --
#ifndef DAT_SOFT_SHM_DOOR_H
#define DAT_SOFT_SHM_DOOR_H

#include "soft/domain.h"
#include "soft/iwarp/socket.h"
#include "soft/reactor.h"
#include "soft/shm/segment.h"
#include "soft/shm/sender.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace dat::shm {

// As it follows the MPA reply: 16 bytes of name, 8 of cookie.
using Offer = std::array<std::byte, 24>;

// What both sides have in the end; `parameters` without ord and ird.
struct Joint {
    iwarp::Socket bell;
    Segment segment;
    LinkParameters parameters;
};

// Who made an offer.
class Host {
  public:
    // It was taken; the offer is withdrawn.
    virtual void joined(Joint joint) = 0;

  protected:
    ~Host() = default;
};

class Door final : public soft::Companion, private soft::Pollable {
  public:
    explicit Door(soft::Domain& domain);
    ~Door() override;

    // The domain's, opened at the first call; nullptr where that is refused, which is
    // logged.
    static Door* of(soft::Domain& domain);

    Offer offer(Host& host);
    // Nobody comes for it any more.
    void withdraw(const Offer& offer);

  private:
    class Guest; // has not said what for yet
    int open();
    void ready(std::uint32_t events) override;
    void dismiss(Guest& guest);
    void accept_failed(int error);
    Host* host_of(std::uint64_t cookie);

    soft::Domain& domain_;
    iwarp::Socket socket_;
    std::array<std::uint64_t, 2> name_{};
    std::unordered_map<std::uint64_t, Host*> hosts_; // by cookie
    std::vector<std::unique_ptr<Guest>> guests_;
    std::vector<std::unique_ptr<Guest>> dismissed_;
};

// Takes an offer as far as it goes without waiting. False: it cannot be taken, here.
bool knock(const Offer& offer, Joint& joint);

enum class Answer : std::uint8_t { none_yet, welcome, refused };
// Reads the responder's answer from the bell, which is readable by then.
Answer welcomed(Joint& joint);

} // namespace dat::shm

#endif
