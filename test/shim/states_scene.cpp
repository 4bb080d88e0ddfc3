// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How an endpoint is brought into each state. See states.h.
#include "states.h"

namespace dat::test::states {

std::string text_of(DAT_RETURN code) {
    const char* major = "no code";
    const char* minor = "";
    dat_strerror(code, &major, &minor);
    return std::string(major) + " " + minor;
}

void must(DAT_RETURN code, const char* call) {
    if (code != DAT_SUCCESS) {
        throw Wrong(std::string(call) + ": " + text_of(code));
    }
}

std::string name_of(DAT_EVENT_NUMBER number) {
    switch (number) {
    case DAT_CONNECTION_REQUEST_EVENT:
        return "CONNECTION_REQUEST";
    case DAT_CONNECTION_EVENT_ESTABLISHED:
        return "ESTABLISHED";
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
        return "PEER_REJECTED";
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
        return "NON_PEER_REJECTED";
    case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
        return "ACCEPT_COMPLETION_ERROR";
    case DAT_CONNECTION_EVENT_DISCONNECTED:
        return "DISCONNECTED";
    case DAT_CONNECTION_EVENT_BROKEN:
        return "BROKEN";
    case DAT_CONNECTION_EVENT_TIMED_OUT:
        return "TIMED_OUT";
    case DAT_CONNECTION_EVENT_UNREACHABLE:
        return "UNREACHABLE";
    default:
        return "event " + std::to_string(static_cast<unsigned>(number));
    }
}

DAT_EVENT next(DAT_EVD_HANDLE evd) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    const DAT_RETURN code = dat_evd_wait(evd, kSoon, 1, &event, &more);
    if (code != DAT_SUCCESS) {
        throw Wrong("no event: " + text_of(code));
    }
    return event;
}

DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
    const DAT_EVENT event = next(evd);
    if (event.event_number != number) {
        throw Wrong(name_of(event.event_number) + " in place of " + name_of(number));
    }
    return event;
}

void expect_refusal(DAT_EVD_HANDLE evd) {
    const DAT_EVENT_NUMBER number = next(evd).event_number;
    if (number != DAT_CONNECTION_EVENT_NON_PEER_REJECTED &&
        !(number == DAT_CONNECTION_EVENT_PEER_REJECTED && tells_refusal_as_reject())) {
        throw Wrong(name_of(number) + " in place of NON_PEER_REJECTED");
    }
}

void expect_dto(DAT_EVD_HANDLE evd, std::uint64_t cookie, DAT_DTO_COMPLETION_STATUS status) {
    const DAT_EVENT event = next(evd);
    const auto& dto = event.event_data.dto_completion_event_data;
    if (event.event_number != DAT_DTO_COMPLETION_EVENT || dto.user_cookie.as_64 != cookie ||
        dto.status != status) {
        throw Wrong("DTO " + std::to_string(dto.user_cookie.as_64) + " with status " +
                    std::to_string(dto.status) + " in place of " + std::to_string(cookie) + ", " +
                    std::to_string(status));
    }
}

bool is_empty(DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    return DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY;
}

void nothing_comes(DAT_EVD_HANDLE evd, DAT_TIMEOUT within) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    if (dat_evd_wait(evd, within, 1, &event, &more) == DAT_SUCCESS) {
        throw Wrong("unexpected " + name_of(event.event_number));
    }
}

Adapter::Adapter() {
    std::string name = place().adapter;
    MUST(dat_ia_open(name.data(), 8, &async, &ia));
    MUST(dat_pz_create(ia, &pz));
    MUST(register_memory(ia, pz, bytes.data(), bytes.size(), local));
}

void Adapter::close() {
    if (ia != DAT_HANDLE_NULL) {
        dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
        ia = DAT_HANDLE_NULL;
    }
}

DAT_EVD_HANDLE Adapter::evd(DAT_EVD_FLAGS streams) const {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    MUST(dat_evd_create(ia, 32, DAT_HANDLE_NULL, streams, &evd));
    return evd;
}

End::End(const Adapter& of)
    : adapter(of), recv(of.evd(DAT_EVD_DTO_FLAG)), request(of.evd(DAT_EVD_DTO_FLAG)),
      conn(of.evd(DAT_EVD_CONNECTION_FLAG)) {
    MUST(dat_ep_create(of.ia, of.pz, recv, request, conn, nullptr, &ep));
}

DAT_RETURN End::connect(DAT_CONN_QUAL port, DAT_TIMEOUT timeout, std::uint32_t address) const {
    sockaddr_in to = address_of(address);
    return dat_ep_connect(ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&to), port, timeout, 0, nullptr,
                          DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

DAT_RETURN End::send(std::uint64_t number) const {
    Segment piece = adapter.local;
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = number;
    return dat_ep_post_send(ep, 1, &piece, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN End::receive(std::uint64_t number) const {
    Segment piece = adapter.local;
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = number;
    return dat_ep_post_recv(ep, 1, &piece, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_EP_STATE End::state() const {
    DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
    MUST(dat_ep_get_status(ep, &state, nullptr, nullptr));
    return state;
}

bool End::exists() const {
    DAT_EP_STATE state;
    return DAT_GET_TYPE(dat_ep_get_status(ep, &state, nullptr, nullptr)) != DAT_INVALID_HANDLE;
}

LocalListener::LocalListener(const Adapter& adapter, DAT_PSP_FLAGS kind)
    : evd(adapter.evd(DAT_EVD_CR_FLAG)) {
    MUST(dat_psp_create_any(adapter.ia, &port, evd, kind, &psp));
}

DAT_CR_HANDLE LocalListener::request() const {
    return expect(evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
}

Scene::Scene() : rsp_evd(near.evd(DAT_EVD_CR_FLAG)) { MUST(subject->receive(kReceive)); }

// Whoever still waits for an answer gets one: siw keeps a requester's adapter, as it closes, until
// the request is answered, or for 10 s.
Scene::~Scene() {
    for (const DAT_CR_HANDLE request : {cr, pending, old, another}) {
        if (request != DAT_HANDLE_NULL) {
            reject(request); // refused where it has been settled
        }
    }
}

// A port that was free a moment ago.
void Scene::reserve() {
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    MUST(dat_psp_create_any(near.ia, &rsp_port, rsp_evd, DAT_PSP_CONSUMER_FLAG, &psp));
    MUST(dat_psp_free(psp));
    MUST(dat_rsp_create(near.ia, rsp_port, subject->ep, rsp_evd, &rsp));
}

void Scene::be_tentative() {
    const LocalListener local_listener(near, DAT_PSP_PROVIDER_FLAG);
    MUST(peer.connect(local_listener.port));
    cr = local_listener.request();
    DAT_CR_PARAM request{};
    MUST(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
    MUST(dat_ep_free(subject->ep));
    subject->ep = request.local_ep_handle;
    DAT_EP_PARAM param{};
    param.pz_handle = near.pz;
    param.recv_evd_handle = subject->recv;
    param.request_evd_handle = subject->request;
    param.connect_evd_handle = subject->conn;
    MUST(dat_ep_modify(subject->ep,
                       static_cast<DAT_EP_PARAM_MASK>(
                           DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                           DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE),
                       &param));
    MUST(subject->receive(kReceive));
}

void Scene::connect_to_peer() {
    MUST(subject->connect(far_local_listener.port));
    MUST(dat_cr_accept(far_local_listener.request(), peer.ep, 0, nullptr));
    expect(subject->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(peer.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void Scene::connect_to_silent() {
    if (by_bytes()) {
        complete_with(raw);
        expect(subject->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    } else {
        connect_to_peer();
    }
}

void Scene::connect_from_process() {
    process = std::make_unique<Process>(
        std::vector<std::string>{"requester", std::to_string(near_local_listener.port)});
    MUST(dat_cr_accept(near_local_listener.request(), subject->ep, 0, nullptr));
    expect(subject->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

// The requester stands still, and so never says that it is ready.
void Scene::complete_with(Process& requester) {
    const DAT_CR_HANDLE request = near_local_listener.request();
    requester.stop();
    MUST(dat_cr_accept(request, subject->ep, 0, nullptr));
}

void Scene::complete_with(RawPeer& requester) {
    requester.request(near_local_listener.port);
    MUST(dat_cr_accept(near_local_listener.request(), subject->ep, 0, nullptr));
}

// A message without a receive keeps it there.
void Scene::ask_for_end() {
    MUST(subject->send(kRequest));
    MUST(dat_ep_disconnect(subject->ep, DAT_CLOSE_GRACEFUL_FLAG));
}

void Scene::end_attempt(Side side) {
    MUST(dat_ep_disconnect(subject->ep, DAT_CLOSE_ABRUPT_FLAG));
    DAT_EVENT_NUMBER event = next(subject->conn).event_number;
    // siw is connected when it has accepted, and may have said so before this end or not.
    if (side == Side::accepting && by_bytes() && event == DAT_CONNECTION_EVENT_ESTABLISHED) {
        event = next(subject->conn).event_number;
    }
    if (event != DAT_CONNECTION_EVENT_DISCONNECTED) {
        throw Wrong(name_of(event) + " in place of DISCONNECTED");
    }
    expect_dto(subject->recv, kReceive, DAT_DTO_ERR_FLUSHED);
    MUST(dat_ep_reset(subject->ep));
    MUST(subject->receive(kReceive));
}

void Scene::arrive(State state) {
    switch (state) {
    case State::unconnected:
        break;
    case State::reserved:
        reserve();
        break;
    case State::passive:
        reserve();
        MUST(peer.connect(rsp_port));
        cr = next(rsp_evd).event_data.cr_arrival_event_data.cr_handle;
        break;
    case State::tentative:
        be_tentative();
        break;
    case State::active:
        MUST(subject->connect(far_local_listener.port));
        pending = far_local_listener.request();
        break;
    case State::completing:
        process = std::make_unique<Process>(
            std::vector<std::string>{"requester", std::to_string(near_local_listener.port)});
        complete_with(*process);
        break;
    case State::connected:
        connect_to_peer();
        break;
    case State::disconnecting:
        connect_to_silent();
        ask_for_end();
        break;
    case State::ending: // within the next call
        connect_to_peer();
        break;
    case State::disconnected:
        connect_to_peer();
        MUST(dat_ep_disconnect(subject->ep, DAT_CLOSE_ABRUPT_FLAG));
        expect(subject->conn, DAT_CONNECTION_EVENT_DISCONNECTED);
        expect_dto(subject->recv, kReceive, DAT_DTO_ERR_FLUSHED);
        expect(peer.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
        break;
    }
}

} // namespace dat::test::states
