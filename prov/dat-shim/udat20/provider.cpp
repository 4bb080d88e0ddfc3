// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// This library as a provider of a genuine libdat2, which loads it by dat.conf, calls
// dat_provider_init() and reaches everything through the table behind each handle.
// May include: dat-shim, dat headers.
#include "dat-shim/registry.h"
#include "dat-shim/udat/entry.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace dat::shim::udat {
namespace {

constinit std::mutex g_mutex;

// What dat.conf said of a name: its device. Guarded by g_mutex.
std::map<std::string, std::string>& devices() {
    static auto& map = *new std::map<std::string, std::string>;
    return map;
}

// `device` is empty: that of the name.
Return open_as_provider(const std::string& name, const std::string& device, DAT_COUNT qlen,
                        DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia) {
    Ia::Opening opening;
    opening.name = name;
    opening.device = device;
    opening.dispatch = &provider_table;
    opening.async_length = qlen;
    if (const Return rc = read_async(*async, opening)) {
        return rc;
    }
    if (opening.device.empty()) {
        if (const Return rc = resolve(name, DAT_VERSION_MAJOR, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
                                      false, opening.device)) {
            return rc;
        }
    }
    return open(opening, async, ia, false);
}

DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async,
                   DAT_IA_HANDLE* ia) {
    return answer([&] {
        if (!name || !async || !ia) {
            return bad_argument(!name ? 1 : !async ? 3 : 4);
        }
        std::string device;
        {
            const std::lock_guard lock(g_mutex);
            device = devices()[name];
        }
        return open_as_provider(name, device, qlen, async, ia);
    });
}

DAT_RETURN related(DAT_IA_HANDLE, const DAT_NAME_PTR, DAT_BOOLEAN* answer) {
    return udat::answer([&] {
        if (!answer) {
            return bad_argument(3);
        }
        *answer = DAT_FALSE;
        return kSuccess;
    });
}

// The registry that loaded this library: the first in the program, which is not this one.
template <class Function> Function* registry_call(const char* name, Function* own) {
    auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    return found ? found : own;
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
    .csp_create_func = dat_csp_create,
    .csp_query_func = dat_csp_query,
    .csp_free_func = dat_csp_free,
    .ep_common_connect_func = dat_ep_common_connect,
    .rmr_create_for_ep_func = dat_rmr_create_for_ep,
    .ep_post_send_with_invalidate_func = dat_ep_post_send_with_invalidate,
    .ep_post_rdma_read_to_rmr_func = dat_ep_post_rdma_read_to_rmr,
    .cno_fd_create_func = dat_cno_fd_create,
    .cno_trigger_func = dat_cno_trigger,
    .ia_ha_related_func = related,
    .handle_extendedop_func = extended_op,
};

} // namespace dat::shim::udat

using namespace dat::shim::udat;

extern "C" {

// REG-2. `instance_data`: the parameters in dat.conf.
void dat_provider_init(const DAT_PROVIDER_INFO* provider_info, const char* instance_data) {
    answer([&] {
        const std::lock_guard lock(g_mutex);
        devices()[provider_info->ia_name] =
            dat::shim::device_of(instance_data ? instance_data : "");
        return dat::shim::kSuccess;
    });
    registry_call("dat_registry_add_provider", dat_registry_add_provider)(&provider_table,
                                                                          provider_info);
}

// REG-3
void dat_provider_fini(const DAT_PROVIDER_INFO* provider_info) {
    registry_call("dat_registry_remove_provider", dat_registry_remove_provider)(&provider_table,
                                                                                provider_info);
}

} // extern "C"
