// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See domain.h. May include: soft, system headers.
#include "soft/domain.h"

#include "base/log.h"
#include "soft/barrier.h"
#include "soft/progress_thread.h"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <utility>

namespace dat::soft {

Domain::Domain(const Options& options)
    : gate_(options.shared), settings_(options.settings), wants_thread_(options.progress_thread) {}

Domain::~Domain() {
    thread_.reset();
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    bury();
    while (!lingerers_.empty() && Clock::now() < deadline) {
        pollfd fd{reactor_.fd(), POLLIN, 0};
        poll(&fd, 1, 50);
        reactor_.run();
        bury();
    }
    lingerers_.clear();
    dismissed_.clear();
    companion_.reset();
    if (opened_) {
        reactor_.remove(handshakes_.fd(), *this);
    }
}

int Domain::open() {
    int error = reactor_.open();
    error = error ? error : handshakes_.open();
    error = error ? error : reactor_.add(handshakes_.fd(), EPOLLIN, *this);
    opened_ = error == 0;
    return error;
}

void Domain::ready(std::uint32_t) { handshakes_.run(); }

void Domain::need_progress() {
    if (thread_) {
        return thread_->look_soon();
    }
    if (!wants_thread_) {
        return;
    }
    thread_ = std::make_unique<ProgressThread>(*this);
    if (const int error = thread_->start(); error != 0) {
        DAT_WARN(domain,
                 "no progress thread: %s; operations of peers wait until the application polls",
                 std::strerror(-error));
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

void Domain::progress_as_outsider() {
    const GateOutsider inside(gate_);
    run_once();
}

void Domain::progress_handshakes_as_outsider() {
    const GateOutsider inside(gate_);
    handshakes_.run();
    // As in polled_unattended(), for a link that begins is awake. What is put to rest here needs
    // no look of the thread.
    if (unattended_.load(std::memory_order_relaxed) && !rest()) {
        thread_->yield();
    }
    bury();
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
    for (std::size_t i = 0; i < hot_count_; ++i) {
        if (hot_[i]) [[likely]] {
            hot_[i]->poll();
        }
    }
    if (!waiting_.empty()) [[unlikely]] {
        look_for_room();
    }
    if (++rounds_ % kReactorPeriod == 0 || (hot_count_ == 0 && awake_.empty())) [[unlikely]] {
        ask_reactor();
    }
    if (any_dead_) [[unlikely]] {
        bury();
    }
}

// What transmit() put off.
void Domain::push_all() {
    put_off_.store(false, std::memory_order_relaxed);
    pushing_.swap(pushes_);
    for (std::size_t i = 0; i < pushing_.size(); ++i) {
        if (pushing_[i]) {
            pushing_[i]->push();
        }
    }
    pushing_.clear();
}

void Domain::look_for_room() {
    looking_.swap(waiting_);
    for (std::size_t i = 0; i < looking_.size(); ++i) {
        if (looking_[i]) {
            looking_[i]->receive_posted();
        }
    }
    looking_.clear();
}

// Beside links in memory a system call is long: then it is made by the clock.
void Domain::ask_reactor() {
    hot_count_ = static_cast<std::size_t>(
        std::remove(hot_.begin(), hot_.begin() + hot_count_, nullptr) - hot_.begin());
    std::erase(awake_, nullptr);
    if (!awake_.empty()) {
        constexpr Clock::duration kPeriod = std::chrono::microseconds(20);
        constexpr Clock::duration kLongest = std::chrono::milliseconds(1);
        // A program that looks so seldom need not keep its links awake.
        constexpr std::chrono::milliseconds kSeldom{1};
        const auto now = Clock::now();
        const auto since = now - std::exchange(asked_, now);
        share_of_polls_ = kPatience / static_cast<std::uint32_t>(awake_.size());
        patience_ = since > kSeldom ? kReactorPeriod : share_of_polls_;
        if (hot_count_ == 0 && now < ask_at_) {
            return;
        }
        const bool any = reactor_.run() > 0;
        // In vain it takes a sixteenth of the time at most, however slow the kernel is.
        const auto end = Clock::now();
        ask_at_ = end + (any ? kPeriod : std::clamp(16 * (end - now), kPeriod, kLongest));
        return;
    }
    reactor_.run();
}

void Domain::wake(MemoryLink& link) {
    if (awake_.empty()) { // how often the program looks is not known now
        asked_ = Clock::now();
        patience_ = share_of_polls_ = kPatience;
    }
    awake_.push_back(&link);
    all_sleep_.store(false, std::memory_order_seq_cst);
    call_back();
}

void Domain::let_sleep(MemoryLink& link) {
    if (link.doze()) {
        heavy_barrier();
    }
    if (link.stirs()) {
        link.rouse();
    } else {
        std::replace(awake_.begin(), awake_.end(), &link, static_cast<MemoryLink*>(nullptr));
    }
}

bool Domain::rest() {
    std::erase(awake_, nullptr);
    if (awake_.empty()) {
        all_sleep_.store(true, std::memory_order_relaxed);
        return true;
    }
    bool barrier = false;
    for (MemoryLink* link : awake_) {
        barrier |= link->doze();
    }
    if (barrier) {
        heavy_barrier();
    }
    std::erase_if(awake_, [](MemoryLink* link) {
        const bool stirs = link->stirs();
        if (stirs) {
            link->rouse();
        }
        return !stirs;
    });
    all_sleep_.store(awake_.empty(), std::memory_order_relaxed);
    return awake_.empty();
}

bool Domain::rest_as_outsider() {
    const GateOutsider inside(gate_);
    return rest();
}

void Domain::bury() {
    any_dead_ = false;
    dead_links_.clear();
    dead_handshakes_.clear();
    dismissed_.clear();
}

void Domain::heat(Link& link) {
    if (!link.hot_ && hot_count_ < kHotLinks) {
        hot_[hot_count_++] = &link;
        link.hot_ = true;
    }
}

// Struck out, not removed: run_once() may be walking over it.
void Domain::cool(Link& link) {
    if (link.hot_) {
        std::replace(hot_.begin(), hot_.begin() + hot_count_, &link, static_cast<Link*>(nullptr));
        link.hot_ = false;
    }
}

void Domain::retire(std::unique_ptr<Link> link) {
    cool(*link);
    std::replace_if(
        awake_.begin(), awake_.end(), [&](const Link* each) { return each == link.get(); },
        nullptr);
    std::erase(pushes_, link.get());
    std::replace(pushing_.begin(), pushing_.end(), link.get(), static_cast<Link*>(nullptr));
    std::erase(waiting_, link.get());
    std::replace(looking_.begin(), looking_.end(), link.get(), static_cast<Link*>(nullptr));
    dead_links_.push_back(std::move(link));
    any_dead_ = true;
}

void Domain::retire(std::unique_ptr<Handshake> handshake) {
    dead_handshakes_.push_back(std::move(handshake));
    any_dead_ = true;
}

void Domain::linger(std::unique_ptr<Lingerer> lingerer) {
    // Peers that leave the end open must not use up the descriptors.
    constexpr std::size_t kMaxLingerers = 256;
    if (lingerers_.size() == kMaxLingerers) {
        dismiss(*lingerers_.front());
    }
    lingerers_.push_back(std::move(lingerer));
}

void Domain::dismiss(Lingerer& lingerer) {
    const auto found = std::find_if(lingerers_.begin(), lingerers_.end(),
                                    [&](const auto& each) { return each.get() == &lingerer; });
    if (found != lingerers_.end()) { // else dismissed before, and not buried yet
        dismissed_.push_back(std::move(*found));
        any_dead_ = true;
        lingerers_.erase(found);
    }
}

} // namespace dat::soft
