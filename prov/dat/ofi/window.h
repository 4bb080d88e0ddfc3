// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory windows (RMR).
#ifndef DAT_OFI_WINDOW_H
#define DAT_OFI_WINDOW_H

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

namespace dat::ofi {

// window() of fi_ext_dat.h.
int open_window(fid_domain* domain, const std::uint8_t* key, std::size_t size, fid_mr** window,
                void* context);

} // namespace dat::ofi

#endif
