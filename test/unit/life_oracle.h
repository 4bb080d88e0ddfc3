// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The table of a link's life against its oracle in test/spec. The environment's DAT_SRCDIR names
// the source tree; without it, the working directory does.
#ifndef TEST_UNIT_LIFE_ORACLE_H
#define TEST_UNIT_LIFE_ORACLE_H

#include "engine/life_table.h"

#include <criterion/criterion.h>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace life_test {

template <class Enum> Enum named(const std::string& text) {
    for (std::size_t i = 0; i < dat::engine::kCountOf<Enum>; ++i) {
        if (name(static_cast<Enum>(i)) == text) {
            return static_cast<Enum>(i);
        }
    }
    cr_assert_fail("no such name: %s", text.c_str());
    std::abort(); // not reached, which clang cannot know
}

template <class State, class Event>
void assert_is_oracle(const dat::engine::LifeTable<State, Event>& table, const char* file) {
    const char* top = std::getenv("DAT_SRCDIR");
    std::ifstream in(std::string(top ? top : ".") + "/test/spec/" + file);
    cr_assert(in.good());
    std::set<std::pair<Event, State>> seen;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with('#')) {
            continue;
        }
        std::istringstream fields(line);
        std::string event, from, next;
        fields >> event >> from >> next;
        const auto e = named<Event>(event);
        const auto s = named<State>(from);
        const auto n = next == "never" ? State::count_ : named<State>(next);
        cr_assert(table[static_cast<std::size_t>(e)][static_cast<std::size_t>(s)] == n, "%s",
                  line.c_str());
        cr_assert(seen.emplace(e, s).second, "twice: %s", line.c_str());
    }
    cr_assert_eq(seen.size(), table.size() * table[0].size());
}

} // namespace life_test

#endif
