// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where the versions of uDAPL differ, for the tests of the states.
// May include: dat headers.
#ifndef DAT_TEST_SHIM_STATES_API_H
#define DAT_TEST_SHIM_STATES_API_H

#include <dat2/udat.h>

#include <cstddef>
#include <cstdint>

namespace dat::test::states {

using Segment = DAT_LMR_TRIPLET;
using Remote = DAT_RMR_TRIPLET;

inline DAT_RETURN register_memory(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void* bytes, std::size_t size,
                                  Segment& local) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = bytes;
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    local.virtual_address = reinterpret_cast<std::uintptr_t>(bytes);
    local.segment_length = static_cast<DAT_SEG_LENGTH>(size);
    return dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, size, pz, DAT_MEM_PRIV_ALL_FLAG,
                          DAT_VA_TYPE_VA, &lmr, &local.lmr_context, nullptr, nullptr, nullptr);
}

// Memory that nobody has registered.
inline Remote nowhere(std::size_t size) {
    Remote remote{};
    remote.virtual_address = 0x1000;
    remote.segment_length = static_cast<DAT_SEG_LENGTH>(size);
    remote.rmr_context = 0x12345678;
    return remote;
}

inline DAT_RETURN reject(DAT_CR_HANDLE cr) { return dat_cr_reject(cr, 0, nullptr); }

} // namespace dat::test::states

#endif
