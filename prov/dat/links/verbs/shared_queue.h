// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A shared receive queue of the device, from which the queue pairs of several connections
// take. It exists while one of them does; the receives that it then still has go back to
// engine::SharedReceives, from which it filled itself, and so do those that a queue pair
// had taken and not completed when it was destroyed. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_SHARED_QUEUE_H
#define DAT_LINKS_VERBS_SHARED_QUEUE_H

#include "engine/shared_receives.h"
#include "links/verbs/domain.h"
#include "links/verbs/temporary_registration.h"

#include <cstdint>
#include <memory>
#include <vector>

struct ibv_srq;

namespace dat::verbs {

class SharedQueue final : public engine::ReceivingDevice {
  public:
    // That of `receives`, made if there is none. nullptr, which is logged: the device has no
    // more, or the queue is of another protection domain. Throws std::bad_alloc.
    static std::shared_ptr<SharedQueue> of(Domain& domain, engine::SharedReceives& receives,
                                           ibv_pd* pd);
    ~SharedQueue();
    SharedQueue(const SharedQueue&) = delete;
    SharedQueue& operator=(const SharedQueue&) = delete;

    // Queue pairs that take from it keep it: some outlive this.
    const std::shared_ptr<ibv_srq>& get() const { return srq_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
    // The device has completed that work request, for a connection of `endpoint`, which the
    // receive belongs to from here on. Its number there.
    std::uint64_t completed(std::uint64_t wr_id, engine::Endpoint& endpoint);
    // As many as there are, and as the queue has room for.
    void offered() override;

  private:
    SharedQueue(Domain& domain, engine::SharedReceives& receives, ibv_pd* pd, std::uint32_t size);
    struct Slot {
        engine::Receive receive;
        engine::Iov extra_segments[engine::kMaxIov];
        std::uint64_t order = kFree; // of posting
    };
    static constexpr std::uint64_t kFree = UINT64_MAX;

    void set_size(std::uint32_t size);
    bool open(std::uint32_t segments);
    bool post(std::uint32_t number);

    Domain& domain_;
    engine::SharedReceives& receives_;
    ibv_pd* pd_;
    std::shared_ptr<ibv_srq> srq_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_; // of slots_
    std::uint64_t posted_ = 0;
    TemporaryRegistrations temporary_registrations_;
    std::weak_ptr<SharedQueue> self_;
};

} // namespace dat::verbs

#endif
