// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See domain.h.
#include "engine/domain.h"

#include "base/attempt.h"
#include "base/canary.h"
#include "base/log.h"
#include "base/reserve.h"
#include "engine/barrier.h"
#include "engine/kernel.h"
#include "engine/progress_thread.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <utility>

namespace dat::engine {

Domain::Domain(const Options& options)
    : biased_lock_(options.shared), settings_(options.settings),
      wants_thread_(options.progress_thread),
      out_scratch_(std::make_unique_for_overwrite<std::byte[]>(kScratchSize)),
      in_scratch_(std::make_unique_for_overwrite<std::byte[]>(kScratchSize)) {
    if (settings_.check_buffers) {
        regions_.look_first();
    }
}

Domain::~Domain() {
    const kernel::NoCancel all_of_it;
    thread_.reset();
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    bury();
    const auto owes = [&] {
        bool any = false;
        deferred_closes_.each([&](const DeferredClose& each) { any = any || each.owes(); });
        return any;
    };
    while (!deferred_closes_.empty() && (Clock::now() < deadline || owes())) {
        pollfd fd{reactor_.fd(), POLLIN, 0};
        poll(&fd, 1, 50);
        reactor_.run();
        bury();
    }
    end_all(deferred_closes_);
    end_all(dismissed_);
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
    if (!awake_.empty() || polls % kBackAfter == 0) {
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
    poll_notifiers();
    finish_round();
}

void Domain::progress_handshakes_as_outsider() {
    const BiasedLockVisitor inside(biased_lock_);
    for (int round = 0; handshakes_.run() == Reactor::kMostAtOnce && round < 16; ++round) {
    }
    poll_notifiers();
    finish_round();
    // As in polled_unattended(), for a link that begins is awake. What is put to rest here needs
    // no look of the thread.
    if (unattended_.load(std::memory_order_relaxed) && !rest()) {
        thread_->yield();
    }
}

// One that is done strikes itself out. So many in turn: what a program pays for each look does not
// grow with the processes that it shares memory with.
inline void Domain::poll_notifiers() {
    for (std::size_t left = std::min(notifiers_.size(), kNotifiersARound);
         left > 0 && !notifiers_.empty(); --left) {
        if (next_notifier_ == 0 || next_notifier_ > notifiers_.size()) {
            next_notifier_ = notifiers_.size();
        }
        notifiers_[--next_notifier_]->poll();
    }
}

// Links that were busy lately are read without asking the kernel which have
// something; the others are asked for now and then, or when all are at rest.
void Domain::run_once() {
    if (!pushes_.empty()) {
        push_all();
    }
    for (std::size_t i = 0; i < awake_.size(); ++i) {
        if (awake_[i]) {
            awake_[i]->poll();
        }
    }
    direct_.poll();
    if (!waiting_.empty()) [[unlikely]] {
        look_for_room();
    }
    if (++rounds_ % kReactorPeriod == 0 || (direct_.none() && awake_.empty())) [[unlikely]] {
        ask_reactor();
    }
    poll_notifiers();
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
    if (any_struck_) [[unlikely]] {
        any_struck_ = false;
        std::erase(awake_, nullptr);
    }
    if (!notifiers_.empty()) [[unlikely]] {
        if (rounds_ % kReactorPeriod != 0) {
            return;
        }
    } else if (awake_.empty()) {
        if (untold_) {
            remind_later(Clock::now());
        }
        reactor_.run();
        return;
    }
    ask_beside_memory();
}

// A peer that takes something now and then is not to be reminded.
void Domain::remind_later(Clock::time_point now) {
    constexpr std::chrono::microseconds kPeriod{10};
    if (std::exchange(untold_is_new_, false)) {
        remind_at_ = now + kPeriod;
        taken_then_ = UINT64_MAX;
    } else if (now >= remind_at_) {
        remind_at_ = now + kPeriod;
        const std::uint64_t taken = untold_->taken_by_peer();
        if (std::exchange(taken_then_, taken) == taken) {
            remind();
        }
    }
}

void Domain::remind() { std::exchange(untold_, nullptr)->remind_peer(); }

// Beside links in memory a system call is long: then it is made by the clock.
void Domain::ask_beside_memory() {
    constexpr Clock::duration kPeriod = std::chrono::microseconds(20);
    constexpr Clock::duration kLongest = std::chrono::milliseconds(1);
    // A program that looks so seldom need not keep its links awake.
    constexpr std::chrono::milliseconds kSeldom{1};
    const auto now = Clock::now();
    const auto since = now - std::exchange(asked_, now);
    const std::size_t count = awake_.size();
    share_of_polls_ = count > 0 ? kPatience / static_cast<std::uint32_t>(count) : kPatience;
    patience_ = since > kSeldom || count > kFewAwake ? kReactorPeriod : share_of_polls_;
    if (untold_) {
        remind_later(now);
    }
    if (direct_.none() && now < ask_at_) {
        return;
    }
    const bool any = reactor_.run() > 0;
    // In vain it takes a sixteenth of the time at most, however slow the kernel is.
    const auto end = Clock::now();
    ask_at_ = end + (any ? kPeriod : std::clamp(16 * (end - now), kPeriod, kLongest));
}

void Domain::expect_memory_link() {
    base::reserve_for(awake_, memory_links_ + 1);
    ++memory_links_;
}

void Domain::wake(MemoryLink& link) {
    if (awake_.empty()) { // how often the program looks is not known now
        asked_ = Clock::now();
        patience_ = share_of_polls_ = kPatience;
    }
    const auto place = awake_.size() == awake_.capacity() // then one of them is struck out
                           ? std::find(awake_.begin(), awake_.end(), nullptr)
                           : awake_.end();
    if (place != awake_.end()) {
        *place = &link;
    } else {
        awake_.push_back(&link);
    }
    all_sleep_.store(false, std::memory_order_seq_cst);
    call_back();
}

void Domain::let_sleep(MemoryLink& link) {
    if (link.arm()) {
        heavy_barrier();
    }
    if (link.has_news()) {
        link.disarm();
    } else {
        std::replace(awake_.begin(), awake_.end(), &link, static_cast<MemoryLink*>(nullptr));
        any_struck_ = true;
    }
}

void Domain::expect_notifier() {
    base::reserve_for(notifiers_, notifier_count_ + 1);
    ++notifier_count_;
}

void Domain::forget_notifier(Notifier& notifier) {
    stop(notifier);
    --notifier_count_;
}

void Domain::wake(Notifier& notifier) {
    notifiers_.push_back(&notifier);
    all_sleep_.store(false, std::memory_order_seq_cst);
    call_back();
}

// False: one has something.
bool Domain::rest_notifiers() {
    std::erase_if(notifiers_, [](Notifier* notifier) {
        notifier->arm();
        const bool has_news = notifier->has_news();
        if (has_news) {
            notifier->disarm();
        }
        return !has_news;
    });
    return notifiers_.empty();
}

bool Domain::rest() {
    if (untold_) {
        remind();
    }
    if (!deferred_.empty() || !rest_notifiers()) {
        return false;
    }
    std::erase(awake_, nullptr);
    if (awake_.empty()) {
        all_sleep_.store(true, std::memory_order_relaxed);
        return true;
    }
    bool barrier = false;
    for (MemoryLink* link : awake_) {
        barrier |= link->arm();
    }
    if (barrier) {
        heavy_barrier();
    }
    std::erase_if(awake_, [](MemoryLink* link) {
        const bool has_news = link->has_news();
        if (has_news) {
            link->disarm();
        }
        return !has_news;
    });
    all_sleep_.store(awake_.empty(), std::memory_order_relaxed);
    return awake_.empty();
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
    end_all(dismissed_);
}

void Domain::end_all(base::List<DeferredClose, DeferredClose>& deferred_closes) {
    while (!deferred_closes.empty()) {
        delete &deferred_closes.pop();
    }
}

void Domain::retire(std::unique_ptr<Link> link) {
    direct_.stop(*link);
    std::replace_if(
        awake_.begin(), awake_.end(), [&](const Link* each) { return each == link.get(); },
        nullptr);
    any_struck_ = true;
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
    // Peers that leave the end open must not use up the descriptors.
    constexpr std::size_t kMostDeferredCloses = 256;
    if (deferred_close_count_ == kMostDeferredCloses) {
        DeferredClose* last = &deferred_closes_.front();
        bool found = false;
        deferred_closes_.each([&](DeferredClose& each) {
            if (!found && !each.owes()) {
                found = true;
                last = &each;
            }
        });
        dismiss(*last);
    }
    deferred_closes_.push(*deferred_close.release());
    ++deferred_close_count_;
}

void Domain::dismiss(DeferredClose& deferred_close) {
    if (!deferred_close.dismissed_) { // else not buried yet
        deferred_close.dismissed_ = true;
        --deferred_close_count_;
        deferred_closes_.remove(deferred_close);
        dismissed_.push(deferred_close);
        any_left_ = true;
    }
}

} // namespace dat::engine
