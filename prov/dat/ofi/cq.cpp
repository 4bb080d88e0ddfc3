// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See cq.h.
#include "ofi/cq.h"

#include "base/log.h"
#include "ofi/errors.h"
#include "ofi/no_op.h"
#include "ofi/queue_ops.h"
#include "ofi/sleeper.h"
#include "ofi/versions.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

namespace dat::ofi {
namespace {

constexpr std::size_t kMaxSize = std::size_t{1} << 24;
constexpr std::size_t kDefaultSize = 1024;

// `done`: a Completion or a Success.
template <class Entry, class Done>
[[gnu::always_inline]] inline void fill(Entry& entry, const Done& done) {
    entry.op_context = done.context;
    if constexpr (!std::is_same_v<Entry, fi_cq_entry>) {
        entry.flags = done.flags;
        entry.len = done.length;
    }
    if constexpr (std::is_same_v<Entry, fi_cq_data_entry> ||
                  std::is_same_v<Entry, fi_cq_tagged_entry>) {
        entry.buf = done.buffer;
        entry.data = done.data;
    }
    if constexpr (std::is_same_v<Entry, fi_cq_tagged_entry>) {
        if constexpr (std::is_same_v<Done, core::Completion>) {
            entry.tag = done.overflow; // of a success
        } else {
            entry.tag = 0;
        }
    }
}

// Whom a message came from, by the address vector.
fi_addr_t source_of(const core::Completion& done) {
    return done.source != 0 ? fi_addr_t{done.source} - 1 : FI_ADDR_NOTAVAIL;
}

} // namespace

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attr, void* context)
    : domain_(domain), biased_lock_(domain.biased_lock()), waitable_(attr.wait_obj != FI_WAIT_NONE),
      by_threshold_(attr.wait_cond == FI_CQ_COND_THRESHOLD) {
    fid.fclass = FI_CLASS_CQ;
    fid.context = context;
    set_nominal_size(attr.size ? attr.size : kDefaultSize);
    domain_.users.add();
}

CompletionQueue::~CompletionQueue() { domain_.users.remove(); }

int CompletionQueue::open() {
    if (!waitable_) {
        return 0;
    }
    int rc = wait_.open();
    rc = rc ? rc : signal_.open();
    rc = rc ? rc : wait_.add(signal_.fd());
    return rc ? rc : wait_.add(domain_.engine().wait_fd());
}

ssize_t CompletionQueue::look_at_first() {
    domain_.engine().progress();
    while (empty()) {
        if (!move()) {
            return -FI_EAGAIN;
        }
    }
    return front().status == core::DtoStatus::success ? 0 : -FI_EAVAIL;
}

template <class Entry>
[[gnu::always_inline]] inline ssize_t CompletionQueue::take(Entry* entries, std::size_t count) {
    std::size_t taken = 0;
    do {
        const core::Completion& first = front();
        if (first.status != core::DtoStatus::success) [[unlikely]] {
            return taken > 0 ? static_cast<ssize_t>(taken) : -FI_EAVAIL;
        }
        fill(entries[taken++], first);
        pop();
    } while (taken < count && !empty());
    return static_cast<ssize_t>(taken);
}

// The larger entries begin with what a Success is, so it is made in its place.
template <class Entry> [[gnu::always_inline]] inline bool CompletionQueue::draw_into(Entry& entry) {
    if constexpr (std::is_same_v<Entry, fi_cq_data_entry> ||
                  std::is_same_v<Entry, fi_cq_tagged_entry>) {
        static_assert(offsetof(Entry, op_context) == offsetof(core::Success, context) &&
                      offsetof(Entry, flags) == offsetof(core::Success, flags) &&
                      offsetof(Entry, len) == offsetof(core::Success, length) &&
                      offsetof(Entry, buf) == offsetof(core::Success, buffer) &&
                      offsetof(Entry, data) == offsetof(core::Success, data));
        if constexpr (std::is_same_v<Entry, fi_cq_tagged_entry>) {
            entry.tag = 0;
        }
        return draw(reinterpret_cast<core::Success&>(entry));
    } else {
        core::Success success;
        if (!draw(success)) [[unlikely]] {
            return false;
        }
        fill(entry, success);
        return true;
    }
}

template <class Entry>
[[gnu::noinline]] ssize_t CompletionQueue::draw_some(Entry* entries, std::size_t count) {
    std::size_t drawn = 0;
    while (drawn < count && offered() && draw_into(entries[drawn])) {
        ++drawn;
    }
    return static_cast<ssize_t>(drawn);
}

template <class Entry> ssize_t CompletionQueue::read(Entry* entries, std::size_t count) {
    const engine::BiasedLockOwner in(biased_lock_);
    if (count == 0) [[unlikely]] {
        return look_at_first();
    }
    do {
        if (!empty()) {
            return take(entries, count);
        }
        if (offered()) [[unlikely]] {
            if (const ssize_t drawn = draw_some(entries, count)) {
                return drawn;
            }
        }
    } while (move());
    return -FI_EAGAIN;
}

template <class Entry>
[[gnu::always_inline]] inline ssize_t CompletionQueue::read_offered(Entry* entries,
                                                                    std::size_t count) {
    if (count == 1) [[likely]] {
        const engine::InsideAtOnce in(*this);
        if (in) [[likely]] {
            if (empty() && !offered() && !move()) {
                return -FI_EAGAIN;
            }
            if (empty() && offered() && draw_into(*entries)) [[likely]] {
                return 1;
            }
        }
    }
    return read(entries, count);
}

template <class Entry>
ssize_t CompletionQueue::read_with_sources(Entry* entries, std::size_t count, fi_addr_t* sources) {
    const engine::BiasedLockOwner in(biased_lock());
    if (count == 0) {
        return look_at_first();
    }
    if (empty() && !offered() && !move()) {
        return -FI_EAGAIN;
    }
    std::size_t taken = 0;
    while (taken < count) {
        if (!empty()) {
            if (front().status != core::DtoStatus::success) {
                return taken > 0 ? static_cast<ssize_t>(taken) : -FI_EAVAIL;
            }
            sources[taken] = source_of(front());
            take(entries + taken, 1);
        } else if (offered() && draw_into(entries[taken])) {
            sources[taken] = FI_ADDR_NOTAVAIL;
        } else {
            break;
        }
        ++taken;
    }
    return taken > 0 ? static_cast<ssize_t>(taken) : -FI_EAGAIN;
}

// Only the members that libfabric 1.17 knows: a newer program may have room for
// more, an older one never has.
ssize_t CompletionQueue::read_error(fi_cq_err_entry* entry) {
    const engine::BiasedLockOwner in(biased_lock_);
    if (empty() || front().status == core::DtoStatus::success) {
        return -FI_EAGAIN;
    }
    const core::Completion& completion = front();
    entry->op_context = completion.context;
    entry->flags = completion.flags;
    entry->len = completion.length;
    entry->buf = completion.buffer;
    entry->err = fi_error(completion.status);
    entry->prov_errno = static_cast<int>(completion.status);
    if (completion.status == core::DtoStatus::unknown_source) {
        entry->tag = completion.overflow;
        entry->data = completion.data;
        entry->olen = 0;
        give_source(*entry, completion.source);
    } else {
        const bool tagged = (completion.flags & FI_TAGGED) != 0; // then its data is the tag
        entry->tag = tagged ? completion.data : 0;
        entry->data = tagged ? 0 : completion.data;
        entry->olen = completion.overflow;
        entry->err_data_size = 0;
    }
    pop();
    return 1;
}

// fi_cq(3): into the program's own room, or where it stays until the next one is read.
void CompletionQueue::give_source(fi_cq_err_entry& entry, std::uint32_t source) {
    const net::SocketAddress& address = sources_.address_of(source);
    if (entry.err_data && entry.err_data_size > 0) {
        entry.err_data_size = std::min<std::size_t>(entry.err_data_size, address.size());
        std::memcpy(entry.err_data, address.get(), entry.err_data_size);
    } else {
        told_source_ = address;
        entry.err_data = const_cast<sockaddr*>(told_source_.get());
        entry.err_data_size = told_source_.size();
    }
}

void CompletionQueue::wake() {
    arm(false); // once is enough until a thread goes to sleep again
    if (waitable_) {
        raised_ = true;
        signal_.raise();
    }
    if (lent_ >= 0) {
        raise_event(lent_);
    }
}

void CompletionQueue::kick() {
    kicked_.store(true, std::memory_order_release);
    signal_.raise();
}

CompletionQueue::Look CompletionQueue::look(std::size_t enough, bool may_sleep) {
    arm(false);
    if (size() < enough) {
        domain_.engine().progress();
    }
    if (size() + (offered() ? 1 : 0) >= enough ||
        (!empty() && front().status != core::DtoStatus::success)) {
        return Look::filled;
    }
    if (!may_sleep || !domain_.engine().rest()) {
        return Look::moving;
    }
    settle_down();
    arm(true);
    return Look::quiet;
}

int CompletionQueue::try_wait() {
    if (!waitable_) {
        DAT_WARN(cq, "fi_trywait(): the completion queue was opened with FI_WAIT_NONE");
        return -FI_EINVAL;
    }
    const engine::BiasedLockOwner in(biased_lock_);
    domain_.engine().share_wait_fd();
    return look(1) != Look::quiet || kicked_.load(std::memory_order_acquire) ? -FI_EAGAIN : 0;
}

// Who looks is not told of what that brings.
int CompletionQueue::watch(int fd) {
    const engine::BiasedLockOwner in(biased_lock_);
    lent_ = -1;
    if (fd < 0) {
        if (!waitable_) {
            arm(false);
        }
        return 0;
    }
    if (look(1) != Look::quiet) {
        return -FI_EAGAIN;
    }
    lent_ = fd;
    return 0;
}

// What is left to be moved the progress thread does.
int CompletionQueue::tell(int fd) {
    if (fd < 0) {
        return watch(fd);
    }
    {
        const engine::BiasedLockOwner in(biased_lock_);
        arm(false);
        lent_ = -1;
        if (empty() && !offered()) {
            domain_.engine().progress();
        }
        if (!empty() || offered()) {
            return -FI_EAGAIN;
        }
        settle_down();
        arm(true);
        lent_ = fd;
    }
    domain_.engine().hand_over();
    return 0;
}

std::size_t CompletionQueue::threshold(const void* condition, std::size_t count) const {
    if (!by_threshold_ || !condition) {
        return 1;
    }
    const auto wanted = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(condition));
    return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(count, 1));
}

template <class Entry>
ssize_t CompletionQueue::read_waiting(void* buf, std::size_t count, fi_addr_t* sources,
                                      const void* condition, int timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    const std::size_t enough = threshold(condition, count);
    const Sleeper sleeper(domain_.engine());
    const auto look_inside = [&](bool may_sleep) {
        const engine::BiasedLockOwner in(biased_lock_);
        return look(enough, may_sleep);
    };
    for (int left = timeout_ms;;) {
        const Look found = look_inside(left != 0);
        if (found == Look::filled || left == 0) {
            return sources ? read_with_sources(static_cast<Entry*>(buf), count, sources)
                           : read(static_cast<Entry*>(buf), count);
        }
        if (forget_kick()) {
            return -FI_EAGAIN;
        }
        if (found == Look::quiet) {
            if (const int rc = wait_readable(wait_.fd(), left)) {
                return rc;
            }
        }
        if (timeout_ms >= 0) {
            const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
            left = std::max(0, static_cast<int>(rest.count()));
        }
    }
}

namespace {

// The functions of a queue whose entries are of type Entry.
template <class Entry, bool kOffered> struct Format {
    static ssize_t read(fid_cq* cq, void* buf, std::size_t count) {
        Entry* const entries = static_cast<Entry*>(buf);
        return kOffered ? cq_of(cq).read_offered(entries, count) : cq_of(cq).read(entries, count);
    }
    static ssize_t read_from(fid_cq* cq, void* buf, std::size_t count, fi_addr_t* sources) {
        return sources ? cq_of(cq).read_with_sources(static_cast<Entry*>(buf), count, sources)
                       : read(cq, buf, count);
    }
    static ssize_t read_from_waiting(fid_cq* cq, void* buf, std::size_t count, fi_addr_t* sources,
                                     const void* condition, int timeout) {
        if (!cq_of(cq).waitable()) {
            DAT_WARN(cq, "fi_cq_sread(): the completion queue was opened with FI_WAIT_NONE");
            return -FI_ENOSYS;
        }
        return cq_of(cq).read_waiting<Entry>(buf, count, sources, condition, timeout);
    }
    static ssize_t read_waiting(fid_cq* cq, void* buf, std::size_t count, const void* condition,
                                int timeout) {
        return read_from_waiting(cq, buf, count, nullptr, condition, timeout);
    }
    static fi_ops_cq ops;
};

ssize_t read_error(fid_cq* cq, fi_cq_err_entry* entry, std::uint64_t) {
    return cq_of(cq).read_error(entry);
}

int signal(fid_cq* cq) {
    if (!cq_of(cq).waitable()) {
        DAT_WARN(cq, "fi_cq_signal(): the completion queue was opened with FI_WAIT_NONE");
        return -FI_ENOSYS;
    }
    cq_of(cq).kick();
    return 0;
}

const char* strerror(fid_cq*, int prov_errno, const void*, char* buf, std::size_t len) {
    return give_text(text(static_cast<core::DtoStatus>(prov_errno)), buf, len);
}

template <class Entry, bool kOffered>
fi_ops_cq Format<Entry, kOffered>::ops = {
    .size = sizeof(fi_ops_cq),
    .read = read,
    .readfrom = read_from,
    .readerr = read_error,
    .sread = read_waiting,
    .sreadfrom = read_from_waiting,
    .signal = signal,
    .strerror = strerror,
};

int close(fid_t f) {
    CompletionQueue& cq = object_of<CompletionQueue, fid_cq>(f);
    if (cq.users.count() > 0) {
        DAT_WARN(cq, "fi_close() of a completion queue: %d endpoints and poll sets stand on it",
                 cq.users.count());
        return -FI_EBUSY;
    }
    delete &cq;
    return 0;
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = DAT_NOT_OFFERED(fi_ops, bind),
    .control = control_wait<CompletionQueue, fid_cq>,
    .ops_open = open_queue_ops,
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

template <bool kOffered> fi_ops_cq* ops_for(std::uint32_t format) {
    switch (format) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
        return &Format<fi_cq_entry, kOffered>::ops;
    case FI_CQ_FORMAT_MSG:
        return &Format<fi_cq_msg_entry, kOffered>::ops;
    case FI_CQ_FORMAT_DATA:
        return &Format<fi_cq_data_entry, kOffered>::ops;
    case FI_CQ_FORMAT_TAGGED:
        return &Format<fi_cq_tagged_entry, kOffered>::ops;
    }
    return nullptr;
}

bool attributes_offered(const fi_cq_attr& attr) {
    if (!ops_for<false>(number_of(attr.format))) {
        DAT_WARN(cq,
                 "fi_cq_open(): format = %u; FI_CQ_FORMAT_CONTEXT, _MSG, _DATA and _TAGGED are "
                 "offered",
                 number_of(attr.format));
        return false;
    }
    const std::uint32_t wait = number_of(attr.wait_obj);
    if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD) {
        DAT_WARN(cq,
                 "fi_cq_open(): wait_obj = %u; FI_WAIT_NONE, FI_WAIT_UNSPEC and FI_WAIT_FD are "
                 "offered",
                 wait);
        return false;
    }
    // FI_AFFINITY is a wish. Others change what a queue is, FI_PEER for one.
    if ((attr.flags & ~std::uint64_t{FI_AFFINITY}) != 0) {
        DAT_WARN(cq, "fi_cq_open(): flags = 0x%llx; only FI_AFFINITY is offered",
                 static_cast<unsigned long long>(attr.flags));
        return false;
    }
    return true;
}

} // namespace

int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) {
    const fi_cq_attr defaults{};
    const fi_cq_attr& asked = attr ? *attr : defaults;
    if (!attributes_offered(asked)) {
        return -FI_ENOSYS;
    }
    if (asked.size > kMaxSize) {
        DAT_WARN(cq, "fi_cq_open(): size = %zu, at most %zu is offered", asked.size, kMaxSize);
        return -FI_EINVAL;
    }
    return no_throw([&] {
        auto made = std::make_unique<CompletionQueue>(domain_of(domain), asked, context);
        if (const int rc = made->open()) {
            DAT_WARN(cq, "fi_cq_open(): %s; raise the limit on open files (ulimit -n)",
                     std::strerror(-rc));
            return rc;
        }
        made->fid.ops = &g_fid_ops;
        made->ops = made->domain().device() ? ops_for<true>(number_of(asked.format))
                                            : ops_for<false>(number_of(asked.format));
        *cq = made.release();
        return 0;
    });
}

} // namespace dat::ofi
