// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The progress thread and the program: who looks after a domain.
#include "engine/domain.h"
#include "engine/progress_thread.h"

#include <atomic>
#include <chrono>
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace dat::engine;

namespace {

// Within a bounded time.
template <class Condition> bool comes(Condition&& condition) {
    const auto limit = Clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (Clock::now() > limit) {
            return false;
        }
        sched_yield();
    }
    return true;
}

struct Attended {
    Domain domain{Domain::Options{}};
    Attended() {
        cr_assert_eq(domain.open(), 0);
        const BiasedLockOwner in(domain.biased_lock());
        domain.need_progress();
    }
    void poll() {
        const BiasedLockOwner in(domain.biased_lock());
        domain.progress();
    }
};

// Something that arrives, and is taken by whoever moves the domain.
struct Arrival final : Pollable {
    Domain& domain;
    const int fd = eventfd(0, EFD_NONBLOCK);
    std::atomic<int> taken{0};

    explicit Arrival(Domain& in) : domain(in) {
        const BiasedLockOwner inside(domain.biased_lock());
        cr_assert_eq(domain.reactor().add(fd, EPOLLIN, *this), 0);
    }
    ~Arrival() {
        {
            const BiasedLockOwner inside(domain.biased_lock());
            domain.reactor().remove(fd, *this);
        }
        close(fd);
    }
    void ready(std::uint32_t) override {
        eventfd_t value;
        cr_assert_eq(eventfd_read(fd, &value), 0);
        ++taken;
    }
};

} // namespace

// Nothing ever arrives in this domain: no descriptor tells the thread to leave.
Test(progress_thread, leaves_when_the_program_polls_again_although_nothing_arrives) {
    Attended a;
    for (int i = 0; i < 3; ++i) {
        cr_assert(comes([&] { return !a.domain.is_attended(); }), "the thread takes over");
        cr_assert(comes([&] {
                      a.poll();
                      return a.domain.is_attended();
                  }),
                  "and gives back");
    }
}

Test(progress_thread, ends_with_its_domain_in_the_middle_of_being_woken) {
    for (int i = 0; i < 20; ++i) {
        Attended a;
        cr_assert(comes([&] { return !a.domain.is_attended(); }));
        for (int polls = 0; polls < 64; ++polls) {
            a.poll();
        }
    }
}

// It has polled once, and waits for its memory to change since. (Where the poll itself meets the
// thread in the middle of its look, the thread may leave for a moment.)
Test(progress_thread, takes_what_arrives_after_a_poll_without_leaving_first) {
    constexpr int kRounds = 20;
    Attended a;
    Arrival arrival(a.domain);
    int left = 0;
    for (int i = 0; i < kRounds; ++i) {
        cr_assert(comes([&] { return !a.domain.is_attended(); }));
        a.poll();
        cr_assert_eq(eventfd_write(arrival.fd, 1), 0);
        bool leaves = false;
        cr_assert(comes([&] {
            leaves |= a.domain.is_attended();
            return arrival.taken > i;
        }));
        left += leaves ? 1 : 0;
    }
    cr_assert_lt(left, kRounds / 2, "it left first in %d of %d rounds", left, kRounds);
}

namespace {

// A thread of the test's own, that looks by the clock only when nobody waits for it any more.
struct Unhurried {
    static constexpr std::chrono::hours kNever{1};
    Domain domain{Domain::Options{.progress_thread = false, .settings = {}}};
    ProgressThread thread{domain, {kNever, kNever, kNever, kNever}};

    Unhurried() {
        cr_assert_eq(domain.open(), 0);
        cr_assert_eq(thread.start(), 0);
    }
    void poll() {
        const BiasedLockOwner in(domain.biased_lock());
        domain.progress();
    }
};

} // namespace

// The next look is due in an hour: what arrives is what tells the thread that the program, which
// has called without a pause, has stopped.
Test(progress_thread, takes_what_arrives_after_polls_without_a_pause_before_its_next_look) {
    Unhurried u;
    for (int i = 0; i < 1000; ++i) {
        u.poll();
    }
    Arrival arrival(u.domain);
    cr_assert_eq(eventfd_write(arrival.fd, 1), 0);
    cr_assert(comes([&] { return arrival.taken == 1; }));
    cr_assert_not(u.domain.is_attended());
}
