// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A memory barrier on all threads of all processes that take part, paid by the one
// that goes to sleep, so that those who might wake it need none (membarrier(2)).
#ifndef DAT_ENGINE_BARRIER_H
#define DAT_ENGINE_BARRIER_H

#include "base/fence.h"

namespace dat::engine {

using base::acquire_fence;
using base::full_fence;
using base::release_fence;

// This process takes part: heavy_barrier() of any other reaches its threads, and its
// own reaches theirs. False: the kernel refuses, and everybody has to fence for himself.
bool barriers_reach();

// A full barrier of this thread, and where barriers_reach(), of all others. A system
// call.
void heavy_barrier();

} // namespace dat::engine

#endif
