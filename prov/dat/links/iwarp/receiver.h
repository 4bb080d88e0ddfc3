// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The receiving half of the iWARP link: bytes into frames, frames into the memory
// that they are for, each checked before a byte moves. Does no I/O: the link reads
// the socket into what room() names and reports what came. Under the domain's lock.
#ifndef DAT_LINKS_IWARP_RECEIVER_H
#define DAT_LINKS_IWARP_RECEIVER_H

#include "engine/domain.h"
#include "engine/endpoint.h"
#include "engine/inbox.h"
#include "engine/responder.h"
#include "links/iwarp/rdmap.h"
#include "links/iwarp/sender.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>
#include <utility>
#include <vector>

namespace dat::iwarp {

// Why the connection cannot go on. Told to the link once.
struct Fault {
    enum class Kind : std::uint8_t {
        none,
        protocol,  // the peer broke a rule: it gets a Terminate with `code`
        receive,   // this side's receive failed (completed already): likewise
        terminate, // the peer sent a Terminate with `code`
        memory,    // there is none for what it sent: likewise
    };
    Kind kind = Kind::none;
    TerminateCode code = TerminateCode::rdmap_unspecified;
    const char* what = ""; // for the log line
    // The segment concerned, as far as it is there, and its announced length.
    std::array<std::byte, kDdpMaxHeaderSize + kReadRequestSize> header{};
    std::size_t header_size = 0;
    std::size_t ulpdu_size = 0;
};

class Receiver {
  public:
    Receiver(engine::Endpoint& endpoint, Sender& sender, const LinkParameters& parameters);

    // Where the next bytes of the stream belong: up to kRoom pieces, in order. Empty
    // where the memory of a placement under way is gone: fault() says so.
    static constexpr std::size_t kRoom = engine::kMaxPieces + 1;
    std::span<iovec> room() {
        if (placing_ || large_ || !frame_.empty()) [[unlikely]] {
            return special_room();
        }
        const auto scratch = domain_.in_scratch();
        room_[0] = {scratch.data(), scratch.size()};
        return {room_.data(), 1};
    }
    // `n` bytes came into room(). False: fault().
    bool arrived(std::size_t n);
    // Bytes that the handshake read. Before the first room().
    void early(std::span<const std::byte> bytes) { frame_.assign(bytes.begin(), bytes.end()); }
    // Takes what early() left; as arrived(). Once.
    bool begin() { return arrived(0); }

    const Fault& fault() const { return fault_; }
    // The first frame has come in.
    bool awake() const { return awake_; }
    // What of the stream's frames is still to come, for who reads on.
    FrameCounter frames_to_come() const;
    // The stream is inside a frame.
    bool inside_frame() const { return !frame_.empty() || placing_ || skip_ > 0; }
    // Where more waits than may, do not read: inbox().full().
    engine::Inbox& inbox() { return inbox_; }
    const engine::Inbox& inbox() const { return inbox_; }

    // A receive was posted: staged messages go where they belong. False: fault().
    bool receive_posted();
    // The peer waits to be told of inbox().placed(), and was last told something else:
    // true, and it counts as told.
    bool ack_due() { return ack_wanted_ && take_ack_due(); }

  private:
    static constexpr std::size_t kDirectSize = 2048; // smaller rests are read with the next frames
    // Behind a frame with that much payload the next header is read by itself: what
    // another system call costs is less than to copy such a payload once more.
    static constexpr std::size_t kLargeSize = 32768;
    // So much comes along with it: a message is mostly a little longer than the frames that it
    // fills, and the rest of it would else be a read for its header and one for its payload.
    static constexpr std::size_t kAlong = 1024 + kFpduMaxTrailer; // of 128 KiB it is 1 KiB

    bool take_ack_due();
    std::span<iovec> special_room();
    std::size_t missing() const;
    void note_size() {
        large_ = !crc_ && (payload_size_ >= kLargeSize || (large_ && continues_));
        continues_ = !segment_.last;
    }
    std::size_t take_messages(std::span<const std::byte> bytes);
    std::size_t consume(std::span<const std::byte> bytes);
    bool keep(std::span<const std::byte> left);
    bool frame(std::span<const std::byte> fpdu);
    bool begin_direct(std::span<const std::byte> part);
    bool control(std::span<const std::byte> payload);
    bool read_request(std::span<const std::byte> payload);
    bool atomic_request(std::span<const std::byte> payload);
    bool atomic_response(std::span<const std::byte> payload);
    bool immediate(std::span<const std::byte> payload);

    bool open(std::span<const std::byte> start);
    bool open_send(std::span<const std::byte> start);
    bool open_response();
    bool locate(std::uint64_t done);
    bool close();
    bool close_send();
    void placed_one();
    std::uint8_t arrival() const;
    bool inbox_failed();
    bool fail(TerminateCode code, const char* what, Fault::Kind kind = Fault::Kind::protocol);
    bool deny(const engine::Permission& denied);

    engine::Endpoint& endpoint_;
    engine::Domain& domain_;
    Sender& sender_;
    const bool dat_peer_;
    const bool crc_;
    const bool traces_frames_;
    const bool no_straight_; // take_messages() is left out
    bool await_rtr_;
    bool awake_ = false;
    bool ack_wanted_ = false;
    // Of the last frame with a place for its payload; what stands between such changes nothing.
    bool large_ = false;     // it had a large one, or ended a message of such
    bool continues_ = false; // its message goes on

    std::vector<std::byte> frame_; // the beginning of a frame that is not whole
    std::size_t skip_ = 0;         // bytes of a frame's trailer that are still to come
    std::array<iovec, kRoom> room_;

    // The segment at hand: its header, and how much payload it announced.
    Segment segment_;
    std::size_t ulpdu_size_ = 0;
    std::size_t payload_size_ = 0;
    std::array<std::byte, kDdpMaxHeaderSize + kReadRequestSize> header_;
    std::size_t header_size_ = 0;
    // Where its payload goes.
    engine::Inbox::Room target_;
    // The payload is being read straight into the target.
    bool placing_ = false;
    std::size_t placed_bytes_ = 0;

    engine::Inbox inbox_;
    std::uint32_t send_msn_ = 1; // of the message at hand on the send queue
    std::uint32_t read_msn_ = 1;
    std::uint32_t atomic_msn_ = 1;     // of responses
    std::uint64_t response_bytes_ = 0; // of the oldest read
    std::uint64_t written_ = 0;        // bytes of the write at hand, or of the last one
    bool writing_ = false;             // it is not whole yet
    std::uint64_t high_data_ = 0;      // of the next Send with Data: the upper half
    std::uint32_t told_ = 0;           // inbox_.placed() when ack_due() last said so
    Fault fault_;
};

} // namespace dat::iwarp

#endif
