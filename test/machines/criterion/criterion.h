// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the unit tests and the simulator's use of Criterion, for machines that it is not there for:
// each test in a process of its own, by its timeout.
#ifndef DAT_TEST_MACHINES_CRITERION_H
#define DAT_TEST_MACHINES_CRITERION_H

#include <cstddef>
#include <cstring>

namespace dat::criterion {

struct Options {
    unsigned timeout = 0; // seconds; 0: that of the command line
};

struct Registered {
    Registered(const char* suite, const char* name, void (*body)(), Options options);

    const char* suite;
    const char* name;
    void (*body)();
    Options options;
    Registered* next = nullptr;
};

// What was asserted, and what is said of it besides.
[[gnu::format(printf, 4, 5)]] void failed(const char* file, int line, const char* what,
                                          const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log(const char* format, ...);
[[noreturn]] void end();
[[noreturn]] void skip(const char* why);

} // namespace dat::criterion

#define Test(Suite, Name, ...)                                                                     \
    static void Suite##_##Name##_body();                                                           \
    static dat::criterion::Registered Suite##_##Name##_test{#Suite, #Name, Suite##_##Name##_body,  \
                                                            dat::criterion::Options{__VA_ARGS__}}; \
    static void Suite##_##Name##_body()

#define cr_expect_(Condition, What, ...)                                                           \
    ((Condition) ? (void)0 : dat::criterion::failed(__FILE__, __LINE__, What, " " __VA_ARGS__))
#define cr_assert_(Condition, What, ...)                                                           \
    ((Condition) ? (void)0                                                                         \
                 : (dat::criterion::failed(__FILE__, __LINE__, What, " " __VA_ARGS__),             \
                    dat::criterion::end()))

#define cr_expect(C, ...) cr_expect_(C, #C __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_not(C, ...) cr_expect_(!(C), "not: " #C __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_eq(A, B, ...) cr_expect_((A) == (B), #A " == " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_gt(A, B, ...) cr_expect_((A) > (B), #A " > " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_str_eq(A, B, ...)                                                                \
    cr_expect_(std::strcmp(A, B) == 0, #A " == " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_str_neq(A, B, ...)                                                               \
    cr_expect_(std::strcmp(A, B) != 0, #A " != " #B __VA_OPT__(, ) __VA_ARGS__)

#define cr_assert(C, ...) cr_assert_(C, #C __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not(C, ...) cr_assert_(!(C), "not: " #C __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_eq(A, B, ...) cr_assert_((A) == (B), #A " == " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_neq(A, B, ...) cr_assert_((A) != (B), #A " != " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_lt(A, B, ...) cr_assert_((A) < (B), #A " < " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_leq(A, B, ...) cr_assert_((A) <= (B), #A " <= " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_gt(A, B, ...) cr_assert_((A) > (B), #A " > " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_geq(A, B, ...) cr_assert_((A) >= (B), #A " >= " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_null(A, ...) cr_assert_((A) == nullptr, #A " is null" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not_null(A, ...)                                                                 \
    cr_assert_((A) != nullptr, #A " is not null" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_eq(A, B, ...)                                                                \
    cr_assert_(std::strcmp(A, B) == 0, #A " == " #B __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_fail(...) cr_assert_(false, "reached" __VA_OPT__(, ) __VA_ARGS__)

#define cr_log_info(...) dat::criterion::log(__VA_ARGS__)
#define cr_skip_test(Why) dat::criterion::skip(Why)

#endif
