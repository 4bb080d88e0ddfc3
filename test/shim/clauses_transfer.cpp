// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transfers that fail, shared receives of several connections, flags.
#include "pair.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

using namespace dat::test;

namespace {

struct SharedReceives {
    explicit SharedReceives(const Adapter& adapter, DAT_COUNT count = 16) {
        DAT_SRQ_ATTR attr{};
        attr.max_recv_dtos = count;
        attr.max_recv_iov = 1;
        attr.low_watermark = DAT_SRQ_LW_DEFAULT;
        EXPECT_OK(dat_srq_create(adapter.ia, adapter.pz, &attr, &srq));
    }
    DAT_RETURN post(DAT_LMR_TRIPLET piece, std::uint64_t cookie) const {
        return dat_srq_post_recv(srq, 1, &piece, cookie_of(cookie));
    }
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
};

DAT_EP_ATTR small_attr() {
    DAT_EP_ATTR attr{};
    attr.max_request_dtos = 16;
    attr.max_request_iov = 1;
    return attr;
}

void connect(const Side& a, const Side& b, const Listener& listener) {
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

// A message that nobody has a receive for, and a graceful end: the sender's request is not
// ready for, the connection ends for the receiver as broken.
void no_receive(const Side& from, const Side& to, Memory& memory) {
    EXPECT_OK(from.send(memory.at(0, 8), 1));
    EXPECT_OK(from.send(memory.at(0, 8), 2));
    EXPECT_OK(dat_ep_disconnect(from.ep, DAT_CLOSE_GRACEFUL_FLAG));
    cr_assert_eq(from.state(), DAT_EP_STATE_DISCONNECT_PENDING);
    expect_dto(from.request, 1, DAT_DTO_ERR_RECEIVER_NOT_READY);
    expect_dto(from.request, 2, DAT_DTO_ERR_FLUSHED);
    expect(from.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    cr_assert_eq(from.state(), DAT_EP_STATE_DISCONNECTED);
    expect(to.conn, DAT_CONNECTION_EVENT_BROKEN);
    cr_assert(is_empty(from.conn));
    cr_assert(is_empty(to.conn));
}

} // namespace

Test(shim_transfer, rdma_into_a_program_that_computes__goes_on) {
    Adapter here;
    Adapter there;
    Memory mine(here);
    Memory theirs(there);
    Side a(here);
    Side b(there);
    Listener listener(there);
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    // Nothing is asked of `there` from here on.
    mine.bytes.fill('x');
    DAT_LMR_TRIPLET piece = mine.at(0, 4096);
    const DAT_RMR_TRIPLET target = theirs.remote(0, 4096);
    EXPECT_OK(dat_ep_post_rdma_write(a.ep, 1, &piece, cookie_of(1), &target,
                                     DAT_COMPLETION_DEFAULT_FLAG));
    DAT_LMR_TRIPLET sink = mine.at(4096, 4096);
    EXPECT_OK(
        dat_ep_post_rdma_read(a.ep, 1, &sink, cookie_of(2), &target, DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(a.request, 1);
    expect_dto(a.request, 2);
    cr_assert(std::ranges::count(theirs.bytes, 'x') == 4096);
    cr_assert(std::ranges::count(mine.bytes, 'x') == 8192); // read, all of it
}

// DTO-14, EP-57, U-9, U-4
Test(shim_transfer, a_message_without_a_receive__breaks_the_connection) {
    setenv("FI_DAT_RNR_TIMEOUT", "1", 1);
    Pair pair;
    no_receive(pair.a, pair.b, pair.memory);
}

// U-67: the end of a peer is told at once, whatever of it waits for a receive: nothing of that has
// completed there. With the grace that libfabric's programs get it takes 10 s.
Test(shim_transfer, messages_without_a_receive__do_not_hold_up_the_peers_end) {
    setenv("FI_DAT_RNR_TIMEOUT", "600", 1);
    Pair pair;
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_OK(pair.a.send(pair.memory.at(0, 8), i));
    }
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_OK(dat_ep_disconnect(pair.a.ep, DAT_CLOSE_ABRUPT_FLAG));
    for (std::uint64_t i = 0; i < 3; ++i) {
        expect_dto(pair.a.request, i, DAT_DTO_ERR_FLUSHED);
    }
    expect(pair.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect(pair.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    cr_assert_lt(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    cr_assert_eq(pair.b.state(), DAT_EP_STATE_DISCONNECTED);
    cr_assert(is_empty(pair.b.conn));
}

// SRQ-13
Test(shim_transfer, a_message_without_a_shared_receive__breaks_the_connection) {
    setenv("FI_DAT_RNR_TIMEOUT", "1", 1);
    Adapter adapter;
    Memory memory(adapter);
    const SharedReceives shared(adapter);
    const DAT_EP_ATTR attr = small_attr();
    const Side a(adapter);
    const Side b(adapter, &attr, shared.srq);
    connect(a, b, Listener(adapter));
    no_receive(a, b, memory);
}

// DISC-9, DTO-21
Test(shim_transfer, suppressed_requests_that_fail__are_reported) {
    Pair pair;
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_OK(pair.a.send(pair.memory.at(0, 8), i, DAT_COMPLETION_SUPPRESS_FLAG));
    }
    EXPECT_OK(dat_ep_disconnect(pair.a.ep, DAT_CLOSE_ABRUPT_FLAG));
    expect(pair.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    for (std::uint64_t i = 0; i < 3; ++i) {
        expect_dto(pair.a.request, i, DAT_DTO_ERR_FLUSHED);
    }
    EXPECT_OK(pair.a.send(pair.memory.at(0, 8), 3, DAT_COMPLETION_SUPPRESS_FLAG)); // FLS-1
    expect_dto(pair.a.request, 3, DAT_DTO_ERR_FLUSHED);
    cr_assert(is_empty(pair.a.request));
}

// DTO-20
Test(shim_transfer, completion_flags__have_their_values) {
    cr_assert_eq(DAT_COMPLETION_DEFAULT_FLAG, 0);
    cr_assert_eq(DAT_COMPLETION_SUPPRESS_FLAG, 1);
    cr_assert_eq(DAT_COMPLETION_SOLICITED_WAIT_FLAG, 2);
    cr_assert_eq(DAT_COMPLETION_UNSIGNALLED_FLAG, 4);
    cr_assert_eq(DAT_COMPLETION_BARRIER_FENCE_FLAG, 8);
    cr_assert_eq(DAT_COMPLETION_EVD_THRESHOLD_FLAG, 0x10);
}

// SRQ-3
Test(shim_transfer, a_shared_receive__is_checked_against_the_queue) {
    Adapter adapter;
    Memory memory(adapter);
    Memory readable(adapter, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    const SharedReceives shared(adapter);
    EXPECT_TYPE(shared.post(readable.at(0, 8), 1), DAT_PRIVILEGES_VIOLATION);
    DAT_LMR_TRIPLET unknown = memory.at(0, 8);
    unknown.lmr_context ^= 0x5a5a5a5a;
    EXPECT_TYPE(shared.post(unknown, 1), DAT_PRIVILEGES_VIOLATION);
    EXPECT_TYPE(shared.post(memory.at(memory.bytes.size() - 4, 8), 1), DAT_INVALID_PARAMETER);

    const DAT_PZ_HANDLE zone = adapter.pz;
    EXPECT_OK(dat_pz_create(adapter.ia, &adapter.pz));
    Memory elsewhere(adapter);
    adapter.pz = zone;
    EXPECT_TYPE(shared.post(elsewhere.at(0, 8), 1), DAT_PROTECTION_VIOLATION);
    DAT_SRQ_PARAM param;
    EXPECT_OK(dat_srq_query(shared.srq, DAT_SRQ_FIELD_ALL, &param));
    cr_assert_eq(param.outstanding_dto_count, 0);
    EXPECT_OK(shared.post(memory.at(0, 8), 1));
}

// SRQ-5, SRQ-4
Test(shim_transfer, shared_receives__keep_the_order_of_each_connection) {
    constexpr std::uint64_t kMessages = 6;
    Adapter adapter;
    Memory memory(adapter);
    const SharedReceives shared(adapter);
    const DAT_EP_ATTR attr = small_attr();
    const Listener listener(adapter);
    std::unique_ptr<Side> from[2];
    std::unique_ptr<Side> to[2];
    for (int i = 0; i < 2; ++i) {
        from[i] = std::make_unique<Side>(adapter);
        to[i] = std::make_unique<Side>(adapter, &attr, shared.srq);
        connect(*from[i], *to[i], listener);
    }
    for (std::uint64_t i = 0; i < 2 * kMessages; ++i) { // the cookie says where it is
        EXPECT_OK(shared.post(memory.at(1024 + i * 8, 8), 1024 + i * 8));
    }
    for (std::uint64_t i = 0; i < kMessages; ++i) {
        for (std::uint64_t which = 0; which < 2; ++which) {
            char& letter = memory.bytes[(i * 2 + which) * 8];
            letter = static_cast<char>((which ? 'A' : 'a') + static_cast<int>(i));
            EXPECT_OK(from[which]->send(memory.at((i * 2 + which) * 8, 1), i));
        }
    }
    for (std::uint64_t which = 0; which < 2; ++which) {
        for (std::uint64_t i = 0; i < kMessages; ++i) {
            const DAT_EVENT event = expect(to[which]->recv, DAT_DTO_COMPLETION_EVENT);
            const auto& dto = event.event_data.dto_completion_event_data;
            cr_assert_eq(dto.status, DAT_DTO_SUCCESS);
            cr_assert_eq(dto.ep_handle, to[which]->ep);
            cr_assert_eq(memory.bytes[dto.user_cookie.as_64],
                         static_cast<char>((which ? 'A' : 'a') + static_cast<int>(i)));
        }
    }
}
