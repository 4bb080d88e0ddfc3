// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory.h.
#include "links/verbs/memory.h"

#include "base/attempt.h"
#include "engine/kernel.h"

#include <cerrno>
#include <infiniband/verbs.h>

namespace dat::verbs {

ibv_mr* Memory::add(ibv_pd* pd, void* base, std::size_t length, int access) {
    const kernel::NoCancel within;
    ibv_mr* const mr = ibv_reg_mr(pd, base, length, static_cast<unsigned>(access));
    const auto start = reinterpret_cast<std::uintptr_t>(base);
    if (mr && !base::attempt([&] {
            regions_.emplace(start, Entry{mr, pd, start, length, access, mr->lkey});
        })) {
        ibv_dereg_mr(mr);
        errno = ENOMEM;
        return nullptr;
    }
    return mr;
}

void Memory::remove(ibv_mr* mr) {
    const auto range = regions_.equal_range(reinterpret_cast<std::uintptr_t>(mr->addr));
    for (auto at = range.first; at != range.second; ++at) {
        if (at->second.mr == mr) {
            for (const Entry*& found : found_) {
                found = found == &at->second ? nullptr : found;
            }
            regions_.erase(at);
            break;
        }
    }
    kernel::uncancelled(ibv_dereg_mr, mr);
}

std::uint32_t Memory::key_of(const ibv_mr& mr) { return mr.rkey != 0 ? mr.rkey : mr.lkey; }

ibv_mr* Memory::region(const void* base, std::uint32_t key, bool writable) {
    const auto range = regions_.equal_range(reinterpret_cast<std::uintptr_t>(base));
    for (auto at = range.first; at != range.second; ++at) {
        if (key_of(*at->second.mr) == key &&
            (!writable || (at->second.access & IBV_ACCESS_LOCAL_WRITE) != 0)) {
            return at->second.mr;
        }
    }
    return nullptr;
}

void* Memory::name_of(const ibv_mr* mr) {
    const auto range = regions_.equal_range(reinterpret_cast<std::uintptr_t>(mr->addr));
    for (auto at = range.first; at != range.second; ++at) {
        if (at->second.mr == mr) {
            return &at->second;
        }
    }
    return nullptr;
}

// Where regions overlap the nearest ones are looked at, and not each of them: what is not
// found is registered once more.
const Memory::Entry* Memory::find(const ibv_pd* pd, const void* base, std::size_t length,
                                  int access) {
    constexpr int kLooks = 8;
    const Entry*& last = found_[access != 0];
    if (last && last->covers(pd, base, length, access)) {
        return last;
    }
    auto at = regions_.upper_bound(reinterpret_cast<std::uintptr_t>(base));
    for (int i = 0; i < kLooks && at != regions_.begin(); ++i) {
        --at;
        if (at->second.covers(pd, base, length, access)) {
            return last = &at->second;
        }
    }
    return nullptr;
}

} // namespace dat::verbs
