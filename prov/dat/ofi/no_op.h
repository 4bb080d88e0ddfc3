// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Functions for the slots of libfabric's tables that an object does not offer:
// every slot is filled, so that no caller needs to test it.
#ifndef DAT_OFI_NO_OP_H
#define DAT_OFI_NO_OP_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

namespace dat::ofi {

void log_not_enabled();

template <class Slot> struct Not;
template <class Result, class... Args> struct Not<Result (*)(Args...)> {
    static Result offered(Args...) { return -FI_ENOSYS; }
    static Result before_enable(Args...) {
        log_not_enabled();
        return -FI_EOPBADSTATE;
    }
};

// Tables of which an endpoint offers nothing.
extern fi_ops_tagged no_tagged_ops;
extern fi_ops_atomic no_atomic_ops;
extern fi_ops_collective no_collective_ops;
extern fi_ops_cm no_cm_ops;
extern fi_ops_rma no_rma_ops;

} // namespace dat::ofi

// The function for `slot` of `table`: -FI_ENOSYS.
#define DAT_NOT_OFFERED(table, slot) ::dat::ofi::Not<decltype(table::slot)>::offered

namespace dat::ofi {

// The table of an object that can be closed, and no more.
constexpr fi_ops fid_ops(int (*close)(fid_t)) {
    return {
        .size = sizeof(fi_ops),
        .close = close,
        .bind = DAT_NOT_OFFERED(fi_ops, bind),
        .control = DAT_NOT_OFFERED(fi_ops, control),
        .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
        .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
        .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
    };
}

} // namespace dat::ofi

// The function for `slot` of `table`, of an endpoint that is not enabled yet.
#define DAT_NOT_ENABLED(table, slot) ::dat::ofi::Not<decltype(table::slot)>::before_enable

#endif
