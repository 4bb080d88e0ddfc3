// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Functions without a canary on their stack, where the compiler would put one
// (-fstack-protector-strong). For the path of a plain operation alone, and there for functions
// whose locals describe memory and are filled member by member: nothing of a length that comes from
// outside is copied into their frames, so there is nothing that could overrun.
#ifndef DAT_BASE_CANARY_H
#define DAT_BASE_CANARY_H

#define DAT_NO_CANARY __attribute__((no_stack_protector))

#endif
