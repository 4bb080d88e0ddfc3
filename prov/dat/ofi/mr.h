// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory regions.
#ifndef DAT_OFI_MR_H
#define DAT_OFI_MR_H

#include "engine/mr_table.h"

#include <rdma/fi_domain.h>

#include <cstdint>

namespace dat::ofi {

class Domain;

// What is known of a region; nullptr: it is none of that domain. Under the lock, and valid
// until something is registered.
const engine::Region* region_of(fid_mr* mr, Domain& domain);

// Its key in the domain's table, from which windows are cut. One of a region that peers do not
// use, and which has no key otherwise, is of the table's choice, and is taken here. Under the lock.
// Throws std::bad_alloc.
std::uint32_t table_key_of(fid_mr* mr);

// fi_mr_reg(3), fi_mr_regv(3), fi_mr_regattr(3): the `mr` slot of a domain.
extern fi_ops_mr mr_ops;

} // namespace dat::ofi

#endif
