// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See link_life.h.
#include "engine/link_life.h"

namespace dat::engine {

namespace {

using enum LinkState;
constexpr auto stay = kStay<LinkState>;
constexpr auto never = kNever<LinkState>;

constexpr LifeNames<LinkState> kStateNames{
#define DAT_LINK_STATE(name, meaning) #name,
#include "engine/link_life.def"
};
constexpr LifeNames<LinkEvent> kEventNames{
#define DAT_LINK_ROW(event, meaning, ...) #event,
#include "engine/link_life.def"
};

} // namespace

constexpr LifeTable<LinkState, LinkEvent> kLinkTable{
#define DAT_LINK_ROW(event, meaning, ...) life_row<LinkState>({__VA_ARGS__}),
#include "engine/link_life.def"
};

const char* name(LinkState state) { return kStateNames[static_cast<std::size_t>(state)]; }
const char* name(LinkEvent event) { return kEventNames[static_cast<std::size_t>(event)]; }

void LinkLife::happen(LinkEvent event) { step(state_, event, kLinkTable); }

} // namespace dat::engine
