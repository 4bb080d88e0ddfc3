// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The table behind each handle, for objects that were compiled with dat_redirection.h
// (ABI-D1). This library is no provider for a genuine libdat.
#include "dat-shim/udat/provider_table.h"

namespace dat::shim::udat {
namespace {

// ABI-D5. Relaxed ordering means nothing here.
DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async,
                   DAT_IA_HANDLE* ia, DAT_BOOLEAN) {
    return dat_ia_open(name, qlen, async, ia);
}

} // namespace

constinit const DAT_PROVIDER provider_table = [] {
    DAT_PROVIDER table = common_table();
    table.ia_open_func = ia_open;
    return table;
}();

} // namespace dat::shim::udat
