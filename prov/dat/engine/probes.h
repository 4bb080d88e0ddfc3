// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Statically defined probes (USDT) for SystemTap, bpftrace and gdb: a no-op instruction and a
// note in the file, where <sys/sdt.h> was found at configure; else nothing at all. Names and
// arguments are documented in dat_trace(1).
#ifndef DAT_ENGINE_PROBES_H
#define DAT_ENGINE_PROBES_H

#include "config.h"

#ifdef HAVE_SYS_SDT_H
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>
#define DAT_PROBE(name, ...) STAP_PROBEV(dat, name, __VA_ARGS__)
#else
#define DAT_PROBE(name, ...)                                                                       \
    do {                                                                                           \
    } while (false)
#endif

#endif
