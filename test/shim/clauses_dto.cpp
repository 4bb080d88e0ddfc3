// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Data transfer, disconnecting, shared receives, extensions.
#include "pair.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

using namespace dat::test;

namespace {

// Bytes of memory that this process has touched.
std::size_t resident() {
    std::size_t size = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace

// DTO-1, DTO-7, DTO-8, DTO-11, DTO-12, EVD-40
Test(shim_dto, messages__gather_and_scatter_in_order) {
    Pair pair;
    std::memcpy(pair.memory.bytes.data(), "abcdefgh", 8);
    DAT_LMR_TRIPLET into[] = {pair.memory.at(100, 3), pair.memory.at(0, 0),
                              pair.memory.at(200, 60)};
    EXPECT_OK(dat_ep_post_recv(pair.b.ep, 3, into, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_OK(dat_ep_post_recv(pair.b.ep, 0, nullptr, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
    DAT_LMR_TRIPLET from[] = {pair.memory.at(4, 4), pair.memory.at(0, 4)};
    EXPECT_OK(dat_ep_post_send(pair.a.ep, 2, from, cookie_of(~0ULL), DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_OK(dat_ep_post_send(pair.a.ep, 0, nullptr, cookie_of(0), DAT_COMPLETION_DEFAULT_FLAG));
    auto done = expect_dto(pair.b.recv, 1);
    cr_assert_eq(done.transfered_length, 8u);
    EXPECT_OPERATION(done, DAT_DTO_RECEIVE);
    cr_assert_eq(done.ep_handle, pair.b.ep);
    cr_assert_eq(std::string(pair.memory.bytes.data() + 100, 3), "efg");
    cr_assert_eq(std::string(pair.memory.bytes.data() + 200, 5), "habcd");
    cr_assert_eq(expect_dto(pair.b.recv, 2).transfered_length, 0u);
    done = expect_dto(pair.a.request, ~0ULL);
    cr_assert_eq(done.transfered_length, 8u);
    EXPECT_OPERATION(done, DAT_DTO_SEND);
    expect_dto(pair.a.request, 0);
}

// DTO-2, DTO-3, DTO-26, DTO-25, DTO-21
Test(shim_dto, a_bad_post__changes_nothing) {
    Pair pair;
    DAT_LMR_TRIPLET piece = pair.memory.at(0, 8);
    const auto send = [&](DAT_COUNT count, unsigned flags) {
        return dat_ep_post_send(pair.a.ep, count, &piece, cookie_of(1),
                                static_cast<DAT_COMPLETION_FLAGS>(flags));
    };
    EXPECT_TYPE(send(-1, 0), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(send(5, 0), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(send(1, DAT_COMPLETION_UNSIGNALLED_FLAG), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(send(1, DAT_COMPLETION_EVD_THRESHOLD_FLAG), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_ep_post_recv(pair.a.ep, 1, &piece, cookie_of(1), DAT_COMPLETION_SUPPRESS_FLAG),
                DAT_INVALID_PARAMETER);
    piece = pair.memory.at(0, pair.memory.bytes.size() + 1);
    EXPECT_TYPE(send(1, 0), DAT_INVALID_PARAMETER);
    piece = local_range(pair.memory.at(0, 8).virtual_address, 8, 0x7654321);
    EXPECT_TYPE(send(1, 0), DAT_PRIVILEGES_VIOLATION);
    Memory readable(pair.adapter, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    EXPECT_TYPE(pair.a.receive(readable.at(0, 8), 1), DAT_PRIVILEGES_VIOLATION);
    DAT_PZ_HANDLE first = pair.adapter.pz;
    EXPECT_OK(dat_pz_create(pair.adapter.ia, &pair.adapter.pz));
    Memory elsewhere(pair.adapter);
    pair.adapter.pz = first;
    EXPECT_TYPE(pair.a.send(elsewhere.at(0, 8), 1), DAT_PROTECTION_VIOLATION);
    cr_assert_eq(pair.a.state(), DAT_EP_STATE_CONNECTED);
    cr_assert(is_empty(pair.a.request));
}

// DTO-5, DTO-21
Test(shim_dto, too_many__are_refused_and_suppressed_ones_are_forgotten) {
    Adapter adapter;
    Memory memory(adapter);
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = 64;
    attr.max_request_dtos = 4;
    attr.max_recv_iov = attr.max_request_iov = 1;
    Side a(adapter, &attr);
    Side b(adapter, &attr);
    Listener listener(adapter);
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    for (std::uint64_t i = 0; i < 32; ++i) {
        EXPECT_OK(b.receive(memory.at(0, 8), i));
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_OK(a.send(memory.at(0, 8), i));
    }
    EXPECT_TYPE(a.send(memory.at(0, 8), 4), DAT_INSUFFICIENT_RESOURCES);
    for (std::uint64_t i = 0; i < 4; ++i) {
        expect_dto(a.request, i);
        expect_dto(b.recv, i);
    }
    for (std::uint64_t i = 4; i < 28; ++i) {
        DAT_RETURN code;
        do { // the peer has to confirm some of them
            is_empty(a.request);
            code = a.send(memory.at(0, 8), i, DAT_COMPLETION_SUPPRESS_FLAG);
        } while (DAT_GET_TYPE(code) == DAT_INSUFFICIENT_RESOURCES);
        EXPECT_OK(code);
        expect_dto(b.recv, i);
    }
    cr_assert(is_empty(a.request));
}

// EPA-8, DTO-21: the attribute suppresses nothing by itself, each post says it for itself.
Test(shim_dto, suppress_as_attribute__leaves_it_to_each_post) {
    Adapter adapter;
    Memory memory(adapter);
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = attr.max_request_dtos = 4;
    attr.max_recv_iov = attr.max_request_iov = 1;
    attr.request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
    Side a(adapter, &attr);
    Side b(adapter, &attr);
    DAT_EP_PARAM param;
    EXPECT_OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
    cr_assert_eq(param.ep_attr.request_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG);
    EXPECT_OK(dat_ep_modify(b.ep, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &param));
    Listener listener(adapter);
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_OK(b.receive(memory.at(0, 8), 1));
    EXPECT_OK(b.receive(memory.at(0, 8), 2));
    EXPECT_OK(a.send(memory.at(0, 8), 1, DAT_COMPLETION_SUPPRESS_FLAG));
    EXPECT_OK(a.send(memory.at(0, 8), 2));
    expect_dto(b.recv, 1);
    expect_dto(b.recv, 2);
    expect_dto(a.request, 2);
    cr_assert(is_empty(a.request));
}

// DTO-5, EPA-4: as many as are asked for may be outstanding, and not one more; also where the slots
// were used before, and the endpoint got more of them while some were outstanding.
Test(shim_dto, as_many_as_asked_for__may_be_outstanding) {
    Adapter adapter;
    DAT_IA_ATTR most{};
    DAT_EVD_HANDLE async;
    EXPECT_OK(dat_ia_query(adapter.ia, &async, DAT_IA_FIELD_ALL, &most, 0, nullptr));
    const auto limit = static_cast<std::uint64_t>(most.max_dto_per_ep);
    cr_assert(place().device || limit >= 20000); // programs ask for so many
    const std::uint64_t asked = std::min<std::uint64_t>(limit, 20000);
    Memory memory(adapter);
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = attr.max_request_dtos = 100;
    attr.max_recv_iov = attr.max_request_iov = 1;
    Side a(adapter, &attr);
    Side b(adapter, &attr);
    const auto receive = [&](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t i = from; i < to; ++i) {
            EXPECT_OK(b.receive(memory.at(0, 8), i));
        }
    };
    receive(0, 70);
    DAT_EP_PARAM param{};
    param.ep_attr.max_recv_dtos = param.ep_attr.max_request_dtos = static_cast<DAT_COUNT>(asked);
    EXPECT_OK(dat_ep_modify(b.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
    EXPECT_OK(dat_ep_modify(a.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
    receive(70, asked);
    EXPECT_TYPE(b.receive(memory.at(0, 8), asked), DAT_INSUFFICIENT_RESOURCES);
    Listener listener(adapter);
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    for (std::uint64_t i = 0; i < asked; ++i) {
        EXPECT_OK(a.send(memory.at(0, 8), i));
    }
    EXPECT_TYPE(a.send(memory.at(0, 8), asked), DAT_INSUFFICIENT_RESOURCES);
    for (std::uint64_t i = 0; i < asked; ++i) {
        expect_dto(b.recv, i);
        expect_dto(a.request, i);
    }
    for (std::uint64_t i = 0; i < asked; ++i) { // around the rings
        EXPECT_OK(b.receive(memory.at(0, 8), i));
        EXPECT_OK(a.send(memory.at(0, 8), i));
        expect_dto(b.recv, i);
        expect_dto(a.request, i);
    }
    cr_assert(is_empty(a.request));
    cr_assert(is_empty(b.recv));
}

// Room for many operations takes memory as they are posted, not when the endpoint is made.
Test(shim_dto, room_for_many__takes_memory_as_it_is_used) {
    constexpr std::size_t kEndpoints = 100;
    // Of one endpoint. Both rings touched would be 3 MiB; a sanitizer's own books are a part of it.
    constexpr std::size_t kMost = 1 << 20;
    Adapter adapter;
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = attr.max_request_dtos = 20000;
    attr.max_recv_iov = attr.max_request_iov = 1;
    const Side first(adapter, &attr); // what all of them share
    const std::size_t before = resident();
    std::vector<std::unique_ptr<Side>> sides;
    for (std::size_t i = 0; i < kEndpoints; ++i) {
        sides.push_back(std::make_unique<Side>(adapter, &attr));
    }
    const std::size_t after = resident();
    cr_assert_lt(after, before + kEndpoints * kMost, "%zu KiB an endpoint",
                 (after - before) / kEndpoints / 1024);
}

// DTO-4, DTO-15, DTO-16
Test(shim_dto, rdma__reads_and_writes) {
    Pair pair;
    std::memcpy(pair.memory.bytes.data(), "remote memory", 14);
    DAT_LMR_TRIPLET local = pair.memory.at(0, 14);
    DAT_RMR_TRIPLET remote = pair.memory.remote(256, 14);
    EXPECT_OK(dat_ep_post_rdma_write(pair.a.ep, 1, &local, cookie_of(1), &remote,
                                     DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_OPERATION(expect_dto(pair.a.request, 1), DAT_DTO_RDMA_WRITE);
    cr_assert_str_eq(pair.memory.bytes.data() + 256, "remote memory");
    // The length of the remote range is not looked at: programs leave another there.
    remote.segment_length = 1;
    DAT_LMR_TRIPLET sinks[] = {pair.memory.at(512, 7), pair.memory.at(600, 7)};
    EXPECT_OK(dat_ep_post_rdma_read(pair.a.ep, 2, sinks, cookie_of(2), &remote,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    const auto read = expect_dto(pair.a.request, 2);
    EXPECT_OPERATION(read, DAT_DTO_RDMA_READ);
    cr_assert_eq(read.transfered_length, 14u);
    cr_assert_str_eq(pair.memory.bytes.data() + 600, "memory");
    cr_assert(is_empty(pair.b.recv));
    remote.segment_length = 1000;
    EXPECT_OK(dat_ep_post_rdma_read(pair.a.ep, 1, sinks, cookie_of(3), &remote,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    cr_assert_eq(expect_dto(pair.a.request, 3).transfered_length, 7u);
    remote = pair.memory.remote(700, 1);
    for (const auto flags : {DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG}) {
        std::memset(pair.memory.bytes.data() + 700, 0, 14);
        EXPECT_OK(dat_ep_post_rdma_write(pair.a.ep, 1, &local, cookie_of(3), &remote, flags));
        expect_dto(pair.a.request, 3);
        cr_assert_str_eq(pair.memory.bytes.data() + 700, "remote memory");
    }
    remote = remote_range(0, 14, 1);
    EXPECT_OK(dat_ep_post_rdma_write(pair.a.ep, 1, &local, cookie_of(4), &remote,
                                     DAT_COMPLETION_SUPPRESS_FLAG));
    expect_dto(pair.a.request, 4, DAT_DTO_ERR_REMOTE_ACCESS);
    expect(pair.a.conn, DAT_CONNECTION_EVENT_BROKEN);
}

// DTO-9, U-8, EP-56, STS-0, STS-1
Test(shim_dto, a_message_too_long__breaks_the_connection) {
    Pair pair;
    EXPECT_OK(pair.b.receive(pair.memory.at(0, 4), 1));
    EXPECT_OK(pair.b.receive(pair.memory.at(0, 4), 2));
    EXPECT_OK(pair.a.send(pair.memory.at(64, 8), 3));
    expect_dto(pair.b.recv, 1, DAT_DTO_ERR_LOCAL_LENGTH);
    expect_dto(pair.b.recv, 2, DAT_DTO_ERR_FLUSHED);
    expect(pair.b.conn, DAT_CONNECTION_EVENT_BROKEN);
    expect_dto(pair.a.request, 3, DAT_DTO_ERR_REMOTE_RESPONDER);
    expect(pair.a.conn, DAT_CONNECTION_EVENT_BROKEN);
}

// DISC-4, DISC-12, DISC-16, EP-54, EP-58
Test(shim_end, graceful__carries_out_what_was_posted) {
    Pair pair;
    for (std::uint64_t i = 0; i < 8; ++i) {
        EXPECT_OK(pair.a.send(pair.memory.at(0, 8), i));
    }
    EXPECT_OK(pair.a.receive(pair.memory.at(0, 8), 99));
    EXPECT_OK(dat_ep_disconnect(pair.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
    for (std::uint64_t i = 0; i < 8; ++i) {
        EXPECT_OK(pair.b.receive(pair.memory.at(64, 8), i));
    }
    for (std::uint64_t i = 0; i < 8; ++i) {
        expect_dto(pair.b.recv, i);
        expect_dto(pair.a.request, i);
    }
    expect(pair.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect_dto(pair.a.recv, 99, DAT_DTO_ERR_FLUSHED);
    expect(pair.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

// DISC-3, DISC-8, DISC-11, FLS-1, FLS-2, RST-3, EP-59
Test(shim_end, abrupt__flushes_in_order_and_posts_behind_it_as_well) {
    Pair pair;
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_OK(pair.a.receive(pair.memory.at(0, 8), i));
    }
    EXPECT_OK(dat_ep_disconnect(pair.a.ep, DAT_CLOSE_ABRUPT_FLAG));
    expect(pair.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT_OK(pair.a.receive(pair.memory.at(0, 8), 3));
    EXPECT_OK(pair.a.send(pair.memory.at(0, 8), 4));
    for (std::uint64_t i = 0; i < 4; ++i) {
        expect_dto(pair.a.recv, i, DAT_DTO_ERR_FLUSHED);
    }
    expect_dto(pair.a.request, 4, DAT_DTO_ERR_FLUSHED);
}

// DISC-3: what is never reported, since it is suppressed, or unsignalled and not looked at, is sent
// before the end, abrupt or not.
static void suppressed_requests_arrive(const char* shared_memory, DAT_CLOSE_FLAGS how) {
    setenv("FI_DAT_SHM", shared_memory, 1);
    Pair pair;
    constexpr std::size_t kCount = 8;
    constexpr std::size_t kIn = 4096;
    for (std::size_t i = 0; i < kCount; ++i) {
        EXPECT_OK(pair.b.receive(pair.memory.at(kIn + i * 8, 8), i));
        std::memset(pair.memory.bytes.data() + i * 8, static_cast<int>('a' + i), 8);
    }
    DAT_LMR_TRIPLET from = pair.memory.at(0, 16);
    const DAT_RMR_TRIPLET to = pair.memory.remote(2 * kIn - 16, 16);
    EXPECT_OK(dat_ep_post_rdma_write(pair.a.ep, 1, &from, cookie_of(100), &to,
                                     DAT_COMPLETION_SUPPRESS_FLAG));
    for (std::size_t i = 0; i < kCount; ++i) {
        EXPECT_OK(pair.a.send(pair.memory.at(i * 8, 8), i, DAT_COMPLETION_SUPPRESS_FLAG));
    }
    EXPECT_OK(dat_ep_disconnect(pair.a.ep, how));
    for (std::size_t i = 0; i < kCount; ++i) {
        expect_dto(pair.b.recv, i);
        cr_assert_eq(std::memcmp(pair.memory.bytes.data() + kIn + i * 8,
                                 pair.memory.bytes.data() + i * 8, 8),
                     0, "message %zu", i);
    }
    cr_assert_eq(std::memcmp(pair.memory.bytes.data() + 2 * kIn - 16, pair.memory.bytes.data(), 16),
                 0);
    expect(pair.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    expect(pair.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}
Test(shim_end, suppressed_requests_over_tcp__arrive_before_an_abrupt_end) {
    suppressed_requests_arrive("0", DAT_CLOSE_ABRUPT_FLAG);
}
Test(shim_end, suppressed_requests_over_tcp__arrive_before_a_graceful_end) {
    suppressed_requests_arrive("0", DAT_CLOSE_GRACEFUL_FLAG);
}
Test(shim_end, suppressed_requests_in_memory__arrive_before_an_abrupt_end) {
    suppressed_requests_arrive("1", DAT_CLOSE_ABRUPT_FLAG);
}
Test(shim_end, suppressed_requests_in_memory__arrive_before_a_graceful_end) {
    suppressed_requests_arrive("1", DAT_CLOSE_GRACEFUL_FLAG);
}

// FREE-2, FREE-3
Test(shim_end, a_freed_endpoint__leaves_nothing_behind) {
    Pair pair;
    EXPECT_OK(pair.a.receive(pair.memory.at(0, 8), 1));
    EXPECT_OK(dat_ep_free(pair.a.ep));
    cr_assert(is_empty(pair.a.recv));
    cr_assert(is_empty(pair.a.conn));
    expect(pair.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

// EPA-10
Test(shim_dto, idle__tells_of_each_direction) {
    Pair pair;
    DAT_BOOLEAN receives = DAT_FALSE;
    DAT_BOOLEAN requests = DAT_FALSE;
    EXPECT_OK(dat_ep_get_status(pair.a.ep, nullptr, &receives, &requests));
    cr_assert(receives && requests);
    EXPECT_OK(pair.a.receive(pair.memory.at(0, 8), 1));
    EXPECT_OK(dat_ep_get_status(pair.a.ep, nullptr, &receives, &requests));
    cr_assert(!receives && requests);
}

// EPA-1, EPA-3, EPA-4, EPA-6, EPA-8, EPA-2
Test(shim_dto, attributes__are_checked_and_granted) {
    Adapter adapter;
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = 3;
    attr.max_request_dtos = 5;
    attr.max_recv_iov = 1;
    attr.max_request_iov = 2;
    Side side(adapter, &attr);
    DAT_EP_PARAM param;
    EXPECT_OK(dat_ep_query(side.ep, DAT_EP_FIELD_ALL, &param));
    cr_assert_eq(param.ep_attr.max_recv_dtos, 3);
    cr_assert_geq(param.ep_attr.max_request_dtos, 5);
    cr_assert_eq(param.pz_handle, adapter.pz);
    DAT_EP_HANDLE ep;
    const auto create = [&] {
        return dat_ep_create(adapter.ia, adapter.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                             DAT_HANDLE_NULL, &attr, &ep);
    };
    EXPECT_OK(create());
    attr.max_recv_iov = 100;
    EXPECT_TYPE(create(), DAT_INVALID_PARAMETER);
    attr.max_recv_iov = 1;
    attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
    EXPECT_TYPE(create(), DAT_INVALID_PARAMETER);
    attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
    using Flags = std::initializer_list<unsigned>;
    for (const unsigned beside :
         Flags{0, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG}) {
        attr.request_completion_flags =
            static_cast<DAT_COMPLETION_FLAGS>(DAT_COMPLETION_SUPPRESS_FLAG | beside);
        EXPECT_OK(create());
    }
    for (const unsigned flags :
         Flags{DAT_COMPLETION_BARRIER_FENCE_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
               DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG}) {
        attr.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(flags);
        EXPECT_TYPE(create(), DAT_INVALID_PARAMETER);
    }
    attr.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
    DAT_IA_ATTR most{}; // EPA-4, RDR-2
    DAT_EVD_HANDLE async;
    EXPECT_OK(dat_ia_query(adapter.ia, &async, DAT_IA_FIELD_ALL, &most, 0, nullptr));
    attr.max_recv_dtos = attr.max_request_dtos = most.max_dto_per_ep;
    EXPECT_OK(create());
    ++attr.max_recv_dtos;
    EXPECT_TYPE(create(), DAT_INVALID_PARAMETER);
    --attr.max_recv_dtos;
    ++attr.max_request_dtos;
    EXPECT_TYPE(create(), DAT_INVALID_PARAMETER);
    attr.max_recv_dtos = attr.max_request_dtos = 4;
    attr.max_rdma_read_in = most.max_rdma_read_per_ep_in;
    attr.max_rdma_read_out = most.max_rdma_read_per_ep_out;
    EXPECT_OK(create());
    ++attr.max_rdma_read_in;
    EXPECT_TYPE(create(), DAT_INVALID_PARAMETER);
    --attr.max_rdma_read_in;
    ++attr.max_rdma_read_out;
    EXPECT_TYPE(create(), DAT_INVALID_PARAMETER);
    attr.max_rdma_read_out = 0;
    attr.service_type = service_type(1);
    EXPECT_TYPE(create(), DAT_MODEL_NOT_SUPPORTED);
    param.ep_attr.max_recv_dtos = 1 << 20;
    EXPECT_TYPE(dat_ep_modify(side.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param),
                DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_ep_modify(side.ep, DAT_EP_FIELD_EP_STATE, &param), DAT_INVALID_PARAMETER);
}

// SRQ-1, SRQ-2, SRQ-4, SRQ-6, SRQ-7, SRQ-8, SRQ-10, U-64, U-33, EP-26, U-20, FLS-3
Test(shim_srq, receives__are_shared_and_each_endpoint_tells_of_its_own) {
    Adapter adapter;
    Memory memory(adapter);
    DAT_SRQ_ATTR srq_attr{4, 1, 0};
    DAT_SRQ_HANDLE srq;
    EXPECT_OK(dat_srq_create(adapter.ia, adapter.pz, &srq_attr, &srq));
    DAT_EP_ATTR attr{};
    attr.max_request_dtos = 4;
    attr.max_request_iov = 1;
    Side b(adapter, &attr, srq);
    Side d(adapter, &attr, srq);
    Side a(adapter);
    Side c(adapter);
    Listener listener(adapter);
    EXPECT_TYPE(b.receive(memory.at(0, 8), 1), DAT_INVALID_STATE);
    EXPECT_TYPE(dat_srq_free(srq), DAT_INVALID_STATE);
    DAT_LMR_TRIPLET piece = memory.at(0, 64);
    for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_OK(dat_srq_post_recv(srq, 1, &piece, cookie_of(i)));
    }
    EXPECT_TYPE(dat_srq_post_recv(srq, 1, &piece, cookie_of(4)), DAT_INSUFFICIENT_RESOURCES);
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    EXPECT_OK(c.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), d.ep, 0, nullptr));
    for (const Side* side : {&a, &b, &c, &d}) {
        expect(side->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    }
    EXPECT_OK(c.send(memory.at(64, 8), 11));
    DAT_EVENT event = expect(d.recv, DAT_DTO_COMPLETION_EVENT);
    cr_assert_eq(event.event_data.dto_completion_event_data.ep_handle, d.ep);
    EXPECT_OK(a.send(memory.at(64, 8), 12));
    expect_dto(a.request, 12); // over iWARP it is on its way: U-61
    DAT_SRQ_PARAM param{};
    const auto late = std::chrono::steady_clock::now() + std::chrono::microseconds(kSoon);
    do {
        EXPECT_OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
    } while (param.available_dto_count != 2 && std::chrono::steady_clock::now() < late);
    cr_assert_eq(param.available_dto_count, 2);
    cr_assert_eq(param.outstanding_dto_count, 3);
    event = expect(b.recv, DAT_DTO_COMPLETION_EVENT);
    cr_assert_eq(event.event_data.dto_completion_event_data.ep_handle, b.ep);
    EXPECT_OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
    cr_assert_eq(param.outstanding_dto_count, 2);

    EXPECT_OK(dat_srq_set_lw(srq, 3)); // fewer are there already
    event = expect(adapter.async, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
    cr_assert_eq(event.event_data.asynch_error_event_data.dat_handle, srq);
    cr_assert_eq(event.event_data.asynch_error_event_data.reason, DAT_SRQ_LOW_WATERMARK_EVENT);

    EXPECT_OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
    expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    event = expect(adapter.async, DAT_ASYNC_ERROR_EP_BROKEN);
    cr_assert_eq(event.event_data.asynch_error_event_data.dat_handle, b.ep);
    EXPECT_OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
    cr_assert_eq(param.available_dto_count, 2); // the queue keeps what nobody took
    EXPECT_OK(dat_ep_free(b.ep));
    EXPECT_OK(dat_ep_free(d.ep));
    EXPECT_OK(dat_srq_free(srq));
}

// SRQ-2, IA-12: of another zone where that is offered, and refused before anything is made of it
// where it is not.
Test(shim_srq, an_endpoint_of_another_zone__is_made_as_the_adapter_says) {
    Adapter adapter;
    DAT_PROVIDER_ATTR provider{};
    DAT_EVD_HANDLE async;
    EXPECT_OK(dat_ia_query(adapter.ia, &async, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &provider));
    DAT_SRQ_ATTR srq_attr{4, 1, 0};
    DAT_SRQ_HANDLE srq;
    EXPECT_OK(dat_srq_create(adapter.ia, adapter.pz, &srq_attr, &srq));
    DAT_PZ_HANDLE other;
    EXPECT_OK(dat_pz_create(adapter.ia, &other));
    DAT_EP_ATTR attr{};
    attr.max_request_dtos = 4;
    attr.max_request_iov = 1;
    const auto create = [&](DAT_PZ_HANDLE pz, DAT_EP_HANDLE& ep) {
        return dat_ep_create_with_srq(adapter.ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                                      DAT_HANDLE_NULL, srq, &attr, &ep);
    };
    DAT_EP_HANDLE same;
    DAT_EP_HANDLE of_other = DAT_HANDLE_NULL;
    EXPECT_OK(create(adapter.pz, same));
    const DAT_RETURN expected =
        provider.srq_ep_pz_difference_supported ? DAT_SUCCESS : DAT_INVALID_PARAMETER;
    EXPECT_TYPE(create(other, of_other), expected);
    DAT_EP_PARAM param{};
    param.pz_handle = other;
    EXPECT_TYPE(dat_ep_modify(same, DAT_EP_FIELD_PZ_HANDLE, &param), expected);
    EXPECT_OK(dat_ep_free(same));
    if (of_other) {
        EXPECT_OK(dat_ep_free(of_other));
    }
    EXPECT_OK(dat_pz_free(other)); // nothing of what was refused has it
    EXPECT_OK(dat_srq_free(srq));
}

// SRQ-11, SRQ-12, EP-63, U-6
Test(shim_dto, watermarks__are_reported_once) {
    Pair pair;
    EXPECT_OK(dat_ep_set_watermark(pair.a.ep, 1, DAT_WATERMARK_INFINITE));
    EXPECT_OK(pair.a.receive(pair.memory.at(0, 8), 1));
    EXPECT_OK(pair.a.receive(pair.memory.at(0, 8), 2));
    const DAT_EVENT event = expect(pair.adapter.async, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
    cr_assert_eq(event.event_data.asynch_error_event_data.dat_handle, pair.a.ep);
    cr_assert_eq(event.event_data.asynch_error_event_data.reason,
                 DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
    DAT_COUNT allocated;
    DAT_COUNT span;
    EXPECT_OK(dat_ep_recv_query(pair.a.ep, &allocated, &span));
    cr_assert_eq(allocated, 2);
    cr_assert_geq(span, allocated);
    EXPECT_OK(dat_ep_set_watermark(pair.a.ep, DAT_WATERMARK_INFINITE, 1));
    expect(pair.a.conn, DAT_CONNECTION_EVENT_BROKEN);
}
