// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One endpoint of a party: it connects or accepts, moves data of each kind both ways, ends
// in one of many ways, is reset and used again, and has an oracle that looks at all that
// comes back. lane.cpp: the connection; lane_posts.cpp: what is posted; lane_checks.cpp:
// what has come.
#ifndef DAT_TEST_ATTACK_LANE_H
#define DAT_TEST_ATTACK_LANE_H

#include "journal.h"
#include "payload.h"
#include "tally.h"

#include "../transport/fixture.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace dat::test {

// What a victim may be killed in.
enum class Phase { kStart, kHandshake, kConnected, kEnding };

// What the lanes of a party share.
struct Terms {
    Random random{0};
    Tally* tally = nullptr;
    Ledger* ledger = nullptr;
    std::size_t largest = 0; // bytes of a message or transfer
    // It stays to the end: its memory is touched at once, and its reports count.
    bool lasting = false;
    // Nobody who is killed is at the other end: a connection that ends is disconnected.
    bool peer_lives = false;
    // The way between the parties flips bits: any error may be reported. Counts flips.
    const Count* flips = nullptr;
    std::function<void(Phase)> phase = [](Phase) {};
    // Connections that were closed with `count` messages sent: told to the ledger when the
    // domain has been closed.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> closed;
};

class Lane {
  public:
    Lane(Side& side, Terms& terms);
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    bool idle() const { return state_ == State::kIdle; }
    bool connected() const { return state_ == State::kConnected; }
    // Idle; asks for a connection with what listens there.
    void connect(const Bytes& to);
    // Idle; false: what came with the request is not what a party says, so it is not taken.
    bool accept(const Event& request);
    // Ends the connection with a farewell, if there is one.
    void leave();
    // Ends it now, in a way that is chosen at random.
    void end();
    // Posts, if it is time. True if it did anything.
    bool step();

    fid_t fid() const { return endpoint_->get() ? endpoint_->fid() : nullptr; }
    void event(const Event& event);
    void completed(Task& task, const Op& result);

  private:
    enum class State { kIdle, kConnecting, kAccepting, kConnected, kEnding };
    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kReceives = 12;
    static constexpr std::size_t kRequests = 16;
    static constexpr std::size_t kSlots = 4;
    // The part of a lane's memory that peers reach: a counter, slots that they write, and
    // what they read.
    static constexpr std::size_t kSlotsAt = 64;
    std::size_t slot_at(std::size_t slot) const { return kSlotsAt + slot * terms_.largest; }
    std::size_t readable_at() const { return slot_at(kSlots); }

    // lane.cpp
    void begin(std::uint64_t connection);
    void open();
    Hello hello() const;
    bool learn(const Bytes& data);
    void established(const Bytes& data);
    void ended(const Event& event);
    void finish();
    void close();
    void inject_and_end();
    void probe_flushes();
    void watch();
    void require_untouched();
    void watch_progress();
    bool farewell();

    // lane_posts.cpp
    void post_receive(Task& task);
    Task* free_request();
    bool posted(Task& task, ssize_t result);
    bool window_open() const;
    bool post_something();
    bool message(Kind kind, std::size_t size);
    bool inject_message(std::size_t size);
    Head next_head(Kind kind, std::size_t size);
    void sent(const Head& head);
    bool write_slot();
    bool read();
    bool atomic();
    std::size_t some_size(std::size_t least);

    // lane_checks.cpp
    void received(Task& task, const Op& result);
    void check_slot(const Head& head);
    void check_counter(const Head& head);
    void request_done(Task& task);
    std::uint64_t counter() const;

    Side& side_;
    Terms& terms_;
    Region region_;
    const std::uint64_t read_seed_;
    std::array<Task, kReceives> receives_;
    std::array<Task, kRequests> requests_;
    std::optional<Endpoint> endpoint_; // goes before what its operations use

    State state_ = State::kIdle;
    Journal journal_;
    std::uint64_t connection_ = 0;
    Hello peer_{};
    std::uint64_t next_sent_ = 0;     // sequence of the next message
    std::uint64_t next_received_ = 0; // of the next one of the peer
    std::uint64_t owed_ = 0;          // of the peer's that were consumed, and it does not know
    std::uint64_t peer_consumed_ = 0;
    std::array<std::uint64_t, kSlots> slot_free_at_{}; // when the peer has consumed so many
    Head announced_{};               // a slot that was written and is not announced yet
    std::uint64_t counter_ = 0;      // the peer's, when all that was posted is done
    std::uint64_t counter_done_ = 0; // what finished atomics have made of it
    bool leaving_ = false;
    bool goodbye_sent_ = false;
    bool goodbye_confirmed_ = false;
    bool goodbye_received_ = false;
    bool farewell_begun_here_ = false;
    bool injects_at_end_ = false; // and ends, when no request is outstanding
    bool was_connected_ = false;
    std::uint64_t flips_before_ = 0;
    Clock::time_point moved_{}; // when a message or completion came last
    Clock::time_point rest_until_{};
    bool watched_ = false; // the sums below are of this lane's memory since the end
    std::uint64_t region_sum_ = 0;
    std::uint64_t receives_sum_ = 0;
};

} // namespace dat::test

#endif
