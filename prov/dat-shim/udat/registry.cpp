// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The registry as programs and providers see it (REG-1..REG-5). Providers of others can be
// entered and listed, and are told apart; they are not opened.
#include "dat-shim/registry.h"

#include "dat-shim/udat/entry.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace dat::shim::udat {
namespace {

struct Registered {
    Provider* provider;
    DAT_PROVIDER_INFO info;
};

constinit std::mutex g_mutex;

// Guarded by g_mutex; never destroyed, since a program may call from anywhere.
std::vector<Registered>& registered() {
    static auto& list = *new std::vector<Registered>;
    return list;
}

bool same(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) {
    return std::strncmp(a.ia_name, b.ia_name, sizeof a.ia_name) == 0 &&
           a.dapl_version_major == b.dapl_version_major &&
           a.dapl_version_minor == b.dapl_version_minor && a.is_thread_safe == b.is_thread_safe;
}

DAT_PROVIDER_INFO info_of(const Name& name) {
    DAT_PROVIDER_INFO info{};
    std::strncpy(info.ia_name, name.name.c_str(), sizeof info.ia_name - 1);
    info.dapl_version_major = name.major;
    info.dapl_version_minor = name.minor;
    info.is_thread_safe = name.thread_safe ? DAT_TRUE : DAT_FALSE;
    return info;
}

std::vector<DAT_PROVIDER_INFO> all() {
    std::vector<DAT_PROVIDER_INFO> infos;
    for (const Name& name : list_names(DAT_VERSION_MAJOR)) {
        infos.push_back(info_of(name));
    }
    const std::lock_guard lock(g_mutex);
    for (const Registered& one : registered()) {
        infos.push_back(one.info);
    }
    return infos;
}

} // namespace
} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT* entries_returned,
                                       DAT_PROVIDER_INFO* dat_provider_list[]) {
    return answer([&] {
        if (!entries_returned || max_to_return < 0) {
            return bad_argument(entries_returned ? 1 : 2);
        }
        std::vector<DAT_PROVIDER_INFO> infos = all();
        if (max_to_return == 0) { // REG-5: how many are there?
            *entries_returned = static_cast<DAT_COUNT>(infos.size());
            return bad_argument(1);
        }
        infos.resize(std::min(infos.size(), static_cast<std::size_t>(max_to_return)));
        if (!dat_provider_list || std::find(dat_provider_list, dat_provider_list + infos.size(),
                                            nullptr) != dat_provider_list + infos.size()) {
            return bad_argument(3);
        }
        for (std::size_t i = 0; i < infos.size(); ++i) {
            *dat_provider_list[i] = infos[i];
        }
        *entries_returned = static_cast<DAT_COUNT>(infos.size());
        return kSuccess;
    });
}

DAT_RETURN dat_registry_add_provider(Provider* provider, const DAT_PROVIDER_INFO* provider_info) {
    return answer([&] {
        if (!provider || !provider_info) {
            return bad_argument(provider ? 2 : 1);
        }
        const std::lock_guard lock(g_mutex);
        for (const Registered& one : registered()) {
            if (same(one.info, *provider_info)) { // REG-4
                return fail(Type::provider_already_registered);
            }
        }
        registered().push_back({provider, *provider_info});
        return kSuccess;
    });
}

DAT_RETURN dat_registry_remove_provider(Provider* provider,
                                        const DAT_PROVIDER_INFO* provider_info) {
    return answer([&] {
        if (!provider || !provider_info) {
            return bad_argument(provider ? 2 : 1);
        }
        const std::lock_guard lock(g_mutex);
        const auto removed = std::erase_if(registered(), [&](const Registered& one) {
            return one.provider == provider && same(one.info, *provider_info);
        });
        return removed ? kSuccess : bad_argument(2);
    });
}

DAT_SHIM_EXPORT(dat_registry_list_providers);
DAT_SHIM_EXPORT(dat_registry_add_provider);
DAT_SHIM_EXPORT(dat_registry_remove_provider);

} // extern "C"
