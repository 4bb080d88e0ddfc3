// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// States, stimuli and the transition table of a DAT endpoint, as data. The
// table itself is ep_state.def; this header turns it into enumerations and
// ep_state.cpp into a constant array.
#ifndef DAT_CORE_EP_STATE_H
#define DAT_CORE_EP_STATE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dat::core {

// EP-1, EP-68. The first kStateCount are the columns of the table; `destroyed`
// and `provider` (the handle went back to the provider, EP-16) have no cells.
enum class State : std::uint8_t {
#define DAT_EP_STATE(name, abbreviation, dat_name) name,
#include "core/ep_state.def"
    destroyed,
    provider,
};
inline constexpr std::size_t kStateCount = static_cast<std::size_t>(State::destroyed);

// What can happen to an endpoint: the rows of the table.
enum class Stimulus : std::uint8_t {
#define DAT_EP_ROW(stimulus, cls, clauses, ...) stimulus,
#include "core/ep_state.def"
    count_,
};
inline constexpr std::size_t kStimulusCount = static_cast<std::size_t>(Stimulus::count_);

// Who raises a stimulus: the Consumer's call, the wire, a timer, the provider.
enum class StimulusClass : std::uint8_t { api, wire, timer, local };

enum class Verdict : std::uint8_t { go, noop, flush, refuse, ignore, impossible };

// Connection events (EVD-40). `recorded` stands in the table for the event
// that was recorded on entering ENDING; it is never raised under that name.
enum class Event : std::uint8_t {
    none,
    connection_request,
    established,
    peer_rejected,
    non_peer_rejected,
    unreachable,
    timed_out,
    accept_completion_error,
    disconnected,
    broken,
    recorded,
};

// Which outstanding operations complete as flushed.
enum class Flush : std::uint8_t { none, recvs, all, posted };

struct Cell {
    Verdict verdict;
    State next; // the state itself where it does not change
    Event event;
    Flush flush;

    friend constexpr bool operator==(const Cell&, const Cell&) = default;
};

// The whole table: [stimulus][state].
extern const std::array<std::array<Cell, kStateCount>, kStimulusCount> kTable;

inline const Cell& cell(Stimulus stimulus, State state) {
    return kTable[static_cast<std::size_t>(stimulus)][static_cast<std::size_t>(state)];
}

// Names as the DAT documents and test/spec/ep-transitions.tsv spell them. Each is a literal, so
// that data() ends with a zero.
std::string_view name(State state);
std::string_view abbreviation(State state); // three letters; "-" for the terminal ones
std::string_view name(Stimulus stimulus);
std::string_view name(StimulusClass cls);
std::string_view name(Verdict verdict);
std::string_view name(Event event); // "-" for none
std::string_view name(Flush flush);
std::string_view clauses(Stimulus stimulus);
StimulusClass stimulus_class(Stimulus stimulus);

// Stands for which number each state, stimulus and event has: another table, another number.
std::uint64_t table_fingerprint();

} // namespace dat::core

#endif
