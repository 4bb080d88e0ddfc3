// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The counter.
#ifndef DAT_OFI_CNTR_H
#define DAT_OFI_CNTR_H

#include "core/completion.h"
#include "ofi/domain.h"
#include "ofi/fid.h"
#include "ofi/wait.h"

#include <rdma/fi_eq.h>

#include <cstdint>

namespace dat::ofi {

class Counter final : public fid_cntr, public core::Counter {
  public:
    Counter(Domain& domain, fi_wait_obj wait_obj, void* context);
    ~Counter() override;

    int open(); // 0 or -errno

    Users users; // endpoints and memory regions bound to it
    Domain& domain() { return domain_; }
    bool waitable() const { return waitable_; }
    int wait_fd() const { return wait_.fd(); }

    // These move the domain, as reading a completion queue does.
    std::uint64_t successes();
    std::uint64_t failures();
    // Adds to, or sets, one of the two.
    void change(bool failures, bool add, std::uint64_t value);
    // 0; -FI_ETIMEDOUT; -FI_EAVAIL where the error count changed meanwhile, or says more than
    // failures() or an earlier wait has: an error that comes just before the wait would be waited
    // for in vain.
    int wait(std::uint64_t threshold, int timeout_ms);
    // 0: a thread may sleep on wait_fd(). -FI_EAGAIN: it changed since it was read.
    int try_wait();

  private:
    void wake() override; // under the lock
    void settle_down();

    Domain& domain_;
    const bool waitable_;
    WaitSet wait_; // the domain's descriptor and signal_
    Signal signal_;
    bool raised_ = false;    // signal_ is; these two: guarded by the lock
    std::uint64_t seen_ = 0; // value() + errors() when last read
    std::uint64_t told_ = 0; // errors() that the program knows of
};

inline Counter& cntr_of(fid_cntr* f) { return *static_cast<Counter*>(f); }

// fi_cntr_open(3).
int open_cntr(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** cntr, void* context);

} // namespace dat::ofi

#endif
