// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which receive the next message of a connection takes: the oldest of the endpoint's own that no
// message has been matched with, else one of those that endpoints share. Knows numbers of
// receives only.
#ifndef DAT_ENGINE_RECEIVE_MATCHING_H
#define DAT_ENGINE_RECEIVE_MATCHING_H

#include "core/dto_stream.h"
#include "core/endpoint.h"
#include "engine/operation.h"

#include <cstdint>

namespace dat::engine {

class SharedReceives;

class ReceiveMatching {
  public:
    void set_shared(SharedReceives* shared) { shared_ = shared; }
    SharedReceives* shared() const { return shared_; }

    // EPA-7: receives that are posted by now are of another protection zone.
    void change_zone(const core::DtoStream& posted) { zone_from_ = posted.next(); }
    bool of_old_zone(std::uint64_t receive) const { return receive < zone_from_; }

    // A message finds a receive. Passes over those that were taken back.
    bool has_receive(const core::Endpoint& core) {
        const core::DtoStream& posted = core.receives();
        while (next_ != posted.next()) {
            if (next_ >= posted.first() && !posted.finished(next_)) [[likely]] {
                return true;
            }
            ++next_; // taken back; where it was passed over its slot may be another's
        }
        return shared_ && may_share(core);
    }
    // next() is one of this zone that was not taken back. False: has_receive() has to look.
    bool next_is_fit(const core::DtoStream& posted) const {
        if (next_ == posted.next() || next_ < posted.first() || next_ < zone_from_ ||
            posted.finished(next_)) [[unlikely]] {
            return false;
        }
        return true;
    }
    // Every one that is posted is matched: after has_receive(), one is to be shared.
    bool all_matched(const core::DtoStream& posted) const { return next_ == posted.next(); }
    // The receive that the next message takes; that which is posted next where all are matched.
    std::uint64_t next() const { return next_; }
    // A message takes it.
    std::uint64_t take() { return next_++; }
    // The oldest that is shared. Precondition: has_receive(), and all_matched().
    const Receive& take_shared();
    // That receive serves the next message, too.
    void take_again(std::uint64_t seq) { next_ = seq; }
    // That receive, and all before it, take no message any more.
    void pass(std::uint64_t seq) { next_ = seq + 1; }
    void pass_all(const core::DtoStream& posted) { next_ = posted.next(); }

    // There is a message without a receive.
    void set_starved(bool starved) { starved_ = starved; }
    bool starved() const { return starved_; }

  private:
    bool may_share(const core::Endpoint& core) const;

    std::uint64_t next_ = 0;
    std::uint64_t zone_from_ = 0; // receives before this one are of another zone
    SharedReceives* shared_ = nullptr;
    bool starved_ = false;
};

} // namespace dat::engine

#endif
