// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See domain.h.
#include "engine/domain.h"

#include "base/attempt.h"
#include "base/canary.h"
#include "base/log.h"
#include "engine/barrier.h"
#include "engine/kernel.h"
#include "engine/progress_thread.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <utility>

namespace dat::engine {

Domain::Domain(const Options& options)
    : biased_lock_(options.shared), settings_(options.settings),
      wants_thread_(options.progress_thread), yields_(!options.progress_thread && !options.shared),
      out_scratch_(std::make_unique_for_overwrite<Scratch>()),
      in_scratch_(std::make_unique_for_overwrite<Scratch>()) {
    if (settings_.check_buffers) {
        regions_.look_first();
    }
}

Domain::~Domain() {
    const kernel::NoCancel all_of_it;
    thread_.reset();
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    bury();
    while (!deferred_closes_.none() && (Clock::now() < deadline || deferred_closes_.owes())) {
        pollfd fd{reactor_.fd(), POLLIN, 0};
        poll(&fd, 1, 50);
        reactor_.run();
        bury();
    }
    deferred_closes_.end_all();
    viewers_.reset();
    companion_.reset();
    if (opened_) {
        reactor_.remove(handshakes_.fd(), *this);
    }
}

int Domain::open() {
    if (settings().shm) {
        // Taking part costs nothing as long as the process has one thread; later the kernel waits
        // until every processor has switched, which on a busy machine takes longer than a handshake
        // may.
        barriers_reach();
    }
    int error = reactor_.open();
    error = error ? error : handshakes_.open();
    error = error ? error : reactor_.add(handshakes_.fd(), EPOLLIN, *this);
    opened_ = error == 0;
    return error;
}

void Domain::ready(std::uint32_t) { handshakes_.run(); }

int Domain::start_progress() {
    if (thread_ || !wants_thread_) {
        return 0;
    }
    int error = -ENOMEM;
    std::unique_ptr<ProgressThread> thread;
    if (base::attempt([&] {
            thread = std::make_unique<ProgressThread>(*this);
            error = thread->start();
        }) &&
        error == 0) {
        thread_ = std::move(thread);
        return 0;
    }
    DAT_WARN(domain, "no progress thread: %s", std::strerror(-error));
    return error;
}

void Domain::need_progress() {
    if (thread_) {
        thread_->look_soon();
    } else {
        (void)start_progress();
    }
}

void Domain::hand_over() {
    ProgressThread* thread = nullptr;
    {
        const BiasedLockOwner inside(biased_lock_);
        (void)start_progress();
        thread = thread_.get();
    }
    if (thread) {
        thread->take_charge();
    }
}

template <class Move> [[gnu::always_inline]] inline void Domain::move_as_application(Move&& move) {
    const std::uint64_t polls = polls_.load(std::memory_order_relaxed) + 1;
    polls_.store(polls, std::memory_order_relaxed);
    move();
    if (unattended_.load(std::memory_order_relaxed)) [[unlikely]] {
        polled_unattended(polls);
    }
}

void Domain::progress() {
    move_as_application([&] { run_once(); });
}

void Domain::arrived() {
    move_as_application([&] { arrivals_->ready(EPOLLIN); });
}

// The application polled while the progress thread is in charge and sleeps.
void Domain::polled_unattended(std::uint64_t polls) {
    // A program that polls again, and not just now and then, gets its batches back also
    // where nothing arrives that would wake the thread.
    constexpr std::uint64_t kBackAfter = 64;
    // What this poll has woken is not going to ring: if it was the last one, the thread
    // has to send it to sleep again.
    if (!memory_.none() || polls % kBackAfter == 0) {
        thread_->yield();
    }
}

void Domain::wake_thread() { thread_->yield(); }

void Domain::share_wait_fd() {
    if (thread_) {
        thread_->share_descriptor();
    }
}

void Domain::progress_as_outsider() {
    const BiasedLockVisitor inside(biased_lock_);
    run_once();
}

void Domain::look_at_timers_as_outsider() {
    const BiasedLockVisitor inside(biased_lock_);
    reactor_.look_at_timers();
    handshakes_.look_at_timers();
    memory_.poll_notifiers();
    finish_round();
}

void Domain::progress_handshakes_as_outsider() {
    const BiasedLockVisitor inside(biased_lock_);
    progress_handshakes(handshakes_.run());
}

void Domain::look_at_handshakes_as_outsider() {
    Reactor::Found found;
    handshakes_.look(found);
    if (found.count != 0) {
        const BiasedLockVisitor inside(biased_lock_);
        progress_handshakes(handshakes_.run(found));
    }
}

// `called`: by the first look.
void Domain::progress_handshakes(int called) {
    for (int round = 1; called == Reactor::kMostAtOnce && round < 16; ++round) {
        called = handshakes_.run();
    }
    memory_.poll_notifiers();
    finish_round();
    // As in polled_unattended(), for a link that begins is awake. What is put to rest here needs
    // no look of the thread.
    if (unattended_.load(std::memory_order_relaxed) && !rest()) {
        thread_->yield();
    }
}

// Links that were busy lately are read without asking the kernel which have
// something; the others are asked for now and then, or when all are at rest.
void Domain::run_once() {
    if (!pushes_.empty()) {
        push_all();
    }
    memory_.poll();
    direct_.poll();
    if (!waiting_.empty()) [[unlikely]] {
        look_for_room();
    }
    if (++rounds_ % MemoryPolling::kReactorPeriod == 0 || (direct_.none() && memory_.none()))
        [[unlikely]] {
        ask_reactor();
    }
    memory_.poll_notifiers();
    if (any_left_) [[unlikely]] {
        finish_round();
    }
}

void Domain::finish_round() {
    any_left_ = false;
    run_deferred();
    bury();
}

// What is deferred meanwhile waits for the next round.
void Domain::run_all_deferred() {
    base::List<Deferred, Deferred> due;
    due.take(deferred_);
    while (!due.empty()) {
        due.pop().run();
    }
}

// What transmit() put off.
DAT_NO_CANARY void Domain::push_all() {
    put_off_.store(false, std::memory_order_relaxed);
    base::List<Link, ToBePushed> due; // who retires one takes it out
    due.take(pushes_);
    while (!due.empty()) {
        due.pop().push();
    }
}

void Domain::look_for_room() {
    base::List<Link, AwaitsRoom> due;
    due.take(waiting_);
    while (!due.empty()) {
        due.pop().receive_posted();
    }
}

void Domain::ask_reactor() {
    poller_.note();
    direct_.compact();
    memory_.compact();
    if (!memory_.no_notifier()) [[unlikely]] {
        if (rounds_ % MemoryPolling::kReactorPeriod != 0) {
            return;
        }
    } else if (memory_.none()) {
        if (memory_.tells_nobody()) {
            memory_.remind_later(Clock::now());
        }
        reactor_.run();
        return;
    }
    ask_beside_memory();
}

// Beside links in memory a system call is long: then it is made by the clock.
void Domain::ask_beside_memory() {
    constexpr Clock::duration kPeriod = std::chrono::microseconds(20);
    constexpr Clock::duration kLongest = std::chrono::milliseconds(1);
    const auto now = Clock::now();
    memory_.looked(now);
    if (memory_.tells_nobody()) {
        memory_.remind_later(now);
    }
    if (direct_.none() && now < ask_at_) {
        return;
    }
    const bool any = reactor_.run() > 0;
    // In vain it takes a sixteenth of the time at most, however slow the kernel is.
    const auto end = Clock::now();
    ask_at_ = end + (any ? kPeriod : std::clamp(16 * (end - now), kPeriod, kLongest));
    if (yields_) {
        memory_.is_on_processor(sched_getcpu());
        give_way_if_idle(any);
    }
}

// A program that makes all progress itself, from one thread, may wait so for a peer that cannot
// answer before it has the processor of this thread. Nobody but that thread takes this domain's
// lock, to speak of. Where no such peer has the same processor it would be given to others for
// nothing.
void Domain::give_way_if_idle(bool any) {
    constexpr std::uint32_t kPolls = MemoryPolling::kReactorPeriod;
    if (any || !direct_.is_idle(kPolls) || !memory_.is_idle(kPolls)) {
        idle_yield_.stirred(rounds_);
    } else if (idle_yield_.in_vain(rounds_, Clock::now()) && memory_.shares_processor()) {
        sched_yield();
        const auto now = Clock::now();
        idle_yield_.yielded(now);
        memory_.resumed(now);
    }
}

void Domain::wake(MemoryLink& link) {
    memory_.wake(link);
    all_sleep_.store(false, std::memory_order_seq_cst);
    call_back();
}

void Domain::wake(Notifier& notifier) {
    memory_.wake(notifier);
    all_sleep_.store(false, std::memory_order_seq_cst);
    call_back();
}

bool Domain::rest() {
    memory_.is_on_processor(-1);
    memory_.remind();
    if (!deferred_.empty() || !memory_.rest_notifiers()) {
        return false;
    }
    const bool all = memory_.rest();
    all_sleep_.store(all, std::memory_order_relaxed);
    return all;
}

bool Domain::rest_as_outsider() {
    const BiasedLockVisitor inside(biased_lock_);
    return rest();
}

void Domain::bury() {
    while (dead_links_) { // not by recursion through unique_ptr
        dead_links_ = std::move(dead_links_->next_dead_);
    }
    while (dead_handshakes_) {
        dead_handshakes_ = std::move(dead_handshakes_->next_dead_);
    }
    deferred_closes_.bury();
}

void Domain::retire(std::unique_ptr<Link> link) {
    direct_.stop(*link);
    memory_.retire(*link);
    pushes_.remove(*link);
    waiting_.remove(*link);
    link->next_dead_ = std::move(dead_links_);
    dead_links_ = std::move(link);
    any_left_ = true;
}

void Domain::retire(std::unique_ptr<Handshake> handshake) {
    if (handshake) {
        handshake->next_dead_ = std::move(dead_handshakes_);
        dead_handshakes_ = std::move(handshake);
        any_left_ = true;
    }
}

void Domain::defer_close(std::unique_ptr<DeferredClose> deferred_close) {
    deferred_closes_.add(std::move(deferred_close));
    any_left_ = true; // another one may have been dismissed
}

void Domain::dismiss(DeferredClose& deferred_close) {
    if (deferred_closes_.dismiss(deferred_close)) {
        any_left_ = true;
    }
}

} // namespace dat::engine
