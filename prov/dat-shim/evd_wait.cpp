// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Taking events out of an event dispatcher, and sleeping for them. See evd.h.
#include "base/attempt.h"
#include "dat-shim/cno.h"
#include "dat-shim/evd.h"
#include "dat-shim/fast.h"
#include "dat-shim/ia.h"
#include "dat-shim/inside.h"

namespace dat::shim {

Return Evd::take(Event& event) {
    event = fifo_.front();
    fifo_.pop();
    notifying_ -= notifies(event) && notifying_ > 0 ? 1 : 0;
    requests_ -= event.number == Number::connection_request ? 1 : 0;
    software_ -= event.number == Number::software ? 1 : 0;
    after_change();
    return kSuccess;
}

Return Evd::dequeue_other(Event& event) {
    if (fid_cq* const cq = direct_.load(std::memory_order_acquire)) {
        const bool taken = take_events(cq, 1, [&](const Event& first) { event = first; }) > 0;
        return taken ? kSuccess : fail(Type::queue_empty);
    }
    return dequeue_slow(event);
}

Return Evd::dequeue_slow(Event& event) {
    const std::lock_guard lock(mutex_);
    if (waiting_) { // EVD-17
        return fail(Type::invalid_state, Sub::invalid_state_evd_waiter);
    }
    if (fifo_.empty()) {
        poll();
    }
    if (fifo_.empty()) {
        after_change();
        return no_room_ ? fail(Type::insufficient_resources, Sub::resource_memory)
                        : fail(Type::queue_empty);
    }
    return take(event);
}

Return Evd::check_wait(std::int32_t threshold) const {
    if (threshold < 1 || threshold > length_) { // EVD-11
        return bad_argument(3);
    }
    if (waiting_) { // EVD-17
        return fail(Type::invalid_state, Sub::invalid_state_evd_waiter);
    }
    if (!waitable_) { // EVD-19
        return fail(Type::invalid_state, Sub::invalid_state_evd_unwaitable);
    }
    if (threshold > 1 && (config_ == Config::notify || config_ == Config::solicited)) { // EVD-12
        return fail(Type::invalid_state, config_ == Config::notify
                                             ? Sub::invalid_state_evd_config_notify
                                             : Sub::invalid_state_evd_config_solicited);
    }
    return kSuccess;
}

// A thread in wait(), until it returns or has been cancelled.
class Evd::Waiter {
  public:
    Waiter(Evd& evd, std::unique_lock<std::mutex>& lock) : evd_(evd), lock_(lock) {
        ++evd_.inside_;
    }
    ~Waiter() {
        if (evd_.waiting_) {
            evd_.stop_waiting(lock_);
        }
        --evd_.inside_;
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

  private:
    Evd& evd_;
    std::unique_lock<std::mutex>& lock_;
};

Return Evd::wait(std::uint32_t timeout_us, std::int32_t threshold, Event& event,
                 std::int32_t& more) {
    std::unique_lock lock(mutex_);
    if (const Return rc = check_wait(threshold)) {
        return rc;
    }
    const Waiter inside(*this, lock);
    return wait_locked(lock, timeout_us, threshold, event, more);
}

// A CNO that was passed over meanwhile looks again. Still counted as inside, so that
// nobody frees this.
void Evd::stop_waiting(std::unique_lock<std::mutex>& lock) {
    waiting_ = false;
    sleeper_ = nullptr;
    lend(-1);
    after_change();
    if (Cno* const cno = cno_) {
        const Unlocked meanwhile(lock);
        cno->kick();
    }
}

Return Evd::wait_locked(std::unique_lock<std::mutex>& lock, std::uint32_t timeout_us,
                        std::int32_t threshold, Event& event, std::int32_t& more) {
    const auto enough = static_cast<std::size_t>(threshold);
    std::optional<Return> rc = take_if(enough, event, more);
    if (rc) {
        return *rc;
    }
    const Deadline deadline(timeout_us, kForever);
    if (deadline.passed()) {
        after_change();
        return fail(Type::timeout_expired);
    }
    const WakePool::TemporaryRegistration wake = ia().wakes().borrow();
    if (wake->made() < 0) {
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
    while (!deadline.passed()) {
        waiting_ = true;
        direct_.store(nullptr, std::memory_order_release);
        const Ia::Attendance there(ia(), cq_ != nullptr);
        switch (sleep(lock, deadline, *wake.get())) {
        case EINTR: // U-26
            return fail(Type::interrupted_call);
        case EBADF:
            return fail(Type::internal_error);
        default:
            break;
        }
        rc = take_if(enough, event, more);
        if (rc) {
            return *rc;
        }
    }
    return fail(Type::timeout_expired); // EVD-14
}

int Evd::sleep(std::unique_lock<std::mutex>& lock, const Deadline& deadline, Wake& wake) {
    enum { kArrivals = 1 };
    int interrupted = 0;
    sleeper_ = &wake;
    // poll(2) passes over arrivals_ where it is none.
    watched_.assign({{wake.made(), POLLIN, 0}, {arrivals_, POLLIN, 0}});
    if (lend(wake.made())) {
        add_descriptors(watched_);
        const Unlocked meanwhile(lock);
        const Outside asleep;
        interrupted = deadline.sleep(watched_);
    }
    sleeper_ = nullptr;
    lend(-1);                                                       // who looks need not be told
    const bool lost = wake.found_in(watched_) == Wake::Found::lost; // cleared before looking
    if (watched_[kArrivals].revents != 0) {
        ops_->arrived(&cq_->fid);
    }
    return lost ? EBADF : interrupted;
}

// What wait() returns now; nothing: it is to sleep.
std::optional<Return> Evd::take_if(std::size_t enough, Event& event, std::int32_t& more) {
    if (fifo_.size() < enough || notifying_ == 0) {
        pump();
    }
    if (ia().is_closing()) {
        return fail(Type::abort); // EVD-20
    }
    if (!waitable_) {
        return fail(Type::invalid_state, Sub::invalid_state_evd_unwaitable);
    }
    std::optional<Return> rc;
    if (fifo_.size() >= enough && notifying_ > 0) {
        rc = take(event);
    }
    more = static_cast<std::int32_t>(fifo_.size());
    if (!rc && no_room_) {
        rc = fail(Type::insufficient_resources, Sub::resource_memory);
    }
    return rc;
}

bool Evd::triggers() {
    const std::lock_guard lock(mutex_);
    if (!enabled_ || waiting_) {
        return false;
    }
    if (notifying_ == 0) {
        pump();
        after_change();
    }
    return notifying_ > 0;
}

bool Evd::watch(std::vector<pollfd>& watched, Wake& wake_socket) {
    const std::lock_guard lock(mutex_);
    if (!enabled_ || waiting_) {
        return true;
    }
    const bool quiet = lend(wake_socket.fd());
    add_descriptors(watched);
    return quiet;
}

bool Evd::moves_domain() {
    const std::lock_guard lock(mutex_);
    return enabled_ && !waiting_ && cq_;
}

} // namespace dat::shim
