// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The attributes of info.h: the offer, and its comparison with hints.
#include "engine/endpoint.h"
#include "ofi/info.h"
#include "ofi/provider.h"
#include "ofi/versions.h"
#include "rdm/messages.h"

#include <rdma/fi_ext_dat.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dat::ofi {
namespace {

constexpr std::uint64_t kTxCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
constexpr std::uint64_t kRxCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV |
                                  FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_RMA_EVENT |
                                  FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR;
constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t kRdmCaps = kTxCaps | kRxCaps | kDomainCaps;
// What an endpoint with one peer has no use for, or no order.
constexpr std::uint64_t kCaps =
    kRdmCaps & ~(FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR);
// What a program has to ask for: an error where there was none.
constexpr std::uint64_t kOnlyIfAsked = FI_SOURCE_ERR;
constexpr std::uint64_t kMessageDirections = FI_SEND | FI_RECV;
constexpr std::uint64_t kRmaDirections = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

// One stream, in which a target handles what comes in order. Not offered is what
// would need a read's data to be fetched before anything later is placed (WAR, SAR).
// Atomics are carried out as they come, those that fetch as well.
constexpr std::uint64_t kAtomicOrder =
    FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
constexpr std::uint64_t kMessageOrder =
    FI_ORDER_RAR | FI_ORDER_RMA_RAR | FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_RAS |
    FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_WAS | FI_ORDER_SAW | FI_ORDER_SAS | kAtomicOrder;
// Of a write after a read: that of two atomics.
constexpr std::size_t kWarSize = sizeof(std::uint64_t);
constexpr std::uint64_t kCompletionOrder = kOrderStrict;
// A message that is announced is read when its receive is there: what was sent behind it may be
// placed before.
constexpr std::uint64_t kRdmMessageOrder = kMessageOrder & ~(FI_ORDER_RAS | FI_ORDER_WAS);

constexpr std::size_t kEndpoints = 1U << 15;
constexpr std::size_t kQueues = 1U << 16;
constexpr std::size_t kDataSize = sizeof(std::uint64_t); // of remote CQ data
constexpr std::size_t kDeviceDataSize = sizeof(std::uint32_t);
constexpr std::size_t kRegions = 1U << 24;
// A tag of fields of one bit each (FI_TAG_GENERIC in libfabric's sources).
constexpr std::uint64_t kEveryBit = 0xaaaaaaaaaaaaaaaa;
constexpr std::size_t kRdmQueueSize = 1024;
constexpr std::size_t kMaxRdmQueueSize = std::size_t{1} << 20;
// What its messages begin with is this provider's own (rdm/wire.h).
// A provider's own (FI_PROV_SPECIFIC, which libfabric 2 has by other names), and "dat".
constexpr std::uint32_t kRdmProtocol = 1u << 31 | 0x646174;

bool before_1_5(std::uint32_t version) { return FI_VERSION_LT(version, FI_VERSION(1, 5)); }

// Collects the first disagreement.
class Comparison {
  public:
    explicit Comparison(Refusal& why) : why_(why) {}

    bool at_most(const char* hint, std::uint64_t asked, std::uint64_t offered) {
        return asked <= offered || refuse("%s = %llu, at most %llu is offered", hint,
                                          static_cast<unsigned long long>(asked),
                                          static_cast<unsigned long long>(offered));
    }
    bool within(const char* hint, std::uint64_t asked, std::uint64_t offered, fi_type type) {
        if ((asked & ~offered) == 0) {
            return true;
        }
        std::uint64_t missing = asked & ~offered;
        char names[96];
        std::snprintf(names, sizeof names, "%s", fi_tostr(&missing, type));
        return refuse("%s = 0x%llx: not offered: %s", hint, static_cast<unsigned long long>(asked),
                      names);
    }
    bool refuse(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        va_list args;
        va_start(args, format);
        std::vsnprintf(why_.what, sizeof why_.what, format, args);
        va_end(args);
        return false;
    }
    bool refuse_routine(const char* what) {
        why_.routine = true;
        return refuse("%s", what);
    }

  private:
    Refusal& why_;
};

bool check_endpoint(const fi_ep_attr& ep, std::uint64_t caps, const Offering& o, Comparison& c) {
    if (number_of(ep.type) != FI_EP_UNSPEC && number_of(ep.type) != number_of(o.type)) {
        return c.refuse_routine("ep_attr->type: FI_EP_MSG and FI_EP_RDM are offered");
    }
    if (ep.tx_ctx_cnt == FI_SHARED_CONTEXT) {
        return c.refuse_routine("ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT: shared transmit contexts "
                                "are not offered");
    }
    if (ep.protocol != FI_PROTO_UNSPEC && ep.protocol != o.protocol) {
        return c.refuse("ep_attr->protocol = %u, %u is offered", ep.protocol, o.protocol);
    }
    if (ep.rx_ctx_cnt == FI_SHARED_CONTEXT && !o.shared_receives) {
        return c.refuse("ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT: not offered on a device");
    }
    const bool rma = (caps & FI_RMA) != 0;
    return c.at_most("ep_attr->protocol_version", ep.protocol_version, 1) &&
           c.at_most("ep_attr->max_msg_size", ep.max_msg_size, o.message_size) &&
           c.at_most("ep_attr->tx_ctx_cnt", ep.tx_ctx_cnt, 1) &&
           (ep.rx_ctx_cnt == FI_SHARED_CONTEXT ||
            c.at_most("ep_attr->rx_ctx_cnt", ep.rx_ctx_cnt, 1)) &&
           c.at_most("ep_attr->auth_key_size", ep.auth_key_size, FI_DAT_MAX_AUTH_KEY) &&
           (!rma ||
            (c.at_most("ep_attr->max_order_raw_size", ep.max_order_raw_size, o.message_size) &&
             c.at_most("ep_attr->max_order_war_size", ep.max_order_war_size, kWarSize) &&
             c.at_most("ep_attr->max_order_waw_size", ep.max_order_waw_size, o.message_size)));
}

// Each remote segment takes one place of the queue.
std::size_t remote_segments(std::size_t queue_size, const Offering& o) {
    return queue_size > 0 ? std::min(queue_size, o.remote_segments) : o.remote_segments;
}

bool check_tx(const fi_tx_attr& tx, const Offering& o, Comparison& c) {
    return c.within("tx_attr->caps", tx.caps, o.caps, FI_TYPE_CAPS) &&
           c.within("tx_attr->op_flags", tx.op_flags, o.tx_op_flags, FI_TYPE_OP_FLAGS) &&
           c.within("tx_attr->msg_order", tx.msg_order, o.msg_order, FI_TYPE_MSG_ORDER) &&
           c.within("tx_attr->comp_order", tx.comp_order, o.comp_order, FI_TYPE_MSG_ORDER) &&
           c.at_most("tx_attr->inject_size", tx.inject_size, o.inject_size) &&
           c.at_most("tx_attr->size", tx.size, o.queue_size) &&
           c.at_most("tx_attr->iov_limit", tx.iov_limit, o.iov_limit) &&
           c.at_most("tx_attr->rma_iov_limit", tx.rma_iov_limit, remote_segments(tx.size, o));
}

bool check_rx(const fi_rx_attr& rx, const Offering& o, Comparison& c) {
    return c.within("rx_attr->caps", rx.caps, o.caps, FI_TYPE_CAPS) &&
           c.within("rx_attr->op_flags", rx.op_flags, o.rx_op_flags, FI_TYPE_OP_FLAGS) &&
           c.within("rx_attr->msg_order", rx.msg_order, o.msg_order, FI_TYPE_MSG_ORDER) &&
           c.within("rx_attr->comp_order", rx.comp_order, o.comp_order | kOrderData,
                    FI_TYPE_MSG_ORDER) &&
           c.at_most("rx_attr->total_buffered_recv", rx.total_buffered_recv, 0) &&
           c.at_most("rx_attr->size", rx.size, o.queue_size) &&
           c.at_most("rx_attr->iov_limit", rx.iov_limit, o.iov_limit);
}

// No mode is required but of a device, so any set of them agrees, as long as it is one.
bool check_mr_mode(int mode, std::uint32_t version, Comparison& c) {
    const bool lone = mode == kMrBasic || mode == kMrScalable;
    if (before_1_5(version) ? mode != kMrUnspecified && !lone
                            : (mode & (kMrBasic | kMrScalable)) != 0 && !lone) {
        return c.refuse("domain_attr->mr_mode = 0x%x: FI_MR_BASIC and FI_MR_SCALABLE do not mix "
                        "with other modes%s",
                        static_cast<unsigned>(mode),
                        before_1_5(version) ? ", of which API versions before 1.5 have none" : "");
    }
    return true;
}

// What RMA requires, if the capabilities include it.
int required_mode(std::uint64_t caps, const Offering& o) {
    return caps == 0 || (caps & (FI_RMA | FI_ATOMIC)) != 0 ? o.mr_mode : 0;
}

bool check_domain(const fi_domain_attr& domain, std::uint64_t caps, std::uint32_t version,
                  const Offering& o, Comparison& c) {
    const int required = required_mode(caps, o);
    if (required != 0 && domain.mr_mode != kMrBasic && (required & ~domain.mr_mode) != 0) {
        return c.refuse("domain_attr->mr_mode = 0x%x: a device needs FI_MR_VIRT_ADDR, "
                        "FI_MR_ALLOCATED and FI_MR_PROV_KEY for FI_RMA",
                        static_cast<unsigned>(domain.mr_mode));
    }
    if (!c.at_most("domain_attr->threading", number_of(domain.threading), FI_THREAD_ENDPOINT) ||
        !c.at_most("domain_attr->control_progress", number_of(domain.control_progress),
                   kControlUnified) ||
        !c.at_most("domain_attr->data_progress", number_of(domain.data_progress),
                   kControlUnified) ||
        !c.at_most("domain_attr->cq_data_size", domain.cq_data_size, o.data_size) ||
        !check_mr_mode(domain.mr_mode, version, c)) {
        return false;
    }
    // Members of API 1.5: an older program's structure ends before them.
    return before_1_5(version) ||
           (c.at_most("domain_attr->cntr_cnt", domain.cntr_cnt, kQueues) &&
            c.at_most("domain_attr->max_ep_srx_ctx", domain.max_ep_srx_ctx,
                      o.shared_receives ? kEndpoints : 0) &&
            c.at_most("domain_attr->mr_iov_limit", domain.mr_iov_limit, 1) &&
            c.within("domain_attr->caps", domain.caps, kDomainCaps, FI_TYPE_CAPS) &&
            c.at_most("domain_attr->auth_key_size", domain.auth_key_size, FI_DAT_MAX_AUTH_KEY) &&
            c.at_most("domain_attr->max_err_data", domain.max_err_data, kMaxConnectionData) &&
            c.at_most("domain_attr->mr_cnt", domain.mr_cnt, kRegions) &&
            // An endpoint without a connection may have several.
            c.at_most("domain_attr->max_ep_auth_key",
                      keys_of_endpoint(domain, std::min(version, fi_version())), 0));
}

bool check_format(std::uint32_t format, Comparison& c) {
    return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
           format == FI_SOCKADDR_IN6 ||
           c.refuse("addr_format = %u: FI_SOCKADDR, FI_SOCKADDR_IN and FI_SOCKADDR_IN6 are offered",
                    format);
}

// What an info carries where `hints` ask for some capabilities of `offered`.
std::uint64_t caps_for(std::uint64_t hints, std::uint64_t offered) {
    if (hints == 0) {
        return offered & ~kOnlyIfAsked;
    }
    std::uint64_t caps = (hints & offered) | (offered & kDomainCaps);
    if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (hints & kMessageDirections) == 0) {
        caps |= offered & kMessageDirections;
    }
    if ((caps & FI_RMA) != 0 && (hints & kRmaDirections) == 0) {
        caps |= offered & kRmaDirections;
    }
    return caps;
}

// None is required, and a mode that is not required is not asked of a program that is
// ready for it: some then go by their own keys and by offsets all the same. Whoever
// wants the provider's keys or virtual addresses says so to fi_domain(3), or by
// FI_MR_BASIC. What is only wished for is asked of a program that is ready for it.
int mr_mode_for(const fi_domain_attr* hints, std::uint32_t version, int required, int wished) {
    const int mode = hints ? hints->mr_mode : 0;
    if (mode == kMrBasic || mode == kMrScalable) {
        return mode;
    }
    if (before_1_5(version)) {
        return required != 0 ? kMrBasic : kMrScalable;
    }
    return required | (mode & wished);
}

template <class Value> Value either(Value hint, Value otherwise) {
    return hint != Value{} ? hint : otherwise;
}

void fill_tx(fi_tx_attr& tx, const fi_tx_attr* hints, std::uint64_t caps, const Offering& o) {
    const fi_tx_attr none{};
    const fi_tx_attr& h = hints ? *hints : none;
    tx.caps = caps_for(h.caps, caps & kTxCaps);
    tx.op_flags = h.op_flags;
    tx.msg_order = o.msg_order;
    tx.comp_order = o.comp_order;
    tx.inject_size = either(h.inject_size, o.inject_size);
    tx.size = either(h.size, std::min(o.usual_size, o.queue_size));
    tx.iov_limit = either(h.iov_limit, o.iov_limit);
    tx.rma_iov_limit = either(h.rma_iov_limit, remote_segments(tx.size, o));
}

void fill_rx(fi_rx_attr& rx, const fi_rx_attr* hints, std::uint64_t caps, const Offering& o) {
    const fi_rx_attr none{};
    const fi_rx_attr& h = hints ? *hints : none;
    rx.caps = caps_for(h.caps, caps & kRxCaps);
    rx.op_flags = h.op_flags;
    rx.msg_order = o.msg_order;
    rx.comp_order = o.comp_order;
    rx.size = either(h.size, std::min(o.usual_size, o.queue_size));
    rx.iov_limit = either(h.iov_limit, o.iov_limit);
}

// For fi_freeinfo(), which calls free().
std::uint8_t* copy_key(const std::uint8_t* key, std::size_t size) {
    auto* copy = static_cast<std::uint8_t*>(std::malloc(size));
    if (!copy) {
        throw std::bad_alloc();
    }
    std::memcpy(copy, key, size);
    return copy;
}

void fill_endpoint(fi_ep_attr& ep, const fi_ep_attr* hints, const Offering& o) {
    ep.type = o.type;
    ep.protocol = o.protocol;
    ep.protocol_version = 1;
    ep.max_msg_size = o.message_size;
    // Of a program without RDMA they were not compared, and may be anything.
    const auto ordered = [&](std::size_t hint) {
        return std::min(either(hint, o.message_size), o.message_size);
    };
    ep.max_order_raw_size = ordered(hints ? hints->max_order_raw_size : 0);
    ep.max_order_war_size = kWarSize;
    ep.max_order_waw_size = ordered(hints ? hints->max_order_waw_size : 0);
    if (o.type == FI_EP_RDM) { // every bit counts
        ep.mem_tag_format = hints && hints->mem_tag_format != 0 ? hints->mem_tag_format : kEveryBit;
    }
    ep.tx_ctx_cnt = 1;
    ep.rx_ctx_cnt =
        hints && hints->rx_ctx_cnt == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : std::size_t{1};
    if (hints && hints->auth_key && hints->auth_key_size > 0) {
        ep.auth_key = copy_key(hints->auth_key, hints->auth_key_size);
        ep.auth_key_size = hints->auth_key_size;
    }
}

void fill_domain(fi_domain_attr& domain, const fi_domain_attr* hints, std::uint64_t caps,
                 std::uint32_t version, const Offering& o) {
    const fi_progress data = hints ? hints->data_progress : FI_PROGRESS_UNSPEC;
    const fi_progress control = hints ? hints->control_progress : FI_PROGRESS_UNSPEC;
    domain.threading = hints ? either(hints->threading, FI_THREAD_SAFE) : FI_THREAD_SAFE;
    // Who drives control and data at once drives data.
    const bool unified = number_of(control) == kControlUnified;
    domain.data_progress = either(data, unified ? control : FI_PROGRESS_AUTO);
    if (hints && !before_1_5(version) && hints->auth_key && hints->auth_key_size > 0) {
        domain.auth_key = copy_key(hints->auth_key, hints->auth_key_size);
        domain.auth_key_size = hints->auth_key_size;
    }
    // Who drives data by hand, and does not say otherwise, drives everything.
    domain.control_progress = either(control, domain.data_progress);
    domain.resource_mgmt = FI_RM_ENABLED;
    if (hints) { // may be anything, of a program without address vectors
        std::memcpy(&domain.av_type, &hints->av_type, sizeof domain.av_type);
    }
    domain.mr_mode = mr_mode_for(hints, version, required_mode(caps, o), o.wished_mode);
    domain.mr_key_size = o.key_size;
    domain.cq_data_size = o.data_size;
    domain.cq_cnt = kQueues;
    domain.cntr_cnt = kQueues;
    domain.max_ep_srx_ctx = o.shared_receives ? kEndpoints : 0;
    domain.ep_cnt = kEndpoints;
    domain.tx_ctx_cnt = kEndpoints;
    domain.rx_ctx_cnt = kEndpoints;
    domain.max_ep_tx_ctx = 1;
    domain.max_ep_rx_ctx = 1;
    domain.mr_iov_limit = 1;
    domain.caps = kDomainCaps;
    domain.max_err_data = kMaxConnectionData;
    domain.mr_cnt = kRegions;
}

constexpr Offering kSoft = {
    .type = FI_EP_MSG,
    .caps = kCaps,
    .tx_op_flags = kTxOpFlags,
    .rx_op_flags = kRxOpFlags,
    .msg_order = kMessageOrder,
    .comp_order = kCompletionOrder,
    .protocol = FI_PROTO_IWARP,
    .mr_mode = 0,
    .wished_mode = 0,
    .shared_receives = true,
    .invalidates = true,
    .data_takes_receive = false,
    .data_size = kDataSize,
    .key_size = sizeof(std::uint32_t),
    .inject_size = engine::kInjectSize,
    .queue_size = kMaxQueueSize,
    .usual_size = kDefaultQueueSize,
    .iov_limit = engine::kMaxIov,
    .remote_segments = engine::kMaxIov,
    .message_size = kMaxMessageSize,
    .connection_data = kMaxConnectionData,
    .limits = {.reads_in = FI_DAT_MAX_READS,
               .reads_out = FI_DAT_MAX_READS,
               .zones_share = 1,
               .read_segments = engine::kMaxIov,
               .operations = kMaxQueueSize},
};

} // namespace

const Offering& soft_offering() { return kSoft; }

static constexpr Offering make_rdm() {
    Offering o = kSoft;
    o.type = FI_EP_RDM;
    o.caps = kRdmCaps;
    o.msg_order = kRdmMessageOrder;
    o.comp_order = 0; // none
    o.protocol = kRdmProtocol;
    o.shared_receives = false;
    o.invalidates = false;
    o.key_size = sizeof(std::uint64_t);
    o.inject_size = rdm::kInjectSize;
    o.message_size = kMaxNarrowSize;
    o.queue_size = o.limits.operations = kMaxRdmQueueSize;
    o.usual_size = kRdmQueueSize;
    return o;
}

const Offering& rdm_offering() {
    static constexpr Offering offering = make_rdm();
    return offering;
}

Offering offering_of(const verbs::Device& device) {
    Offering o = kSoft;
    std::uint32_t segments = device.segments;
    o.caps &= ~(FI_MULTI_RECV | FI_RMA_EVENT | (device.atomics ? 0 : FI_ATOMIC));
    o.tx_op_flags &= ~FI_DELIVERY_COMPLETE;
    o.rx_op_flags &= ~FI_MULTI_RECV;
    o.protocol = device.iwarp ? FI_PROTO_IWARP : FI_PROTO_RDMA_CM_IB_RC;
    o.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    o.wished_mode = FI_MR_LOCAL; // else memory is registered for each operation
    o.shared_receives = device.shared_receives > 0;
    if (o.shared_receives) {
        segments = std::min(segments, device.shared_segments);
    }
    o.invalidates = device.invalidates;
    o.data_takes_receive = true;
    o.data_size = device.immediate ? kDeviceDataSize : 0;
    o.queue_size = std::min<std::size_t>(device.queue_size(), kMaxQueueSize);
    o.iov_limit = std::min<std::size_t>(segments, engine::kMaxIov);
    o.remote_segments = 1;
    o.message_size = std::min<std::size_t>(device.message, kMaxNarrowSize);
    o.connection_data = device.request_data();
    o.limits = {.reads_in = std::min(device.reads_in, o.limits.reads_in),
                .reads_out = std::min(device.reads_out, o.limits.reads_out),
                .zones_share = 0, // a queue pair is of its shared queue's protection domain
                .read_segments =
                    std::min(device.read_segments, static_cast<std::uint32_t>(o.iov_limit)),
                .operations = static_cast<std::uint32_t>(o.queue_size)};
    return o;
}

Offering rdm_offering_of(const verbs::Device& device, std::uint64_t caps) {
    const Offering on_device = offering_of(device);
    Offering o = make_rdm();
    o.caps &= ~(FI_RMA_EVENT | (device.atomics ? 0 : FI_ATOMIC));
    o.mr_mode = on_device.mr_mode;
    o.wished_mode = on_device.wished_mode;
    o.iov_limit = on_device.iov_limit;
    o.remote_segments = on_device.remote_segments;
    o.limits = on_device.limits;
    o.limits.operations = kMaxRdmQueueSize;
    // Messages are read in pieces; what the program reads and writes itself is not.
    if (caps == 0 || (caps & FI_RMA) != 0) {
        o.message_size = on_device.message_size;
        o.tx_op_flags &= ~FI_DELIVERY_COMPLETE;
    }
    return o;
}

// U-62: of a program that does not say so no write takes a receive.
static bool expects_data(const fi_info& hints, const Offering& o) {
    return !o.data_takes_receive || (hints.mode & FI_RX_CQ_DATA) != 0;
}

bool agrees(const fi_info& hints, std::uint32_t version, const Offering& o, Refusal& why) {
    const bool data = hints.domain_attr && hints.domain_attr->cq_data_size > 0;
    const bool rma = hints.caps == 0 || (hints.caps & FI_RMA) != 0;
    if (data && rma && !expects_data(hints, o)) {
        std::snprintf(why.what, sizeof why.what,
                      "mode = 0x%llx: a device needs FI_RX_CQ_DATA for FI_RMA with "
                      "domain_attr->cq_data_size",
                      static_cast<unsigned long long>(hints.mode));
        return false;
    }
    Comparison c(why);
    // The type first: it is what most programs look for elsewhere.
    if (hints.ep_attr && !check_endpoint(*hints.ep_attr, hints.caps, o, c)) {
        return false;
    }
    if (hints.fabric_attr && !c.at_most("fabric_attr->prov_version",
                                        hints.fabric_attr->prov_version, kProviderVersion)) {
        return false;
    }
    return c.within("caps", hints.caps, o.caps, FI_TYPE_CAPS) &&
           check_format(hints.addr_format, c) &&
           (!hints.domain_attr || check_domain(*hints.domain_attr, hints.caps, version, o, c)) &&
           (!hints.tx_attr || check_tx(*hints.tx_attr, o, c)) &&
           (!hints.rx_attr || check_rx(*hints.rx_attr, o, c));
}

Info make_offer(const fi_info* hints, std::uint32_t version, const Offering& o) {
    Info info(fi_allocinfo());
    if (!info) {
        throw std::bad_alloc();
    }
    info->caps = caps_for(hints ? hints->caps : 0, o.caps);
    info->handle = hints ? hints->handle : nullptr;
    fill_tx(*info->tx_attr, hints ? hints->tx_attr : nullptr, info->caps, o);
    fill_rx(*info->rx_attr, hints ? hints->rx_attr : nullptr, info->caps, o);
    fill_endpoint(*info->ep_attr, hints ? hints->ep_attr : nullptr, o);
    fill_domain(*info->domain_attr, hints ? hints->domain_attr : nullptr, info->caps, version, o);
    if (hints && !expects_data(*hints, o)) {
        if ((info->caps & FI_RMA) != 0) {
            info->domain_attr->cq_data_size = 0;
        }
    } else if (o.data_takes_receive) {
        info->mode = info->rx_attr->mode = FI_RX_CQ_DATA;
    }
    info->fabric_attr->prov_version = kProviderVersion;
    info->fabric_attr->api_version = version;
    return info;
}

} // namespace dat::ofi
