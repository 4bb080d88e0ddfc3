// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See operation_slots.h.
#include "engine/operation_slots.h"

#include <algorithm>
#include <type_traits>

namespace dat::engine {
namespace {

std::size_t bytes_of(std::size_t requests, std::size_t receives) {
    return requests * (sizeof(Request) + sizeof(Iov) * kMaxIov + kInjectSize) +
           receives * (sizeof(Receive) + sizeof(Iov) * kMaxIov);
}

} // namespace

OperationSlots::OperationSlots(const core::DtoStream& requests, const core::DtoStream& receives,
                               bool named)
    : memory_(std::make_unique_for_overwrite<std::byte[]>(
          bytes_of(requests.slots(), receives.slots()))),
      requests_(reinterpret_cast<Request*>(memory_.get())),
      receives_(reinterpret_cast<Receive*>(requests_ + requests.slots())),
      request_segments_(reinterpret_cast<Iov*>(receives_ + receives.slots())),
      receive_segments_(request_segments_ + requests.slots() * kMaxIov),
      inline_areas_end_(
          reinterpret_cast<std::byte*>(receive_segments_ + receives.slots() * kMaxIov) +
          requests.slots() * kInjectSize),
      names_(named ? std::make_unique_for_overwrite<const void*[]>(
                         (std::size_t{requests.slots()} + receives.slots()) * kMaxIov)
                   : nullptr),
      receive_names_(named ? names_.get() + requests.slots() * kMaxIov : nullptr) {
    static_assert(std::is_trivial_v<Request> && std::is_trivial_v<Receive>);
    static_assert(sizeof(Request) % alignof(Receive) == 0);
    static_assert(sizeof(Receive) % alignof(Iov) == 0);
}

void OperationSlots::copy_receives(const core::DtoStream& posted, OperationSlots& to,
                                   const core::DtoStream& by) {
    for (std::uint64_t seq = posted.first(); seq != posted.next(); ++seq) {
        const std::uint32_t from = posted.slot(seq);
        const std::uint32_t slot = by.slot(seq);
        move_receive(receive(from), to.receive(slot), to.receive_iov(slot));
        if (named()) {
            std::copy_n(receive_names(from), kMaxIov, to.receive_names(slot));
        }
    }
}

} // namespace dat::engine
