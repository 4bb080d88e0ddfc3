// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The colours of the states, the same in the state picture and on the page of dat_trace. They are
// light, for black text.
#ifndef DAT_UTIL_STATE_COLOURS_H
#define DAT_UTIL_STATE_COLOURS_H

#include "core/ep_state.h"

#include <string_view>

namespace dat::util {

inline constexpr std::string_view kUsualColour = "#f2f2f2";

constexpr std::string_view state_colour(core::State state) {
    return state == core::State::connected ? "#cfe8cf" : kUsualColour;
}

// Inside the provider only: it is drawn with a dashed border.
constexpr bool is_dashed(core::State state) { return state == core::State::ending; }

} // namespace dat::util

#endif
