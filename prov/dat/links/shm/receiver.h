// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The receiving half of the shared-memory link: takes the peer's records in order, and
// puts their payload where it belongs, from the shared memory or straight from the
// peer's. Every field is copied once and then checked. Under the domain's lock.
#ifndef DAT_LINKS_SHM_RECEIVER_H
#define DAT_LINKS_SHM_RECEIVER_H

#include "engine/inbox.h"
#include "links/iwarp/faults.h"
#include "links/iwarp/terminate.h"
#include "links/shm/memory.h"
#include "links/shm/peering.h"
#include "links/shm/segment.h"
#include "links/shm/sender.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>

namespace dat::shm {

// What the peer was told to copy is not memory of its sender.
inline constexpr auto kUnreadable = iwarp::TerminateCode::rdmap_catastrophic_stream;

struct Fault {
    enum class Kind : std::uint8_t {
        none,
        peer,      // it breaks the protocol, or asks for what is not allowed
        receive,   // one of this side's receives does not fit
        memory,    // of the program, on this side, is not writable
        resources, // there is no memory here for what it sent
        copying,   // the kernel does not let this side copy from the peer any more
    };
    Kind kind = Kind::none;
    iwarp::TerminateCode code{};
    const char* what = "";
};

class Receiver {
  public:
    // `channel`: outlives this.
    Receiver(engine::Endpoint& endpoint, Sender& sender, const Channel& channel,
             const LinkParameters& parameters);

    // There is a record that has not been taken.
    bool has_record() const {
        return side_.in[number_].stamp.load(std::memory_order_relaxed) ==
               static_cast<std::uint32_t>(number_) + 1;
    }
    // Takes what is there, up to a limit, and says so to the peer. Returns how many
    // records; ends at a fault, at one that has to wait, where the peer is gone, and where
    // Sender::has_word(), which is to be looked at before what comes behind it.
    std::size_t take();
    const Fault& fault() const { return fault_; }

    // A receive was posted, or a queue has room. False: fault().
    bool receive_posted();
    engine::Inbox& inbox() { return inbox_; }
    const engine::Inbox& inbox() const { return inbox_; }
    // Nothing is taken before a receive is posted.
    bool waits() const { return waits_; }
    // Nor ever again: what the peer still had in its own memory went with it.
    bool stopped() const { return waits_ || lost_; }
    // The peer has ended: nothing is copied from its memory any more, whose it may be by now.
    void peer_gone();
    // That was found out here.
    bool found_gone() const { return gone_; }
    std::uint64_t records() const { return number_; }
    Position position() const { return {number_, bytes_}; }
    // In the middle of what the peer sends.
    bool inside() const { return inbox_.open() || writing_ || responding_; }
    // See engine::Link.
    bool copy_from_peer(std::span<const iovec> from, std::span<const iovec> to);
    bool pulls() const { return pulls_; }
    // Tells the peer how far this side is.
    void publish();

  private:
    enum class Step : std::uint8_t { taken, waits, failed };
    // A record's fields, which the peer may be changing meanwhile.
    struct Fields {
        Kind kind;
        std::uint8_t flags;
        std::uint16_t places;
        std::uint32_t size;
        std::uint32_t key;
        std::uint64_t data;
        std::uint64_t address;
        bool has(Flags flag) const { return (flags & flag) != 0; }
    };

    template <bool kPlain> std::size_t take_burst();
    bool take_plain(const Record& record);
    Step take_whole(const Record& record);
    Step take(const Record& record);
    bool check(const Fields& fields);
    Step send(const Fields& fields, const Record& record);
    Step write(const Fields& fields, const Record& record);
    Step response(const Fields& fields, const Record& record);
    Step read(const Fields& fields, const Record& record);
    Step atomic(const Fields& fields, const Record& record);
    Step atomic_response(const Fields& fields, const Record& record);
    Pulled pull_from_peer(std::span<const iovec> to, std::span<const iovec> from);
    Step fetch(const Fields& fields, const Record& record, std::span<const iovec> to);
    Step fetch_write(const Fields& fields, const Record& record, std::byte* at);
    std::span<const std::byte> start_of(const Fields& fields, const Record& record) const;
    Step fetch_settled(const Fields& fields, const Record& record, std::span<const iovec> to);
    Step fetch_elsewhere(const Fields& fields, const Record& record, std::span<const iovec> to);
    bool still_there() const { return channel_.is_peer_there(); }
    Step lose();
    Step fail(iwarp::TerminateCode code, const char* what, Fault::Kind kind = Fault::Kind::peer);
    Step deny(const iwarp::Complaint& why);
    Step inbox_failed();
    std::uint8_t arrival(const Fields& fields) const;

    engine::Endpoint& endpoint_;
    engine::Domain& domain_;
    Sender& sender_;
    const Side side_;
    const Image peer_;
    const bool pulls_;
    const Channel& channel_;
    engine::Inbox inbox_;
    std::uint64_t number_ = 0; // records taken in all
    std::uint64_t bytes_ = 0;  // of the byte ring in all
    std::uint64_t told_ = 0;   // records that the peer knows to be taken
    std::uint32_t placed_ = 0; // as the peer was told
    bool waits_ = false;
    bool lost_ = false;
    bool gone_ = false;
    bool writing_ = false; // a write is not whole yet
    std::uint64_t written_ = 0;
    bool responding_ = false; // a response is not whole yet
    std::uint32_t responding_to_ = 0;
    std::uint64_t responded_ = 0; // bytes of it
    bool void_ = false;           // it has to be asked for again
    Fault fault_;
};

} // namespace dat::shm

#endif
