// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See eq.h.
#include "ofi/eq.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "engine/own_thread.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/no_op.h"
#include "ofi/queue_ops.h"
#include "ofi/versions.h"

#include <rdma/fi_ext_dat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <thread>

namespace dat::ofi {

// A thread that looks after what brings connection requests, while a program sleeps on a
// descriptor of its own. A domain has such a thread itself.
class EventQueue::Usher {
  public:
    explicit Usher(EventQueue& queue) : queue_(queue) {}
    ~Usher() {
        if (thread_.joinable()) {
            ending_.store(true, std::memory_order_release);
            wake_socket_.raise();
            const kernel::NoCancel while_joining;
            thread_.join();
        }
    }
    Usher(const Usher&) = delete;
    Usher& operator=(const Usher&) = delete;

    int start() { // 0 or -errno
        const int rc = wake_socket_.open();
        return rc ? rc : engine::start_thread(thread_, [this] { run(); });
    }
    // What it sleeps on has changed.
    void call() const { wake_socket_.raise(); }

  private:
    void run() {
        pthread_setname_np(pthread_self(), "dat-usher");
        std::vector<pollfd> fds;
        while (!ending_.load(std::memory_order_acquire)) {
            if (!base::attempt([&] { look_after(fds); })) {
                constexpr int kLater = 100; // ms
                pollfd wake_socket{wake_socket_.fd(), POLLIN, 0};
                poll(&wake_socket, 1, kLater);
            }
        }
    }

    void look_after(std::vector<pollfd>& fds) {
        fds.assign({{wake_socket_.fd(), POLLIN, 0}});
        queue_.add_local_listeners(fds);
        // Bounded: what ends it may be closed by the program.
        constexpr int kLong = 5000; // ms
        if (poll(fds.data(), static_cast<nfds_t>(fds.size()), kLong) > 0) {
            if (fds.front().revents != 0) {
                wake_socket_.clear();
            }
            queue_.progress();
        }
    }

    EventQueue& queue_;
    Signal wake_socket_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

EventQueue::EventQueue(Fabric& fabric, const fi_eq_attr& attr, void* context)
    : fabric_(fabric), wait_obj_(attr.wait_obj), writable_((attr.flags & FI_WRITE) != 0) {
    fid.fclass = FI_CLASS_EQ;
    fid.context = context;
    fabric_.users.add();
}

EventQueue::~EventQueue() {
    usher_.reset();
    while (!queue_.empty()) {
        Event& event = queue_.front();
        if (event.announcer) {
            event.announcer->event_discarded(event.info->handle);
        }
        fi_freeinfo(event.info);
        queue_.pop_front();
    }
    fabric_.users.remove();
}

int EventQueue::open() {
    if (!waitable()) {
        return 0;
    }
    int rc = wait_.open();
    rc = rc ? rc : signal_.open();
    return rc ? rc : wait_.add(signal_.fd());
}

void EventQueue::push(Events&& events) {
    const std::lock_guard lock(queue_mutex_);
    if (queue_.empty() && !events.empty() && waitable()) {
        signal_.raise();
    }
    queue_.splice(queue_.end(), events);
    if (lent_ >= 0) {
        raise_event(lent_);
    }
}

void EventQueue::pop() {
    queue_.pop_front();
    after_pop();
}

void EventQueue::after_pop() {
    if (queue_.empty()) {
        settle_down();
    }
}

void EventQueue::settle_down() const {
    if (waitable()) {
        signal_.clear();
    }
}

void EventQueue::purge(fid_t gone) {
    Events discarded;
    {
        const std::lock_guard lock(queue_mutex_);
        for (auto at = queue_.begin(); at != queue_.end();) {
            const auto each = at++;
            if (each->fid == gone) {
                discarded.splice(discarded.end(), queue_, each);
            }
        }
        if (queue_.empty() && !discarded.empty()) {
            settle_down();
        }
    }
    for (const Event& event : discarded) {
        if (event.announcer) {
            event.announcer->event_discarded(event.info->handle);
        }
        fi_freeinfo(event.info);
    }
}

int EventQueue::add_source(EventSource& source) {
    const std::lock_guard lock(sources_mutex_);
    for (Source& known : sources_) {
        if (known.source == &source) {
            ++known.uses;
            return 0;
        }
    }
    sources_.push_back({&source, 1});
    int rc = waitable() ? wait_.add(source.wait_fd()) : 0;
    rc = rc ? rc : need_usher();
    if (rc) {
        sources_.pop_back();
    } else {
        sources_changed();
    }
    return rc;
}

// Who sleeps does so on the descriptors that there were.
void EventQueue::sources_changed() {
    ++changes_;
    if (usher_) {
        usher_->call();
    }
    const std::lock_guard lock(queue_mutex_);
    if (lent_ >= 0 && !told_) {
        raise_event(lent_);
    }
}

void EventQueue::remove_source(EventSource& source) {
    const std::lock_guard lock(sources_mutex_);
    const auto known = std::ranges::find(sources_, &source, &Source::source);
    if (known != sources_.end() && --known->uses == 0) {
        if (waitable()) {
            wait_.remove(source.wait_fd());
        }
        sources_.erase(known);
        sources_changed();
    }
}

// A peer whose request is here may have finished another connection just before: that
// comes first, as the peer had it. A domain may have been passed over, or its progress thread
// may be about to say so.
void EventQueue::progress() {
    const std::lock_guard lock(sources_mutex_);
    progress_those_that(true);
    progress_those_that(false);
    if (requests_.empty()) {
        return;
    }
    for (const Source& known : sources_) {
        if (!known.source->announces()) {
            known.source->catch_up();
        }
    }
    push(std::move(requests_));
}

void EventQueue::progress_those_that(bool announce) {
    for (const Source& known : sources_) {
        if (known.source->announces() == announce) {
            known.source->progress();
        }
    }
}

bool EventQueue::empty() {
    const std::lock_guard lock(queue_mutex_);
    return queue_.empty();
}

// The buffer has to hold the structure; private data is cut to what is left.
std::size_t EventQueue::least_size(const Event& event) {
    return event.raw ? event.data.size() : sizeof(fi_eq_cm_entry);
}

std::size_t EventQueue::copy_event(const Event& event, void* buf, std::size_t len) {
    auto* out = static_cast<std::byte*>(buf);
    if (!event.raw) {
        fi_eq_cm_entry entry{};
        entry.fid = event.fid;
        entry.info = event.info;
        std::memcpy(out, &entry, sizeof entry);
        out += sizeof entry;
        len -= sizeof entry;
    }
    const std::size_t size = std::min(len, event.data.size());
    std::copy_n(event.data.data(), size, out);
    return size + (event.raw ? 0 : sizeof(fi_eq_cm_entry));
}

ssize_t EventQueue::take(std::uint32_t* type, void* buf, std::size_t len, std::uint64_t flags) {
    const std::lock_guard lock(queue_mutex_);
    if (queue_.empty()) {
        return -FI_EAGAIN;
    }
    const Event& event = queue_.front();
    if (event.err != 0) {
        return -FI_EAVAIL;
    }
    if (len < least_size(event)) {
        DAT_WARN(eq, "fi_eq_read(): a buffer of %zu bytes, the event has %zu", len,
                 least_size(event));
        return -FI_ETOOSMALL;
    }
    *type = event.type;
    const std::size_t size = copy_event(event, buf, len);
    if ((flags & FI_PEEK) == 0) {
        if (event.announcer) { // under the lock: another thread may be closing it
            event.announcer->event_read();
        }
        pop();
    }
    return static_cast<ssize_t>(size);
}

ssize_t EventQueue::read(std::uint32_t* type, void* buf, std::size_t len, std::uint64_t flags) {
    if ((flags & FI_DAT_QUEUED) == 0 && empty()) {
        progress();
    }
    return take(type, buf, len, flags);
}

ssize_t EventQueue::read_error(fi_eq_err_entry* entry, std::uint64_t flags) {
    const std::lock_guard lock(queue_mutex_);
    if (queue_.empty() || queue_.front().err == 0) {
        return -FI_EAGAIN;
    }
    Event& event = queue_.front();
    entry->fid = event.fid;
    entry->context = event.fid ? event.fid->context : nullptr;
    entry->data = 0;
    entry->err = event.err;
    entry->prov_errno = event.prov_errno;
    if (entry->err_data && entry->err_data_size > 0) {
        entry->err_data_size = std::min(entry->err_data_size, event.data.size());
        std::copy_n(event.data.data(), entry->err_data_size,
                    static_cast<std::byte*>(entry->err_data));
    } else { // valid until the next error is read
        entry->err_data = event.data.empty() ? nullptr : event.data.data();
        entry->err_data_size = event.data.size();
    }
    if ((flags & FI_PEEK) == 0) {
        last_error_.clear();
        last_error_.splice(last_error_.end(), queue_, queue_.begin());
        after_pop();
    }
    return sizeof *entry;
}

ssize_t EventQueue::read_waiting(std::uint32_t* type, void* buf, std::size_t len, int timeout_ms,
                                 std::uint64_t flags) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    for (int left = timeout_ms;;) {
        const ssize_t got = read(type, buf, len, flags);
        if (got != -FI_EAGAIN || left == 0) {
            return got;
        }
        if (const int rc = wait_readable(wait_.fd(), left)) {
            return rc;
        }
        if (timeout_ms >= 0) {
            const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
            left = std::max(0, static_cast<int>(rest.count()));
        }
    }
}

int EventQueue::try_wait() {
    if (empty()) {
        progress();
    }
    return empty() ? 0 : -FI_EAGAIN;
}

// Who looks is not told of what that brings.
int EventQueue::watch(int fd) {
    if (fd >= 0 && empty()) {
        progress();
    }
    const std::lock_guard lock(queue_mutex_);
    const bool quiet = fd < 0 || queue_.empty();
    lent_ = quiet ? fd : -1;
    return quiet ? 0 : -FI_EAGAIN;
}

int EventQueue::tell(int fd) {
    if (fd >= 0) {
        const std::lock_guard lock(sources_mutex_);
        told_ = true;
        if (const int rc = need_usher()) {
            DAT_WARN(eq, "tell(): a thread for connection requests: %s", std::strerror(-rc));
            return fi_result(rc);
        }
    }
    return watch(fd);
}

int EventQueue::need_usher() {
    if (usher_ || !told_ ||
        std::ranges::none_of(sources_, [](const Source& s) { return s.source->announces(); })) {
        return 0;
    }
    auto usher = std::make_unique<Usher>(*this);
    const int rc = usher->start();
    if (rc == 0) {
        usher_ = std::move(usher);
    }
    return rc;
}

void EventQueue::add_local_listeners(std::vector<pollfd>& fds) {
    const std::lock_guard lock(sources_mutex_);
    for (const Source& known : sources_) {
        if (known.source->announces()) {
            fds.push_back({known.source->wait_fd(), POLLIN, 0});
        }
    }
}

std::size_t EventQueue::descriptors(int* fds, std::size_t count, std::uint64_t* changes) {
    const std::lock_guard lock(sources_mutex_);
    for (std::size_t i = 0; i < std::min(count, sources_.size()); ++i) {
        fds[i] = sources_[i].source->wait_fd();
    }
    if (changes) {
        *changes = changes_;
    }
    return sources_.size();
}

namespace {

ssize_t read(fid_eq* eq, std::uint32_t* type, void* buf, std::size_t len, std::uint64_t flags) {
    return eq_of(eq).read(type, buf, len, flags);
}

ssize_t read_error(fid_eq* eq, fi_eq_err_entry* entry, std::uint64_t flags) {
    return eq_of(eq).read_error(entry, flags);
}

ssize_t write(fid_eq* eq, std::uint32_t type, const void* buf, std::size_t len, std::uint64_t) {
    if (!eq_of(eq).writable()) {
        DAT_WARN(eq, "fi_eq_write(): the event queue was opened without FI_WRITE");
        return -FI_ENOSYS;
    }
    const int rc = no_throw([&] {
        EventQueue::Events one(1);
        one.front().type = type;
        one.front().raw = true;
        const auto* bytes = static_cast<const std::byte*>(buf);
        one.front().data.assign(bytes, bytes + len);
        eq_of(eq).push(std::move(one));
        return 0;
    });
    return rc ? rc : static_cast<ssize_t>(len);
}

ssize_t read_waiting(fid_eq* eq, std::uint32_t* type, void* buf, std::size_t len, int timeout,
                     std::uint64_t flags) {
    if (!eq_of(eq).waitable()) {
        DAT_WARN(eq, "fi_eq_sread(): the event queue was opened with FI_WAIT_NONE");
        return -FI_ENOSYS;
    }
    return eq_of(eq).read_waiting(type, buf, len, timeout, flags);
}

const char* strerror(fid_eq*, int prov_errno, const void*, char* buf, std::size_t len) {
    return give_text(text(static_cast<core::Reason>(prov_errno)), buf, len);
}

int close(fid_t f) {
    EventQueue& eq = object_of<EventQueue, fid_eq>(f);
    if (eq.users.count() > 0) {
        DAT_WARN(eq, "fi_close() of an event queue: %d endpoints are bound to it",
                 eq.users.count());
        return -FI_EBUSY;
    }
    delete &eq;
    return 0;
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = DAT_NOT_OFFERED(fi_ops, bind),
    .control = control_wait<EventQueue, fid_eq>,
    .ops_open = open_queue_ops,
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_eq g_eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = read,
    .readerr = read_error,
    .write = write,
    .sread = read_waiting,
    .strerror = strerror,
};

bool wait_object_offered(std::uint32_t object) {
    return object == FI_WAIT_NONE || object == FI_WAIT_UNSPEC || object == FI_WAIT_FD;
}

} // namespace

int open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) {
    fi_eq_attr defaults{};
    defaults.wait_obj = FI_WAIT_UNSPEC;
    const fi_eq_attr& asked = attr ? *attr : defaults;
    if (!wait_object_offered(number_of(asked.wait_obj))) {
        DAT_WARN(eq,
                 "fi_eq_open(): wait_obj = %u; FI_WAIT_NONE, FI_WAIT_UNSPEC and FI_WAIT_FD are "
                 "offered",
                 number_of(asked.wait_obj));
        return -FI_ENOSYS;
    }
    return no_throw([&] {
        auto made = std::make_unique<EventQueue>(fabric_of(fabric), asked, context);
        if (const int rc = made->open()) {
            DAT_WARN(eq, "fi_eq_open(): %s; raise the limit on open files (ulimit -n)",
                     std::strerror(-rc));
            return rc;
        }
        made->fid.ops = &g_fid_ops;
        made->ops = &g_eq_ops;
        *eq = made.release();
        return 0;
    });
}

} // namespace dat::ofi
