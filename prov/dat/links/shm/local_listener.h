// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How two `dat` processes that have just met over TCP come to share memory. The one
// that accepts offers: the name of its local listener, an abstract Unix socket which only
// processes of its network namespace can reach and which leaves nothing behind, and a
// cookie that stands for the connection. The other asks: connects there, and says which
// connection it comes for. Who is no permitted user is sent away unread, and so is who
// comes for another connection than the cookie's: nobody in between can join two others.
// The owner of the local listener makes the memory and gives it; a local listener takes no
// descriptors. The local connection stays, as the wake socket of the link. Until the guest has all
// that it needs, and says so, the connection stays on TCP, whatever goes wrong. Under the domain's
// lock.
//
//   initiator                                     responder
//                    <-- TCP: MPA reply, Offer --  LocalListener::offer()
//   join_host()          -- Unix: Hello           -->  LocalListener: checks, Host::invited()
//   welcomed()       <-- Unix: Welcome, memfd --
//                    -- Unix: Joined          -->  Host::joined()
#ifndef DAT_LINKS_SHM_LOCAL_LISTENER_H
#define DAT_LINKS_SHM_LOCAL_LISTENER_H

#include "engine/domain.h"
#include "engine/reactor.h"
#include "links/shm/doorbell.h"
#include "links/shm/hello.h"
#include "links/shm/reaper.h"
#include "links/shm/segment.h"
#include "links/shm/sender.h"
#include "net/socket.h"

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
    net::Socket wake_socket;
    Segment segment;
    LinkParameters parameters;
    DoorbellPlace place; // or none
    Why why{};           // there is no more than this, or large messages come in pieces
};

TcpEnds ends_of(const net::SocketAddress& initiator, const net::SocketAddress& responder);

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

class LocalListener final : public engine::Companion,
                            private engine::Pollable,
                            private engine::Timer {
  public:
    explicit LocalListener(engine::Domain& domain);
    ~LocalListener() override;

    // The domain's, whether it is open or not.
    static LocalListener& at(engine::Domain& domain);
    // The same, opened at the first call; nullptr where that is refused, which is
    // logged, and while strangers crowd it.
    static LocalListener* of(engine::Domain& domain);

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
    void admit(net::Socket socket);
    void turn_away(net::Socket socket);
    void pause();
    void shut();
    void dismiss(Guest& guest);
    void accept_failed(int error);
    Offered* offered(std::uint64_t cookie);
    Host* settle(std::uint64_t cookie);

    engine::Domain& domain_;
    const std::uint64_t id_;
    std::vector<Shared> shared_;
    Reaper reaper_;
    net::Socket socket_;
    bool watched_ = false;
    std::uint32_t strangers_ = 0; // since the last pause
    std::array<std::uint64_t, 2> name_{};
    std::unordered_map<std::uint64_t, Offered> offers_; // by cookie
    std::vector<std::unique_ptr<Guest>> guests_;
    std::vector<std::unique_ptr<Guest>> dismissed_;
};

// Takes an offer for the connection `ends` as far as it goes without waiting. False: it
// cannot be taken, here, as joint.why says.
bool join_host(engine::Domain& domain, const Offer& offer, const TcpEnds& ends, Joint& joint);

enum class Answer : std::uint8_t { none_yet, welcome, refused };
// Reads the responder's answer from the wake socket, which is readable by then, and confirms it.
// leave() is the caller's, unless it is welcome; then joint.why says why it is not.
Answer welcomed(engine::Domain& domain, Joint& joint);
// Goes, whatever has been said.
void leave(engine::Domain& domain, Joint& joint);

// Closes the wake socket of a link, or has it closed.
void hang_up(engine::Domain& domain, net::Socket wake_socket);

} // namespace dat::shm

#endif
