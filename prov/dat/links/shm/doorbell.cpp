// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See doorbell.h.
#include "links/shm/doorbell.h"

#include "base/assert.h"
#include "engine/barrier.h"

#include <algorithm>
#include <bit>

namespace dat::shm {

namespace {

constexpr std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << (number % 64); }

} // namespace

Doorbells::Doorbells(engine::Domain& domain, Segment memory, bool guest)
    : domain_(domain), memory_(std::move(memory)), mine_(memory_.doorbell(guest)),
      peers_(memory_.doorbell(!guest)) {
    domain_.memory().expect_notifier(*this);
}

Doorbells::~Doorbells() {
    DAT_ASSERT(watched_ == 0);
    domain_.memory().forget(*this);
}

std::uint32_t Doorbells::take() {
    const auto free = std::find_if(places_.begin(), places_.end(),
                                   [](const Place& place) { return !place.taken; });
    const auto place = static_cast<std::uint32_t>(free - places_.begin());
    return take(place) ? place : kNone;
}

bool Doorbells::take(std::uint32_t place) {
    if (place >= Doorbell::kPlaces) {
        return false;
    }
    if (place >= places_.size()) {
        places_.resize(place + 1);
    }
    return !std::exchange(places_[place].taken, true);
}

void Doorbells::give_back(std::uint32_t place) {
    DAT_ASSERT(!places_[place].parties[0] && !places_[place].parties[1]);
    places_[place].taken = false;
}

void Doorbells::watch() {
    ++watched_;
    woken();
}

void Doorbells::woken() {
    if (watched_ > 0 && !polled_) {
        disarm();
        domain_.wake(*this);
    }
}

// The place first: who takes the word has it from whoever set it.
void Doorbells::set(Doorbell& doorbell, std::uint32_t place) {
    doorbell.places[place / 64].fetch_or(bit(place), std::memory_order_seq_cst);
    doorbell.words.fetch_or(bit(place / 64), std::memory_order_seq_cst);
}

void Doorbells::ring_here(std::uint32_t place) {
    set(mine_, place);
    woken();
}

bool Doorbells::ring(std::uint32_t place) {
    set(peers_, place);
    return peers_.asleep.load(std::memory_order_seq_cst) != 0 &&
           peers_.asleep.exchange(0, std::memory_order_seq_cst) != 0;
}

void Doorbells::poll() {
    if (mine_.words.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        return take_rings();
    }
    if (watched_ == 0) {
        polled_ = false;
        domain_.memory().stop(*this);
    }
}

void Doorbells::look() {
    if (mine_.words.load(std::memory_order_seq_cst) != 0) {
        take_rings();
    }
    woken();
}

// Each is taken once: a peer that sets them all the time holds up nothing else.
void Doorbells::take_rings() {
    for (std::uint64_t words = mine_.words.exchange(0, std::memory_order_seq_cst); words != 0;
         words &= words - 1) {
        const auto word = static_cast<std::uint32_t>(std::countr_zero(words));
        for (std::uint64_t rung = mine_.places[word].exchange(0, std::memory_order_seq_cst);
             rung != 0; rung &= rung - 1) {
            const std::uint32_t place =
                word * 64 + static_cast<std::uint32_t>(std::countr_zero(rung));
            if (place < places_.size()) {
                tell_those_at(place, [](Party& party) { party.rung(); });
            }
        }
    }
}

void Doorbells::arm() {
    polled_ = false; // but by disarm()
    mine_.asleep.store(1, std::memory_order_seq_cst);
    engine::full_fence();
}

bool Doorbells::has_news() const { return mine_.words.load(std::memory_order_seq_cst) != 0; }

void Doorbells::disarm() {
    polled_ = true;
    mine_.asleep.store(0, std::memory_order_relaxed);
}

} // namespace dat::shm
