// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Protection zones, memory regions and windows. May include: dat-shim, dat headers.
#include "dat-shim/memory.h"

#include "dat-shim/ep.h"
#include "dat-shim/udat20/entry.h"

namespace dat::shim::udat20 {
namespace {

DAT_RETURN bad_pz() { return bad_handle(Sub::invalid_handle_pz); }
DAT_RETURN bad_lmr() { return bad_handle(Sub::invalid_handle_lmr); }
DAT_RETURN bad_rmr() { return bad_handle(Sub::invalid_handle_rmr); }

// LMR-1, LMR-2
DAT_RETURN describe_region(DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION& region,
                           Lmr::Asked& asked) {
    switch (type) {
    case DAT_MEM_TYPE_VIRTUAL:
        asked.type = MemoryType::virtual_memory;
        asked.address = static_cast<std::byte*>(region.for_va);
        return DAT_SUCCESS;
    case DAT_MEM_TYPE_LMR:
        asked.type = MemoryType::lmr;
        asked.other = lookup<Lmr>(region.for_lmr_handle);
        return asked.other && &asked.other->ia() == &asked.pz->ia() ? kSuccess : bad_lmr();
    case DAT_MEM_TYPE_SHARED_VIRTUAL:
        asked.type = MemoryType::shared;
        asked.address = static_cast<std::byte*>(region.for_shared_memory.virtual_address);
        asked.cookie =
            reinterpret_cast<const std::byte*>(region.for_shared_memory.shared_memory_id);
        return DAT_SUCCESS;
    default:
        return bad_argument(2);
    }
}

DAT_REGION_DESCRIPTION region_of(const Lmr& lmr) {
    DAT_REGION_DESCRIPTION region{};
    switch (lmr.asked.type) {
    case MemoryType::lmr:
        region.for_lmr_handle = lmr.source_handle;
        break;
    case MemoryType::shared:
        region.for_shared_memory.virtual_address = lmr.asked.address;
        region.for_shared_memory.shared_memory_id =
            reinterpret_cast<DAT_LMR_COOKIE>(const_cast<std::byte*>(lmr.cookie.data()));
        break;
    default:
        region.for_va = lmr.asked.address;
        break;
    }
    return region;
}

// LMR-8: nothing has to be done but to look.
DAT_RETURN sync(DAT_IA_HANDLE handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
    Ia* const ia = find_ia(handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if (!segments && count > 0) {
        return bad_argument(2);
    }
    for (DAT_VLEN i = 0; i < count; ++i) {
        const LmrTable::Entry* const entry = ia->lmrs().find(segments[i].lmr_context);
        const DAT_VADDR first = segments[i].virtual_address;
        if (segments[i].segment_length != 0 &&
            (!entry || first < entry->first || first > entry->last ||
             segments[i].segment_length > entry->last - first)) {
            return bad_argument(2);
        }
    }
    return DAT_SUCCESS;
}

// RMR-8
DAT_RETURN check_bind(const Lmr* lmr, const Rmr& rmr, const DAT_LMR_TRIPLET& triplet,
                      std::uint32_t privileges) {
    constexpr std::uint32_t kRights = privilege::kAll;
    if ((privileges & ~kRights) != 0) {
        return bad_argument(4);
    }
    if (!lmr || lmr->lmr_context() != triplet.lmr_context) {
        return lmr ? bad_argument(3) : bad_lmr();
    }
    if (lmr->asked.pz != &rmr.pz) {
        return fail(Type::protection_violation);
    }
    const bool reads = (privileges & privilege::kRemoteRead) != 0;
    const bool writes = (privileges & privilege::kRemoteWrite) != 0;
    if ((reads && (lmr->asked.privileges & privilege::kLocalRead) == 0) ||
        (writes && (lmr->asked.privileges & privilege::kLocalWrite) == 0)) {
        return fail(Type::privileges_violation,
                    reads ? Sub::privileges_rdma_read : Sub::privileges_rdma_write);
    }
    iovec memory;
    return check_segment(lmr->ia().lmrs(), &rmr.pz, 0, triplet, memory);
}

} // namespace
} // namespace dat::shim::udat20

using namespace dat::shim;
using namespace dat::shim::udat20;

extern "C" {

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* pz_handle) {
    Ia* const ia = find_ia(ia_handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if (!pz_handle) {
        return bad_argument(2);
    }
    return guarded([&] {
        Pz* pz = nullptr;
        const Return rc = Pz::create(*ia, pz);
        *pz_handle = pz->handle();
        return rc;
    });
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* pz_param) {
    const Pz* const pz = lookup<Pz>(pz_handle);
    if (!pz) {
        return bad_pz();
    }
    if ((mask & ~DAT_PZ_FIELD_ALL) != 0 || !pz_param) {
        return bad_argument(pz_param ? 2 : 3);
    }
    pz_param->ia_handle = pz->ia().public_handle();
    return DAT_SUCCESS;
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle) {
    Pz* const pz = lookup<Pz>(pz_handle);
    return pz ? guarded([&] { return pz->free(); }) : bad_pz();
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
                          DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
                          DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
                          DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr_handle,
                          DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                          DAT_VLEN* registered_length, DAT_VADDR* registered_address) {
    Ia* const ia = find_ia(ia_handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    Lmr::Asked asked{};
    asked.pz = lookup<Pz>(pz_handle);
    if (!asked.pz || &asked.pz->ia() != ia) {
        return bad_pz();
    }
    asked.length = length;
    asked.privileges = static_cast<std::uint32_t>(privileges);
    asked.zero_based = va_type == DAT_VA_TYPE_ZB;
    if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB) {
        return bad_argument(7);
    }
    if (const DAT_RETURN rc = describe_region(mem_type, region_description, asked)) {
        return rc;
    }
    if (!lmr_handle) {
        return bad_argument(8);
    }
    return guarded([&] {
        Lmr* lmr = nullptr;
        if (const Return rc = Lmr::create(*ia, asked, lmr)) {
            return rc;
        }
        *lmr_handle = lmr->handle();
        if (lmr_context) {
            *lmr_context = lmr->lmr_context();
        }
        if (rmr_context) {
            *rmr_context = lmr->rmr_context();
        }
        if (registered_length) {
            *registered_length = lmr->asked.length;
        }
        if (registered_address) {
            *registered_address = lmr->first();
        }
        return kSuccess;
    });
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask,
                         DAT_LMR_PARAM* lmr_param) {
    const Lmr* const lmr = lookup<Lmr>(lmr_handle);
    if (!lmr) {
        return bad_lmr();
    }
    if ((mask & ~DAT_LMR_FIELD_ALL) != 0 || !lmr_param) {
        return bad_argument(lmr_param ? 2 : 3);
    }
    lmr_param->ia_handle = lmr->ia().public_handle();
    lmr_param->mem_type = static_cast<DAT_MEM_TYPE>(lmr->asked.type);
    lmr_param->region_desc = region_of(*lmr);
    lmr_param->length = lmr->asked.length;
    lmr_param->pz_handle = lmr->asked.pz->handle();
    lmr_param->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(lmr->asked.privileges);
    lmr_param->va_type = lmr->asked.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
    lmr_param->lmr_context = lmr->lmr_context();
    lmr_param->rmr_context = lmr->rmr_context();
    lmr_param->registered_size = lmr->asked.length;
    lmr_param->registered_address = lmr->first();
    return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle) {
    Lmr* const lmr = lookup<Lmr>(lmr_handle);
    return lmr ? guarded([&] { return lmr->free(); }) : bad_lmr();
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                  DAT_VLEN num_segments) {
    return sync(ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                   DAT_VLEN num_segments) {
    return sync(ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr_handle) {
    Pz* const pz = lookup<Pz>(pz_handle);
    if (!pz) {
        return bad_pz();
    }
    if (!rmr_handle) {
        return bad_argument(2);
    }
    return guarded([&] {
        Rmr* rmr = nullptr;
        const Return rc = Rmr::create(*pz, rmr);
        if (rc == kSuccess) {
            *rmr_handle = rmr->handle();
        }
        return rc;
    });
}

// The scope of a window is its zone.
DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE*) {
    return lookup<Pz>(pz_handle) ? fail(Type::model_not_supported) : bad_pz();
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask,
                         DAT_RMR_PARAM* rmr_param) {
    const Rmr* const rmr = lookup<Rmr>(rmr_handle);
    if (!rmr) {
        return bad_rmr();
    }
    if ((mask & ~DAT_RMR_FIELD_ALL) != 0 || !rmr_param) {
        return bad_argument(rmr_param ? 2 : 3);
    }
    const Rmr::Bound& bound = rmr->bound;
    rmr_param->ia_handle = rmr->ia().public_handle();
    rmr_param->pz_handle = rmr->pz.handle();
    rmr_param->lmr_triplet = {bound.address, static_cast<DAT_SEG_LENGTH>(bound.length),
                              bound.lmr_context};
    rmr_param->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(bound.privileges);
    rmr_param->rmr_context = rmr->rmr_context();
    rmr_param->rmr_scope = DAT_RMR_SCOPE_PZ;
    rmr_param->va_type = bound.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
    return DAT_SUCCESS;
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
                        const DAT_LMR_TRIPLET* lmr_triplet, DAT_MEM_PRIV_FLAGS mem_priv,
                        DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
                        DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT* context) {
    Rmr* const rmr = lookup<Rmr>(rmr_handle);
    if (!rmr) {
        return bad_rmr();
    }
    Ep* const ep = lookup<Ep>(ep_handle);
    if (!ep) {
        return bad_handle(Sub::invalid_handle_ep);
    }
    if (!lmr_triplet || !context) {
        return bad_argument(lmr_triplet ? 9 : 3);
    }
    if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB) {
        return bad_argument(5);
    }
    const auto privileges = static_cast<std::uint32_t>(mem_priv);
    Rmr::Bound what;
    if (lmr_triplet->segment_length > 0) { // else RMR-7
        what.lmr = lookup<Lmr>(lmr_handle);
        if (const DAT_RETURN rc = check_bind(what.lmr, *rmr, *lmr_triplet, privileges)) {
            return rc;
        }
        what.lmr_context = lmr_triplet->lmr_context;
        what.address = lmr_triplet->virtual_address;
        what.length = lmr_triplet->segment_length;
        what.privileges = privileges;
        what.zero_based = va_type == DAT_VA_TYPE_ZB;
    }
    return guarded([&] {
        std::uint32_t key = 0;
        const Return rc = ep->bind(*rmr, what, user_cookie.as_64,
                                   static_cast<std::uint32_t>(completion_flags), key);
        if (rc == kSuccess) {
            *context = key;
        }
        return rc;
    });
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle) {
    Rmr* const rmr = lookup<Rmr>(rmr_handle);
    return rmr ? guarded([&] { return rmr->free(); }) : bad_rmr();
}

} // extern "C"
