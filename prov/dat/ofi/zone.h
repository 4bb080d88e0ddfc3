// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Protection zones of a domain: what libfabric calls authorization keys (PZ-1). Endpoints
// and regions of one zone have the same Zone, whose address the layers below compare.
#ifndef DAT_OFI_ZONE_H
#define DAT_OFI_ZONE_H

#include <rdma/fi_ext_dat.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace dat::ofi {

class Zone {};
// A zone exists as long as somebody has one.
using ZoneHandle = std::shared_ptr<const Zone>;

// Thread-safe.
class Zones {
  public:
    // The zone of that key; nullptr: the key is longer than FI_DAT_MAX_AUTH_KEY, or NULL and
    // has bytes. Logs why, for `call`. Without a key: `otherwise`. Throws std::bad_alloc.
    ZoneHandle find(const char* call, const std::uint8_t* key, std::size_t size,
                    const ZoneHandle& otherwise);

  private:
    std::mutex mutex_;
    std::map<std::vector<std::uint8_t>, std::weak_ptr<const Zone>> zones_;
};

} // namespace dat::ofi

#endif
