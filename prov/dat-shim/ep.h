// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The endpoint. States and transitions are the provider's; here are attributes, EVDs and
// the checks of a post. The posting calls are templates, since a segment has another layout
// in each API version.
#ifndef DAT_SHIM_EP_H
#define DAT_SHIM_EP_H

#include "dat-shim/dto.h"
#include "dat-shim/ia.h"
#include "dat-shim/memory.h"
#include "dat-shim/object.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_dat.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <sys/socket.h>

namespace dat::shim {

class Cr;
class Evd;
class Srq;

struct EpAttributes {
    std::uint32_t service_type = 0;
    std::uint64_t max_message_size = Limits::kMaxLength; // not enforced, 0 is unset (EPA-3)
    std::uint64_t max_rdma_size = Limits::kMaxLength;
    std::uint32_t qos = 0;
    std::uint32_t recv_flags = 0; // EPA-8
    std::uint32_t request_flags = 0;
    std::int32_t max_recv_dtos = 128;
    std::int32_t max_request_dtos = 128;
    std::int32_t max_recv_iov = Limits::kMaxSegments;
    std::int32_t max_request_iov = Limits::kMaxSegments;
    std::int32_t max_reads_in = 16;
    std::int32_t max_reads_out = 16;
    std::int32_t soft_watermark = 0; // of an endpoint on a shared queue; 0, -1: none
    std::int32_t max_read_iov = Limits::kMaxSegments;
    std::int32_t max_write_iov = Limits::kMaxSegments;
};

// What dat_ep_modify changes; bits as DAT_EP_FIELD_* of 2.0.
namespace field {
inline constexpr std::uint64_t kNever = 0x87f; // IA, state, comm, addresses, ports, SRQ
inline constexpr std::uint64_t kPz = 0x80;
inline constexpr std::uint64_t kRecvEvd = 0x100;
inline constexpr std::uint64_t kRequestEvd = 0x200;
inline constexpr std::uint64_t kConnectEvd = 0x400;
inline constexpr std::uint64_t kServiceType = 0x1000;
inline constexpr std::uint64_t kMessageSize = 0x2000;
inline constexpr std::uint64_t kRdmaSize = 0x4000;
inline constexpr std::uint64_t kQos = 0x8000;
inline constexpr std::uint64_t kRecvFlags = 0x10000;
inline constexpr std::uint64_t kRequestFlags = 0x20000;
inline constexpr std::uint64_t kRecvDtos = 0x40000;
inline constexpr std::uint64_t kRequestDtos = 0x80000;
inline constexpr std::uint64_t kRecvIov = 0x100000;
inline constexpr std::uint64_t kRequestIov = 0x200000;
inline constexpr std::uint64_t kReadsIn = 0x400000;
inline constexpr std::uint64_t kReadsOut = 0x800000;
inline constexpr std::uint64_t kSoftWatermark = 0x1000000;
inline constexpr std::uint64_t kReadIov = 0x2000000;
inline constexpr std::uint64_t kWriteIov = 0x4000000;
inline constexpr std::uint64_t kSpecific = 0x78000000;
inline constexpr std::uint64_t kAll = 0x7fffffff;
} // namespace field

class Ep final : public Object {
  public:
    static constexpr Kind kKind = Kind::ep;
    static constexpr std::int32_t kNonePlain = std::numeric_limits<std::int32_t>::min();

    struct Parts {
        Pz* pz = nullptr;
        Evd* recv_evd = nullptr;
        Evd* request_evd = nullptr;
        Evd* connect_evd = nullptr;
        Srq* srq = nullptr;
    };

    Ep(Ia& ia, const EpAttributes& attributes);
    ~Ep() override;

    // EPA-1..EPA-4; `attributes` may be nullptr without a shared queue.
    static Return create(Ia& ia, const Parts& parts, const EpAttributes* attributes, Ep*& ep);
    // SP-4: of an endpoint that the provider made for a request.
    static Ep& adopt(Ia& ia, fid_ep* made, Cr& request);
    Return free();
    Return modify(std::uint64_t fields, const Parts& parts, const EpAttributes& attributes);

    const EpAttributes& attributes() const { return attributes_; }
    const Parts& parts() const { return parts_; }
    fi_dat_ep_status status() const;
    int state() const { return status().state; }
    fid_ep* fid() { return ep_; }
    fi_dat_ops_ep& ops() { return *ops_; }
    Return state_error() const; // EP-29
    std::uint32_t posted_requests() const { return requests_.posted(); }
    std::uint32_t posted_receives() const { return receives_.posted(); }
    // EPA-9; nullptr and 0 where there is none. Valid until the next call.
    const sockaddr* local_address(std::uint64_t& port);
    const sockaddr* remote_address(std::uint64_t& port);

    // Connection management (EP-10..EP-21)
    struct Connect {
        const sockaddr* address;
        std::uint64_t qualifier;
        std::uint32_t timeout_us;
        std::span<const std::byte> data;
    };
    Return connect(const Connect& to);
    Return dup_connect(Ep& other, std::uint32_t timeout_us, std::span<const std::byte> data);
    Return accept(Cr& request, bool take, std::span<const std::byte> data);
    Return disconnect(bool graceful);
    Return reset();
    Return recv_query(std::int32_t* allocated, std::int32_t* span);
    Return set_watermark(std::int32_t soft, std::int32_t hard);
    // RMR-2..RMR-9; `key`: the new context.
    Return bind(Rmr& rmr, const Rmr::Bound& what, std::uint64_t cookie, std::uint32_t flags,
                std::uint32_t& key);

    // Posts (DTO-1..DTO-28)
    template <class Triplet> // in fast.h
    Return post_send(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                     std::uint32_t flags);
    template <class Triplet>
    Return post_send_invalidate(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                                std::uint32_t flags, std::uint32_t key) {
        return post_message(count, iov, cookie, flags, FI_DAT_INVALIDATE, key);
    }
    template <class Triplet> // in fast.h
    Return post_recv(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                     std::uint32_t flags);
    template <class Triplet, class Remote>
    Return post_read(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                     const Remote& remote, std::uint32_t flags);
    template <class Triplet, class Remote> // in fast.h
    Return post_write(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                      const Remote& remote, std::uint32_t flags);
    template <class Triplet, class Remote>
    Return post_write_immediate(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                                const Remote& remote, std::uint32_t flags,
                                std::uint32_t immediate) {
        return post_any_write(count, iov, cookie, remote, flags, &immediate);
    }
    // 8 bytes at `remote`; what was there goes to `local`. `compare`: nullptr to add.
    template <class Triplet, class Remote>
    Return post_atomic(const Triplet& local, const Remote& remote, std::uint64_t operand,
                       const std::uint64_t* compare, std::uint64_t cookie, std::uint32_t flags);

    // --- for events ---

    bool is_active() const { return active_; }
    // PD-2, PD-5: kept, and zeroes up to the largest size.
    void set_private_data(std::span<const std::byte> data);
    void* private_data();
    // Which event the end of the last attempt is (EP-40..EP-59).
    Number failure() const;
    // The request that it answers has gone; an endpoint that was made for it is no more.
    void request_settled(bool gone);
    bool is_adopted() const { return adopted_; }

  private:
    friend class ServicePoint;
    static Return check(const Ia& ia, const EpAttributes& attributes, bool shared);
    Return open();
    Return attach();
    Return attach_one(Evd* evd, std::uint32_t stream, std::uint32_t flags, Sub what);
    void detach(const Parts& parts);
    void give_back(Evd* evd);
    Return ready() const;
    Return post_failed(ssize_t rc) const;
    void release_completed(DtoRing& ring, bool receives);
    std::uint32_t iov_limit(const std::int32_t asked) const {
        return static_cast<std::uint32_t>(asked);
    }

    // A slot of the ring, filled; nullptr: as many are outstanding as may be.
    Slot* begin(DtoRing& ring, Operation operation, std::uint64_t cookie, std::uint32_t flags) {
        if (ring.full()) [[unlikely]] {
            release_completed(ring, &ring == &receives_);
            if (ring.full()) {
                return nullptr;
            }
        }
        return &fill(ring, operation, cookie, flags);
    }
    Slot& fill(DtoRing& ring, Operation operation, std::uint64_t cookie, std::uint32_t flags) {
        Slot& slot = ring.next();
        slot.cookie = cookie;
        slot.behind = ring.sequence() + 1;
        slot.operation = operation;
        slot.suppressed = (flags & completion::kSuppress) != 0;
        slot.plain = operation <= Operation::receive;
        slot.unused = 0;
        return slot;
    }
    // One segment of at most `most` bytes, no flags, a slot free, nothing wrong: such a post goes
    // straight to the provider. `plain_count`: plain_sends_ and its like.
    template <std::uint32_t need, class Triplet>
    bool is_plain(std::int32_t count, const Triplet* iov, std::uint32_t flags,
                  std::int32_t plain_count, DtoRing& ring, iovec& segment) const {
        return (static_cast<std::uint32_t>(count ^ plain_count) | flags) == 0 && iov &&
               is_good_segment<need>(lmrs_, zone_, *iov, segment) && ring.has_room();
    }
    template <class Triplet>
    Return gather(std::int32_t count, std::int32_t limit, const Triplet* iov, std::uint32_t need,
                  iovec* out, std::size_t& used, std::uint64_t& total) const;
    // These in fast.h; with the flags kFlags. `other()`: any other post.
    template <class Call>
    Return post_plain(DtoRing& ring, Operation operation, std::uint64_t cookie, std::uint32_t flags,
                      Call&& call);
    template <std::uint32_t kFlags, class Triplet, class Other>
    Return post_plain_send(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                           std::uint32_t flags, Other&& other);
    template <std::uint32_t kFlags, class Triplet, class Remote, class Other>
    Return post_plain_write(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                            const Remote& remote, std::uint32_t flags, Other&& other);
    template <class Triplet>
    Return post_quiet_send(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                           std::uint32_t flags);
    template <class Triplet, class Remote>
    Return post_quiet_write(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                            const Remote& remote, std::uint32_t flags);
    template <class Triplet>
    [[gnu::noinline]] Return post_any_recv(std::int32_t count, const Triplet* iov,
                                           std::uint64_t cookie, std::uint32_t flags);
    template <class Triplet>
    [[gnu::noinline]] Return post_any_send(std::int32_t count, const Triplet* iov,
                                           std::uint64_t cookie, std::uint32_t flags) {
        return post_message(count, iov, cookie, flags, 0, 0);
    }
    template <class Triplet>
    Return post_message(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                        std::uint32_t flags, std::uint64_t extra, std::uint32_t key);
    // `immediate`: nullptr without.
    template <class Triplet, class Remote>
    [[gnu::noinline]] Return post_any_write(std::int32_t count, const Triplet* iov,
                                            std::uint64_t cookie, const Remote& remote,
                                            std::uint32_t flags, const std::uint32_t* immediate);

    Parts parts_;
    EpAttributes attributes_;
    fid_ep* ep_ = nullptr;
    fi_dat_ops_ep* ops_ = nullptr;
    const LmrTable& lmrs_;
    LmrTable::Pass zone_ = 0;      // of parts_.pz; 0 without
    std::uint32_t send_flags_ = 0; // which per-post flags are allowed (DTO-26)
    std::uint32_t rma_flags_ = 0;
    std::uint32_t recv_flags_ = 0;
    std::int32_t plain_sends_ = kNonePlain;  // the number of segments of a plain post: 1, or
    std::int32_t plain_writes_ = kNonePlain; // none is plain
    std::int32_t plain_receives_ = kNonePlain;
    DtoRing requests_;
    DtoRing receives_;
    bool active_ = false;
    Cr* cr_ = nullptr;     // that it is to answer
    bool adopted_ = false; // made by the provider for cr_
    std::unique_ptr<std::array<std::byte, Limits::kMaxPrivateData + 4>> private_data_;
    sockaddr_storage local_{};
    sockaddr_storage remote_{};
};

} // namespace dat::shim

#include "dat-shim/post.h"

#endif
