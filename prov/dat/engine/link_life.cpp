// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See link_life.h.
#include "engine/link_life.h"

#include "base/assert.h"
#include "base/log.h"

namespace dat::engine {

namespace {

// As the table is written: a cell is a function of its column.
struct LinkCell {
    enum class Kind : std::uint8_t { to, stay, never };
    Kind kind;
    LinkState next;
};
using enum LinkState;
constexpr LinkCell to(LinkState next) { return {LinkCell::Kind::to, next}; }
constexpr LinkCell stay{LinkCell::Kind::stay, count_};
constexpr LinkCell never{LinkCell::Kind::never, count_};

constexpr std::array<LinkState, kLinkStates> row(const std::array<LinkCell, kLinkStates>& cells) {
    std::array<LinkState, kLinkStates> next{};
    for (std::size_t i = 0; i < kLinkStates; ++i) {
        next[i] = cells[i].kind == LinkCell::Kind::stay ? static_cast<LinkState>(i) : cells[i].next;
    }
    return next;
}

constexpr std::array<const char*, kLinkStates> kStateNames{
#define DAT_LINK_STATE(name, meaning) #name,
#include "engine/link_life.def"
};
constexpr std::array<const char*, kLinkEvents> kEventNames{
#define DAT_LINK_ROW(event, meaning, ...) #event,
#include "engine/link_life.def"
};

} // namespace

constexpr std::array<std::array<LinkState, kLinkStates>, kLinkEvents> kLinkTable{
#define DAT_LINK_ROW(event, meaning, ...) row({__VA_ARGS__}),
#include "engine/link_life.def"
};

const char* name(LinkState state) { return kStateNames[static_cast<std::size_t>(state)]; }
const char* name(LinkEvent event) { return kEventNames[static_cast<std::size_t>(event)]; }

void LinkLife::happen(LinkEvent event) {
    const auto& cells = kLinkTable[static_cast<std::size_t>(event)];
    const LinkState next = cells[static_cast<std::size_t>(state_)];
    DAT_ASSERT(next != LinkState::count_);
    if (next == LinkState::count_) {
        DAT_WARN(ep_ctrl, "a fault of this library: a link that is %s meets %s", name(state_),
                 name(event));
        return;
    }
    state_ = next;
}

} // namespace dat::engine
