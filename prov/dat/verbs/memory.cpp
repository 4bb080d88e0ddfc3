// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory.h. May include: verbs, system headers.
#include "verbs/memory.h"

#include <infiniband/verbs.h>

namespace dat::verbs {

ibv_mr* Memory::add(ibv_pd* pd, void* base, std::size_t length, int access) {
    ibv_mr* const mr = ibv_reg_mr(pd, base, length, static_cast<unsigned>(access));
    if (mr) {
        regions_.emplace(reinterpret_cast<std::uintptr_t>(base), Entry{mr, access});
    }
    return mr;
}

void Memory::remove(ibv_mr* mr) {
    const auto range = regions_.equal_range(reinterpret_cast<std::uintptr_t>(mr->addr));
    for (auto at = range.first; at != range.second; ++at) {
        if (at->second.mr == mr) {
            regions_.erase(at);
            break;
        }
    }
    for (Found& found : found_) {
        if (found.mr == mr) {
            found = {};
        }
    }
    ibv_dereg_mr(mr);
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

bool Memory::covers(const ibv_mr& mr, int has, ibv_pd* pd, const void* base, std::size_t length,
                    int access) {
    const auto from = reinterpret_cast<std::uintptr_t>(base);
    const auto start = reinterpret_cast<std::uintptr_t>(mr.addr);
    return mr.pd == pd && from >= start && from - start <= mr.length &&
           length <= mr.length - (from - start) && (access & ~has) == 0;
}

// Where regions overlap the nearest ones are looked at, and not each of them: what is not
// found is registered once more.
const ibv_mr* Memory::search(ibv_pd* pd, const void* base, std::size_t length, int access) {
    constexpr int kLooks = 8;
    auto at = regions_.upper_bound(reinterpret_cast<std::uintptr_t>(base));
    for (int i = 0; i < kLooks && at != regions_.begin(); ++i) {
        --at;
        if (covers(*at->second.mr, at->second.access, pd, base, length, access)) {
            const ibv_mr* const mr = at->second.mr;
            found_[access != 0] = {mr->pd, reinterpret_cast<std::uintptr_t>(mr->addr), mr->length,
                                   mr, at->second.access};
            return mr;
        }
    }
    return nullptr;
}

} // namespace dat::verbs
