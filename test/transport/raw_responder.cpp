// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite, iWARP only: `dat` calls a peer made of bytes, one that follows
// the RFCs and one that does not.
#include "raw_peer.h"

using namespace dat::test;

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
WIRE_TEST(raw_responder, that_says_nothing__gets_ready_to_receive_again) {
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

namespace {

constexpr std::uint64_t kWide = 0x0123456789abcdef;

ssize_t send_data(Requested& peer, std::uint64_t data) {
    return fi_senddata(peer.endpoint.get(), "x", 1, nullptr, data, FI_ADDR_UNSPEC, &new_op());
}
ssize_t write_data(Requested& peer, std::uint64_t data) {
    return fi_writedata(peer.endpoint.get(), "x", 1, nullptr, data, FI_ADDR_UNSPEC, 0, 1,
                        &new_op());
}

void connect_as_dat(Requested& peer, std::uint8_t more_flags) {
    cr_assert(peer.request.flags & raw::kWide);
    Mpa reply = peer.reply();
    reply.flags |= raw::kDatReply | more_flags;
    peer.socket->write(encode(reply));
    wait_event(peer.side, FI_CONNECTED);
}

} // namespace

// A `dat` of before there was data of 8 bytes: it is offered 4, and a post of more says why not.
WIRE_TEST(raw_responder, that_is_an_older_dat__is_sent_data_of_4_bytes_alone) {
    only_dat();
    Requested peer(transport);
    connect_as_dat(peer, 0);
    cr_assert_eq(send_data(peer, kWide), -FI_EOPNOTSUPP);
    cr_assert_eq(write_data(peer, std::uint64_t{1} << 32), -FI_EOPNOTSUPP);
    DAT_MUST(static_cast<int>(send_data(peer, UINT32_MAX)));
    const Segment segment = raw::read_segment(*peer.socket);
    cr_assert(segment.opcode == raw::kSendData && segment.stag == UINT32_MAX);
}

// One that says so gets the upper half ahead of a message, where there is one, and 8 bytes of
// immediate data behind a write.
WIRE_TEST(raw_responder, that_takes_data_of_8_bytes__is_sent_both_halves) {
    only_dat();
    Requested peer(transport);
    connect_as_dat(peer, raw::kWide);
    DAT_MUST(static_cast<int>(send_data(peer, kWide)));
    const Segment high = raw::read_segment(*peer.socket);
    cr_assert(high.opcode == raw::kHighData && high.queue == 4 && high.payload.empty());
    cr_assert_eq(high.stag, 0x01234567);
    const Segment message = raw::read_segment(*peer.socket);
    cr_assert(message.opcode == raw::kSendData && message.queue == 0);
    cr_assert_eq(message.stag, 0x89abcdef);
    DAT_MUST(static_cast<int>(post_when_possible([&] { return send_data(peer, 5); })));
    const Segment narrow = raw::read_segment(*peer.socket);
    cr_assert(narrow.opcode == raw::kSendData && narrow.stag == 5, "nothing goes ahead of it");
    DAT_MUST(static_cast<int>(post_when_possible([&] { return write_data(peer, kWide); })));
    cr_assert_eq(raw::read_segment(*peer.socket).opcode, raw::kWrite);
    const Segment immediate = raw::read_segment(*peer.socket);
    cr_assert_eq(immediate.opcode, raw::kImmediate);
    cr_assert_eq(raw::get64(immediate.payload, 0), kWide);
}

namespace {

constexpr std::size_t k4GiB = std::size_t{1} << 32;

// None of it is looked at in a post that is refused.
ssize_t read_from(Requested& peer, std::size_t length) {
    static std::uint8_t sink = 0;
    return fi_read(peer.endpoint.get(), &sink, length, nullptr, FI_ADDR_UNSPEC, 0, 1, &new_op());
}
void require_less_than_4_gib(Requested& peer) {
    static std::uint8_t source = 0;
    fid_ep* const ep = peer.endpoint.get();
    cr_assert_eq(fi_send(ep, &source, k4GiB, nullptr, FI_ADDR_UNSPEC, &new_op()), -FI_EMSGSIZE);
    cr_assert_eq(fi_write(ep, &source, k4GiB, nullptr, FI_ADDR_UNSPEC, 0, 1, &new_op()),
                 -FI_EMSGSIZE);
    cr_assert_eq(read_from(peer, k4GiB), -FI_EMSGSIZE);
    require_state(peer.endpoint, FI_DAT_CONNECTED);
    DAT_MUST(static_cast<int>(read_from(peer, k4GiB - 1)));
    const Segment request = raw::read_segment(*peer.socket);
    cr_assert_eq(request.opcode, raw::kReadRequest);
    cr_assert_eq(raw::get64(request.payload, 4), 0, "its sink's offset");
    cr_assert_eq(raw::get32(request.payload, 12), UINT32_MAX, "its size");
}

} // namespace

// Offsets of messages and sizes of reads have 32 bits in RFC 5041 and RFC 5040.
WIRE_TEST(raw_responder, that_is_no_dat__is_sent_less_than_4_gib) {
    only_dat();
    Requested peer(transport);
    peer.socket->write(encode(peer.reply()));
    wait_event(peer.side, FI_CONNECTED);
    require_less_than_4_gib(peer);
}

WIRE_TEST(raw_responder, that_is_an_older_dat__is_sent_less_than_4_gib) {
    only_dat();
    Requested peer(transport);
    connect_as_dat(peer, 0);
    require_less_than_4_gib(peer);
}

// The upper half of a read's size is where the offset of its sink would be.
WIRE_TEST(raw_responder, that_takes_fields_of_8_bytes__is_asked_for_4_gib_and_more) {
    only_dat();
    Requested peer(transport);
    connect_as_dat(peer, raw::kWide);
    DAT_MUST(static_cast<int>(read_from(peer, 3 * k4GiB + 5)));
    const Segment request = raw::read_segment(*peer.socket);
    cr_assert_eq(request.opcode, raw::kReadRequest);
    cr_assert_eq(raw::get64(request.payload, 4), 3);
    cr_assert_eq(raw::get32(request.payload, 12), 5);
}
