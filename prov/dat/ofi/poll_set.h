// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The poll set: which of many completion queues and counters have something, fi_poll(3).
#ifndef DAT_OFI_POLL_SET_H
#define DAT_OFI_POLL_SET_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

namespace dat::ofi {

// fi_poll_open(3). Its calls may come from any thread, also at once, and do not block.
int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** set);

} // namespace dat::ofi

#endif
