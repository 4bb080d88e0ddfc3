// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The variables of RDMA devices, and their limits.
#include "ofi/provider.h"

#include <criterion/criterion.h>

#include <cstdlib>

using dat::ofi::parameters;

Test(ofi_parameters, of_devices_that_are_not_set__are_what_the_manual_says) {
    cr_assert_not_null(dat::ofi::initialize());
    cr_assert_eq(parameters().settings.resolve_limit.count(), 2000);
    cr_assert_eq(parameters().settings.retries, 7);
    cr_assert_not(parameters().settings.ack_timeout.has_value());
}

Test(ofi_parameters, of_devices__are_read) {
    setenv("FI_DAT_RESOLVE_TIMEOUT", "15000", 1);
    setenv("FI_DAT_RETRIES", "0", 1);
    setenv("FI_DAT_ACK_TIMEOUT", "0", 1);
    cr_assert_not_null(dat::ofi::initialize());
    cr_assert_eq(parameters().settings.resolve_limit.count(), 15000);
    cr_assert_eq(parameters().settings.retries, 0);
    cr_assert_eq(parameters().settings.ack_timeout.value(), 0);
}

Test(ofi_parameters, of_devices_beyond_what_the_wire_carries__are_ignored) {
    setenv("FI_DAT_RESOLVE_TIMEOUT", "0", 1);
    setenv("FI_DAT_RETRIES", "8", 1);
    setenv("FI_DAT_ACK_TIMEOUT", "32", 1);
    cr_assert_not_null(dat::ofi::initialize());
    cr_assert_eq(parameters().settings.resolve_limit.count(), 2000);
    cr_assert_eq(parameters().settings.retries, 7);
    cr_assert_not(parameters().settings.ack_timeout.has_value());
}
