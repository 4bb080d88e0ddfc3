// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Every call with every kind of value that is no handle: it says so, and follows none of them.
#include "pair.h"

#include <cstddef>
#include <functional>
#include <iterator>
#include <span>

using namespace dat::test;

namespace {

struct Call {
    const char* name;
    std::function<DAT_RETURN(DAT_HANDLE)> make;
};

// Of all results; what a call could write to.
struct Results {
    DAT_HANDLE handle;
    DAT_COUNT count, other_count;
    DAT_CONN_QUAL qualifier;
    DAT_CONTEXT context;
    DAT_HANDLE_TYPE type;
    DAT_EP_STATE state;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN length;
    DAT_VADDR address;
    DAT_EVENT event;
    DAT_EP_PARAM ep;
    DAT_EVD_PARAM evd;
    DAT_CNO_PARAM cno;
    DAT_LMR_PARAM lmr;
    DAT_RMR_PARAM rmr;
    DAT_PZ_PARAM pz;
    DAT_PSP_PARAM psp;
    DAT_RSP_PARAM rsp;
    DAT_CR_PARAM cr;
    DAT_SRQ_PARAM srq;
    DAT_IA_ATTR ia;
};
Results r;
DAT_LMR_TRIPLET g_local{};
DAT_RMR_TRIPLET g_remote{};
DAT_SRQ_ATTR g_srq_attr{4, 1, 0};
sockaddr_in g_address{};

constexpr auto kDefault = DAT_COMPLETION_DEFAULT_FLAG;
const DAT_OS_WAIT_PROXY_AGENT kNobody{nullptr, nullptr};

// What is done with the handle of an adapter.
const Call kOfAdapters[] = {
    {"ia_query",
     [](auto h) { return dat_ia_query(h, &r.handle, DAT_IA_FIELD_ALL, &r.ia, 0, nullptr); }},
    {"ia_close", [](auto h) { return dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG); }},
    {"pz_create", [](auto h) { return dat_pz_create(h, &r.handle); }},
    {"lmr_create",
     [](auto h) {
         return lmr_create(h, DAT_MEM_TYPE_VIRTUAL, {}, 8, h, DAT_MEM_PRIV_ALL_FLAG, &r.handle,
                           &r.lmr_context, &r.rmr_context, &r.length, &r.address);
     }},
    {"lmr_sync_rdma_read", [](auto h) { return dat_lmr_sync_rdma_read(h, &g_local, 1); }},
    {"lmr_sync_rdma_write", [](auto h) { return dat_lmr_sync_rdma_write(h, &g_local, 1); }},
    {"evd_create", [](auto h) { return dat_evd_create(h, 8, h, DAT_EVD_DEFAULT_FLAG, &r.handle); }},
    {"cno_create", [](auto h) { return dat_cno_create(h, kNobody, &r.handle); }},
    {"psp_create",
     [](auto h) { return dat_psp_create(h, 1, h, DAT_PSP_CONSUMER_FLAG, &r.handle); }},
    {"psp_create_any",
     [](auto h) {
         return dat_psp_create_any(h, &r.qualifier, h, DAT_PSP_CONSUMER_FLAG, &r.handle);
     }},
    {"rsp_create", [](auto h) { return dat_rsp_create(h, 1, h, h, &r.handle); }},
    {"ep_create", [](auto h) { return dat_ep_create(h, h, h, h, h, nullptr, &r.handle); }},
    {"ep_create_with_srq",
     [](auto h) { return dat_ep_create_with_srq(h, h, h, h, h, h, &r.ep.ep_attr, &r.handle); }},
    {"srq_create", [](auto h) { return dat_srq_create(h, h, &g_srq_attr, &r.handle); }},
};

const Call kOfEndpoints[] = {
    {"ep_query", [](auto h) { return dat_ep_query(h, DAT_EP_FIELD_ALL, &r.ep); }},
    {"ep_modify", [](auto h) { return dat_ep_modify(h, DAT_EP_FIELD_PZ_HANDLE, &r.ep); }},
    {"ep_get_status", [](auto h) { return dat_ep_get_status(h, &r.state, nullptr, nullptr); }},
    {"ep_connect",
     [](auto h) {
         return dat_ep_connect(h, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&g_address), 1, kSoon, 0,
                               nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
     }},
    {"ep_dup_connect",
     [](auto h) { return dat_ep_dup_connect(h, h, kSoon, 0, nullptr, DAT_QOS_BEST_EFFORT); }},
    {"ep_disconnect", [](auto h) { return dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG); }},
    {"ep_reset", [](auto h) { return dat_ep_reset(h); }},
    {"ep_recv_query", [](auto h) { return dat_ep_recv_query(h, &r.count, &r.other_count); }},
    {"ep_set_watermark", [](auto h) { return dat_ep_set_watermark(h, 1, 1); }},
    {"ep_post_send", [](auto h) { return dat_ep_post_send(h, 1, &g_local, {}, kDefault); }},
    {"ep_post_recv", [](auto h) { return dat_ep_post_recv(h, 1, &g_local, {}, kDefault); }},
    {"ep_post_rdma_read",
     [](auto h) { return dat_ep_post_rdma_read(h, 1, &g_local, {}, &g_remote, kDefault); }},
    {"ep_post_rdma_write",
     [](auto h) { return dat_ep_post_rdma_write(h, 1, &g_local, {}, &g_remote, kDefault); }},
    {"ep_free", [](auto h) { return dat_ep_free(h); }},
};

const Call kOfEvents[] = {
    {"evd_query", [](auto h) { return dat_evd_query(h, DAT_EVD_FIELD_ALL, &r.evd); }},
    {"evd_modify_cno", [](auto h) { return dat_evd_modify_cno(h, h); }},
    {"evd_enable", [](auto h) { return dat_evd_enable(h); }},
    {"evd_disable", [](auto h) { return dat_evd_disable(h); }},
    {"evd_set_unwaitable", [](auto h) { return dat_evd_set_unwaitable(h); }},
    {"evd_clear_unwaitable", [](auto h) { return dat_evd_clear_unwaitable(h); }},
    {"evd_wait", [](auto h) { return dat_evd_wait(h, 0, 1, &r.event, &r.count); }},
    {"evd_dequeue", [](auto h) { return dat_evd_dequeue(h, &r.event); }},
    {"evd_post_se", [](auto h) { return dat_evd_post_se(h, &r.event); }},
    {"evd_resize", [](auto h) { return dat_evd_resize(h, 8); }},
    {"evd_free", [](auto h) { return dat_evd_free(h); }},
    {"cno_modify_agent", [](auto h) { return dat_cno_modify_agent(h, kNobody); }},
    {"cno_query", [](auto h) { return dat_cno_query(h, DAT_CNO_FIELD_ALL, &r.cno); }},
    {"cno_wait", [](auto h) { return dat_cno_wait(h, 0, &r.handle); }},
    {"cno_free", [](auto h) { return dat_cno_free(h); }},
};

const Call kOfTheRest[] = {
    {"pz_query", [](auto h) { return dat_pz_query(h, DAT_PZ_FIELD_ALL, &r.pz); }},
    {"pz_free", [](auto h) { return dat_pz_free(h); }},
    {"lmr_query", [](auto h) { return dat_lmr_query(h, DAT_LMR_FIELD_ALL, &r.lmr); }},
    {"lmr_free", [](auto h) { return dat_lmr_free(h); }},
    {"rmr_create", [](auto h) { return dat_rmr_create(h, &r.handle); }},
    {"rmr_query", [](auto h) { return dat_rmr_query(h, DAT_RMR_FIELD_ALL, &r.rmr); }},
    {"rmr_bind",
     [](auto h) {
         return rmr_bind(h, h, g_local, DAT_MEM_PRIV_REMOTE_READ_FLAG, h, {}, &r.rmr_context);
     }},
    {"rmr_free", [](auto h) { return dat_rmr_free(h); }},
    {"psp_query", [](auto h) { return dat_psp_query(h, DAT_PSP_FIELD_ALL, &r.psp); }},
    {"psp_free", [](auto h) { return dat_psp_free(h); }},
    {"rsp_query", [](auto h) { return dat_rsp_query(h, DAT_RSP_FIELD_ALL, &r.rsp); }},
    {"rsp_free", [](auto h) { return dat_rsp_free(h); }},
    {"cr_query", [](auto h) { return dat_cr_query(h, DAT_CR_FIELD_ALL, &r.cr); }},
    {"cr_accept", [](auto h) { return dat_cr_accept(h, h, 0, nullptr); }},
    {"cr_reject", [](auto h) { return cr_reject(h); }},
    {"cr_handoff", [](auto h) { return dat_cr_handoff(h, 1); }},
    {"srq_query", [](auto h) { return dat_srq_query(h, DAT_SRQ_FIELD_ALL, &r.srq); }},
    {"srq_post_recv", [](auto h) { return dat_srq_post_recv(h, 1, &g_local, {}); }},
    {"srq_resize", [](auto h) { return dat_srq_resize(h, 8); }},
    {"srq_set_lw", [](auto h) { return dat_srq_set_lw(h, 1); }},
    {"srq_free", [](auto h) { return dat_srq_free(h); }},
    {"set_consumer_context", [](auto h) { return dat_set_consumer_context(h, r.context); }},
    {"get_consumer_context", [](auto h) { return dat_get_consumer_context(h, &r.context); }},
    {"get_handle_type", [](auto h) { return dat_get_handle_type(h, &r.type); }},
};

// All but three calls take one: dat_ia_openv, dat_strerror and those of the registry.
static_assert(std::size(kOfAdapters) + std::size(kOfEndpoints) + std::size(kOfEvents) +
                  std::size(kOfTheRest) ==
              72 - 5);

void refuse(std::span<const Call> calls, DAT_HANDLE handle, const char* what) {
    for (const Call& call : calls) {
        const DAT_RETURN code = call.make(handle);
        cr_assert_eq(DAT_GET_TYPE(code), static_cast<DAT_UINT32>(DAT_INVALID_HANDLE),
                     "dat_%s with %s is %s", call.name, what, words(code));
        cr_assert(code & DAT_CLASS_ERROR);
    }
}

void each_refuses(DAT_HANDLE handle, const char* what) {
    refuse(kOfAdapters, handle, what);
    refuse(kOfEndpoints, handle, what);
    refuse(kOfEvents, handle, what);
    refuse(kOfTheRest, handle, what);
}

} // namespace

// GEN-6, U-23: NULL, small and odd numbers, addresses of nothing and of something else.
Test(shim_handles, what_was_never_one__is_refused_by_every_call) {
    each_refuses(DAT_HANDLE_NULL, "NULL before the first adapter");
    Adapter adapter;
    each_refuses(DAT_HANDLE_NULL, "NULL");
    each_refuses(reinterpret_cast<DAT_HANDLE>(3001), "a small number");
    each_refuses(reinterpret_cast<DAT_HANDLE>(~std::uintptr_t{0}), "the largest number");
    each_refuses(reinterpret_cast<DAT_HANDLE>(std::uintptr_t{0xdead0000}), "an unmapped address");
    each_refuses(&adapter, "an address on the stack");
    each_refuses(static_cast<char*>(adapter.pz) + 1, "a handle and one");
    each_refuses(static_cast<char*>(adapter.pz) + 16, "an address within an object");
}

// GEN-6, U-23
Test(shim_handles, one_that_was_freed__is_refused_by_every_call) {
    Pair pair;
    const DAT_HANDLE ep = pair.a.ep;
    const DAT_HANDLE zone = [&] {
        DAT_PZ_HANDLE pz;
        EXPECT_OK(dat_pz_create(pair.adapter.ia, &pz));
        EXPECT_OK(dat_pz_free(pz));
        return pz;
    }();
    EXPECT_OK(dat_ep_free(ep));
    each_refuses(ep, "a freed endpoint");
    each_refuses(zone, "a freed zone");
    const DAT_HANDLE ia = pair.adapter.ia;
    EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
    each_refuses(ia, "a closed adapter");
    each_refuses(pair.b.ep, "an endpoint of a closed adapter");
}

// GEN-6: and one of another kind of object, which none of them touches.
Test(shim_handles, one_of_another_kind__is_refused_by_every_call) {
    constexpr std::size_t kOfAnyKind = 3; // at the end of the rest
    Adapter adapter;
    DAT_CNO_HANDLE cno;
    EXPECT_OK(dat_cno_create(adapter.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    refuse(kOfAdapters, adapter.pz, "a zone");
    refuse(kOfEndpoints, adapter.pz, "a zone");
    refuse(kOfEvents, adapter.pz, "a zone");
    refuse(std::span(kOfTheRest).first(std::size(kOfTheRest) - kOfAnyKind), cno, "a CNO");
    EXPECT_OK(dat_cno_free(cno));
    EXPECT_OK(dat_pz_free(adapter.pz));
}
