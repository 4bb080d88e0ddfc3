// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The sending half of the shared-memory link: which request or response goes next, and
// as which records. Small payloads are copied into the shared memory; of large ones the
// peer is told the place, if it can copy from there. Under the domain's lock.
#ifndef DAT_LINKS_SHM_SENDER_H
#define DAT_LINKS_SHM_SENDER_H

#include "engine/domain.h"
#include "engine/endpoint.h"
#include "engine/request_order.h"
#include "engine/responder.h"
#include "links/shm/memory.h"
#include "links/shm/remainder.h"
#include "links/shm/segment.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace dat::shm {

// What the handshake found out.
struct LinkParameters {
    bool initiator = false;
    std::uint16_t ord = 1; // reads and atomics that may be outstanding from here
    std::uint16_t ird = 1; // those of the peer
    Image peer;            // what its memory is read from
    bool pulls = false;    // this side can copy from the peer's memory
    bool fences = true;    // the peer's membarrier(2) does not cover this process
};

class Sender final : private engine::RegionWatcher {
  public:
    enum class Result : std::uint8_t {
        done,     // nothing is left to send, or what is left waits for the peer's answers
        stuck,    // the peer has to take something first
        refused,  // a response cannot be sent: its memory is gone (refusal())
        violated, // the peer says that it took what was never sent
    };

    Sender(engine::Endpoint& endpoint, const Side& side, const LinkParameters& parameters);

    // The connection is over. The endpoint may be gone before this is destroyed.
    void part();

    // The common case of a post, a short message with nothing before it: sends it and
    // completes it if it asks for no more. False: nothing happened, push() does it.
    bool send_short(engine::Request& request, std::uint64_t seq);
    Result push();
    // Nothing is left to send.
    bool idle() const {
        return next_ == endpoint_.core().requests().next() && responses_.all(response_) &&
               again_ == 0;
    }
    // Something waits for what the peer takes or places.
    bool waits() const { return stuck_ || confirmations_.awaited(); }
    // The peer's part of the shared memory says more than when last looked at.
    bool may_go_on() const;
    // Of what awaits completion the peer may have placed more than when last looked at: that
    // completes before what the peer has sent since, which may be an answer to it.
    bool awaits_word() const { return confirmations_.awaited(); }
    bool has_word() const {
        return side_.peers->placed.load(std::memory_order_relaxed) != confirmed_;
    }
    // Looks at it: completes what is placed, and finds room. False: Result::violated.
    bool look();
    engine::Refusal refusal() const { return refusal_; }
    // What is owed (engine::Endpoint::is_owed()) and is not in the ring, or not all of it. The
    // connection has ended: nothing is sent by this sender any more.
    Remainder take_remainder();
    std::uint64_t records() const { return number_; }

    bool peer_serves_reads() const { return ord_ > 0; }

    // A request came in: its response is queued. False: more than were agreed.
    bool can_respond() const { return responses_.has_room(response_); }
    void respond_read(const ReadRequest& request, std::uint32_t key, std::uint64_t address);
    void respond_atomic(std::uint32_t number, std::uint64_t before);

    // The read or atomic of that number waits for its response; nullptr: it does not.
    engine::Request* waiting(std::uint32_t number, bool atomic);
    // Its response is whole.
    void answered(std::uint32_t number);
    // Its response was void: it is asked for again.
    void ask_again(std::uint32_t number);

  private:
    // A payload beyond this is copied by the peer from where it lies, in pieces. Two copies by two
    // processors, piece by piece through a ring that stays in the cache, are sooner done than one
    // with process_vm_readv(2) at any length, but what the ring does not hold at once waits for
    // this side's program to poll again. So what goes through it is as long as the ring, with a
    // header of a layer above; and shorter where the program does not poll.
    static constexpr std::uint64_t kCopied = kRing + 256;
    static constexpr std::uint64_t kCopiedUnattended = 24 * 1024;
    static constexpr std::uint64_t kPulled = 1024 * 1024;

    struct Open { // a read or atomic on its way
        std::uint64_t seq;
        std::uint32_t number;
        bool waits;
        bool again;
    };
    struct Response {
        std::uint32_t number;
        std::uint32_t key;
        std::uint64_t address; // of an atomic: the value
        std::uint64_t length;
        bool atomic;
    };
    // A payload, of which the first `done` of `length` bytes have gone.
    struct Payload {
        std::span<const engine::Iov> iov;
        std::uint64_t length;
        std::uint64_t done;
        bool may_be_pulled;
        std::uint64_t seq = UINT64_MAX; // of its request, if it is of one
    };

    // A record of which the peer is told the place.
    struct Left {
        std::uint64_t number;
        std::uint64_t seq;    // of its request
        std::uint64_t offset; // of its bytes there
    };
    static_assert(std::is_trivial_v<Left>);
    // So many reads and responses have a place in memory that a link without any does not touch.
    static constexpr std::uint16_t kFew = 16;
    // What most links never touch. Nothing in it is read before it is written.
    struct Seldom {
        std::array<Left, kRecords> left; // the last ones, see left_at()
        std::array<Open, kFew> reads;
        std::array<Response, kFew> responses;
    };
    static_assert(std::is_trivially_destructible_v<Seldom> &&
                  sizeof(Seldom) <= engine::Domain::kSparseSize);
    class SeldomTouched {
      public:
        using Memory = base::Slabs<engine::Domain::kSparseSize>;
        explicit SeldomTouched(Memory& memory) // throws std::bad_alloc
            : memory_(memory), at_(static_cast<Seldom*>(memory.take())) {}
        SeldomTouched(const SeldomTouched&) = delete;
        SeldomTouched& operator=(const SeldomTouched&) = delete;
        ~SeldomTouched() { memory_.give_back(at_); }
        Seldom* operator->() const { return at_; }

      private:
        Memory& memory_;
        Seldom* const at_;
    };

    Left& left_at(std::uint64_t number) const { return seldom_->left[number % kRecords]; }
    void region_gone() override;
    bool ready();
    bool send_request();
    std::uint32_t read_number() const { return static_cast<std::uint32_t>(read_count_); }
    bool waits_for(std::uint32_t number) const;
    bool send_read(engine::Request& request);
    bool send_again();
    bool send_response();
    Record* claim(std::size_t ring_bytes);
    void publish(Record& record, std::size_t ring_bytes);
    std::uint64_t send_piece(const Payload& payload, const Head& head, bool& elsewhere);
    void sent(engine::Request& request, bool elsewhere);
    bool refresh();
    static Head head_of(const engine::Request& request);
    AtomicRequest atomic_of(const engine::Request& request, std::uint64_t seq,
                            std::uint32_t number);
    std::uint64_t first_uncopied() const;
    const engine::Request* request_of(const Left& left) const;
    std::uint64_t bytes_owed(std::uint64_t left, std::uint64_t end) const;
    void move_left(std::uint64_t first, Remainder& to);
    static void name_place(Record& record, std::span<const engine::Iov> iov, std::uint64_t offset,
                           std::uint64_t size, const std::byte* at);
    void copy_rest(std::uint64_t end, Remainder& to);
    void copy_message(const engine::Request& request, std::uint64_t offset, Remainder& to);
    void copy_atomic(const engine::Request& request, std::uint64_t in_flight, Remainder& to);

    engine::Endpoint& endpoint_;
    const Side side_;
    const std::uint16_t ord_;
    std::uint64_t number_ = 0; // records in all
    std::uint64_t bytes_ = 0;  // of the byte ring in all
    std::uint64_t taken_ = 0;  // as far as known: by the peer
    std::uint64_t bytes_taken_ = 0;
    std::uint64_t next_;       // the request that goes next
    std::uint64_t offset_ = 0; // bytes of it that have gone
    const SeldomTouched seldom_;
    std::uint64_t left_tail_ = 0; // how many there have been in seldom_->left
    bool elsewhere_ = false;      // a piece of it lies where it was
    bool stuck_ = false;
    bool violated_ = false;
    bool responses_turn_ = false;
    bool watching_ = false;       // regions, for responses that lie elsewhere
    std::uint32_t ordinal_ = 0;   // messages and writes in all
    std::uint32_t confirmed_ = 0; // what the peer had placed when last looked at
    engine::Confirmations confirmations_;
    std::uint32_t open_reads_ = 0;
    std::uint32_t again_ = 0;      // of them to be asked for again
    std::uint64_t read_count_ = 0; // in all; its lower half is the number of the next
    // Where there are more than kFew.
    const std::unique_ptr<Open[]> own_reads_;
    const std::unique_ptr<Response[]> own_responses_;
    const std::span<Open> reads_; // by number modulo ord; the first read_count_ have been written
    std::uint64_t response_ = 0;  // sent in all
    std::uint64_t response_offset_ = 0;
    engine::Responses<Response> responses_;
    engine::Refusal refusal_ = engine::Refusal::none;
};

inline bool Sender::send_short(engine::Request& request, std::uint64_t seq) {
    if (seq != next_ || request.op != engine::OpCode::send || request.length > kInline ||
        request.iov_count > 1 || request.fence || !responses_.all(response_) ||
        number_ - taken_ >= kRecords) {
        return false;
    }
    Record& record = side_.out[number_];
    record.kind = Kind::send;
    record.flags = static_cast<std::uint8_t>(kFirst | kLast | (request.solicited ? kSolicited : 0) |
                                             (request.has_data ? kHasData : 0));
    record.places = 0;
    record.size = static_cast<std::uint32_t>(request.length);
    record.data = request.data;
    if (request.length > 0) {
        std::memcpy(record.payload.data(), request.iov.base, request.length);
    }
    publish(record, 0);
    next_ = seq + 1;
    sent(request, false);
    return true;
}

inline void Sender::publish(Record& record, std::size_t ring_bytes) {
    record.stamp.store(static_cast<std::uint32_t>(number_) + 1, std::memory_order_release);
    ++number_;
    bytes_ += ring_bytes;
}

// All of a message or write has gone. What lies elsewhere is the peer's until it says.
inline void Sender::sent(engine::Request& request, bool elsewhere) {
    ++ordinal_;
    const std::uint64_t seq = next_ - 1;
    if (request.level == engine::Level::taken && !elsewhere) [[likely]] {
        endpoint_.finish_request(seq, core::DtoStatus::success);
        return;
    }
    request.level =
        request.level == engine::Level::taken ? engine::Level::left : engine::Level::placed;
    confirmations_.await(request, ordinal_);
}

inline bool Sender::may_go_on() const {
    return (stuck_ && side_.peers->records_taken.load(std::memory_order_relaxed) != taken_) ||
           (awaits_word() && has_word());
}

} // namespace dat::shm

#endif
