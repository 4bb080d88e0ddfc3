// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See cntr.h.
#include "ofi/cntr.h"

#include "base/log.h"
#include "ofi/errors.h"
#include "ofi/no_op.h"
#include "ofi/sleeper.h"
#include "ofi/versions.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

namespace dat::ofi {

Counter::Counter(Domain& domain, fi_wait_obj wait_obj, void* context)
    : domain_(domain), waitable_(wait_obj != FI_WAIT_NONE) {
    fid.fclass = FI_CLASS_CNTR;
    fid.context = context;
    domain_.users.add();
}

Counter::~Counter() { domain_.users.remove(); }

// fi_cntr_wait() is served also where no wait object was asked for, as some programs
// expect it: then there are descriptors from the first such call on.
int Counter::open() {
    if (wait_.fd() >= 0) {
        return 0;
    }
    int rc = wait_.open();
    rc = rc ? rc : signal_.open();
    rc = rc ? rc : wait_.add(signal_.fd());
    return rc ? rc : wait_.add(domain_.engine().wait_fd());
}

void Counter::wake() {
    arm(false); // once is enough until a thread goes to sleep again
    raised_ = true;
    signal_.raise();
}

void Counter::settle_down() {
    if (raised_) {
        signal_.clear();
        raised_ = false;
    }
}

std::uint64_t Counter::successes() {
    const engine::BiasedLockOwner in(domain_.biased_lock());
    domain_.engine().progress();
    seen_ = value() + errors();
    return value();
}

std::uint64_t Counter::failures() {
    const engine::BiasedLockOwner in(domain_.biased_lock());
    domain_.engine().progress();
    seen_ = value() + errors();
    told_ = errors();
    return told_;
}

void Counter::change(bool failures, bool add, std::uint64_t by) {
    const engine::BiasedLockOwner in(domain_.biased_lock());
    if (failures) {
        set(value(), add ? errors() + by : by);
        told_ = errors();
    } else {
        set(add ? value() + by : by, errors());
    }
}

int Counter::wait(std::uint64_t threshold, int timeout_ms) {
    {
        const engine::BiasedLockOwner in(domain_.biased_lock());
        if (const int rc = open()) {
            DAT_WARN(domain, "fi_cntr_wait(): %s; raise the limit on open files (ulimit -n)",
                     std::strerror(-rc));
            return rc;
        }
    }
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    const Sleeper sleeper(domain_.engine());
    std::uint64_t errors_before = 0;
    bool first = true;
    for (int left = timeout_ms;;) {
        bool quiet = true;
        {
            const engine::BiasedLockOwner in(domain_.biased_lock());
            arm(false);
            errors_before = first ? errors() : errors_before;
            first = false;
            domain_.engine().progress();
            if (errors() != errors_before || errors() != told_) {
                told_ = errors();
                return -FI_EAVAIL;
            }
            if (value() >= threshold) {
                return 0;
            }
            if (left == 0) { // nobody sleeps: links that rest would have to be woken again
                return -FI_ETIMEDOUT;
            }
            quiet = domain_.engine().rest();
            settle_down();
            arm(true);
        }
        if (quiet) {
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

int Counter::try_wait() {
    if (!waitable_) {
        DAT_WARN(domain, "fi_trywait(): the counter was opened with FI_WAIT_NONE");
        return -FI_EINVAL;
    }
    const engine::BiasedLockOwner in(domain_.biased_lock());
    domain_.engine().share_wait_fd();
    arm(false);
    domain_.engine().progress();
    if (value() + errors() != seen_ || !domain_.engine().rest()) {
        return -FI_EAGAIN;
    }
    settle_down();
    arm(true);
    return 0;
}

namespace {

std::uint64_t read(fid_cntr* cntr) { return cntr_of(cntr).successes(); }
std::uint64_t read_errors(fid_cntr* cntr) { return cntr_of(cntr).failures(); }

template <bool Failures, bool Add> int change(fid_cntr* cntr, std::uint64_t value) {
    cntr_of(cntr).change(Failures, Add, value);
    return 0;
}

int wait(fid_cntr* cntr, std::uint64_t threshold, int timeout) {
    return cntr_of(cntr).wait(threshold, timeout);
}

fi_ops_cntr g_cntr_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = read,
    .readerr = read_errors,
    .add = change<false, true>,
    .set = change<false, false>,
    .wait = wait,
    .adderr = change<true, true>,
    .seterr = change<true, false>,
};

int close(fid_t f) {
    Counter& cntr = object_of<Counter, fid_cntr>(f);
    if (cntr.users.count() > 0) {
        DAT_WARN(domain,
                 "fi_close() of a counter: %d endpoints, memory regions and poll sets stand on it",
                 cntr.users.count());
        return -FI_EBUSY;
    }
    delete &cntr;
    return 0;
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = DAT_NOT_OFFERED(fi_ops, bind),
    .control = control_wait<Counter, fid_cntr>,
    .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

} // namespace

int open_cntr(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** cntr, void* context) {
    fi_cntr_attr defaults{};
    defaults.wait_obj = FI_WAIT_UNSPEC;
    const fi_cntr_attr& asked = attr ? *attr : defaults;
    const std::uint32_t events = number_of(asked.events);
    const std::uint32_t wait_object = number_of(asked.wait_obj);
    if (events != FI_CNTR_EVENTS_COMP || asked.flags != 0 ||
        (wait_object != FI_WAIT_NONE && wait_object != FI_WAIT_UNSPEC &&
         wait_object != FI_WAIT_FD)) {
        DAT_WARN(domain,
                 "fi_cntr_open(): events = %u, wait_obj = %u, flags = 0x%llx; "
                 "FI_CNTR_EVENTS_COMP, FI_WAIT_NONE, FI_WAIT_UNSPEC and FI_WAIT_FD, and no flags "
                 "are offered",
                 events, wait_object, static_cast<unsigned long long>(asked.flags));
        return -FI_ENOSYS;
    }
    return no_throw([&] {
        auto made = std::make_unique<Counter>(domain_of(domain), asked.wait_obj, context);
        if (const int rc = made->waitable() ? made->open() : 0) {
            DAT_WARN(domain, "fi_cntr_open(): %s; raise the limit on open files (ulimit -n)",
                     std::strerror(-rc));
            return rc;
        }
        made->fid.ops = &g_fid_ops;
        made->ops = &g_cntr_ops;
        *cntr = made.release();
        return 0;
    });
}

} // namespace dat::ofi
