// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a domain knows of its connections for those who ask: which there are, how much they have
// carried, and how the last ones ended. Nothing here is on the path of a message: an endpoint
// counts by the numbers of its streams, and they are looked at when a sheet of the page is
// written. Under the domain's lock.
#ifndef DAT_ENGINE_STATISTICS_H
#define DAT_ENGINE_STATISTICS_H

#include "base/list.h"
#include "core/completion.h"
#include "core/ep_state.h"
#include "engine/statistics_page.h"

#include <array>
#include <cstdint>
#include <memory>

namespace dat::engine {

class Endpoint;
struct Counted; // the list of Statistics that an endpoint is in

class Statistics {
  public:
    Statistics(); // throws std::bad_alloc
    ~Statistics();
    Statistics(const Statistics&) = delete;
    Statistics& operator=(const Statistics&) = delete;

    // An endpoint of this domain begins an attempt; from the first to leave() it is shown. What it
    // has counted stays in the totals.
    void join(Endpoint& endpoint);
    void leave(Endpoint& endpoint);
    void established() { ++established_; }
    // An attempt has ended. `from`: the state that `stimulus` met; `event`: that the program is
    // given, if it is any.
    struct Carried { // completed before the rest was flushed, since the endpoint was made
        std::uint64_t requests;
        std::uint64_t receives;
    };
    void ended(const Endpoint& endpoint, core::State from, core::Stimulus stimulus,
               core::Event event, core::Reason reason, const Carried& carried);

    // From here on ends are written there as well, those that are kept at once; nullptr: not any
    // more.
    void set_page(page::Page* page);
    // Writes a sheet of it. A system call for each connection over TCP, of 64 in turn.
    void write();
    page::Totals totals() const;
    // The last of them, `i` below kept_ends(), the oldest first.
    std::uint64_t kept_ends() const { return ends_ < page::kEnds ? ends_ : page::kEnds; }
    const page::End& end(std::uint64_t i) const {
        return kept_[(ends_ - kept_ends() + i) % page::kEnds];
    }

  private:
    void add(page::Totals& totals, const Endpoint& endpoint) const;

    // Not touched before there is an end.
    const std::unique_ptr<std::array<page::End, page::kEnds>> kept_owner_;
    std::array<page::End, page::kEnds>& kept_;
    std::uint64_t ends_ = 0;
    std::uint64_t endpoints_made_ = 0;
    std::uint64_t established_ = 0;
    std::uint64_t asked_from_ = 0; // where the turn of the system calls begins
    page::Totals gone_{};          // of endpoints that have left; and ends by reason
    base::List<Endpoint, Counted> endpoints_;
    page::Page* page_ = nullptr;
};

} // namespace dat::engine

#endif
