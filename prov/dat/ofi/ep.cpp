// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The life of an endpoint: opening, binding, enabling, options, closing. See ep.h.
#include "ofi/ep.h"

#include "base/log.h"
#include "links/iwarp/link.h"
#include "links/shm/link.h"
#include "links/verbs/link.h"
#include "links/verbs/queues.h"
#include "ofi/alias.h"
#include "ofi/cm.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/no_op.h"
#include "ofi/provider.h"
#include "ofi/rdm_ep.h"
#include "ofi/versions.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace dat::ofi {
namespace {

constexpr std::uint64_t kNeedsTxQueue = FI_SEND | FI_READ | FI_WRITE;

Endpoint& endpoint_of(fid_t f) { return object_of<Endpoint, fid_ep>(f); }

int close(fid_t f) {
    if (const int rc = endpoint_of(f).may_close()) {
        return rc;
    }
    delete &endpoint_of(f);
    return 0;
}

int bind(fid_t f, fid_t to, std::uint64_t flags) {
    switch (to->fclass) {
    case FI_CLASS_EQ:
        return endpoint_of(f).bind_queue(object_of<EventQueue, fid_eq>(to));
    case FI_CLASS_CQ:
        return endpoint_of(f).bind_queue(object_of<CompletionQueue, fid_cq>(to), flags);
    case FI_CLASS_CNTR:
        return endpoint_of(f).bind_counter(object_of<Counter, fid_cntr>(to), flags);
    case FI_CLASS_SRX_CTX:
        return endpoint_of(f).bind_shared(object_of<SharedContext, fid_ep>(to));
    default:
        DAT_WARN(ep_ctrl,
                 "fi_ep_bind(): objects of class %zu cannot be bound; event queues, completion "
                 "queues, counters and shared receive contexts can",
                 to->fclass);
        return -FI_ENOSYS;
    }
}

int control(fid_t f, int command, void* arg) {
    switch (command) {
    case FI_ENABLE:
        return no_throw([&] { return endpoint_of(f).enable(); });
    case FI_GETOPSFLAG:
        return get_default_flags(endpoint_of(f), *static_cast<std::uint64_t*>(arg));
    case FI_SETOPSFLAG:
        return set_default_flags(endpoint_of(f), endpoint_of(f).domain().offering(),
                                 *static_cast<const std::uint64_t*>(arg));
    case FI_ALIAS: {
        const auto& asked = *static_cast<const struct fi_alias*>(arg);
        return open_alias(endpoint_of(f), asked.flags, asked.fid);
    }
    default:
        return -FI_ENOSYS;
    }
}

int open_ops(fid_t, const char* name, std::uint64_t flags, void** table, void*) {
    return give_table(dat_ep_ops, FI_DAT_EP_OPS, name, flags, table);
}

int get_ep_option(fid_t f, int level, int name, void* value, std::size_t* size) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
        return get_option(level, name, endpoint_of(f).domain().offering().connection_data, value,
                          size);
    }
    return get_min_multi(endpoint_of(f), value, size);
}

int set_ep_option(fid_t f, int level, int name, const void* value, std::size_t size) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
        return set_option(level, name, value, size);
    }
    return set_min_multi(endpoint_of(f), value, size);
}

ssize_t cancel(fid_t f, void* context) {
    Endpoint& ep = endpoint_of(f);
    const engine::BiasedLockOwner in(ep.biased_lock());
    return ep.engine().cancel_receive(context) ? 0 : -FI_ENOENT;
}

ssize_t size_left(fid_ep* f, bool tx) {
    Endpoint& ep = ep_of(f);
    const engine::BiasedLockOwner in(ep.biased_lock());
    const core::Endpoint& core = ep.engine().core();
    const core::DtoStream& stream = tx ? core.requests() : core.receives();
    return static_cast<ssize_t>(stream.limit()) - static_cast<ssize_t>(stream.outstanding());
}

ssize_t rx_size_left(fid_ep* f) { return size_left(f, false); }
ssize_t tx_size_left(fid_ep* f) { return size_left(f, true); }

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = open_ops,
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_ep g_ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = get_ep_option,
    .setopt = set_ep_option,
    .tx_ctx = DAT_NOT_OFFERED(fi_ops_ep, tx_ctx),
    .rx_ctx = DAT_NOT_OFFERED(fi_ops_ep, rx_ctx),
    .rx_size_left = rx_size_left,
    .tx_size_left = tx_size_left,
};

std::uint32_t queue_limit(std::size_t size) {
    return static_cast<std::uint32_t>(size ? size : kDefaultQueueSize);
}

bool has_default_sizes(const fi_info& info, const Offering& offering) {
    const std::size_t size = std::min(kDefaultQueueSize, offering.queue_size);
    return queue_limit(info.tx_attr->size) == size && queue_limit(info.rx_attr->size) == size;
}

engine::Endpoint::Limits limits_of(const fi_info& info) {
    return {queue_limit(info.tx_attr->size), queue_limit(info.rx_attr->size)};
}

net::SocketAddress address_in(const void* address, std::size_t size) {
    return address ? net::SocketAddress(static_cast<const sockaddr*>(address), size)
                   : net::SocketAddress();
}

// A program may ask for less, and is then refused more.
std::size_t message_size_of(const fi_info& info, const Offering& offering) {
    const std::size_t asked = info.ep_attr->max_msg_size;
    return asked > 0 ? std::min(asked, offering.message_size) : offering.message_size;
}

} // namespace

bool fits_endpoint(const char* call, const fi_info* info, const Offering& offering) {
    if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr) {
        DAT_WARN(ep_ctrl, "%s: an incomplete info; pass one from fi_getinfo()", call);
        return false;
    }
    Refusal why;
    if (info->ep_attr->type != FI_EP_MSG || !agrees(*info, fi_version(), offering, why)) {
        DAT_WARN(ep_ctrl, "%s: %s", call,
                 *why.what ? why.what : "ep_attr->type: only FI_EP_MSG is offered");
        return false;
    }
    return true;
}

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context, core::State initial,
                   EndpointWatcher* watcher)
    : Bindings(domain, info.tx_attr->op_flags, info.rx_attr->op_flags), watcher_(watcher),
      zone_(zone_of(domain, info)), caps_(info.caps), inject_size_(info.tx_attr->inject_size),
      sizes_are_default_(has_default_sizes(info, domain.offering())),
      message_size_(message_size_of(info, domain.offering())),
      narrow_size_(std::min(message_size_, kMaxNarrowSize)),
      name_(address_in(info.src_addr, info.src_addrlen)),
      peer_(address_in(info.dest_addr, info.dest_addrlen)),
      engine_(domain.engine(), *this, limits_of(info), zone_.get(), initial,
              // A peer of FI_EP_RDM posts by itself as well, and that names nothing.
              domain.device() && domain.names_memory() && !watcher) {
    fid.fclass = FI_CLASS_EP;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_ep_ops;
    cm = &ep_cm_ops;
    msg = &msg_ops_not_enabled;
    rma = &rma_ops_not_enabled;
    tagged = &no_tagged_ops;
    atomic = &atomic_ops_not_enabled;
    collective = &no_collective_ops;
    engine_.completions().set_arrival_flags({.with_data = FI_REMOTE_CQ_DATA,
                                             .solicited = FI_DAT_SOLICITED,
                                             .invalidated = FI_DAT_INVALIDATE,
                                             .by_write = FI_RMA | FI_REMOTE_WRITE,
                                             .released = FI_MULTI_RECV});
    engine_.completions().set_writes_take_receives(
        ((info.mode | info.rx_attr->mode) & FI_RX_CQ_DATA) != 0);
    min_multi_ = kDefaultMinMulti; // without the lock: an event reader may be making it
    engine_.completions().set_min_multi(kDefaultMinMulti);
    domain_.add(*this);
    domain_.users.add();
}

ZoneHandle Endpoint::zone_of(Domain& domain, const fi_info& info) {
    return domain.zone("fi_endpoint()", info.ep_attr->auth_key, info.ep_attr->auth_key_size);
}

void Endpoint::set_min_multi(std::size_t least) {
    const engine::BiasedLockOwner in(biased_lock());
    min_multi_ = least;
    engine_.completions().set_min_multi(least);
}

Endpoint::~Endpoint() {
    domain_.remove(*this);
    if (!given_back_) {
        const engine::BiasedLockOwner in(biased_lock());
        engine_.free();
    }
    if (request_) {
        domain_.fabric().drop_request(request_, *this);
    }
    if (eq_) {
        eq_->remove_source(domain_);
        eq_->purge(&fid);
        eq_->users.remove();
    }
    if (EventQueue* async = domain_.async_queue(); async && async != eq_) {
        async->purge(&fid);
    }
    if (srx_) {
        srx_->users.remove();
    }
    domain_.users.remove();
}

int Endpoint::bind_shared(SharedContext& srx) {
    if (enabled_ || srx_ || &srx.domain() != &domain_) {
        DAT_WARN(ep_ctrl, "fi_ep_bind(): %s",
                 enabled_ ? "the endpoint is enabled already"
                 : srx_   ? "a shared receive context is bound already"
                          : "the shared receive context belongs to another domain");
        return enabled_ ? -FI_EOPBADSTATE : -FI_EINVAL;
    }
    srx_ = &srx;
    srx.users.add();
    return 0;
}

int Endpoint::enable() {
    if (enabled_) {
        return 0;
    }
    if (!eq_ && domain_.event_queue()) {
        if (const int rc = bind_queue(*domain_.event_queue())) {
            return rc;
        }
    }
    if (!eq_) {
        DAT_WARN(ep_ctrl, "fi_enable(): bind an event queue first");
        return -FI_ENOEQ;
    }
    if (((caps_ & kNeedsTxQueue) != 0 && !tx_cq_ && !tx_unwanted_) ||
        ((caps_ & FI_RECV) != 0 && !rx_cq_ && !rx_unwanted_)) {
        DAT_WARN(ep_ctrl, "fi_enable(): bind a completion queue with %s first",
                 tx_cq_ ? "FI_RECV" : "FI_TRANSMIT");
        return -FI_ENOCQ;
    }
    const engine::BiasedLockOwner in(biased_lock());
    return make_ready();
}

int Endpoint::make_ready() {
    engine_.set_shared(srx_ ? &srx_->receives() : nullptr, srx_ ? &fid.context : nullptr);
    if (const int rc = prepare(sizes_are_default_)) {
        return rc;
    }
    if (!engine_.set_queues(tx_cq_, rx_cq_)) {
        DAT_WARN(ep_ctrl, "fi_enable(): out of memory for the completions of its operations");
        return -FI_ENOMEM;
    }
    engine_.completions().set_counters(counters_);
    domain_.show();
    enabled_ = true;
    const bool checks = domain_.engine().settings().check_buffers;
    msg = checks ? &msg_ops_checked : &msg_ops_unconnected;
    rma = checks ? &rma_ops_checked : &rma_ops_unconnected;
    atomic = checks ? &atomic_ops_checked : &atomic_ops_unconnected;
    return 0;
}

// Under the lock.
int Endpoint::prepare(bool fewer_do) {
    return domain_.device() ? verbs::prepare(*domain_.device(), engine_, fewer_do) : 0;
}

int Endpoint::hold(fid_t handle) {
    if (!domain_.fabric().hold_request(handle, *this)) {
        DAT_WARN(ep_ctrl, "info->handle is no pending connection request of this fabric: it was "
                          "accepted, rejected or given to another endpoint before");
        return -FI_EINVAL;
    }
    request_ = handle;
    const engine::BiasedLockOwner in(biased_lock());
    domain_.fabric().addresses(handle, name_, peer_);
    return 0;
}

// By these the two ends of a connection are found in two traces.
void Endpoint::note_peer(engine::LinkKind kind) {
    if (!engine_.trace()) {
        return;
    }
    base::TracePeer peer{};
    peer.local = name_.bytes();
    peer.remote = peer_.bytes();
    peer.local_port = name_.port();
    peer.remote_port = peer_.port();
    peer.link = kind == engine::LinkKind::shm     ? base::TraceLink::memory
                : kind == engine::LinkKind::verbs ? base::TraceLink::device
                                                  : base::TraceLink::tcp;
    engine_.trace()->peer(peer);
}

// A program may be reading the pointer in another thread: whole, old or new, and
// the functions of the old table look whether there is a link by now.
void Endpoint::link_ready(engine::Link& link) {
    struct Tables {
        fi_ops_msg* msg;
        fi_ops_rma* rma;
        fi_ops_atomic* atomic;
    };
    Tables tables{};
    switch (link.kind()) {
    case engine::LinkKind::shm:
        name_ = static_cast<shm::Link&>(link).name();
        tables = {&msg_ops_shm, &rma_ops_shm, &atomic_ops_shm};
        break;
    case engine::LinkKind::verbs:
        name_ = static_cast<verbs::Link&>(link).local();
        DAT_INFO(ep_ctrl, "the connection with %s uses the RDMA device %s", peer_.text().c_str(),
                 domain_.device()->device().name.c_str());
        link.say_why(domain_.device()->device().name.c_str());
        tables = {&msg_ops_verbs, &rma_ops_verbs, &atomic_ops_verbs};
        break;
    default:
        name_ = static_cast<iwarp::Link&>(link).local();
        tables = {&msg_ops_iwarp, &rma_ops_iwarp, &atomic_ops_iwarp};
    }
    note_peer(link.kind());
    if (domain_.engine().settings().check_buffers || engine_.trace()) {
        return; // those that it has are for any link
    }
    std::atomic_ref(msg).store(tables.msg, std::memory_order_release);
    std::atomic_ref(rma).store(tables.rma, std::memory_order_release);
    std::atomic_ref(atomic).store(tables.atomic, std::memory_order_release);
}

void Endpoint::tell(engine::EndpointNames& names) const {
    engine::page::set_text(names.local, name_.valid() ? name_.text().c_str() : "");
    engine::page::set_text(names.peer, peer_.valid() ? peer_.text().c_str() : "");
}

const char* Endpoint::words_for(core::Reason reason) const { return text(reason); }

void Endpoint::expect_events() {
    was_connected_ = false;
    held_.clear();
    while (room_.size() < 2) {
        room_.emplace_back();
    }
    room_.front().data.reserve(std::max(kMaxConnectionData, domain_.offering().connection_data));
    if (async_room_.empty() && domain_.async_queue()) {
        async_room_.emplace_back();
        async_room_.front().data.reserve(Domain::kAsyncSize);
    }
}

void Endpoint::raise(const core::ConnectionEvent& event) {
    if (event.event != core::Event::established) {
        DAT_INFO(ep_ctrl, "the connection with %s is over: %s (%s)", peer_.text().c_str(),
                 core::name(event.event).data(), text(event.reason));
    }
    if (event.event != core::Event::established &&
        (srx_ || event.reason == core::Reason::resources)) { // U-5, U-64
        domain_.raise_async(&fid, FI_DAT_ASYNC_EP_BROKEN, std::move(async_room_));
    }
    if (watcher_) {
        return watcher_->raised(event);
    }
    if (!eq_) { // EP-73
        return;
    }
    EventQueue::Events one;
    one.splice(one.end(), room_, room_.begin());
    EventQueue::Event& raised = one.front();
    raised.fid = &fid;
    raised.err = fi_error(event.event);
    raised.prov_errno = static_cast<int>(event.reason);
    raised.type = event.event == core::Event::established ? FI_CONNECTED : FI_SHUTDOWN;
    was_connected_ = was_connected_ || event.event == core::Event::established;
    raised.data.assign(event.private_data.begin(), event.private_data.end());
    if (is_held_back(event)) {
        held_ = std::move(one);
    } else {
        eq_->push(std::move(one));
    }
}

// What a device tells nobody of: that this side has left, as long as the peer has not, and that an
// operation of this side has failed, as long as this side has not left.
bool Endpoint::is_held_back(const core::ConnectionEvent& event) const {
    const bool left =
        event.event == core::Event::disconnected && event.reason == core::Reason::local;
    const bool failed =
        event.event == core::Event::broken &&
        (event.reason == core::Reason::dto_error || event.reason == core::Reason::terminate);
    return engine_.connection_options().await_peer && was_connected_ && (left || failed);
}

void Endpoint::give_held() {
    if (eq_ && !held_.empty()) {
        eq_->push(std::move(held_));
        held_.clear();
    }
}

void Endpoint::peer_left() { give_held(); }

void Endpoint::soft_watermark_passed() { domain_.raise_async(&fid, FI_DAT_ASYNC_RECV_WATERMARK); }

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
    if (info && info->ep_attr && number_of(info->ep_attr->type) == FI_EP_RDM) {
        return open_rdm(domain, info, ep, context);
    }
    if (!fits_endpoint("fi_endpoint()", info, domain_of(domain).offering())) {
        return -FI_EINVAL;
    }
    return no_throw([&] {
        if (!Endpoint::zone_of(domain_of(domain), *info)) {
            return -FI_EINVAL;
        }
        auto made = std::make_unique<Endpoint>(domain_of(domain), *info, context);
        if (info->handle) {
            PassiveEndpoint* pep = domain_of(domain).fabric().find_passive(info->handle);
            const int rc = pep ? made->take_over(*pep) : made->take_request(info->handle);
            if (rc) {
                return rc;
            }
        }
        *ep = made.release();
        return 0;
    });
}

} // namespace dat::ofi
