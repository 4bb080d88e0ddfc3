// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How two `dat` processes that have just met over TCP come to share memory. The one
// that accepts offers: the name of its local listener, an abstract Unix socket which only
// processes of its network namespace can reach and which leaves nothing behind, and a
// cookie that stands for the connection. The other asks: connects there, and says which
// connection it comes for. Who is no permitted user is sent away unread, and so is who
// comes for another connection than the cookie's: nobody in between can join two others.
// The owner of the local listener makes the memory and gives it; a local listener takes no
// descriptors. The local connection stays, as the socket of a peering (peering.h), by which its
// guest asks for the connections that it makes later. Until the guest has all that it needs, and
// says so, a connection stays on TCP, whatever goes wrong. Under the domain's lock.
//
//   initiator (joining.h)                         responder
//                    <-- TCP: MPA reply, Offer --  LocalListener::offer()
//   join_host()          -- Unix: Hello           -->  Guest: checks, Host::invited()
//   welcomed()       <-- Unix: Welcome, memfd --
//                    -- Unix: Joined          -->  Host::joined()
#ifndef DAT_LINKS_SHM_LOCAL_LISTENER_H
#define DAT_LINKS_SHM_LOCAL_LISTENER_H

#include "engine/domain.h"
#include "engine/reactor.h"
#include "links/shm/acquaintance.h"
#include "links/shm/hello.h"
#include "links/shm/known_listeners.h"
#include "links/shm/local_socket.h"
#include "links/shm/peering.h"
#include "links/shm/reaper.h"
#include "links/shm/segment.h"
#include "links/shm/sender.h"
#include "net/socket.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace dat::shm {

// As it ends the private data of the MPA reply: 16 bytes of name, 8 of cookie.
using Offer = std::array<std::byte, 24>;
Offer offer_of(const Name& name, std::uint64_t cookie);
Name name_in(const Offer& offer);
std::uint64_t cookie_in(const Offer& offer);

// What both sides have in the end; `parameters` without ord and ird.
struct Joint {
    std::shared_ptr<Channel> channel;
    LinkParameters parameters;
    Why why{};       // there is no more than this, or large messages come in pieces
    Name listener{}; // at which the connection was asked for, if the host says so
    // Of who has come to a local listener, until it has a channel.
    Name name{};
    net::Socket wake_socket;
};
// What is known of the peer, for the link.
void describe(Joint& joint, const Acquaintance& known, bool initiator);

// Of that family; none: it is not of it.
net::SocketAddress address_of(const TcpEnd& end, int family);
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

class Joining;

class LocalListener final : public engine::Companion,
                            private engine::Pollable,
                            private engine::Timer,
                            private Peering::Keeper {
  public:
    explicit LocalListener(engine::Domain& domain);
    ~LocalListener() override;

    // The domain's, whether it is open or not.
    static LocalListener& at(engine::Domain& domain);
    // The same, opened at the first call; nullptr where that is refused, which is
    // logged, and while strangers crowd it.
    static LocalListener* of(engine::Domain& domain);

    // `ends`: the connection that it is for; `listener`: what its guest is told of where it was
    // asked for.
    Offer offer(Host& host, const TcpEnds& ends, const Name& listener = {});
    // The same for who proposes that on a local stream, by a peering, which is given a place at
    // once: then it counts as invited, and takes it by the cookie that it chose. `placed`: what
    // it is told. Of who has been told nothing, unsaid() follows.
    Offer offer(Host& host, const Proposal& proposal, const Name& listener, Placed& placed);
    void unsaid(const Offer& offer);
    // Nobody comes for it any more.
    void withdraw(const Offer& offer);
    Reaper& reaper() override { return reaper_; }
    Overheard& overheard() override { return overheard_; }

    // Begins a peering, and keeps it, also when no connection uses it any more, for a while.
    // `name`: where this side is the guest; `id`: what the host calls it. nullptr: it cannot be
    // begun; what was passed is gone.
    std::shared_ptr<Peering> keep(net::Socket socket, Segment first, bool guest,
                                  const Acquaintance& known, const Name& name, std::uint64_t id);
    // That with who has, or had, that local listener; nullptr: there is none that has places.
    std::shared_ptr<Peering> peering_at(const Name& name) const;
    // Who is on its way to a local listener, and who waits for what comes of that.
    std::vector<Joining*>& joining() { return joining_; }
    KnownListeners& known_listeners() { return known_listeners_; }

  private:
    class Guest; // has not said what for yet, or has not come in
    struct Offered {
        Host* host;
        TcpEnds ends;
        Name listener;
        bool taken;
        // Where it was asked for by a peering, which waits for a place, or has given one.
        std::shared_ptr<Peering> peering;
        std::shared_ptr<Channel> channel;
        Overheard::Need need;
    };
    struct Kept {
        std::shared_ptr<Peering> peering;
        engine::Clock::time_point idle_since; // max(): it is not
    };
    // Idle peerings end in time.
    struct IdleTimer final : engine::Timer {
        explicit IdleTimer(LocalListener& of) : of_(of) {}
        void expired() override { of_.end_idle(); }
        LocalListener& of_;
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

    bool asked(Peering& peering, std::uint64_t cookie, const TcpEnds& ends) override;
    void placed(Peering& peering, std::uint64_t cookie, std::shared_ptr<Channel> channel) override;
    void taken(Peering& peering, std::uint64_t cookie, bool in) override;
    Name listener_of(std::uint64_t cookie) override;
    void idle(Peering& peering, bool idle) override;
    void ended(Peering& peering) override;
    void end_idle();

    engine::Domain& domain_;
    Reaper reaper_;
    Overheard overheard_{domain_};
    net::Socket socket_;
    bool watched_ = false;
    std::uint32_t strangers_ = 0; // since the last pause
    Name name_{};
    std::unordered_map<std::uint64_t, Offered> offers_; // by cookie
    std::vector<std::unique_ptr<Guest>> guests_;
    std::vector<std::unique_ptr<Guest>> dismissed_;
    std::vector<Kept> peerings_;
    std::size_t idle_count_ = 0; // of them
    IdleTimer idle_timer_{*this};
    std::vector<Joining*> joining_;
    KnownListeners known_listeners_;
};

} // namespace dat::shm

#endif
