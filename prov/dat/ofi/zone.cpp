// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See zone.h.
#include "ofi/zone.h"

#include "base/log.h"

namespace dat::ofi {

ZoneHandle Zones::find(const char* call, const std::uint8_t* key, std::size_t size,
                       const ZoneHandle& otherwise) {
    if (size == 0) {
        return otherwise;
    }
    if (!key || size > FI_DAT_MAX_AUTH_KEY) {
        DAT_WARN(domain, "%s: an auth_key of %zu bytes%s; at most %d are offered", call, size,
                 key ? "" : " at NULL", FI_DAT_MAX_AUTH_KEY);
        return nullptr;
    }
    const std::vector<std::uint8_t> bytes(key, key + size);
    const std::lock_guard lock(mutex_);
    if (const auto found = zones_.find(bytes); found != zones_.end()) {
        if (ZoneHandle zone = found->second.lock()) {
            return zone;
        }
    }
    std::erase_if(zones_, [](const auto& entry) { return entry.second.expired(); });
    auto zone = std::make_shared<const Zone>();
    zones_[bytes] = zone;
    return zone;
}

} // namespace dat::ofi
