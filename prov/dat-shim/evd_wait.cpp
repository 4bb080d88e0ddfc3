// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Taking events out of an event dispatcher, and sleeping for them. See evd.h.
// May include: dat-shim, libfabric.
#include "dat-shim/cno.h"
#include "dat-shim/evd.h"
#include "dat-shim/ia.h"

#include <rdma/fi_domain.h>

#include <sys/epoll.h>
#include <thread>

namespace dat::shim {

Return Evd::take(Event& event) {
    event = fifo_.front();
    fifo_.pop();
    const std::uint8_t wanted = config_ == Config::solicited ? kSolicited : kNotifies;
    notifying_ -= (event.notice & wanted) != 0 && notifying_ > 0 ? 1 : 0;
    requests_ -= event.number == Number::connection_request ? 1 : 0;
    software_ -= event.number == Number::software ? 1 : 0;
    after_change();
    return kSuccess;
}

Return Evd::dequeue_slow(Event& event) {
    const std::lock_guard lock(mutex_);
    if (waiting_) { // EVD-17
        return fail(Type::invalid_state, Sub::invalid_state_evd_waiter);
    }
    if (fifo_.empty()) {
        pump();
    }
    if (fifo_.empty()) {
        wake_.clear();
        after_change();
        return fail(Type::queue_empty);
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

Return Evd::wait(std::uint32_t timeout_us, std::int32_t threshold, Event& event,
                 std::int32_t& more) {
    std::unique_lock lock(mutex_);
    if (const Return rc = check_wait(threshold)) {
        return rc;
    }
    ++inside_;
    const Return rc = wait_locked(lock, timeout_us, threshold, event, more);
    --inside_;
    if (waiting_) {
        waiting_ = false;
        update_detour();
    }
    return rc;
}

Return Evd::wait_locked(std::unique_lock<std::mutex>& lock, std::uint32_t timeout_us,
                        std::int32_t threshold, Event& event, std::int32_t& more) {
    const auto enough = static_cast<std::size_t>(threshold);
    Deadline deadline;
    bool started = false;
    std::vector<pollfd> watched;
    for (;;) {
        if (fifo_.size() < enough || notifying_ == 0) {
            pump();
        }
        if (aborted_) {
            return fail(Type::abort); // EVD-20
        }
        if (!waitable_) {
            return fail(Type::invalid_state, Sub::invalid_state_evd_unwaitable);
        }
        if (fifo_.size() >= enough && notifying_ > 0) {
            const Return rc = take(event);
            more = static_cast<std::int32_t>(fifo_.size());
            return rc;
        }
        more = static_cast<std::int32_t>(fifo_.size());
        if (!started) {
            deadline = Deadline(timeout_us, kForever);
            started = true;
        }
        if (deadline.passed()) {
            after_change();
            return fail(Type::timeout_expired); // EVD-14
        }
        waiting_ = true;
        detour_.store(true, std::memory_order_release);
        wake_.fd();
        wake_.clear();
        if (!arm()) {
            continue;
        }
        watched.assign(1, {wake_.fd(), POLLIN, 0});
        int fd = -1;
        if (cq_ && fi_control(&cq_->fid, FI_GETWAIT, &fd) == 0) {
            watched.push_back({fd, POLLIN, 0});
        }
        for (const Source& source : sources_) {
            if (fi_control(&source.eq->fid, FI_GETWAIT, &fd) == 0) {
                watched.push_back({fd, POLLIN, 0});
            }
        }
        lock.unlock();
        const int interrupted = deadline.sleep(watched);
        lock.lock();
        if (interrupted) { // U-26
            return fail(Type::interrupted_call);
        }
    }
}

bool Evd::arm() {
    if (cq_) {
        fid* f = &cq_->fid;
        if (fi_trywait(ia().fabric(), &f, 1) != 0) {
            return false;
        }
    }
    for (const Source& source : sources_) {
        fid* f = &source.eq->fid;
        if (fi_trywait(source.ia->fabric(), &f, 1) != 0) {
            return false;
        }
    }
    return true;
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

bool Evd::watch(std::vector<pollfd>& watched) {
    const std::lock_guard lock(mutex_);
    if (!enabled_ || waiting_) {
        return true;
    }
    int fd = -1;
    if (cq_ && fi_control(&cq_->fid, FI_GETWAIT, &fd) == 0) {
        watched.push_back({fd, POLLIN, 0});
    }
    for (const Source& source : sources_) {
        if (fi_control(&source.eq->fid, FI_GETWAIT, &fd) == 0) {
            watched.push_back({fd, POLLIN, 0});
        }
    }
    return arm();
}

void Evd::cno_gone() {
    const std::lock_guard lock(mutex_);
    cno_ = nullptr;
    update_detour();
}

void Evd::settle_watched() {
    const std::lock_guard lock(mutex_);
    after_change();
}

int Evd::watch_all(int epoll) {
    const std::lock_guard lock(mutex_);
    std::vector<int> fds{wake_.fd()};
    int fd = -1;
    if (cq_ && fi_control(&cq_->fid, FI_GETWAIT, &fd) == 0) {
        fds.push_back(fd);
    }
    for (const Source& source : sources_) {
        if (fi_control(&source.eq->fid, FI_GETWAIT, &fd) == 0) {
            fds.push_back(fd);
        }
    }
    for (const int one : fds) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, one, &event) != 0 && errno != EEXIST) {
            return -errno;
        }
    }
    after_change();
    return 0;
}

void Evd::abort_waiters() {
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            aborted_ = true;
            update_detour();
            if (inside_ == 0) {
                return;
            }
            wake_.raise();
        }
        std::this_thread::yield();
    }
}

} // namespace dat::shim
