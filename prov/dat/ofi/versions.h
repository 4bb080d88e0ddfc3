// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One binary for libfabric 1.17 and later: what programs and libraries that are newer than
// the headers may pass.
#ifndef DAT_OFI_VERSIONS_H
#define DAT_OFI_VERSIONS_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::ofi {

// The number of an enumerator that a program chose. It may be one that these headers do not
// know, which C++ does not let be read as a value of the enumeration.
template <class Enumeration> std::uint32_t number_of(const Enumeration& value) {
    static_assert(sizeof(Enumeration) == sizeof(std::uint32_t));
    std::uint32_t number;
    std::memcpy(&number, &value, sizeof number);
    return number;
}

// Names that libfabric 2.x has declared obsolete.
constexpr int kMrUnspecified = 0;
constexpr int kMrBasic = 1;
constexpr int kMrScalable = 2;
constexpr std::uint64_t kOrderStrict = 0x1ff;
constexpr std::uint64_t kOrderData = std::uint64_t{1} << 16;
#if FI_MAJOR_VERSION == 1
static_assert(kMrUnspecified == FI_MR_UNSPEC && kMrBasic == FI_MR_BASIC &&
              kMrScalable == FI_MR_SCALABLE);
static_assert(kOrderStrict == FI_ORDER_STRICT && kOrderData == FI_ORDER_DATA);
#endif

// FI_PROGRESS_CONTROL_UNIFIED of libfabric 2.x: manual progress, of control and data by one
// thread at a time. It stands in either member.
constexpr std::uint32_t kControlUnified = 3;
#if FI_MAJOR_VERSION > 1
static_assert(kControlUnified == FI_PROGRESS_CONTROL_UNIFIED);
#endif

// max_ep_auth_key, behind what libfabric 1.17 has of the structure; 0 for programs of API
// versions that have no such member.
inline std::uint64_t keys_of_endpoint(const fi_domain_attr& attr, std::uint32_t version) {
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 20
    return FI_VERSION_LT(version, FI_VERSION(1, 20)) ? 0 : attr.max_ep_auth_key;
#else
    std::uint64_t keys = 0;
    if (!FI_VERSION_LT(version, FI_VERSION(1, 20))) {
        std::memcpy(&keys, reinterpret_cast<const std::byte*>(&attr) + sizeof attr, sizeof keys);
    }
    return keys;
#endif
}

// What each version has of the entry for an error of a completion queue; nothing behind it
// is written.
constexpr std::size_t kErrorEntrySize = 80;
static_assert(offsetof(fi_cq_err_entry, err_data_size) + sizeof(std::size_t) == kErrorEntrySize);

} // namespace dat::ofi

#endif
