// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The memory windows (type 2) of a device. What a window is, and which of its keys is
// bound, the domain's table knows; here is the device's object behind each key. Each bind
// has one of its own, so that the key before is dead when the bind is reported, by whatever
// connection it was bound. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_WINDOWS_H
#define DAT_LINKS_VERBS_WINDOWS_H

#include "engine/mr_table.h"

#include <cstdint>
#include <unordered_map>

struct ibv_mr;
struct ibv_mw;
struct ibv_pd;
struct ibv_send_wr;

namespace dat::verbs {

class Windows final : public engine::WindowKeeper {
  public:
    Windows() = default;
    Windows(const Windows&) = delete;
    Windows& operator=(const Windows&) = delete;

    // The key that a window onto memory of `region` will have, once a request has bound
    // it. 0: errno.
    std::uint32_t make(ibv_pd* pd, ibv_mr* region);
    // The work request that binds the window as the table describes it, by the connection
    // of `link`; completed() has to follow, or link_ends(). False: the key is dead.
    bool bind(std::uint32_t key, const engine::Region& window, const void* link, ibv_send_wr& wr);
    void completed(std::uint32_t key);
    // The queue pair of that link is about to be destroyed, and the windows with it that
    // were bound by it.
    void link_ends(const void* link, engine::MrTable& table);
    void window_gone(std::uint32_t key) override;

  private:
    struct Entry {
        ibv_mw* window;
        ibv_mr* region;
        const void* link = nullptr; // by which it was bound
        bool busy = false;          // its work request is on its way
        bool gone = false;          // to be destroyed when that is not so any more
    };
    void destroy(std::unordered_map<std::uint32_t, Entry>::iterator at);

    std::unordered_map<std::uint32_t, Entry> entries_; // by key
};

} // namespace dat::verbs

#endif
