// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is kept of a connection over shared memory that is over for one side alone: its channel. Who
// has not left yet has not hung up, which the other waits for. Under the domain's lock.
#ifndef DAT_LINKS_SHM_KEPT_CHANNEL_H
#define DAT_LINKS_SHM_KEPT_CHANNEL_H

#include "engine/endpoint.h"
#include "engine/half_closed.h"
#include "links/shm/peering.h"

#include <memory>

namespace dat::shm {

// `watching`: as engine::HalfClosed. nullptr: there is no memory.
std::unique_ptr<engine::HalfClosed> keep_channel(engine::Endpoint& endpoint,
                                                 std::shared_ptr<Channel> channel, bool watching);

} // namespace dat::shm

#endif
