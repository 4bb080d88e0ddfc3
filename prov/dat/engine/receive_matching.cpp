// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See receive_matching.h.
#include "engine/receive_matching.h"

#include "engine/shared_receives.h"

namespace dat::engine {

// One that is taken is to be the endpoint's own from then on.
bool ReceiveMatching::may_share(const core::Endpoint& core) const {
    return !shared_->empty() && !core.receives().full() && !core.holds_receives();
}

const Receive& ReceiveMatching::take_shared() { return shared_->take(); }

} // namespace dat::engine
