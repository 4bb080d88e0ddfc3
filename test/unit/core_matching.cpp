// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// core::Matching: who gets what, in which order, and that the cost of a look-up does not grow
// with what is not looked for.
#include "core/matching.h"

#include <criterion/criterion.h>

#include <deque>
#include <utility>
#include <vector>

using namespace dat::core;

namespace {

constexpr std::uint64_t kSecret = 0x0123456789abcdef;

struct Scene {
    Matching matching{kSecret};
    std::deque<PostedReceive> receives;
    std::deque<UnexpectedMessage> messages;

    ~Scene() {
        matching.cancel_each([](const PostedReceive&) { return true; }, [](PostedReceive&) {});
        matching.take_each([](const UnexpectedMessage&) { return true; },
                           [](UnexpectedMessage&) {});
    }
    PostedReceive& wanting(std::uint64_t tag, std::uint64_t ignore, RdmSource source,
                           bool stays = false) {
        receives.emplace_back().want(tag, ignore, source, stays);
        return receives.back();
    }
    // Posts it; no message waits for it.
    PostedReceive& post(std::uint64_t tag, std::uint64_t ignore, RdmSource source,
                        bool stays = false) {
        PostedReceive& receive = wanting(tag, ignore, source, stays);
        cr_assert_null(matching.post(receive));
        return receive;
    }
    UnexpectedMessage& keep(std::uint64_t tag, RdmSource source) {
        cr_assert_null(matching.arrive(tag, source));
        messages.emplace_back().from(tag, source);
        matching.keep(messages.back());
        return messages.back();
    }
    UnexpectedMessage* take(std::uint64_t tag, std::uint64_t ignore, RdmSource source) {
        return matching.post(wanting(tag, ignore, source));
    }
};

constexpr std::uint64_t kAnyTag = ~std::uint64_t{0};

} // namespace

Test(matching, message__goes_to_the_receive_that_was_posted_first) {
    Scene s;
    PostedReceive& any = s.post(0, kAnyTag, kAnySource);
    PostedReceive& exact = s.post(7, 0, 3);
    PostedReceive& tagged = s.post(7, 0, kAnySource);
    PostedReceive& masked = s.post(0x700, 0xff, 3);
    cr_assert_eq(s.matching.arrive(0x7ff, 3), &any);
    cr_assert_eq(s.matching.arrive(7, 3), &exact);
    cr_assert_eq(s.matching.arrive(0x7ff, 4), nullptr);
    cr_assert_eq(s.matching.arrive(0x7ff, 3), &masked);
    cr_assert_eq(s.matching.arrive(7, 9), &tagged);
    cr_assert_eq(s.matching.posted(), 0u);
}

Test(matching, receives_of_more_patterns_than_are_hashed__keep_the_order) {
    Scene s;
    std::vector<PostedReceive*> posted;
    for (unsigned i = 0; i < 40; ++i) { // each ignores other bits
        posted.push_back(&s.post(0, kAnyTag >> i, i % 2 == 0 ? kAnySource : 5));
    }
    for (PostedReceive* const receive : posted) {
        cr_assert_eq(s.matching.arrive(0, 5), receive);
    }
}

Test(matching, receives_that_are_not_hashed__give_way_to_older_ones_that_are) {
    Scene s;
    for (unsigned bits = 1; bits < 20; ++bits) { // more patterns than are hashed
        s.post(std::uint64_t{1} << 40, (std::uint64_t{1} << bits) - 1, kAnySource);
    }
    PostedReceive& hashed = s.post(0, 0, 3);
    PostedReceive& listed = s.post(0, (std::uint64_t{1} << 30) - 1, kAnySource);
    cr_assert_eq(s.matching.arrive(0, 3), &hashed);
    cr_assert_eq(s.matching.arrive(0, 3), &listed);
    cr_assert_null(s.matching.arrive(0, 3));
}

Test(matching, receive__takes_the_message_that_came_first) {
    Scene s;
    UnexpectedMessage& a = s.keep(1, 2);
    UnexpectedMessage& b = s.keep(1, 3);
    UnexpectedMessage& c = s.keep(2, 3);
    UnexpectedMessage& d = s.keep(1, 3);
    cr_assert_eq(s.take(2, 0, kAnySource), &c);
    cr_assert_eq(s.take(1, 0, 3), &b);
    cr_assert_eq(s.take(0, kAnyTag, kAnySource), &a);
    cr_assert_eq(s.take(0, kAnyTag, 3), &d);
    cr_assert_eq(s.matching.held(), 0u);
}

Test(matching, peek__shows_the_message_and_leaves_it) {
    Scene s;
    UnexpectedMessage& message = s.keep(1, 2);
    cr_assert_null(s.matching.peek(2, 0, kAnySource));
    cr_assert_eq(s.matching.peek(0, kAnyTag, 2), &message);
    cr_assert(Matching::kept(message));
    s.matching.take(message); // claimed: no receive finds it
    cr_assert_null(s.take(1, 0, 2));
    cr_assert_eq(s.matching.posted(), 1u);
}

Test(matching, buffer_that_stays__takes_message_after_message_at_its_place) {
    Scene s;
    PostedReceive& buffer = s.post(0, 0, kAnySource, true);
    PostedReceive& behind = s.post(0, 0, 4);
    cr_assert_eq(s.matching.arrive(0, 4), &buffer);
    cr_assert_eq(s.matching.arrive(0, 5), &buffer);
    cr_assert(s.matching.cancel(buffer)); // too little room is left
    cr_assert_not(s.matching.cancel(buffer));
    cr_assert_eq(s.matching.arrive(0, 4), &behind);
}

Test(matching, buffer_that_stays__takes_what_waits_one_by_one) {
    Scene s;
    UnexpectedMessage& a = s.keep(0, 1);
    UnexpectedMessage& b = s.keep(0, 2);
    PostedReceive& buffer = s.wanting(0, 0, kAnySource, true);
    cr_assert_eq(s.matching.post(buffer), &a);
    cr_assert_eq(s.matching.post(buffer), &b);
    cr_assert_null(s.matching.post(buffer));
    cr_assert_eq(s.matching.arrive(0, 9), &buffer);
}

Test(matching, source_that_dies__ends_the_receives_that_name_it_alone) {
    Scene s;
    s.post(1, 0, 7);
    s.post(0, kAnyTag, 7);
    PostedReceive& other = s.post(1, 0, 8);
    PostedReceive& any = s.post(1, 0, kAnySource);
    unsigned ended = 0;
    s.matching.source_died(7, [&](PostedReceive& receive) {
        cr_assert_eq(receive.source(), 7u);
        cr_assert_not(Matching::posted(receive));
        ++ended;
    });
    cr_assert_eq(ended, 2u);
    cr_assert(Matching::posted(other) && Matching::posted(any));
}

Test(matching, messages_of_a_source__are_taken_out_in_their_order) {
    Scene s;
    for (std::uint64_t tag = 0; tag < 20; ++tag) {
        s.keep(tag, tag % 2 == 0 ? 1 : 2);
    }
    cr_assert_eq(s.take(4, 0, kAnySource), &s.messages[4]);
    cr_assert_eq(s.take(19, 0, kAnySource), &s.messages[19]); // by an index
    std::vector<std::uint64_t> tags;
    s.matching.take_each([](const UnexpectedMessage& m) { return m.source() == 1; },
                         [&](UnexpectedMessage& m) { tags.push_back(m.tag()); });
    cr_assert(tags == std::vector<std::uint64_t>({0, 2, 6, 8, 10, 12, 14, 16, 18}));
}

// Tables and indexes have grown, several times.
Test(matching, many_others__do_not_mislead) {
    Scene s;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        s.keep(i, static_cast<RdmSource>(i % 100));
    }
    UnexpectedMessage& first = s.keep(1'000'000, 100);
    UnexpectedMessage& second = s.keep(1'000'001, 101);
    UnexpectedMessage& third = s.keep(1'000'002, 102);
    cr_assert_eq(s.take(1'000'000, 0, 100), &first);
    cr_assert_eq(s.take(1'000'001, 0, kAnySource), &second);
    cr_assert_eq(s.take(0, kAnyTag, 102), &third);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        s.post(2'000'000 + i, 0, static_cast<RdmSource>(200 + i % 100));
        s.post((3'000'000 + i) << 8, 0xff, kAnySource);
    }
    PostedReceive& wild = s.post(4'000'000, 0, kAnySource);
    PostedReceive& exact = s.post(4'000'000, 0, 300);
    cr_assert_eq(s.matching.arrive(4'000'000, 300), &wild);
    cr_assert_eq(s.matching.arrive(4'000'000, 300), &exact);
    cr_assert_null(s.matching.arrive(4'000'000, 300));
    cr_assert_eq(s.matching.held(), 100'000u);
}

// More patterns than have an index take turns.
Test(matching, messages_looked_for_by_many_patterns__are_found_in_order) {
    Scene s;
    for (std::uint64_t tag = 0; tag < 4096; ++tag) {
        s.keep(tag, 1);
    }
    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned bits = 4; bits < 11; ++bits) {
            const std::uint64_t ignore = (std::uint64_t{1} << bits) - 1;
            UnexpectedMessage* const found = s.take(2048, ignore, kAnySource);
            cr_assert_not_null(found);
            cr_assert_eq(found->tag(), 2048 + round * 7 + bits - 4);
        }
    }
}
