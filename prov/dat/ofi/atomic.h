// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which atomics there are, for endpoints and fi_query_atomic(3).
#ifndef DAT_OFI_ATOMIC_H
#define DAT_OFI_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

#include <cstdint>

namespace dat::ofi {

// fi_query_atomic(3). `flags`: 0 for fi_atomic(3), FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC.
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op op, fi_atomic_attr* attr,
                 std::uint64_t flags);

} // namespace dat::ofi

#endif
