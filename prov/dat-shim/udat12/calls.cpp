// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The calls that uDAPL 1.2 has with other parameters than 2.0.
#include "dat-shim/udat/entry.h"

namespace dat::shim::udat {
namespace {

DAT_NAMED_ATTR g_iwarp[] = {
    {"DAT_TRANSPORT", "IWARP"},
};
DAT_NAMED_ATTR g_infiniband[] = {
    {"DAT_TRANSPORT", "IB"},
};

} // namespace

std::span<DAT_NAMED_ATTR> named_attributes(const Abilities& can) {
    return can.iwarp ? g_iwarp : g_infiniband;
}

} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
                          DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
                          DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
                          DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context,
                          DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                          DAT_VADDR* registered_address) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        Lmr::Asked asked{};
        asked.length = length;
        asked.privileges = without_ordering(privileges);
        return create_lmr(
            *ia, pz_handle, mem_type, region_description, asked,
            {lmr_handle, lmr_context, rmr_context, registered_length, registered_address, 7});
    });
}

// The triplet says which memory it is.
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET* lmr_triplet,
                        DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
                        DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
                        DAT_RMR_CONTEXT* context) {
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
            return bad_argument(lmr_triplet ? 7 : 2);
        }
        const LmrTable::Entry* const memory = rmr->ia().lmrs().find(lmr_triplet->lmr_context);
        if (!memory && lmr_triplet->segment_length > 0) {
            return fail(Type::privileges_violation); // as of any segment
        }
        return bind(*rmr, *ep,
                    {.lmr = memory ? memory->lmr : nullptr,
                     .triplet = *lmr_triplet,
                     .privileges = without_ordering(mem_priv),
                     .privileges_argument = 3,
                     .triplet_argument = 2,
                     .zero_based = false,
                     .cookie = user_cookie,
                     .flags = completion_flags},
                    *context);
    });
}

// PD-4: without data.
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle) {
    return answer([&] { return reject(cr_handle, {}); });
}

DAT_SHIM_EXPORT(dat_lmr_create);
DAT_SHIM_EXPORT(dat_rmr_bind);
DAT_SHIM_EXPORT(dat_cr_reject);

} // extern "C"
