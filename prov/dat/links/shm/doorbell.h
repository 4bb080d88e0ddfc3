// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The doorbells of a peering: which of its connections have something. Who rings for one sets its
// bit, and this side looks at one word for all of them: when it is woken, and all the time where
// connections are many, since those that had nothing lately are not looked at one by one. A
// doorbell is between two processes alone, so a peer that sets, or clears, what it likes harms none
// but its own connections. Under the domain's lock.
#ifndef DAT_LINKS_SHM_DOORBELL_H
#define DAT_LINKS_SHM_DOORBELL_H

#include "engine/domain.h"
#include "engine/link.h"
#include "links/shm/segment.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::shm {

// What attends to a connection of a peering. What it is told may be the end of it, and it may be
// told once more of what it knows.
class Party {
  public:
    // The peer has rung for this connection.
    virtual void rung() = 0;
    // There is no peer any more.
    virtual void peer_gone() = 0;
    // The peer cannot be woken any more, or wake this side.
    virtual void lost() = 0;

  protected:
    ~Party() = default;
};

// Who attends as what.
enum class Attends : std::uint8_t {
    link, // or what sends the last of one
    kept, // what waits for the peer to leave
};

class Doorbells final : public engine::Notifier {
  public:
    // Those of that memory; `guest`: this side is the peering's guest. Throws std::bad_alloc.
    Doorbells(engine::Domain& domain, Segment memory, bool guest);
    ~Doorbells();
    Doorbells(const Doorbells&) = delete;
    Doorbells& operator=(const Doorbells&) = delete;

    // A place that is free, the first, which is taken from here on; kNone: there is none. They
    // throw std::bad_alloc.
    static constexpr std::uint32_t kNone = UINT32_MAX;
    std::uint32_t take();
    // That one. False: it is not free, or there is no such place.
    bool take(std::uint32_t place);
    void give_back(std::uint32_t place);
    bool is_taken(std::uint32_t place) const {
        return place < places_.size() && places_[place].taken;
    }

    // Of a place that is taken: who is told.
    void attend(std::uint32_t place, Party& party, Attends as) {
        places_[place].parties[static_cast<std::size_t>(as)] = &party;
    }
    void leave(std::uint32_t place, Attends as) {
        places_[place].parties[static_cast<std::size_t>(as)] = nullptr;
    }
    // From here on poll() tells the party when its peer has rung, and until ignore().
    void watch();
    void ignore() { --watched_; }
    // Of one that is watched: it has something that its peer need not ring for.
    void ring_here(std::uint32_t place);
    // The peer finds it when it looks.
    void ring_for_peer(std::uint32_t place) { set(peers_, place); }
    // The same for one that may be looking. True: it sleeps, and has to be woken.
    bool ring(std::uint32_t place);
    // This side has been woken: whoever is rung for is told, and where any is watched this is
    // polled from here on.
    void look();
    // Each party, in the order of their places; what is told may take away any of them.
    template <class Tell> void tell_all(Tell&& tell) {
        for (std::size_t i = 0; i < places_.size(); ++i) {
            tell_those_at(i, tell);
        }
    }

    // engine::Notifier, while any link is watched
    void poll() override;
    void arm() override;
    bool has_news() const override;
    void disarm() override;
    void say_processor(std::uint32_t number) override {
        mine_.processor.store(number, std::memory_order_relaxed);
    }
    std::uint32_t peer_processor() const override {
        return peers_.processor.load(std::memory_order_relaxed);
    }

  private:
    struct Place {
        std::array<Party*, 2> parties{};
        bool taken = false;
    };
    template <class Tell> void tell_those_at(std::size_t place, Tell&& tell) {
        for (std::size_t i = 0; i < std::tuple_size_v<decltype(Place::parties)>; ++i) {
            if (Party* const party = places_[place].parties[i]) {
                tell(*party);
            }
        }
    }
    void woken();
    void take_rings();
    static void set(Doorbell& doorbell, std::uint32_t place);

    engine::Domain& domain_;
    const Segment memory_;
    Doorbell& mine_;
    Doorbell& peers_;
    std::vector<Place> places_;
    std::size_t watched_ = 0;
    bool polled_ = false; // by the domain
};

} // namespace dat::shm

#endif
