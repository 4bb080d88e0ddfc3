// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The members of structures that only uDAPL 2.0 has. May include: dat-shim, dat headers.
#include "dat-shim/ep.h"
#include "dat-shim/udat/entry.h"

#include <dat2/dat_ib_extensions.h>

#include <cstring>

namespace dat::shim::udat {
namespace {

DAT_NAMED_ATTR g_named[] = {
    {"DAT_IB_RDMA_READ", "TRUE"},       {DAT_IB_ATTR_FETCH_AND_ADD, "TRUE"},
    {DAT_IB_ATTR_CMP_AND_SWAP, "TRUE"}, {DAT_IB_ATTR_IMMED_DATA, "TRUE"},
    {DAT_IB_ATTR_UD, "FALSE"},          {DAT_IB_ATTR_COUNTERS, "TRUE"},
    {"DAT_IB_TRANSPORT_MTU", "65024"},  {"DAT_TRANSPORT", "IWARP"},
};

} // namespace

std::span<DAT_NAMED_ATTR> named_attributes() { return g_named; }

void add_own(DAT_IA_ATTR& to) {
    to.zb_supported = DAT_TRUE;
    to.extension_supported = DAT_EXTENSION_IB;
    to.extension_version = DAT_IB_EXTENSION_VERSION;
}

void add_own(DAT_PROVIDER_ATTR& to) {
    to.rdma_read_lmr_rmr_context_exposure = DAT_FALSE;
    to.rmr_scope_supported = DAT_RMR_SCOPE_PZ;
    to.is_signal_safe = DAT_FALSE;
    to.ha_supported = DAT_FALSE;
    to.ha_loadbalancing = DAT_HA_LB_NONE;
}

void add_own(Ep& ep, DAT_EP_PARAM& to) { to.comm = {ep.ia().address()->sa_family, SOCK_STREAM, 0}; }

void add_own(Cno& cno, DAT_CNO_PARAM& to) {
    const Cno::Agent agent = cno.agent();
    if (cno.has_descriptor()) {
        to.proxy_type = DAT_PROXY_TYPE_FD;
        to.proxy.fd = cno.descriptor();
    } else if (agent.function) {
        to.proxy_type = DAT_PROXY_TYPE_AGENT;
        to.proxy.agent = {agent.instance, agent.function};
    } else {
        to.proxy_type = DAT_PROXY_TYPE_NONE;
        to.proxy.agent = {nullptr, nullptr};
    }
}

// The 64 bytes behind an event of an extension.
void translate_extension(const Event::Dto& dto, DAT_EVENT& out) {
    auto& extension = reinterpret_cast<DAT_IB_EXTENSION_EVENT_DATA&>(out.event_extension_data);
    std::memset(static_cast<void*>(&extension), 0, sizeof extension);
    switch (dto.operation) {
    case Operation::fetch_add:
        extension.type = DAT_IB_FETCH_AND_ADD;
        break;
    case Operation::compare_swap:
        extension.type = DAT_IB_CMP_AND_SWAP;
        break;
    case Operation::write_immediate:
        extension.type = DAT_IB_RDMA_WRITE_IMMED;
        break;
    default:
        extension.type = DAT_IB_RDMA_WRITE_IMMED_DATA;
        extension.val.immed.data = dto.immediate;
        break;
    }
    extension.status = dto.status == 0 ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
}

} // namespace dat::shim::udat
