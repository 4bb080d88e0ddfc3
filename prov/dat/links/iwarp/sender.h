// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The sending half of the iWARP link: what is to go out, in which order, as which
// frames. A frame is sent from where its payload lies; where the socket takes part
// of one, the rest is copied, so that between two calls nothing of a frame depends
// on memory that is not the link's. Under the domain's lock.
#ifndef DAT_LINKS_IWARP_SENDER_H
#define DAT_LINKS_IWARP_SENDER_H

#include "engine/domain.h"
#include "engine/endpoint.h"
#include "engine/request_order.h"
#include "engine/responder.h"
#include "links/iwarp/rdmap.h"
#include "links/iwarp/remainder.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace dat::iwarp {

// What the handshake found out.
struct LinkParameters {
    bool dat_peer = false;  // extensions are understood
    bool wide = false;      // MpaFrame::wide
    bool crc = false;       // CRC32C in both directions
    bool send_rtr = false;  // ready-to-receive goes out first
    bool await_rtr = false; // the first frame that comes in is ready-to-receive
    bool hold = false;      // nothing goes out before the first frame has come in
    std::uint16_t ord = 1;  // reads that may be outstanding from here
    std::uint16_t ird = 1;  // reads that the peer may have outstanding here
};

class Sender {
  public:
    enum class Result : std::uint8_t {
        done,    // nothing is left to send, or what is left waits for the peer
        blocked, // the socket is full
        dead,    // the socket failed with error()
        refused, // a read response cannot be sent: its memory is gone (refusal())
    };

    Sender(engine::Endpoint& endpoint, const LinkParameters& parameters);

    // Bytes that one frame may hold, once the socket is known. A `dat` peer takes frames
    // of any size.
    void set_segment_size(std::size_t tcp_segment);

    // Sends what may be sent. Completes requests.
    Result push(int fd) {
        bool sent = true;
        while (sent && nothing_but_requests()) {
            if (const Result result = push_small_sends(fd, sent); result != Result::done) {
                return result;
            }
            if (sent && cursor_.seq == endpoint_.core().requests().next()) [[likely]] {
                return Result::done;
            }
        }
        return push_all(fd);
    }
    // Nothing is left to send, and no read of the peer waits for its response.
    bool idle() const {
        return rest_.empty() && cursor_.seq == endpoint_.core().requests().next() &&
               responses_.all(cursor_.response) && !cursor_.rtr_due && !cursor_.ack_due;
    }
    int error() const { return error_; }
    // There was no memory for the rest of a frame that the socket has in part.
    bool out_of_memory() const { return out_of_memory_; }
    engine::Refusal refusal() const { return refusal_; }
    std::uint64_t bytes_sent() const { return bytes_sent_; }

    void release() { held_ = false; } // the first frame has come in

    // The peer has placed `count` sends and writes in all (U-61).
    void confirmed(std::uint32_t count) {
        if (confirmations_.awaited()) [[unlikely]] {
            confirm(count);
        }
    }
    // The peer is to be told of `count`, with the next Send or by an Ack.
    void owe_ack(std::uint32_t count) {
        ack_count_ = count;
        cursor_.ack_due = true;
    }
    // Messages placed so far, for whatever carries the count anyway.
    void note_placed(std::uint32_t count) { ack_count_ = count; }

    // A request came in: its response can be queued. False: more than were agreed.
    bool can_respond() const { return responses_.has_room(cursor_.response); }
    // Bytes that it asks for.
    std::uint64_t size_of(const ReadRequest& request) const {
        return (wide_ ? request.sink_to << 32 : 0) | request.size;
    }
    // Queues it; of an atomic, which has been carried out. Precondition: can_respond().
    void respond(const ReadRequest& request);
    void respond(const AtomicResponse& response);

    bool peer_serves_reads() const { return ord_ > 0; }
    bool confirms_delivery() const { return dat_peer_ || ord_ > 0; }

    bool dat_peer() const { return dat_peer_; }
    bool wide() const { return wide_; }
    // The oldest read or atomic that waits for its response. Precondition: reading().
    bool reading() const { return read_head_ != cursor_.read_tail; }
    std::uint64_t oldest_read() const { return reads_[read_head_ % reads_.size()]; }
    bool oldest_is_atomic() const { return engine::is_atomic(endpoint_.request(oldest_read()).op); }
    // By what an atomic is told from others.
    std::uint32_t oldest_id() const { return static_cast<std::uint32_t>(read_head_); }
    // How many bytes it asked for.
    std::uint64_t oldest_read_size() const;
    // Its response is whole.
    void read_done() { ++read_head_; }
    // The steering tag under which its response is asked for.
    std::uint32_t sink_stag() const { return sink_stag_of(read_head_); }

    // Ready-to-receive goes out once more at the next push().
    void repeat_ready() { cursor_.rtr_due = true; }
    // Appends an acknowledgement of what was placed if one is due, and a Terminate:
    // nothing is framed after it.
    void terminate(TerminateCode code, std::span<const std::byte> ulpdu, std::size_t ulpdu_size);
    // The bytes that must still go out for the stream to end at a frame's end.
    std::vector<std::byte> take_rest();
    // These, and all that is owed (engine::Endpoint::is_owed()). The connection has ended: nothing
    // is sent by this sender any more.
    Remainder take_remainder();
    // The request that is to be framed next.
    std::uint64_t current() const { return cursor_.seq; }

  private:
    static constexpr std::size_t kCopyLimit = 512; // bytes of payload
    static constexpr std::size_t kSmallFrameRoom =
        kFpduUntaggedHeaderSize + kCopyLimit + kFpduMaxTrailer;

    // Where framing stands. Frames are built ahead of what the socket takes, so a
    // batch carries the cursor behind each of its frames.
    enum class Tail : std::uint8_t {
        none,
        message,   // behind the upper half of its data
        immediate, // the data of a write
        read,      // of nothing, that confirms the request
    };
    struct Cursor {
        std::uint64_t seq = 0;      // the request to be framed next
        std::uint64_t offset = 0;   // bytes of it that are framed
        std::uint32_t send_msn = 1; // RFC 5041: message numbers begin at 1
        std::uint32_t read_msn = 1;
        std::uint32_t ack_msn = 1;
        std::uint32_t atomic_msn = 1; // of responses
        std::uint32_t ordinal = 0;    // of the last send or write framed
        std::uint64_t read_tail = 0;  // reads framed in all
        std::uint64_t response = 0;   // responses framed in all
        std::uint64_t response_offset = 0;
        bool rtr_due = false;
        Tail tail = Tail::none; // what comes before it is framed, it is not
        bool ack_due = false;
        bool responses_turn = false;
    };
    // With the Acks before it, which move_on() has put there. Not initialized: most of a batch are
    // never used.
    struct Frame {
        Frame() {}
        std::size_t end; // offset behind it in the batch
        const std::byte* header;
        union {
            Cursor after;
        };
    };
    struct Batch {
        static constexpr std::size_t kFrames = 64;
        static constexpr std::size_t kVectors = 320;
        std::byte* scratch;     // free room
        std::byte* scratch_end; //
        // Bytes that the same call has sent before; kAnywhere: where in the stream it stands does
        // not matter.
        static constexpr std::uint64_t kAnywhere = UINT64_MAX;
        std::uint64_t before = kAnywhere;
        std::size_t bytes = 0;
        std::size_t frame_count = 0;
        std::size_t vector_count = 0;
        std::array<Frame, kFrames> frames;
        std::array<iovec, kVectors> vectors;

        bool cut = false; // frames were taken out that are to be built again

        bool full() const;
        // Leaves the frames before the first one with payload that cannot be read.
        void keep_readable();
        void add(const std::byte* from, std::size_t size);
        void close_frame(const Cursor& after, const std::byte* header) {
            Frame& frame = frames[frame_count++];
            frame.end = bytes;
            frame.header = header;
            frame.after = after;
        }
    };
    // The widest first: each connection has room for as many as its peer may ask for.
    struct Response {
        std::uint64_t sink_to; // of an atomic: the original value
        std::uint64_t size;
        std::uint64_t source_to;
        std::uint32_t sink_stag; // of an atomic: request_id
        std::uint32_t source_stag;
        bool atomic;
    };

    // Nothing is to go out, and nothing stands in the way, but requests from their
    // first byte on. An acknowledgement that is due rides on a send.
    bool nothing_but_requests() const {
        return rest_.empty() && !held_ && !ended_ && !cursor_.rtr_due &&
               responses_.all(cursor_.response) && cursor_.offset == 0 &&
               cursor_.tail == Tail::none && (dat_peer_ || !cursor_.ack_due);
    }
    bool is_plain(const engine::Request& request) const;
    std::byte* write_small_send(std::byte* frame, const engine::Request& request,
                                std::uint32_t msn) const;
    Result push_small_sends(int fd, bool& sent);
    std::uint64_t keep_rest_of_small_sends(std::span<const std::byte> frames, std::size_t taken);
    void commit_small_sends(std::uint64_t end);
    Result push_all(int fd);
    void trace_out(const std::byte* header) __attribute__((cold));
    void confirm(std::uint32_t count);
    Result failed(int error);
    Result no_memory();
    // By the number of the read: it differs from one to the next.
    std::uint32_t sink_stag_of(std::uint64_t read) const {
        return sink_key_ ^ static_cast<std::uint32_t>(read);
    }
    bool frame_next(Cursor& at, Batch& batch);
    bool response_goes_first(const Cursor& at) const;
    bool request_ready(const Cursor& at);
    void carry_out_binds();
    void frame_request(Cursor& at, Batch& batch);
    void frame_send(Cursor& at, Batch& batch, const engine::Request& request);
    void frame_write(Cursor& at, Batch& batch, const engine::Request& request);
    void frame_read(Cursor& at, Batch& batch, const engine::Request& request);
    void frame_high_data(Cursor& at, Batch& batch, const engine::Request& request);
    void frame_immediate(Cursor& at, Batch& batch, const engine::Request& request);
    void frame_atomic(Cursor& at, Batch& batch, const engine::Request& request);
    void frame_atomic_response(Cursor& at, Batch& batch, const Response& response);
    bool needs_read(const engine::Request& request) const;
    Tail tail_of(const engine::Request& request) const;
    void respond(const Response& response);
    bool frame_response(Cursor& at, Batch& batch);
    void frame_ack(Cursor& at, Batch& batch);
    void frame_rtr(Cursor& at, Batch& batch);
    std::byte* write_ack(Cursor& at, std::byte* header) const;
    std::byte* move_on(Cursor& at, Batch& batch, std::byte* header, std::size_t header_size,
                       std::span<const engine::Iov> iov, std::uint64_t skip,
                       std::size_t size) const;
    void add_payload(Cursor& at, Batch& batch, std::byte* header, std::size_t header_size,
                     std::span<const engine::Iov> iov, std::uint64_t skip, std::size_t size) const;
    void step(Cursor& at, const engine::Request& request, std::size_t framed);
    void commit(const Cursor& after);
    // False: a part of it cannot be read.
    bool keep_rest(const Batch& batch, std::size_t from, std::size_t to);
    // The next frame, whose cursor is `after`, has payload that cannot be read.
    Result unreadable(const Cursor& after);
    bool is_passed_over(const Cursor& at) const;
    std::uint64_t bytes_before(std::uint64_t end) const;
    std::uint64_t response_left() const;
    bool frame_rest(std::uint64_t end, std::list<Remainder::Pause>& pauses);
    Result write_rest(int fd);
    Result write_batch(int fd, Batch& batch);

    engine::Endpoint& endpoint_;
    engine::Domain& domain_;
    const bool dat_peer_;
    const bool wide_;
    const bool crc_;
    const bool traces_frames_;
    const std::uint16_t ord_;
    bool held_;
    bool ended_ = false; // a Terminate is the last frame
    std::size_t max_payload_tagged_ = 0;
    std::size_t max_payload_untagged_ = 0;
    // Of a plain send the payload is smaller than that, and copied behind its header; 0: there is
    // none.
    std::size_t plain_end_ = 0;
    Cursor cursor_;
    std::vector<std::byte> rest_; // of the frame that the socket took in part
    std::size_t rest_done_ = 0;
    std::uint32_t ack_count_ = 0;
    engine::Confirmations confirmations_;
    std::uint64_t read_head_ = 0;      // reads answered in all
    std::vector<std::uint64_t> reads_; // their requests, by number modulo ord
    const std::uint32_t sink_key_;
    std::vector<Response> response_places_;
    engine::Responses<Response> responses_;
    std::uint64_t bytes_sent_ = 0;
    bool out_of_memory_ = false;
    int error_ = 0;
    engine::Refusal refusal_ = engine::Refusal::none;
};

} // namespace dat::iwarp

#endif
