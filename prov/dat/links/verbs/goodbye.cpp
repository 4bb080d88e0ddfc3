// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See goodbye.h.
#include "links/verbs/goodbye.h"

#include "base/attempt.h"
#include "engine/domain.h"
#include "engine/endpoint.h"
#include "engine/kernel.h"

#include <chrono>
#include <rdma/rdma_cma.h>
#include <utility>

namespace dat::verbs {
namespace {

// How long the connection manager is left to finish a disconnect.
constexpr std::chrono::seconds kGoodbye{3};

class Goodbye final : public engine::DeferredClose, public CmSink, private engine::Timer {
  public:
    Goodbye(Domain& domain, rdma_cm_id* id) : domain_(domain), id_(id) {
        id->context = static_cast<CmSink*>(this);
        domain.engine().reactor().arm(*this, kGoodbye);
    }
    ~Goodbye() override {
        domain_.engine().reactor().disarm(*this);
        kernel::uncancelled(rdma_destroy_id, id_);
    }
    void happened(const CmEvent&) override { expired(); }

  private:
    void expired() override { domain_.engine().dismiss(*this); }

    Domain& domain_;
    rdma_cm_id* id_;
};

} // namespace

void say_goodbye(Domain& domain, rdma_cm_id* id) {
    std::unique_ptr<Goodbye> goodbye;
    if (base::attempt([&] { goodbye = std::make_unique<Goodbye>(domain, id); })) {
        return domain.engine().defer_close(std::move(goodbye));
    }
    kernel::uncancelled(rdma_destroy_id, id);
}

KeptId::~KeptId() {
    if (id_ && watching()) {
        say_goodbye(domain_, id_);
    } else {
        let_go();
    }
}

void KeptId::take(rdma_cm_id* id) {
    id_ = id;
    id->context = static_cast<CmSink*>(this);
}

void KeptId::let_go() {
    if (id_) {
        kernel::uncancelled(rdma_destroy_id, std::exchange(id_, nullptr));
    }
}

// The answer, or the peer's own disconnect, which takes the answer's place; or there will be none.
void KeptId::happened(const CmEvent& event) {
    const bool removed = event.type == RDMA_CM_EVENT_DEVICE_REMOVAL;
    const bool answered = watching() && event.type == RDMA_CM_EVENT_DISCONNECTED;
    if (removed || answered) {
        let_go();
    }
    if (watching() && !id_) {
        endpoint_.peer_left(); // which destroys this
    }
}

} // namespace dat::verbs
