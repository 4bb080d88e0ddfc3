// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The doorbells of two domains that share memory by more than one connection. Where few
// connections are busy each of their rings is looked at. Where they are many, those that had
// nothing lately are not: their peer sets a bit for each in a Doorbell, and this side looks at
// one word for all of them. A doorbell is between two processes alone, so a peer that sets, or
// clears, what it likes harms none but its own connections. Under the domain's lock.
#ifndef DAT_LINKS_SHM_DOORBELL_H
#define DAT_LINKS_SHM_DOORBELL_H

#include "engine/domain.h"
#include "engine/link.h"
#include "links/shm/segment.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace dat::shm {

class Doorbells final : public engine::Notifier {
  public:
    // Those of that memory; `initiator`: as of its connection. Throws std::bad_alloc.
    Doorbells(engine::Domain& domain, Segment memory, bool initiator);
    ~Doorbells();
    Doorbells(const Doorbells&) = delete;
    Doorbells& operator=(const Doorbells&) = delete;

    // A place that is free, which is taken from here on; kNone: there is none. They throw
    // std::bad_alloc.
    static constexpr std::uint32_t kNone = UINT32_MAX;
    std::uint32_t take();
    // That one. False: it is not free, or there is no such place.
    bool take(std::uint32_t place);
    void give_back(std::uint32_t place);

    // From here on poll() polls `link` when its peer has rung.
    void watch(std::uint32_t place, engine::MemoryLink& link);
    void ignore(std::uint32_t place);
    // The link has something that its peer need not ring for.
    void ring_here(std::uint32_t place);
    // The peer may look at its doorbell. True: it sleeps, and has to be woken by the socket.
    bool ring(std::uint32_t place);
    // ring() said that the peer sleeps, and it was not woken: the next ring() says so again.
    void rang_in_vain();
    // Somebody has been woken: this is polled from here on.
    void woken();

    // engine::Notifier, while any link is watched
    void poll() override;
    void arm() override;
    bool has_news() const override;
    void disarm() override;

  private:
    struct Place {
        engine::MemoryLink* link = nullptr; // that is watched
        bool taken = false;
    };
    void poll_link(std::uint32_t place);
    static void set(Doorbell& doorbell, std::uint32_t place);

    engine::Domain& domain_;
    const Segment memory_;
    Doorbell& mine_;
    Doorbell& peers_;
    std::vector<Place> places_;
    std::size_t watched_ = 0;
    bool polled_ = false; // by the domain
};

// What a connection has of them: a place, for as long as this lives. Move-only.
class DoorbellPlace {
  public:
    DoorbellPlace() = default;
    // It has been taken.
    DoorbellPlace(std::shared_ptr<Doorbells> of, std::uint32_t place)
        : of_(std::move(of)), place_(place) {}
    ~DoorbellPlace() {
        if (of_) {
            of_->give_back(place_);
        }
    }
    DoorbellPlace(DoorbellPlace&& other) noexcept = default;
    DoorbellPlace& operator=(DoorbellPlace&& other) noexcept {
        std::swap(of_, other.of_);
        std::swap(place_, other.place_);
        return *this;
    }

    explicit operator bool() const { return of_ != nullptr; }
    void watch(engine::MemoryLink& link) const { of_->watch(place_, link); }
    void ignore() const { of_->ignore(place_); }
    bool ring() const { return of_->ring(place_); }
    void rang_in_vain() const { of_->rang_in_vain(); }
    void ring_here() const { of_->ring_here(place_); }
    void woken() const { of_->woken(); }

  private:
    std::shared_ptr<Doorbells> of_;
    std::uint32_t place_ = 0;
};

} // namespace dat::shm

#endif
