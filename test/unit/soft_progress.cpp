// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The progress thread and the program: who looks after a domain. May include: soft.
#include "soft/domain.h"

#include <chrono>
#include <criterion/criterion.h>
#include <sched.h>

using namespace dat::soft;

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
        const GateCaller in(domain.gate());
        domain.need_progress();
    }
    void poll() {
        const GateCaller in(domain.gate());
        domain.progress();
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
