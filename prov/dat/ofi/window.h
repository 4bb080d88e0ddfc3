// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory windows (RMR), and the table of fi_ext_dat.h that makes them.
// May include: ofi, libfabric.
#ifndef DAT_OFI_WINDOW_H
#define DAT_OFI_WINDOW_H

#include <rdma/fi_ext_dat.h>

namespace dat::ofi {

extern fi_dat_ops_domain dat_domain_ops;

} // namespace dat::ofi

#endif
