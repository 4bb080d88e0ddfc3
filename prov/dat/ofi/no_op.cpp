// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See no_op.h.
#include "ofi/no_op.h"

#include "base/log.h"

namespace dat::ofi {

void log_not_enabled() {
    DAT_WARN(ep_data, "an operation is posted on an endpoint that is not enabled; call fi_enable() "
                      "first");
}

#define DAT_NO(slot) .slot = DAT_NOT_OFFERED(fi_ops_tagged, slot)
fi_ops_tagged no_tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    DAT_NO(recv),
    DAT_NO(recvv),
    DAT_NO(recvmsg),
    DAT_NO(send),
    DAT_NO(sendv),
    DAT_NO(sendmsg),
    DAT_NO(inject),
    DAT_NO(senddata),
    DAT_NO(injectdata),
};
#undef DAT_NO

#define DAT_NO(slot) .slot = DAT_NOT_OFFERED(fi_ops_atomic, slot)
fi_ops_atomic no_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    DAT_NO(write),
    DAT_NO(writev),
    DAT_NO(writemsg),
    DAT_NO(inject),
    DAT_NO(readwrite),
    DAT_NO(readwritev),
    DAT_NO(readwritemsg),
    DAT_NO(compwrite),
    DAT_NO(compwritev),
    DAT_NO(compwritemsg),
    DAT_NO(writevalid),
    DAT_NO(readwritevalid),
    DAT_NO(compwritevalid),
};
#undef DAT_NO

#define DAT_NO(slot) .slot = DAT_NOT_OFFERED(fi_ops_cm, slot)
fi_ops_cm no_cm_ops = {
    .size = sizeof(fi_ops_cm),
    DAT_NO(setname),
    DAT_NO(getname),
    DAT_NO(getpeer),
    DAT_NO(connect),
    DAT_NO(listen),
    DAT_NO(accept),
    DAT_NO(reject),
    DAT_NO(shutdown),
    DAT_NO(join),
};
#undef DAT_NO

#define DAT_NO(slot) .slot = DAT_NOT_OFFERED(fi_ops_rma, slot)
fi_ops_rma no_rma_ops = {
    .size = sizeof(fi_ops_rma),
    DAT_NO(read),
    DAT_NO(readv),
    DAT_NO(readmsg),
    DAT_NO(write),
    DAT_NO(writev),
    DAT_NO(writemsg),
    DAT_NO(inject),
    DAT_NO(writedata),
    DAT_NO(injectdata),
};
#undef DAT_NO

#define DAT_NO(slot) .slot = DAT_NOT_OFFERED(fi_ops_collective, slot)
fi_ops_collective no_collective_ops = {
    .size = sizeof(fi_ops_collective),
    DAT_NO(barrier),
    DAT_NO(broadcast),
    DAT_NO(alltoall),
    DAT_NO(allreduce),
    DAT_NO(allgather),
    DAT_NO(reduce_scatter),
    DAT_NO(reduce),
    DAT_NO(scatter),
    DAT_NO(gather),
    DAT_NO(msg),
    DAT_NO(barrier2),
};
#undef DAT_NO

} // namespace dat::ofi
