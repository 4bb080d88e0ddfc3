// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite, iWARP only: initiators made of bytes that fall silent, stop
// half-way, end, or break the rules.
#include "raw_peer.h"

using namespace dat::test;

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
