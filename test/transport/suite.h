// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How a test of the transport suite is written: once, as a function of the
// transport. It becomes two Criterion tests, one for the transports that use TCP, one,
// in the suite NAME_shm, for those that share memory; a later transport joins the list in
// fixture.cpp.
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

// Runs the test over each transport of a kind that DAT_TRANSPORT selects, one after the
// other in this process. What does not apply to one of them stands in applicable.cpp.
enum class Over { any, wire, shm };
void run_test(Over over, const char* name, void (*test)(const Transport&));
// Skips the test where another provider than `dat` is tested.
void only_dat();

} // namespace dat::test

#define TRANSPORT_TEST(suite, name) TRANSPORT_TEST_WITHIN(120, suite, name)

// Counts as hung after so many seconds.
#define TRANSPORT_TEST_WITHIN(seconds, suite, name)                                                \
    static void suite##_##name(const ::dat::test::Transport& transport);                           \
    Test(suite, name, .timeout = (seconds)) {                                                      \
        ::dat::test::run_test(::dat::test::Over::any, #suite "/" #name, suite##_##name);           \
    }                                                                                              \
    Test(suite##_shm, name, .timeout = (seconds)) {                                                \
        ::dat::test::run_test(::dat::test::Over::shm, #suite "/" #name, suite##_##name);           \
    }                                                                                              \
    static void suite##_##name([[maybe_unused]] const ::dat::test::Transport& transport)

// What concerns shared memory.
#define SHM_TEST(suite, name)                                                                      \
    static void suite##_##name(const ::dat::test::Transport& transport);                           \
    Test(suite, name, .timeout = 120) {                                                            \
        ::dat::test::run_test(::dat::test::Over::shm, #suite "/" #name, suite##_##name);           \
    }                                                                                              \
    static void suite##_##name([[maybe_unused]] const ::dat::test::Transport& transport)

// What concerns the bytes on the wire.
#define WIRE_TEST(suite, name)                                                                     \
    static void suite##_##name(const ::dat::test::Transport& transport);                           \
    Test(suite, name, .timeout = 120) {                                                            \
        ::dat::test::run_test(::dat::test::Over::wire, #suite "/" #name, suite##_##name);          \
    }                                                                                              \
    static void suite##_##name([[maybe_unused]] const ::dat::test::Transport& transport)

#endif
