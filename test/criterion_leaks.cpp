// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which process of a Criterion program LeakSanitizer looks at. Each test runs in a process of its
// own, which is looked at, Criterion's frames and all. The process that starts them runs no line of
// the tests, and in it the library behind Criterion loses a record of a test's time limit now and
// then: bxfi_cancel_timeout() of BoxFort goes on along a list that it has just changed. May
// include: std.
#include <cstdlib>

// LeakSanitizer asks this before it looks: other than 0, it does not. BoxFort tells each process
// that runs a test by this variable where its own memory is.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return std::getenv("BXFI_MAP") == nullptr ? 1 : 0; }
