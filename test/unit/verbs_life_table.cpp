// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The life of a link over an RDMA device: its table against the oracle,
// test/spec/verbs-link-transitions.tsv.
#include "links/verbs/life.h"

#include "life_oracle.h"

#include <criterion/criterion.h>

using namespace dat::verbs;

Test(verbs_life, table__is_the_oracle) {
    life_test::assert_is_oracle<LinkState, LinkEvent>(kLinkTable, "verbs-link-transitions.tsv");
}

// What a link asks of its state is what the state's name says.
Test(verbs_life, questions__go_by_the_state) {
    using enum LinkEvent;
    const auto after = [](std::initializer_list<LinkEvent> events) {
        LinkLife life;
        for (const LinkEvent event : events) {
            life.happen(event);
        }
        return life;
    };
    cr_assert_not(after({}).has_started());
    cr_assert(after({start}).has_started() && after({start}).is_open());
    for (const auto& held :
         {after({start, hold}), after({start, hold, drain}), after({start, hold, fail})}) {
        cr_assert(held.holds() && held.has_started() && !held.is_open());
    }
    for (const auto& draining :
         {after({start, hold, drain}), after({start, drain}), after({start, drain, mark}),
          after({start, drain, mark, confirm})}) {
        cr_assert(draining.drains() && !draining.is_open());
    }
    for (const auto& failed :
         {after({start, hold, fail}), after({start, fail}), after({start, drain, mark, fail})}) {
        cr_assert(failed.has_failed() && !failed.drains() && !failed.is_open());
    }
    for (const auto& left : {after({start, peer_left}), after({start, drain, mark, peer_left})}) {
        cr_assert(left.peer_left() && !left.drains() && !left.is_open());
    }
    cr_assert(after({start, part}).is_over() && !after({start, part}).holds());
}
