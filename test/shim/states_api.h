// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where the versions of uDAPL differ, for the tests of the states; see api.h.
#ifndef DAT_TEST_SHIM_STATES_API_H
#define DAT_TEST_SHIM_STATES_API_H

#include "api.h"

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
    local = local_range(reinterpret_cast<std::uintptr_t>(bytes), size, 0);
    return lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, size, pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
                      &local.lmr_context, nullptr, nullptr, nullptr);
}

// Memory that nobody has registered.
inline Remote nowhere(std::size_t size) { return remote_range(0x1000, size, 0x12345678); }

inline DAT_RETURN reject(DAT_CR_HANDLE cr) { return cr_reject(cr); }

} // namespace dat::test::states

#endif
