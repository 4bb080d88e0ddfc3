// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a listener announces, and how that is refused. See connect.h.
#include "base/log.h"
#include "engine/kernel.h"
#include "links/iwarp/connect.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace dat::iwarp {

ConnRequest::ConnRequest(Arrived&& arrived, std::chrono::seconds keepalive)
    : arrived_(std::move(arrived)), keepalive_(keepalive),
      private_data_(arrived_.frame.private_data.begin(), arrived_.frame.private_data.end()) {
    arrived_.frame.private_data = {};
}

void send_reject(const Socket& socket, const MpaFrame& request,
                 std::span<const std::byte> private_data) {
    MpaFrame reply;
    reply.kind = MpaKind::reply;
    reply.revision = request.revision;
    reply.reject = true;
    reply.crc = request.crc;
    reply.from_dat = request.from_dat;
    if (request.enhanced) {
        reply.enhanced = MpaEnhanced{};
    }
    reply.private_data = private_data;
    std::array<std::byte, kMpaMaxFrameSize> buffer;
    const std::size_t size = encode_mpa_frame(reply, buffer);
    if (kernel::send(socket.fd(), buffer.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        DAT_INFO(ep_ctrl, "the reject did not reach its requester: %s", std::strerror(errno));
    }
    ::shutdown(socket.fd(), SHUT_WR);
}

bool ConnRequest::reject(std::span<const std::byte> private_data) {
    if (!core_.settle(core::ConnRequest::Fate::rejected)) {
        return false;
    }
    send_reject(arrived_.socket, arrived_.frame, private_data);
    arrived_.socket.close();
    return true;
}

} // namespace dat::iwarp
