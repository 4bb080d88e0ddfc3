// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The event of a completion. See dto.h.
#include "dat-shim/ep.h"
#include "dat-shim/fast.h"
#include "dat-shim/srq.h"

namespace dat::shim {

const Object* subject_of(const core::Completion& done) {
    const Slot& slot = *static_cast<const Slot*>(done.context);
    const bool own = slot.operation == Operation::bind || slot.ep;
    return own ? slot.ring->owner() : static_cast<Ep*>(done.buffer);
}

void complete(const core::Completion& done, Event& event) {
    const Slot& slot = *static_cast<const Slot*>(done.context);
    const auto status = static_cast<std::uint32_t>(done.status);
    event.notice = notice_of(done.flags, status);
    if (slot.operation == Operation::bind) {
        event.number = Number::rmr_bind_completion;
        event.subject = slot.ring->owner();
        event.bind = {slot.rmr, slot.cookie, status};
        slot.ring->reaped(slot.behind);
        return;
    }
    const Object* const ep = slot.ep ? slot.ring->owner() : static_cast<Ep*>(done.buffer);
    event.number =
        slot.operation < Operation::write_immediate ? Number::dto_completion : Number::ib_dto;
    event.subject = ep;
    const std::size_t length = status == 0 ? done.length : 0; // DTO-10
    event.dto = {ep->handle(),  slot.cookie, status, static_cast<std::uint32_t>(length), 0, 0,
                 slot.operation};
    if (slot.operation == Operation::receive) {
        if ((done.flags & FI_DAT_INVALIDATE) != 0) {
            event.dto.operation = Operation::receive_with_invalidate;
            event.dto.rmr_context = static_cast<std::uint32_t>(done.data);
        } else if ((done.flags & FI_REMOTE_CQ_DATA) != 0 && status == 0) {
            event.number = Number::ib_dto;
            event.dto.operation = Operation::receive_immediate;
            event.dto.immediate = static_cast<std::uint32_t>(done.data);
        }
    }
    if (slot.ep) {
        slot.ring->reaped(slot.behind);
    } else {
        slot.srq->release(const_cast<Slot&>(slot));
    }
}

} // namespace dat::shim
