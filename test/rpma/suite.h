// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A clause test: over shared memory and, as SUITE_tcp/NAME, over TCP; with DAT_TRANSPORT, over
// that alone (applicable.cpp).
#ifndef DAT_TEST_RPMA_SUITE_H
#define DAT_TEST_RPMA_SUITE_H

#include "scene.h"

#include <criterion/criterion.h>

#define RPMA_TEST(suite, name)                                                                     \
    static void suite##__##name();                                                                 \
    Test(suite, name) {                                                                            \
        ::dat::test::use_place(::dat::test::wanted_place());                                       \
        suite##__##name();                                                                         \
    }                                                                                              \
    Test(suite##_tcp, name) {                                                                      \
        ::dat::test::use_place("tcp");                                                             \
        suite##__##name();                                                                         \
    }                                                                                              \
    static void suite##__##name()

// A call returns that, and its name and the names of both results are in the message.
#define EXPECT_RESULT(call, wanted)                                                                \
    do {                                                                                           \
        const int result_ = (call);                                                                \
        cr_assert_eq(result_, (wanted), "%s is %d (%s), not %s", #call, result_,                   \
                     rpma_err_2str(result_), #wanted);                                             \
    } while (false)
#define EXPECT_OK(call) EXPECT_RESULT(call, 0)
#define EXPECT_INVAL(call) EXPECT_RESULT(call, RPMA_E_INVAL)

namespace dat::test {

inline void* context_of(std::uintptr_t number) {
    return reinterpret_cast<void*>(number); // NOLINT(performance-no-int-to-ptr)
}

// The next completion is that one.
inline ibv_wc expect_wc(rpma_cq* cq, ibv_wc_opcode opcode, std::uint64_t context) {
    const ibv_wc wc = next_of(cq);
    cr_assert_eq(wc.status, IBV_WC_SUCCESS, "status %d", wc.status);
    cr_assert_eq(wc.opcode, opcode, "opcode %d, not %d", wc.opcode, opcode);
    cr_assert_eq(wc.wr_id, context, "context %#lx, not %#lx", wc.wr_id, context);
    return wc;
}

inline ibv_wc expect_error(rpma_cq* cq, ibv_wc_status status, std::uint64_t context) {
    const ibv_wc wc = next_of(cq);
    cr_assert_eq(wc.status, status, "status %d, not %d", wc.status, status);
    cr_assert_eq(wc.wr_id, context, "context %#lx, not %#lx", wc.wr_id, context);
    return wc;
}

} // namespace dat::test

#endif
