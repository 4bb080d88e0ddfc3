// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The table behind each handle, for objects that were compiled with dat_redirection.h
// (ABI-D1). This library is no provider for a genuine libdat. May include: dat-shim, dat
// headers.
#include "dat-shim/udat/entry.h"

namespace dat::shim::udat {
namespace {

// ABI-D5. Relaxed ordering means nothing here.
DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async,
                   DAT_IA_HANDLE* ia, DAT_BOOLEAN) {
    return dat_ia_open(name, qlen, async, ia);
}

} // namespace

const DAT_PROVIDER provider_table = {
    .device_name = "dat",
    .extension = nullptr,
    .ia_open_func = ia_open,
    .ia_query_func = dat_ia_query,
    .ia_close_func = dat_ia_close,
    .set_consumer_context_func = dat_set_consumer_context,
    .get_consumer_context_func = dat_get_consumer_context,
    .get_handle_type_func = dat_get_handle_type,
    .cno_create_func = dat_cno_create,
    .cno_modify_agent_func = dat_cno_modify_agent,
    .cno_query_func = dat_cno_query,
    .cno_free_func = dat_cno_free,
    .cno_wait_func = dat_cno_wait,
    .cr_query_func = dat_cr_query,
    .cr_accept_func = dat_cr_accept,
    .cr_reject_func = dat_cr_reject,
    .cr_handoff_func = dat_cr_handoff,
    .evd_create_func = dat_evd_create,
    .evd_query_func = dat_evd_query,
    .evd_modify_cno_func = dat_evd_modify_cno,
    .evd_enable_func = dat_evd_enable,
    .evd_disable_func = dat_evd_disable,
    .evd_wait_func = dat_evd_wait,
    .evd_resize_func = dat_evd_resize,
    .evd_post_se_func = dat_evd_post_se,
    .evd_dequeue_func = dat_evd_dequeue,
    .evd_free_func = dat_evd_free,
    .ep_create_func = dat_ep_create,
    .ep_query_func = dat_ep_query,
    .ep_modify_func = dat_ep_modify,
    .ep_connect_func = dat_ep_connect,
    .ep_dup_connect_func = dat_ep_dup_connect,
    .ep_disconnect_func = dat_ep_disconnect,
    .ep_post_send_func = dat_ep_post_send,
    .ep_post_recv_func = dat_ep_post_recv,
    .ep_post_rdma_read_func = dat_ep_post_rdma_read,
    .ep_post_rdma_write_func = dat_ep_post_rdma_write,
    .ep_get_status_func = dat_ep_get_status,
    .ep_free_func = dat_ep_free,
    .lmr_create_func = dat_lmr_create,
    .lmr_query_func = dat_lmr_query,
    .lmr_free_func = dat_lmr_free,
    .rmr_create_func = dat_rmr_create,
    .rmr_query_func = dat_rmr_query,
    .rmr_bind_func = dat_rmr_bind,
    .rmr_free_func = dat_rmr_free,
    .psp_create_func = dat_psp_create,
    .psp_query_func = dat_psp_query,
    .psp_free_func = dat_psp_free,
    .rsp_create_func = dat_rsp_create,
    .rsp_query_func = dat_rsp_query,
    .rsp_free_func = dat_rsp_free,
    .pz_create_func = dat_pz_create,
    .pz_query_func = dat_pz_query,
    .pz_free_func = dat_pz_free,
    .psp_create_any_func = dat_psp_create_any,
    .ep_reset_func = dat_ep_reset,
    .evd_set_unwaitable_func = dat_evd_set_unwaitable,
    .evd_clear_unwaitable_func = dat_evd_clear_unwaitable,
    .lmr_sync_rdma_read_func = dat_lmr_sync_rdma_read,
    .lmr_sync_rdma_write_func = dat_lmr_sync_rdma_write,
    .ep_create_with_srq_func = dat_ep_create_with_srq,
    .ep_recv_query_func = dat_ep_recv_query,
    .ep_set_watermark_func = dat_ep_set_watermark,
    .srq_create_func = dat_srq_create,
    .srq_free_func = dat_srq_free,
    .srq_post_recv_func = dat_srq_post_recv,
    .srq_query_func = dat_srq_query,
    .srq_resize_func = dat_srq_resize,
    .srq_set_lw_func = dat_srq_set_lw,
};

} // namespace dat::shim::udat
