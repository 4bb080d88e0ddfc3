// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How two `dat` processes that have just met over TCP come to share memory. The one
// that accepts offers: the name of its door, an abstract Unix socket which only
// processes of its network namespace can reach and which leaves nothing behind, and a
// cookie that stands for the connection. The other knocks: connects there, and says which
// connection it comes for. Who is no permitted user is sent away unread, and so is who
// comes for another connection than the cookie's: nobody in between can join two others.
// The owner of the door makes the memory and gives it; a door takes no descriptors.
// The local connection stays, as the bell of the link. Until the guest has all that it
// needs, and says so, the connection stays on TCP, whatever goes wrong. Under the domain's
// gate. May include: soft, soft/iwarp/socket.h, system headers.
//
//   initiator                                     responder
//                    <-- TCP: MPA reply, Offer --  Door::offer()
//   knock()          -- Unix: Hello           -->  Door: checks, Host::invited()
//   welcomed()       <-- Unix: Welcome, memfd --
//                    -- Unix: Joined          -->  Host::joined()
#ifndef DAT_SOFT_SHM_DOOR_H
#define DAT_SOFT_SHM_DOOR_H

#include "soft/domain.h"
#include "soft/iwarp/socket.h"
#include "soft/reactor.h"
#include "soft/shm/doorbell.h"
#include "soft/shm/hello.h"
#include "soft/shm/reaper.h"
#include "soft/shm/segment.h"
#include "soft/shm/sender.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace dat::shm {

// As it ends the private data of the MPA reply: 16 bytes of name, 8 of cookie.
using Offer = std::array<std::byte, 24>;

// Why something is not as it could be, for the log; empty: it is.
using Why = std::array<char, 160>;

// What both sides have in the end; `parameters` without ord and ird.
struct Joint {
    iwarp::Socket bell;
    Segment segment;
    LinkParameters parameters;
    DoorbellPlace place; // or none
    Why why{};           // there is no more than this, or large messages come in pieces
};

TcpEnds ends_of(const iwarp::SocketAddress& initiator, const iwarp::SocketAddress& responder);

// Who made an offer.
class Host {
  public:
    // A guest is given what it needs. From here on it may leave TCP.
    virtual void invited() = 0;
    // But has gone; the offer is withdrawn.
    virtual void stayed_out() = 0;
    // It was taken; the offer is withdrawn.
    virtual void joined(Joint joint) = 0;

  protected:
    ~Host() = default;
};

class Door final : public soft::Companion, private soft::Pollable, private soft::Timer {
  public:
    explicit Door(soft::Domain& domain);
    ~Door() override;

    // The domain's, whether it is open or not.
    static Door& at(soft::Domain& domain);
    // The same, opened at the first call; nullptr where that is refused, which is
    // logged, and while strangers crowd it.
    static Door* of(soft::Domain& domain);

    // `ends`: the connection that it is for.
    Offer offer(Host& host, const TcpEnds& ends);
    // Nobody comes for it any more.
    void withdraw(const Offer& offer);
    Reaper& reaper() { return reaper_; }

    // What tells this domain from others. Nobody can guess it.
    std::uint64_t id() const { return id_; }
    // A place in the doorbells that this domain shares with the one that a guest says to be of, or
    // in those of `memory`, which then are; says which in `welcome`. None where there is no memory
    // for it, or the peer's process is not known.
    DoorbellPlace give_place(const Segment& memory, const Self& peer, pid_t process,
                             Welcome& welcome);
    // The guest does not know them: they are given to nobody any more.
    void forget_doorbells(std::uint64_t number);
    // The place that the welcome to `memory` names. None: it is none that is known, or is free.
    DoorbellPlace find_place(const Segment& memory, const Welcome& welcome);

  private:
    // Those of a peer, as long as any connection uses them.
    struct Shared {
        std::uint64_t number; // which nobody can guess
        std::uint64_t domain; // of the peer, 0: it let this one in
        pid_t process;        //
        std::weak_ptr<Doorbells> doorbells;
    };
    DoorbellPlace share(const Segment& memory, const Shared& with, bool initiator);

    class Guest; // has not said what for yet, or has not come in
    struct Offered {
        Host* host;
        TcpEnds ends;
        bool taken;
    };

    int open();
    void ready(std::uint32_t events) override;
    void lost() override { shut(); }
    void expired() override; // the pause is over
    void admit(iwarp::Socket socket);
    void turn_away(iwarp::Socket socket);
    void pause();
    void shut();
    void dismiss(Guest& guest);
    void accept_failed(int error);
    Offered* offered(std::uint64_t cookie);
    Host* settle(std::uint64_t cookie);

    soft::Domain& domain_;
    const std::uint64_t id_;
    std::vector<Shared> shared_;
    Reaper reaper_;
    iwarp::Socket socket_;
    bool watched_ = false;
    std::uint32_t strangers_ = 0; // since the last pause
    std::array<std::uint64_t, 2> name_{};
    std::unordered_map<std::uint64_t, Offered> offers_; // by cookie
    std::vector<std::unique_ptr<Guest>> guests_;
    std::vector<std::unique_ptr<Guest>> dismissed_;
};

// Takes an offer for the connection `ends` as far as it goes without waiting. False: it
// cannot be taken, here, as joint.why says.
bool knock(soft::Domain& domain, const Offer& offer, const TcpEnds& ends, Joint& joint);

enum class Answer : std::uint8_t { none_yet, welcome, refused };
// Reads the responder's answer from the bell, which is readable by then, and confirms it.
// leave() is the caller's, unless it is welcome; then joint.why says why it is not.
Answer welcomed(soft::Domain& domain, Joint& joint);
// Goes, whatever has been said.
void leave(soft::Domain& domain, Joint& joint);

// Closes the bell of a link, or has it closed.
void hang_up(soft::Domain& domain, iwarp::Socket bell);

} // namespace dat::shm

#endif
