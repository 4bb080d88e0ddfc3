// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a plugin of versions.cpp offers. There is one for each version of the API, from one
// source. All return 0, or the line where something went wrong. Nothing else of a plugin can be
// seen from outside: what both have by one name is of different versions.
#ifndef DAT_TEST_SHIM_PLUGIN_H
#define DAT_TEST_SHIM_PLUGIN_H

#define DAT_TEST_OFFERED __attribute__((visibility("default")))

extern "C" {

// Writes the port that it listens on to descriptor `to`, serves one visitor, and returns
// when that has gone. Blocks.
DAT_TEST_OFFERED int serve(int to);
// Reads a port from descriptor `from`, and visits who serves there. Blocks.
DAT_TEST_OFFERED int visit(int from);
// The version of the API that the adapter says it has: 1 or 2.
DAT_TEST_OFFERED int version(unsigned* major);
}

#endif
