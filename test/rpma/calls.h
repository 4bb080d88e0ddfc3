// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A transcript of calls of librpma, each with what came of it, for a comparison of libraries
// (calls.sh). Two processes, server and client, go through the same scenarios in step; either may
// have another library of that name.
#ifndef DAT_TEST_RPMA_CALLS_H
#define DAT_TEST_RPMA_CALLS_H

#include "scene.h"

#include <string>

namespace dat::test::calls {

// What this process is, and its socket to the other one.
struct Role {
    bool serves;
    int socket;
};

// The scenario's name; every line begins with it.
void begin(const Role& role, const std::string& scenario);
// A line `scenario|what|value`.
void say(const std::string& what, const std::string& value);
// The word for what a call returned.
std::string name_of(int result);

// Both processes have come here; each sees what the other has to say.
std::string meet(const Role& role, const std::string& word = "here");

// Makes the call, and a line of it. Its value is the call's.
#define CALL(call) ::dat::test::calls::called(#call, (call))
int called(const char* text, int result);

// The next event, or none within that time.
void say_event(const Conn& conn, const char* what, int timeout_ms = kSoon);
// The next completion: status, and of a good one its opcode, length, flags, immediate data.
void say_completion(const Conn& conn, rpma_cq* cq, const char* what);

// The two scenarios' halves of everything that needs no peer.
void without_peer(const Role& role);
// And those that have one.
void with_peer(const Role& role);

} // namespace dat::test::calls

#endif
