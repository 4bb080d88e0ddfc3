// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a plain program does where a test would fail: says it, and ends. Included by the
// program's one source.
#ifndef DAT_TEST_TRANSPORT_PLAIN_H
#define DAT_TEST_TRANSPORT_PLAIN_H

#include "fixture.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace dat::test {

void fail(const char* file, int line, const std::string& message) {
    std::fprintf(stderr, "FAILED %s:%d: %s\n", file, line, message.c_str());
    std::_Exit(1);
}

} // namespace dat::test

#endif
