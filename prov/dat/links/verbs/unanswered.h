// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is left of a connect that was given up before its peer answered. Linux's siw keeps the
// queue pair until the answer comes, or until it gives up waiting for it, which takes 10 s, and
// keeps whoever destroys it as long: here that is a thread. Under the domain's lock. May
// include: engine.
#ifndef DAT_LINKS_VERBS_UNANSWERED_H
#define DAT_LINKS_VERBS_UNANSWERED_H

#include "engine/domain.h"
#include "links/verbs/domain.h"
#include "links/verbs/queues.h"

#include <memory>
#include <thread>

namespace dat::verbs {

class Unanswered final : public engine::DeferredClose, private engine::Pollable {
  public:
    // Takes the id. The queue pair has failed, so that the device touches no memory by it.
    Unanswered(Domain& domain, std::unique_ptr<Queues> queues, rdma_cm_id* id);
    // Waits for the answer.
    ~Unanswered() override;

    // False: there is no thread, which is logged; what is left is destroyed at once.
    bool start();

  private:
    void ready(std::uint32_t events) override; // gone_fd_
    void run();

    Domain& domain_;
    std::unique_ptr<Queues> queues_; // the thread's, until it has ended
    rdma_cm_id* const id_;
    int gone_fd_ = -1; // an eventfd
    std::thread thread_;
};

} // namespace dat::verbs

#endif
