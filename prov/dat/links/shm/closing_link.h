// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The last moments of shared memory after its endpoint has gone, where something is owed: records
// go into the ring as the peer takes others, and payload is kept until it has copied that. A peer
// that takes nothing sees the connection reset, which is logged. Under the domain's lock.
#ifndef DAT_LINKS_SHM_CLOSING_LINK_H
#define DAT_LINKS_SHM_CLOSING_LINK_H

#include "engine/domain.h"
#include "engine/reactor.h"
#include "links/shm/peering.h"
#include "links/shm/remainder.h"
#include "links/shm/segment.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace dat::shm {

class ClosingLink final : public engine::DeferredClose, private Party, private engine::Timer {
  public:
    // What was shared.
    struct Shared {
        std::shared_ptr<Channel> channel;
        bool fences;
        Position received; // of the peer's records
    };

    // Does all that can be done at once, and leaves the rest to the domain.
    static void begin(engine::Domain& domain, Shared shared, Remainder rest);

    ClosingLink(engine::Domain& domain, Shared&& shared, Remainder&& rest);
    // Resets the connection if something has not been taken; logged.
    ~ClosingLink() override;
    bool owes() const override { return !done_; }

  private:
    // How long a peer may take nothing, and how long all of it may last.
    static constexpr std::chrono::seconds kPatience{3};
    static constexpr std::chrono::seconds kLongest{30};

    bool all_sent() const { return next_ == rest_.pieces.size(); }
    bool work(); // true: it is done
    bool send_some();
    bool refresh();
    Record* claim(std::size_t ring);
    void send(const Remainder::Piece& piece, Record& record, std::size_t ring);
    void count_answers();
    void tell(Wake why);
    void ring();
    void sleep();
    void end();
    void give_up();
    void dismiss();
    void rung() override;
    void peer_gone() override;
    void lost() override;
    void expired() override;

    engine::Domain& domain_;
    Shared shared_;
    const Side side_;
    Remainder rest_;
    const engine::Clock::time_point deadline_;
    std::size_t next_ = 0; // of the pieces
    std::uint64_t answers_ = 0;
    std::uint64_t looked_at_ = 0; // how many records the peer had taken
    bool said_ = false;           // why nothing comes behind
    bool done_ = false;           // or nobody will ever take it
};

} // namespace dat::shm

#endif
