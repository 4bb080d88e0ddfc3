// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See pair.h.
#include "pair.h"

#include <cstddef>
#include <string>

namespace dat::test {

const char* words(DAT_RETURN code) {
    const char* major = "no code at all";
    const char* minor = "";
    dat_strerror(code, &major, &minor);
    return major;
}

Adapter::Adapter() {
    std::string name = place().adapter;
    EXPECT_OK(dat_ia_open(name.data(), 8, &async, &ia));
    EXPECT_OK(dat_pz_create(ia, &pz));
}

Adapter::~Adapter() { dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }

DAT_EVD_HANDLE Adapter::evd(DAT_EVD_FLAGS flags, DAT_COUNT length, DAT_CNO_HANDLE cno) const {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    EXPECT_OK(dat_evd_create(ia, length, cno, flags, &evd));
    return evd;
}

Memory::Memory(const Adapter& adapter, DAT_MEM_PRIV_FLAGS privileges) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = bytes.data();
    EXPECT_OK(lmr_create(adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, bytes.size(), adapter.pz,
                         privileges, &lmr, &lmr_context, &rmr_context, nullptr, nullptr));
}

DAT_LMR_TRIPLET Memory::at(std::size_t offset, std::size_t length) {
    return local_range(reinterpret_cast<std::uintptr_t>(bytes.data() + offset), length,
                       lmr_context);
}

DAT_RMR_TRIPLET Memory::remote(std::size_t offset, std::size_t length) {
    return remote_range(reinterpret_cast<std::uintptr_t>(bytes.data() + offset), length,
                        rmr_context);
}

Side::Side(const Adapter& of, const DAT_EP_ATTR* attr, DAT_SRQ_HANDLE srq)
    : adapter(of), recv(of.evd(DAT_EVD_DTO_FLAG)),
      request(of.evd(static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG))),
      conn(of.evd(DAT_EVD_CONNECTION_FLAG)) {
    if (srq) {
        EXPECT_OK(dat_ep_create_with_srq(of.ia, of.pz, recv, request, conn, srq, attr, &ep));
    } else {
        EXPECT_OK(dat_ep_create(of.ia, of.pz, recv, request, conn, attr, &ep));
    }
}

DAT_EP_STATE Side::state() const {
    DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
    EXPECT_OK(dat_ep_get_status(ep, &state, nullptr, nullptr));
    return state;
}

DAT_RETURN Side::send(const DAT_LMR_TRIPLET& piece, std::uint64_t cookie,
                      DAT_COMPLETION_FLAGS flags) const {
    DAT_LMR_TRIPLET copy = piece;
    return dat_ep_post_send(ep, 1, &copy, cookie_of(cookie), flags);
}

DAT_RETURN Side::receive(const DAT_LMR_TRIPLET& piece, std::uint64_t cookie) const {
    DAT_LMR_TRIPLET copy = piece;
    return dat_ep_post_recv(ep, 1, &copy, cookie_of(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN Side::connect(DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout) const {
    return connect_to(ep, qualifier, timeout);
}

DAT_RETURN connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout) {
    sockaddr_in address = address_of(place().address);
    return dat_ep_connect(ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), qualifier, timeout, 0,
                          nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

Listener::Listener(const Adapter& adapter, DAT_PSP_FLAGS flags)
    : evd(adapter.evd(DAT_EVD_CR_FLAG)) {
    EXPECT_OK(dat_psp_create_any(adapter.ia, &qualifier, evd, flags, &psp));
}

DAT_CR_HANDLE Listener::request(DAT_EVENT* event) const {
    const DAT_EVENT got = expect(evd, DAT_CONNECTION_REQUEST_EVENT);
    if (event) {
        *event = got;
    }
    return got.event_data.cr_arrival_event_data.cr_handle;
}

Pair::Pair(const DAT_EP_ATTR* attr) : a(adapter, attr) {
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

DAT_EVENT next(DAT_EVD_HANDLE evd) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    EXPECT_OK(dat_evd_wait(evd, kSoon, 1, &event, &more));
    cr_assert_eq(event.evd_handle, evd);
    return event;
}

DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
    const DAT_EVENT event = next(evd);
    cr_assert_eq(event.event_number, number, "the event is 0x%x, not 0x%x", event.event_number,
                 number);
    return event;
}

void expect_accept_in_vain(DAT_EVD_HANDLE evd) {
    if (takes_requests_back()) {
        expect(evd, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
        return;
    }
    expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

DAT_DTO_COMPLETION_EVENT_DATA expect_dto(DAT_EVD_HANDLE evd, std::uint64_t cookie,
                                         DAT_DTO_COMPLETION_STATUS status) {
    const DAT_EVENT event = expect(evd, DAT_DTO_COMPLETION_EVENT);
    const DAT_DTO_COMPLETION_EVENT_DATA& dto = event.event_data.dto_completion_event_data;
    cr_assert_eq(dto.user_cookie.as_64, cookie);
    cr_assert_eq(dto.status, status, "status %d, not %d", dto.status, status);
    return dto;
}

bool is_empty(DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    const DAT_RETURN code = dat_evd_dequeue(evd, &event);
    cr_assert(code == DAT_SUCCESS || code == DAT_QUEUE_EMPTY, "0x%x", code); // whole (U-69)
    return code == DAT_QUEUE_EMPTY;
}

} // namespace dat::test
