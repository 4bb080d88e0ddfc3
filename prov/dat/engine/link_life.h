// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where a link of the software domain stands between its first byte and its end, as link_life.def
// has it. The link raises the events and does what they call for; nothing else changes the state.
// Under the domain's lock.
#ifndef DAT_ENGINE_LINK_LIFE_H
#define DAT_ENGINE_LINK_LIFE_H

#include "engine/life_table.h"

#include <cstdint>

namespace dat::engine {

enum class LinkState : std::uint8_t {
#define DAT_LINK_STATE(name, meaning) name,
#include "engine/link_life.def"
    count_,
};

enum class LinkEvent : std::uint8_t {
#define DAT_LINK_ROW(event, meaning, ...) event,
#include "engine/link_life.def"
    count_,
};

extern const LifeTable<LinkState, LinkEvent> kLinkTable;

const char* name(LinkState state);
const char* name(LinkEvent event);

class LinkLife {
  public:
    LinkState state() const { return state_; }
    void happen(LinkEvent event);

    // Both sides send: the only question on the path of a message.
    bool is_open() const { return state_ == LinkState::open; }
    bool is_over() const { return state_ == LinkState::over; }
    // This side says nothing more.
    bool is_silent() const { return state_ >= LinkState::said; }
    bool said_goodbye() const { return is_silent() && !is_over(); }
    // drain() was called; not asked once it is over.
    bool drains() const { return state_ >= LinkState::draining; }
    bool peer_ended() const { return is_one_of(1) || is_one_of(2); }
    // The peer has ended, nothing more is to come, and messages of its wait for receives.
    bool waits() const { return is_one_of(2); }
    // A limit of U-9 or U-42 runs.
    bool is_limited() const { return !is_open() && !is_over(); }

  private:
    bool is_one_of(unsigned half) const {
        return !is_over() && static_cast<unsigned>(state_) % 3 == half;
    }

    LinkState state_ = LinkState::open;
};

} // namespace dat::engine

#endif
