// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The shared receive context: receives for several endpoints of a domain.
#ifndef DAT_OFI_SRX_H
#define DAT_OFI_SRX_H

#include "engine/shared_receives.h"
#include "ofi/domain.h"
#include "ofi/fid.h"

#include <rdma/fi_endpoint.h>

#include <cstdint>

namespace dat::ofi {

class SharedContext final : public fid_ep, private engine::SharedReceivesOwner {
  public:
    // Throws std::bad_alloc.
    SharedContext(Domain& domain, std::uint32_t size, std::uint64_t op_flags, void* context);
    // Receives that no message has taken are gone, without a completion.
    ~SharedContext();

    Users users; // endpoints bound to it
    Domain& domain() { return domain_; }
    engine::BiasedLock& biased_lock() { return domain_.biased_lock(); }
    engine::SharedReceives& receives() { return receives_; }
    std::uint64_t op_flags() const { return op_flags_; }
    int set_low_watermark(std::uint32_t count);

  private:
    void low_watermark_passed() override { domain_.raise_async(&fid, FI_DAT_ASYNC_LOW_WATERMARK); }

    Domain& domain_;
    const std::uint64_t op_flags_;
    engine::SharedReceives receives_;
};

// fi_srx_context(3).
int open_srx(fid_domain* domain, fi_rx_attr* attr, fid_ep** srx, void* context);

} // namespace dat::ofi

#endif
