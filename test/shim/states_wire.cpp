// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The stimuli that come from peers, timers and the provider itself. Where the table has them
// ignored they are late: they belong to an attempt that is over (EP-66, EP-67), which
// `before` begins and ends. See states.h.
#include "states.h"

namespace dat::test::states {
namespace {

constexpr DAT_TIMEOUT kShort = 50'000; // us, a connect timeout
// us, within which it is known that nobody has an address (make_own_network())
constexpr DAT_TIMEOUT kLongEnough = 300'000;

bool is_late(State state, State in_time) { return state != in_time; }

// --- attempts that are over ---

void old_request_pends(Scene& s, State state) { // at the far side, unanswered
    if (is_late(state, State::active)) {
        MUST(s.subject->connect(s.far_local_listener.port));
        s.old = s.far_local_listener.request();
        s.end_attempt();
    }
}

void old_request_at_a_third(Scene& s, State state) {
    if (is_late(state, State::active)) {
        s.third = std::make_unique<Adapter>();
        const LocalListener local_listener(*s.third);
        MUST(s.subject->connect(local_listener.port));
        local_listener.request();
        s.end_attempt();
    }
}

void old_request_at_a_process(Scene& s, State state) {
    if (state == State::connected || state == State::disconnecting || state == State::completing ||
        state == State::active) {
        return;
    }
    s.old_process = std::make_unique<Process>(std::vector<std::string>{"listener"});
    MUST(s.subject->connect(std::stoull(s.old_process->line())));
    s.old_process->line();
    s.end_attempt();
}

void old_request_at_raw(Scene& s, State state) {
    if (state == State::connected || state == State::disconnecting || state == State::completing ||
        state == State::active) {
        return;
    }
    MUST(s.subject->connect(s.old_raw.listen()));
    s.old_raw.take_request();
    s.end_attempt();
}

DAT_RETURN call_into_the_void(const Scene& s) {
    return s.subject->connect(1, kSoon, place().unreachable);
}

void old_call_into_the_void(Scene& s, State state) {
    if (is_late(state, State::active)) {
        MUST(call_into_the_void(s));
        s.end_attempt();
    }
}

// Ended gracefully, and then abruptly while its peer stands still: what that has to say to
// the first comes late.
void old_end(Scene& s, State state) {
    if (!is_late(state, State::disconnecting)) {
        return;
    }
    s.old_process = std::make_unique<Process>(std::vector<std::string>{"server"});
    MUST(s.subject->connect(std::stoull(s.old_process->line())));
    expect(s.subject->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    s.old_process->line(); // the request
    s.old_process->line(); // ESTABLISHED
    s.old_process->stop();
    s.ask_for_end();
    s.end_attempt();
    next(s.subject->request); // kRequest, however it ended
}

// One that ended before its timer did, however slow this machine is.
void old_timer(Scene& s, State state) {
    if (!is_late(state, State::active)) {
        return;
    }
    DAT_EVENT_NUMBER ended = DAT_CONNECTION_EVENT_TIMED_OUT;
    for (s.old_timeout = kShort; ended != DAT_CONNECTION_EVENT_DISCONNECTED; s.old_timeout *= 2) {
        MUST(s.subject->connect(s.old_local_listener.port, s.old_timeout));
        MUST(dat_ep_disconnect(s.subject->ep, DAT_CLOSE_ABRUPT_FLAG));
        ended = next(s.subject->conn).event_number;
        expect_dto(s.subject->recv, Scene::kReceive, DAT_DTO_ERR_FLUSHED);
        MUST(dat_ep_reset(s.subject->ep));
        MUST(s.subject->receive(Scene::kReceive));
    }
}

void arrive_with_timer(Scene& s, State state) {
    if (state == State::active) {
        MUST(s.subject->connect(s.far_local_listener.port, kShort));
    } else {
        s.arrive(state);
    }
}

void old_handshake(Scene& s, State state) { // its requester stands still
    if (is_late(state, State::completing)) {
        s.old_process = std::make_unique<Process>(
            std::vector<std::string>{"requester", std::to_string(s.near_local_listener.port)});
        s.complete_with(*s.old_process);
        s.end_attempt(Scene::Side::accepting);
    }
}

void old_raw_handshake(Scene& s, State state) {
    if (is_late(state, State::completing)) {
        s.complete_with(s.old_raw);
        s.end_attempt(Scene::Side::accepting);
    }
}

// As old_handshake(), where the state has no requester of its own.
void old_requester(Scene& s, State state) {
    if (state == State::unconnected || state == State::reserved || state == State::active ||
        state == State::disconnected) {
        old_handshake(s, state);
    }
}

void old_service_point(Scene& s, State state) {
    if (state != State::reserved && state != State::passive) {
        s.reserve();
        MUST(s.other.connect(s.rsp_port));
        MUST(reject(next(s.rsp_evd).event_data.cr_arrival_event_data.cr_handle));
        expect(s.other.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
        MUST(dat_ep_reset(s.other.ep));
    }
}

// --- how the state is reached, where that matters ---

void passive_with_process(Scene& s, State) {
    s.reserve();
    s.process = std::make_unique<Process>(
        std::vector<std::string>{"requester", std::to_string(s.rsp_port)});
    s.cr = next(s.rsp_evd).event_data.cr_arrival_event_data.cr_handle;
}

void arrive_for_peer_disconnected(Scene& s, State state) {
    if (state == State::active) {
        s.process = std::make_unique<Process>(std::vector<std::string>{"listener"});
        MUST(s.subject->connect(std::stoull(s.process->line())));
        s.process->line();
    } else {
        s.arrive(state);
    }
}

void arrive_for_requester_gone(Scene& s, State state) {
    switch (state) {
    case State::passive:
        passive_with_process(s, state);
        break;
    case State::connected:
        s.connect_from_process();
        break;
    case State::disconnecting:
        if (s.by_bytes()) {
            s.arrive(state);
        } else {
            s.connect_from_process();
            s.ask_for_end();
        }
        break;
    default:
        s.arrive(state);
    }
}

void arrive_for_broken(Scene& s, State state) {
    if (state == State::active) {
        MUST(s.subject->connect(s.raw.listen()));
        s.raw.take_request();
    } else if (state == State::completing) {
        s.complete_with(s.raw);
    } else {
        s.arrive(state);
    }
}

// --- what they are ---

DAT_RETURN answer(Scene& s, State state, bool accept) {
    const DAT_CR_HANDLE cr = is_late(state, State::active) ? s.old : s.pending;
    const End& by = is_late(state, State::active) ? s.other : s.peer;
    if (!accept) {
        return reject(cr);
    }
    MUST(dat_cr_accept(cr, by.ep, 0, nullptr));
    if (!is_late(state, State::active)) {
        expect(by.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    } else if (takes_requests_back()) {
        expect(by.conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    } else {
        expect(by.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
        expect(by.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    }
    return DAT_SUCCESS;
}

// The peer writes to memory that nobody has registered.
DAT_RETURN write_nowhere(const Scene& s) {
    Segment piece = s.far.local;
    Remote remote = nowhere(piece.segment_length);
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = 1;
    return dat_ep_post_rdma_write(s.peer.ep, 1, &piece, cookie, &remote,
                                  DAT_COMPLETION_DEFAULT_FLAG);
}

} // namespace

const std::vector<Stimulus>& wire_stimuli() {
    static const std::vector<Stimulus> all{
        {.name = "peer_accepted",
         .before = old_request_pends,
         .act = [](Scene& s, State state) { return answer(s, state, true); }},
        {.name = "peer_rejected",
         .before = old_request_pends,
         .act = [](Scene& s, State state) { return answer(s, state, false); }},
        {.name = "refused",
         .before = old_request_at_a_third,
         .act =
             [](Scene& s, State state) {
                 (is_late(state, State::active) ? *s.third : s.far).close();
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "unreachable",
         .before = old_call_into_the_void,
         .arrive =
             [](Scene& s, State state) {
                 if (state != State::active) {
                     s.arrive(state);
                 }
             },
         .act =
             [](Scene& s, State state) {
                 if (state == State::active) {
                     return call_into_the_void(s);
                 }
                 nothing_comes(s.subject->conn, kLongEnough);
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "timer_expired",
         .before = old_timer,
         .arrive = arrive_with_timer,
         .act =
             [](Scene& s, State state) {
                 if (is_late(state, State::active)) { // longer than the old timer
                     nothing_comes(s.subject->conn, s.old_timeout);
                 }
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "request_arrived",
         .before = old_service_point,
         .act =
             [](Scene& s, State state) {
                 if (state == State::reserved) {
                     return s.peer.connect(s.rsp_port);
                 }
                 MUST(s.other.connect(s.rsp_port));
                 expect_refusal(s.other.conn);
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "handshake_done",
         .before = old_handshake,
         .act =
             [](Scene& s, State state) {
                 (is_late(state, State::completing) ? *s.old_process : *s.process).go_on();
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "handshake_failed", // U-65: FI_DAT_HANDSHAKE_TIMEOUT
         .before = old_raw_handshake,
         .act =
             [](Scene& s, State state) {
                 if (is_late(state, State::completing)) {
                     s.old_raw.leave();
                 }
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "requester_gone",
         .before = old_requester,
         .arrive = arrive_for_requester_gone,
         .act =
             [](Scene& s, State state) {
                 if (state == State::tentative) {
                     MUST(dat_ep_disconnect(s.peer.ep, DAT_CLOSE_ABRUPT_FLAG));
                 } else if (state == State::disconnecting && s.by_bytes()) {
                     s.raw.leave();
                 } else {
                     (s.old_process ? s.old_process : s.process)->kill();
                 }
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "peer_disconnected",
         .before = old_request_at_a_process,
         .arrive = arrive_for_peer_disconnected,
         .act =
             [](Scene& s, State state) {
                 if (state == State::disconnecting && s.by_bytes()) {
                     s.raw.leave();
                     return DAT_RETURN{DAT_SUCCESS};
                 }
                 if (state == State::connected || state == State::disconnecting) {
                     return dat_ep_disconnect(s.peer.ep, DAT_CLOSE_ABRUPT_FLAG);
                 }
                 (s.old_process ? s.old_process : s.process)->kill();
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "broken",
         .before = old_request_at_raw,
         .arrive = arrive_for_broken,
         .act =
             [](Scene& s, State state) {
                 if (state == State::connected ||
                     (state == State::disconnecting && !s.by_bytes())) {
                     return write_nowhere(s);
                 }
                 if (state == State::completing) {
                     s.raw.reset();
                 } else {
                     (state == State::active || state == State::disconnecting ? s.raw : s.old_raw)
                         .talk_nonsense();
                 }
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "async_error", // EP-60, EP-61, EP-62, U-5
         .act =
             [](Scene&, State) {
                 remove_device();
                 return DAT_RETURN{DAT_SUCCESS};
             },
         .after =
             [](Scene& s, State) {
                 bool adapter = false;
                 bool endpoint = false;
                 while (!adapter || !endpoint) {
                     const DAT_EVENT event = next(s.near.async);
                     const auto& error = event.event_data.asynch_error_event_data;
                     adapter |= event.event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC &&
                                error.dat_handle == s.near.ia &&
                                error.reason == DAT_IA_CATASTROPHIC_ERROR;
                     endpoint |= event.event_number == DAT_ASYNC_ERROR_EP_BROKEN &&
                                 error.dat_handle == s.subject->ep;
                 }
             }},
        {.name = "drained",
         .before = old_end,
         .act =
             [](Scene& s, State state) {
                 if (state == State::disconnecting) {
                     return s.peer.receive(1);
                 }
                 s.old_process->go_on();
                 return DAT_RETURN{DAT_SUCCESS};
             }},
        {.name = "flushed",
         .act = [](Scene& s,
                   State) { return dat_ep_disconnect(s.subject->ep, DAT_CLOSE_ABRUPT_FLAG); }},
    };
    return all;
}

} // namespace dat::test::states
