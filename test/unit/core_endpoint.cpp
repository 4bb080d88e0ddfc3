// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What core::Endpoint promises beyond the cells of its table: operations over
// a connection's life, markers, reset and attempts; and the bookkeeping of
// service points and requests.
#include "core/endpoint.h"
#include "core/service_point.h"

#include <criterion/criterion.h>

#include <vector>

using namespace dat::core;

namespace {

constexpr std::uint32_t kRequests = 3;
constexpr std::uint32_t kReceives = 2;

Endpoint connected() {
    Endpoint ep(kRequests, kReceives);
    ep.call(Stimulus::connect);
    ep.happen(Stimulus::peer_accepted, ep.attempt());
    cr_assert_eq(ep.state(), State::connected);
    return ep;
}

std::uint64_t request(Endpoint& ep) {
    std::uint64_t seq = 0;
    cr_assert_eq(ep.post_request(seq), PostVerdict::posted);
    return seq;
}

std::uint64_t receive(Endpoint& ep) {
    std::uint64_t seq = 0;
    cr_assert_eq(ep.post_receive(seq), PostVerdict::posted);
    return seq;
}

std::vector<DtoStatus> statuses(DtoStream& stream) {
    std::vector<DtoStatus> out;
    for (DtoStream::Done done{}; stream.pop(done);) {
        out.push_back(done.status);
    }
    return out;
}

// Does what a domain does that can let go of its operations at once.
Event end_now(Endpoint& ep, Flush what) {
    ep.flush(what);
    statuses(ep.requests());
    statuses(ep.receives());
    return ep.happen(Stimulus::flushed, ep.attempt()).event;
}

using Statuses = std::vector<DtoStatus>;
constexpr DtoStatus kOk = DtoStatus::success;
constexpr DtoStatus kFlushed = DtoStatus::flushed;

} // namespace

// EP-25, EP-40: receives posted before the connection are there when it is up.
Test(core_endpoint, receives_posted_before_connect__stay_over_it) {
    Endpoint ep(kRequests, kReceives);
    const std::uint64_t first = receive(ep);
    ep.call(Stimulus::connect);
    const std::uint64_t second = receive(ep);
    cr_assert_eq(ep.happen(Stimulus::peer_accepted, ep.attempt()).event, Event::established);
    cr_assert_eq(ep.receives().outstanding(), 2u);
    cr_assert(ep.receives().finish(first, kOk));
    cr_assert(ep.receives().finish(second, kOk));
    cr_assert(statuses(ep.receives()) == (Statuses{kOk, kOk}));
}

// EP-41, EP-72: a refused connection flushes the receives posted for it.
Test(core_endpoint, connect_refused__flushes_preposted_receives) {
    Endpoint ep(kRequests, kReceives);
    receive(ep);
    ep.call(Stimulus::connect);
    const Outcome outcome = ep.happen(Stimulus::peer_rejected, ep.attempt());
    cr_assert_eq(outcome.event, Event::none);
    cr_assert_eq(outcome.flush, Flush::recvs);
    ep.flush(outcome.flush);
    cr_assert(statuses(ep.receives()) == (Statuses{kFlushed}));
    cr_assert_eq(ep.happen(Stimulus::flushed, ep.attempt()).event, Event::peer_rejected);
}

// RST-2: reset of an UNCONNECTED endpoint leaves its receives alone.
Test(core_endpoint, reset_when_unconnected__keeps_receives) {
    Endpoint ep(kRequests, kReceives);
    receive(ep);
    cr_assert_eq(ep.call(Stimulus::reset).verdict, Verdict::noop);
    cr_assert_eq(ep.receives().outstanding(), 1u);
}

// DTO-5, from both sides and each direction; a refused post takes no slot.
Test(core_endpoint, posts_beyond_the_limit__are_full_until_a_completion_is_taken) {
    Endpoint ep = connected();
    std::uint64_t seq = 0;
    for (std::uint32_t i = 0; i < kRequests; ++i) {
        request(ep);
    }
    cr_assert_eq(ep.post_request(seq), PostVerdict::full);
    for (std::uint32_t i = 0; i < kReceives; ++i) {
        receive(ep);
    }
    cr_assert_eq(ep.post_receive(seq), PostVerdict::full);
    cr_assert(ep.requests().finish(ep.requests().first(), kOk));
    cr_assert_eq(statuses(ep.requests()).size(), 1u);
    request(ep);
    cr_assert_eq(ep.post_request(seq), PostVerdict::full);
}

// EP-23: the state is asked before the room.
Test(core_endpoint, post_in_a_wrong_state__takes_no_slot) {
    Endpoint ep(kRequests, kReceives);
    std::uint64_t seq = 0;
    for (std::uint32_t i = 0; i <= kRequests; ++i) {
        cr_assert_eq(ep.post_request(seq), PostVerdict::refused);
    }
    cr_assert(ep.requests().idle());
}

// EPA-10: each direction is idle by itself.
Test(core_endpoint, idle_flags__follow_their_own_direction) {
    Endpoint ep = connected();
    cr_assert(ep.quiet());
    const std::uint64_t seq = request(ep);
    cr_assert_not(ep.requests().idle());
    cr_assert(ep.receives().idle());
    cr_assert_not(ep.quiet());
    ep.requests().finish(seq, kOk);
    cr_assert_not(ep.requests().idle(), "until the completion is taken");
    cr_assert_eq(statuses(ep.requests()).size(), 1u);
    cr_assert(ep.quiet());
    receive(ep);
    cr_assert(ep.requests().idle());
    cr_assert_not(ep.receives().idle());
}

// DISC-3, EP-59: abrupt; what had finished keeps its status, the rest is flushed.
Test(core_endpoint, abrupt_in_connected__flushes_both_directions) {
    Endpoint ep = connected();
    const std::uint64_t done = request(ep);
    request(ep);
    receive(ep);
    ep.requests().finish(done, kOk);
    const Outcome outcome = ep.call(Stimulus::disconnect_abrupt);
    cr_assert_eq(outcome.flush, Flush::all);
    cr_assert_eq(ep.visible_state(), State::disconnect_pending);
    ep.flush(outcome.flush);
    cr_assert(statuses(ep.requests()) == (Statuses{kOk, kFlushed}));
    cr_assert(statuses(ep.receives()) == (Statuses{kFlushed}));
    cr_assert_eq(ep.happen(Stimulus::flushed, ep.attempt()).event, Event::disconnected);
}

// DISC-4, EP-58: graceful; requests may succeed, receives go with the end.
Test(core_endpoint, graceful_in_connected__drains_requests_first) {
    Endpoint ep = connected();
    const std::uint64_t first = request(ep);
    const std::uint64_t second = request(ep);
    receive(ep);
    const Outcome outcome = ep.call(Stimulus::disconnect_graceful);
    cr_assert_eq(outcome.flush, Flush::none);
    cr_assert_eq(ep.state(), State::disconnect_pending);
    std::uint64_t seq = 0;
    cr_assert_eq(ep.post_request(seq), PostVerdict::refused); // DISC-5
    cr_assert_eq(ep.post_receive(seq), PostVerdict::posted);
    ep.requests().finish(first, kOk);
    ep.requests().finish(second, kOk);
    cr_assert(statuses(ep.requests()) == (Statuses{kOk, kOk}));
    const Outcome drained = ep.happen(Stimulus::drained, ep.attempt());
    ep.flush(drained.flush);
    cr_assert(statuses(ep.receives()) == (Statuses{kFlushed, kFlushed}));
    cr_assert_eq(ep.happen(Stimulus::flushed, ep.attempt()).event, Event::disconnected);
}

// FLS-1: a post in DISCONNECTED is accepted and flushed at once.
Test(core_endpoint, post_in_disconnected__is_flushed_at_once) {
    Endpoint ep = connected();
    end_now(ep, ep.call(Stimulus::disconnect_abrupt).flush);
    std::uint64_t seq = 0;
    cr_assert_eq(ep.post_request(seq), PostVerdict::flushed);
    cr_assert(statuses(ep.requests()) == (Statuses{kFlushed}));
    cr_assert_eq(ep.post_receive(seq), PostVerdict::flushed);
    cr_assert(statuses(ep.receives()) == (Statuses{kFlushed}));
}

// EP-25, EP-68: a receive posted while ENDING comes after those before it.
Test(core_endpoint, receive_posted_in_ending__is_flushed_behind_the_rest) {
    Endpoint ep = connected();
    const std::uint64_t before = receive(ep);
    ep.call(Stimulus::disconnect_abrupt);
    std::uint64_t late = 0;
    cr_assert_eq(ep.post_receive(late), PostVerdict::flushed);
    cr_assert(statuses(ep.receives()).empty(), "the one before has not finished");
    ep.receives().finish(before, kFlushed);
    DtoStream::Done done{};
    cr_assert(ep.receives().pop(done) && done.seq == before);
    cr_assert(ep.receives().pop(done) && done.seq == late);
}

// RST-3: a marker posted in DISCONNECTED completes after all that came before.
Test(core_endpoint, marker__completes_last) {
    Endpoint ep = connected();
    const std::uint64_t earlier = request(ep);
    end_now(ep, ep.happen(Stimulus::broken, ep.attempt()).flush);
    std::uint64_t marker = 0;
    cr_assert_eq(ep.post_request(marker), PostVerdict::flushed);
    DtoStream::Done done{};
    cr_assert(ep.requests().pop(done));
    cr_assert_eq(done.seq, marker);
    cr_assert_gt(marker, earlier);
    cr_assert(ep.quiet());
    cr_assert_eq(ep.call(Stimulus::reset).verdict, Verdict::go);
}

// RST-4: after reset the endpoint connects again and operations succeed again.
Test(core_endpoint, reset_and_reconnect__operations_succeed_again) {
    Endpoint ep = connected();
    request(ep);
    receive(ep);
    const Attempt old = ep.attempt();
    end_now(ep, ep.happen(Stimulus::broken, ep.attempt()).flush);
    cr_assert_eq(ep.call(Stimulus::reset).verdict, Verdict::go);
    receive(ep);
    ep.call(Stimulus::connect);
    cr_assert_eq(ep.happen(Stimulus::peer_accepted, old).verdict, Verdict::ignore); // EP-67
    cr_assert_eq(ep.happen(Stimulus::peer_accepted, ep.attempt()).event, Event::established);
    ep.requests().finish(request(ep), kOk);
    ep.receives().finish(ep.receives().first(), kOk);
    cr_assert(statuses(ep.requests()) == (Statuses{kOk}));
    cr_assert(statuses(ep.receives()) == (Statuses{kOk}));
}

// EP-67: an attempt's identity lasts from its beginning to reset, and every
// beginning has one of its own.
Test(core_endpoint, attempt__changes_at_begin_and_reset_only) {
    Endpoint ep(kRequests, kReceives);
    std::vector<Attempt> seen{ep.attempt()};
    for (int round = 0; round < 3; ++round) {
        ep.call(Stimulus::connect);
        const Attempt during = ep.attempt();
        seen.push_back(during);
        ep.happen(Stimulus::peer_accepted, during);
        ep.call(Stimulus::disconnect_graceful);
        end_now(ep, ep.happen(Stimulus::drained, during).flush);
        cr_assert_eq(ep.state(), State::disconnected);
        cr_assert_eq(ep.attempt(), during);
        ep.call(Stimulus::reset);
        seen.push_back(ep.attempt());
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            cr_assert_neq(seen[i], seen[j]);
        }
    }
}

// DISC-8, FREE-2: a free is no new start: what fails stays failed to the end.
Test(core_endpoint, free_while_ending__allows_no_success_after_an_error) {
    Endpoint ep = connected();
    const std::uint64_t failing = request(ep);
    const std::uint64_t later = request(ep);
    ep.requests().finish(failing, DtoStatus::remote_access);
    ep.happen(Stimulus::broken, ep.attempt());
    cr_assert(statuses(ep.requests()) == (Statuses{DtoStatus::remote_access}));
    cr_assert_eq(ep.call(Stimulus::free).verdict, Verdict::go);
    ep.requests().finish(later, kOk);
    cr_assert(statuses(ep.requests()) == (Statuses{kFlushed}));
}

// FREE-2: what a free flushes can be completed before the call returns.
Test(core_endpoint, free_in_connected__flushes_both_directions) {
    Endpoint ep = connected();
    request(ep);
    receive(ep);
    const Outcome outcome = ep.call(Stimulus::free);
    cr_assert_eq(outcome.flush, Flush::all);
    cr_assert_eq(outcome.event, Event::none);
    ep.flush(outcome.flush);
    cr_assert(statuses(ep.requests()) == (Statuses{kFlushed}));
    cr_assert(statuses(ep.receives()) == (Statuses{kFlushed}));
}

// OBJ-3: exactly one of accept, reject, handoff, destruction settles a request.
Test(core_conn_request, settled__cannot_be_settled_again) {
    using Fate = ConnRequest::Fate;
    for (const Fate first : {Fate::accepted, Fate::rejected, Fate::handed_off, Fate::destroyed}) {
        ConnRequest cr;
        cr_assert_not(cr.settle(Fate::pending));
        cr_assert(cr.pending());
        cr_assert(cr.settle(first));
        cr_assert_not(cr.settle(Fate::accepted));
        cr_assert_eq(cr.fate(), first);
    }
}

// CR-6, EP-50: the request stays and remembers that its requester has gone.
Test(core_conn_request, requester_left__request_stays_pending_and_remembers) {
    ConnRequest cr;
    cr.requester_left();
    cr_assert(cr.requester_gone());
    cr_assert(cr.pending());
    cr_assert(cr.settle(ConnRequest::Fate::accepted));
    cr_assert(cr.requester_gone());
}

// SP-3, from both sides: as many as the backlog, and one more once one is taken.
Test(core_service_point, backlog__counts_requests_not_yet_taken) {
    ServicePoint psp(ServicePoint::Kind::consumer, 2);
    cr_assert(psp.arrive());
    cr_assert(psp.arrive());
    cr_assert_not(psp.arrive());
    psp.taken();
    cr_assert(psp.arrive());
    cr_assert_not(psp.arrive());
}

// SP-11, SP-13, U-52: an RSP takes one request and then no longer listens.
Test(core_service_point, reserved__takes_one_request) {
    ServicePoint rsp(ServicePoint::Kind::reserved, 4);
    cr_assert(rsp.arrive());
    cr_assert_not(rsp.listening());
    cr_assert_not(rsp.arrive());
}

// SP-6: nothing arrives at a service point that is closed.
Test(core_service_point, closed__takes_nothing) {
    ServicePoint psp(ServicePoint::Kind::provider, 4);
    psp.close();
    cr_assert_not(psp.arrive());
}
