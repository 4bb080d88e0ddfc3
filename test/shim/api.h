// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The version of the API that a test is compiled for, DAT_TEST_API, and the few calls and
// structures that tests of both versions need and each has otherwise.
#ifndef DAT_TEST_SHIM_API_H
#define DAT_TEST_SHIM_API_H

#if DAT_TEST_API == 20
#include <dat2/udat.h>

#include <dat2/dat_registry.h>
#elif DAT_TEST_API == 12
#include <dat/udat.h>

#include <dat/dat_registry.h>
#else
#error "DAT_TEST_API says which version of the API is tested: 12 or 20"
#endif

#include <cstdint>

namespace dat::test {

#if DAT_TEST_API == 20

inline constexpr DAT_UINT32 kOtherMajor = 1;
inline constexpr unsigned kMultipathRefused = DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;
inline constexpr bool kRspInEvent = true; // U-52

inline DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type,
                             const DAT_REGION_DESCRIPTION& region, DAT_VLEN length,
                             DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE* lmr,
                             DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                             DAT_VLEN* size, DAT_VADDR* address) {
    return dat_lmr_create(ia, type, region, length, pz, privileges, DAT_VA_TYPE_VA, lmr,
                          lmr_context, rmr_context, size, address);
}
inline DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET& piece,
                           DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                           DAT_RMR_CONTEXT* context) {
    return dat_rmr_bind(rmr, lmr, &piece, privileges, DAT_VA_TYPE_VA, ep, cookie,
                        DAT_COMPLETION_DEFAULT_FLAG, context);
}
inline DAT_RETURN cr_reject(DAT_CR_HANDLE cr) { return dat_cr_reject(cr, 0, nullptr); }
inline DAT_RMR_TRIPLET remote_range(DAT_VADDR address, DAT_VLEN length, DAT_RMR_CONTEXT context) {
    return {address, static_cast<DAT_SEG_LENGTH>(length), context};
}
inline DAT_LMR_TRIPLET local_range(DAT_VADDR address, DAT_VLEN length, DAT_LMR_CONTEXT context) {
    return {address, static_cast<DAT_SEG_LENGTH>(length), context};
}
// V2-3
#define EXPECT_OPERATION(dto, wanted) cr_assert_eq((dto).operation, wanted)

#else

inline constexpr DAT_UINT32 kOtherMajor = 2;
inline constexpr unsigned kMultipathRefused = DAT_CONNECT_MULTIPATH_FLAG;
inline constexpr bool kRspInEvent = false; // U-52

inline DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type,
                             const DAT_REGION_DESCRIPTION& region, DAT_VLEN length,
                             DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE* lmr,
                             DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                             DAT_VLEN* size, DAT_VADDR* address) {
    return dat_lmr_create(ia, type, region, length, pz, privileges, lmr, lmr_context, rmr_context,
                          size, address);
}
inline DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE, const DAT_LMR_TRIPLET& piece,
                           DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                           DAT_RMR_CONTEXT* context) {
    return dat_rmr_bind(rmr, &piece, privileges, ep, cookie, DAT_COMPLETION_DEFAULT_FLAG, context);
}
inline DAT_RETURN cr_reject(DAT_CR_HANDLE cr) { return dat_cr_reject(cr); }
inline DAT_RMR_TRIPLET remote_range(DAT_VADDR address, DAT_VLEN length, DAT_RMR_CONTEXT context) {
    return {context, 0, address, length};
}
inline DAT_LMR_TRIPLET local_range(DAT_VADDR address, DAT_VLEN length, DAT_LMR_CONTEXT context) {
    return {context, 0, address, length};
}
#define EXPECT_OPERATION(dto, wanted) static_cast<void>(dto)

#endif

} // namespace dat::test

#endif
