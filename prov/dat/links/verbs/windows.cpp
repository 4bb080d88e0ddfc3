// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See windows.h.
#include "links/verbs/windows.h"

#include "base/attempt.h"
#include "engine/kernel.h"

#include <cerrno>
#include <infiniband/verbs.h>

namespace dat::verbs {

std::uint32_t Windows::make(ibv_pd* pd, ibv_mr* region) {
    ibv_mw* const window = kernel::uncancelled(ibv_alloc_mw, pd, IBV_MW_TYPE_2);
    if (!window) {
        return 0;
    }
    const std::uint32_t key = ibv_inc_rkey(window->rkey);
    bool added = false;
    const bool memory = base::attempt([&] {
        added = entries_.emplace(key, Entry{window, region}).second;
    });
    if (!added) {
        kernel::uncancelled(ibv_dealloc_mw, window);
        errno = memory ? EAGAIN : ENOMEM;
        return 0;
    }
    return key;
}

bool Windows::bind(std::uint32_t key, const engine::Region& window, const void* link,
                   ibv_send_wr& wr) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
        return false;
    }
    Entry& entry = found->second;
    entry.link = link;
    entry.busy = true;
    unsigned access = 0;
    if ((window.access_if_bound & engine::kRemoteRead) != 0) {
        access |= IBV_ACCESS_REMOTE_READ;
    }
    if ((window.access_if_bound & engine::kRemoteWrite) != 0) {
        access |= IBV_ACCESS_REMOTE_WRITE;
    }
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = entry.window;
    wr.bind_mw.rkey = key;
    wr.bind_mw.bind_info = {
        .mr = entry.region,
        .addr = reinterpret_cast<std::uintptr_t>(window.base),
        .length = window.length,
        .mw_access_flags = access,
    };
    return true;
}

void Windows::destroy(std::unordered_map<std::uint32_t, Entry>::iterator at) {
    kernel::uncancelled(ibv_dealloc_mw, at->second.window);
    entries_.erase(at);
}

void Windows::completed(std::uint32_t key) {
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
        found->second.busy = false;
        if (found->second.gone) {
            destroy(found);
        }
    }
}

void Windows::window_gone(std::uint32_t key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
        return;
    }
    if (found->second.busy) {
        found->second.gone = true;
    } else {
        destroy(found);
    }
}

void Windows::link_ends(const void* link, engine::MrTable& table) {
    for (auto at = entries_.begin(); at != entries_.end();) {
        const auto each = at++;
        if (each->second.link == link) {
            const std::uint32_t key = each->first;
            destroy(each);
            table.spoil(key); // which finds nothing of it here any more
        }
    }
}

} // namespace dat::verbs
