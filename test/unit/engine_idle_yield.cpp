// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Who polls in vain gives its processor away where a peer has the same, and nobody else does.
#include "engine/idle_yield.h"
#include "engine_shm.h"

#include <chrono>
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace engine_test;
using namespace std::chrono_literals;
using dat::engine::Clock;
using dat::engine::IdleYield;

namespace {
int yields = 0;
}

// The C library's, as the domain calls it.
extern "C" int sched_yield() noexcept {
    ++yields;
    return static_cast<int>(syscall(SYS_sched_yield));
}

namespace {

dat::engine::Domain::Options polled(bool progress_thread, bool shared) {
    dat::engine::Domain::Options o = options();
    o.progress_thread = progress_thread;
    o.shared = shared;
    return o;
}

// By a program that does nothing else, for so long, or until it has.
int yields_of(dat::engine::Domain& domain, Clock::duration time = 20s) {
    yields = 0;
    for (const auto end = Clock::now() + time; Clock::now() < end && yields == 0;) {
        for (int i = 0; i < 1000; ++i) {
            domain.progress();
        }
    }
    return yields;
}

// A peer that polls on the processor that this thread has, from here on for good, or on another.
struct Peered : Raw {
    explicit Peered(bool same = true, const dat::engine::Domain::Options& o = polled(false, false))
        : Raw(true, o) {
        const int here = sched_getcpu();
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(here, &one);
        cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
        theirs().processor.store(static_cast<std::uint32_t>(here + (same ? 1 : 2)));
    }
    shm::Doorbell& theirs() { return segment.doorbell(false); }
    shm::Doorbell& ours() { return segment.doorbell(true); }
};

struct Poller {
    // `count` polls that took `each`, all in vain.
    bool in_vain(std::uint64_t count, Clock::duration each) {
        polls += count;
        now += count * each;
        return yield.in_vain(polls, now);
    }
    IdleYield yield;
    std::uint64_t polls = 1;
    Clock::time_point now = Clock::now();
};

} // namespace

Test(idle_yield, where_a_peer_has_the_same_processor__comes) {
    Peered p;
    cr_assert_gt(yields_of(p.domain), 0);
    cr_assert_eq(p.ours().processor.load(), p.theirs().processor.load(), "which it is told");
}

Test(idle_yield, where_no_peer_has_it__never_comes) {
    Peered elsewhere(false);
    cr_assert_eq(yields_of(elsewhere.domain, 50ms), 0);
    Raw silent(true, polled(false, false));
    cr_assert_eq(yields_of(silent.domain, 50ms), 0);
    OpenDomain alone(polled(false, false));
    cr_assert_eq(yields_of(alone, 50ms), 0);
}

// Who sleeps needs no processor.
Test(idle_yield, before_it_sleeps__says_that_it_polls_no_more) {
    Peered p;
    cr_assert_gt(yields_of(p.domain), 0);
    cr_assert(p.domain.rest());
    cr_assert_eq(p.ours().processor.load(), 0u);
    p.ring();
    cr_assert_gt(yields_of(p.domain), 0);
    cr_assert_neq(p.ours().processor.load(), 0u);
}

// Also of connections that are left to their doorbells.
Test(idle_yield, where_links_are_tired__comes_all_the_same) {
    Peered p;
    for (std::uint64_t i = 0; i < 4'000'000 && p.view.peers->asleep.load() == 0; ++i) {
        p.domain.progress();
    }
    cr_assert_neq(p.view.peers->asleep.load() & shm::kByDoorbell, 0u);
    cr_assert_gt(yields_of(p.domain), 0);
}

// The progress thread, or another thread of the program, may want the domain meanwhile. (Where
// there is such a thread the lock yields to it, so what is looked at is what only one that yields
// says.)
Test(idle_yield, of_a_domain_that_others_look_after__never_comes) {
    Peered shared(true, polled(false, true));
    cr_assert_eq(yields_of(shared.domain, 50ms), 0);
    cr_assert_eq(shared.ours().processor.load(), 0u);
    Peered with_thread(true, polled(true, false));
    yields_of(with_thread.domain, 50ms);
    cr_assert_eq(with_thread.ours().processor.load(), 0u);
}

Test(idle_yield, while_something_comes__never_comes) {
    Peered p;
    Bytes buffer(8);
    yields = 0;
    for (int i = 0; i < 2000; ++i) {
        if (i % 16 == 0) {
            p.side.receive(buffer);
            p.put(shm::Kind::send, shm::kFirst | shm::kLast, bytes("x"));
        }
        p.domain.progress();
    }
    cr_assert_eq(yields, 0);
}

Test(idle_yield, is_for_who_polls_in_vain_for_long) {
    Poller p;
    p.in_vain(32, 100ns);
    cr_assert_not(p.in_vain(32, 100ns), "the first tells only since when");
    p.yield.stirred(p.polls);
    cr_assert_not(p.in_vain(32, 100ns));
    cr_assert(p.in_vain(32, 100ns));
}

// It computes between its polls, and needs its processor.
Test(idle_yield, is_not_for_who_polls_seldom) {
    Poller p;
    for (int i = 0; i < 100; ++i) {
        cr_assert_not(p.in_vain(32, 10us));
    }
    p.in_vain(32, 100ns);
    cr_assert(p.in_vain(32, 100ns));
}

// One look that comes late may be for want of a processor; who looks seldom does so again and
// again.
Test(memory_polling, of_who_looks_seldom__lets_links_sleep_soon) {
    constexpr std::uint32_t kSoon = dat::engine::MemoryPolling::kReactorPeriod;
    dat::engine::MemoryPolling polling;
    auto now = Clock::now();
    const auto patience_after = [&](Clock::duration time) {
        polling.looked(now += time);
        return polling.patience();
    };
    patience_after(20us);
    cr_assert_gt(patience_after(20us), kSoon);
    cr_assert_gt(patience_after(10ms), kSoon);
    cr_assert_gt(patience_after(20us), kSoon);
    cr_assert_gt(patience_after(10ms), kSoon);
    cr_assert_eq(patience_after(10ms), kSoon);
    cr_assert_gt(patience_after(20us), kSoon);
}
