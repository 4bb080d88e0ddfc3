// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See queue_ops.h.
#include "ofi/queue_ops.h"

#include "ofi/cq.h"
#include "ofi/eq.h"
#include "ofi/errors.h"

#include <rdma/fi_ext_dat.h>

namespace dat::ofi {
namespace {

int watch(fid_t queue, int fd) {
    return queue->fclass == FI_CLASS_CQ ? object_of<CompletionQueue, fid_cq>(queue).watch(fd)
                                        : object_of<EventQueue, fid_eq>(queue).watch(fd);
}

int tell(fid_t queue, int fd) {
    return no_throw([&] {
        return queue->fclass == FI_CLASS_CQ ? object_of<CompletionQueue, fid_cq>(queue).tell(fd)
                                            : object_of<EventQueue, fid_eq>(queue).tell(fd);
    });
}

std::size_t descriptors(fid_t queue, int* fds, std::size_t count, std::uint64_t* changes) {
    if (queue->fclass == FI_CLASS_EQ) {
        return object_of<EventQueue, fid_eq>(queue).descriptors(fds, count, changes);
    }
    if (count > 0) {
        fds[0] = object_of<CompletionQueue, fid_cq>(queue).domain().engine().wait_fd();
    }
    if (changes) {
        *changes = 1;
    }
    return 1;
}

int arrivals(fid_t queue) {
    return queue->fclass == FI_CLASS_CQ ? object_of<CompletionQueue, fid_cq>(queue).arrivals() : -1;
}

int arrived(fid_t queue) {
    if (arrivals(queue) < 0) {
        return -FI_EINVAL;
    }
    object_of<CompletionQueue, fid_cq>(queue).arrived();
    return 0;
}

fi_dat_ops_queue g_queue_ops = {
    .size = sizeof(fi_dat_ops_queue),
    .watch = watch,
    .descriptors = descriptors,
    .arrivals = arrivals,
    .arrived = arrived,
    .tell = tell,
};

} // namespace

int open_queue_ops(fid_t, const char* name, std::uint64_t flags, void** ops, void*) {
    return give_table(g_queue_ops, FI_DAT_QUEUE_OPS, name, flags, ops);
}

} // namespace dat::ofi
