// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How the table of a link's life is written and read: that of the software domain in link_life.def,
// that of a device's in links/verbs/life.def. A cell is to(S), `stay` or `never`.
#ifndef DAT_ENGINE_LIFE_TABLE_H
#define DAT_ENGINE_LIFE_TABLE_H

#include "base/assert.h"
#include "base/log.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace dat::engine {

// States and events are enums of the table's own names, in its order, that end with count_.
template <class Enum>
inline constexpr std::size_t kCountOf = static_cast<std::size_t>(Enum::count_);
template <class Enum> using LifeNames = std::array<const char*, kCountOf<Enum>>;
// [event][state]: the next state; count_: the event never comes there.
template <class State, class Event>
using LifeTable = std::array<std::array<State, kCountOf<State>>, kCountOf<Event>>;

template <class State> struct LifeCell {
    enum class Kind : std::uint8_t { to, stay, never };
    Kind kind;
    State next;
};
template <class State> constexpr LifeCell<State> to(State next) {
    return {LifeCell<State>::Kind::to, next};
}
template <class State>
inline constexpr LifeCell<State> kStay{LifeCell<State>::Kind::stay, State::count_};
template <class State>
inline constexpr LifeCell<State> kNever{LifeCell<State>::Kind::never, State::count_};

// A cell is a function of its column.
template <class State>
constexpr std::array<State, kCountOf<State>>
life_row(const std::array<LifeCell<State>, kCountOf<State>>& cells) {
    std::array<State, kCountOf<State>> next{};
    for (std::size_t i = 0; i < next.size(); ++i) {
        next[i] =
            cells[i].kind == LifeCell<State>::Kind::stay ? static_cast<State>(i) : cells[i].next;
    }
    return next;
}

// An event that never comes where the link stands changes nothing: it is logged, and asserted.
// name(State) and name(Event) are found beside the two.
template <class State, class Event>
void step(State& state, Event event, const LifeTable<State, Event>& table) {
    const State next = table[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
    DAT_ASSERT(next != State::count_);
    if (next == State::count_) {
        DAT_WARN(ep_ctrl, "a fault of this library: a link that is %s meets %s", name(state),
                 name(event));
        return;
    }
    state = next;
}

} // namespace dat::engine

#endif
