// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See life.h.
#include "links/verbs/life.h"

namespace dat::verbs {

namespace {

using enum LinkState;
constexpr auto stay = engine::kStay<LinkState>;
constexpr auto never = engine::kNever<LinkState>;
using engine::to;

constexpr engine::LifeNames<LinkState> kStateNames{
#define DAT_VERBS_STATE(name, meaning) #name,
#include "links/verbs/life.def"
};
constexpr engine::LifeNames<LinkEvent> kEventNames{
#define DAT_VERBS_ROW(event, meaning, ...) #event,
#include "links/verbs/life.def"
};

} // namespace

constexpr engine::LifeTable<LinkState, LinkEvent> kLinkTable{
#define DAT_VERBS_ROW(event, meaning, ...) engine::life_row<LinkState>({__VA_ARGS__}),
#include "links/verbs/life.def"
};

const char* name(LinkState state) { return kStateNames[static_cast<std::size_t>(state)]; }
const char* name(LinkEvent event) { return kEventNames[static_cast<std::size_t>(event)]; }

} // namespace dat::verbs
