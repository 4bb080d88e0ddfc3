// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See temporary_registration.h.
#include "links/verbs/temporary_registration.h"

#include "base/attempt.h"
#include "engine/kernel.h"

#include <cerrno>
#include <infiniband/verbs.h>

namespace dat::verbs {

bool TemporaryRegistrations::lend(ibv_pd* pd, const engine::Iov& what, const void* name, int access,
                                  std::uint64_t wr_id, std::uint32_t& key) {
    if (const Memory::Entry* known =
            domain_.memory().named(name, pd, what.base, what.length, access)) [[likely]] {
        key = known->lkey;
        return true;
    }
    std::vector<ibv_mr*>* lent = nullptr;
    if (!base::attempt([&] {
            lent = &regions_[wr_id];
            lent->reserve(engine::kMaxIov);
        })) {
        log_failure("memory of an operation", ENOMEM);
        return false;
    }
    const kernel::NoCancel within;
    ibv_mr* const mr = ibv_reg_mr(pd, what.base, what.length, static_cast<unsigned>(access));
    if (!mr) {
        log_failure("memory of an operation: ibv_reg_mr()", errno);
        return false;
    }
    lent->push_back(mr);
    key = mr->lkey;
    return true;
}

bool TemporaryRegistrations::gather(ibv_pd* pd, std::span<const engine::Iov> from,
                                    const void* const* names, int access, std::uint64_t wr_id,
                                    std::span<ibv_sge> to, int& count) {
    count = 0;
    for (const engine::Iov& segment : from) {
        const void* const name = names ? *names++ : nullptr;
        if (segment.length == 0) { // DTO-2
            continue;
        }
        ibv_sge& sge = to[static_cast<std::size_t>(count++)];
        sge.addr = reinterpret_cast<std::uintptr_t>(segment.base);
        sge.length = static_cast<std::uint32_t>(segment.length);
        if (access == kInline) {
            sge.lkey = 0;
        } else if (!lend(pd, segment, name, access, wr_id, sge.lkey)) {
            return false;
        }
    }
    if (count == 0 && domain_.device().iwarp) { // siw takes no receive without one
        to[0] = {};
        count = 1;
    }
    return true;
}

void TemporaryRegistrations::deregister(std::uint64_t wr_id) {
    const auto found = regions_.find(wr_id);
    if (found != regions_.end()) {
        for (ibv_mr* mr : found->second) {
            kernel::uncancelled(ibv_dereg_mr, mr);
        }
        regions_.erase(found);
    }
}

void TemporaryRegistrations::end_all() {
    while (!regions_.empty()) {
        deregister(regions_.begin()->first);
    }
}

} // namespace dat::verbs
