// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The progress thread and the program: who looks after a domain.
#include "engine/domain.h"
#include "engine/poller.h"
#include "engine/progress_thread.h"

#include <atomic>
#include <chrono>
#include <criterion/criterion.h>
#include <deque>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <thread>
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

// A thread of the test's own, that looks by the clock only when nobody waits for it any more, or
// where the test's thread waited for a processor at a look.
struct Unhurried {
    static constexpr std::chrono::hours kNever{1};
    Domain domain{Domain::Options{.progress_thread = false, .settings = {}}};
    ProgressThread thread{domain, {kNever, kNever, std::chrono::milliseconds(4), kNever}};

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

namespace {

// Has something for so long as it is told.
struct CountingNotifier final : Notifier {
    explicit CountingNotifier(Domain& of) : domain(of) {
        domain.memory().expect_notifier(*this);
        domain.wake(*this);
    }
    ~CountingNotifier() { domain.memory().forget(*this); }
    void poll() override {
        ++polls;
        if (leaves) {
            domain.memory().stop(*this);
        }
    }
    void arm() override {}
    bool has_news() const override { return false; }
    void disarm() override {}
    Domain& domain;
    int polls = 0;
    bool leaves = false;
};

} // namespace

// Each other process that memory is shared with has one: what a look costs does not grow with them,
// and none is forgotten, also while some strike themselves out.
Test(engine_progress, many_notifiers__are_polled_in_turn) {
    Domain domain{Domain::Options{}};
    cr_assert_eq(domain.open(), 0);
    std::deque<CountingNotifier> all;
    const auto polls = [&] {
        int sum = 0;
        for (const CountingNotifier& each : all) {
            sum += each.polls;
        }
        return sum;
    };
    for (int i = 0; i < 100; ++i) {
        all.emplace_back(domain);
    }
    const BiasedLockOwner inside(domain.biased_lock());
    domain.progress();
    const int a_round = polls();
    cr_assert(a_round > 0 && a_round <= 8, "%d", a_round);
    const int rounds = 100 / a_round;
    for (int i = 1; i < rounds; ++i) {
        domain.progress();
    }
    for (const CountingNotifier& each : all) {
        cr_assert_eq(each.polls, 1);
    }
    for (std::size_t i = 0; i < 100; i += 2) {
        all[i].leaves = true;
    }
    for (int i = 0; i < 2 * rounds; ++i) {
        domain.progress();
    }
    for (std::size_t i = 0; i < 100; ++i) {
        cr_assert(i % 2 == 0 ? all[i].polls == 2 : all[i].polls >= 2, "%zu: %d", i, all[i].polls);
    }
}

namespace {

// A thread that has polled, and does something else since, on the processor that this thread had at
// first.
class Polled {
  public:
    enum class Does { computes, sleeps, computes_if_nobody_else_does };

    explicit Polled(Does what) : what_(what) {
        sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
        thread_ = std::thread([this] { run(); });
        cr_assert(comes([&] { return noted_.load(); }));
        if (what != Does::computes_if_nobody_else_does) {
            sched_setaffinity(0, sizeof before_, &before_);
        }
    }
    ~Polled() {
        over_ = true;
        over_.notify_all();
        sched_setaffinity(0, sizeof before_, &before_);
        thread_.join();
    }
    Polled(const Polled&) = delete;
    Polled& operator=(const Polled&) = delete;

    // As long as a progress thread looks, at least, and as it does: a thread that computes has its
    // processor too where the kernel leaves both on one, as when the other one is taken.
    bool waits_for_processor() {
        poller_.seen();
        for (const auto end = Clock::now() + std::chrono::microseconds(100); Clock::now() < end;) {
            sched_yield();
        }
        return poller_.waits_for_processor();
    }

  private:
    void run() {
        if (what_ == Does::computes_if_nobody_else_does) {
            const sched_param none{};
            sched_setscheduler(0, SCHED_IDLE, &none);
        }
        poller_.note();
        noted_ = true;
        while (!over_) {
            if (what_ == Does::sleeps) {
                over_.wait(false);
            }
        }
    }

    const Does what_;
    cpu_set_t before_{};
    Poller poller_;
    std::atomic<bool> noted_{false};
    std::atomic<bool> over_{false};
    std::thread thread_;
};

} // namespace

Test(engine_poller, that_computes__does_not_wait_for_a_processor) {
    Polled polled(Polled::Does::computes);
    cr_assert(comes([&] { return !polled.waits_for_processor(); }));
}

Test(engine_poller, that_sleeps__does_not_wait_for_a_processor) {
    Polled polled(Polled::Does::sleeps);
    cr_assert(comes([&] { return !polled.waits_for_processor(); }), "it does not sleep yet");
    for (int i = 0; i < 100; ++i) {
        cr_assert_not(polled.waits_for_processor());
    }
}

Test(engine_poller, whose_processor_another_thread_has__waits_for_it) {
    Polled polled(Polled::Does::computes_if_nobody_else_does);
    cr_assert(comes([&] { return polled.waits_for_processor(); }));
}

// Nothing is known of one that has ended, or that never was.
Test(engine_poller, that_there_is_not__does_not_wait_for_a_processor) {
    Poller poller;
    poller.seen();
    cr_assert_not(poller.waits_for_processor());
    std::thread([&] { poller.note(); }).join();
    poller.seen();
    cr_assert_not(poller.waits_for_processor());
}
