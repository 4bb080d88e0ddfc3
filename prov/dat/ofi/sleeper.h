// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A thread of the application that may sleep for completions.
#ifndef DAT_OFI_SLEEPER_H
#define DAT_OFI_SLEEPER_H

#include "engine/domain.h"

namespace dat::ofi {

// It says so before it looks for the last time, so that no post after that look is put
// off until a progress() that nobody calls.
class Sleeper {
  public:
    explicit Sleeper(engine::Domain& domain) : domain_(domain) { domain_.sleeper_begins(); }
    ~Sleeper() { domain_.sleeper_ends(); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

  private:
    engine::Domain& domain_;
};

} // namespace dat::ofi

#endif
