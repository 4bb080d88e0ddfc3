// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The memory of operations, as a device is told of it: what the program has not
// registered is registered for as long as the operation takes. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_TEMPORARY_REGISTRATION_H
#define DAT_LINKS_VERBS_TEMPORARY_REGISTRATION_H

#include "engine/endpoint.h"
#include "links/verbs/domain.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

struct ibv_sge;

namespace dat::verbs {

inline constexpr int kInline = -1; // in place of an access: no key is needed

class TemporaryRegistrations {
  public:
    explicit TemporaryRegistrations(Domain& domain) : domain_(domain) {}
    ~TemporaryRegistrations() { end_all(); }
    TemporaryRegistrations(const TemporaryRegistrations&) = delete;
    TemporaryRegistrations& operator=(const TemporaryRegistrations&) = delete;

    // Writes the segments of work request `wr_id`, as many as `count` says afterwards.
    // `access` of ibv_access_flags, or kInline. `names`: one for each segment (Memory), or
    // nullptr. False, which is logged: some of it cannot be registered; call end() with it.
    bool gather(ibv_pd* pd, std::span<const engine::Iov> from, const void* const* names, int access,
                std::uint64_t wr_id, std::span<ibv_sge> to, int& count);
    // The device is through with it.
    void end(std::uint64_t wr_id) {
        if (!regions_.empty()) [[unlikely]] {
            deregister(wr_id);
        }
    }
    void end_all();

  private:
    bool lend(ibv_pd* pd, const engine::Iov& what, const void* name, int access,
              std::uint64_t wr_id, std::uint32_t& key);
    void deregister(std::uint64_t wr_id);

    Domain& domain_;
    std::unordered_map<std::uint64_t, std::vector<ibv_mr*>> regions_; // by work request
};

} // namespace dat::verbs

#endif
