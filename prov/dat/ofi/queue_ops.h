// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// fi_dat_ops_queue, of completion queues and event queues.
#ifndef DAT_OFI_QUEUE_OPS_H
#define DAT_OFI_QUEUE_OPS_H

#include <rdma/fabric.h>

#include <cstdint>

namespace dat::ofi {

// fi_open_ops(3) of a queue.
int open_queue_ops(fid_t queue, const char* name, std::uint64_t flags, void** ops, void* context);

} // namespace dat::ofi

#endif
