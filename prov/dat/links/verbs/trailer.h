// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The length of private data on InfiniBand and RoCE, whose connection manager pads it
// to a fixed size: a frame is the data, zeros, and in its last 4 bytes a trailer (U-63).
// A peer that knows no trailer sees its usual padding. iWARP carries lengths itself.
#ifndef DAT_LINKS_VERBS_TRAILER_H
#define DAT_LINKS_VERBS_TRAILER_H

#include <cstddef>
#include <span>

namespace dat::verbs {

// What the rdma_cm leaves to a program, in bytes.
inline constexpr std::size_t kRequestFrame = 56;
inline constexpr std::size_t kReplyFrame = 196;
inline constexpr std::size_t kRejectFrame = 148;
inline constexpr std::size_t kTrailer = 4;

// Writes all of `frame`. Precondition: data.size() + kTrailer <= frame.size() <= 255.
void pad(std::span<const std::byte> data, std::span<std::byte> frame);
// A reject that no Consumer has asked for: nobody listens, or too many wait.
void pad_refusal(std::span<std::byte> frame);

struct Content {
    std::span<const std::byte> data; // all of the frame, where it has no trailer
    bool refusal = false;            // of pad_refusal()
    bool trailed = false;            // the peer is `dat`
};

// A trailer counts only if it is whole, and everything between the data and it is zero.
Content content_of(std::span<const std::byte> frame);

} // namespace dat::verbs

#endif
