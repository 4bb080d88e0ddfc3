// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is sent at once, and what is held, at most.
#ifndef DAT_RDM_LIMITS_H
#define DAT_RDM_LIMITS_H

#include "links/shm/segment.h"
#include "links/verbs/message_buffers.h"
#include "rdm/wire.h"

#include <cstddef>
#include <cstdint>

namespace dat::rdm {

// What the memory between two processes holds at once.
inline constexpr std::size_t kEagerShm = shm::kRing;
inline constexpr std::size_t kEagerIwarp = std::size_t{64} * 1024;
// With its head it goes into one buffer of the peer's.
inline constexpr std::size_t kEagerVerbs = verbs::kMessageSize - kMaxHead;
static_assert(kMaxAnnouncement <= verbs::kMessageSize);
// Of the buffers that the peer has on a device one is kept for saying how many are free again here,
// and for the end: so both sides never wait for each other.
inline constexpr std::uint32_t kKeptBuffers = 1;
// Bytes that are read at once over a device, which needs all of them registered for so long.
inline constexpr std::size_t kReadOnDevice = std::size_t{1} << 20;
// What is announced and no longer than this is copied at once by a peer that can, within the call
// in which its receive is found; of what is longer so much a time.
inline constexpr std::size_t kCopiedAtOnce = std::size_t{64} * 1024;
// Rounds of the domain for which a piece of that is waited for.
inline constexpr std::uint32_t kPatience = 32;
// Messages of one peer that are announced, and held, at most.
inline constexpr std::uint32_t kMaxAnnounced = 1U << 20;
// While those of all peers are so many, a peer may have fewer: else each connection of somebody who
// makes many could hold as much.
inline constexpr std::uint64_t kManyAnnounced = std::uint64_t{1} << 23;
inline constexpr std::uint32_t kFewAnnounced = 1U << 14;
// What is held for a receive although its sender has gone, in the units of cost_of(). Beyond that
// nobody is let in, so that who comes again and again does not take all memory.
inline constexpr std::uint64_t kMaxLeft = std::uint64_t{64} << 20;

} // namespace dat::rdm

#endif
