// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What of the suite does not apply to a transport, and why.
#ifndef DAT_TEST_TRANSPORT_APPLICABLE_H
#define DAT_TEST_TRANSPORT_APPLICABLE_H

namespace dat::test {

// `test`: SUITE/NAME. nullptr: it applies.
const char* not_applicable(const char* transport, const char* test);

} // namespace dat::test

#endif
