// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What stands in the stream before a long payload, so that the kernel does not copy it slowly
// (base/copy.h): towards a `dat` peer Acks, as many as it takes, and only where it takes any.
#include "engine_attack.h"

#include "base/copy.h"

#include <array>
#include <cstddef>
#include <cstdint>

using namespace engine_test;
using dat::base::is_slow_copy;
using dat::base::kShortCopy;
using dat::engine::OpCode;
using dat::iwarp::Link;

namespace {

constexpr unsigned kWrite = 0, kResponse = 2, kSend = 3, kAck = 15;
constexpr std::uint32_t kSource = 20; // the key of what the peer reads
constexpr std::size_t kPage = 4096;

// What came before the payload of the first frame with that opcode.
struct Before {
    std::size_t bytes = 0;
    std::size_t acks = 0;
};

// Nothing but Acks, each with the next number, may stand before it.
Before before_first(Attacked& w, unsigned opcode) {
    Before before;
    cr_assert(w.run([&] {
        while (std::optional<Came> came = w.raw.take_frame()) {
            const bool tagged = (std::to_integer<unsigned>(came->ulpdu[0]) & 0x80) != 0;
            if (came->opcode() == opcode) {
                before.bytes += tagged ? 16 : 20; // RFC 5044 4.1, RFC 5041 4
                return true;
            }
            ++before.acks;
            cr_assert_eq(came->opcode(), kAck);
            cr_assert_eq(get(came->ulpdu, 10, 4), before.acks);
            before.bytes += came->ulpdu.size() + 2 + 4;
        }
        return false;
    }));
    return before;
}

// Memory of which a payload begins at any place of a page.
class Pages {
  public:
    explicit Pages(std::size_t size) : bytes_(size + 2 * kPage, std::byte{0xab}) {}
    std::span<std::byte> at(std::size_t offset, std::size_t size) {
        const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
        return std::span(bytes_).subspan((kPage - begin % kPage) % kPage + offset, size);
    }

  private:
    Bytes bytes_;
};

bool is_slow(std::uint64_t before, std::uint64_t offset) {
    return is_slow_copy(before - offset) || is_slow_copy(offset - before);
}

// Sends `size` bytes from each place of a page that matters; `header`: bytes of the frame's, and of
// what is payload but stands before those.
template <class Post>
void each_place(Peer kind, unsigned opcode, std::size_t header, std::size_t size, Post post,
                bool crc = false) {
    Pages pages(size);
    bool any = false;
    for (std::size_t offset = 0; offset < 96; offset += 4) {
        Attacked w(kind, crc);
        post(w, pages.at(offset, size));
        const Before before = before_first(w, opcode);
        const std::size_t beside = header - (opcode == kSend ? 20 : 16);
        const bool needed = kind == Peer::dat && size > kShortCopy && is_slow(header, offset);
        cr_assert_eq(before.acks > 0, needed, "at %zu: %zu Acks", offset, before.acks);
        cr_assert(before.acks == 0 || !is_slow(before.bytes + beside, offset),
                  "at %zu: %zu before it", offset, before.bytes);
        any = any || needed;
        if (opcode == kResponse) {
            w.domain.regions().remove(kSource);
        }
    }
    cr_assert_eq(any, kind == Peer::dat && size > kShortCopy);
}

void sends(Peer kind, std::size_t size, bool crc = false) {
    const auto post = [](Attacked& w, std::span<std::byte> payload) {
        if (w.kind == Peer::foreign) { // this side's frames wait for its first one
            w.put(send_segment(1, {}));
        }
        w.side.send<Link>(payload);
    };
    each_place(kind, kSend, 20, size, post, crc);
}

} // namespace

Test(engine_copies, a_long_send_begins_where_its_copy_is_fast, .timeout = 60) {
    sends(Peer::dat, kShortCopy + 1);
}

Test(engine_copies, a_long_send_with_crc_begins_where_its_copy_is_fast, .timeout = 60) {
    sends(Peer::dat, kShortCopy + 1, true);
}

// As a message of a reliable datagram endpoint has its head before what the program sends.
Test(engine_copies, a_long_segment_behind_a_short_one_begins_where_its_copy_is_fast,
     .timeout = 60) {
    static std::array<std::byte, 16> head{};
    const auto post = [](Attacked& w, std::span<std::byte> payload) {
        dat::engine::post_request<Link>(
            w.side.endpoint, false, [&](dat::engine::Request& r, std::uint64_t seq) {
                Side::fill(r, OpCode::send, payload, 0);
                r.length += head.size();
                dat::engine::Iov* const to =
                    dat::engine::set_segments(r, 2, w.side.endpoint.request_extra_segments(seq));
                to[0] = {head.data(), head.size()};
                to[1] = {payload.data(), payload.size()};
            });
    };
    each_place(Peer::dat, kSend, 20 + head.size(), kShortCopy + 1, post);
}

// Each frame of a message begins anew: what of it is long has a place of its own.
Test(engine_copies, a_short_end_of_a_long_message_has_nothing_before_it, .timeout = 60) {
    constexpr std::size_t kFrame = 65024; // payload, between `dat` peers
    Pages pages(kFrame + kShortCopy);
    for (std::size_t offset = 0; offset < 96; offset += 4) {
        Attacked w(Peer::dat);
        w.side.send<Link>(pages.at(offset, kFrame + kShortCopy));
        before_first(w, kSend);
        cr_assert_eq(before_first(w, kSend).acks, 0, "at %zu", offset);
    }
}

Test(engine_copies, a_short_send_has_nothing_before_it, .timeout = 60) {
    sends(Peer::dat, kShortCopy);
}

Test(engine_copies, a_peer_that_knows_no_ack_gets_none, .timeout = 60) {
    sends(Peer::foreign, kShortCopy + 1);
}

Test(engine_copies, a_long_write_begins_where_its_copy_is_fast, .timeout = 60) {
    each_place(Peer::dat, kWrite, 16, kShortCopy + 1,
               [](Attacked& w, std::span<std::byte> payload) {
                   w.side.rma<Link>(OpCode::write, payload, 7, 0);
               });
}

Test(engine_copies, a_long_response_begins_where_its_copy_is_fast, .timeout = 60) {
    constexpr std::size_t kSize = kShortCopy + 1;
    const auto ask = [](Attacked& w, std::span<std::byte> source) {
        cr_assert(w.domain.regions().add(kSource, {source.data(), source.size(), 0x1000,
                                                   &Side::zone, dat::engine::kRemoteRead}));
        w.put(read_request(1, kSize, kSource, 0x1000));
    };
    each_place(Peer::dat, kResponse, 16, kSize, ask);
}
