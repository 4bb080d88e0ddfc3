// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// FI_DAT_FORK_SAFE, with a function in place of libibverbs' own.
#include "ofi/provider.h"

#include <criterion/criterion.h>
#include <infiniband/verbs.h>

#include <cstdlib>

namespace {

int g_calls = 0;

} // namespace

int ibv_fork_init() {
    ++g_calls;
    return 0;
}

Test(ofi_fork_safe, is_ibv_fork_init_before_any_device_is_opened) {
    setenv("FI_DAT_FORK_SAFE", "1", 1);
    cr_assert_not_null(dat::ofi::initialize());
    cr_assert_eq(g_calls, 1);
}

Test(ofi_fork_safe, is_left_alone_unless_it_is_asked_for) {
    cr_assert_not_null(dat::ofi::initialize());
    cr_assert_eq(g_calls, 0);
}
