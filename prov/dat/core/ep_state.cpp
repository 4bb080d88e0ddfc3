// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// ep_state.def made into the table. Leaving out a cell does not compile: a row
// is built from exactly one cell a state, and the array has exactly one row a
// stimulus.
#include "core/ep_state.h"

namespace dat::core {
namespace {

// A cell as it is written, before its column is known.
struct Written {
    Verdict verdict;
    bool moves;
    State next;
    Event event;
    Flush flush;
};

constexpr Written keep(Verdict verdict, Flush flush = Flush::none) {
    return {verdict, false, State::unconnected, Event::none, flush};
}
constexpr Written move(State next, Event event, Flush flush) {
    return {Verdict::go, true, next, event, flush};
}

using Row = std::array<Cell, kStateCount>;

template <class... Cells> constexpr Row row(Cells... cells) {
    static_assert(sizeof...(Cells) == kStateCount, "a row of ep_state.def lacks a cell");
    Row out{};
    std::size_t column = 0;
    for (const Written& c : {cells...}) {
        out[column] =
            Cell{c.verdict, c.moves ? c.next : static_cast<State>(column), c.event, c.flush};
        ++column;
    }
    return out;
}

constexpr std::array<Row, kStimulusCount> build() {
    constexpr Written refuse = keep(Verdict::refuse);
    constexpr Written ignore = keep(Verdict::ignore);
    constexpr Written noop = keep(Verdict::noop);
    constexpr Written never = keep(Verdict::impossible);
    constexpr Written stay = keep(Verdict::go);
    constexpr Written flush = keep(Verdict::flush, Flush::posted);
#define to(S) move(State::S, Event::none, Flush::none)
#define up(EVENT) move(State::connected, Event::EVENT, Flush::none)
#define request(S) move(State::S, Event::connection_request, Flush::none)
#define raise(S) move(State::S, Event::recorded, Flush::none)
#define end(EVENT, FLUSH) move(State::ending, Event::EVENT, Flush::FLUSH)
#define gone(FLUSH) move(State::destroyed, Event::none, Flush::FLUSH)
#define DAT_EP_ROW(stimulus, cls, clauses, ...) row(__VA_ARGS__),
    return {{
#include "core/ep_state.def"
    }};
#undef to
#undef up
#undef request
#undef raise
#undef end
#undef gone
}

struct StateNames {
    std::string_view name, abbreviation;
};
constexpr std::array<StateNames, kStateCount + 2> kStateNames{{
#define DAT_EP_STATE(name, abbreviation, dat_name) {dat_name, #abbreviation},
#include "core/ep_state.def"
    {"DESTROYED", "-"},
    {"PROVIDER", "-"},
}};

struct StimulusNames {
    std::string_view name;
    StimulusClass cls;
    std::string_view clauses;
};
constexpr std::array<StimulusNames, kStimulusCount> kStimulusNames{{
#define DAT_EP_ROW(stimulus, cls, clauses, ...) {#stimulus, StimulusClass::cls, clauses},
#include "core/ep_state.def"
}};

constexpr std::array<std::string_view, 4> kClassNames{"api", "wire", "timer", "local"};
constexpr std::array<std::string_view, 6> kVerdictNames{"go",     "noop",   "flush",
                                                        "refuse", "ignore", "impossible"};
constexpr std::array<std::string_view, 11> kEventNames{"-",
                                                       "CONNECTION_REQUEST",
                                                       "ESTABLISHED",
                                                       "PEER_REJECTED",
                                                       "NON_PEER_REJECTED",
                                                       "UNREACHABLE",
                                                       "TIMED_OUT",
                                                       "ACCEPT_COMPLETION_ERROR",
                                                       "DISCONNECTED",
                                                       "BROKEN",
                                                       "RECORDED"};
constexpr std::array<std::string_view, 4> kFlushNames{"none", "recvs", "all", "posted"};

template <class Names, class Enum> auto& at(Names& names, Enum value) {
    return names[static_cast<std::size_t>(value)];
}

} // namespace

constinit const std::array<Row, kStimulusCount> kTable = build();

std::string_view name(State state) { return at(kStateNames, state).name; }
std::string_view abbreviation(State state) { return at(kStateNames, state).abbreviation; }
std::string_view name(Stimulus stimulus) { return at(kStimulusNames, stimulus).name; }
std::string_view name(StimulusClass cls) { return at(kClassNames, cls); }
std::string_view name(Verdict verdict) { return at(kVerdictNames, verdict); }
std::string_view name(Event event) { return at(kEventNames, event); }
std::string_view name(Flush flush) { return at(kFlushNames, flush); }
std::string_view clauses(Stimulus stimulus) { return at(kStimulusNames, stimulus).clauses; }
StimulusClass stimulus_class(Stimulus stimulus) { return at(kStimulusNames, stimulus).cls; }

// FNV-1a over all names, in their order.
std::uint64_t table_fingerprint() {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](std::string_view text) {
        for (const char c : text) {
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        }
        hash *= 0x100000001b3; // the end of a name counts
    };
    for (const StateNames& each : kStateNames) {
        add(each.name);
    }
    for (const StimulusNames& each : kStimulusNames) {
        add(each.name);
    }
    for (const std::string_view each : kEventNames) {
        add(each);
    }
    return hash;
}

} // namespace dat::core
