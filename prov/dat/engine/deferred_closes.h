// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What outlives the endpoints of a domain for a moment. Serialized by the domain's lock.
#ifndef DAT_ENGINE_DEFERRED_CLOSES_H
#define DAT_ENGINE_DEFERRED_CLOSES_H

#include "base/list.h"

#include <cstddef>
#include <memory>

namespace dat::engine {

// What outlives its endpoint for a moment: a socket, to end its stream properly, or what a
// device keeps. Destroyed under the lock, or with the domain.
class DeferredClose : public base::Hook<DeferredClose> {
  public:
    virtual ~DeferredClose() = default;
    // It holds what the program was promised would be sent. That ends by itself, also where
    // the peer takes nothing, in a time that is bounded.
    virtual bool owes() const { return false; }

  private:
    friend class DeferredCloses;
    bool dismissed_ = false;
};

class DeferredCloses {
  public:
    // Where there are too many another one is dismissed; one that owes something is the last to be.
    void add(std::unique_ptr<DeferredClose> deferred_close);
    // Destroyed by bury(). True: it was not dismissed before.
    bool dismiss(DeferredClose& deferred_close);
    void bury() { destroy(dismissed_); }

    bool none() const { return open_.empty(); }
    // One of them does.
    bool owes();
    // Destroys all of them.
    void end_all();

  private:
    using List = base::List<DeferredClose, DeferredClose>;
    static void destroy(List& owned);

    List open_; // owned, as the next
    List dismissed_;
    std::size_t count_ = 0; // of open_
};

} // namespace dat::engine

#endif
