// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite, iWARP only: `dat` against peers made of bytes. Peers of
// other make that follow the RFCs, and peers that do not, fall silent, or stop
// half-way. May include: suite.h, iwarp_bytes.h.
#include "iwarp_bytes.h"
#include "suite.h"

#include <rdma/fi_atomic.h>

#include <cstdlib>
#include <cstring>

using namespace dat::test;

namespace {

using raw::Mpa;
using raw::Segment;

constexpr std::uint16_t kDepth = 8; // IRD and ORD that raw peers claim

void handshake_limit_of_1_s() { setenv("FI_DAT_HANDSHAKE_TIMEOUT", "1", 1); }

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

Mpa request_of_revision_1(const Bytes& data = {}, std::uint8_t flags = 0) {
    return {false, flags, 1, data};
}

Mpa enhanced_request(std::uint16_t ird_flags, std::uint16_t ord_flags, const Bytes& data = {}) {
    const auto ird = static_cast<std::uint16_t>(kDepth | ird_flags);
    const auto ord = static_cast<std::uint16_t>(kDepth | ord_flags);
    return {false, raw::kEnhanced, 2, raw::enhanced(ird, ord, data)};
}

// A connection on which bytes may flow both ways: the raw peer, as initiator of
// revision 1, has sent its first message. Its next one has the number 2.
std::unique_ptr<Accepted> established(const Transport& transport, std::uint8_t flags = 0) {
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

void require_refused(Requested& peer, fi_dat_reason reason) {
    const Event event = wait_error(peer.side, FI_ECONNREFUSED);
    cr_assert_eq(event.fid, peer.endpoint.fid());
    require_end(peer.endpoint, FI_DAT_END_NON_PEER_REJECTED);
    cr_assert_eq(peer.endpoint.status().reason, reason, "reason %d",
                 static_cast<int>(peer.endpoint.status().reason));
    settle(20);
    cr_assert(peer.side.events().empty());
}

// The connection has ended here as broken, for this reason, and once.
void require_broken(Accepted& peer, fi_dat_reason reason) {
    wait_shutdown(*peer.endpoint);
    require_end(*peer.endpoint, FI_DAT_END_BROKEN);
    cr_assert_eq(peer.endpoint->status().reason, reason, "reason %d",
                 static_cast<int>(peer.endpoint->status().reason));
    settle(20);
    cr_assert(peer.side.events().empty());
}

// The listener still serves whoever keeps to the rules.
void require_serving(const Transport& transport, Side& side) {
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
void require_request_refused(const Transport& transport, const Bytes& bytes) {
    only_dat();
    Side side(transport);
    side.listen();
    raw::Socket socket = raw::Socket::connect(transport, side.port());
    socket.write(bytes);
    socket.wait_end();
    cr_assert(side.events().empty(), "a request was made of it");
    require_serving(transport, side);
}

} // namespace

// ---- raw initiators, as the RFCs want them -------------------------------

// RFC 5044 7.1: the reply is of the request's revision; data is exact.
WIRE_TEST(raw_initiator, of_revision_1__is_accepted) {
    only_dat();
    Accepted peer(transport, request_of_revision_1(pattern(200)), pattern(100, 2));
    cr_assert(peer.private_data == pattern(200));
    cr_assert_eq(peer.reply.revision, 1);
    cr_assert(peer.reply.data == pattern(100, 2));
    cr_assert_eq(peer.reply.flags & raw::kCrc, 0, "nobody asked for CRC on loopback");
    wait_event(peer.side, FI_CONNECTED);
    Bytes in(100);
    Op& receive = peer.endpoint->recv(in.data(), in.size());
    peer.socket->write(encode(raw::send(1, {'h', 'e', 'l', 'l', 'o'})));
    wait_op(receive);
    cr_assert(receive.ok() && receive.len == 5 && std::memcmp(in.data(), "hello", 5) == 0);
}

// RFC 6581 9: IRD and ORD are answered with IRD and ORD.
WIRE_TEST(raw_initiator, enhanced_without_ready_to_receive__is_accepted) {
    only_dat();
    Accepted peer(transport, enhanced_request(0, 0, pattern(200)), pattern(100, 2));
    cr_assert(peer.private_data == pattern(200));
    cr_assert_eq(peer.reply.revision, 2);
    cr_assert(peer.reply.flags & raw::kEnhanced);
    cr_assert(Bytes(peer.reply.data.begin() + 4, peer.reply.data.end()) == pattern(100, 2));
    cr_assert(!(peer.reply.data[0] & 0x80), "nobody offered ready-to-receive");
    wait_event(peer.side, FI_CONNECTED);
}

// U-63: the frame of a reply to another than `dat` holds 256 bytes, IRD and ORD among
// them; a refused accept leaves the request as it was.
TRANSPORT_TEST(raw_initiator, that_is_not_dat__is_sent_256_bytes_at_most) {
    only_dat();
    const std::pair<Mpa, std::size_t> cases[] = {{request_of_revision_1(), 256},
                                                 {enhanced_request(0, 0), 252}};
    for (const auto& [request, limit] : cases) {
        Side side(transport);
        side.listen();
        raw::Socket socket = raw::Socket::connect(transport, side.port());
        socket.write(encode(request));
        const Event event = wait_event(side, FI_CONNREQ);
        Endpoint endpoint(side, event);
        cr_assert_eq(endpoint.accept(pattern(limit + 1)), -FI_EINVAL);
        DAT_MUST(endpoint.accept(pattern(limit)));
        cr_assert_eq(raw::read_mpa(socket).data.size(), 256u);
    }
}

// U-65, architecture.md: without ready-to-receive the responder holds its frames
// until the initiator's first.
WIRE_TEST(raw_initiator, without_ready_to_receive__gets_frames_after_its_first) {
    only_dat();
    for (const Mpa& request : {request_of_revision_1(), enhanced_request(0, 0)}) {
        Accepted peer(transport, request);
        wait_event(peer.side, FI_CONNECTED);
        const Bytes out = pattern(50);
        Op& sent = peer.endpoint->send(out.data(), out.size());
        peer.socket->require_silent();
        Bytes in(10);
        Op& receive = peer.endpoint->recv(in.data(), in.size());
        peer.socket->write(encode(raw::send(1, {1})));
        const Segment segment = raw::read_segment(*peer.socket);
        cr_assert(segment.opcode == raw::kSend && segment.payload == out);
        wait_op(receive);
        wait_op(sent);
    }
}

// RFC 6581 9: the method chosen is one that was offered; ESTABLISHED when it came.
WIRE_TEST(raw_initiator, offering_a_write_as_ready_to_receive__connects_when_it_comes) {
    only_dat();
    Accepted peer(transport, enhanced_request(raw::kPeerToPeer, raw::kRtrWrite));
    cr_assert_eq(peer.reply.data[0] & 0xC0, 0x80, "peer to peer, and not an empty frame");
    cr_assert_eq(peer.reply.data[2] & 0xC0, 0x80, "a write, and not a read");
    settle();
    cr_assert(peer.side.events().empty());
    require_state(*peer.endpoint, FI_DAT_COMPLETION_PENDING);
    peer.socket->write(encode(raw::write(0, 0, {})));
    wait_event(peer.side, FI_CONNECTED);
    // Now either side may be first.
    const Bytes out = pattern(50);
    peer.endpoint->send(out.data(), out.size());
    cr_assert(raw::read_segment(*peer.socket).payload == out);
}

// U-65, EP-52.
WIRE_TEST(raw_initiator, whose_ready_to_receive_never_comes__fails_at_the_limit) {
    only_dat();
    handshake_limit_of_1_s();
    Accepted peer(transport, enhanced_request(raw::kPeerToPeer, raw::kRtrWrite));
    wait_error(peer.side, FI_ECONNABORTED);
    require_end(*peer.endpoint, FI_DAT_END_ACCEPT_ERROR);
    cr_assert_eq(peer.endpoint->status().reason, FI_DAT_REASON_HANDSHAKE_LIMIT);
    peer.socket->wait_end();
}

// EP-52: the stream ends before the handshake does.
WIRE_TEST(raw_initiator, that_closes_before_ready_to_receive__fails_the_accept) {
    only_dat();
    Accepted peer(transport, enhanced_request(raw::kPeerToPeer, raw::kRtrWrite));
    Bytes in(10);
    Op& receive = peer.endpoint->recv(in.data(), in.size());
    peer.socket->close();
    wait_error(peer.side, FI_ECONNABORTED);
    require_end(*peer.endpoint, FI_DAT_END_ACCEPT_ERROR);
    cr_assert(receive.flushed());
    settle(20);
    cr_assert(peer.side.events().empty());
}

// EP-53, DISC-6.
WIRE_TEST(raw_initiator, disconnected_before_ready_to_receive__ends_once) {
    only_dat();
    Accepted peer(transport, enhanced_request(raw::kPeerToPeer, raw::kRtrWrite));
    require_state(*peer.endpoint, FI_DAT_COMPLETION_PENDING);
    cr_assert_eq(peer.endpoint->reset(), -FI_EOPBADSTATE);
    DAT_MUST(peer.endpoint->disconnect(FI_DAT_GRACEFUL));
    wait_shutdown(*peer.endpoint);
    require_end(*peer.endpoint, FI_DAT_END_DISCONNECTED);
    peer.socket->wait_end();
    settle(20);
    cr_assert(peer.side.events().empty());
}

// CRC is granted to who asks, and then it is right in both directions.
WIRE_TEST(raw_initiator, that_asks_for_crc__gets_it) {
    only_dat();
    auto peer = established(transport, raw::kCrc);
    cr_assert(peer->reply.flags & raw::kCrc);
    Bytes in(1000);
    Op& receive = peer->endpoint->recv(in.data(), in.size());
    const Bytes out = pattern(777);
    peer->socket->write(encode(raw::send(2, out), true));
    wait_op(receive);
    cr_assert(receive.ok() && receive.len == 777);
    cr_assert(std::memcmp(in.data(), out.data(), 777) == 0);
    peer->endpoint->send(out.data(), out.size());
    cr_assert(raw::read_segment(*peer->socket, true).payload == out);
}

WIRE_TEST(raw_initiator, with_crc_forced_here__is_told_to_use_it) {
    only_dat();
    setenv("FI_DAT_CRC", "on", 1);
    auto peer = established(transport);
    cr_assert(peer->reply.flags & raw::kCrc);
    Bytes in(10);
    Op& receive = peer->endpoint->recv(in.data(), in.size());
    peer->socket->write(encode(raw::send(2, {1, 2, 3}), true));
    wait_op(receive);
    cr_assert(receive.ok() && receive.len == 3);
}

// RFC 5041: messages in several segments, several in one frame's worth of
// bytes, and one byte at a time.
WIRE_TEST(raw_initiator, sending_in_segments__delivers_whole_messages) {
    only_dat();
    auto peer = established(transport);
    Bytes first(300);
    Bytes second(10);
    Op& one = peer->endpoint->recv(first.data(), first.size());
    Op& two = peer->endpoint->recv(second.data(), second.size());
    const Bytes out = pattern(300);
    Bytes stream;
    for (std::size_t at = 0; at < out.size(); at += 100) {
        Segment segment = raw::send(2, {out.begin() + static_cast<std::ptrdiff_t>(at),
                                        out.begin() + static_cast<std::ptrdiff_t>(at + 100)});
        segment.offset = at;
        segment.last = at == 200;
        const Bytes frame = encode(segment);
        stream.insert(stream.end(), frame.begin(), frame.end());
    }
    const Bytes empty = encode(raw::send(3, {}));
    stream.insert(stream.end(), empty.begin(), empty.end());
    peer->socket->write(stream);
    wait_op(one);
    wait_op(two);
    cr_assert(one.ok() && one.len == 300 && first == out);
    cr_assert(two.ok() && two.len == 0);
}

WIRE_TEST(raw_initiator, that_trickles_everything__is_served) {
    only_dat();
    Side side(transport);
    side.listen();
    raw::Socket socket = raw::Socket::connect(transport, side.port());
    socket.trickle(encode(enhanced_request(raw::kPeerToPeer, raw::kRtrWrite, pattern(50))));
    const Event event = wait_event(side, FI_CONNREQ);
    cr_assert(event.data == pattern(50));
    Endpoint endpoint(side, event);
    Bytes in(100);
    Op& receive = endpoint.recv(in.data(), in.size());
    DAT_MUST(endpoint.accept());
    raw::read_mpa(socket);
    socket.trickle(encode(raw::write(0, 0, {})));
    wait_event(side, FI_CONNECTED);
    socket.trickle(encode(raw::send(1, pattern(100))));
    wait_op(receive);
    cr_assert(receive.ok() && in == pattern(100));
}

// RFC 5040: reads and writes of a raw peer in registered memory.
WIRE_TEST(raw_initiator, that_writes_and_reads__is_served) {
    only_dat();
    auto peer = established(transport);
    Region memory(peer->side, 1000, FI_REMOTE_READ | FI_REMOTE_WRITE);
    const auto key = static_cast<std::uint32_t>(memory.at(0).key);
    const std::uint64_t base = memory.at(0).address;
    peer->socket->write(encode(raw::write(key, base + 100, pattern(50))));
    peer->socket->write(encode(raw::read_request(1, 0x1234, 0x5000, 200, key, base + 50)));
    Bytes got;
    bool last = false;
    while (!last) {
        const Segment segment = raw::read_segment(*peer->socket);
        cr_assert(segment.tagged && segment.opcode == raw::kReadResponse);
        cr_assert_eq(segment.stag, 0x1234);
        cr_assert_eq(segment.offset, 0x5000 + got.size());
        got.insert(got.end(), segment.payload.begin(), segment.payload.end());
        last = segment.last;
    }
    cr_assert_eq(got.size(), 200);
    cr_assert(std::memcmp(got.data() + 50, pattern(50).data(), 50) == 0);
    cr_assert(std::memcmp(memory.data() + 100, pattern(50).data(), 50) == 0);
}

// The other way round: `dat` writes to and reads from a raw peer.
WIRE_TEST(raw_target, of_writes_and_reads__gets_what_the_rfc_says) {
    only_dat();
    auto peer = established(transport);
    const Bytes out = pattern(60);
    Op& written = peer->endpoint->write(out.data(), out.size(), {0x7000, 0x4321});
    const Segment write = raw::read_segment(*peer->socket);
    cr_assert(write.tagged && write.last && write.opcode == raw::kWrite);
    cr_assert_eq(write.stag, 0x4321);
    cr_assert_eq(write.offset, 0x7000);
    cr_assert(write.payload == out);
    wait_op(written);

    Bytes sink(40);
    Op& read = peer->endpoint->read(sink.data(), sink.size(), {0x8000, 0x4321});
    const Segment request = raw::read_segment(*peer->socket);
    cr_assert(!request.tagged && request.opcode == raw::kReadRequest);
    cr_assert_eq(request.queue, 1);
    cr_assert_eq(request.msn, 1);
    cr_assert_eq(raw::get32(request.payload, 12), sink.size());
    cr_assert_eq(raw::get32(request.payload, 16), 0x4321);
    cr_assert_eq(raw::get64(request.payload, 20), 0x8000);
    cr_assert(!read.done());
    Segment response =
        raw::write(raw::get32(request.payload, 0), raw::get64(request.payload, 4), pattern(40, 3));
    response.opcode = raw::kReadResponse;
    peer->socket->write(encode(response));
    wait_op(read);
    cr_assert(read.ok() && sink == pattern(40, 3));
}

// U-61: towards a peer that is no `dat` completion is local.
WIRE_TEST(raw_target, of_a_confirmed_send__completes_locally) {
    only_dat();
    auto peer = established(transport);
    const Bytes out = pattern(3000);
    Op& sent = peer->endpoint->send_confirmed(out.data(), out.size());
    Bytes got;
    while (got.size() < out.size()) {
        const Segment segment = raw::read_segment(*peer->socket);
        // Nothing beyond RFC 5040 for it.
        cr_assert(!segment.tagged && segment.opcode == raw::kSend && segment.queue == 0);
        cr_assert_eq(segment.msn, 1);
        cr_assert_eq(segment.offset, got.size());
        got.insert(got.end(), segment.payload.begin(), segment.payload.end());
        cr_assert_eq(segment.last, got.size() == out.size());
    }
    cr_assert(got == out);
    wait_op(sent);
    cr_assert(sent.ok());
    peer->socket->require_silent();
}

// U-61: that the peer has it is known when it answers a read, of nothing, behind it.
WIRE_TEST(raw_target, of_a_delivered_send__completes_when_it_answers_a_read) {
    only_dat();
    auto peer = established(transport);
    const Bytes out = pattern(30);
    Op& sent = peer->endpoint->send_delivered(out.data(), out.size());
    const Segment send = raw::read_segment(*peer->socket);
    cr_assert(send.opcode == raw::kSend && send.payload == out);
    const Segment request = raw::read_segment(*peer->socket);
    cr_assert_eq(request.opcode, raw::kReadRequest);
    cr_assert_eq(raw::get32(request.payload, 12), 0, "it reads nothing");
    settle(20);
    cr_assert(!sent.done(), "the peer has not answered yet");
    Segment response =
        raw::write(raw::get32(request.payload, 0), raw::get64(request.payload, 4), {});
    response.opcode = raw::kReadResponse;
    peer->socket->write(encode(response));
    wait_op(sent);
    cr_assert(sent.ok());
}

// U-61: where it answers no reads, that cannot be known; a read could not be done.
WIRE_TEST(raw_target, that_serves_no_reads__is_not_asked_for_any) {
    only_dat();
    Accepted peer(transport, {false, raw::kEnhanced, 2, raw::enhanced(0, kDepth)});
    wait_event(peer.side, FI_CONNECTED);
    Bytes in(10);
    Op& receive = peer.endpoint->recv(in.data(), in.size());
    peer.socket->write(encode(raw::send(1, {1})));
    wait_op(receive);
    fid_ep* ep = peer.endpoint->get();
    cr_assert_eq(fi_read(ep, in.data(), in.size(), nullptr, 0, 0, 1, nullptr), -FI_EOPNOTSUPP);
    const iovec iov{in.data(), in.size()};
    const fi_msg msg{&iov, nullptr, 1, 0, nullptr, 0};
    cr_assert_eq(fi_sendmsg(ep, &msg, FI_DELIVERY_COMPLETE), -FI_EOPNOTSUPP);
    // Nothing was sent of either, and the connection is as it was.
    Op& sent = peer.endpoint->send_confirmed(in.data(), in.size());
    const Segment send = raw::read_segment(*peer.socket);
    cr_assert(send.opcode == raw::kSend && send.msn == 1);
    wait_op(sent);
    cr_assert(sent.ok());
}

// architecture.md: what goes beyond RFC 5040 goes to no other.
WIRE_TEST(raw_target, of_data_and_atomics__gets_neither) {
    only_dat();
    auto peer = established(transport);
    fid_ep* ep = peer->endpoint->get();
    std::uint64_t one = 1;
    std::uint64_t old = 0;
    cr_assert_eq(fi_senddata(ep, &one, 1, nullptr, 5, 0, nullptr), -FI_EOPNOTSUPP);
    cr_assert_eq(fi_injectdata(ep, &one, 1, 5, 0), -FI_EOPNOTSUPP);
    cr_assert_eq(fi_writedata(ep, &one, 1, nullptr, 5, 0, 0, 1, nullptr), -FI_EOPNOTSUPP);
    cr_assert_eq(fi_atomic(ep, &one, 1, nullptr, 0, 0, 1, FI_UINT64, FI_SUM, nullptr),
                 -FI_EOPNOTSUPP);
    cr_assert_eq(
        fi_fetch_atomic(ep, &one, 1, nullptr, &old, nullptr, 0, 0, 1, FI_UINT64, FI_SUM, nullptr),
        -FI_EOPNOTSUPP);
    peer->socket->require_silent();
    wait_op(peer->endpoint->send(&one, 1));
    cr_assert_eq(raw::read_segment(*peer->socket).msn, 1, "and the connection is as it was");
}

// ---- raw initiators that stop, or break the rules ------------------------

// U-65: a peer that connects and says nothing costs only itself.
WIRE_TEST(raw_silent_initiator, past_the_limit__is_closed_and_others_are_served) {
    only_dat();
    handshake_limit_of_1_s();
    Side side(transport);
    side.listen();
    raw::Socket silent = raw::Socket::connect(transport, side.port());
    raw::Socket half = raw::Socket::connect(transport, side.port());
    Bytes request = encode(request_of_revision_1(pattern(20)));
    request.resize(25);
    half.write(request);
    require_serving(transport, side);
    silent.wait_end();
    half.wait_end();
    cr_assert(side.events().empty());
    require_serving(transport, side);
}

WIRE_TEST(raw_bad_request, half_of_it_then_the_end__is_no_request) {
    only_dat();
    Side side(transport);
    side.listen();
    Bytes request = encode(request_of_revision_1(pattern(20)));
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{19}, request.size() - 1}) {
        raw::Socket socket = raw::Socket::connect(transport, side.port());
        socket.write({request.begin(), request.begin() + static_cast<std::ptrdiff_t>(size)});
        socket.close();
    }
    settle();
    cr_assert(side.events().empty());
    require_serving(transport, side);
}

WIRE_TEST(raw_bad_request, wrong_key__is_refused) {
    require_request_refused(transport, Bytes(40, 'x'));
}
WIRE_TEST(raw_bad_request, reply_key__is_refused) {
    require_request_refused(transport, encode(Mpa{true, 0, 1, {}}));
}
WIRE_TEST(raw_bad_request, demanding_markers__is_refused) {
    require_request_refused(transport, encode(request_of_revision_1({}, raw::kMarkers)));
}
WIRE_TEST(raw_bad_request, more_private_data_than_mpa_allows__is_refused) {
    require_request_refused(transport, encode(request_of_revision_1(Bytes(60'000))));
}
WIRE_TEST(raw_bad_request, enhanced_without_room_for_ird_and_ord__is_refused) {
    require_request_refused(transport, encode(Mpa{false, raw::kEnhanced, 2, {0, 8}}));
}
WIRE_TEST(raw_bad_request, revision_0__is_refused) {
    require_request_refused(transport, encode(Mpa{false, 0, 0, {}}));
}

// CR-6: a peer that was killed while its request is pending.
WIRE_TEST(raw_gone_initiator, reset_while_pending__accept_completion_error) {
    only_dat();
    Side side(transport);
    side.listen();
    raw::Socket socket = raw::Socket::connect(transport, side.port());
    socket.write(encode(request_of_revision_1()));
    const Event request = wait_event(side, FI_CONNREQ);
    socket.reset();
    settle();
    cr_assert(side.events().empty());
    Endpoint endpoint(side, request);
    DAT_MUST(endpoint.accept());
    wait_error(side, FI_ECONNABORTED);
    require_end(endpoint, FI_DAT_END_ACCEPT_ERROR);
}

// ---- ends ----------------------------------------------------------------

// U-2: an end between frames is a disconnect, inside one it is a break.
WIRE_TEST(raw_end, between_frames__is_disconnected) {
    only_dat();
    auto peer = established(transport);
    Bytes in(10);
    Op& first = peer->endpoint->recv(in.data(), in.size());
    Op& second = peer->endpoint->recv(in.data(), in.size());
    peer->socket->write(encode(raw::send(2, {1})));
    peer->socket->close();
    wait_shutdown(*peer->endpoint);
    cr_assert(first.ok(), "what arrived before the end is delivered");
    cr_assert(second.flushed());
    require_end(*peer->endpoint, FI_DAT_END_DISCONNECTED);
    cr_assert_eq(peer->endpoint->status().reason, FI_DAT_REASON_PEER_CLOSED);
}

WIRE_TEST(raw_end, inside_a_frame__is_broken) {
    only_dat();
    const Bytes frame = encode(raw::send(2, pattern(100)));
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{2}, std::size_t{10}, std::size_t{60}, frame.size() - 1}) {
        auto peer = established(transport);
        Bytes in(100);
        Op& receive = peer->endpoint->recv(in.data(), in.size());
        peer->socket->write({frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size)});
        peer->socket->close();
        require_broken(*peer, FI_DAT_REASON_END_IN_FRAME);
        cr_assert(!receive.ok());
    }
}

WIRE_TEST(raw_end, by_reset__is_disconnected) {
    only_dat();
    auto peer = established(transport);
    peer->socket->reset();
    wait_shutdown(*peer->endpoint);
    require_end(*peer->endpoint, FI_DAT_END_DISCONNECTED);
    cr_assert_eq(peer->endpoint->status().reason, FI_DAT_REASON_PEER_RESET);
}

WIRE_TEST(raw_end, by_terminate__is_broken_with_its_code) {
    only_dat();
    auto peer = established(transport);
    peer->socket->write(encode(raw::terminate(0x0108)));
    require_broken(*peer, FI_DAT_REASON_TERMINATE);
    cr_assert_eq(peer->endpoint->status().terminate, 0x0108);
    peer->socket->wait_end();
}

// An end of the other direction only: the peer has shut down writing.
WIRE_TEST(raw_end, half_closed_by_the_peer__ends_both_directions) {
    only_dat();
    auto peer = established(transport);
    peer->socket->shutdown_write();
    wait_shutdown(*peer->endpoint);
    require_end(*peer->endpoint, FI_DAT_END_DISCONNECTED);
    peer->socket->wait_end();
}

// A graceful disconnect towards a peer that only reads: everything arrives, then
// the end of the stream.
WIRE_TEST(raw_end, graceful_disconnect_here__sends_everything_first) {
    only_dat();
    auto peer = established(transport);
    const Bytes out = pattern(500);
    Op& sent = peer->endpoint->send(out.data(), out.size());
    DAT_MUST(peer->endpoint->disconnect(FI_DAT_GRACEFUL));
    cr_assert(raw::read_segment(*peer->socket).payload == out);
    peer->socket->wait_end();
    peer->socket->close();
    wait_shutdown(*peer->endpoint);
    cr_assert(sent.ok());
    require_end(*peer->endpoint, FI_DAT_END_DISCONNECTED);
}

// ---- breaches of the protocol: Terminate as the RFC names it -------------

// RFC 5044 8: LLP layer 2, type 0, code 2.
WIRE_TEST(raw_breach, wrong_crc__is_terminated) {
    only_dat();
    auto peer = established(transport, raw::kCrc);
    Bytes in(10);
    Op& receive = peer->endpoint->recv(in.data(), in.size());
    Bytes frame = encode(raw::send(2, {1, 2, 3}), true);
    frame.back() ^= 1;
    peer->socket->write(frame);
    cr_assert_eq(raw::read_terminate(*peer->socket, true), 0x2002);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
    cr_assert(!receive.ok());
}

// A first frame may be the wrong one already.
WIRE_TEST(raw_breach, in_the_first_frame__is_terminated) {
    only_dat();
    Accepted peer(transport, request_of_revision_1());
    wait_event(peer.side, FI_CONNECTED);
    peer.socket->write(encode(raw::write(0x7badbad, 0, {1})));
    require_broken(peer, FI_DAT_REASON_PROTOCOL);
    cr_assert_eq(raw::read_terminate(*peer.socket), 0x1100);
}

// RFC 5041 8: DDP layer 1, tagged buffer type 1, invalid STag 0, bounds 1.
WIRE_TEST(raw_breach, write_with_an_unknown_stag__is_terminated) {
    only_dat();
    auto peer = established(transport);
    peer->socket->write(encode(raw::write(0x7badbad, 0, {1})));
    cr_assert_eq(raw::read_terminate(*peer->socket), 0x1100);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
}

WIRE_TEST(raw_breach, write_out_of_bounds__is_terminated_and_writes_nothing) {
    only_dat();
    auto peer = established(transport);
    Region memory(peer->side, 100, FI_REMOTE_WRITE);
    const auto key = static_cast<std::uint32_t>(memory.at(0).key);
    peer->socket->write(encode(raw::write(key, memory.at(96).address, Bytes(5, 1))));
    cr_assert_eq(raw::read_terminate(*peer->socket), 0x1101);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
    cr_assert(memory.all(0) && memory.guards_whole());
}

// RFC 5041 8: untagged buffer type 2, message too long 5.
WIRE_TEST(raw_breach, message_longer_than_the_receive__is_terminated) {
    only_dat();
    auto peer = established(transport);
    Bytes in(4);
    Op& receive = peer->endpoint->recv(in.data(), in.size());
    peer->socket->write(encode(raw::send(2, pattern(5))));
    cr_assert_eq(raw::read_terminate(*peer->socket), 0x1205);
    wait_shutdown(*peer->endpoint);
    require_end(*peer->endpoint, FI_DAT_END_BROKEN);
    cr_assert_eq(receive.err, FI_ETRUNC);
}

// RFC 5041 8: untagged buffer type 2, queue 1, MSN 2 or 3, MO 4.
WIRE_TEST(raw_breach, message_number_out_of_sequence__is_terminated) {
    only_dat();
    auto peer = established(transport);
    Bytes in(10);
    peer->endpoint->recv(in.data(), in.size());
    peer->socket->write(encode(raw::send(5, {1})));
    const std::uint32_t terminate = raw::read_terminate(*peer->socket);
    cr_assert(terminate == 0x1202 || terminate == 0x1203, "%x", terminate);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
}

WIRE_TEST(raw_breach, unknown_queue__is_terminated) {
    only_dat();
    auto peer = established(transport);
    Segment segment = raw::send(2, {1});
    segment.queue = 77;
    peer->socket->write(encode(segment));
    cr_assert_eq(raw::read_terminate(*peer->socket), 0x1201);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
}

WIRE_TEST(raw_breach, message_offset_with_a_gap__is_terminated) {
    only_dat();
    auto peer = established(transport);
    Bytes in(100);
    peer->endpoint->recv(in.data(), in.size());
    Segment segment = raw::send(2, {1});
    segment.offset = 10;
    peer->socket->write(encode(segment));
    cr_assert_eq(raw::read_terminate(*peer->socket), 0x1204);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
}

// RFC 5040 7: RDMAP layer 0, remote operation type 2, unexpected opcode 6.
WIRE_TEST(raw_breach, opcode_that_does_not_exist__is_terminated) {
    only_dat();
    auto peer = established(transport);
    Segment segment = raw::send(2, {1});
    segment.opcode = 15;
    peer->socket->write(encode(segment));
    cr_assert_eq(raw::read_terminate(*peer->socket), 0x0206);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
}

// RFC 5040 7: remote protection type 1, invalid STag 0.
WIRE_TEST(raw_breach, read_of_an_unknown_stag__is_terminated) {
    only_dat();
    auto peer = established(transport);
    peer->socket->write(encode(raw::read_request(1, 1, 0, 10, 0x7badbad, 0)));
    cr_assert_eq(raw::read_terminate(*peer->socket), 0x0100);
    require_broken(*peer, FI_DAT_REASON_PROTOCOL);
}

// RFC 5044: a frame shorter than any header.
WIRE_TEST(raw_breach, frame_too_short_for_a_header__is_broken) {
    only_dat();
    auto peer = established(transport);
    peer->socket->write({0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0});
    wait_shutdown(*peer->endpoint);
    require_end(*peer->endpoint, FI_DAT_END_BROKEN);
    peer->socket->wait_end();
}

// A response to nothing that was asked.
WIRE_TEST(raw_breach, read_response_without_a_read__is_broken) {
    only_dat();
    auto peer = established(transport);
    Region memory(peer->side, 100, FI_REMOTE_WRITE | FI_REMOTE_READ);
    Segment response = raw::write(static_cast<std::uint32_t>(memory.at(0).key),
                                  memory.at(0).address, Bytes(10, 1));
    response.opcode = raw::kReadResponse;
    peer->socket->write(encode(response));
    wait_shutdown(*peer->endpoint);
    require_end(*peer->endpoint, FI_DAT_END_BROKEN);
    cr_assert(memory.all(0));
}

// A tagged write never matches a read's sink.
WIRE_TEST(raw_breach, write_into_the_sink_of_a_read__is_broken) {
    only_dat();
    auto peer = established(transport);
    Bytes sink(40);
    Op& read = peer->endpoint->read(sink.data(), sink.size(), {0, 0x4321});
    const Segment request = raw::read_segment(*peer->socket);
    peer->socket->write(encode(
        raw::write(raw::get32(request.payload, 0), raw::get64(request.payload, 4), Bytes(40, 1))));
    wait_shutdown(*peer->endpoint);
    require_end(*peer->endpoint, FI_DAT_END_BROKEN);
    cr_assert(!read.ok() && sink == Bytes(40, 0));
}

// ---- raw responders ------------------------------------------------------

// What a request of `dat` looks like on the wire.
WIRE_TEST(raw_responder, sees_a_request__that_follows_the_rfcs) {
    only_dat();
    Requested peer(transport, pattern(100));
    cr_assert_eq(peer.request.revision, 2);
    cr_assert(peer.request.flags & raw::kEnhanced);
    cr_assert(!(peer.request.flags & (raw::kMarkers | raw::kReject)));
    cr_assert(!(peer.request.flags & raw::kCrc), "not asked for on loopback");
    cr_assert(peer.request.flags & raw::kDatRequest);
    cr_assert(peer.request.data[0] & 0x80, "ready-to-receive is offered");
    cr_assert(Bytes(peer.request.data.begin() + 4, peer.request.data.end()) == pattern(100));
}

WIRE_TEST(raw_responder, without_ready_to_receive__connects) {
    only_dat();
    Requested peer(transport);
    peer.socket->write(encode(peer.reply(pattern(30))));
    cr_assert(wait_event(peer.side, FI_CONNECTED).data == pattern(30));
    const Bytes out = pattern(20);
    Op& sent = peer.endpoint.send(out.data(), out.size());
    const Segment segment = raw::read_segment(*peer.socket);
    cr_assert(!segment.tagged && segment.opcode == raw::kSend && segment.payload == out);
    cr_assert(segment.queue == 0 && segment.msn == 1 && segment.offset == 0);
    wait_op(sent);
    Bytes in(10);
    Op& receive = peer.endpoint.recv(in.data(), in.size());
    peer.socket->write(encode(raw::send(1, {7})));
    wait_op(receive);
    cr_assert(receive.ok() && in[0] == 7);
}

// RFC 6581 9: the initiator sends the ready-to-receive that was chosen, first.
WIRE_TEST(raw_responder, that_chooses_a_write__gets_it_first) {
    only_dat();
    Requested peer(transport);
    if (!(peer.request.data[2] & 0x80))
        cr_skip_test("a write is not offered");
    const auto ird = static_cast<std::uint16_t>(kDepth | raw::kPeerToPeer);
    const auto ord = static_cast<std::uint16_t>(kDepth | raw::kRtrWrite);
    peer.socket->write(encode(Mpa{true, raw::kEnhanced, 2, raw::enhanced(ird, ord)}));
    const Segment ready = raw::read_segment(*peer.socket);
    cr_assert(ready.tagged && ready.opcode == raw::kWrite && ready.payload.empty());
    wait_event(peer.side, FI_CONNECTED);
}

// One that replies before it is prepared for ready-to-receive may miss it. It is sent
// again, a few times, until either side says something else.
TRANSPORT_TEST(raw_responder, that_says_nothing__gets_ready_to_receive_again) {
    only_dat();
    Requested peer(transport);
    const auto ird = static_cast<std::uint16_t>(kDepth | raw::kPeerToPeer);
    const auto ord = static_cast<std::uint16_t>(kDepth | raw::kRtrWrite);
    peer.socket->write(encode(Mpa{true, raw::kEnhanced, 2, raw::enhanced(ird, ord)}));
    wait_event(peer.side, FI_CONNECTED);
    for (int time = 0; time < 2; ++time) {
        const Segment ready = raw::read_segment(*peer.socket);
        cr_assert(ready.tagged && ready.opcode == raw::kWrite && ready.payload.empty());
    }
    const Bytes out = pattern(10);
    Op& sent = peer.endpoint.send(out.data(), out.size());
    Segment next = raw::read_segment(*peer.socket);
    while (next.opcode == raw::kWrite)
        next = raw::read_segment(*peer.socket);
    cr_assert(next.opcode == raw::kSend && next.payload == out);
    wait_op(sent);
    peer.socket->require_silent();
}

// siw copies the flags of the request into its reply: that is no announcement.
WIRE_TEST(raw_responder, that_copies_the_flags__is_not_taken_for_dat) {
    only_dat();
    Requested peer(transport);
    Mpa reply = peer.reply();
    reply.flags = peer.request.flags;
    peer.socket->write(encode(reply));
    wait_event(peer.side, FI_CONNECTED);
    const Bytes out = pattern(20);
    Op& sent = peer.endpoint.send_confirmed(out.data(), out.size());
    wait_op(sent); // U-61: completion is local
    cr_assert(sent.ok());
    cr_assert(raw::read_segment(*peer.socket).payload == out);
    peer.socket->require_silent();
}

// A responder of revision 1: taken as it is, or the attempt is refused; not a hang.
WIRE_TEST(raw_responder, of_revision_1__ends_the_attempt_one_way) {
    only_dat();
    Requested peer(transport);
    peer.socket->write(encode(Mpa{true, 0, 1, pattern(10)}));
    cr_assert(wait_until([&] { return !peer.side.events().empty(); }));
    if (peer.side.events().front().type == FI_CONNECTED)
        cr_assert(wait_event(peer.side, FI_CONNECTED).data == pattern(10));
    else
        wait_error(peer.side, FI_ECONNREFUSED);
    settle(20);
    cr_assert(peer.side.events().empty());
}

WIRE_TEST(raw_responder, that_rejects__delivers_its_data) {
    only_dat();
    Requested peer(transport);
    Mpa reply = peer.reply(pattern(30));
    reply.flags |= raw::kReject;
    peer.socket->write(encode(reply));
    const Event refused = wait_error(peer.side, FI_ECONNREFUSED);
    cr_assert(refused.data == pattern(30), "%zu bytes", refused.data.size());
    require_end(peer.endpoint, FI_DAT_END_PEER_REJECTED);
    peer.socket->wait_end();
}

// TMO-2: the timer runs until the reply is there.
WIRE_TEST(raw_responder, that_never_answers__times_out) {
    only_dat();
    Requested peer(transport, {}, 200'000);
    const Event event = wait_error(peer.side, FI_ETIMEDOUT);
    cr_assert_eq(event.fid, peer.endpoint.fid());
    require_end(peer.endpoint, FI_DAT_END_TIMED_OUT);
    peer.socket->wait_end();
}

// U-65: the limit is for the rest of a reply once begun.
WIRE_TEST(raw_responder, that_stops_half_way_through_its_reply__fails_at_the_limit) {
    only_dat();
    handshake_limit_of_1_s();
    Requested peer(transport);
    Bytes reply = encode(peer.reply(pattern(30)));
    reply.resize(reply.size() / 2);
    peer.socket->write(reply);
    cr_assert(wait_until([&] { return !peer.side.events().empty(); }));
    cr_assert(peer.side.events().front().type == kErrorEvent);
    cr_assert_eq(peer.endpoint.status().state, FI_DAT_DISCONNECTED);
    cr_assert_eq(peer.endpoint.status().reason, FI_DAT_REASON_HANDSHAKE_LIMIT);
    peer.socket->wait_end();
    settle(20);
    cr_assert_eq(peer.side.events().size(), 1);
}

WIRE_TEST(raw_responder, that_trickles_its_reply__connects) {
    only_dat();
    Requested peer(transport);
    peer.socket->trickle(encode(peer.reply(pattern(30))));
    cr_assert(wait_event(peer.side, FI_CONNECTED).data == pattern(30));
}

WIRE_TEST(raw_bad_reply, garbage__is_refused) {
    only_dat();
    Requested peer(transport);
    peer.socket->write(Bytes(64, 'x'));
    require_refused(peer, FI_DAT_REASON_PROTOCOL);
    peer.socket->wait_end();
}

WIRE_TEST(raw_bad_reply, demanding_markers__is_refused) {
    only_dat();
    Requested peer(transport);
    Mpa reply = peer.reply();
    reply.flags |= raw::kMarkers;
    peer.socket->write(encode(reply));
    require_refused(peer, FI_DAT_REASON_PROTOCOL);
}

WIRE_TEST(raw_bad_reply, request_key__is_refused) {
    only_dat();
    Requested peer(transport);
    Mpa reply = peer.reply();
    reply.reply = false;
    peer.socket->write(encode(reply));
    require_refused(peer, FI_DAT_REASON_PROTOCOL);
}

WIRE_TEST(raw_bad_reply, more_private_data_than_mpa_allows__is_refused) {
    only_dat();
    Requested peer(transport);
    peer.socket->write(encode(Mpa{true, 0, 1, Bytes(60'000)}));
    require_refused(peer, FI_DAT_REASON_PROTOCOL);
}

// EP-42: an end in place of a reply.
WIRE_TEST(raw_no_reply, closed_instead__is_refused) {
    only_dat();
    Requested peer(transport);
    peer.socket->close();
    require_refused(peer, FI_DAT_REASON_PEER_CLOSED);
}

WIRE_TEST(raw_no_reply, reset_instead__is_refused) {
    only_dat();
    Requested peer(transport);
    peer.socket->reset();
    require_refused(peer, FI_DAT_REASON_PEER_RESET);
}

WIRE_TEST(raw_no_reply, half_of_it_then_closed__is_refused) {
    only_dat();
    Requested peer(transport);
    Bytes reply = encode(peer.reply(pattern(30)));
    reply.resize(reply.size() / 2);
    peer.socket->write(reply);
    peer.socket->close();
    wait_error(peer.side, FI_ECONNREFUSED);
    require_end(peer.endpoint, FI_DAT_END_NON_PEER_REJECTED);
    settle(20);
    cr_assert(peer.side.events().empty());
}
