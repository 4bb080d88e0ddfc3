// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two processes that measure: whatever one of them does, both end, and it is explained.
// May include: util/perf, std, Linux.
#include "util/perf/pair.h"

#include <criterion/criterion.h>

#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace dat::perf;

namespace {

constexpr int kLong_s = 60; // in no test is it reached

bool says(const Outcome& outcome, const char* words) {
    return outcome.why.find(words) != std::string::npos;
}

// Of what was made nothing is left, not even unburied.
void nothing_left() {
    cr_assert_eq(::waitpid(-1, nullptr, WNOHANG), -1);
    cr_assert_eq(errno, ECHILD);
}

// Waits for the other process, which never says anything.
std::string wait_for_ever(Peer& peer) { return peer.hear(); }

} // namespace

Test(perf_pair, both_sides__return_what_they_have) {
    const Outcome outcome = run_pair(
        [](Peer& peer) {
            peer.tell(peer.client() ? "from the client" : "from the server");
            return peer.hear();
        },
        kLong_s);
    cr_assert(outcome.ending == Ending::right, "%s", outcome.why.c_str());
    cr_assert_eq(outcome.server, "from the client");
    cr_assert_eq(outcome.client, "from the server");
    nothing_left();
}

Test(perf_pair, sides__have_processors_of_their_own_where_there_are_two) {
    const Outcome outcome =
        run_pair([](Peer&) { return std::string(pinned() ? "yes" : "no"); }, kLong_s);
    const char* expected = two_processors() ? "yes" : "no";
    cr_assert_eq(outcome.server, expected);
    cr_assert_eq(outcome.client, expected);
}

Test(perf_pair, failure_of_one__is_told_and_ends_the_other) {
    for (const bool client : {false, true}) {
        const Outcome outcome = run_pair(
            [=](Peer& peer) {
                if (peer.client() == client) {
                    fail("no more %s", "paper");
                }
                return wait_for_ever(peer);
            },
            kLong_s);
        cr_assert(outcome.ending == Ending::failed);
        cr_assert_eq(outcome.why,
                     client ? "the client: no more paper" : "the server: no more paper");
        nothing_left();
    }
}

Test(perf_pair, what_is_not_offered__is_no_failure) {
    const Outcome outcome = run_pair(
        [](Peer& peer) -> std::string {
            if (peer.client()) {
                throw NotOffered("has no wings");
            }
            return wait_for_ever(peer);
        },
        kLong_s);
    cr_assert(outcome.ending == Ending::not_offered);
    cr_assert_eq(outcome.why, "has no wings");
}

Test(perf_pair, killed_side__is_told_with_its_signal) {
    const Outcome outcome = run_pair(
        [](Peer& peer) {
            if (peer.client()) {
                ::raise(SIGKILL);
            }
            return wait_for_ever(peer);
        },
        kLong_s);
    cr_assert(outcome.ending == Ending::failed);
    cr_assert(says(outcome, "the client was killed by signal 9"), "%s", outcome.why.c_str());
    nothing_left();
}

Test(perf_pair, side_that_exits__is_told_with_its_status) {
    const Outcome outcome = run_pair(
        [](Peer& peer) {
            if (!peer.client()) {
                ::_exit(3);
            }
            return wait_for_ever(peer);
        },
        kLong_s);
    cr_assert(says(outcome, "the server ended with status 3"), "%s", outcome.why.c_str());
    nothing_left();
}

Test(perf_pair, side_that_hangs__is_ended_at_the_limit) {
    const Outcome outcome = run_pair([](Peer& peer) { return wait_for_ever(peer); }, 1);
    cr_assert(outcome.ending == Ending::failed);
    cr_assert(says(outcome, "took longer than 1 s"), "%s", outcome.why.c_str());
    nothing_left();
}

Test(perf_pair, side_that_ignores_being_asked__is_killed) {
    const Outcome outcome = run_pair(
        [](Peer& peer) {
            ::signal(SIGTERM, SIG_IGN);
            return wait_for_ever(peer);
        },
        1);
    cr_assert(outcome.ending == Ending::failed);
    cr_assert(says(outcome, "took longer than 1 s"), "%s", outcome.why.c_str());
    nothing_left();
}

Test(perf_pair, process_alone__returns_or_explains) {
    cr_assert_eq(run_alone([] { return std::string("here"); }, kLong_s).client, "here");
    const Outcome outcome = run_alone([]() -> std::string { fail("gone"); }, kLong_s);
    cr_assert(outcome.ending == Ending::failed && says(outcome, "gone"));
    nothing_left();
}
