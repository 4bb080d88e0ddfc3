// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two processes that measure: whatever one of them does, both end, and it is explained.
#include "util/perf/pair.h"

#include <criterion/criterion.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

// The one that fails closes its end of the link before it says why, and may be slow in between.
Test(perf_pair, failure__is_told_although_the_other_speaks_first) {
    auto* const other = static_cast<std::atomic<pid_t>*>(::mmap(nullptr, sizeof(std::atomic<pid_t>),
                                                                PROT_READ | PROT_WRITE,
                                                                MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const Outcome outcome = run_pair(
        [=](Peer& peer) {
            if (peer.client()) {
                *other = ::getpid();
                peer.tell("there");
                return wait_for_ever(peer);
            }
            peer.hear();
            pollfd ended{static_cast<int>(::syscall(SYS_pidfd_open, other->load(), 0)), POLLIN, 0};
            sigset_t term;
            ::sigemptyset(&term);
            ::sigaddset(&term, SIGTERM);
            ::sigprocmask(SIG_BLOCK, &term, nullptr);
            { const Peer gone(std::move(peer)); }
            ::poll(&ended, 1, kLong_s * 1000);
            const timespec a_moment{0, 100'000'000};
            if (::sigtimedwait(&term, nullptr, &a_moment) == SIGTERM) {
                fail("told to end");
            }
            fail("no more paper");
        },
        kLong_s);
    cr_assert_eq(outcome.why, "the server: no more paper");
    nothing_left();
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

Test(perf_pair, several__meet_in_a_crowd_and_each_is_heard) {
    constexpr std::size_t kMany = 3;
    auto* const crowd = static_cast<Crowd*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    cr_assert_neq(static_cast<void*>(crowd), MAP_FAILED);
    std::vector<Member> members(2 * kMany);
    for (std::size_t i = 0; i < kMany; ++i) {
        auto [server, client] = make_link();
        members[i].role = Role::server;
        members[i].peers.push_back(std::move(server));
        members[kMany + i].role = Role::client;
        members[kMany + i].name = "client " + std::to_string(i + 1);
        members[kMany + i].peers.push_back(std::move(client));
    }
    const Outcome outcome = run_members(
        std::move(members),
        [&](const Member& member, std::vector<Peer>& peers) {
            if (!peers.at(0).client()) {
                return peers[0].hear();
            }
            peers[0].join_crowd(crowd, kMany);
            peers[0].meet_crowd([] {});
            // All have come: nobody passes who would be the only one.
            const auto arrived = crowd->arrived.load();
            peers[0].meet_crowd([] {});
            peers[0].tell(member.name);
            return std::to_string(arrived >= kMany ? 1 : 0);
        },
        kLong_s);
    cr_assert(outcome.ending == Ending::right, "%s", outcome.why.c_str());
    for (std::size_t i = 0; i < kMany; ++i) {
        cr_assert_eq(outcome.said.at(i), "client " + std::to_string(i + 1));
        cr_assert_eq(outcome.said.at(kMany + i), "1");
    }
    ::munmap(crowd, 4096);
    nothing_left();
}

Test(perf_pair, long_messages__arrive_whole) {
    const std::string bytes(1'000'000, 'x');
    const Outcome outcome = run_pair(
        [&](Peer& peer) {
            if (peer.client()) {
                peer.tell(bytes);
                peer.tell("");
                peer.tell("end");
                return std::string();
            }
            const bool whole = peer.hear() == bytes;
            const bool empty = peer.hear().empty();
            return std::string(whole && empty ? peer.hear() : "something else");
        },
        kLong_s);
    cr_assert_eq(outcome.server, "end", "%s", outcome.why.c_str());
}
