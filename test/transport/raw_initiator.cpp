// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite, iWARP only: `dat` accepts a peer of other make that follows the
// RFCs, byte by byte.
#include "raw_peer.h"

#include <rdma/fi_atomic.h>

using namespace dat::test;

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
WIRE_TEST(raw_initiator, that_is_not_dat__is_sent_256_bytes_at_most) {
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

// What was injected and held is sent after the initiator's first frame, also where the endpoint
// has been closed meanwhile; and then the stream ends.
WIRE_TEST(raw_initiator, that_is_silent_while_the_endpoint_closes__gets_what_was_injected) {
    only_dat();
    Accepted peer(transport, request_of_revision_1());
    wait_event(peer.side, FI_CONNECTED);
    for (unsigned i = 0; i < 5; ++i) {
        const Bytes out = pattern(50, i);
        DAT_MUST(fi_inject(peer.endpoint->get(), out.data(), out.size(), FI_ADDR_UNSPEC));
    }
    DAT_MUST(peer.endpoint->close());
    peer.socket->write(encode(raw::send(1, {1})));
    for (unsigned i = 0; i < 5; ++i) {
        const Segment segment = raw::read_segment(*peer.socket);
        cr_assert(segment.opcode == raw::kSend && segment.payload == pattern(50, i));
    }
    peer.socket->wait_end();
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

// ---- both directions at once -------------------------------------------

// More than socket buffers hold, so that a message is under way until the peer reads.
constexpr std::size_t kLong = std::size_t{48} << 20;
constexpr std::uint32_t kSink = 0x1234;

namespace {

// What one message has brought so far.
struct Stretch {
    std::size_t bytes = 0;
    bool whole = false;
    void take(const Segment& segment) {
        cr_assert_not(whole, "a segment behind the last");
        cr_assert_eq(segment.offset, bytes, "a gap");
        bytes += segment.payload.size();
        whole = segment.last;
    }
};

bool has_tag(const Segment& segment, std::uint8_t opcode) {
    return segment.tagged && segment.opcode == opcode;
}

} // namespace

// RFC 5040 5.4 has one tagged message whole before the next, as siw does; what is untagged may
// stand between, and does.
WIRE_TEST(raw_initiator, reading_while_written_to__gets_one_tagged_message_at_a_time) {
    only_dat();
    auto peer = established(transport);
    Region memory(peer->side, kLong, FI_REMOTE_READ);
    const auto key = static_cast<std::uint32_t>(memory.at(0).key);
    const std::uint64_t base = memory.at(0).address;
    const auto ask = [&](std::uint32_t msn) {
        peer->socket->write(encode(raw::read_request(msn, kSink, 0, kLong, key, base)));
    };
    const Bytes out(kLong, 7);
    // The response is under way, then a send and a write are posted.
    ask(1);
    Stretch response;
    Segment segment = raw::read_segment(*peer->socket);
    cr_assert(has_tag(segment, raw::kReadResponse));
    response.take(segment);
    Op& sent = peer->endpoint->send(out.data(), 100);
    Op& written = peer->endpoint->write(out.data(), out.size(), {0, 0x4321});
    bool between = false;
    while (!response.whole) {
        segment = raw::read_segment(*peer->socket);
        cr_assert(!has_tag(segment, raw::kWrite), "a write within a response, at %zu",
                  response.bytes);
        if (segment.tagged)
            response.take(segment);
        else
            between = true;
    }
    cr_assert(between, "a send waited for the response");
    // The write is under way, then the peer asks for a response once more.
    Stretch write;
    segment = raw::read_segment(*peer->socket);
    cr_assert(has_tag(segment, raw::kWrite));
    write.take(segment);
    ask(2);
    settle(20);
    while (!write.whole) {
        segment = raw::read_segment(*peer->socket);
        cr_assert(has_tag(segment, raw::kWrite), "a response within a write, at %zu", write.bytes);
        write.take(segment);
    }
    wait_ops(std::vector<Op*>{&sent, &written});
    for (response = {}; !response.whole;) {
        segment = raw::read_segment(*peer->socket);
        cr_assert(has_tag(segment, raw::kReadResponse));
        response.take(segment);
    }
    cr_assert_eq(response.bytes, kLong);
    cr_assert_eq(write.bytes, kLong);
}

// What goes out behind the end of the endpoint keeps to the same.
WIRE_TEST(raw_initiator, reading_while_the_endpoint_closes__gets_its_response_before_a_write) {
    only_dat();
    auto peer = established(transport);
    Region memory(peer->side, kLong, FI_REMOTE_READ);
    const Remote at = memory.at(0);
    peer->socket->write(encode(
        raw::read_request(1, kSink, 0, kLong, static_cast<std::uint32_t>(at.key), at.address)));
    Stretch response;
    response.take(raw::read_segment(*peer->socket));
    DAT_MUST(fi_inject_write(peer->endpoint->get(), "12345678", 8, FI_ADDR_UNSPEC, 0, 0x4321));
    DAT_MUST(peer->endpoint->close());
    while (!response.whole) {
        const Segment segment = raw::read_segment(*peer->socket);
        cr_assert(has_tag(segment, raw::kReadResponse), "a write within a response, at %zu",
                  response.bytes);
        response.take(segment);
    }
    cr_assert_eq(response.bytes, kLong);
    const Segment write = raw::read_segment(*peer->socket);
    cr_assert(has_tag(write, raw::kWrite));
    cr_assert(write.payload == Bytes({'1', '2', '3', '4', '5', '6', '7', '8'}));
    peer->socket->wait_end();
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
