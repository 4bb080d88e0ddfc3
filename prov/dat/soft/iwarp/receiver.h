// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The receiving half of the iWARP link: bytes into frames, frames into the memory
// that they are for, each checked before a byte moves. Does no I/O: the link reads
// the socket into what room() names and reports what came. Under the domain's gate.
// May include: soft, core, system headers.
#ifndef DAT_SOFT_IWARP_RECEIVER_H
#define DAT_SOFT_IWARP_RECEIVER_H

#include "soft/domain.h"
#include "soft/endpoint.h"
#include "soft/iwarp/rdmap.h"
#include "soft/iwarp/sender.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
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
    Receiver(soft::Endpoint& endpoint, Sender& sender, const LinkParameters& parameters);

    // Where the next bytes of the stream belong: up to kRoom pieces, in order. Empty
    // where the memory of a placement under way is gone: fault() says so.
    static constexpr std::size_t kRoom = soft::kMaxIov + 1;
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
    // The stream is inside a frame.
    bool inside_frame() const { return !frame_.empty() || placing_ || skip_ > 0; }
    // More is waiting than may be: do not read.
    bool full() const { return waiting_ && too_much_waits(); }
    // Completions wait for the program to read others first.
    bool awaits_room() const { return waiting_ && !waiting_->unannounced.empty(); }
    // What waits for room in the program's queue is put there all the same: the
    // connection is over.
    void announce_rest();
    // Whole messages wait for a receive.
    bool has_unreceived() const { return has_staged() && waiting_->staged.front().whole; }

    // A receive was posted: staged messages go where they belong. False: fault().
    bool receive_posted();
    // Sends and writes placed in all, in order.
    std::uint32_t placed() const {
        return has_staged() ? waiting_->staged.front().ordinal - 1 : taken_;
    }
    // The peer waits to be told of placed(), and was last told something else: true,
    // and it counts as told.
    bool ack_due() { return ack_wanted_ && take_ack_due(); }

  private:
    // A message for which there is no receive yet (U-9).
    struct Staged {
        std::vector<std::byte> data;
        std::uint32_t ordinal;
        bool whole = false;
        std::uint8_t how = soft::kPlain; // once it is whole; these two: of its completion
        std::uint64_t value = 0;
        std::uint64_t length = 0; // of the write, where it is one
    };
    // A write with data that no receive is for, and for which the queue has no room.
    struct Unannounced {
        std::uint64_t length;
        std::uint64_t value;
        std::uint8_t how;
    };
    // What waits for the program; few connections ever have any.
    struct Waiting {
        std::deque<Staged> staged;
        std::size_t bytes = 0; // of staged
        std::deque<Unannounced> unannounced;
    };
    static constexpr std::size_t kUnannounced = 256;
    static constexpr std::size_t kStagedOverhead = 64; // charged for a message of any size
    static constexpr std::size_t kDirectSize = 2048; // smaller rests are read with the next frames
    // Behind a frame with that much payload the next header is read by itself: what
    // another system call costs is less than to copy such a payload once more.
    static constexpr std::size_t kLargeSize = 16384;

    bool has_staged() const { return waiting_ && !waiting_->staged.empty(); }
    // The message that is arriving has no receive.
    bool is_staging() const { return has_staged() && !waiting_->staged.back().whole; }
    bool too_much_waits() const;
    Waiting& waiting();
    void forget_waiting();
    bool take_ack_due();
    std::span<iovec> special_room();
    std::size_t take_messages(std::span<const std::byte> bytes);
    std::size_t consume(std::span<const std::byte> bytes);
    void keep(std::span<const std::byte> left);
    bool frame(std::span<const std::byte> fpdu);
    bool begin_direct(std::span<const std::byte> part);
    bool control(std::span<const std::byte> payload);
    bool read_request(std::span<const std::byte> payload);
    bool atomic_request(std::span<const std::byte> payload);
    bool atomic_response(std::span<const std::byte> payload);
    bool immediate(std::span<const std::byte> payload);
    void announce_writes();

    bool open();
    bool open_send();
    bool open_response();
    bool locate(std::uint64_t done);
    void gather(std::span<const soft::Iov> iov, std::uint64_t offset, std::size_t size);
    bool close();
    bool close_send();
    void stage();
    std::uint8_t arrival() const;
    bool invalidate();
    bool hand_over(Staged& message);
    bool overlong(std::uint64_t size);
    bool wrong_zone();
    bool fail(TerminateCode code, const char* what, Fault::Kind kind = Fault::Kind::protocol);
    bool refuse(soft::Refusal why, bool tagged);

    soft::Endpoint& endpoint_;
    soft::Domain& domain_;
    Sender& sender_;
    const bool dat_peer_;
    const bool crc_;
    bool await_rtr_;
    bool awake_ = false;
    bool ack_wanted_ = false;
    bool large_ = false; // the last frame had a large payload

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
    std::array<soft::Iov, soft::kMaxIov> target_;
    std::size_t target_count_ = 0;
    // The payload is being read straight into the target.
    bool placing_ = false;
    std::size_t placed_bytes_ = 0;

    // The message at hand on the send queue.
    std::uint32_t send_msn_ = 1;
    bool assembling_ = false; // into receive_; else, where a message is begun, staged
    std::uint64_t receive_ = 0;
    std::uint64_t received_ = 0; // bytes of it
    std::uint32_t read_msn_ = 1;
    std::uint32_t atomic_msn_ = 1;     // of responses
    std::uint64_t response_bytes_ = 0; // of the oldest read
    std::uint64_t written_ = 0;        // bytes of the write at hand, or of the last one
    bool writing_ = false;             // it is not whole yet
    std::uint32_t taken_ = 0;          // sends and writes taken in all
    std::uint32_t told_ = 0;           // placed() when ack_due() last said so
    std::unique_ptr<Waiting> waiting_; // none: nothing waits
    Fault fault_;
};

} // namespace dat::iwarp

#endif
