// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What uDAPL 2.0 has and 1.2 has not.
#include "pair.h"

#include <dat2/dat_ib_extensions.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <unistd.h>
#include <vector>

using namespace dat::test;

// Exported, and in no header.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE, DAT_IA_HANDLE*);

// The number of an IA and the handle that a provider has.
Test(shim_object, dats_get_ia_handle__maps_both_ways) {
    Adapter adapter;
    DAT_IA_HANDLE handle;
    DAT_IA_HANDLE number;
    EXPECT_OK(dats_get_ia_handle(adapter.ia, &handle));
    cr_assert_neq(handle, adapter.ia);
    EXPECT_OK(dats_get_ia_handle(handle, &number));
    cr_assert_eq(number, adapter.ia);
    const DAT_IA_HANDLE stale = adapter.ia;
    EXPECT_OK(dat_ia_close(adapter.ia, DAT_CLOSE_ABRUPT_FLAG));
    cr_assert_eq(dats_get_ia_handle(stale, &handle), 0x8005000bU);
}

// V2-1, V2-3
Test(shim_dto, a_message__ends_a_window) {
    Pair pair;
    DAT_RMR_HANDLE rmr;
    EXPECT_OK(dat_rmr_create(pair.adapter.pz, &rmr));
    DAT_LMR_TRIPLET piece = pair.memory.at(0, 64);
    DAT_RMR_CONTEXT context;
    EXPECT_OK(dat_rmr_bind(rmr, pair.memory.lmr, &piece, DAT_MEM_PRIV_REMOTE_READ_FLAG,
                           DAT_VA_TYPE_VA, pair.b.ep, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG,
                           &context));
    expect(pair.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
    EXPECT_OK(pair.b.receive(pair.memory.at(128, 64), 2));
    DAT_LMR_TRIPLET message = pair.memory.at(256, 8);
    EXPECT_OK(dat_ep_post_send_with_invalidate(pair.a.ep, 1, &message, cookie_of(3),
                                               DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, context));
    const auto done = expect_dto(pair.b.recv, 2);
    cr_assert_eq(done.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
    cr_assert_eq(done.rmr_context, context);
}

// V2-1, V2-4: extensions
Test(shim_extension, immediate_data_and_atomics__complete_as_extended_events) {
    Pair pair;
    const auto at = [&](std::size_t offset) {
        return reinterpret_cast<std::uint64_t*>(pair.memory.bytes.data() + offset);
    };
    *at(0) = 40;
    DAT_LMR_TRIPLET old = pair.memory.at(8, 8);
    DAT_RMR_TRIPLET target = pair.memory.remote(0, 8);
    EXPECT_OK(dat_ib_post_fetch_and_add(pair.a.ep, 2, &old, cookie_of(1), &target,
                                        DAT_COMPLETION_DEFAULT_FLAG));
    DAT_EVENT event = expect(pair.a.request, static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
    auto* extension = reinterpret_cast<DAT_IB_EXTENSION_EVENT_DATA*>(event.event_extension_data);
    cr_assert_eq(extension->type, DAT_IB_FETCH_AND_ADD);
    cr_assert_eq(*at(8), 40u);
    cr_assert_eq(*at(0), 42u);
    EXPECT_OK(dat_ib_post_cmp_and_swap(pair.a.ep, 42, 7, &old, cookie_of(2), &target,
                                       DAT_COMPLETION_DEFAULT_FLAG));
    event = expect(pair.a.request, static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
    cr_assert_eq(*at(0), 7u);
    EXPECT_OK(pair.b.receive(pair.memory.at(512, 8), 3));
    DAT_LMR_TRIPLET local = pair.memory.at(0, 8);
    target = pair.memory.remote(1024, 8);
    EXPECT_OK(dat_ib_post_rdma_write_immed(pair.a.ep, 1, &local, cookie_of(4), &target, 0x7777,
                                           DAT_COMPLETION_DEFAULT_FLAG));
    event = expect(pair.b.recv, static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
    extension = reinterpret_cast<DAT_IB_EXTENSION_EVENT_DATA*>(event.event_extension_data);
    cr_assert_eq(extension->type, DAT_IB_RDMA_WRITE_IMMED_DATA);
    cr_assert_eq(extension->val.immed.data, 0x7777u);
    cr_assert_eq(event.event_data.dto_completion_event_data.user_cookie.as_64, 3u);
    cr_assert_eq(event.event_data.dto_completion_event_data.transfered_length, 8u);
    cr_assert_eq(*at(1024), 7u);
    EXPECT_TYPE(dat_extension_op(pair.a.ep, 9999), DAT_NOT_IMPLEMENTED);
}

// dat_shim(7): of all counters those of requests, of every kind, and of receives.
Test(shim_extension, counters__tell_what_was_posted) {
    Pair pair;
    DAT_LMR_TRIPLET local = pair.memory.at(0, 8);
    DAT_RMR_TRIPLET remote = pair.memory.remote(64, 8);
    EXPECT_OK(pair.b.receive(pair.memory.at(128, 8), 1));
    EXPECT_OK(pair.a.send(local, 2));
    EXPECT_OK(dat_ep_post_rdma_write(pair.a.ep, 1, &local, cookie_of(3), &remote,
                                     DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_OK(dat_ep_post_rdma_read(pair.a.ep, 1, &local, cookie_of(4), &remote,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_TYPE(dat_ep_post_send(pair.a.ep, -1, &local, cookie_of(5), DAT_COMPLETION_DEFAULT_FLAG),
                DAT_INVALID_PARAMETER);
    std::array<DAT_UINT64, DCNT_EP_ALL_COUNTERS> all;
    for (const DAT_EP_HANDLE ep : {pair.a.ep, pair.b.ep}) {
        all.fill(99);
        EXPECT_OK(dat_ib_query_counters(ep, DCNT_EP_ALL_COUNTERS, all.data(), 1)); // resets none
        for (int i = 0; i < DCNT_EP_ALL_COUNTERS; ++i) {
            const bool requests = i == DCNT_EP_POST_SEND && ep == pair.a.ep;
            const bool receives = i == DCNT_EP_POST_RECV && ep == pair.b.ep;
            cr_assert_eq(all[static_cast<std::size_t>(i)],
                         requests   ? 3U
                         : receives ? 1U
                                    : 0U,
                         "%d", i);
        }
    }
    DAT_UINT64 one = 99;
    EXPECT_OK(dat_ib_query_counters(pair.a.ep, DCNT_EP_POST_SEND, &one, 0));
    cr_assert_eq(one, 3u);
    std::array<DAT_UINT64, DCNT_IA_ALL_COUNTERS> of_ia;
    of_ia.fill(99);
    EXPECT_OK(dat_ib_query_counters(pair.adapter.ia, DCNT_IA_ALL_COUNTERS, of_ia.data(), 0));
    cr_assert(std::ranges::count(of_ia, 0U) == DCNT_IA_ALL_COUNTERS);
    one = 99;
    EXPECT_OK(dat_ib_query_counters(pair.a.recv, DCNT_EVD_DEQUEUE, &one, 0));
    cr_assert_eq(one, 0u);
}

Test(shim_extension, counters_that_are_none__are_refused) {
    Pair pair;
    DAT_UINT64 one = 99;
    for (const int none : {-1, DCNT_EP_ALL_COUNTERS + 1}) {
        EXPECT_TYPE(dat_ib_query_counters(pair.a.ep, none, &one, 0), DAT_INVALID_PARAMETER);
        EXPECT_TYPE(dat_ib_print_counters(pair.a.ep, none, 0), DAT_INVALID_PARAMETER);
    }
    EXPECT_TYPE(dat_ib_query_counters(pair.a.ep, DCNT_EP_POST_SEND, nullptr, 0),
                DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_ib_query_counters(pair.adapter.pz, 0, &one, 0), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_ib_print_counters(pair.adapter.pz, 0, 0), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_ib_query_counters(&one, 0, &one, 0), DAT_INVALID_HANDLE);
    EXPECT_TYPE(dat_ib_print_counters(&one, 0, 0), DAT_INVALID_HANDLE);
    EXPECT_TYPE(dat_ib_start_counter(pair.adapter.ia, DCNT_IA_CM), DAT_NOT_IMPLEMENTED);
    EXPECT_TYPE(dat_ib_stop_counter(pair.adapter.ia, DCNT_IA_CM), DAT_NOT_IMPLEMENTED);
    cr_assert_eq(one, 99u);
}

// Those that are not 0, a line each on standard output.
Test(shim_extension, counters__are_printed) {
    Pair pair;
    EXPECT_OK(pair.b.receive(pair.memory.at(128, 8), 1));
    std::FILE* const file = std::tmpfile();
    cr_assert_not_null(file);
    std::fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    const DAT_RETURN of_ep = dat_ib_print_counters(pair.b.ep, DCNT_EP_ALL_COUNTERS, 0);
    const DAT_RETURN of_ia = dat_ib_print_counters(pair.adapter.ia, DCNT_IA_ALL_COUNTERS, 0);
    std::fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    EXPECT_OK(of_ep);
    EXPECT_OK(of_ia);
    std::rewind(file);
    char text[256] = {};
    text[std::fread(text, 1, sizeof text - 1, file)] = 0;
    std::fclose(file);
    cr_assert_str_eq(text, "EP counter 6: 1\n");
}

// The attribute says so as well.
Test(shim_extension, datagrams__are_refused) {
    Pair pair;
    DAT_LMR_TRIPLET local = pair.memory.at(0, 8);
    DAT_IB_ADDR_HANDLE to{};
    EXPECT_TYPE(
        dat_ib_post_send_ud(pair.a.ep, 1, &local, &to, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG),
        DAT_MODEL_NOT_SUPPORTED);
    EXPECT_TYPE(dat_ib_ud_ah_free(pair.a.ep, &to), DAT_MODEL_NOT_SUPPORTED);
    EXPECT_TYPE(dat_extension_op(pair.a.ep, DAT_IB_UD_CM_FREE_OP, cookie_of(1)),
                DAT_MODEL_NOT_SUPPORTED);
    DAT_EP_PARAM param;
    EXPECT_OK(dat_ep_query(pair.a.ep, DAT_EP_FIELD_ALL, &param));
    param.ep_attr.service_type = static_cast<DAT_SERVICE_TYPE>(DAT_IB_SERVICE_TYPE_UD);
    DAT_EP_HANDLE ep;
    EXPECT_TYPE(dat_ep_create(pair.adapter.ia, pair.adapter.pz, pair.a.recv, pair.a.request,
                              pair.a.conn, &param.ep_attr, &ep),
                DAT_MODEL_NOT_SUPPORTED);
    DAT_IA_ATTR attr;
    EXPECT_OK(dat_ia_query(pair.adapter.ia, nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr));
    const DAT_NAMED_ATTR* const first = attr.transport_attr;
    const DAT_NAMED_ATTR* const end = first + attr.num_transport_attr;
    const auto* const found = std::find_if(first, end, [](const DAT_NAMED_ATTR& one) {
        return std::strcmp(one.name, DAT_IB_ATTR_UD) == 0;
    });
    cr_assert(found != end && std::strcmp(found->value, "FALSE") == 0);
}

// CNO-9
Test(shim_cno, a_descriptor__is_readable_while_there_is_something) {
    Pair pair;
    DAT_CNO_HANDLE cno;
    DAT_FD fd = -1;
    EXPECT_OK(dat_cno_fd_create(pair.adapter.ia, &fd, &cno));
    EXPECT_OK(dat_evd_modify_cno(pair.b.recv, cno));
    DAT_EVD_HANDLE hint;
    cr_assert_eq(dat_cno_trigger(cno, &hint), DAT_QUEUE_EMPTY); // U-69
    EXPECT_OK(pair.b.receive(pair.memory.at(64, 64), 1));
    EXPECT_OK(pair.a.send(pair.memory.at(0, 8), 2));
    pollfd p{fd, POLLIN, 0};
    do {
        cr_assert_eq(poll(&p, 1, 10000), 1);
    } while (dat_cno_trigger(cno, &hint) != DAT_SUCCESS);
    cr_assert_eq(hint, pair.b.recv);
    expect_dto(pair.b.recv, 1);
    DAT_CNO_PARAM param;
    EXPECT_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    cr_assert_eq(param.proxy_type, DAT_PROXY_TYPE_FD);
    cr_assert_eq(param.proxy.fd, fd);
}

// IA-8: also one that the own asynchronous dispatcher, which is none of the objects, reports to.
Test(shim_cno, at_the_asynchronous_dispatcher__ends_with_an_ia_that_is_closed_abruptly) {
    Adapter adapter;
    DAT_CNO_HANDLE cno;
    DAT_FD fd = -1;
    EXPECT_OK(dat_cno_fd_create(adapter.ia, &fd, &cno));
    EXPECT_OK(dat_evd_modify_cno(adapter.async, cno));
    EXPECT_OK(dat_ia_close(adapter.ia, DAT_CLOSE_ABRUPT_FLAG));
    cr_assert(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

// CNO-9, EVD-30: of 300 dispatchers, and of a service point that came later; not of what is
// disabled.
Test(shim_cno, a_descriptor__tells_of_many_and_of_streams_that_come_later) {
    Adapter adapter;
    DAT_CNO_HANDLE cno;
    DAT_FD fd = -1;
    EXPECT_OK(dat_cno_fd_create(adapter.ia, &fd, &cno));
    std::vector<std::unique_ptr<Side>> sides;
    while (sides.size() < 100) {
        sides.push_back(std::make_unique<Side>(adapter));
        for (const DAT_EVD_HANDLE evd :
             {sides.back()->recv, sides.back()->request, sides.back()->conn}) {
            EXPECT_OK(dat_evd_modify_cno(evd, cno));
        }
    }
    const DAT_EVD_HANDLE requests = adapter.evd(DAT_EVD_CR_FLAG, 8, cno);
    DAT_EVD_HANDLE hint;
    EXPECT_TYPE(dat_cno_trigger(cno, &hint), DAT_QUEUE_EMPTY);
    pollfd p{fd, POLLIN, 0};
    const auto triggered = [&] {
        do {
            cr_assert_eq(poll(&p, 1, 60000), 1);
        } while (dat_cno_trigger(cno, &hint) != DAT_SUCCESS);
        return hint;
    };
    DAT_CONN_QUAL qualifier;
    DAT_PSP_HANDLE psp;
    EXPECT_OK(dat_psp_create_any(adapter.ia, &qualifier, requests, DAT_PSP_CONSUMER_FLAG, &psp));
    EXPECT_OK(sides.front()->connect(qualifier));
    cr_assert_eq(triggered(), requests);
    DAT_EVENT event;
    EXPECT_OK(dat_evd_dequeue(requests, &event));
    EXPECT_OK(dat_evd_disable(sides.back()->conn));
    EXPECT_OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, sides.back()->ep, 0,
                            nullptr));
    cr_assert_eq(triggered(), sides.front()->conn);
    EXPECT_OK(dat_evd_dequeue(sides.front()->conn, &event));
    expect(sides.back()->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_TYPE(dat_cno_trigger(cno, &hint), DAT_QUEUE_EMPTY);
}

// V2-1
Test(shim_service, a_common_service_point__is_reached_by_address) {
    Adapter adapter;
    Listener listener(adapter);
    Side far(adapter);
    Side near(adapter);
    sockaddr_in address = address_of(place().address);
    DAT_COMM comm{AF_INET, SOCK_DGRAM, 0};
    DAT_CSP_HANDLE csp;
    const auto at = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address);
    EXPECT_TYPE(dat_csp_create(adapter.ia, &comm, at, listener.evd, &csp), DAT_COMM_NOT_SUPPORTED);
    comm.type = SOCK_STREAM;
    EXPECT_OK(dat_csp_create(adapter.ia, &comm, at, listener.evd, &csp));
    DAT_CSP_PARAM param;
    EXPECT_OK(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
    EXPECT_OK(dat_ep_common_connect(far.ep, param.address_ptr, kSoon, 0, nullptr));
    EXPECT_OK(dat_cr_accept(listener.request(), near.ep, 0, nullptr));
    expect(far.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_OK(dat_csp_free(csp));
}

// CR-7, PD-5
Test(shim_service, a_reject__carries_data) {
    Adapter adapter;
    Listener listener(adapter);
    Side far(adapter);
    EXPECT_OK(far.connect(listener.qualifier));
    char data[] = "no";
    EXPECT_OK(dat_cr_reject(listener.request(), sizeof data, data));
    const DAT_EVENT event = expect(far.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
    const auto& told = event.event_data.connect_event_data;
    cr_assert_eq(told.private_data_size, static_cast<DAT_COUNT>(sizeof data));
    cr_assert_str_eq(static_cast<char*>(told.private_data), "no");
}

// LMR-1, V2-1: memory that is addressed from 0.
Test(shim_memory, a_zero_based_region__begins_at_0) {
    Adapter adapter;
    Memory all(adapter);
    DAT_REGION_DESCRIPTION region{};
    region.for_lmr_handle = all.lmr;
    DAT_LMR_HANDLE lmr;
    DAT_VADDR address = 1;
    const DAT_RETURN code =
        dat_lmr_create(adapter.ia, DAT_MEM_TYPE_LMR, region, 1, adapter.pz, DAT_MEM_PRIV_ALL_FLAG,
                       DAT_VA_TYPE_ZB, &lmr, nullptr, nullptr, nullptr, &address);
    DAT_IA_ATTR attr;
    EXPECT_OK(
        dat_ia_query(adapter.ia, &adapter.async, DAT_IA_FIELD_IA_ZB_SUPPORTED, &attr, 0, nullptr));
    if (attr.zb_supported == DAT_FALSE) { // of a device
        EXPECT_TYPE(code, DAT_MODEL_NOT_SUPPORTED);
        return;
    }
    EXPECT_OK(code);
    cr_assert_eq(address, 0u);
}

// IA-12: what an adapter says of extensions.
Test(shim_extension, an_adapter__names_its_extension) {
    Adapter adapter;
    DAT_EVD_HANDLE async;
    DAT_IA_ATTR attr;
    EXPECT_OK(dat_ia_query(adapter.ia, &async, DAT_IA_FIELD_ALL, &attr, 0, nullptr));
    cr_assert_eq(attr.extension_supported, DAT_EXTENSION_IB);
}

// PD-6: all of it is there.
Test(shim_service, a_request__says_that_nothing_was_cut_off) {
    Adapter adapter;
    Listener listener(adapter);
    Side far(adapter);
    EXPECT_OK(far.connect(listener.qualifier));
    DAT_EVENT event;
    listener.request(&event);
    cr_assert_eq(event.event_data.cr_arrival_event_data.truncate_flag, DAT_FALSE);
}
