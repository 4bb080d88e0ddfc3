// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The calls that only uDAPL 2.0 has, or has with other parameters than 1.2.
#include "dat-shim/cno.h"
#include "dat-shim/cr.h"
#include "dat-shim/evd.h"
#include "dat-shim/registry.h"
#include "dat-shim/udat/entry.h"

#include <netinet/in.h>

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_addr,
                                 DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                                 const DAT_PVOID private_data) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        std::span<const std::byte> data;
        if (const Return rc = read_private_data(4, private_data_size, private_data,
                                                ep->ia().can().max_private_data, data)) {
            return rc;
        }
        if (!remote_addr) {
            return bad_argument(2);
        }
        return ep->connect({remote_addr, ServicePoint::port_in(*remote_addr), timeout, data});
    });
}

DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                            DAT_COMPLETION_FLAGS completion_flags,
                                            DAT_BOOLEAN invalidate_flag,
                                            DAT_RMR_CONTEXT rmr_context) {
    if (!invalidate_flag) {
        return dat_ep_post_send(ep_handle, num_segments, local_iov, user_cookie, completion_flags);
    }
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        return ep ? ep->post_send_invalidate(num_segments, local_iov, user_cookie.as_64,
                                             bits(completion_flags), rmr_context)
                  : bad_ep();
    });
}

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET* local_iov,
                                        DAT_DTO_COOKIE user_cookie,
                                        const DAT_RMR_TRIPLET* remote_iov,
                                        DAT_COMPLETION_FLAGS completion_flags) {
    return answer([&] {
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        if (!local_iov || !remote_iov) {
            return bad_argument(local_iov ? 4 : 2);
        }
        DAT_LMR_TRIPLET sink;
        if (const Return rc =
                ep->ia().memory_of_window(local_iov->rmr_context, local_iov->virtual_address,
                                          local_iov->segment_length, sink.lmr_context)) {
            return rc;
        }
        sink.virtual_address = local_iov->virtual_address;
        sink.segment_length = local_iov->segment_length;
        return ep->post_read(1, &sink, user_cookie.as_64, *remote_iov, bits(completion_flags));
    });
}

DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD* file_descriptor,
                             DAT_CNO_HANDLE* cno_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_handle(Sub::invalid_handle_ia);
        }
        if (!file_descriptor || !cno_handle) {
            return bad_argument(file_descriptor ? 3 : 2);
        }
        Cno* cno = nullptr;
        const Return rc = Cno::create_with_descriptor(*ia, *file_descriptor, cno);
        if (rc == kSuccess) {
            *cno_handle = cno->handle();
        }
        return rc;
    });
}

DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE* evd_handle) {
    return answer([&] {
        Cno* const cno = lookup<Cno>(cno_handle);
        if (!cno) {
            return bad_cno();
        }
        if (!evd_handle) {
            return bad_argument(2);
        }
        Evd* evd = nullptr;
        const Return rc = cno->poll(evd);
        *evd_handle = evd ? evd->handle() : DAT_HANDLE_NULL;
        return type_of(rc) == Type::queue_empty ? kQueueEmpty : rc;
    });
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
                          DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
                          DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
                          DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr_handle,
                          DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                          DAT_VLEN* registered_length, DAT_VADDR* registered_address) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB) {
            return bad_argument(7);
        }
        Lmr::Asked asked{};
        asked.length = length;
        asked.privileges = bits(privileges);
        asked.zero_based = va_type == DAT_VA_TYPE_ZB;
        return create_lmr(
            *ia, pz_handle, mem_type, region_description, asked,
            {lmr_handle, lmr_context, rmr_context, registered_length, registered_address, 8});
    });
}

// The scope of a window is its zone.
DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE*) {
    return answer(
        [&] { return lookup<Pz>(pz_handle) ? fail(Type::model_not_supported) : bad_pz(); });
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
                        const DAT_LMR_TRIPLET* lmr_triplet, DAT_MEM_PRIV_FLAGS mem_priv,
                        DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
                        DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT* context) {
    return answer([&] {
        Rmr* const rmr = lookup<Rmr>(rmr_handle);
        if (!rmr) {
            return bad_rmr();
        }
        Ep* const ep = lookup<Ep>(ep_handle);
        if (!ep) {
            return bad_ep();
        }
        if (!lmr_triplet || !context) {
            return bad_argument(lmr_triplet ? 9 : 3);
        }
        if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB) {
            return bad_argument(5);
        }
        return bind(*rmr, *ep,
                    {.lmr = lookup<Lmr>(lmr_handle),
                     .triplet = *lmr_triplet,
                     .privileges = bits(mem_priv),
                     .privileges_argument = 4,
                     .triplet_argument = 3,
                     .zero_based = va_type == DAT_VA_TYPE_ZB,
                     .cookie = user_cookie,
                     .flags = completion_flags},
                    *context);
    });
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
                         const DAT_PVOID private_data) {
    return answer([&] {
        if (!lookup<Cr>(cr_handle)) {
            return bad_cr();
        }
        std::span<const std::byte> data;
        if (const Return rc = read_private_data(2, private_data_size, private_data,
                                                Limits::kMaxPrivateData, data)) {
            return rc;
        }
        return reject(cr_handle, data);
    });
}

DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM* comm, DAT_IA_ADDRESS_PTR addr,
                          DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE* csp_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        ServicePoint::Asked asked;
        asked.kind = Kind::csp;
        asked.evd = lookup<Evd>(evd_handle);
        if (!asked.evd) {
            return bad_request_evd();
        }
        if (!comm || !addr || !csp_handle) {
            return bad_argument(!comm ? 2 : !addr ? 3 : 5);
        }
        const int own = ia->address()->sa_family;
        if (comm->domain != own || addr->sa_family != own || comm->type != SOCK_STREAM ||
            (comm->protocol != 0 && comm->protocol != IPPROTO_TCP)) {
            return fail(Type::comm_not_supported);
        }
        asked.comm[0] = comm->domain;
        asked.comm[1] = comm->type;
        asked.comm[2] = comm->protocol;
        asked.address = addr;
        asked.qualifier = ServicePoint::port_in(*addr);
        return create_point(*ia, asked, csp_handle);
    });
}

DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask,
                         DAT_CSP_PARAM* csp_param) {
    return answer([&] {
        ServicePoint* const point = find_point(csp_handle, Kind::csp);
        if (!point) {
            return bad_handle(Sub::invalid_handle_csp);
        }
        if ((mask & ~DAT_CSP_FIELD_ALL) != 0 || !csp_param) {
            return bad_argument(csp_param ? 2 : 3);
        }
        csp_param->ia_handle = point->ia().public_handle();
        static_assert(sizeof(DAT_COMM) == sizeof point->asked().comm);
        csp_param->comm = reinterpret_cast<DAT_COMM*>(const_cast<int*>(point->asked().comm));
        csp_param->address_ptr = const_cast<sockaddr*>(point->address());
        csp_param->evd_handle = point->asked().evd->handle();
        return kSuccess;
    });
}

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle) {
    return answer([&] { return free_point(csp_handle, Kind::csp, Sub::invalid_handle_csp); });
}

DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR ia_name_a,
                                          const DAT_NAME_PTR ia_name_b,
                                          DAT_HA_RELATIONSHIP* related) {
    return answer([&] {
        if (!ia_name_a || !ia_name_b || !related) {
            return bad_argument(!ia_name_a ? 1 : !ia_name_b ? 2 : 3);
        }
        std::string first;
        std::string second;
        for (const bool thread_safe : {false, true}) {
            if (first.empty()) {
                resolve(ia_name_a, 2, 2, 0, thread_safe, first);
            }
            if (second.empty()) {
                resolve(ia_name_b, 2, 2, 0, thread_safe, second);
            }
        }
        if (first.empty() || second.empty()) {
            return fail(Type::provider_not_found, Sub::name_not_registered);
        }
        *related = first == second ? DAT_HA_TRUE : DAT_HA_FALSE;
        return kSuccess;
    });
}

} // extern "C"
