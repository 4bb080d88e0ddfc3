// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The stimuli that are calls of the Consumer. See states.h.
#include "states.h"

namespace dat::test::states {
namespace {

constexpr std::uint64_t kPosted = 200;

// A request of the other peer.
DAT_CR_HANDLE another_request(Scene& s) {
    MUST(s.other.connect(s.near_local_listener.port));
    return s.another = s.near_local_listener.request();
}

// The subject had an RSP, whose request was rejected.
void used_service_point(Scene& s, State state) {
    if (state == State::reserved || state == State::passive) {
        return;
    }
    s.reserve();
    MUST(s.other.connect(s.rsp_port));
    MUST(reject(next(s.rsp_evd).event_data.cr_arrival_event_data.cr_handle));
    expect(s.other.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

void established_follows(Scene& s, State state) {
    if (state == State::unconnected || state == State::passive || state == State::tentative) {
        expect(s.subject->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
        expect(state == State::unconnected ? s.other.conn : s.peer.conn,
               DAT_CONNECTION_EVENT_ESTABLISHED);
    }
}

void requester_is_told(Scene& s, State state) {
    if (state == State::passive || state == State::tentative) {
        expect_refusal(s.peer.conn);
    }
    if (state == State::connected) {
        expect(s.peer.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    }
}

} // namespace

const std::vector<Stimulus>& api_stimuli() {
    static const std::vector<Stimulus> all{
        {.name = "connect",
         .act = [](Scene& s, State) { return s.subject->connect(s.far_local_listener.port); }},
        {.name = "dup_connect",
         .act =
             [](Scene& s, State) {
                 const LocalListener local_listener(
                     s.far); // what is duplicated is a connection of the same IA
                 const End connected(s.near);
                 MUST(connected.connect(local_listener.port));
                 MUST(dat_cr_accept(local_listener.request(), s.other.ep, 0, nullptr));
                 expect(connected.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
                 return dat_ep_dup_connect(s.subject->ep, connected.ep, kSoon, 0, nullptr,
                                           DAT_QOS_BEST_EFFORT);
             }},
        {.name = "reserve",
         .act =
             [](Scene& s, State) {
                 const LocalListener local_listener(s.near);
                 MUST(dat_psp_free(local_listener.psp));
                 DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
                 return dat_rsp_create(s.near.ia, local_listener.port, s.subject->ep, s.rsp_evd,
                                       &rsp);
             }},
        {.name = "unreserve",
         .before = used_service_point,
         .act = [](Scene& s, State) { return dat_rsp_free(s.rsp); }},
        {.name = "accept_own",
         .act = [](Scene& s, State) { return dat_cr_accept(s.cr, DAT_HANDLE_NULL, 0, nullptr); },
         .after = established_follows},
        {.name = "accept_given",
         .act = [](Scene& s,
                   State) { return dat_cr_accept(another_request(s), s.subject->ep, 0, nullptr); },
         .after =
             [](Scene& s, State state) {
                 if (state == State::unconnected) {
                     established_follows(s, state);
                 }
             }},
        {.name = "reject",
         .act = [](Scene& s, State) { return reject(s.cr); },
         .after = [](Scene& s, State) { expect(s.peer.conn, DAT_CONNECTION_EVENT_PEER_REJECTED); }},
        {.name = "handoff",
         .act = [](Scene& s, State) { return dat_cr_handoff(s.cr, s.near_local_listener.port); },
         .after = [](Scene& s, State) { MUST(reject(s.near_local_listener.request())); }},
        {.name = "disconnect_abrupt",
         .act = [](Scene& s,
                   State) { return dat_ep_disconnect(s.subject->ep, DAT_CLOSE_ABRUPT_FLAG); }},
        {.name = "disconnect_graceful",
         .arrive =
             [](Scene& s, State state) {
                 if (state == State::connected) {
                     s.connect_to_silent();
                 } else {
                     s.arrive(state);
                 }
             },
         .act =
             [](Scene& s, State state) {
                 if (state == State::connected) { // what it waits for
                     MUST(s.subject->send(Scene::kRequest));
                 }
                 return dat_ep_disconnect(s.subject->ep, DAT_CLOSE_GRACEFUL_FLAG);
             }},
        {.name = "reset", .act = [](Scene& s, State) { return dat_ep_reset(s.subject->ep); }},
        {.name = "free", .act = [](Scene& s, State) { return dat_ep_free(s.subject->ep); }},
        {.name = "ia_close",
         .act =
             [](Scene& s, State) {
                 const DAT_RETURN code = dat_ia_close(s.near.ia, DAT_CLOSE_ABRUPT_FLAG);
                 s.near.ia = DAT_HANDLE_NULL;
                 return code;
             },
         .after = requester_is_told},
        {.name = "post_request",
         .act =
             [](Scene& s, State state) {
                 if (state == State::connected) {
                     MUST(s.peer.receive(1));
                 }
                 return s.subject->send(kPosted);
             },
         .after =
             [](Scene& s, State state) {
                 if (state == State::disconnected) {
                     expect_dto(s.subject->request, kPosted, DAT_DTO_ERR_FLUSHED);
                 } else if (state == State::connected) {
                     expect_dto(s.subject->request, kPosted, DAT_DTO_SUCCESS);
                 }
             }},
        {.name = "post_recv",
         .act = [](Scene& s, State) { return s.subject->receive(kPosted); },
         .after =
             [](Scene& s, State state) {
                 if (state == State::disconnected) {
                     expect_dto(s.subject->recv, kPosted, DAT_DTO_ERR_FLUSHED);
                 }
             }},
    };
    return all;
}

} // namespace dat::test::states
