// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rdm_peer.def made into the table, and what tells its stimuli apart. Leaving out a cell does
// not compile.
#include "core/rdm_peer.h"

#include "base/assert.h"

#include <algorithm>

namespace dat::core {
namespace {

// A cell as it is written, before its column is known.
struct Written {
    RdmVerdict verdict;
    bool moves;
    RdmState next;
    RdmTodo todo;
};

using Row = std::array<RdmCell, kRdmStateCount>;

template <class... Cells> constexpr Row row(Cells... cells) {
    static_assert(sizeof...(Cells) == kRdmStateCount, "a row of rdm_peer.def lacks a cell");
    Row out{};
    std::size_t column = 0;
    for (const Written& c : {cells...}) {
        out[column] = RdmCell{c.verdict, c.moves ? c.next : static_cast<RdmState>(column), c.todo};
        ++column;
    }
    return out;
}

constexpr std::array<Row, kRdmStimulusCount> build() {
    constexpr auto keep = [](RdmVerdict verdict, RdmTodo what = 0) {
        return Written{verdict, false, RdmState::idle, what};
    };
    constexpr auto move = [](RdmState next, RdmTodo what) {
        return Written{RdmVerdict::go, true, next, what};
    };
    constexpr Written ignore = keep(RdmVerdict::ignore);
    constexpr Written never = keep(RdmVerdict::impossible);
    constexpr Written stay = keep(RdmVerdict::go);
    constexpr Written wait = keep(RdmVerdict::wait);
    constexpr Written send = keep(RdmVerdict::send);
    constexpr Written error = keep(RdmVerdict::error);
    constexpr RdmTodo nothing = 0;
    constexpr RdmTodo fail = todo(RdmAction::fail);
    constexpr RdmTodo stop = todo(RdmAction::stop);
    constexpr RdmTodo drop = todo(RdmAction::drop);
    constexpr RdmTodo refuse_crossed = todo(RdmAction::refuse_crossed);
    constexpr RdmTodo refuse_stale = todo(RdmAction::refuse_stale);
    constexpr RdmTodo refuse_other = todo(RdmAction::refuse_other);
    constexpr RdmTodo accept = todo(RdmAction::accept);
    constexpr RdmTodo connect = todo(RdmAction::connect);
    constexpr RdmTodo leave = todo(RdmAction::leave);
    constexpr RdmTodo ask = todo(RdmAction::ask);
    constexpr RdmTodo agree = todo(RdmAction::agree);
    constexpr RdmTodo decline = todo(RdmAction::decline);
    constexpr RdmTodo retry = todo(RdmAction::retry);
    constexpr RdmTodo expect = todo(RdmAction::expect);
    constexpr RdmTodo go = todo(RdmAction::go);
#define now(ACTIONS) keep(RdmVerdict::go, ACTIONS)
#define to(S, ACTIONS) move(RdmState::S, ACTIONS)
#define gone(ACTIONS) move(RdmState::removed, ACTIONS)
#define DAT_RDM_ROW(stimulus, cls, meaning, ...) row(__VA_ARGS__),
    return {{
#include "core/rdm_peer.def"
    }};
#undef now
#undef to
#undef gone
}

struct StateNames {
    std::string_view name, abbreviation, meaning;
};
constexpr std::array<StateNames, kRdmStateCount + 1> kStateNames{{
#define DAT_RDM_STATE(name, abbreviation, meaning) {#name, #abbreviation, meaning},
#include "core/rdm_peer.def"
    {"removed", "REM", "Gone."},
}};

struct StimulusNames {
    std::string_view name, cls, meaning;
};
constexpr std::array<StimulusNames, kRdmStimulusCount> kStimulusNames{{
#define DAT_RDM_ROW(stimulus, cls, meaning, ...) {#stimulus, #cls, meaning},
#include "core/rdm_peer.def"
}};

constexpr std::array<std::string_view, 6> kVerdictNames{"go",    "wait",   "send",
                                                        "error", "ignore", "never"};
constexpr std::array<std::string_view, static_cast<std::size_t>(RdmAction::count_)> kActionNames{
    "fail",  "stop", "drop",  "refuse_crossed", "refuse_stale", "refuse_other", "accept", "connect",
    "leave", "ask",  "agree", "decline",        "retry",        "expect",       "go"};

template <class Names, class Enum> auto& at(Names& names, Enum value) {
    return names[static_cast<std::size_t>(value)];
}

} // namespace

constinit const std::array<Row, kRdmStimulusCount> kRdmTable = build();

std::string_view name(RdmState state) { return at(kStateNames, state).name; }
std::string_view abbreviation(RdmState state) { return at(kStateNames, state).abbreviation; }
std::string_view meaning(RdmState state) { return at(kStateNames, state).meaning; }
std::string_view name(RdmStimulus stimulus) { return at(kStimulusNames, stimulus).name; }
std::string_view meaning(RdmStimulus stimulus) { return at(kStimulusNames, stimulus).meaning; }
std::string_view stimulus_class(RdmStimulus stimulus) { return at(kStimulusNames, stimulus).cls; }
std::string_view name(RdmVerdict verdict) { return at(kVerdictNames, verdict); }
std::string_view name(RdmAction action) { return at(kActionNames, action); }

RdmPeer::Answer RdmPeer::apply(RdmStimulus stimulus) {
    if (state_ == RdmState::removed) {
        return {RdmVerdict::impossible, 0, connection_, stimulus, true};
    }
    const RdmCell& found = cell(stimulus, state_);
    const Answer answer{found.verdict, found.todo, connection_, stimulus, false};
    state_ = found.next;
    if (answer.has(RdmAction::fail)) {
        known_ = {};
    }
    if (answer.has(RdmAction::accept) || answer.has(RdmAction::connect)) {
        ++connection_;
    }
    if (answer.has(RdmAction::fail) || answer.has(RdmAction::go) || state_ == RdmState::idle) {
        before_ = 0;
    }
    return answer;
}

// What is of a connection that is over, or an attempt that was given up, never reaches the
// table.
RdmPeer::Answer RdmPeer::happen(Connection of, RdmStimulus stimulus) {
    if (of != connection_ || state_ == RdmState::removed) {
        return {RdmVerdict::ignore, 0, connection_, stimulus, true};
    }
    return apply(stimulus);
}

RdmHello RdmPeer::begin(RdmSelf& self) {
    DAT_ASSERT(state_ == RdmState::connecting);
    return {self.identity, known_, ++self.attempts};
}

RdmPeer::Answer RdmPeer::failed(Connection of, const Limits& limits) {
    const bool last = before_ + 1 >= limits.attempts;
    const Answer answer =
        happen(of, last ? RdmStimulus::attempts_used_up : RdmStimulus::attempt_failed);
    before_ += answer.has(RdmAction::retry) ? 1 : 0;
    return answer;
}

RdmPeer::Answer RdmPeer::answered(Connection of, const RdmReply& reply, const Limits& limits) {
    const bool other = known_.known() && reply.from != known_;
    if (!reply.from.known() || reply.refusal == RdmRefusal::stale ||
        (reply.refusal == RdmRefusal::other && !other)) {
        return failed(of, limits);
    }
    if (reply.refusal == RdmRefusal::crossed) {
        return happen(of, RdmStimulus::crossed);
    }
    const Answer answer = happen(of, other ? RdmStimulus::reached_other : RdmStimulus::established);
    if (answer.has(RdmAction::go)) {
        known_ = reply.from;
        given_up_ = {reply.from, reply.given_up};
    }
    return answer;
}

// What a request is, from what is known of whom it is from.
RdmStimulus RdmPeer::kind_of(const RdmSelf& self, const RdmHello& hello) const {
    if (hello.to.known() && hello.to != self.identity) {
        return RdmStimulus::request_misdirected;
    }
    if (given_up_.covers(hello) || accepted_.covers(hello)) {
        return RdmStimulus::request_stale;
    }
    if (linked() && hello.from != known_) {
        return hello.from > known_ ? RdmStimulus::request_restarted : RdmStimulus::request_outlived;
    }
    return hello.from < self.identity ? RdmStimulus::request_first : RdmStimulus::request_second;
}

RdmPeer::Answer RdmPeer::request(const RdmSelf& self, const RdmHello& hello) {
    const RdmState was = state_;
    const Answer answer = apply(kind_of(self, hello));
    if (answer.has(RdmAction::accept)) {
        accepted_ = {hello.from, hello.number};
        was_dead_ = was == RdmState::dead || (was == RdmState::accepting && was_dead_);
    }
    return answer;
}

RdmReply RdmPeer::reply(const RdmSelf& self, const Answer& answer) {
    RdmReply out{self.identity, self.attempts, RdmRefusal::none};
    if (answer.has(RdmAction::refuse_crossed)) {
        out.refusal = RdmRefusal::crossed;
    } else if (answer.has(RdmAction::refuse_other)) {
        out.refusal = RdmRefusal::other;
    } else if (!answer.has(RdmAction::accept)) {
        out.refusal = RdmRefusal::stale;
    }
    return out;
}

RdmPeer::Answer RdmPeer::confirmed(Connection of) {
    const bool other = known_.known() && known_ != accepted_.from;
    const Answer answer = happen(of, other ? RdmStimulus::confirmed_other : RdmStimulus::confirmed);
    if (answer.has(RdmAction::go)) {
        known_ = accepted_.from;
    }
    return answer;
}

RdmPeer::Answer RdmPeer::ended(Connection of, bool queued) {
    if (state_ == RdmState::accepting) {
        return happen(of, was_dead_ && !queued ? RdmStimulus::unconfirmed_dead
                                               : RdmStimulus::unconfirmed);
    }
    return happen(of, queued ? RdmStimulus::ended_wanted : RdmStimulus::ended_unwanted);
}

RdmPeer::Answer RdmPeer::due(bool queued, const Limits& limits) {
    // Where the peer's own attempt did not come, ours was one in vain.
    if (state_ == RdmState::yielding && queued && ++before_ >= limits.attempts) {
        return apply(RdmStimulus::attempts_used_up);
    }
    return apply(queued ? RdmStimulus::due_wanted : RdmStimulus::due_unwanted);
}

std::uint32_t RdmPeer::retry_us(const Limits& limits, std::uint32_t random) const {
    if (state_ == RdmState::yielding) {
        return limits.expect_us;
    }
    const std::uint64_t doubled = std::uint64_t{limits.first_retry_us}
                                  << std::min(before_ > 0 ? before_ - 1 : 0, 31u);
    const auto longest = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(doubled, std::max(limits.longest_retry_us, 1u)));
    return longest - random % (longest / 2 + 1);
}

} // namespace dat::core
