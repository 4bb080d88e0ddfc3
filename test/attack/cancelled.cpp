// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a program whose threads are cancelled asks of AddressSanitizer. The frames that a
// cancellation unwinds stay marked on the stack, and its own frames come to lie there when it takes
// the thread's signal stack away.
extern "C" const char* __asan_default_options();

const char* __asan_default_options() { return "use_sigaltstack=0"; }
