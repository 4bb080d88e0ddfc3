// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which tests do not apply to what they run over, and why: the lookup in a table of them. May
// include: std.
#ifndef DAT_TEST_EXCEPTIONS_H
#define DAT_TEST_EXCEPTIONS_H

#include <cstddef>
#include <fnmatch.h>

namespace dat::test {

struct Exception {
    const char* places; // a pattern of the shell, as is `tests`: SUITE/NAME
    const char* tests;
    const char* why;
};

// Why `test` does not apply to `place`; nullptr: it does.
template <std::size_t Count>
const char* why_not(const Exception (&exceptions)[Count], const char* place, const char* test) {
    for (const Exception& exception : exceptions) {
        if (fnmatch(exception.places, place, 0) == 0 && fnmatch(exception.tests, test, 0) == 0) {
            return exception.why;
        }
    }
    return nullptr;
}

} // namespace dat::test

#endif
