// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// This library as a provider of a genuine libdat2, which loads it by dat.conf, calls
// dat_provider_init() and reaches everything through the table behind each handle.
#include "dat-shim/registry.h"
#include "dat-shim/udat/provider_table.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace dat::shim::udat {
namespace {

constinit std::mutex g_mutex;

// A name of dat.conf: what it said of its device, and its table, which tells a registry the
// name when the IA is closed. Neither moves nor goes: handles lead to the table.
struct Entered {
    std::string device; // empty: that of the name
    DAT_PROVIDER table;
};

// Guarded by g_mutex. Throws std::bad_alloc.
Entered& entered(const std::string& name) {
    static auto& map = *new std::map<std::string, Entered>;
    const auto [at, is_new] = map.try_emplace(name);
    if (is_new) {
        at->second.table = provider_table;
        at->second.table.device_name = at->first.c_str();
    }
    return at->second;
}

Return open_as_provider(const std::string& name, const std::string& device, const void* table,
                        DAT_COUNT qlen, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia) {
    Ia::Opening opening;
    opening.name = name;
    opening.device = device;
    opening.major = DAT_VERSION_MAJOR;
    opening.dispatch = table;
    opening.async_length = qlen;
    if (const Return rc = read_async(*async, opening)) {
        return rc;
    }
    if (opening.device.empty()) {
        if (const Return rc = resolve(name, DAT_VERSION_MAJOR, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
                                      false, opening.device)) {
            return rc;
        }
    }
    return open(opening, async, ia, false);
}

DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async,
                   DAT_IA_HANDLE* ia) {
    return answer(
        [&] {
            if (!name || !async || !ia) {
                return bad_argument(!name ? 1 : !async ? 3 : 4);
            }
            std::string device;
            const void* table = nullptr;
            {
                const std::lock_guard lock(g_mutex);
                const std::string key = name;
                const Entered& known = entered(key);
                device = known.device;
                table = &known.table;
            }
            return open_as_provider(name, device, table, qlen, async, ia);
        },
        "dat_ia_open");
}

DAT_RETURN related(DAT_IA_HANDLE, const DAT_NAME_PTR, DAT_BOOLEAN* answer) {
    return udat::answer(
        [&] {
            if (!answer) {
                return bad_argument(3);
            }
            *answer = DAT_FALSE;
            return kSuccess;
        },
        "dat_registry_providers_related");
}

// The registry that loaded this library: the first in the program, which is not this one.
template <class Function> Function* registry_call(const char* name, Function* own) {
    auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    return found ? found : own;
}

} // namespace

constinit const DAT_PROVIDER provider_table = [] {
    DAT_PROVIDER table = common_table();
    table.ia_open_func = ia_open;
    table.csp_create_func = dat_csp_create;
    table.csp_query_func = dat_csp_query;
    table.csp_free_func = dat_csp_free;
    table.ep_common_connect_func = dat_ep_common_connect;
    table.rmr_create_for_ep_func = dat_rmr_create_for_ep;
    table.ep_post_send_with_invalidate_func = dat_ep_post_send_with_invalidate;
    table.ep_post_rdma_read_to_rmr_func = dat_ep_post_rdma_read_to_rmr;
    table.cno_fd_create_func = dat_cno_fd_create;
    table.cno_trigger_func = dat_cno_trigger;
    table.ia_ha_related_func = related;
    table.handle_extendedop_func = extended_op;
    return table;
}();

} // namespace dat::shim::udat

using namespace dat::shim::udat;

extern "C" {

// REG-2. `instance_data`: the parameters in dat.conf.
void dat_provider_init(const DAT_PROVIDER_INFO* provider_info, const char* instance_data) {
    const DAT_PROVIDER* table = nullptr;
    answer([&] {
        const std::lock_guard lock(g_mutex);
        Entered& known = entered(provider_info->ia_name);
        known.device = dat::shim::device_of(instance_data ? instance_data : "");
        table = &known.table;
        return dat::shim::kSuccess;
    });
    if (table) {
        registry_call("dat_registry_add_provider", dat_registry_add_provider)(table, provider_info);
    }
}

// REG-3
void dat_provider_fini(const DAT_PROVIDER_INFO* provider_info) {
    const DAT_PROVIDER* table = nullptr;
    answer([&] {
        const std::lock_guard lock(g_mutex);
        table = &entered(provider_info->ia_name).table;
        return dat::shim::kSuccess;
    });
    if (table) {
        registry_call("dat_registry_remove_provider", dat_registry_remove_provider)(table,
                                                                                    provider_info);
    }
}

} // extern "C"
