// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a Consumer of one endpoint sees, and may rely on: a naive model of the
// DAT contract that every completion and event is held against. It shares no
// code with core::DtoStream. A plain value.
#ifndef DAT_SIM_CONSUMER_H
#define DAT_SIM_CONSUMER_H

#include "core/endpoint.h"

#include <array>
#include <cstdint>
#include <vector>

namespace dat::sim {

enum class Direction : std::uint8_t { request, receive };

class Consumer {
  public:
    // A rule that was broken: clause and what happened. nullptr: none.
    using Broken = const char*;

    // A new endpoint object.
    void created() { *this = Consumer{}; }
    // connect or accept went ahead.
    void attempt_begins();
    // reset went ahead. EP-70: only after the ending event.
    Broken reset();
    // free, or the death of the process, is over: nothing may follow.
    void gone() { gone_ = true; }

    void posted(Direction direction, std::uint64_t seq) { ops(direction).push_back(seq); }
    std::size_t outstanding(Direction direction) const { return ops_[at(direction)].size(); }

    // A completion was queued. DISC-7, DISC-8, FREE-2, EP-75.
    Broken completed(Direction direction, std::uint64_t seq, core::DtoStatus status);

    // A connection event was queued while the endpoint was in `state`.
    // EP-70, EP-71, U-7, FREE-2.
    Broken event(core::Event event, core::State state);

    // What must hold of an endpoint in `state` between any two steps.
    Broken look(core::State state) const;

    bool established() const { return established_; }
    bool ended() const { return ended_; }
    bool trying() const { return trying_; }
    bool freed() const { return gone_; }
    bool failed(Direction direction) const { return failed_[at(direction)]; }

    friend bool operator==(const Consumer&, const Consumer&) = default;

  private:
    static std::size_t at(Direction direction) { return static_cast<std::size_t>(direction); }
    std::vector<std::uint64_t>& ops(Direction direction) { return ops_[at(direction)]; }

    std::array<std::vector<std::uint64_t>, 2> ops_; // posted and not completed, oldest first
    std::array<bool, 2> failed_{};                  // in this attempt, by Direction
    bool trying_ = false;                           // an attempt began and was not reset
    bool established_ = false;
    bool ended_ = false;
    bool gone_ = false;
};

} // namespace dat::sim

#endif
