// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// core::RdmPeer: its table against test/spec/rdm-transitions.tsv, cell by cell, and what its
// calls make of what they are given. What comes of it with peers is the simulator's.
#include "core/rdm_peer.h"

#include <criterion/criterion.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>

using namespace dat::core;

namespace {

constexpr RdmPeer::Limits kLimits{.attempts = 2};
constexpr RdmIdentity kSmall{1, 1}, kOurs{2, 2}, kLarge{3, 3}, kLater{4, 4};

std::string words(RdmTodo what) {
    std::string out;
    for (std::size_t i = 0; i < static_cast<std::size_t>(RdmAction::count_); ++i) {
        const auto action = static_cast<RdmAction>(i);
        if ((what & todo(action)) != 0) {
            out += (out.empty() ? "" : "+") + std::string(name(action));
        }
    }
    return out.empty() ? "-" : out;
}

struct Scene {
    RdmSelf self{kOurs, 10};
    RdmPeer peer;

    // A connection that we have made to `who`, as it says.
    RdmPeer::Connection connected(const RdmIdentity& who, std::uint64_t given_up = 0) {
        peer.operation();
        peer.begin(self);
        const RdmPeer::Connection number = peer.connection();
        cr_assert(peer.answered(number, {who, given_up}, kLimits).has(RdmAction::go));
        return number;
    }
};

} // namespace

Test(rdm_peer, every_cell__is_that_of_the_oracle) {
    const char* const top = std::getenv("DAT_SRCDIR");
    std::ifstream in(std::string(top ? top : ".") + "/test/spec/rdm-transitions.tsv");
    cr_assert(in.good());
    std::set<std::string> oracle;
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && line[0] != '#') {
            cr_assert(oracle.insert(line).second, "twice: %s", line.c_str());
        }
    }
    for (std::size_t i = 0; i < kRdmStimulusCount; ++i) {
        for (std::size_t s = 0; s < kRdmStateCount; ++s) {
            const auto stimulus = static_cast<RdmStimulus>(i);
            const auto state = static_cast<RdmState>(s);
            const RdmCell& found = cell(stimulus, state);
            const std::string line = std::string(name(stimulus)) + '\t' + std::string(name(state)) +
                                     '\t' + std::string(name(found.verdict)) + '\t' +
                                     std::string(name(found.next)) + '\t' + words(found.todo);
            cr_assert_eq(oracle.erase(line), 1u, "not in the oracle: %s", line.c_str());
        }
    }
    cr_assert(oracle.empty(), "not in the table: %s", oracle.begin()->c_str());
}

Test(rdm_peer, requests_that_cross__both_ends_keep_the_same) {
    Scene small, large;
    small.self.identity = kSmall;
    large.self.identity = kLarge;
    small.peer.operation();
    large.peer.operation();
    const RdmHello first = small.peer.begin(small.self), second = large.peer.begin(large.self);
    const RdmPeer::Connection ours = small.peer.connection(), theirs = large.peer.connection();

    const auto refused = small.peer.request(small.self, second);
    cr_assert_eq(words(refused.todo), std::string("refuse_crossed"));
    cr_assert_eq(small.peer.state(), RdmState::connecting);
    const auto accepted = large.peer.request(large.self, first);
    cr_assert_eq(words(accepted.todo), std::string("drop+accept"));
    cr_assert_eq(accepted.before, theirs);
    cr_assert(large.peer.answered(theirs, RdmPeer::reply(small.self, refused), kLimits).late);

    const auto there = small.peer.answered(ours, RdmPeer::reply(large.self, accepted), kLimits);
    cr_assert_eq(words(there.todo), std::string("go"));
    cr_assert_eq(words(large.peer.confirmed(large.peer.connection()).todo), std::string("go"));
    cr_assert(small.peer.known() == kLarge && large.peer.known() == kSmall);
    // The one that was given up, however late it comes.
    cr_assert_eq(words(small.peer.request(small.self, second).todo), std::string("refuse_stale"));
}

Test(rdm_peer, request_for_who_was_here_before__is_refused) {
    Scene s;
    const auto answer = s.peer.request(s.self, {kSmall, kLarge, 1});
    cr_assert_eq(words(answer.todo), std::string("refuse_other"));
    cr_assert_eq(RdmPeer::reply(s.self, answer).refusal, RdmRefusal::other);
}

Test(rdm_peer, peer_that_has_restarted__ends_what_was_for_the_old_one) {
    Scene s;
    const RdmPeer::Connection old = s.connected(kSmall);
    const auto answer = s.peer.request(s.self, {kLater, {}, 1});
    cr_assert_eq(words(answer.todo), std::string("fail+drop+accept"));
    cr_assert_eq(answer.before, old);
    cr_assert(s.peer.ended(old, true).late);
    // One of before is not let in again while this one is there.
    s.peer.confirmed(s.peer.connection());
    cr_assert_eq(words(s.peer.request(s.self, {kSmall, {}, 9}).todo), std::string("refuse_stale"));
}

Test(rdm_peer, connection_let_go__next_one_is_for_the_same_peer_alone) {
    Scene s;
    const RdmPeer::Connection number = s.connected(kSmall);
    cr_assert_eq(words(s.peer.unused(number).todo), std::string("ask"));
    cr_assert_eq(words(s.peer.agreed(number).todo), std::string("leave"));
    cr_assert_eq(s.peer.ended(number, true).stimulus, RdmStimulus::ended_wanted);
    cr_assert(s.peer.begin(s.self).to == kSmall);
    const auto other =
        s.peer.answered(s.peer.connection(), {kLater, 0, RdmRefusal::other}, kLimits);
    cr_assert_eq(words(other.todo), std::string("fail+drop"));
    s.peer.operation();
    cr_assert_not(s.peer.begin(s.self).to.known()); // now for whoever is there
}

Test(rdm_peer, attempts_that_fail__are_so_many_and_no_more) {
    Scene s;
    s.peer.operation();
    s.peer.begin(s.self);
    cr_assert_eq(words(s.peer.failed(s.peer.connection(), kLimits).todo), std::string("retry"));
    cr_assert_eq(words(s.peer.due(true, kLimits).todo), std::string("connect"));
    s.peer.begin(s.self);
    cr_assert_eq(words(s.peer.failed(s.peer.connection(), kLimits).todo), std::string("fail"));
    cr_assert_eq(s.peer.state(), RdmState::dead);
    cr_assert_eq(s.peer.named_receive().verdict, RdmVerdict::error);
    cr_assert_eq(words(s.peer.operation().todo), std::string("connect"));
}

Test(rdm_peer, peer_that_always_says_crossed_and_never_comes__is_given_up) {
    Scene s;
    s.peer.operation();
    for (unsigned i = 0; i < kLimits.attempts; ++i) {
        s.peer.begin(s.self);
        const RdmReply crossed{kSmall, 0, RdmRefusal::crossed};
        cr_assert_eq(words(s.peer.answered(s.peer.connection(), crossed, kLimits).todo),
                     std::string("expect"));
        s.peer.due(true, kLimits);
    }
    cr_assert_eq(s.peer.state(), RdmState::dead);
}

Test(rdm_peer, retries__come_later_each_time_within_bounds) {
    const RdmPeer::Limits limits{.attempts = 40, .first_retry_us = 100, .longest_retry_us = 5000};
    Scene s;
    s.peer.operation();
    std::uint32_t most = 100;
    for (unsigned i = 0; i < 39; ++i) {
        s.peer.begin(s.self);
        s.peer.failed(s.peer.connection(), limits);
        for (const std::uint32_t random : {0u, 1u, 12345u, ~0u}) {
            const std::uint32_t us = s.peer.retry_us(limits, random);
            cr_assert(us >= most / 2 && us <= most, "%u of %u", us, most);
        }
        most = most * 2 < 5000 ? most * 2 : 5000;
        s.peer.due(true, limits);
    }
}

Test(rdm_peer, answer_that_names_nobody__is_none) {
    Scene s;
    s.peer.operation();
    s.peer.begin(s.self);
    cr_assert_eq(words(s.peer.answered(s.peer.connection(), {}, kLimits).todo),
                 std::string("retry"));
}

Test(rdm_peer, peer_that_was_dead_and_does_not_finish_its_request__is_dead_still) {
    Scene s;
    s.peer.ended(s.connected(kSmall), false);
    cr_assert_eq(s.peer.state(), RdmState::dead);
    s.peer.request(s.self, {kSmall, {}, 5});
    cr_assert_eq(s.peer.ended(s.peer.connection(), false).stimulus, RdmStimulus::unconfirmed_dead);
    cr_assert_eq(s.peer.state(), RdmState::dead);
}
