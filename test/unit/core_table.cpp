// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The state machine against its oracle: every cell of
// test/spec/ep-transitions.tsv, in the table and through core::Endpoint.
// The environment's DAT_SRCDIR names the source tree; without it, the working
// directory does.
#include "core/endpoint.h"

#include <criterion/criterion.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

using namespace dat::core;

namespace {

constexpr std::uint32_t kLimit = 4;

struct OracleRow {
    std::string stimulus, cls, state, verdict, next, event, flush, clauses;
};

std::vector<OracleRow> read_oracle() {
    const char* top = std::getenv("DAT_SRCDIR");
    const std::string path = std::string(top ? top : ".") + "/test/spec/ep-transitions.tsv";
    std::ifstream in(path);
    cr_assert(in.good(), "cannot read %s", path.c_str());
    std::vector<OracleRow> rows;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#' || line.starts_with("stimulus\t")) {
            continue;
        }
        std::vector<std::string> field(1);
        for (const char c : line) {
            if (c == '\t') {
                field.emplace_back();
            } else {
                field.back() += c;
            }
        }
        cr_assert_eq(field.size(), 8u, "%s", line.c_str());
        rows.push_back(
            {field[0], field[1], field[2], field[3], field[4], field[5], field[6], field[7]});
    }
    return rows;
}

template <class Enum> Enum find(std::string_view text, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (name(static_cast<Enum>(i)) == text) {
            return static_cast<Enum>(i);
        }
    }
    cr_assert_fail("no such name: %.*s", static_cast<int>(text.size()), text.data());
    std::abort(); // not reached, which clang cannot know
}

Stimulus stimulus_of(const OracleRow& row) { return find<Stimulus>(row.stimulus, kStimulusCount); }
State state_of(const OracleRow& row) { return find<State>(row.state, kStateCount); }
State next_of(const OracleRow& row) {
    return row.next == "=" ? state_of(row) : find<State>(row.next, kStateCount + 2);
}

// An endpoint brought into `state` by legal stimuli, nothing outstanding. One
// that is ENDING has BROKEN recorded.
Endpoint endpoint_in(State state) {
    Endpoint ep(kLimit, kLimit,
                state == State::tentative_connection_pending ? state : State::unconnected);
    const auto happens = [&ep](Stimulus s) { ep.happen(s, ep.attempt()); };
    switch (state) {
    case State::reserved:
        ep.call(Stimulus::reserve);
        break;
    case State::passive_connection_pending:
        ep.call(Stimulus::reserve);
        happens(Stimulus::request_arrived);
        break;
    case State::active_connection_pending:
        ep.call(Stimulus::connect);
        break;
    case State::completion_pending:
        ep.call(Stimulus::accept_given);
        break;
    case State::connected:
    case State::disconnect_pending:
    case State::ending:
    case State::disconnected:
        ep.call(Stimulus::connect);
        happens(Stimulus::peer_accepted);
        if (state == State::disconnect_pending) {
            ep.call(Stimulus::disconnect_graceful);
        } else if (state != State::connected) {
            happens(Stimulus::broken);
        }
        if (state == State::disconnected) {
            happens(Stimulus::flushed);
        }
        break;
    default:
        break;
    }
    cr_assert_eq(ep.state(), state, "%s not reached", name(state).data());
    return ep;
}

// What the Endpoint itself must answer: an event on the way to ENDING is kept,
// and `flushed` raises the one that was kept (EP-68).
Event raised_now(const OracleRow& row) {
    if (row.next == "ENDING") {
        return Event::none;
    }
    return row.event == "RECORDED"
               ? Event::broken
               : find<Event>(row.event, static_cast<std::size_t>(Event::recorded));
}

Outcome drive(Endpoint& ep, Stimulus stimulus) {
    return stimulus_class(stimulus) == StimulusClass::api ? ep.call(stimulus)
                                                          : ep.happen(stimulus, ep.attempt());
}

// post_request and post_recv do not go through call(): their verdict shows in
// what becomes of the operation.
void check_post(const OracleRow& row) {
    const bool request = row.stimulus == "post_request";
    Endpoint ep = endpoint_in(state_of(row));
    const Endpoint before = ep;
    DtoStream& stream = request ? ep.requests() : ep.receives();
    std::uint64_t seq = 0;
    const PostVerdict verdict = request ? ep.post_request(seq) : ep.post_receive(seq);
    DtoStream::Done done{};
    if (row.verdict == "refuse") {
        cr_expect_eq(verdict, PostVerdict::refused, "%s", row.state.c_str());
        cr_expect(ep == before);
    } else if (row.verdict == "flush" || row.state == "ENDING") {
        cr_expect_eq(verdict, PostVerdict::flushed, "%s", row.state.c_str());
        cr_expect(stream.pop(done) && done.seq == seq && done.status == DtoStatus::flushed);
    } else {
        cr_expect_eq(verdict, PostVerdict::posted, "%s", row.state.c_str());
        cr_expect_eq(stream.outstanding(), 1u);
        cr_expect_not(stream.pop(done));
    }
    cr_expect_eq(ep.state(), state_of(row));
}

void check_through_endpoint(const OracleRow& row) {
    const State state = state_of(row);
    Endpoint ep = endpoint_in(state);
    const Endpoint before = ep;
    const Outcome outcome = drive(ep, stimulus_of(row));
    const char* where = row.stimulus.c_str();
    const char* in = row.state.c_str();
    cr_expect_eq(name(outcome.verdict), row.verdict, "%s in %s", where, in);
    cr_expect_eq(outcome.refused(), row.verdict == "refuse" || row.verdict == "impossible");
    cr_expect_eq(ep.state(), next_of(row), "%s in %s", where, in);
    cr_expect_eq(outcome.event, raised_now(row), "%s in %s", where, in);
    cr_expect_eq(name(outcome.flush), row.flush, "%s in %s", where, in);
    cr_expect_eq(ep.visible_state(),
                 ep.state() == State::ending ? State::disconnect_pending : ep.state());
    if (row.verdict != "go") { // GEN-2: nothing but "go" changes anything
        cr_expect(ep == before, "%s in %s", where, in);
    }
    if (row.next == "ENDING") { // EP-68: what was recorded comes out, once, at `flushed`
        const Outcome end = ep.happen(Stimulus::flushed, ep.attempt());
        cr_expect_eq(name(end.event), row.event, "%s in %s", where, in);
        cr_expect_eq(ep.state(), State::disconnected);
        cr_expect_eq(ep.happen(Stimulus::flushed, ep.attempt()).verdict, Verdict::ignore);
    }
}

std::vector<Stimulus> happenings() {
    std::vector<Stimulus> out;
    for (std::size_t i = 0; i < kStimulusCount; ++i) {
        if (stimulus_class(static_cast<Stimulus>(i)) != StimulusClass::api) {
            out.push_back(static_cast<Stimulus>(i));
        }
    }
    return out;
}

} // namespace

// Section 11.2, 11.3: the table is the oracle, cell by cell, column by column.
Test(core_table, every_cell__is_the_oracles) {
    std::map<std::pair<std::string, std::string>, int> seen;
    for (const OracleRow& row : read_oracle()) {
        const Stimulus stimulus = stimulus_of(row);
        const Cell& c = cell(stimulus, state_of(row));
        const char* where = row.stimulus.c_str();
        const char* in = row.state.c_str();
        cr_expect_eq(name(stimulus_class(stimulus)), row.cls, "%s", where);
        cr_expect_eq(clauses(stimulus), row.clauses, "%s", where);
        cr_expect_eq(name(c.verdict), row.verdict, "%s in %s", where, in);
        cr_expect_eq(c.next, next_of(row), "%s in %s", where, in);
        cr_expect_eq(name(c.event), row.event, "%s in %s", where, in);
        cr_expect_eq(name(c.flush), row.flush, "%s in %s", where, in);
        ++seen[{row.stimulus, row.state}];
    }
    cr_assert_eq(seen.size(), kStimulusCount * kStateCount);
    for (const auto& [where, times] : seen) {
        cr_expect_eq(times, 1, "%s in %s", where.first.c_str(), where.second.c_str());
    }
}

// The Endpoint does what the table says, and nothing more.
Test(core_table, every_cell__holds_through_the_endpoint) {
    std::size_t cells = 0;
    for (const OracleRow& row : read_oracle()) {
        if (row.stimulus == "post_request" || row.stimulus == "post_recv") {
            check_post(row);
        } else {
            check_through_endpoint(row);
        }
        ++cells;
    }
    cr_assert_eq(cells, 290u);
}

// EP-67: a happening of another attempt never reaches the table.
Test(core_table, happening_of_another_attempt__is_dropped_in_every_state) {
    for (std::size_t i = 0; i < kStateCount; ++i) {
        Endpoint ep = endpoint_in(static_cast<State>(i));
        const auto now = static_cast<std::uint32_t>(ep.attempt());
        for (const std::uint32_t other : {now - 1, now + 1, now + 1000}) {
            for (const Stimulus stimulus : happenings()) {
                const Endpoint before = ep;
                const Outcome outcome = ep.happen(stimulus, Attempt{other});
                cr_expect(outcome == (Outcome{Verdict::ignore, Event::none, Flush::none}));
                cr_expect(ep == before, "%s in %s", name(stimulus).data(),
                          name(static_cast<State>(i)).data());
            }
        }
    }
}

// EP-67, FREE-2: an endpoint that is gone, or went back to the provider, hears
// nothing, not even of its last attempt, and refuses every call.
Test(core_table, endpoint_that_is_gone__ignores_happenings_and_refuses_calls) {
    Endpoint freed = endpoint_in(State::connected);
    const Attempt last = freed.attempt();
    cr_assert_eq(freed.call(Stimulus::free).verdict, Verdict::go);
    Endpoint returned = endpoint_in(State::tentative_connection_pending);
    cr_assert_eq(returned.call(Stimulus::reject).verdict, Verdict::go);
    cr_assert_eq(returned.state(), State::provider);
    for (Endpoint* ep : {&freed, &returned}) {
        const Endpoint before = *ep;
        for (std::size_t i = 0; i < kStimulusCount; ++i) {
            const auto stimulus = static_cast<Stimulus>(i);
            if (stimulus_class(stimulus) == StimulusClass::api) {
                cr_expect(ep->call(stimulus).refused());
            } else {
                cr_expect_eq(ep->happen(stimulus, ep->attempt()).verdict, Verdict::ignore);
                cr_expect_eq(ep->happen(stimulus, last).verdict, Verdict::ignore);
            }
        }
        std::uint64_t seq = 0;
        cr_expect_eq(ep->post_request(seq), PostVerdict::refused);
        cr_expect_eq(ep->post_receive(seq), PostVerdict::refused);
        cr_expect(*ep == before);
    }
}
