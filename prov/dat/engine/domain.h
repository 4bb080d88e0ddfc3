// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The software domain: registered memory, the descriptors and timers of its
// connections, and their progress. Everything in it is guarded by its lock:
// the application's calls enter it, the progress thread and event-queue readers
// come as outsiders.
#ifndef DAT_ENGINE_DOMAIN_H
#define DAT_ENGINE_DOMAIN_H

#include "base/list.h"
#include "base/slabs.h"
#include "engine/biased_lock.h"
#include "engine/deferred_closes.h"
#include "engine/direct_polling.h"
#include "engine/idle_yield.h"
#include "engine/link.h"
#include "engine/memory_polling.h"
#include "engine/mr_table.h"
#include "engine/poller.h"
#include "engine/reactor.h"
#include "engine/settings.h"
#include "engine/statistics.h"
#include "engine/trace.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace dat::engine {

class ProgressThread;

// Has something to do that cannot be done in the middle of a link's work.
class Deferred : public base::Hook<Deferred> {
  public:
    // As progress() ends, under the lock. May defer itself again, to the next one.
    virtual void run() = 0;

  protected:
    ~Deferred() = default;
};

// What a kind of link keeps with a domain, or an endpoint.
class Companion {
  public:
    virtual ~Companion() = default;
};

class Domain : private Pollable {
  public:
    struct Options {
        bool shared = true;          // FI_THREAD_SAFE: several callers at once
        bool progress_thread = true; // FI_PROGRESS_AUTO
        Settings settings;
    };

    explicit Domain(const Options& options); // throws std::bad_alloc
    // Ends what is still being closed, waiting at most a second for bytes that their
    // peers have not taken, and longer where a device does, or where something is owed
    // (DeferredClose::owes()). No endpoint may be left.
    ~Domain();
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    // Descriptors. 0 or -errno.
    int open();

    BiasedLock& biased_lock() { return biased_lock_; }
    // Of connections. What it holds is moved by progress() alone.
    Reactor& reactor() { return reactor_; }
    // Of connections that are being made. Whoever waits for connection events may
    // move these, and be woken by them, without touching the path of data.
    Reactor& handshakes() { return handshakes_; }
    MrTable& regions() { return regions_; }
    Statistics& statistics() { return statistics_; }
    const Settings& settings() const { return settings_; }
    // Where its endpoints write what happens to them; nullptr: nowhere.
    Trace* trace() const { return trace_; }

    // Moves everything that can be moved without blocking; under the lock, as the
    // application.
    void progress();
    // A device moves data by itself, and tells by this descriptor, which is in reactor(), of what
    // has completed. Once, before anything else calls.
    void set_arrivals(int fd, Pollable& arrivals) {
        arrivals_fd_ = fd;
        arrivals_ = &arrivals;
    }
    // -1: none.
    int arrivals_fd() const { return arrivals_fd_; }
    // As progress(), but for what that descriptor tells of alone: poll(2) has found it readable.
    void arrived();
    // The same from a thread that is not the application's caller; takes the lock.
    void progress_as_outsider();
    // What is due, where no descriptor has told so.
    void look_at_timers_as_outsider();
    // As progress_as_outsider(), for handshakes() alone.
    void progress_handshakes_as_outsider();
    // The same where there is something to do.
    void look_at_handshakes_as_outsider();
    // Readable when progress() has something to do. For poll(2) and epoll(7).
    int wait_fd() const { return reactor_.fd(); }
    int handshakes_fd() const { return handshakes_.fd(); }
    // Posts wait for a progress() that no descriptor will call for. Any thread.
    bool has_put_off() const { return put_off_.load(std::memory_order_relaxed); }
    // A thread of the application is about to sleep on wait_fd() and will call
    // progress(): the progress thread stays away meanwhile, unless other threads leave links
    // awake, that ring for nobody. Not under the lock, and before the last progress() that
    // finds nothing.
    void sleeper_begins() { sleepers_.fetch_add(1, std::memory_order_relaxed); }
    void sleeper_ends() {
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        call_back();
    }
    // Before there is a connection to look after: starts the progress thread if this domain has
    // one and it does not run yet. 0 or -errno (EMFILE, EAGAIN, ENOMEM); under the lock.
    int start_progress();
    // Its progress thread, if there is one, takes over at once. Not under the lock.
    void hand_over();
    // It looks soon whether the application is there: a connection may go on without a call of
    // the application; under the lock.
    void need_progress();

    // For links: those that are read at each progress(); others when the reactor says so.
    DirectPolling& direct() { return direct_; }
    // The same for links in memory, which come to it by wake().
    MemoryPolling& memory() { return memory_; }
    void wake(MemoryLink& link);
    void wake(Notifier& notifier);
    // Somebody is about to sleep on wait_fd(): what is awake has to be woken from now on.
    // False: something is there, call progress() instead. Under the lock.
    bool rest();
    bool rest_as_outsider();
    // A thread of the application is about to sleep on wait_fd() outside of any call: from now on
    // what arrives is left to it for a moment. Under the lock.
    void share_wait_fd();
    // Changes with each progress().
    std::uint64_t round() const { return rounds_; }
    // Whether somebody will call progress() soon, so that a send may wait for it: not
    // while the application sleeps or is away, and the progress thread sleeps too.
    bool is_attended() const {
        return !unattended_.load(std::memory_order_relaxed) &&
               sleepers_.load(std::memory_order_relaxed) == 0;
    }
    // push() is called for it at the next progress().
    void push_later(Link& link) {
        if (!pushes_.holds(link)) { // it may have been pushed meanwhile, and be there still
            pushes_.push(link);
        }
        put_off_.store(true, std::memory_order_relaxed);
    }
    // receive_posted() is called for it at the next progress(): it has completions for
    // which the program's queue has no room now.
    void await_room(Link& link) {
        if (!waiting_.holds(link)) {
            waiting_.push(link);
        }
    }
    // run() is called for it as the next progress() ends, or by run_deferred().
    void defer(Deferred& deferred) {
        if (!deferred_.holds(deferred)) {
            deferred_.push(deferred);
            any_left_ = true;
        }
    }
    static void forget(Deferred& deferred) { base::List<Deferred, Deferred>::remove(deferred); }
    // A call of the program has put something off that need not wait. Not in the middle of a
    // link's work.
    void run_deferred() {
        if (!deferred_.empty()) {
            run_all_deferred();
        }
    }
    // No call reaches it from here any more; destroyed when the lock is next left
    // in progress(), or with the domain.
    void retire(std::unique_ptr<Link> link);
    void retire(std::unique_ptr<Handshake> handshake);
    // What a kind of link keeps with the domain; destroyed with it.
    std::unique_ptr<Companion>& companion() { return companion_; }
    // The same of what shows statistics() to other processes.
    std::unique_ptr<Companion>& viewers() { return viewers_; }
    // Owned by the domain until it says dismiss(), or so many others came after it that
    // it is dismissed (DeferredCloses::add()).
    void defer_close(std::unique_ptr<DeferredClose> deferred_close);
    void dismiss(DeferredClose& deferred_close);

    // Room to build frames in or to read into, shared by all links; contents last
    // until the next call on any link. It begins a page: base/copy.h.
    static constexpr std::size_t kScratchSize = 128 * 1024;
    struct alignas(4096) Scratch {
        std::array<std::byte, kScratchSize> bytes;
    };
    // For what is large and seldom touched, of each connection. Under the lock.
    static constexpr std::size_t kSparseSize = 3840;
    base::Slabs<kSparseSize>& sparse_memory() { return sparse_memory_; }
    std::span<std::byte> out_scratch() { return out_scratch_->bytes; }
    std::span<std::byte> in_scratch() { return in_scratch_->bytes; }

  private:
    friend class ProgressThread;
    void ready(std::uint32_t events) override; // handshakes_ has something
    void progress_handshakes(int called);
    // A thread of the application sleeps, and is woken by whatever comes.
    bool is_slept_on() const {
        return sleepers_.load(std::memory_order_seq_cst) > 0 &&
               all_sleep_.load(std::memory_order_seq_cst);
    }
    // That may not be so any more: the progress thread looks again.
    void call_back() {
        if (dormant_.load(std::memory_order_seq_cst)) [[unlikely]] {
            wake_thread();
        }
    }
    void wake_thread();
    void run_once();
    template <class Move> void move_as_application(Move&& move);
    void polled_unattended(std::uint64_t polls);
    void push_all();
    void ask_reactor();
    void ask_beside_memory();
    void give_way_if_idle(bool any);
    void look_for_room();
    void finish_round();
    void run_all_deferred();
    void bury();

    BiasedLock biased_lock_;
    Reactor reactor_;
    Reactor handshakes_; // in reactor_ as well
    int arrivals_fd_ = -1;
    Pollable* arrivals_ = nullptr;
    bool opened_ = false;
    MrTable regions_;
    Statistics statistics_;
    const Settings settings_;
    Trace* const trace_ = Trace::of_process(settings_);
    const bool wants_thread_;
    const bool yields_; // give_way_if_idle()

    MemoryPolling memory_;
    Clock::time_point ask_at_{}; // the reactor; beside links in memory that are awake
    IdleYield idle_yield_;
    DirectPolling direct_;
    std::uint64_t rounds_ = 1;
    base::List<Link, ToBePushed> pushes_;
    base::List<Link, AwaitsRoom> waiting_; // for room in a completion queue
    std::unique_ptr<Link> dead_links_;     // one behind the other, as the next
    std::unique_ptr<Handshake> dead_handshakes_;
    DeferredCloses deferred_closes_;
    base::List<Deferred, Deferred> deferred_;
    bool any_left_ = false; // finish_round() has something to do
    base::Slabs<kSparseSize> sparse_memory_;
    // Not touched before they are used.
    const std::unique_ptr<Scratch> out_scratch_;
    const std::unique_ptr<Scratch> in_scratch_;

    Poller poller_;
    std::atomic<std::uint64_t> polls_{0}; // progress() calls of the application
    std::atomic<int> sleepers_{0};
    std::atomic<bool> all_sleep_{true};   // in memory_, since the last rest()
    std::atomic<bool> dormant_{false};    // the progress thread waits for call_back()
    std::atomic<bool> put_off_{false};    // pushes_ is not empty
    std::atomic<bool> unattended_{false}; // the progress thread has taken over
    std::unique_ptr<Companion> companion_;
    std::unique_ptr<Companion> viewers_;
    std::unique_ptr<ProgressThread> thread_;
};

} // namespace dat::engine

#endif
