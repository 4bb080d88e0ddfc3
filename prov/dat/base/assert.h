// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the code takes for granted of itself. Looked at in the builds that find faults
// (configure --enable-debug or --enable-sanitizer); a release never ends a program of
// others. What anything outside can bring about is an error instead, and handled.
#ifndef DAT_BASE_ASSERT_H
#define DAT_BASE_ASSERT_H

#ifdef DAT_DEBUG
#include <cassert>
#define DAT_ASSERT(condition) assert(condition)
#else
#define DAT_ASSERT(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif

#endif
