// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Connections: the cells of test/spec/ep-transitions.tsv that a Consumer can reach, through
// dat_* calls, and private data, service points, requests.
#include "pair.h"

#include <cstring>
#include <functional>
#include <memory>
#include <string>

using namespace dat::test;

namespace {

// One endpoint, brought into a state, with what that takes.
struct Scene {
    Adapter adapter;
    Memory memory{adapter};
    Side subject{adapter};
    Side far{adapter};
    Listener listener{adapter};
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    DAT_CR_HANDLE cr = DAT_HANDLE_NULL;

    void reserve() {
        DAT_PSP_HANDLE free_port;
        DAT_CONN_QUAL qualifier;
        EXPECT_OK(dat_psp_create_any(adapter.ia, &qualifier, listener.evd, DAT_PSP_CONSUMER_FLAG,
                                     &free_port));
        EXPECT_OK(dat_psp_free(free_port));
        EXPECT_OK(dat_rsp_create(adapter.ia, qualifier, subject.ep, listener.evd, &rsp));
        reserved = qualifier;
    }
    void request_arrives() {
        reserve();
        EXPECT_OK(far.connect(reserved));
        DAT_EVENT event;
        cr = listener.request(&event);
        const DAT_RSP_HANDLE told = event.event_data.cr_arrival_event_data.sp_handle.rsp_handle;
        cr_assert_eq(told, kRspInEvent ? rsp : DAT_HANDLE_NULL);
    }
    void connect() {
        EXPECT_OK(subject.connect(listener.qualifier));
        EXPECT_OK(dat_cr_accept(listener.request(), far.ep, 0, nullptr));
        expect(subject.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
        expect(far.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    }
    void disconnect() {
        connect();
        EXPECT_OK(dat_ep_disconnect(subject.ep, DAT_CLOSE_ABRUPT_FLAG));
        expect(subject.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    }
    // A request that cannot be carried out keeps it there.
    void disconnecting() {
        connect();
        EXPECT_OK(subject.send(memory.at(0, 8), 1));
        EXPECT_OK(dat_ep_disconnect(subject.ep, DAT_CLOSE_GRACEFUL_FLAG));
    }
    DAT_CONN_QUAL reserved = 0;
};

struct Expected {
    const char* name;
    void (*arrive)(Scene&);
    DAT_EP_STATE state;
    DAT_UINT32 connect, abrupt, graceful, reset, send, receive, modify, free;
};

constexpr DAT_UINT32 kNo = DAT_INVALID_STATE;
constexpr DAT_UINT32 kOk = DAT_SUCCESS;

const Expected kStates[] = {
    {"UNCONNECTED", [](Scene&) {}, DAT_EP_STATE_UNCONNECTED, kOk, kNo, kNo, kOk, kNo, kOk, kOk,
     kOk},
    {"RESERVED", [](Scene& s) { s.reserve(); }, DAT_EP_STATE_RESERVED, kNo, kNo, kNo, kNo, kNo, kOk,
     kOk, kNo},
    {"PASSIVE", [](Scene& s) { s.request_arrives(); }, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, kNo,
     kNo, kNo, kNo, kNo, kOk, kOk, kNo},
    {"ACTIVE", [](Scene& s) { EXPECT_OK(s.subject.connect(s.listener.qualifier)); },
     DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, kNo, kOk, kOk, kNo, kNo, kOk, kNo, kOk},
    {"CONNECTED", [](Scene& s) { s.connect(); }, DAT_EP_STATE_CONNECTED, kNo, kOk, kOk, kNo, kOk,
     kOk, kNo, kOk},
    {"DISCONNECT_PENDING", [](Scene& s) { s.disconnecting(); }, DAT_EP_STATE_DISCONNECT_PENDING,
     kNo, kOk, kOk, kNo, kNo, kOk, kNo, kOk},
    {"DISCONNECTED", [](Scene& s) { s.disconnect(); }, DAT_EP_STATE_DISCONNECTED, kNo, kOk, kOk,
     kOk, kOk, kOk, kNo, kOk},
};

// siw ends a connection on which a message finds no receive, so nothing keeps DISCONNECT_PENDING
// there; test/shim/states has a peer that does.
bool is_reached(const Expected& state) {
    return state.state != DAT_EP_STATE_DISCONNECT_PENDING || place().name != std::string("siw");
}

// Brings a new endpoint into each state and makes the call there.
void in_every_state(DAT_UINT32 Expected::*wanted, const std::function<DAT_RETURN(Scene&)>& call) {
    for (const Expected& state : kStates) {
        if (!is_reached(state)) {
            continue;
        }
        Scene scene;
        state.arrive(scene);
        cr_assert_eq(scene.subject.state(), state.state, "%s", state.name);
        const DAT_RETURN code = call(scene);
        cr_assert_eq(DAT_GET_TYPE(code), state.*wanted, "in %s: %s", state.name, words(code));
    }
}

} // namespace

// EP-10
Test(shim_state, connect__in_unconnected_alone) {
    in_every_state(&Expected::connect,
                   [](Scene& s) { return s.subject.connect(s.listener.qualifier); });
}

// EP-18, DISC-13, DISC-14
Test(shim_state, abrupt_disconnect__from_active_on) {
    in_every_state(&Expected::abrupt,
                   [](Scene& s) { return dat_ep_disconnect(s.subject.ep, DAT_CLOSE_ABRUPT_FLAG); });
}

// EP-19, DISC-5, U-39
Test(shim_state, graceful_disconnect__from_active_on) {
    in_every_state(&Expected::graceful, [](Scene& s) {
        return dat_ep_disconnect(s.subject.ep, DAT_CLOSE_GRACEFUL_FLAG);
    });
}

// EP-20
Test(shim_state, another_flag__is_a_bad_parameter_everywhere) {
    for (const Expected& state : kStates) {
        if (!is_reached(state)) {
            continue;
        }
        Scene scene;
        state.arrive(scene);
        EXPECT_TYPE(dat_ep_disconnect(scene.subject.ep, close_flag(8)), DAT_INVALID_PARAMETER);
    }
}

// EP-21, RST-2
Test(shim_state, reset__in_unconnected_and_disconnected) {
    in_every_state(&Expected::reset, [](Scene& s) { return dat_ep_reset(s.subject.ep); });
}

// EP-22, FREE-1
Test(shim_state, free__not_while_a_service_point_has_it) {
    in_every_state(&Expected::free, [](Scene& s) { return dat_ep_free(s.subject.ep); });
}

// EP-23
Test(shim_state, requests__in_connected_and_disconnected) {
    in_every_state(&Expected::send, [](Scene& s) { return s.subject.send(s.memory.at(0, 8), 2); });
}

// EP-25, DTO-13
Test(shim_state, receives__everywhere) {
    in_every_state(&Expected::receive,
                   [](Scene& s) { return s.subject.receive(s.memory.at(0, 8), 2); });
}

// EP-27, EPA-5
Test(shim_state, attributes_change__before_a_connection) {
    in_every_state(&Expected::modify, [](Scene& s) {
        DAT_EP_PARAM param{};
        param.ep_attr.max_request_dtos = 32;
        return dat_ep_modify(s.subject.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
    });
}

// EP-28, EP-29
Test(shim_state, queries__everywhere_and_the_subtype_names_the_state) {
    for (const Expected& state : kStates) {
        if (!is_reached(state)) {
            continue;
        }
        Scene scene;
        state.arrive(scene);
        DAT_EP_PARAM param;
        EXPECT_OK(dat_ep_query(scene.subject.ep, DAT_EP_FIELD_ALL, &param));
        cr_assert_eq(param.ep_state, state.state);
        DAT_COUNT allocated = -1;
        EXPECT_OK(dat_ep_recv_query(scene.subject.ep, &allocated, nullptr));
        EXPECT_OK(
            dat_ep_set_watermark(scene.subject.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE));
        if (state.connect == kNo) {
            const DAT_RETURN code = scene.subject.connect(scene.listener.qualifier);
            cr_assert_neq(DAT_GET_SUBTYPE(code), DAT_NO_SUBTYPE);
        }
    }
}

// EP-12, EP-47, SP-10, SP-11, SP-12, EP-13, EP-14, U-52, CR-2
Test(shim_service, a_reserved_service_point__serves_one_request) {
    Scene scene;
    scene.request_arrives();
    Side second(scene.adapter);
    EXPECT_OK(second.connect(scene.reserved));
    expect(second.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    EXPECT_OK(dat_rsp_free(scene.rsp));
    EXPECT_TYPE(dat_cr_accept(scene.cr, second.ep, 0, nullptr), DAT_INVALID_HANDLE);
    EXPECT_OK(dat_cr_accept(scene.cr, DAT_HANDLE_NULL, 0, nullptr));
    expect(scene.subject.conn, DAT_CONNECTION_EVENT_ESTABLISHED);

    Scene early;
    early.reserve();
    EXPECT_OK(dat_rsp_free(early.rsp));
    cr_assert_eq(early.subject.state(), DAT_EP_STATE_UNCONNECTED);
    EXPECT_TYPE(dat_rsp_free(early.rsp), DAT_INVALID_HANDLE);
}

// EP-16, CR-7, EP-41
Test(shim_service, a_reject__frees_the_endpoint) {
    Scene scene;
    scene.request_arrives();
    EXPECT_OK(cr_reject(scene.cr));
    cr_assert_eq(scene.subject.state(), DAT_EP_STATE_UNCONNECTED);
    const DAT_EVENT event = expect(scene.far.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
    cr_assert_eq(event.event_data.connect_event_data.private_data_size, 0); // PD-4
    cr_assert_eq(scene.far.state(), DAT_EP_STATE_DISCONNECTED);
    EXPECT_TYPE(cr_reject(scene.cr), DAT_INVALID_HANDLE);
}

// SP-4, EP-48, EP-14, EPA-5, U-12
Test(shim_service, a_psp_that_makes_endpoints__makes_one_for_each_request) {
    Adapter adapter;
    Listener listener(adapter, DAT_PSP_PROVIDER_FLAG);
    Side far(adapter);
    EXPECT_OK(far.connect(listener.qualifier));
    const DAT_CR_HANDLE cr = listener.request();
    DAT_CR_PARAM request;
    EXPECT_OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
    cr_assert_not_null(request.local_ep_handle);
    DAT_EP_STATE state;
    EXPECT_OK(dat_ep_get_status(request.local_ep_handle, &state, nullptr, nullptr));
    cr_assert_eq(state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    EXPECT_TYPE(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, nullptr), DAT_INVALID_STATE);
    EXPECT_TYPE(dat_ep_free(request.local_ep_handle), DAT_INVALID_STATE);
    DAT_EP_PARAM param{};
    param.pz_handle = adapter.pz;
    param.connect_evd_handle = adapter.evd(DAT_EVD_CONNECTION_FLAG);
    EXPECT_OK(dat_ep_modify(request.local_ep_handle,
                            DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
    EXPECT_OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, nullptr));
    expect(far.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(param.connect_evd_handle, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_OK(dat_ep_free(request.local_ep_handle));
    expect(far.conn, DAT_CONNECTION_EVENT_DISCONNECTED);

    EXPECT_OK(dat_ep_reset(far.ep));
    EXPECT_OK(far.connect(listener.qualifier));
    const DAT_CR_HANDLE refused = listener.request();
    EXPECT_OK(dat_cr_query(refused, DAT_CR_FIELD_ALL, &request));
    EXPECT_OK(cr_reject(refused));
    expect(far.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
    EXPECT_TYPE(dat_ep_get_status(request.local_ep_handle, &state, nullptr, nullptr),
                DAT_INVALID_HANDLE);
}

// CR-8, EP-17, U-31
Test(shim_service, a_handoff__moves_the_request) {
    Scene scene;
    EXPECT_OK(scene.far.connect(scene.listener.qualifier));
    const DAT_CR_HANDLE cr = scene.listener.request();
    Listener other(scene.adapter);
    EXPECT_TYPE(dat_cr_handoff(cr, 1), DAT_INVALID_PARAMETER);
    EXPECT_OK(dat_cr_handoff(cr, other.qualifier));
    EXPECT_TYPE(dat_cr_handoff(cr, other.qualifier), DAT_INVALID_HANDLE);
    EXPECT_OK(dat_cr_accept(other.request(), scene.subject.ep, 0, nullptr));
    expect(scene.far.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

// PD-1, PD-2, PD-3, PD-5, U-44, CR-1, CR-4, CR-5, EP-49
Test(shim_service, private_data__arrives_exactly) {
    Scene scene;
    char hello[] = "hello";
    sockaddr_in address = address_of(place().address);
    const auto to = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address);
    const auto connect = [&](DAT_COUNT size, void* data) {
        return dat_ep_connect(scene.far.ep, to, scene.listener.qualifier, kSoon, size, data,
                              DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
    };
    EXPECT_TYPE(connect(-1, hello), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(connect(4, nullptr), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(connect(100000, hello), DAT_INVALID_PARAMETER);
    EXPECT_OK(connect(sizeof hello, hello));
    const DAT_CR_HANDLE cr = scene.listener.request();
    DAT_CR_PARAM request;
    EXPECT_OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
    cr_assert_eq(request.private_data_size, static_cast<DAT_COUNT>(sizeof hello));
    cr_assert_str_eq(static_cast<char*>(request.private_data), "hello");
    cr_assert_null(request.local_ep_handle);
    cr_assert_not_null(request.remote_ia_address_ptr);
    static_cast<char*>(request.private_data)[0] = 'j'; // programs do
    EXPECT_TYPE(dat_cr_accept(cr, scene.subject.ep, -1, nullptr), DAT_INVALID_PARAMETER);
    EXPECT_OK(dat_cr_accept(cr, scene.subject.ep, sizeof hello, request.private_data));
    DAT_EVENT event = expect(scene.far.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    const auto& far = event.event_data.connect_event_data;
    cr_assert_eq(far.private_data_size, static_cast<DAT_COUNT>(sizeof hello));
    cr_assert_str_eq(static_cast<char*>(far.private_data), "jello");
    event = expect(scene.subject.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    cr_assert_eq(event.event_data.connect_event_data.private_data_size, 0);
    cr_assert_not_null(event.event_data.connect_event_data.private_data);
}

// EP-42, SP-6, SP-1
Test(shim_service, nobody_listens__is_non_peer_rejected) {
    Scene scene;
    DAT_PSP_HANDLE twice;
    EXPECT_TYPE(dat_psp_create(scene.adapter.ia, scene.listener.qualifier, scene.listener.evd,
                               DAT_PSP_CONSUMER_FLAG, &twice),
                DAT_CONN_QUAL_IN_USE);
    EXPECT_OK(dat_psp_free(scene.listener.psp));
    EXPECT_TYPE(dat_psp_free(scene.listener.psp), DAT_INVALID_HANDLE);
    EXPECT_OK(scene.subject.receive(scene.memory.at(0, 8), 9));
    EXPECT_OK(scene.subject.connect(scene.listener.qualifier));
    expect(scene.subject.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
    expect_dto(scene.subject.recv, 9, DAT_DTO_ERR_FLUSHED);
    cr_assert_eq(scene.subject.state(), DAT_EP_STATE_DISCONNECTED);
}

// SP-1, EVD-40: as in the reference, whose programs have qualifiers above 65535.
Test(shim_service, a_qualifier__has_its_port_in_16_bits) {
    Adapter adapter;
    Side side(adapter);
    const Listener listener(adapter);
    EXPECT_OK(dat_psp_free(listener.psp));
    const DAT_CONN_QUAL large = 0xaff0000 + listener.qualifier;
    DAT_PSP_HANDLE psp;
    EXPECT_OK(dat_psp_create(adapter.ia, large, listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
    DAT_PSP_PARAM param;
    EXPECT_OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
    cr_assert_eq(param.conn_qual, large);
    EXPECT_OK(side.connect(large));
    DAT_EVENT event;
    const DAT_CR_HANDLE request = listener.request(&event);
    cr_assert_eq(event.event_data.cr_arrival_event_data.conn_qual, large);
    cr_assert_eq(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
    EXPECT_OK(cr_reject(request));
    expect(side.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);

    const Side other(adapter);
    EXPECT_TYPE(dat_psp_create(adapter.ia, 0x10000, listener.evd, DAT_PSP_CONSUMER_FLAG, &psp),
                DAT_INVALID_PARAMETER);
    EXPECT_TYPE(other.connect(0x10000), DAT_INVALID_PARAMETER);
}

// SP-3
Test(shim_service, beyond_the_backlog__is_non_peer_rejected) {
    Adapter adapter;
    Listener listener(adapter);
    DAT_EVD_PARAM param;
    EXPECT_OK(dat_evd_query(listener.evd, DAT_EVD_FIELD_ALL, &param));
    const DAT_EVD_HANDLE conn = adapter.evd(DAT_EVD_CONNECTION_FLAG, param.evd_qlen + 8);
    sockaddr_in address = address_of(place().address);
    for (DAT_COUNT i = 0; i < param.evd_qlen + 8; ++i) {
        DAT_EP_HANDLE ep;
        EXPECT_OK(dat_ep_create(adapter.ia, adapter.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, conn,
                                nullptr, &ep));
        EXPECT_OK(dat_ep_connect(ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address),
                                 listener.qualifier, kSoon, 0, nullptr, DAT_QOS_BEST_EFFORT,
                                 DAT_CONNECT_DEFAULT_FLAG));
    }
    DAT_EVENT event;
    DAT_COUNT more = 0;
    EXPECT_OK(dat_evd_wait(listener.evd, kSoon, param.evd_qlen, &event, &more));
    cr_assert_eq(more, param.evd_qlen - 1);
    // Those that are too many are refused when the dispatcher is looked at.
    DAT_RETURN code;
    do {
        EXPECT_OK(dat_evd_resize(listener.evd, param.evd_qlen));
        code = dat_evd_wait(conn, 1000, 1, &event, &more);
    } while (DAT_GET_TYPE(code) == DAT_TIMEOUT_EXPIRED);
    EXPECT_OK(code);
    cr_assert_eq(event.event_number, tells_refusal_as_reject()
                                         ? DAT_CONNECTION_EVENT_PEER_REJECTED
                                         : DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

// TMO-1, TMO-2, EP-44, U-1
Test(shim_service, a_connect_timeout__ends_the_attempt) {
    Scene scene;
    EXPECT_TYPE(scene.subject.connect(scene.listener.qualifier, 0), DAT_INVALID_PARAMETER);
    EXPECT_OK(scene.subject.connect(scene.listener.qualifier, kBriefly));
    expect(scene.subject.conn, DAT_CONNECTION_EVENT_TIMED_OUT);
    cr_assert_eq(scene.subject.state(), DAT_EP_STATE_DISCONNECTED);
}

// CR-6, EP-45, EP-50, EP-52, U-3
Test(shim_service, a_requester_that_gave_up__fails_the_accept) {
    Scene scene;
    EXPECT_OK(scene.far.connect(scene.listener.qualifier));
    const DAT_CR_HANDLE cr = scene.listener.request();
    EXPECT_OK(dat_ep_disconnect(scene.far.ep, DAT_CLOSE_ABRUPT_FLAG));
    expect(scene.far.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT_OK(scene.subject.receive(scene.memory.at(0, 8), 4));
    EXPECT_OK(dat_cr_accept(cr, scene.subject.ep, 0, nullptr));
    expect_accept_in_vain(scene.subject.conn);
    expect_dto(scene.subject.recv, 4, DAT_DTO_ERR_FLUSHED);
    cr_assert(is_empty(scene.subject.conn));
}

// QOS-1, MP-1, U-13, ADR-1, CR-3
Test(shim_service, what_is_not_offered__is_refused_at_once) {
    Scene scene;
    sockaddr_in address = address_of(place().address);
    const auto connect = [&](unsigned qos, unsigned flags) {
        return dat_ep_connect(scene.subject.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address),
                              scene.listener.qualifier, kSoon, 0, nullptr,
                              static_cast<DAT_QOS>(qos), static_cast<DAT_CONNECT_FLAGS>(flags));
    };
    EXPECT_TYPE(connect(DAT_QOS_PREMIUM, 0), DAT_MODEL_NOT_SUPPORTED);
    EXPECT_TYPE(connect(0x100, 0), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(connect(0, kMultipathRefused), DAT_MODEL_NOT_SUPPORTED);
    EXPECT_TYPE(connect(0, 0x10), DAT_INVALID_PARAMETER);
    address.sin_addr.s_addr = htonl(0xe0000001);
    EXPECT_TYPE(connect(0, 0), DAT_INVALID_ADDRESS);
    address.sin_family = AF_UNIX;
    EXPECT_TYPE(connect(0, 0), DAT_INVALID_ADDRESS);
    cr_assert_eq(scene.subject.state(), DAT_EP_STATE_UNCONNECTED);
    DAT_EP_HANDLE bare;
    EXPECT_OK(dat_ep_create(scene.adapter.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                            DAT_HANDLE_NULL, nullptr, &bare));
    address = address_of(place().address);
    EXPECT_TYPE(dat_ep_connect(bare, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), 1, kSoon, 0,
                               nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
                DAT_INVALID_STATE);
}

// EP-11, U-41
Test(shim_service, dup_connect__goes_to_the_same_place) {
    Pair pair;
    Side c(pair.adapter);
    Side d(pair.adapter);
    EXPECT_TYPE(dat_ep_dup_connect(c.ep, d.ep, kSoon, 0, nullptr, DAT_QOS_BEST_EFFORT),
                DAT_INVALID_STATE);
    EXPECT_OK(dat_ep_dup_connect(c.ep, pair.a.ep, kSoon, 0, nullptr, DAT_QOS_BEST_EFFORT));
    EXPECT_OK(dat_cr_accept(pair.listener.request(), d.ep, 0, nullptr));
    expect(c.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

// RST-1, RST-4, EP-70, EP-74, EP-67
Test(shim_state, an_endpoint__is_reset_and_connected_again) {
    Scene scene;
    for (int round = 0; round < 3; ++round) {
        scene.disconnect();
        expect(scene.far.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
        cr_assert(is_empty(scene.subject.conn));
        EXPECT_OK(dat_ep_disconnect(scene.subject.ep, DAT_CLOSE_ABRUPT_FLAG));
        cr_assert(is_empty(scene.subject.conn));
        EXPECT_OK(dat_ep_reset(scene.subject.ep));
        EXPECT_OK(dat_ep_reset(scene.far.ep));
    }
}

// U-71: the port is known when dat_ep_connect returns, it is what the peer sees, and stays so where
// nobody listens at first.
Test(shim_connection, the_local_port__is_bound_by_connect) {
    Adapter adapter;
    Side side(adapter);
    const Listener elsewhere(adapter); // for its EVD
    DAT_CONN_QUAL qualifier = 0;
    DAT_PSP_HANDLE psp;
    EXPECT_OK(
        dat_psp_create_any(adapter.ia, &qualifier, elsewhere.evd, DAT_PSP_CONSUMER_FLAG, &psp));
    for (int listens_first = 1; listens_first >= 0; --listens_first) {
        DAT_EVENT event;
        DAT_COUNT more;
        DAT_EP_PARAM param;
        // Where the time for which it tries has gone by, it is done once more.
        for (bool arrived = false; !arrived;) {
            if (!listens_first) {
                EXPECT_OK(dat_psp_free(psp));
            }
            EXPECT_OK(side.connect(qualifier));
            EXPECT_OK(dat_ep_query(side.ep, DAT_EP_FIELD_ALL, &param));
            cr_assert_neq(param.local_port_qual, 0u);
            if (!listens_first) {
                EXPECT_OK(dat_psp_create(adapter.ia, qualifier, elsewhere.evd,
                                         DAT_PSP_CONSUMER_FLAG, &psp));
            }
            while (!arrived && is_empty(side.conn)) {
                arrived = dat_evd_wait(elsewhere.evd, 10000, 1, &event, &more) == DAT_SUCCESS;
            }
            if (!arrived) {
                EXPECT_OK(dat_ep_reset(side.ep));
            }
        }
        DAT_CR_PARAM asked;
        const DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
        EXPECT_OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &asked));
        cr_assert_eq(asked.remote_port_qual, param.local_port_qual);
        EXPECT_OK(cr_reject(cr));
        expect(side.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
        EXPECT_OK(dat_ep_reset(side.ep));
    }
}

// U-68: connections may be reported to an EVD of another IA of the device, which stays open
// meanwhile; completions may not.
Test(shim_connection, of_several_ias__are_reported_to_one_evd) {
    Adapter first;
    const DAT_EVD_HANDLE conn = first.evd(DAT_EVD_CONNECTION_FLAG);
    const DAT_EVD_HANDLE dtos = first.evd(DAT_EVD_DTO_FLAG);
    {
        Adapter second;
        Listener listener(second);
        DAT_EP_HANDLE eps[2];
        DAT_EP_HANDLE none;
        EXPECT_TYPE(
            dat_ep_create(second.ia, second.pz, dtos, DAT_HANDLE_NULL, conn, nullptr, &none),
            DAT_INVALID_HANDLE);
        EXPECT_OK(dat_ep_create(first.ia, first.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, conn, nullptr,
                                &eps[0]));
        EXPECT_OK(dat_ep_create(second.ia, second.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, conn,
                                nullptr, &eps[1]));
        EXPECT_TYPE(dat_evd_free(conn), DAT_INVALID_STATE);
        EXPECT_TYPE(dat_ia_close(first.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
        EXPECT_OK(connect_to(eps[0], listener.qualifier));
        EXPECT_OK(dat_cr_accept(listener.request(), eps[1], 0, nullptr));
        DAT_EP_HANDLE told[2];
        for (DAT_EP_HANDLE& each : told) {
            const DAT_EVENT event = expect(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
            each = event.event_data.connect_event_data.ep_handle;
        }
        cr_assert((told[0] == eps[0] && told[1] == eps[1]) ||
                  (told[0] == eps[1] && told[1] == eps[0]));
        EXPECT_OK(dat_ep_disconnect(eps[0], DAT_CLOSE_ABRUPT_FLAG));
        expect(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
        expect(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
        // Another one takes its place, and the EVD is left behind by the last.
        const DAT_EVD_HANDLE own = second.evd(DAT_EVD_CONNECTION_FLAG);
        EXPECT_OK(dat_ep_reset(eps[1]));
        DAT_EP_PARAM param{};
        param.connect_evd_handle = own;
        EXPECT_OK(dat_ep_modify(eps[1], DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
        param.connect_evd_handle = conn;
        EXPECT_OK(dat_ep_modify(eps[1], DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
        EXPECT_OK(connect_to(eps[1], listener.qualifier));
        EXPECT_OK(cr_reject(listener.request()));
        expect(conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
        EXPECT_OK(dat_ep_free(eps[0]));
    } // its endpoint with it
    EXPECT_OK(dat_evd_free(conn));
    EXPECT_OK(dat_evd_free(dtos));
    EXPECT_OK(dat_pz_free(first.pz));
    EXPECT_OK(dat_ia_close(first.ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// IA-8, U-68: who lends an EVD closes first, twice over: to an endpoint, and for asynchronous
// events. What reported to it goes on, and is freed.
Test(shim_connection, of_another_ia__outlive_the_evd_that_they_are_reported_to) {
    Adapter second;
    Listener listener(second);
    DAT_EVD_HANDLE lent[2];
    DAT_EP_HANDLE ep;
    DAT_IA_HANDLE third;
    DAT_CNO_HANDLE cno;
    {
        Adapter first;
        EXPECT_OK(dat_cno_create(first.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
        lent[0] = first.evd(DAT_EVD_CONNECTION_FLAG, 8, cno);
        lent[1] = first.evd(DAT_EVD_ASYNC_FLAG);
        EXPECT_OK(dat_ep_create(second.ia, second.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, lent[0],
                                nullptr, &ep));
        EXPECT_OK(dat_ia_open(const_cast<DAT_NAME_PTR>(place().adapter), 8, &lent[1], &third));
        EXPECT_OK(dat_ia_close(first.ia, DAT_CLOSE_ABRUPT_FLAG));
        first.ia = DAT_HANDLE_NULL;
    }
    DAT_EVENT event;
    for (const DAT_EVD_HANDLE evd : lent) {
        EXPECT_TYPE(dat_evd_dequeue(evd, &event), DAT_INVALID_HANDLE);
        EXPECT_TYPE(dat_evd_free(evd), DAT_INVALID_HANDLE);
    }
    EXPECT_TYPE(dat_cno_free(cno), DAT_INVALID_HANDLE);
    Side side(second);
    EXPECT_OK(side.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), ep, 0, nullptr)); // which nobody is told of
    expect(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_OK(dat_ia_close(third, DAT_CLOSE_GRACEFUL_FLAG));
    EXPECT_OK(dat_ep_free(ep));
    expect(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}
