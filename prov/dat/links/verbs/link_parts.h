// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the files of the link share.
#ifndef DAT_LINKS_VERBS_LINK_PARTS_H
#define DAT_LINKS_VERBS_LINK_PARTS_H

#include "links/verbs/link.h"

#include <infiniband/verbs.h>

#include <cstdint>

namespace dat::verbs {

struct Link::Batch {
    ibv_wc wc[kBatch];
};

// Work requests of one segment, of which a plain post writes what is its own.
struct Link::Ready {
    ibv_sge from{};
    ibv_send_wr send{};
    ibv_send_wr* bad_send = nullptr;
    ibv_sge into{};
    ibv_recv_wr receive{};
    ibv_recv_wr* bad_receive = nullptr;
};

// A work request is known by the number of its operation. One that is plain has no temporary
// registrations, is no bind, and no receive that is shared, not reported, or has other than one
// segment: its success calls for nothing but its completion.
inline std::uint64_t plain_request_id(std::uint64_t seq) { return seq << 2; }
inline std::uint64_t plain_receive_id(std::uint64_t seq) { return seq << 2 | 1; }
inline std::uint64_t request_id(std::uint64_t seq) { return seq << 2 | 2; }
inline std::uint64_t receive_id(std::uint64_t seq) { return seq << 2 | 3; }
inline constexpr std::uint64_t kMarker = UINT64_MAX - 1; // no operation: tells of those before it
inline constexpr std::uint64_t kReady = UINT64_MAX - 5;  // none either: tells the peer something
inline bool is_receive(std::uint64_t wr_id) { return (wr_id & 1) != 0; }
inline bool is_plain_receive(std::uint64_t wr_id) { return (wr_id & 3) == 1; }
inline bool is_plain_request(std::uint64_t wr_id) { return (wr_id & 3) == 0; }
inline std::uint64_t seq_of(std::uint64_t wr_id) { return wr_id >> 2; }

// The oldest request that is not finished is a success.
[[gnu::always_inline]] inline void Link::finish_first() {
    temporary_registrations_.end(request_id(done_));
    endpoint_.finish_request(done_++, core::DtoStatus::success);
}

// How the completion of a failed work request is called in DAT, on that device.
core::DtoStatus status_of(const ibv_wc& wc, const Device& device);

} // namespace dat::verbs

#endif
