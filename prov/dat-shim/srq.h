// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The shared receive queue (SRQ-1..SRQ-13).
#ifndef DAT_SHIM_SRQ_H
#define DAT_SHIM_SRQ_H

#include "dat-shim/dto.h"
#include "dat-shim/ia.h"
#include "dat-shim/memory.h"
#include "dat-shim/object.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_dat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace dat::shim {

class Srq final : public Object {
  public:
    static constexpr Kind kKind = Kind::srq;
    struct Attributes {
        std::int32_t max_recv_dtos = 0;
        std::int32_t max_recv_iov = 0;
        std::int32_t low_watermark = 0;
    };

    Srq(Ia& ia, Pz& pz, const Attributes& attributes);
    ~Srq() override;

    static Return create(Ia& ia, Pz& pz, const Attributes& attributes, Srq*& srq);
    Return free();
    Return resize(std::int32_t max_recv_dtos);            // SRQ-9
    Return set_low_watermark(std::int32_t low_watermark); // SRQ-8

    template <class Triplet>
    Return post_recv(std::int32_t count, const Triplet* iov, std::uint64_t cookie) {
        if (static_cast<std::uint32_t>(count) >
                static_cast<std::uint32_t>(attributes_.max_recv_iov) ||
            (count > 0 && !iov)) {
            return bad_argument(2);
        }
        iovec segments[Limits::kMaxSegments];
        std::size_t used = 0;
        for (std::int32_t i = 0; i < count; ++i) {
            if (iov[i].segment_length == 0) {
                continue;
            }
            if (const Return rc =
                    check_segment(lmrs_, &pz_, privilege::kLocalWrite, iov[i], segments[used++])) {
                return rc;
            }
        }
        return post(segments, used, cookie);
    }

    // SRQ-6
    std::int32_t available() const;
    std::int32_t outstanding() const { return outstanding_.load(); }
    const Attributes& attributes() const { return attributes_; }
    Pz& pz() const { return pz_; }
    fid_ep* context_fid() { return srx_; }

    // A receive was dequeued. Any thread.
    void release(Slot& slot);

  private:
    Return post(const iovec* segments, std::size_t count, std::uint64_t cookie);
    Slot* take();

    Pz& pz_;
    Attributes attributes_;
    const LmrTable& lmrs_;
    fid_ep* srx_ = nullptr;
    fi_dat_ops_srx* ops_ = nullptr;
    std::unique_ptr<Slot[]> slots_;
    // Free slots: a stack of indices, whose upper half counts changes.
    std::unique_ptr<std::atomic<std::uint32_t>[]> next_;
    std::atomic<std::uint64_t> top_{0}; // index + 1; 0: empty
    std::atomic<std::int32_t> outstanding_{0};
};

} // namespace dat::shim

#endif
