// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What this domain shares with one of another process, once for all connections that the one has
// made to the other: a local socket, which carries rings and what joins more connections, and whose
// end is the peer's end; memory, in chunks that are added as connections need them; the doorbells;
// and what is known of the peer. The guest has come to the host's local listener and asks for
// connections; the host makes the memory, and says which place in it is a connection's. A place is
// used again when both sides have left it. Under the domain's lock.
//
//   guest                                          host
//                   -- Hello, Welcome, Joined --   the first connection (local_listener.h)
//   ask()              -- Ask           -->        Keeper::asked()
//   Asker::granted()   <--        grant --          Keeper::placed()
//                      -- take          -->        Keeper::taken()
//
//   propose()         (on a local stream)           place_at_once()
//   take(), forgo()    -- take, decline -->         Keeper::taken()
//
//                      <--         need --         there is no place left
//   lets a descriptor in -- grow        -->
//                      <-- chunk, memfd --
//   has mapped it      -- mapped        -->
//
// Nothing that comes is trusted. Who says what he may not say ends the peering, which are his own
// connections alone.
#ifndef DAT_LINKS_SHM_PEERING_H
#define DAT_LINKS_SHM_PEERING_H

#include "engine/domain.h"
#include "engine/reactor.h"
#include "links/shm/acquaintance.h"
#include "links/shm/doorbell.h"
#include "links/shm/hello.h"
#include "links/shm/local_socket.h"
#include "links/shm/overheard.h"
#include "links/shm/reaper.h"
#include "links/shm/segment.h"
#include "net/socket.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace dat::shm {

class Peering;

// What one connection has of a peering: a place, for as long as anything of this side looks at it.
class Channel {
  public:
    // The place has been taken. Not by others than Peering.
    Channel(std::shared_ptr<Peering> peering, std::uint32_t place, const Side& side);
    // This side has left it.
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    const Side& side() const { return side_; }
    std::uint32_t place() const { return place_; }
    const std::shared_ptr<Peering>& peering() const { return peering_; }
    // Who is told of what the peer says.
    void attend(Party& party, Attends as = Attends::link) const;
    void leave(Attends as = Attends::link) const;
    // The peer is there, at this moment. A system call.
    bool is_peer_there() const;
    // It is not: the end of it is seen already.
    bool is_over() const;
    std::uint32_t peer_stage() const { return side_.peers->stage.load(std::memory_order_acquire); }

    // Wakes the peer for this connection, whatever it does. Another one that may be looking at its
    // doorbell is rung for without a system call.
    void wake_peer() const;
    void ring() const;
    // As Doorbells.
    void watch() const;
    void ignore() const;
    void ring_here() const;
    // Nothing of this side comes any more; once.
    void hang_up();

  private:
    const std::shared_ptr<Peering> peering_;
    const std::uint32_t place_;
    const Side side_;
    bool hung_up_ = false;
};

class Peering final : private engine::Pollable,
                      private engine::Timer,
                      private Overheard::Speaker,
                      public std::enable_shared_from_this<Peering> {
  public:
    // Who has asked for a connection.
    class Asker {
      public:
        // `listener`: of the port that the connection was asked for at, or none.
        virtual void granted(std::shared_ptr<Channel> channel, const Name& listener) = 0;
        // `here_alone`: there is no peering any more, or no place in it: there may be another way.
        virtual void refused(bool here_alone) = 0;

      protected:
        ~Asker() = default;
    };
    // Who keeps peerings.
    class Keeper {
      public:
        // A guest asks for the connection that was offered under that cookie. True: it is to have a
        // place. Then placed() follows, soon: nullptr: there is none.
        virtual bool asked(Peering& peering, std::uint64_t cookie, const TcpEnds& ends) = 0;
        virtual void placed(Peering& peering, std::uint64_t cookie,
                            std::shared_ptr<Channel> channel) = 0;
        // The guest has come in, or stays out.
        virtual void taken(Peering& peering, std::uint64_t cookie, bool in) = 0;
        // What the guest is told of the port that the connection was asked for at.
        virtual Name listener_of(std::uint64_t cookie) = 0;
        // No connection uses it, or one does again.
        virtual void idle(Peering& peering, bool idle) = 0;
        virtual void ended(Peering& peering) = 0;
        virtual Reaper& reaper() = 0;
        virtual Overheard& overheard() = 0;

      protected:
        ~Keeper() = default;
    };

    // Takes the socket, which is connected and silent. `first`: the first memory, of one place.
    // `keeper`: nullptr: nobody, there is no other connection than the first. nullptr: there is no
    // memory for it, or it cannot be waited for; what was passed is gone.
    static std::shared_ptr<Peering> begin(engine::Domain& domain, Keeper* keeper,
                                          net::Socket socket, Segment first, bool guest,
                                          const Acquaintance& known);
    // Not by others than begin().
    Peering(engine::Domain& domain, Keeper* keeper, net::Socket socket, Segment first, bool guest,
            const Acquaintance& known);
    ~Peering();

    bool guest() const { return guest_; }
    const Acquaintance& known() const { return known_; }
    // Of the host's local listener, for its guest.
    const Name& name() const { return name_; }
    // What the host calls it, and its guest in a proposal.
    std::uint64_t id() const { return id_; }
    void set_name(const Name& name, std::uint64_t id) {
        name_ = name;
        id_ = id;
    }
    // Who is at the other end. False: it cannot be said.
    bool peer(Credentials& who) const { return credentials_of(socket_, who); }
    // No connection, nor anybody who waits for one.
    bool is_idle() const {
        return channel_count_ == 0 && asked_.empty() && waiting_.empty() && proposed_.empty();
    }
    bool is_over() const { return !socket_; }
    bool refuses_descriptors() const { return refuses_; }
    // The guest's: the host has not said that there are none.
    bool has_places() const { return !full_; }
    // All its connections end as if the peer were gone.
    void end();

    // The first connection's.
    std::shared_ptr<Channel> first();
    // The guest's first word. False: it cannot be said.
    bool join();

    // That place, for a connection. nullptr: there is none such, or it is in use, or no memory.
    std::shared_ptr<Channel> open(std::uint32_t place);

    // The guest's: asks for the connection that was offered to it so. False: it cannot be said.
    bool ask(std::uint64_t cookie, const TcpEnds& ends, Asker& asker);
    // It is not wanted any more: what is granted is declined.
    void forget(std::uint64_t cookie);
    // The guest's: it proposes a connection on a local stream (proposing.h), under that cookie.
    // False: there is no memory, or no peering any more. Once: take() where it has been given a
    // place, settle() where its answer says that it has none, forgo() where it does not know.
    bool propose(std::uint64_t cookie);
    // nullptr: that is no place, it is in use, or there is no memory: it is declined.
    std::shared_ptr<Channel> take(std::uint64_t cookie, std::uint32_t place);
    void settle(std::uint64_t cookie);
    void forgo(std::uint64_t cookie);
    // The host's: a place for who has proposed that, which is its until Keeper::taken(), or
    // not_taken(): it has not been told. nullptr: there is none at hand.
    std::shared_ptr<Channel> place_at_once(std::uint64_t cookie);
    void not_taken(std::uint64_t cookie);
    // The host's: nobody waits for placed() any more.
    void withdraw(std::uint64_t cookie);

  private:
    friend class Channel;
    // What is to be said and found no room: so much that an honest peer, which reads it, comes
    // nowhere near.
    static constexpr std::size_t kMostUnsaid = 8192;
    struct Unsaid {
        std::array<std::byte, kLongestMessage> bytes;
        std::size_t size;
    };

    void ready(std::uint32_t events) override;
    void speaks() override { ready(0); }
    void lost() override { tell_lost(); }
    void expired() override;
    net::Socket detach();
    void hang_up();
    void tell_lost();
    void send_ring();
    bool hear();
    bool heed(std::span<const std::byte> message, net::Socket& fd);
    bool heed_guest(const Note& note);
    void heed_ask(const Ask& ask);
    bool heed_host(const Note& note, net::Socket& fd);
    bool heed_grant(const Note& note);
    bool make_room();
    void let_none_in();
    bool heed_chunk(const Note& note, net::Socket& fd);
    void send_chunk();
    void place_all();
    void refuse_all();
    std::shared_ptr<Channel> place_for_one();
    void place(std::uint64_t cookie, std::shared_ptr<Channel> channel);
    void note(Topic topic, std::uint64_t value = 0, std::uint32_t place = 0,
              const Name& listener = {});
    bool say(std::span<const std::byte> bytes, int fd = -1);
    void say_on();
    void give_back(std::uint32_t place);
    void look_at_left();
    Side side(std::uint32_t place) const;
    std::uint32_t capacity() const { return first_of(chunks_.size()); }
    // Of what decides is_idle().
    template <class Change> void change(Change&& change);

    engine::Domain& domain_;
    Keeper* const keeper_;
    net::Socket socket_; // none: it is over
    bool refuses_;       // descriptors
    const bool guest_;
    const Acquaintance known_;
    Name name_{};
    std::uint64_t id_ = 0;
    std::vector<Segment> chunks_;
    Doorbells doorbells_;
    std::size_t channel_count_ = 0;
    bool watched_ = false;
    bool socket_lost_ = false; // the program has closed or replaced it
    bool growing_ = false;     // memory is on its way
    bool full_ = false;
    std::deque<Unsaid> unsaid_;
    std::unordered_map<std::uint64_t, Asker*> asked_; // nullptr: not wanted any more
    std::deque<std::uint64_t> waiting_;               // cookies, for a place
    std::unordered_set<std::uint64_t> proposed_;      // the guest's cookies
    // The host's: places that were given at once, and not answered yet, by cookie.
    std::unordered_map<std::uint64_t, std::uint32_t> given_;
    Segment next_chunk_;
    std::uint32_t used_ = 0;          // so many places, the first, were given once
    std::vector<std::uint32_t> left_; // the host's: by this side, and by the peer as is to be seen
    std::size_t next_left_ = 0;
};

} // namespace dat::shm

#endif
