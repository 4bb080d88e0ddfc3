// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The first moments of a connection on Linux's siw, which asks for no ready-to-receive (RFC
// 6581) of its own accord: of the two sides that have agreed neither knows that the other
// looks at what comes. See link.h.
#include "engine/domain.h"
#include "links/verbs/link.h"
#include "links/verbs/link_parts.h"

namespace dat::verbs {

namespace {

constexpr std::chrono::milliseconds kHold{100};
constexpr std::chrono::milliseconds kFirstReady{20}; // twice as long each time
constexpr int kTimesReady = 6;

} // namespace

void Link::open_siw() {
    unheard_ = endpoint_.core().receives().first();
    if (passive_) {
        // The initiator speaks first (RFC 5044 7.1.2): its siw refuses the connection where a
        // frame is behind the reply when it comes to read that. A program that says nothing
        // first cannot be waited for without end.
        life_.happen(LinkEvent::hold);
        domain_.engine().handshakes().arm(opening_, kHold);
    } else {
        say_ready();
    }
}

void Link::opening_expired() {
    if (passive_) {
        release();
        check_drained();
    } else {
        say_ready();
    }
}

// A responder sends its reply first and looks at the stream afterwards. What comes in between
// it does not see, a message as little as anything else, until something else comes. So a
// write of nothing comes, until the peer is heard of. A peer that holds its frames until the
// initiator's first, as one of the software domain, sends them then.
void Link::say_ready() {
    if (heard() || times_ready_ == kTimesReady) {
        return;
    }
    if (!telling_) {
        ibv_sge nothing{};
        ibv_send_wr wr{};
        ibv_send_wr* bad = nullptr;
        wr.wr_id = kReady;
        wr.sg_list = &nothing;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        telling_ = post_send_(qp_, &wr, &bad) == 0;
    }
    domain_.engine().handshakes().arm(opening_, kFirstReady * (1 << times_ready_++));
}

void Link::release() {
    life_.happen(LinkEvent::release);
    domain_.engine().handshakes().disarm(opening_);
    const std::uint64_t end = endpoint_.core().requests().next();
    for (std::uint64_t seq = done_; seq < end && !life_.is_over(); ++seq) {
        transmit_any(seq);
    }
}

} // namespace dat::verbs
