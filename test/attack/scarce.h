// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A process in which the N-th allocation of the library under test fails, or the N-th call
// that would give it a descriptor, a mapping or a thread: that one alone, or all from there on.
// The program stands before malloc(3), operator new and those calls (scarce_calls.cpp), and asks
// each time who called.
#ifndef DAT_TEST_ATTACK_SCARCE_H
#define DAT_TEST_ATTACK_SCARCE_H

#include <chrono>

namespace dat::test {

enum class Resource : int {
    memory,  // malloc(3), calloc(3), realloc(3), operator new ...
    systems, // socket(2), accept4(2), epoll_create1(2), mmap(2), pthread_create(3) ...
};

// --- for a run ---

// Something has failed by now, so that the run need not succeed.
bool has_failed();
// Something has since the last time that this was called: before the call that answers now.
bool has_just_failed();
// There is no more to be waited for: nothing may come any more, or nothing has for too long, which
// is a violation in `what`.
bool waited_enough(const char* what, std::chrono::steady_clock::duration since);
// Something is wrong that no lack of anything excuses: printed, with what had failed.
void violation(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Does everything from opening to closing. False: a call failed, and all was closed.
using Run = bool (*)();

// Runs `run` for every N that there is: once with the failure, which it may not survive where a
// thread, an eventfd or the like is missing that was not asked for again; and once again
// without, which has to succeed; afterwards as much is allocated and open as before. Each time in
// one process, unless the library has not been called before: `load` is what a process does once,
// nullptr: that is left out. Returns how much was wrong, which has been printed. `name`: for
// messages.
int sweep(const char* name, Run load, Run run);
// The same over TCP and over shared memory, with `waits` false and then true, which `run` looks at:
// whether it sleeps where something is to come. `load` once.
int sweep_links(bool& waits, Run load, Run run);

// --- for scarce_calls.cpp ---

// `what` was called from the address `caller`, and shall fail.
bool fails(Resource resource, void* caller, const char* what);
void made(void* memory, void* caller);
void gone(void* memory);

} // namespace dat::test

#endif
