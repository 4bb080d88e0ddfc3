// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite, iWARP only: what the tests of raw peers share: a peer made of
// bytes on either side of a connection, and what `dat` must say when it ends. May
// include: suite.h, iwarp_bytes.h.
#ifndef DAT_TEST_TRANSPORT_RAW_PEER_H
#define DAT_TEST_TRANSPORT_RAW_PEER_H

#include "iwarp_bytes.h"
#include "suite.h"

#include <cstdlib>
#include <cstring>

namespace dat::test {

using raw::Mpa;
using raw::Segment;

constexpr std::uint16_t kDepth = 8; // IRD and ORD that raw peers claim

inline void handshake_limit_of_1_s() { setenv("FI_DAT_HANDSHAKE_TIMEOUT", "1", 1); }

// `dat` accepts a raw peer that has sent `request`.
struct Accepted {
    Accepted(const Transport& transport, const Mpa& request, const Bytes& answer = {})
        : side(transport) {
        side.listen();
        socket.emplace(raw::Socket::connect(transport, side.port()));
        socket->write(encode(request));
        const Event event = wait_event(side, FI_CONNREQ);
        private_data = event.data;
        endpoint.emplace(side, event);
        DAT_MUST(endpoint->accept(answer));
        reply = raw::read_mpa(*socket);
        cr_assert(reply.reply && !(reply.flags & (raw::kReject | raw::kMarkers)));
    }
    Side side;
    std::optional<raw::Socket> socket;
    std::optional<Endpoint> endpoint;
    Bytes private_data;
    Mpa reply;
};

inline Mpa request_of_revision_1(const Bytes& data = {}, std::uint8_t flags = 0) {
    return {false, flags, 1, data};
}

inline Mpa enhanced_request(std::uint16_t ird_flags, std::uint16_t ord_flags,
                            const Bytes& data = {}) {
    const auto ird = static_cast<std::uint16_t>(kDepth | ird_flags);
    const auto ord = static_cast<std::uint16_t>(kDepth | ord_flags);
    return {false, raw::kEnhanced, 2, raw::enhanced(ird, ord, data)};
}

// A connection on which bytes may flow both ways: the raw peer, as initiator of
// revision 1, has sent its first message. Its next one has the number 2.
inline std::unique_ptr<Accepted> established(const Transport& transport, std::uint8_t flags = 0) {
    auto accepted = std::make_unique<Accepted>(transport, request_of_revision_1({}, flags));
    wait_event(accepted->side, FI_CONNECTED);
    std::uint8_t in = 0;
    Op& first = accepted->endpoint->recv(&in, 1);
    const bool crc = (accepted->reply.flags & raw::kCrc) != 0;
    accepted->socket->write(encode(raw::send(1, {9}), crc));
    wait_op(first);
    cr_assert(first.ok() && in == 9);
    return accepted;
}

// `dat` has sent its request to a raw listener.
struct Requested {
    explicit Requested(const Transport& transport, const Bytes& data = {},
                       std::uint64_t timeout_us = FI_DAT_TIMEOUT_INFINITE)
        : side(transport), listener(transport), endpoint(side) {
        DAT_MUST(endpoint.dat()->set_connect_timeout(endpoint.get(), timeout_us));
        DAT_MUST(fi_connect(endpoint.get(), listener.address(), data.data(), data.size()));
        socket.emplace(listener.accept());
        request = raw::read_mpa(*socket);
        cr_assert(!request.reply, "a reply instead of a request");
    }
    // How a responder answers that knows no ready-to-receive.
    Mpa reply(const Bytes& data = {}) const {
        if (request.revision == 1)
            return {true, 0, 1, data};
        return {true, raw::kEnhanced, 2, raw::enhanced(kDepth, kDepth, data)};
    }
    Side side;
    raw::Listener listener;
    Endpoint endpoint;
    std::optional<raw::Socket> socket;
    Mpa request;
};

inline void require_refused(Requested& peer, fi_dat_reason reason) {
    const Event event = wait_error(peer.side, FI_ECONNREFUSED);
    cr_assert_eq(event.fid, peer.endpoint.fid());
    require_end(peer.endpoint, FI_DAT_END_NON_PEER_REJECTED);
    cr_assert_eq(peer.endpoint.status().reason, reason, "reason %d",
                 static_cast<int>(peer.endpoint.status().reason));
    settle(20);
    cr_assert(peer.side.events().empty());
}

// The connection has ended here as broken, for this reason, and once.
inline void require_broken(Accepted& peer, fi_dat_reason reason) {
    wait_shutdown(*peer.endpoint);
    require_end(*peer.endpoint, FI_DAT_END_BROKEN);
    cr_assert_eq(peer.endpoint->status().reason, reason, "reason %d",
                 static_cast<int>(peer.endpoint->status().reason));
    settle(20);
    cr_assert(peer.side.events().empty());
}

// The listener still serves whoever keeps to the rules.
inline void require_serving(const Transport& transport, Side& side) {
    raw::Socket socket = raw::Socket::connect(transport, side.port());
    socket.write(encode(request_of_revision_1(pattern(9))));
    const Event event = wait_event(side, FI_CONNREQ);
    cr_assert(event.data == pattern(9));
    DAT_MUST(fi_reject(side.pep(), event.info->handle, "no", 2));
    const Mpa reply = raw::read_mpa(socket);
    cr_assert(reply.reply && (reply.flags & raw::kReject));
    cr_assert(reply.data == Bytes({'n', 'o'}));
}

// Bytes that are no proper request: no event, the stream is closed (or answered
// with a reject, then closed), and the next peer is served.
inline void require_request_refused(const Transport& transport, const Bytes& bytes) {
    only_dat();
    Side side(transport);
    side.listen();
    raw::Socket socket = raw::Socket::connect(transport, side.port());
    socket.write(bytes);
    socket.wait_end();
    cr_assert(side.events().empty(), "a request was made of it");
    require_serving(transport, side);
}

} // namespace dat::test

#endif
