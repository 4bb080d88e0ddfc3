// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An alias of an endpoint, fi_ep_alias(3): the same endpoint, but for the flags of calls that are
// given none.
#ifndef DAT_OFI_ALIAS_H
#define DAT_OFI_ALIAS_H

#include "ofi/ep.h"

#include <cstdint>

namespace dat::ofi {

// `flags` as are_default_flags() has them, or 0: those of the endpoint. 0 or -FI_E*. The endpoint
// is not closed before its aliases are.
int open_alias(Endpoint& ep, std::uint64_t flags, fid** alias);

} // namespace dat::ofi

#endif
