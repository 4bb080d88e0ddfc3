// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which links are read without asking the kernel.
#include "engine/direct_polling.h"

#include <criterion/criterion.h>
#include <deque>
#include <functional>

using dat::engine::DirectPolling;

namespace {

// Counts how often it is polled.
class Polled final : public dat::engine::Link {
  public:
    Polled() : Link(dat::engine::LinkKind::in_process) {}
    bool confirms_delivery() const override { return true; }
    bool dat_peer() const override { return true; }
    bool peer_serves_reads() const override { return true; }
    bool wide() const override { return true; }
    void transmit(dat::engine::Request&, std::uint64_t, bool) override {}
    void start() override {}
    void poll() override {
        ++polls;
        if (when_polled) {
            when_polled();
        }
    }
    void push() override {}
    void receive_posted() override {}
    void drain() override {}
    void part(dat::engine::Parting) override {}
    int polls = 0;
    std::function<void()> when_polled;
};

struct Links {
    explicit Links(std::size_t count) : all(count) {
        for (Polled& link : all) {
            direct.received(link);
        }
    }
    std::size_t polled() {
        direct.poll();
        std::size_t count = 0;
        for (Polled& link : all) {
            count += link.polls > 0;
            link.polls = 0;
        }
        return count;
    }
    DirectPolling direct;
    std::deque<Polled> all; // a link does not move
};

} // namespace

Test(engine_direct_polling, as_many_as_are_few__are_read) {
    Links l(DirectPolling::kMost);
    cr_assert_eq(l.polled(), DirectPolling::kMost);
    cr_assert(!l.direct.none());
    cr_assert(l.direct.polls(l.all.back()));
}

Test(engine_direct_polling, one_more__and_the_kernel_is_asked_about_all) {
    Links l(DirectPolling::kMost + 1);
    cr_assert_eq(l.polled(), 0u);
    cr_assert(l.direct.none());
    for (const Polled& link : l.all) {
        cr_assert(!l.direct.polls(link));
    }
}

Test(engine_direct_polling, one_that_had_nothing__makes_room) {
    Links l(DirectPolling::kMost);
    l.direct.stop(l.all.front());
    cr_assert_eq(l.polled(), DirectPolling::kMost - 1);
    // Its place is there when those that were struck out have gone, and till then nobody gives up.
    Polled other;
    l.direct.received(other);
    cr_assert(!l.direct.polls(other));
    l.direct.compact();
    l.direct.received(other);
    cr_assert(l.direct.polls(other));
    cr_assert_eq(l.polled(), DirectPolling::kMost - 1);
    cr_assert_eq(other.polls, 1);
    l.direct.stop(other);
}

Test(engine_direct_polling, few_again__are_read_again) {
    for (const std::size_t used : {DirectPolling::kFew, DirectPolling::kFew + 1}) {
        Links l(DirectPolling::kMost + 1);
        for (std::uint32_t i = 0; i < DirectPolling::kLately - 1; ++i) {
            l.direct.received(l.all[i % used]);
        }
        l.direct.received(l.all[0]);
        l.direct.received(l.all[0]);
        const std::size_t expected = used == DirectPolling::kFew ? 1 : 0;
        cr_assert_eq(l.polled(), expected, "%zu links in use", used);
    }
}

Test(engine_direct_polling, one_that_ends_while_they_are_read__is_not_read_any_more) {
    Links l(2);
    l.all[0].when_polled = [&] { l.direct.stop(l.all[1]); };
    cr_assert_eq(l.polled(), 1u);
    l.all[0].when_polled = nullptr;
    cr_assert_eq(l.polled(), 1u);
}
