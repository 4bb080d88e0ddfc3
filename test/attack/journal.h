// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The oracle of one endpoint's operations: each completes once, in posting order for its
// direction, first successes, then at most one error with a cause, then only flushes
// (DISC-8).
#ifndef DAT_TEST_ATTACK_JOURNAL_H
#define DAT_TEST_ATTACK_JOURNAL_H

#include "../transport/fixture.h"

#include <cstdint>
#include <deque>
#include <memory>

namespace dat::test {

class Lane;

enum class Verb { kReceive, kSend, kWrite, kRead, kFetchAdd, kCompareSwap, kAdd };

// One operation and its memory, used again when it has completed. Its address is the
// context that it is posted with.
struct Task {
    Lane* lane = nullptr;
    Verb verb = Verb::kReceive;
    bool posted = false;
    std::size_t size = 0;
    std::uint64_t sequence = 0;     // of a message: its own
    std::size_t offset = 0;         // of a read: from where
    std::uint64_t operands[3] = {}; // of an atomic: operand, comparand, what it fetched
    std::uint64_t before = 0;       // of an atomic: what it has to find
    std::uint64_t after = 0;
    std::unique_ptr<std::uint8_t[]> bytes;
};

class Journal {
  public:
    void posted(Task& task);
    // Fails where this completion must not be.
    void completed(Task& task, const Op& result);
    // The attempt is over: all must have completed. `where` says when this was.
    void require_empty(const char* where) const;
    // Of the next connection.
    void begin();

    std::size_t requests() const { return streams_[0].outstanding.size(); }
    std::size_t receives() const { return streams_[1].outstanding.size(); }

  private:
    struct Stream {
        std::deque<const Task*> outstanding; // in posting order
        bool failed = false;
    };
    Stream& stream_of(const Task& task) { return streams_[task.verb == Verb::kReceive]; }

    Stream streams_[2]; // requests, receives
};

} // namespace dat::test

#endif
