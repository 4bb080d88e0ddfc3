// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is left of a connection at the connection manager when its queue pair has gone. Under the
// domain's lock.
#ifndef DAT_LINKS_VERBS_GOODBYE_H
#define DAT_LINKS_VERBS_GOODBYE_H

#include "engine/half_closed.h"
#include "links/verbs/domain.h"

struct rdma_cm_id;

namespace dat::verbs {

// Takes an id whose disconnect is on its way; it goes when that is answered, or after some seconds.
void say_goodbye(Domain& domain, rdma_cm_id* id);

// By the id: where the peer has left, its disconnect is answered as the id goes; where this side
// has, the answer is waited for, which the connection manager gives up after more than a minute.
class KeptId final : public engine::HalfClosed, private CmSink {
  public:
    KeptId(Domain& domain, engine::Endpoint& endpoint, bool watching)
        : HalfClosed(watching), domain_(domain), endpoint_(endpoint) {}
    ~KeptId() override;

    // Takes it. Where this side has left, its disconnect is on its way.
    void take(rdma_cm_id* id);
    bool begin() override { return id_ != nullptr; }

  private:
    void happened(const CmEvent& event) override;
    void let_go();

    Domain& domain_;
    engine::Endpoint& endpoint_;
    rdma_cm_id* id_ = nullptr;
};

} // namespace dat::verbs

#endif
