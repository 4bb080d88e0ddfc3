// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See connection.h.
#include "engine/connection.h"

#include "base/assert.h"
#include "engine/domain.h"

namespace dat::engine {

Connection::~Connection() { DAT_ASSERT(!link_ && !handshake_); }

void Connection::carry(std::unique_ptr<Link> link) {
    domain_.retire(std::move(handshake_));
    link_ = std::move(link);
}

void Connection::receive_posted() {
    if (link_) {
        link_->receive_posted();
    } else if (handshake_) {
        handshake_->receives_posted();
    }
}

void Connection::let_go(Parting parting) {
    if (link_) {
        link_->part(parting);
        domain_.retire(std::move(link_));
    }
    if (handshake_) {
        handshake_->abandon();
        domain_.retire(std::move(handshake_));
    }
}

bool Connection::end(core::Reason reason, Parting parting, bool await_peer) {
    const bool left = reason == core::Reason::local;
    const bool keeps = await_peer && link_ && (left || reason == core::Reason::peer_closed);
    std::unique_ptr<HalfClosed> half_closed = keeps ? link_->half_close(left) : nullptr;
    let_go(half_closed && !left ? Parting::abandon : parting);
    if (half_closed && half_closed->begin()) {
        half_closed_ = std::move(half_closed);
        return false;
    }
    return keeps && left; // nothing can tell when it does
}

void Connection::leave() {
    if (half_closed_ && !half_closed_->watching()) {
        half_closed_.reset();
    }
}

} // namespace dat::engine
