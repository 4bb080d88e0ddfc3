// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The other side of a connection under attack: it builds frames with any fault, gives
// them to the socket in any pieces, and reads what comes back, which must be right
// whatever it sends itself.
#ifndef TEST_FUZZ_HOSTILE_PEER_H
#define TEST_FUZZ_HOSTILE_PEER_H

#include "input.h"

#include "links/iwarp/mpa.h"
#include "links/iwarp/rdmap.h"

#include <deque>

namespace fuzz {

class HostilePeer {
  public:
    // Owns `fd`, non-blocking.
    explicit HostilePeer(int fd) : fd_(fd) {}
    ~HostilePeer() { close(); }
    HostilePeer(const HostilePeer&) = delete;
    HostilePeer& operator=(const HostilePeer&) = delete;

    // Frames are to be as this connection wants them. `reply`: an MPA reply comes first.
    void agree(bool dat_peer, bool crc, bool reply) {
        dat_peer_ = dat_peer;
        crc_ = crc;
        reply_due_ = reply;
    }

    // --- frames into the queue; each right by itself ---
    void send(dat::iwarp::Opcode opcode, std::size_t size, bool last, bool ack_wanted,
              std::uint32_t ulp_word);
    void write(std::uint32_t stag, std::uint64_t to, std::size_t size, bool last, bool ack_wanted);
    void read_request(const dat::iwarp::ReadRequest& request);
    // Answers the oldest read that was asked for, with at most `size` bytes; an atomic
    // whole.
    void read_response(std::size_t size);
    void ack(std::uint32_t count);
    void high_data(std::uint32_t word);
    // RFC 7306, and a Send with data is a Send.
    void immediate(std::uint64_t value, bool solicited);
    void atomic_request(const dat::iwarp::AtomicRequest& request);
    void terminate(std::uint16_t code);
    void empty_frame();

    // --- faults ---
    // Byte `at` of the next frame is XORed with `with`, under a CRC that is right.
    void twist(std::size_t at, std::uint8_t with) { twists_.push_back({at, with}); }
    // A byte of the last frame in the queue, CRC and all.
    void spoil(std::size_t at, std::uint8_t with);
    void raw(const Bytes& bytes);
    // False once anything but right frames in the right order has been queued.
    bool clean() const { return clean_; }

    // --- the socket ---
    // Gives `most` bytes of the queue to the socket, as far as it takes them.
    void deliver(std::size_t most);
    // Takes and checks what has come.
    void listen();
    void shutdown_write();
    void close();

    std::size_t queued() const { return queue_.size(); }
    std::size_t delivered() const { return delivered_; }
    // Bytes queued in all of frames that are not sends.
    std::size_t other_bytes() const { return other_bytes_; }
    // Sends and writes that came in all.
    std::uint32_t taken() const { return taken_; }
    bool dat_peer() const { return dat_peer_; }
    // What whole messages this peer has sent.
    const std::vector<Bytes>& messages() const { return messages_; }
    // The response to atomic number `read`; that to a read: fill_response().
    static std::uint64_t response_value(std::size_t read) { return read * 0x0101010101010107; }

  private:
    struct Twist {
        std::size_t at;
        std::uint8_t with;
    };
    struct Read {
        std::uint32_t stag; // of an atomic: what it is told by
        std::uint32_t size;
        bool atomic = false;
    };

    void say(dat::iwarp::Opcode opcode, std::uint32_t word);
    void queue(Bytes frame, bool is_send);
    void answer_atomic(const Read& read);
    bool take_reply();
    bool take_frame(std::span<const std::byte>& rest);
    void look_at(const dat::iwarp::Segment& segment, std::span<const std::byte> payload);

    int fd_;
    bool dat_peer_ = false;
    bool crc_ = false;
    bool reply_due_ = false;
    bool clean_ = true;

    Bytes queue_;
    std::size_t last_frame_ = 0; // its bytes at the queue's end
    std::vector<Twist> twists_;
    std::size_t delivered_ = 0;
    std::size_t other_bytes_ = 0;

    std::uint32_t send_msn_ = 1;
    std::uint32_t read_msn_ = 1;
    std::uint32_t ack_msn_ = 1;
    std::uint32_t atomic_msn_ = 1; // of responses
    Bytes message_;                // under way
    std::vector<Bytes> messages_;

    Bytes in_;
    bool terminated_ = false; // a Terminate came: nothing may follow
    std::uint32_t taken_ = 0;
    std::deque<Read> reads_; // asked for and not answered
    std::size_t answered_ = 0;
    std::uint32_t response_offset_ = 0;
};

} // namespace fuzz

#endif
