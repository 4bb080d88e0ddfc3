// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The completion queue. Grows with what is posted: its nominal size allocates
// nothing.
#ifndef DAT_OFI_CQ_H
#define DAT_OFI_CQ_H

#include "core/completion.h"
#include "ofi/domain.h"
#include "ofi/fid.h"
#include "ofi/unknown_sources.h"
#include "ofi/wait.h"

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dat::ofi {

class CompletionQueue final : public fid_cq, public core::CompletionQueue {
  public:
    CompletionQueue(Domain& domain, const fi_cq_attr& attr, void* context);
    ~CompletionQueue() override;

    int open(); // 0 or -errno

    Users users; // endpoints bound to it
    Domain& domain() { return domain_; }
    engine::BiasedLock& biased_lock() { return biased_lock_; }
    bool waitable() const { return waitable_; }
    int wait_fd() const { return wait_.fd(); }

    // Serves from the queue, and moves the domain only where that is empty. 0 or
    // more entries, -FI_EAGAIN, -FI_EAVAIL.
    template <class Entry> ssize_t read(Entry* entries, std::size_t count);
    // The same, fast where one completion is wanted and a link offers it, as over RDMA devices.
    template <class Entry> ssize_t read_offered(Entry* entries, std::size_t count);
    // Moves the domain. Whether anything is there now, or offered. Precondition: nothing is. Under
    // the lock.
    [[gnu::always_inline]] bool move() {
        domain_.engine().progress();
        if (!empty() || offered()) {
            return true;
        }
        settle_down();
        forget_kick();
        return false;
    }
    template <class Entry>
    ssize_t read_waiting(void* buf, std::size_t count, fi_addr_t* sources, const void* condition,
                         int timeout_ms); // sources: nullptr, or room for as many
    template <class Entry>
    ssize_t read_with_sources(Entry* entries, std::size_t count, fi_addr_t* sources);
    ssize_t read_error(fi_cq_err_entry* entry);
    // What a completion with unknown_source has as its source, for this address. Under the lock.
    // Throws std::bad_alloc.
    UnknownSources::Number source_for(const net::SocketAddress& address) {
        return sources_.number_of(address, empty());
    }
    // Lets a thread in read_waiting() return -FI_EAGAIN. From any thread.
    void kick();
    // 0: nothing is there, a thread may sleep on wait_fd(). -FI_EAGAIN: read first.
    int try_wait();
    // fi_dat_ops_queue.
    int watch(int fd);
    int tell(int fd);
    int arrivals() const { return domain_.engine().arrivals_fd(); }
    void arrived() {
        const engine::BiasedLockOwner in(biased_lock_);
        domain_.engine().arrived();
    }

  private:
    void wake() override; // under the lock
    // The wait descriptor is not readable on account of what has been read already.
    void settle_down() {
        if (raised_) [[unlikely]] {
            signal_.clear();
            raised_ = false;
        }
    }
    // Every reader is told that there is nothing: that is all a kick is for.
    bool forget_kick() {
        if (!kicked_.load(std::memory_order_acquire)) [[likely]] {
            return false;
        }
        kicked_.store(false, std::memory_order_relaxed);
        signal_.clear();
        return true;
    }
    // Of a read of no entries, which moves the domain: 0, -FI_EAGAIN, -FI_EAVAIL.
    ssize_t look_at_first();
    // Precondition: !empty(), and count > 0.
    template <class Entry> ssize_t take(Entry* entries, std::size_t count);
    // Of what is offered; 0: nothing. Precondition: offered(), and count > 0.
    template <class Entry> ssize_t draw_some(Entry* entries, std::size_t count);
    // The next of it. False: nothing. Precondition: offered().
    template <class Entry> bool draw_into(Entry& entry);
    enum class Look : std::uint8_t {
        filled, // with as many as are wanted, or an error
        moving, // not yet, and there is more to progress
        quiet,  // not yet; the queue is armed, a thread may sleep on wait_fd()
    };
    // Progresses. `may_sleep`: where it is quiet; else links that rest would have to be woken again
    // for nothing, and it never is. Under the lock.
    Look look(std::size_t enough, bool may_sleep = true);
    std::size_t threshold(const void* condition, std::size_t count) const;
    void give_source(fi_cq_err_entry& entry, std::uint32_t source);

    Domain& domain_;
    engine::BiasedLock& biased_lock_; // the domain's, in one step
    const bool waitable_;
    const bool by_threshold_;
    WaitSet wait_; // the domain's descriptor and signal_
    Signal signal_;
    bool raised_ = false; // signal_ is; guarded by the lock, as the next
    int lent_ = -1;       // the eventfd of who sleeps, -1: none
    std::atomic<bool> kicked_{false};
    UnknownSources sources_;
    net::SocketAddress told_source_; // what the last error entry points to
};

inline CompletionQueue& cq_of(fid_cq* f) { return static_cast<CompletionQueue&>(*f); }

// fi_cq_open(3).
int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context);

} // namespace dat::ofi

#endif
