// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the parties of a proof count together, in memory that all their processes share
// and that outlives each of them.
#ifndef DAT_TEST_ATTACK_TALLY_H
#define DAT_TEST_ATTACK_TALLY_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dat::test {

using Count = std::atomic<std::uint64_t>;

struct Tally {
    Count connected;               // connections, at each of their ends that saw them made
    Count orderly;                 // of them ended with a farewell of both sides, all of it arrived
    Count failed;                  // attempts without a connection
    Count given_up;                // connections that stood still too long, ended by this program
    Count succeeded;               // operations
    Count flushed;                 // operations
    Count erred;                   // operations that completed with another error
    Count injected;                // operations that report nothing
    Count messages;                // received, checked
    Count bytes;                   // received, read, or found written; checked
    Count violations;              // processes that ended since something was wrong
    std::array<Count, 32> reasons; // ends, by fi_dat_reason
};

// What was sent by posts that report nothing, or had been reported, before an end that did
// not wait: is it all received? Each side writes its count; who comes second compares.
class Ledger {
  public:
    // `count` messages were sent, and nothing cut the end short.
    void sent(std::uint64_t connection, std::uint64_t count) {
        write(sent_, connection, count);
        compare(connection);
    }
    // `count` messages were there when the peer's end was reported.
    void received(std::uint64_t connection, std::uint64_t count) {
        write(received_, connection, count);
        compare(connection);
    }
    std::uint64_t compared() const { return compared_; }
    std::uint64_t lost() const { return lost_; }

  private:
    static constexpr std::size_t kEntries = 1 << 14;
    // The upper half of the connection's number, and a count, 1 more than it is.
    using Table = std::array<Count, kEntries>;

    static void write(Table& table, std::uint64_t connection, std::uint64_t count) {
        table[connection % kEntries] = (connection >> 32 << 32) | (count + 1);
    }
    void compare(std::uint64_t connection) {
        const std::uint64_t sent = sent_[connection % kEntries];
        const std::uint64_t received = received_[connection % kEntries];
        if (sent >> 32 != connection >> 32 || received >> 32 != connection >> 32)
            return;
        ++compared_;
        lost_ += received < sent;
    }

    Table sent_;
    Table received_;
    Count compared_;
    Count lost_;
};

} // namespace dat::test

#endif
