// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Making, changing and freeing an endpoint. See ep.h.
#include "dat-shim/ep.h"

#include "base/attempt.h"
#include "dat-shim/cr.h"
#include "dat-shim/evd.h"
#include "dat-shim/fast.h"
#include "dat-shim/reason.h"
#include "dat-shim/srq.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

namespace dat::shim {
namespace {

constexpr std::uint32_t kQosKnown = 0xf;

// What an IA cannot is none of them.
EpAttributes defaults_of(const Ia& ia) {
    EpAttributes defaults;
    defaults.max_recv_iov = defaults.max_request_iov = defaults.max_write_iov =
        ia.can().max_segments;
    defaults.max_read_iov = ia.can().max_read_segments;
    defaults.max_reads_in = std::min(defaults.max_reads_in, ia.can().max_reads_in);
    defaults.max_reads_out = std::min(defaults.max_reads_out, ia.can().max_reads_out);
    return defaults;
}

// SRQ-2
bool zones_fit(const Ia& ia, const Ep::Parts& parts) {
    return !parts.srq || !parts.pz || &parts.srq->pz() == parts.pz || ia.can().zones_share;
}

Return other_zone(Return code) {
    return because(code, "the zone has to be that of the shared receive queue");
}

void count(Ep::Parts parts, int by) {
    if (parts.pz) {
        parts.pz->users += by;
    }
    if (parts.srq) {
        parts.srq->users += by;
    }
}

} // namespace

Ep::Ep(Ia& ia, const EpAttributes& attributes)
    : Object(ia, kKind, ia.dispatch()), attributes_(attributes), lmrs_(ia.lmrs()) {}

Ep::~Ep() = default;

namespace {

// An attribute, its value, and from where to where it may be.
struct Range {
    const char* name;
    std::int32_t value;
    std::int32_t most;
    std::int32_t least = 0;
};

// What completion flags an attribute has, and those of which it may have one (EPA-8), whatever
// `beside` has.
struct OneOf {
    const char* name;
    std::uint32_t flags;
    std::uint32_t allowed;
    const char* names;
    std::uint32_t beside = 0;
};

// `wrong`: there is one that is none of what is offered; the first is named.
Return find_offered(std::span<const OneOf> flags, std::span<const Range> ranges, Return wrong) {
    for (const OneOf& of : flags) {
        const std::uint32_t one = of.flags & ~of.beside;
        if ((one & ~of.allowed) != 0 || (one & (one - 1)) != 0) {
            return because(wrong, "%s of 0x%x: 0 or one of %s is offered", of.name, of.flags,
                           of.names);
        }
    }
    for (const Range& range : ranges) {
        if (range.value < range.least || range.value > range.most) {
            return because(wrong, "%s of %d: %d to %d is offered", range.name, range.value,
                           range.least, range.most);
        }
    }
    return kSuccess;
}

} // namespace

// EPA-3, EPA-4, EPA-8
Return Ep::check(const Ia& ia, const EpAttributes& a, bool shared) {
    const Return wrong = bad_argument(shared ? 7 : 6);
    if (a.service_type != 0) {
        return because(fail(Type::model_not_supported),
                       "service_type of %u: DAT_SERVICE_TYPE_RC is offered", a.service_type);
    }
    if (a.qos != 0) { // QOS-1
        return because((a.qos & ~kQosKnown) != 0 ? wrong : fail(Type::model_not_supported),
                       "qos of 0x%x: DAT_QOS_BEST_EFFORT is offered", a.qos);
    }
    const Abilities& can = ia.can();
    const OneOf flags[] = {
        {"recv_completion_flags", a.recv_flags,
         completion::kSolicited | completion::kUnsignalled | completion::kThreshold,
         "DAT_COMPLETION_SOLICITED_WAIT, UNSIGNALLED and EVD_THRESHOLD"},
        {"request_completion_flags", a.request_flags,
         completion::kUnsignalled | completion::kThreshold,
         "DAT_COMPLETION_UNSIGNALLED and EVD_THRESHOLD, with or without SUPPRESS",
         completion::kSuppress},
    };
    const Range ranges[] = {
        {"max_recv_dtos", a.max_recv_dtos, can.max_dtos},
        {"max_request_dtos", a.max_request_dtos, can.max_dtos},
        {"max_recv_iov", shared ? 0 : a.max_recv_iov, can.max_segments},
        {"max_request_iov", a.max_request_iov, can.max_segments},
        {"max_rdma_read_in", a.max_reads_in, can.max_reads_in},
        {"max_rdma_read_out", a.max_reads_out, can.max_reads_out},
        {"max_rdma_read_iov", a.max_read_iov, can.max_read_segments},
        {"max_rdma_write_iov", a.max_write_iov, can.max_segments},
        {"srq_soft_hw", a.soft_watermark, INT32_MAX, kInfinite},
    };
    return find_offered(flags, ranges, wrong);
}

Return Ep::create(Ia& ia, const Parts& parts, const EpAttributes* attributes, Ep*& ep) {
    const EpAttributes defaults = defaults_of(ia);
    const EpAttributes& asked = attributes ? *attributes : defaults;
    if (const Return rc = check(ia, asked, parts.srq != nullptr)) {
        return rc;
    }
    if (!zones_fit(ia, parts)) {
        return other_zone(bad_argument(2));
    }
    ep = ia.make<Ep>(ia, asked);
    ep->parts_ = parts;
    Return rc = fail(Type::insufficient_resources, Sub::resource_memory);
    (void)base::attempt([&] { rc = ep->open(); });
    if (rc) {
        if (ep->ep_) {
            fi_close(&ep->ep_->fid);
        }
        ia.destroy(*ep);
    }
    return rc;
}

Return Ep::open() {
    const Info info = copy(ia().info());
    const std::uint64_t key = parts_.pz ? *parts_.pz->key() : 0;
    info->ep_attr->auth_key = static_cast<std::uint8_t*>(std::malloc(sizeof key));
    if (!info->ep_attr->auth_key) {
        throw std::bad_alloc();
    }
    std::memcpy(info->ep_attr->auth_key, &key, sizeof key);
    info->ep_attr->auth_key_size = sizeof key;
    info->ep_attr->max_msg_size =
        std::min<std::size_t>(info->ep_attr->max_msg_size, Limits::kMaxLength);
    if (parts_.srq) {
        info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    }
    if (const int rc = fi_endpoint(ia().domain(), info.get(), &ep_, this)) {
        ep_ = nullptr;
        return Ia::from_errno(rc);
    }
    if (fi_open_ops(&ep_->fid, FI_DAT_EP_OPS, 0, reinterpret_cast<void**>(&ops_), nullptr) != 0) {
        return fail(Type::internal_error);
    }
    if (parts_.srq) {
        if (const int rc = fi_ep_bind(ep_, &parts_.srq->context_fid()->fid, 0)) {
            return Ia::from_errno(rc);
        }
    }
    if (const Return rc = attach()) {
        return rc;
    }
    count(parts_, 1);
    return kSuccess;
}

Return Ep::attach_one(Evd* evd, std::uint32_t wanted, std::uint32_t flags, Sub what) {
    if (!evd) {
        return kSuccess;
    }
    // U-68: completions stay with the domain that they are of.
    const bool own = &evd->ia() == &ia();
    if ((!own && (wanted != stream::kConnection || !ia().shares_device_with(evd->ia()))) ||
        (evd->streams() & wanted) == 0) { // EVD-3
        return because(fail(Type::invalid_handle, what),
                       "an EVD for %s has to be made with %s, on %s",
                       wanted == stream::kDto ? "completions" : "connections",
                       wanted == stream::kDto ? "DAT_EVD_DTO_FLAG" : "DAT_EVD_CONNECTION_FLAG",
                       wanted == stream::kDto ? "the same IA" : "an IA of the same device");
    }
    const bool added = wanted == stream::kDto ? evd->add_dto_stream(flags) : evd->add_stream();
    if (!added) {
        return because(bad_argument(6), // EPA-11
                       "those whose completions one EVD takes have to have the same completion "
                       "flags");
    }
    const Return rc = own ? kSuccess : ia().borrow(*evd, what);
    if (rc != kSuccess) {
        evd->remove_stream();
    }
    return rc;
}

// Behind everything that may still use its queue.
void Ep::give_back(Evd* evd) {
    if (evd && &evd->ia() != &ia()) {
        ia().give_back(*evd);
    }
}

// All EVDs of parts_, and what the provider has to know of parts_ and attributes_; all or
// nothing.
Return Ep::attach() {
    Parts done;
    const auto undo = [&](Return rc) {
        detach(done);
        give_back(done.connect_evd);
        return rc;
    };
    if (const Return rc = attach_one(parts_.recv_evd, stream::kDto, attributes_.recv_flags,
                                     Sub::invalid_handle_evd_recv)) {
        return undo(rc);
    }
    done.recv_evd = parts_.recv_evd;
    if (const Return rc = attach_one(parts_.request_evd, stream::kDto, attributes_.request_flags,
                                     Sub::invalid_handle_evd_request)) {
        return undo(rc);
    }
    done.request_evd = parts_.request_evd;
    if (const Return rc =
            attach_one(parts_.connect_evd, stream::kConnection, 0, Sub::invalid_handle_evd_conn)) {
        return undo(rc);
    }
    done.connect_evd = parts_.connect_evd;

    fi_dat_ep_attr attr{};
    attr.size = sizeof attr;
    attr.mask = FI_DAT_EP_TX_CQ | FI_DAT_EP_RX_CQ | FI_DAT_EP_TX_SIZE | FI_DAT_EP_RX_SIZE;
    // What may find no memory comes before anything changes in the provider.
    if (!base::attempt([&] {
            requests_.resize(static_cast<std::uint32_t>(attributes_.max_request_dtos), *this);
            receives_.resize(static_cast<std::uint32_t>(attributes_.max_recv_dtos), *this);
            attr.tx_cq = parts_.request_evd ? parts_.request_evd->completion_queue() : nullptr;
            attr.rx_cq = parts_.recv_evd ? parts_.recv_evd->completion_queue() : nullptr;
            attr.eq = parts_.connect_evd ? parts_.connect_evd->event_queue(ia()) : nullptr;
        })) {
        return undo(fail(Type::insufficient_resources, Sub::resource_memory));
    }
    attr.tx_cq_flags = FI_SELECTIVE_COMPLETION;
    const auto size_of = [](std::int32_t dtos) {
        return static_cast<std::size_t>(dtos ? dtos : 1);
    };
    attr.tx_size = size_of(attributes_.max_request_dtos);
    attr.rx_size = size_of(parts_.srq ? std::min(ia().can().max_dtos, Limits::kMaxTaken)
                                      : attributes_.max_recv_dtos);
    if ((parts_.request_evd && !attr.tx_cq) || (parts_.recv_evd && !attr.rx_cq)) {
        return undo(fail(Type::insufficient_resources, Sub::resource_tevd));
    }
    if (parts_.connect_evd) {
        attr.mask |= FI_DAT_EP_EQ;
        if (!attr.eq) {
            return undo(fail(Type::insufficient_resources, Sub::resource_tevd));
        }
    }
    if (attributes_.max_reads_in > 0) { // RDR-1: 0 leaves it to the provider
        attr.mask |= FI_DAT_EP_READ_IN;
        attr.read_in = static_cast<std::size_t>(attributes_.max_reads_in);
    }
    if (attributes_.max_reads_out > 0) {
        attr.mask |= FI_DAT_EP_READ_OUT;
        attr.read_out = static_cast<std::size_t>(attributes_.max_reads_out);
    }
    // An adopted endpoint gets its zone so.
    std::uint64_t key = parts_.pz ? *parts_.pz->key() : 0;
    const int now = state();
    if (now == FI_DAT_UNCONNECTED || now == FI_DAT_TENTATIVE_CONNECTION_PENDING) {
        attr.mask |= FI_DAT_EP_AUTH_KEY;
        attr.auth_key = reinterpret_cast<std::uint8_t*>(&key);
        attr.auth_key_size = sizeof key;
    }
    if (const int rc = ops_->modify(ep_, &attr)) {
        return undo(rc == -FI_EOPBADSTATE ? state_error() : Ia::from_errno(rc));
    }
    const int rc = fi_enable(ep_);
    if (rc == -FI_ENOMEM) {
        return undo(Ia::from_errno(rc));
    }
    const bool enabled = rc == 0; // without any event queue neither it nor a post goes

    const bool quiet_requests = (attributes_.request_flags & completion::kUnsignalled) != 0;
    rma_flags_ = completion::kSuppress | completion::kSolicited | completion::kBarrier | // U-36
                 (quiet_requests ? completion::kUnsignalled : 0);
    send_flags_ = rma_flags_;
    recv_flags_ =
        (attributes_.recv_flags & completion::kUnsignalled) != 0 ? completion::kUnsignalled : 0;
    zone_ = parts_.pz ? parts_.pz->pass() : 0;
    const bool fast = enabled && !ofi::direct::watches(ep_);
    plain_sends_ = fast && attributes_.max_request_iov >= 1 ? 1 : kNonePlain;
    plain_writes_ = fast && attributes_.max_write_iov >= 1 ? 1 : kNonePlain;
    plain_receives_ = fast && attributes_.max_recv_iov >= 1 && !parts_.srq ? 1 : kNonePlain;
    return kSuccess;
}

void Ep::detach(const Parts& parts) {
    if (parts.recv_evd) {
        parts.recv_evd->remove_dto_stream();
    }
    if (parts.request_evd) {
        parts.request_evd->remove_dto_stream();
    }
    if (parts.connect_evd) {
        parts.connect_evd->remove_stream();
    }
}

Ep& Ep::adopt(Ia& ia, fid_ep* made, Cr& request) {
    Ep* ep = ia.make<Ep>(ia, defaults_of(ia));
    ep->ep_ = made;
    ep->cr_ = &request;
    ep->adopted_ = true;
    made->fid.context = ep;
    fi_open_ops(&made->fid, FI_DAT_EP_OPS, 0, reinterpret_cast<void**>(&ep->ops_), nullptr);
    if (ep->attach() != kSuccess) {
        ia.destroy(*ep);
        throw std::bad_alloc();
    }
    return *ep;
}

Return Ep::free() {
    if (fi_close(&ep_->fid) != 0) { // FREE-1
        return state_error();
    }
    ep_ = nullptr;
    // FREE-2: nothing of it is left in an EVD.
    for (Evd* evd : {parts_.recv_evd, parts_.request_evd, parts_.connect_evd, ia().async_evd()}) {
        if (evd) {
            evd->forget(*this);
        }
    }
    detach(parts_);
    give_back(parts_.connect_evd);
    count(parts_, -1);
    ia().bury(*this);
    return kSuccess;
}

void Ep::request_settled(bool gone) {
    cr_ = nullptr;
    if (!gone) {
        return;
    }
    ep_ = nullptr;
    detach(parts_);
    give_back(parts_.connect_evd);
    count(parts_, -1);
    ia().bury(*this);
}

namespace {

// EPA-5
bool may_change(int state, std::uint64_t fields) {
    switch (state) {
    case FI_DAT_UNCONNECTED:
        return true;
    case FI_DAT_TENTATIVE_CONNECTION_PENDING:
        return (fields & field::kSpecific) == 0;
    case FI_DAT_RESERVED:
    case FI_DAT_PASSIVE_CONNECTION_PENDING:
        return (fields & (field::kSpecific | field::kPz)) == 0;
    default:
        return false;
    }
}

EpAttributes changed(const EpAttributes& now, std::uint64_t fields, const EpAttributes& to) {
    EpAttributes result = now;
    const auto change = [&](std::uint64_t bit, auto member) {
        if ((fields & bit) != 0) {
            result.*member = to.*member;
        }
    };
    change(field::kServiceType, &EpAttributes::service_type);
    change(field::kMessageSize, &EpAttributes::max_message_size);
    change(field::kRdmaSize, &EpAttributes::max_rdma_size);
    change(field::kQos, &EpAttributes::qos);
    change(field::kRecvFlags, &EpAttributes::recv_flags);
    change(field::kRequestFlags, &EpAttributes::request_flags);
    change(field::kRecvDtos, &EpAttributes::max_recv_dtos);
    change(field::kRequestDtos, &EpAttributes::max_request_dtos);
    change(field::kRecvIov, &EpAttributes::max_recv_iov);
    change(field::kRequestIov, &EpAttributes::max_request_iov);
    change(field::kReadsIn, &EpAttributes::max_reads_in);
    change(field::kReadsOut, &EpAttributes::max_reads_out);
    change(field::kSoftWatermark, &EpAttributes::soft_watermark);
    change(field::kReadIov, &EpAttributes::max_read_iov);
    change(field::kWriteIov, &EpAttributes::max_write_iov);
    return result;
}

} // namespace

Return Ep::modify(std::uint64_t fields, const Parts& parts, const EpAttributes& attributes) {
    if ((fields & field::kNever) != 0 || (fields & ~field::kAll) != 0) {
        return bad_argument(2);
    }
    const EpAttributes after = changed(attributes_, fields, attributes);
    if (const Return rc = check(ia(), after, parts_.srq != nullptr)) {
        return type_of(rc) == Type::invalid_parameter ? bad_argument(3) : rc;
    }
    if (!may_change(state(), fields)) {
        return state_error();
    }
    if (after.recv_flags != attributes_.recv_flags && receives_.posted() > 0) { // EPA-6
        return state_error();
    }
    Parts parts_after = parts_;
    const auto change = [&](std::uint64_t bit, auto member) {
        if ((fields & bit) != 0) {
            parts_after.*member = parts.*member;
        }
    };
    change(field::kPz, &Parts::pz);
    change(field::kRecvEvd, &Parts::recv_evd);
    change(field::kRequestEvd, &Parts::request_evd);
    change(field::kConnectEvd, &Parts::connect_evd);
    if (!zones_fit(ia(), parts_after)) {
        return other_zone(bad_argument(3));
    }
    const Parts parts_before = parts_;
    const EpAttributes before = attributes_;
    parts_ = parts_after;
    attributes_ = after;
    detach(parts_before);
    if (const Return rc = attach()) {
        parts_ = parts_before;
        attributes_ = before;
        attach();
        give_back(parts_before.connect_evd);
        return rc;
    }
    give_back(parts_before.connect_evd);
    count(parts_, 1);
    count(parts_before, -1);
    return kSuccess;
}

fi_dat_ep_status Ep::status() const {
    fi_dat_ep_status status{};
    ops_->status(ep_, &status);
    return status;
}

// EP-29
Return Ep::state_error() const {
    switch (state()) {
    case FI_DAT_UNCONNECTED:
        return fail(Type::invalid_state, Sub::invalid_state_ep_unconnected);
    case FI_DAT_RESERVED:
        return fail(Type::invalid_state, Sub::invalid_state_ep_reserved);
    case FI_DAT_PASSIVE_CONNECTION_PENDING:
        return fail(Type::invalid_state, Sub::invalid_state_ep_passconnpending);
    case FI_DAT_ACTIVE_CONNECTION_PENDING:
        return fail(Type::invalid_state, Sub::invalid_state_ep_actconnpending);
    case FI_DAT_TENTATIVE_CONNECTION_PENDING:
        return fail(Type::invalid_state, Sub::invalid_state_ep_tentconnpending);
    case FI_DAT_CONNECTED:
        return fail(Type::invalid_state, Sub::invalid_state_ep_connected);
    case FI_DAT_DISCONNECT_PENDING:
        return fail(Type::invalid_state, Sub::invalid_state_ep_discpending);
    case FI_DAT_DISCONNECTED:
        return fail(Type::invalid_state, Sub::invalid_state_ep_disconnected);
    default:
        return fail(Type::invalid_state, Sub::invalid_state_ep_complpending);
    }
}

namespace {

const sockaddr* read_address(int rc, sockaddr_storage& address, std::uint64_t& port) {
    port = 0;
    if (rc != 0 || (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
        return nullptr;
    }
    std::uint16_t number = 0; // at the same place in both families
    std::memcpy(&number, reinterpret_cast<const char*>(&address) + 2, sizeof number);
    port = be16toh(number);
    return reinterpret_cast<const sockaddr*>(&address);
}

} // namespace

const sockaddr* Ep::local_address(std::uint64_t& port) {
    std::size_t size = sizeof local_;
    return read_address(fi_getname(&ep_->fid, &local_, &size), local_, port);
}

const sockaddr* Ep::remote_address(std::uint64_t& port) {
    switch (state()) { // EPA-9
    case FI_DAT_UNCONNECTED:
    case FI_DAT_RESERVED:
    case FI_DAT_DISCONNECTED:
        port = 0;
        return nullptr;
    default:
        break;
    }
    std::size_t size = sizeof remote_;
    return read_address(fi_getpeer(ep_, &remote_, &size), remote_, port);
}

void Ep::set_private_data(std::span<const std::byte> data) {
    if (!private_data_) {
        private_data_ = std::make_unique<std::array<std::byte, Limits::kMaxPrivateData + 4>>();
    }
    private_data_->fill(std::byte{0});
    std::copy(data.begin(), data.end(), private_data_->begin());
}

void* Ep::private_data() {
    if (!private_data_) {
        set_private_data({});
    }
    return private_data_->data();
}

} // namespace dat::shim
