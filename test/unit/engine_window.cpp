// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory windows as the table of regions keeps them: which keys live, and what holds a
// region.
#include "engine/mr_table.h"

#include <array>
#include <criterion/criterion.h>

using namespace dat::engine;

namespace {

constexpr std::uint64_t kNone = 99;
constexpr int kZone = 0;

struct Windows {
    std::array<std::byte, 64> memory{};
    MrTable table;
    std::uint64_t shown = 0;
    Window window{shown, kNone};

    Windows() { table.add(7, {memory.data(), memory.size(), 0, &kZone, kRemoteRead}); }
    std::uint32_t prepare(std::size_t offset, std::size_t length) {
        return table.prepare(window, {memory.data() + offset, length, 0, &kZone, kRemoteWrite}, 7);
    }
    bool reaches(std::uint32_t key, std::uint8_t access = kRemoteWrite) {
        return table.find(key, 0, 1, access, &kZone).at != nullptr;
    }
};

} // namespace

// RMR-1, RMR-5.
Test(window, key__works_from_bind_until_the_next_one) {
    Windows w;
    cr_assert_eq(w.shown, kNone);
    const std::uint32_t first = w.prepare(0, 8);
    const std::uint32_t second = w.prepare(8, 8);
    cr_assert(first != 0 && first != second);
    cr_assert(!w.reaches(first) && w.shown == kNone);
    w.table.bind(first);
    cr_assert(w.reaches(first) && !w.reaches(second) && w.shown == first);
    cr_assert_not(w.reaches(first, kRemoteRead)); // its own rights, not the region's
    w.table.bind(second);
    cr_assert(!w.reaches(first) && w.reaches(second) && w.shown == second);
    cr_assert_eq(w.table.find(second, 0, 1, kRemoteWrite, &kZone).at, w.memory.data() + 8);
    w.table.bind(second); // again: nothing
    cr_assert(w.reaches(second));
}

// LMR-7, OBJ-4: a region is held by keys that are bound and by those that are to be.
Test(window, region__is_held_until_no_window_is_cut_from_it) {
    Windows w;
    const std::uint32_t waiting = w.prepare(0, 8);
    cr_assert_not(w.table.remove(7));
    w.table.bind(waiting);
    cr_assert_not(w.table.remove(7));
    cr_assert(w.table.remove(waiting)); // as Send with Invalidate does
    cr_assert_eq(w.shown, kNone);
    cr_assert(w.table.remove(7));
    cr_assert_eq(w.table.size(), 0);
}

// RMR-7: of length 0.
Test(window, bound_to_nothing__has_no_key_and_holds_nothing) {
    Windows w;
    const std::uint32_t key = w.prepare(0, 8);
    w.table.bind(key);
    const std::uint32_t nothing = w.prepare(0, 0);
    cr_assert(w.reaches(key) && !w.reaches(nothing));
    w.table.bind(nothing);
    cr_assert(!w.reaches(key) && !w.reaches(nothing) && w.shown == kNone);
    cr_assert(w.table.remove(7));
    cr_assert_eq(w.table.size(), 0);
}

// RMR-6: a bind that failed, before or after it was carried out.
Test(window, spoilt__is_dead_and_the_one_before_stays_if_it_was_bound_still) {
    Windows w;
    const std::uint32_t first = w.prepare(0, 8);
    w.table.bind(first);
    const std::uint32_t second = w.prepare(0, 8);
    w.table.spoil(second);
    cr_assert(w.reaches(first) && w.shown == first);
    w.table.bind(second); // too late
    cr_assert(w.reaches(first) && !w.reaches(second));
    w.table.spoil(first);
    cr_assert(!w.reaches(first) && w.shown == kNone);
    w.table.spoil(7); // no window
    cr_assert(w.table.region(7));
    cr_assert(w.table.remove(7));
}

// RMR-10.
Test(window, closed__takes_all_its_keys_with_it) {
    Windows w;
    const std::uint32_t bound = w.prepare(0, 8);
    w.table.bind(bound);
    const std::uint32_t waiting = w.prepare(8, 8);
    w.prepare(16, 8);
    w.table.close(w.window);
    w.table.bind(waiting);
    cr_assert(!w.reaches(bound) && !w.reaches(waiting) && w.shown == kNone);
    cr_assert_eq(w.table.size(), 1);
    cr_assert(w.table.remove(7));
}
