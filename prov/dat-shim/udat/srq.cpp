// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Shared receive queues.
#include "dat-shim/srq.h"

#include "dat-shim/udat/entry.h"

namespace dat::shim::udat {
namespace {

Return bad_srq() { return bad_handle(Sub::invalid_handle_srq); }

} // namespace
} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* srq_attr,
                          DAT_SRQ_HANDLE* srq_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        Pz* const pz = lookup<Pz>(pz_handle);
        if (!pz || &pz->ia() != ia) {
            return bad_pz();
        }
        if (!srq_attr || !srq_handle) {
            return bad_argument(srq_attr ? 4 : 3);
        }
        Srq* srq = nullptr;
        const Return rc = Srq::create(
            *ia, *pz, {srq_attr->max_recv_dtos, srq_attr->max_recv_iov, srq_attr->low_watermark},
            srq);
        if (rc == kSuccess) {
            *srq_handle = srq->handle();
        }
        return rc;
    });
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle) {
    return answer([&] {
        Srq* const srq = lookup<Srq>(srq_handle);
        return srq ? srq->free() : bad_srq();
    });
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
                             DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie) {
    return answer([&] {
        Srq* const srq = lookup<Srq>(srq_handle);
        return srq ? srq->post_recv(num_segments, local_iov, user_cookie.as_64) : bad_srq();
    });
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask,
                         DAT_SRQ_PARAM* srq_param) {
    return answer([&] {
        const Srq* const srq = lookup<Srq>(srq_handle);
        if (!srq) {
            return bad_srq();
        }
        if ((mask & ~DAT_SRQ_FIELD_ALL) != 0 || !srq_param) {
            return bad_argument(srq_param ? 2 : 3);
        }
        srq_param->ia_handle = srq->ia().public_handle();
        srq_param->srq_state = DAT_SRQ_STATE_OPERATIONAL;
        srq_param->pz_handle = srq->pz().handle();
        srq_param->max_recv_dtos = srq->attributes().max_recv_dtos;
        srq_param->max_recv_iov = srq->attributes().max_recv_iov;
        srq_param->low_watermark = srq->attributes().low_watermark;
        srq_param->available_dto_count = srq->available();
        srq_param->outstanding_dto_count = srq->outstanding();
        return kSuccess;
    });
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto) {
    return answer([&] {
        Srq* const srq = lookup<Srq>(srq_handle);
        return srq ? srq->resize(srq_max_recv_dto) : bad_srq();
    });
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark) {
    return answer([&] {
        Srq* const srq = lookup<Srq>(srq_handle);
        return srq ? srq->set_low_watermark(low_watermark) : bad_srq();
    });
}

DAT_SHIM_EXPORT(dat_srq_create);
DAT_SHIM_EXPORT(dat_srq_free);
DAT_SHIM_EXPORT(dat_srq_post_recv);
DAT_SHIM_EXPORT(dat_srq_query);
DAT_SHIM_EXPORT(dat_srq_resize);
DAT_SHIM_EXPORT(dat_srq_set_lw);

} // extern "C"
