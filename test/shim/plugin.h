// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a plugin of versions.cpp offers. There is one for each version of the API, from one
// source. All return 0, or the line where something went wrong.
#ifndef DAT_TEST_SHIM_PLUGIN_H
#define DAT_TEST_SHIM_PLUGIN_H

extern "C" {

// Writes the port that it listens on to descriptor `to`, serves one visitor, and returns
// when that has gone. Blocks.
int serve(int to);
// Reads a port from descriptor `from`, and visits who serves there. Blocks.
int visit(int from);
// The version of the API that the adapter says it has: 1 or 2.
int version(unsigned* major);
}

#endif
