// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where a link over an RDMA device stands, as life.def has it. The link raises the events and does
// what they call for; nothing else changes the state. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_LIFE_H
#define DAT_LINKS_VERBS_LIFE_H

#include "engine/life_table.h"

#include <cstdint>

namespace dat::verbs {

enum class LinkState : std::uint8_t {
#define DAT_VERBS_STATE(name, meaning) name,
#include "links/verbs/life.def"
    count_,
};

enum class LinkEvent : std::uint8_t {
#define DAT_VERBS_ROW(event, meaning, ...) event,
#include "links/verbs/life.def"
    count_,
};

extern const engine::LifeTable<LinkState, LinkEvent> kLinkTable;

const char* name(LinkState state);
const char* name(LinkEvent event);

class LinkLife {
  public:
    LinkState state() const { return state_; }
    void happen(LinkEvent event) { engine::step(state_, event, kLinkTable); }

    // These two are all that is asked on the path of a message.
    bool holds() const { return state_ <= LinkState::held_failed; }
    bool is_open() const { return state_ == LinkState::open; }
    // The handshake is over; not asked once the link is.
    bool has_started() const { return state_ != LinkState::opening; }
    // No more requests come, and it can still be said that all are complete.
    bool drains() const {
        return state_ == LinkState::held_draining ||
               (state_ >= LinkState::draining && state_ <= LinkState::confirmed);
    }
    bool has_failed() const {
        return state_ == LinkState::held_failed || state_ == LinkState::failed ||
               state_ == LinkState::failed_marked;
    }
    bool peer_left() const { return state_ == LinkState::left || state_ == LinkState::left_marked; }
    bool is_over() const { return state_ == LinkState::over; }

  private:
    LinkState state_ = LinkState::opening;
};

} // namespace dat::verbs

#endif
