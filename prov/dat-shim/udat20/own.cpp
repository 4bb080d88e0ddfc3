// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The members of structures that only uDAPL 2.0 has.
#include "dat-shim/ep.h"
#include "dat-shim/udat/entry.h"

#include <dat2/dat_ib_extensions.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace dat::shim::udat {
namespace {

using Named = std::array<DAT_NAMED_ATTR, 8>;

constexpr const char* word(bool yes) { return yes ? "TRUE" : "FALSE"; }

} // namespace

// A program keeps the pointers: one list for each kind of adapter stays.
std::span<DAT_NAMED_ATTR> named_attributes(const Abilities& can) {
    static std::mutex mutex;
    static std::map<std::array<std::int32_t, 4>, std::pair<std::string, Named>> lists;
    const std::lock_guard lock(mutex);
    auto& [mtu, list] = lists[{can.iwarp, can.atomics, can.immediate, can.mtu}];
    if (mtu.empty()) {
        mtu = std::to_string(can.mtu);
        list = {{
            {"DAT_IB_RDMA_READ", "TRUE"},
            {DAT_IB_ATTR_FETCH_AND_ADD, word(can.atomics)},
            {DAT_IB_ATTR_CMP_AND_SWAP, word(can.atomics)},
            {DAT_IB_ATTR_IMMED_DATA, word(can.immediate)},
            {DAT_IB_ATTR_UD, "FALSE"},
            {DAT_IB_ATTR_COUNTERS, "TRUE"}, // of which two are kept (extension.cpp)
            {"DAT_IB_TRANSPORT_MTU", mtu.c_str()},
            {"DAT_TRANSPORT", can.iwarp ? "IWARP" : "IB"},
        }};
    }
    return list;
}

void add_own(const Abilities& can, DAT_IA_ATTR& to) {
    to.zb_supported = can.zero_based ? DAT_TRUE : DAT_FALSE;
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
