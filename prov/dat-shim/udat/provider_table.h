// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the table behind each handle has in both versions: the functions that programs call
// by name.
#ifndef DAT_SHIM_UDAT_PROVIDER_TABLE_H
#define DAT_SHIM_UDAT_PROVIDER_TABLE_H

#include "dat-shim/udat/entry.h"

namespace dat::shim::udat {

// Without ia_open_func, and what is of 2.0 alone.
constexpr DAT_PROVIDER common_table() {
    DAT_PROVIDER table{};
    table.device_name = "dat";
    table.ia_query_func = dat_ia_query;
    table.ia_close_func = dat_ia_close;
    table.set_consumer_context_func = dat_set_consumer_context;
    table.get_consumer_context_func = dat_get_consumer_context;
    table.get_handle_type_func = dat_get_handle_type;
    table.cno_create_func = dat_cno_create;
    table.cno_modify_agent_func = dat_cno_modify_agent;
    table.cno_query_func = dat_cno_query;
    table.cno_free_func = dat_cno_free;
    table.cno_wait_func = dat_cno_wait;
    table.cr_query_func = dat_cr_query;
    table.cr_accept_func = dat_cr_accept;
    table.cr_reject_func = dat_cr_reject;
    table.cr_handoff_func = dat_cr_handoff;
    table.evd_create_func = dat_evd_create;
    table.evd_query_func = dat_evd_query;
    table.evd_modify_cno_func = dat_evd_modify_cno;
    table.evd_enable_func = dat_evd_enable;
    table.evd_disable_func = dat_evd_disable;
    table.evd_wait_func = dat_evd_wait;
    table.evd_resize_func = dat_evd_resize;
    table.evd_post_se_func = dat_evd_post_se;
    table.evd_dequeue_func = dat_evd_dequeue;
    table.evd_free_func = dat_evd_free;
    table.ep_create_func = dat_ep_create;
    table.ep_query_func = dat_ep_query;
    table.ep_modify_func = dat_ep_modify;
    table.ep_connect_func = dat_ep_connect;
    table.ep_dup_connect_func = dat_ep_dup_connect;
    table.ep_disconnect_func = dat_ep_disconnect;
    table.ep_post_send_func = dat_ep_post_send;
    table.ep_post_recv_func = dat_ep_post_recv;
    table.ep_post_rdma_read_func = dat_ep_post_rdma_read;
    table.ep_post_rdma_write_func = dat_ep_post_rdma_write;
    table.ep_get_status_func = dat_ep_get_status;
    table.ep_free_func = dat_ep_free;
    table.lmr_create_func = dat_lmr_create;
    table.lmr_query_func = dat_lmr_query;
    table.lmr_free_func = dat_lmr_free;
    table.rmr_create_func = dat_rmr_create;
    table.rmr_query_func = dat_rmr_query;
    table.rmr_bind_func = dat_rmr_bind;
    table.rmr_free_func = dat_rmr_free;
    table.psp_create_func = dat_psp_create;
    table.psp_query_func = dat_psp_query;
    table.psp_free_func = dat_psp_free;
    table.rsp_create_func = dat_rsp_create;
    table.rsp_query_func = dat_rsp_query;
    table.rsp_free_func = dat_rsp_free;
    table.pz_create_func = dat_pz_create;
    table.pz_query_func = dat_pz_query;
    table.pz_free_func = dat_pz_free;
    table.psp_create_any_func = dat_psp_create_any;
    table.ep_reset_func = dat_ep_reset;
    table.evd_set_unwaitable_func = dat_evd_set_unwaitable;
    table.evd_clear_unwaitable_func = dat_evd_clear_unwaitable;
    table.lmr_sync_rdma_read_func = dat_lmr_sync_rdma_read;
    table.lmr_sync_rdma_write_func = dat_lmr_sync_rdma_write;
    table.ep_create_with_srq_func = dat_ep_create_with_srq;
    table.ep_recv_query_func = dat_ep_recv_query;
    table.ep_set_watermark_func = dat_ep_set_watermark;
    table.srq_create_func = dat_srq_create;
    table.srq_free_func = dat_srq_free;
    table.srq_post_recv_func = dat_srq_post_recv;
    table.srq_query_func = dat_srq_query;
    table.srq_resize_func = dat_srq_resize;
    table.srq_set_lw_func = dat_srq_set_lw;
    return table;
}

} // namespace dat::shim::udat

#endif
