// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Connections of an endpoint, and what is rare about its DTOs. See ep.h.
#include "dat-shim/cr.h"
#include "dat-shim/ep.h"
#include "dat-shim/evd.h"
#include "dat-shim/service_point.h"
#include "dat-shim/srq.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <netinet/in.h>

namespace dat::shim {

// U-12
Return Ep::ready() const {
    return parts_.pz && parts_.connect_evd
               ? kSuccess
               : fail(Type::invalid_state, Sub::invalid_state_ep_notready);
}

namespace {

// ADR-1: address and qualifier as an address of libfabric.
Return make_address(const sockaddr* from, std::uint64_t qualifier, sockaddr_storage& to) {
    const auto port = htobe16(static_cast<std::uint16_t>(qualifier));
    if (from->sa_family == AF_INET) {
        auto& address = reinterpret_cast<sockaddr_in&>(to);
        std::memcpy(&address, from, sizeof address);
        const std::uint32_t host = be32toh(address.sin_addr.s_addr);
        if (host == INADDR_ANY || host == INADDR_BROADCAST || (host >> 28) == 0xe) {
            return fail(Type::invalid_address, Sub::invalid_address_unsupported);
        }
        address.sin_port = port;
        return kSuccess;
    }
    if (from->sa_family == AF_INET6) {
        auto& address = reinterpret_cast<sockaddr_in6&>(to);
        std::memcpy(&address, from, sizeof address);
        if (IN6_IS_ADDR_MULTICAST(&address.sin6_addr) ||
            IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr)) {
            return fail(Type::invalid_address, Sub::invalid_address_unsupported);
        }
        address.sin6_port = port;
        return kSuccess;
    }
    return fail(Type::invalid_address, Sub::invalid_address_unsupported);
}

// Servers tell their clients by other means where they are, and listen only then.
constexpr std::uint64_t kPatienceUs = 100000;

std::uint64_t provider_timeout(std::uint32_t timeout_us) {
    return timeout_us == kForever ? FI_DAT_TIMEOUT_INFINITE : timeout_us;
}

} // namespace

Return Ep::connect(const Connect& to) {
    if (!to.address) {
        return bad_argument(2);
    }
    if (!ServicePoint::has_port(to.qualifier)) {
        return bad_argument(3);
    }
    if (to.timeout_us == 0) { // TMO-1
        return bad_argument(4);
    }
    if (state() != FI_DAT_UNCONNECTED) {
        return state_error();
    }
    if (const Return rc = ready()) {
        return rc;
    }
    sockaddr_storage address{};
    if (const Return rc = make_address(to.address, to.qualifier, address)) {
        return rc;
    }
    ops_->set_connect_timeout(ep_, provider_timeout(to.timeout_us));
    ops_->set_patience(ep_, kPatienceUs);
    active_ = true;
    set_private_data({});
    switch (fi_connect(ep_, &address, to.data.data(), to.data.size())) {
    case 0:
        return kSuccess;
    case -FI_EOPBADSTATE:
        return state_error();
    case -FI_EINVAL:
        return fail(Type::invalid_address, Sub::invalid_address_malformed);
    default:
        return fail(Type::insufficient_resources);
    }
}

Return Ep::dup_connect(Ep& other, std::uint32_t timeout_us, std::span<const std::byte> data) {
    if (timeout_us == 0) {
        return bad_argument(3);
    }
    if (state() != FI_DAT_UNCONNECTED) {
        return state_error();
    }
    if (other.state() != FI_DAT_CONNECTED) {
        return other.state_error();
    }
    if (const Return rc = ready()) {
        return rc;
    }
    ops_->set_connect_timeout(ep_, provider_timeout(timeout_us));
    active_ = true;
    set_private_data({});
    switch (ops_->dup_connect(ep_, other.ep_, data.data(), data.size())) {
    case 0:
        return kSuccess;
    case -FI_EOPBADSTATE:
        return state_error();
    default:
        return fail(Type::insufficient_resources);
    }
}

// CR-2..CR-5. `take`: the request has no endpoint yet.
Return Ep::accept(Cr& request, bool take, std::span<const std::byte> data) {
    if (take && (state() != FI_DAT_UNCONNECTED || cr_)) {
        return state_error();
    }
    if (const Return rc = ready()) {
        return rc;
    }
    set_private_data(request.data()); // U-44; this may find no memory
    if (take && ops_->take_request(ep_, request.request()) != 0) {
        return fail(Type::invalid_handle, Sub::invalid_handle_cr);
    }
    active_ = false;
    const int rc = fi_accept(ep_, data.data(), data.size());
    if (rc == 0) {
        cr_ = nullptr;
        adopted_ = false; // the Consumer's from now on
        return kSuccess;
    }
    const Return result = rc == -FI_EOPBADSTATE ? state_error()
                          : rc == -FI_EINVAL    ? bad_argument(3) // more than that peer takes
                                                : fail(Type::insufficient_resources);
    if (take) {
        ops_->take_request(ep_, nullptr);
    }
    return result;
}

Return Ep::disconnect(bool graceful) {
    return ops_->disconnect(ep_, graceful ? FI_DAT_GRACEFUL : FI_DAT_ABRUPT) == 0 ? kSuccess
                                                                                  : state_error();
}

Return Ep::reset() {
    if (parts_.connect_evd) {
        parts_.connect_evd->fetch(); // the provider forgets how the attempt ended
    }
    return ops_->reset(ep_) == 0 ? kSuccess : state_error();
}

Return Ep::recv_query(std::int32_t* allocated, std::int32_t* span) {
    std::uint32_t now = 0;
    std::uint32_t may = 0;
    if (ops_->recv_query(ep_, &now, &may) != 0) {
        return fail(Type::internal_error);
    }
    if (allocated) {
        *allocated = static_cast<std::int32_t>(now);
    }
    if (span) {
        *span = static_cast<std::int32_t>(may);
    }
    return kSuccess;
}

Return Ep::set_watermark(std::int32_t soft, std::int32_t hard) {
    if (soft < kInfinite || hard < kInfinite) {
        return bad_argument(soft < kInfinite ? 2 : 3);
    }
    const int rc = ops_->set_watermark(ep_, static_cast<std::uint32_t>(soft),
                                       static_cast<std::uint32_t>(hard));
    return rc == 0 ? kSuccess : fail(Type::insufficient_resources);
}

Return Ep::bind(Rmr& rmr, const Rmr::Bound& what, std::uint64_t cookie, std::uint32_t flags,
                std::uint32_t& key) {
    if ((flags & ~rma_flags_) != 0) {
        return bad_argument(8);
    }
    if (&rmr.pz != parts_.pz) { // RMR-8
        return fail(Type::protection_violation);
    }
    Slot* const slot = begin(requests_, Operation::bind, cookie, flags);
    if (!slot) {
        return kQueueFull;
    }
    slot->rmr = rmr.handle();
    fi_dat_bind bind{};
    bind.size = sizeof bind;
    bind.window = rmr.window();
    if (what.length > 0) {
        const std::uint64_t shift = what.lmr->asked.zero_based
                                        ? reinterpret_cast<std::uintptr_t>(what.lmr->asked.address)
                                        : 0;
        bind.mr = what.lmr->region();
        bind.addr = reinterpret_cast<void*>(what.address + shift);
        bind.len = what.length;
        bind.access = ((what.privileges & privilege::kRemoteRead) != 0 ? FI_REMOTE_READ : 0) |
                      ((what.privileges & privilege::kRemoteWrite) != 0 ? FI_REMOTE_WRITE : 0) |
                      FI_DAT_INVALIDATE; // dat_ep_post_send_with_invalidate of the peer
    }
    bind.flags = kRequestFlags[flags & 15] & (FI_COMPLETION | FI_FENCE);
    bind.flags |= what.zero_based ? FI_DAT_ZERO_BASED : 0;
    bind.context = slot;
    std::uint64_t bound_key = 0;
    switch (ops_->bind_window(ep_, &bind, &bound_key)) {
    case 0:
        requests_.advance();
        key = bound_key == FI_KEY_NOTAVAIL ? 0 : static_cast<std::uint32_t>(bound_key);
        rmr.bound = what;
        return kSuccess;
    case -FI_EAGAIN:
        return kQueueFull;
    case -FI_EOPBADSTATE:
        return state_error();
    case -FI_EACCES:
        return fail(Type::protection_violation);
    default:
        return bad_argument(3);
    }
}

// Out of slots. Suppressed successes tell nothing: while the connection stands all that has
// completed was a success (DISC-8), of which only those that are reported are still to be
// dequeued; so slots of suppressed ones are free as far as the provider is done with them.
void Ep::release_completed(DtoRing& ring, bool receives) {
    const ssize_t left = receives ? ep_->ops->rx_size_left(ep_) : ep_->ops->tx_size_left(ep_);
    const std::int32_t limit = receives ? attributes_.max_recv_dtos : attributes_.max_request_dtos;
    const Evd* reported = receives ? parts_.recv_evd : parts_.request_evd;
    if (left < 0 || left > limit) {
        return;
    }
    const auto outstanding = static_cast<std::uint32_t>(limit - static_cast<std::int32_t>(left));
    if (!reported) {
        ring.completed_but(outstanding);
    } else if (!receives && state() == FI_DAT_CONNECTED) {
        ring.release_suppressed(outstanding);
    }
}

Return Ep::post_failed(ssize_t rc) const {
    switch (rc) {
    case -FI_EOPBADSTATE:
        return state_error();
    case -FI_EAGAIN:
        return kQueueFull;
    case -FI_ENOMEM:
        return fail(Type::insufficient_resources, Sub::resource_memory);
    case -FI_EOPNOTSUPP: // the peer is no `dat`, or serves no reads
        return fail(Type::model_not_supported);
    case -FI_EFAULT: // FI_DAT_CHECK_BUFFERS
        return fail(Type::invalid_address);
    default: // too long, a key of more than 32 bits
        return fail(Type::invalid_parameter);
    }
}

Number Ep::failure() const {
    switch (status().end) {
    case FI_DAT_END_BROKEN:
        return Number::broken;
    case FI_DAT_END_PEER_REJECTED:
        return Number::peer_rejected;
    case FI_DAT_END_NON_PEER_REJECTED:
        return Number::non_peer_rejected;
    case FI_DAT_END_UNREACHABLE:
        return Number::unreachable;
    case FI_DAT_END_TIMED_OUT:
        return Number::timed_out;
    case FI_DAT_END_ACCEPT_ERROR:
        return Number::accept_completion_error;
    default:
        return Number::disconnected;
    }
}

} // namespace dat::shim
