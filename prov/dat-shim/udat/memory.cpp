// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Protection zones, memory regions and windows.
#include "dat-shim/memory.h"

#include "dat-shim/ep.h"
#include "dat-shim/udat/entry.h"

namespace dat::shim::udat {
namespace {

// LMR-1, LMR-2
Return describe_region(DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION& region, Lmr::Asked& asked) {
    if (is_strongly_ordered(type)) { // as all memory is here
        asked.type = MemoryType::strongly_ordered;
        asked.address = static_cast<std::byte*>(region.for_va);
        return kSuccess;
    }
    switch (type) {
    case DAT_MEM_TYPE_VIRTUAL:
        asked.type = MemoryType::virtual_memory;
        asked.address = static_cast<std::byte*>(region.for_va);
        return kSuccess;
    case DAT_MEM_TYPE_LMR:
        asked.type = MemoryType::lmr;
        asked.other = lookup<Lmr>(region.for_lmr_handle);
        return asked.other && &asked.other->ia() == &asked.pz->ia() ? kSuccess : bad_lmr();
    case DAT_MEM_TYPE_SHARED_VIRTUAL:
        asked.type = MemoryType::shared;
        asked.address = static_cast<std::byte*>(region.for_shared_memory.virtual_address);
        asked.cookie =
            reinterpret_cast<const std::byte*>(region.for_shared_memory.shared_memory_id);
        return kSuccess;
    default:
        return because(bad_argument(2), "a memory type of %d", static_cast<int>(type));
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
Return sync(DAT_IA_HANDLE handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
    Ia* const ia = find_ia(handle);
    if (!ia) {
        return bad_ia();
    }
    if (!segments && count > 0) {
        return bad_argument(2);
    }
    for (DAT_VLEN i = 0; i < count; ++i) {
        const LmrTable::Entry* const entry = ia->lmrs().find(segments[i].lmr_context);
        const DAT_VADDR first = segments[i].virtual_address;
        if (segments[i].segment_length != 0 && (!entry || entry->end - first > entry->length ||
                                                segments[i].segment_length > entry->end - first)) {
            return bad_argument(2);
        }
    }
    return kSuccess;
}

// RMR-8
Return check_bind(const Rmr& rmr, const BindAsked& asked) {
    const std::uint32_t privileges = asked.privileges;
    if ((privileges & ~kPrivileges) != 0) {
        return bad_argument(asked.privileges_argument);
    }
    if (!asked.lmr) {
        return bad_lmr();
    }
    const Lmr& lmr = *asked.lmr;
    if (lmr.lmr_context() != asked.triplet.lmr_context) {
        return bad_argument(asked.triplet_argument);
    }
    if (lmr.asked.pz != &rmr.pz) {
        return fail(Type::protection_violation);
    }
    const bool reads = (privileges & privilege::kRemoteRead) != 0;
    const bool writes = (privileges & privilege::kRemoteWrite) != 0;
    if ((reads && (lmr.asked.privileges & privilege::kLocalRead) == 0) ||
        (writes && (lmr.asked.privileges & privilege::kLocalWrite) == 0)) {
        return fail(Type::privileges_violation,
                    reads ? Sub::privileges_rdma_read : Sub::privileges_rdma_write);
    }
    iovec memory;
    return check_segment(lmr.ia().lmrs(), &rmr.pz, 0, asked.triplet, memory);
}

} // namespace

Return create_lmr(Ia& ia, DAT_PZ_HANDLE pz, DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION& region,
                  Lmr::Asked asked, const LmrResults& results) {
    asked.pz = lookup<Pz>(pz);
    if (!asked.pz || &asked.pz->ia() != &ia) {
        return because(bad_pz(), "%p is no handle of a zone of this IA", pz);
    }
    if ((asked.privileges & ~kPrivileges) != 0) {
        return because(bad_argument(6), "privileges of 0x%x: within 0x%x", asked.privileges,
                       kPrivileges);
    }
    if (const Return rc = describe_region(type, region, asked)) {
        return rc;
    }
    if (!results.lmr) {
        return bad_argument(results.handle_argument);
    }
    Lmr* lmr = nullptr;
    if (const Return rc = Lmr::create(ia, asked, lmr)) {
        return rc;
    }
    *results.lmr = lmr->handle();
    if (results.lmr_context) {
        *results.lmr_context = lmr->lmr_context();
    }
    if (results.rmr_context) {
        *results.rmr_context = lmr->rmr_context();
    }
    if (results.length) {
        *results.length = lmr->asked.length;
    }
    if (results.address) {
        *results.address = lmr->first();
    }
    return kSuccess;
}

Return bind(Rmr& rmr, Ep& ep, const BindAsked& asked, DAT_RMR_CONTEXT& context) {
    Rmr::Bound what;
    if (asked.triplet.segment_length > 0) { // else RMR-7
        if (const Return rc = check_bind(rmr, asked)) {
            return rc;
        }
        what.lmr = asked.lmr;
        what.lmr_context = asked.triplet.lmr_context;
        what.address = asked.triplet.virtual_address;
        what.length = asked.triplet.segment_length;
        what.privileges = asked.privileges;
        what.zero_based = asked.zero_based;
    }
    std::uint32_t key = 0;
    const Return rc = ep.bind(rmr, what, asked.cookie.as_64, bits(asked.flags), key);
    if (rc == kSuccess) {
        context = key;
    }
    return rc;
}

} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* pz_handle) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        if (!pz_handle) {
            return bad_argument(2);
        }
        Pz* pz = nullptr;
        const Return rc = Pz::create(*ia, pz);
        *pz_handle = pz->handle();
        return rc;
    });
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* pz_param) {
    return answer([&] {
        const Pz* const pz = lookup<Pz>(pz_handle);
        if (!pz) {
            return bad_pz();
        }
        if ((mask & ~DAT_PZ_FIELD_ALL) != 0 || !pz_param) {
            return bad_argument(pz_param ? 2 : 3);
        }
        pz_param->ia_handle = pz->ia().public_handle();
        return kSuccess;
    });
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle) {
    return answer([&] {
        Pz* const pz = lookup<Pz>(pz_handle);
        return pz ? pz->free() : bad_pz();
    });
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask,
                         DAT_LMR_PARAM* lmr_param) {
    return answer([&] {
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
        lmr_param->lmr_context = lmr->lmr_context();
        lmr_param->rmr_context = lmr->rmr_context();
        lmr_param->registered_size = lmr->asked.length;
        lmr_param->registered_address = lmr->first();
        add_own(*lmr, *lmr_param);
        return kSuccess;
    });
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle) {
    return answer([&] {
        Lmr* const lmr = lookup<Lmr>(lmr_handle);
        return lmr ? lmr->free() : bad_lmr();
    });
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                  DAT_VLEN num_segments) {
    return answer([&] { return sync(ia_handle, local_segments, num_segments); });
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                   DAT_VLEN num_segments) {
    return answer([&] { return sync(ia_handle, local_segments, num_segments); });
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr_handle) {
    return answer([&] {
        Pz* const pz = lookup<Pz>(pz_handle);
        if (!pz) {
            return bad_pz();
        }
        if (!rmr_handle) {
            return bad_argument(2);
        }
        Rmr* rmr = nullptr;
        const Return rc = Rmr::create(*pz, rmr);
        if (rc == kSuccess) {
            *rmr_handle = rmr->handle();
        }
        return rc;
    });
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask,
                         DAT_RMR_PARAM* rmr_param) {
    return answer([&] {
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
        DAT_LMR_TRIPLET& triplet = rmr_param->lmr_triplet;
        triplet.lmr_context = bound.lmr_context;
        triplet.virtual_address = bound.address;
        triplet.segment_length = static_cast<decltype(triplet.segment_length)>(bound.length);
        rmr_param->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(bound.privileges);
        rmr_param->rmr_context = rmr->rmr_context();
        add_own(*rmr, *rmr_param);
        return kSuccess;
    });
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle) {
    return answer([&] {
        Rmr* const rmr = lookup<Rmr>(rmr_handle);
        return rmr ? rmr->free() : bad_rmr();
    });
}

DAT_SHIM_EXPORT(dat_pz_create);
DAT_SHIM_EXPORT(dat_pz_query);
DAT_SHIM_EXPORT(dat_pz_free);
DAT_SHIM_EXPORT(dat_lmr_query);
DAT_SHIM_EXPORT(dat_lmr_free);
DAT_SHIM_EXPORT(dat_lmr_sync_rdma_read);
DAT_SHIM_EXPORT(dat_lmr_sync_rdma_write);
DAT_SHIM_EXPORT(dat_rmr_create);
DAT_SHIM_EXPORT(dat_rmr_query);
DAT_SHIM_EXPORT(dat_rmr_free);

} // extern "C"
