// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The memory of an endpoint's operations: a slot for each that may be outstanding, with room for
// its segments and, of a request, for bytes that are copied at the post. Which slot belongs to
// which operation is said by core::DtoStream.
#ifndef DAT_ENGINE_OPERATION_SLOTS_H
#define DAT_ENGINE_OPERATION_SLOTS_H

#include "core/dto_stream.h"
#include "engine/operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dat::engine {

// How many operations are outstanding at once, at most.
struct OperationLimits {
    std::uint32_t requests = 128; // DTO-5
    std::uint32_t receives = 128;
};

// Requests, receives, their extra segments, and the inline areas, in one piece and not
// initialized: memory that is never used is never touched. The inline areas are at its end, that
// of the first slot last: of an endpoint that has sent little the two ends are touched, which
// share their pages with what is allocated before and behind it.
class OperationSlots {
  public:
    // As many slots as the streams have. `named`: posts say what their memory is registered as.
    // Throws std::bad_alloc.
    OperationSlots(const core::DtoStream& requests, const core::DtoStream& receives, bool named);

    bool named() const { return names_ != nullptr; }

    Request& request(std::uint32_t slot) { return requests_[slot]; }
    const Request& request(std::uint32_t slot) const { return requests_[slot]; }
    Receive& receive(std::uint32_t slot) { return receives_[slot]; }
    // Room for kMaxIov segments of an operation that has several.
    Iov* request_iov(std::uint32_t slot) { return request_segments_ + std::size_t{slot} * kMaxIov; }
    Iov* receive_iov(std::uint32_t slot) { return receive_segments_ + std::size_t{slot} * kMaxIov; }
    // What the memory of each segment is registered as; nullptr: not named().
    const void** request_names(std::uint32_t slot) {
        return names_ ? names_.get() + std::size_t{slot} * kMaxIov : nullptr;
    }
    const void** receive_names(std::uint32_t slot) {
        return receive_names_ ? receive_names_ + std::size_t{slot} * kMaxIov : nullptr;
    }
    // kInjectSize bytes.
    std::byte* inline_area(std::uint32_t slot) {
        return inline_areas_end_ - (std::size_t{slot} + 1) * kInjectSize;
    }

    // Copies the receives that are outstanding to the slots that they have by another stream.
    void copy_receives(const core::DtoStream& posted, OperationSlots& to,
                       const core::DtoStream& by);

  private:
    std::unique_ptr<std::byte[]> memory_;
    Request* requests_;
    Receive* receives_;
    Iov* request_segments_;
    Iov* receive_segments_;
    std::byte* inline_areas_end_;
    std::unique_ptr<const void*[]> names_; // of segments: those of requests come first
    const void** receive_names_;           // in names_
};

} // namespace dat::engine

#endif
