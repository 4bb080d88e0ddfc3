// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory regions. May include: ofi, libfabric.
#ifndef DAT_OFI_MR_H
#define DAT_OFI_MR_H

#include "soft/mr_table.h"

#include <rdma/fi_domain.h>

namespace dat::ofi {

class Domain;

// What the domain's table knows of a region; nullptr: it is none of that domain. Under
// the gate, and valid until something is registered.
const soft::Region* region_of(fid_mr* mr, Domain& domain);

// fi_mr_reg(3), fi_mr_regv(3), fi_mr_regattr(3): the `mr` slot of a domain.
extern fi_ops_mr mr_ops;

} // namespace dat::ofi

#endif
