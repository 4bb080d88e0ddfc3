// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How a test of the transport suite is written: once, as a function of the
// transport. One Criterion test runs it over every transport; a later transport
// joins the list in fixture.cpp. May include: Criterion, the fixture.
//
//   TRANSPORT_TEST(message, send_before_receive__waits) {
//       auto pair = Pair::connected(transport);
//       ...
//   }
#ifndef DAT_TEST_TRANSPORT_SUITE_H
#define DAT_TEST_TRANSPORT_SUITE_H

#include "fixture.h"

#include <criterion/criterion.h>

namespace dat::test {

// Runs the test over each transport that DAT_TRANSPORT selects, one after the
// other in this process.
void run_over_all(void (*test)(const Transport&));
// Skips the test where another provider than `dat` is tested.
void only_dat();

} // namespace dat::test

#define TRANSPORT_TEST(suite, name)                                                                \
    static void suite##_##name(const ::dat::test::Transport& transport);                           \
    Test(suite, name, .timeout = 120) { ::dat::test::run_over_all(suite##_##name); }               \
    static void suite##_##name([[maybe_unused]] const ::dat::test::Transport& transport)

#endif
