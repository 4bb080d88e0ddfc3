// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See cm.h.
#include "ofi/cm.h"

#include "base/log.h"
#include "ofi/info.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

namespace dat::ofi {

int give_address(const net::SocketAddress& address, void* buf, std::size_t* size) {
    const std::size_t needed = address.size();
    const std::size_t room = *size;
    *size = needed;
    if (buf) {
        std::memcpy(buf, address.get(), std::min(room, needed));
    }
    return room < needed ? -FI_ETOOSMALL : 0;
}

net::SocketAddress read_address(const void* address) {
    if (!address) {
        return {};
    }
    const auto* sa = static_cast<const sockaddr*>(address);
    return {sa, sa->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)};
}

int read_private_data(const char* call, const void* param, std::size_t size, std::size_t limit,
                      std::span<const std::byte>& data) {
    if (size > limit || (size > 0 && !param)) {
        DAT_WARN(ep_ctrl, "%s: %zu bytes of private data%s; at most %zu are carried", call, size,
                 param ? "" : " at NULL", limit);
        return -FI_EINVAL;
    }
    data = {static_cast<const std::byte*>(param), size};
    return 0;
}

int get_option(int level, int name, std::size_t data, void* value, std::size_t* size) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) {
        DAT_INFO(ep_ctrl, "fi_getopt(): option %d of level %d is not offered", name, level);
        return -FI_ENOPROTOOPT;
    }
    if (*size < sizeof(std::size_t)) {
        DAT_WARN(ep_ctrl, "fi_getopt(): room for %zu bytes, FI_OPT_CM_DATA_SIZE has %zu", *size,
                 sizeof(std::size_t));
        return -FI_ETOOSMALL;
    }
    std::memcpy(value, &data, sizeof data);
    *size = sizeof data;
    return 0;
}

int set_option(int level, int name, const void*, std::size_t) {
    DAT_INFO(ep_ctrl, "fi_setopt(): option %d of level %d cannot be set", name, level);
    return -FI_ENOPROTOOPT;
}

} // namespace dat::ofi
