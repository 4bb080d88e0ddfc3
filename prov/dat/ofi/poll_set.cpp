// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See poll_set.h.
#include "ofi/poll_set.h"

#include "base/log.h"
#include "ofi/cntr.h"
#include "ofi/cq.h"
#include "ofi/domain.h"
#include "ofi/errors.h"
#include "ofi/fid.h"
#include "ofi/no_op.h"
#include "ofi/ours.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace dat::ofi {
namespace {

class PollSet final : public fid_poll {
  public:
    explicit PollSet(Domain& domain) : domain_(domain) { domain_.users.add(); }
    ~PollSet() { domain_.users.remove(); }
    PollSet(const PollSet&) = delete;
    PollSet& operator=(const PollSet&) = delete;

    // Contexts of those that have something; of more than `room` the others come first next time.
    int poll(void** contexts, std::size_t room);
    int add(struct fid& source);
    int remove(struct fid& source);
    bool empty() {
        const std::lock_guard lock(mutex_);
        return members_.empty();
    }

  private:
    // A completion queue, or a counter, which has something when it differs from what it was when
    // it was last reported, or added.
    struct Member {
        fid_t source;
        std::uint64_t successes = 0;
        std::uint64_t failures = 0;
    };
    static bool has_news(Member& member);
    static void note(Member& member, Counter& counter) {
        member.successes = counter.successes();
        member.failures = counter.failures();
    }
    auto find(const struct fid& source) {
        return std::ranges::find(members_, &source, &Member::source);
    }

    Domain& domain_;
    std::mutex mutex_; // what follows
    std::vector<Member> members_;
    std::size_t next_ = 0; // of members_, where the next call begins
};

// One that stands on the source keeps it from being closed.
Users* users_of(struct fid& source) {
    switch (source.fclass) {
    case FI_CLASS_CQ:
        return &object_of<CompletionQueue, fid_cq>(&source).users;
    case FI_CLASS_CNTR:
        return &object_of<Counter, fid_cntr>(&source).users;
    default:
        return nullptr;
    }
}

Domain& domain_behind(struct fid& source) {
    return source.fclass == FI_CLASS_CQ ? object_of<CompletionQueue, fid_cq>(&source).domain()
                                        : object_of<Counter, fid_cntr>(&source).domain();
}

bool PollSet::has_news(Member& member) {
    if (member.source->fclass == FI_CLASS_CQ) {
        auto& queue = object_of<CompletionQueue, fid_cq>(member.source);
        return fi_cq_read(&queue, nullptr, 0) != -FI_EAGAIN;
    }
    const Member before = member;
    note(member, object_of<Counter, fid_cntr>(member.source));
    return member.successes != before.successes || member.failures != before.failures;
}

int PollSet::poll(void** contexts, std::size_t room) {
    const std::lock_guard lock(mutex_);
    std::size_t found = 0;
    for (std::size_t i = 0, count = members_.size(); i < count && found < room; ++i) {
        if (next_ >= count) {
            next_ = 0;
        }
        Member& member = members_[next_++];
        if (has_news(member)) {
            contexts[found++] = member.source->context;
        }
    }
    return static_cast<int>(found);
}

int PollSet::add(struct fid& source) {
    Users* const users = is_ours(source) ? users_of(source) : nullptr;
    if (!users) {
        DAT_WARN(domain,
                 "fi_poll_add(): an object of class %zu, or of another provider; a "
                 "completion queue or a counter of dat is wanted",
                 source.fclass);
        return -FI_EINVAL;
    }
    if (&domain_behind(source) != &domain_) {
        DAT_WARN(domain, "fi_poll_add(): the object belongs to another domain than the poll set");
        return -FI_EINVAL;
    }
    const std::lock_guard lock(mutex_);
    if (find(source) != members_.end()) {
        DAT_WARN(domain, "fi_poll_add(): the object is in the poll set already");
        return -FI_EALREADY;
    }
    members_.push_back({.source = &source});
    if (source.fclass == FI_CLASS_CNTR) {
        note(members_.back(), object_of<Counter, fid_cntr>(&source));
    }
    users->add();
    return 0;
}

int PollSet::remove(struct fid& source) {
    const std::lock_guard lock(mutex_);
    const auto at = find(source);
    if (at == members_.end()) {
        DAT_WARN(domain, "fi_poll_del(): the object is not in the poll set");
        return -FI_EINVAL;
    }
    members_.erase(at);
    users_of(source)->remove();
    return 0;
}

PollSet& set_of(fid_poll* set) { return *static_cast<PollSet*>(set); }

int refuse_flags(const char* call, std::uint64_t flags) {
    DAT_WARN(domain, "%s: flags = 0x%llx; none is offered", call,
             static_cast<unsigned long long>(flags));
    return -FI_EBADFLAGS;
}

int poll(fid_poll* set, void** contexts, int count) {
    if (count < 0 || (count > 0 && !contexts)) {
        DAT_WARN(domain, "fi_poll(): count = %d; at least 0, and room for as many contexts", count);
        return -FI_EINVAL;
    }
    return set_of(set).poll(contexts, static_cast<std::size_t>(count));
}

int poll_add(fid_poll* set, fid_t source, std::uint64_t flags) {
    return flags != 0 ? refuse_flags("fi_poll_add()", flags)
                      : no_throw([&] { return set_of(set).add(*source); });
}

int poll_del(fid_poll* set, fid_t source, std::uint64_t flags) {
    return flags != 0 ? refuse_flags("fi_poll_del()", flags) : set_of(set).remove(*source);
}

fi_ops_poll g_poll_ops = {
    .size = sizeof(fi_ops_poll),
    .poll = poll,
    .poll_add = poll_add,
    .poll_del = poll_del,
};

int close(fid_t f) {
    PollSet& set = object_of<PollSet, fid_poll>(f);
    if (!set.empty()) {
        DAT_WARN(domain, "fi_close() of a poll set: there are objects in it (fi_poll_del())");
        return -FI_EBUSY;
    }
    delete &set;
    return 0;
}

constinit fi_ops g_fid_ops = fid_ops(close);

} // namespace

int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** set) {
    if (attr && attr->flags != 0) {
        return refuse_flags("fi_poll_open()", attr->flags);
    }
    return no_throw([&] {
        auto made = std::make_unique<PollSet>(domain_of(domain));
        made->fid.fclass = FI_CLASS_POLL;
        made->fid.context = nullptr;
        made->fid.ops = &g_fid_ops;
        made->ops = &g_poll_ops;
        *set = made.release();
        return 0;
    });
}

} // namespace dat::ofi
