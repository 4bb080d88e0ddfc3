// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See domain.h.
#include "ofi/domain.h"

#include "config.h"

#include "base/attempt.h"
#include "base/log.h"
#include "links/shm/viewers.h"
#include "ofi/atomic.h"
#include "ofi/av.h"
#include "ofi/cm.h"
#include "ofi/cntr.h"
#include "ofi/cq.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/mr.h"
#include "ofi/no_op.h"
#include "ofi/ours.h"
#include "ofi/poll_set.h"
#include "ofi/provider.h"
#include "ofi/srx.h"
#include "ofi/versions.h"
#include "ofi/window.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>

namespace dat::ofi {
namespace {

bool is_manual(const fi_progress& progress) {
    const std::uint32_t number = number_of(progress);
    return number == FI_PROGRESS_MANUAL || number == kControlUnified;
}

bool has_progress_thread(const fi_domain_attr& attr) {
    return !is_manual(attr.data_progress) || !is_manual(attr.control_progress);
}

engine::Domain::Options options_for(const fi_domain_attr& attr) {
    engine::Domain::Options options;
    options.shared = number_of(attr.threading) != FI_THREAD_DOMAIN;
    options.progress_thread = has_progress_thread(attr);
    options.settings = parameters().settings;
    return options;
}

int close(fid_t f) {
    Domain& domain = object_of<Domain, fid_domain>(f);
    if (domain.users.count() > 0) {
        DAT_WARN(domain,
                 "fi_close() of a domain: %d of its endpoints, shared contexts, completion "
                 "queues, counters and memory regions are open",
                 domain.users.count());
        return -FI_EBUSY;
    }
    if (domain.engine().settings().stats == engine::Stats::summary) {
        domain.summarize();
    }
    delete &domain;
    return 0;
}

int open_endpoint_with_flags(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t flags,
                             void* context) {
    if (flags != 0) {
        DAT_WARN(ep_ctrl, "fi_endpoint2(): flags = 0x%llx; none is offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    return open_endpoint(domain, info, ep, context);
}

int bind(fid_t f, fid_t to, std::uint64_t flags) {
    if (to->fclass != FI_CLASS_EQ) {
        DAT_WARN(domain, "fi_domain_bind(): an object of class %zu; an event queue can be bound",
                 to->fclass);
        return -FI_ENOSYS;
    }
    return object_of<Domain, fid_domain>(f).bind_queue(object_of<EventQueue, fid_eq>(to), flags);
}

int attend(fid_domain* domain, int there) {
    engine::Domain& engine = domain_of(domain).engine();
    if (there) {
        engine.sleeper_begins();
    } else {
        engine.sleeper_ends();
    }
    return 0;
}

int query_limits(fid_domain* domain, fi_dat_limits* limits, std::size_t size) {
    const fi_dat_limits& ours = domain_of(domain).offering().limits;
    std::memset(limits, 0, size);
    std::memcpy(limits, &ours, std::min(size, sizeof ours));
    return 0;
}

// As large as it was in version 0.1.
int limits(fid_domain* domain, fi_dat_limits* limits) {
    return query_limits(domain, limits, offsetof(fi_dat_limits, read_segments));
}

static_assert(engine::MrTable::kFlushed == FI_DAT_FLUSHED);

int set_flush(fid_domain* f, fid_mr* mr, int (*flush)(void*, void*, std::size_t), void* context) {
    return no_throw([&] {
        Domain& domain = domain_of(f);
        const engine::BiasedLockOwner in(domain.biased_lock());
        if (!region_of(mr, domain)) {
            DAT_WARN(mr, "set_flush(): the memory region is none of this domain");
            return -FI_EINVAL;
        }
        if (domain.device()) {
            DAT_WARN(mr, "set_flush(): a device does not tell what peers do to memory");
            return -FI_EOPNOTSUPP;
        }
        domain.engine().regions().set_flusher(table_key_of(mr), {flush, context});
        return 0;
    });
}

int device(fid_domain* f, ibv_context** context) {
    const verbs::Domain* const device = domain_of(f).device();
    *context = device ? device->context() : nullptr;
    return device ? 0 : -FI_ENODEV;
}

int resolve(fid_domain* f, const void* address, std::uint64_t timeout_us) {
    const net::SocketAddress peer = read_address(address);
    if (!peer.valid()) {
        DAT_WARN(domain, "resolve(): the address is none of IPv4 or IPv6");
        return -FI_EINVAL;
    }
    const verbs::Domain* const device = domain_of(f).device();
    const std::chrono::microseconds limit(std::min<std::uint64_t>(timeout_us, INT64_MAX));
    const int rc = device ? device->resolve(peer, limit) : 0;
    if (rc) {
        DAT_WARN(domain, "resolve(): the RDMA device %s finds no way to %s: %s",
                 device->device().name.c_str(), peer.text().c_str(), std::strerror(-rc));
    }
    return fi_result(rc);
}

fi_dat_ops_domain g_dat_ops = {
    .size = sizeof(fi_dat_ops_domain),
    .window = OfOurs<open_window>::call,
    .attend = OfOurs<attend>::call,
    .limits = OfOurs<limits>::call,
    .query_limits = OfOurs<query_limits>::call,
    .set_flush = OfOurs<set_flush>::call,
    .device = OfOurs<device>::call,
    .resolve = OfOurs<resolve>::call,
};

int open_ops(fid_t, const char* name, std::uint64_t flags, void** table, void*) {
    return give_table(g_dat_ops, FI_DAT_DOMAIN_OPS, name, flags, table);
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = DAT_NOT_OFFERED(fi_ops, control),
    .ops_open = open_ops,
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_domain g_domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = open_av,
    .cq_open = open_cq,
    .endpoint = open_endpoint,
    .scalable_ep = DAT_NOT_OFFERED(fi_ops_domain, scalable_ep),
    .cntr_open = open_cntr,
    .poll_open = open_poll_set,
    .stx_ctx = DAT_NOT_OFFERED(fi_ops_domain, stx_ctx),
    .srx_ctx = open_srx,
    .query_atomic = query_atomic,
    .query_collective = DAT_NOT_OFFERED(fi_ops_domain, query_collective),
    .endpoint2 = open_endpoint_with_flags,
};

} // namespace

Domain::Domain(Fabric& fabric, const fi_domain_attr& attr, void* context)
    : fabric_(fabric),
      virtual_addresses_(attr.mr_mode == kMrBasic || (attr.mr_mode & FI_MR_VIRT_ADDR) != 0),
      provider_keys_(attr.mr_mode == kMrBasic || (attr.mr_mode & FI_MR_PROV_KEY) != 0),
      names_memory_(attr.mr_mode != kMrBasic && (attr.mr_mode & FI_MR_LOCAL) != 0),
      long_keys_(attr.mr_key_size > sizeof(std::uint32_t)),
      progress_thread_(has_progress_thread(attr)), zone_(std::make_shared<const Zone>()),
      offering_(soft_offering()), engine_(options_for(attr)) {
    fid.fclass = FI_CLASS_DOMAIN;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_domain_ops;
    mr = &mr_ops;
    fabric_.users.add();
}

Domain::~Domain() {
    if (eq_) {
        eq_->remove_source(*this);
        eq_->purge(&fid);
        eq_->users.remove();
    }
    fabric_.users.remove();
}

int Domain::bind_queue(EventQueue& eq, std::uint64_t flags) {
    if ((flags & ~FI_DAT_ASYNC) != 0) {
        DAT_WARN(domain, "fi_domain_bind(): flags = 0x%llx; FI_DAT_ASYNC is offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    if (eq_ || &eq.fabric() != &fabric_) {
        DAT_WARN(domain, "fi_domain_bind(): %s",
                 eq_ ? "an event queue is bound already"
                     : "the event queue belongs to another fabric");
        return -FI_EINVAL;
    }
    const int rc = no_throw([&] { return eq.add_source(*this); });
    if (rc == 0) {
        const engine::BiasedLockOwner in(biased_lock());
        eq_ = &eq;
        async_ = (flags & FI_DAT_ASYNC) != 0;
        eq.users.add();
    }
    return rc;
}

int Domain::open_device(const net::SocketAddress& address) {
    auto device = std::make_unique<verbs::Domain>(engine_, static_cast<verbs::DomainOwner&>(*this));
    if (const int rc = device->open(address, fabric_.raw_data())) {
        return rc;
    }
    offering_ = offering_of(device->device());
    device_ = std::move(device);
    virtual_addresses_ = provider_keys_ = true;
    return 0;
}

bool Domain::set_zone(const fi_domain_attr& attr) {
    // The members exist from API version 1.5 on.
    if (fabric_.api_version >= FI_VERSION(1, 5)) {
        zone_ = zone("fi_domain()", attr.auth_key, attr.auth_key_size);
    }
    return zone_ != nullptr;
}

void Domain::show() { shm::Viewers::open(engine_, name_.data(), PACKAGE_VERSION); }

void Domain::summarize() {
    engine::page::Totals all{};
    std::array<char, 512> ends{};
    {
        const engine::BiasedLockOwner in(biased_lock());
        all = engine_.statistics().totals();
    }
    std::size_t used = 0;
    for (std::size_t reason = 0; reason < all.ends.size(); ++reason) {
        if (all.ends[reason] > 0 && used < ends.size()) {
            const int more = std::snprintf(ends.data() + used, ends.size() - used, "%s%llu: %s",
                                           used > 0 ? "; " : ", of them ",
                                           static_cast<unsigned long long>(all.ends[reason]),
                                           text(static_cast<core::Reason>(reason)));
            used += static_cast<std::size_t>(more);
        }
    }
    std::uint64_t ended = 0;
    for (const std::uint64_t each : all.ends) {
        ended += each;
    }
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    DAT_WARN(domain,
             "FI_DAT_STATS: domain %s: %llu connections, %llu requests of %llu bytes, %llu "
             "receives of %llu bytes, %llu times a message waited for a receive; %llu ends%s",
             name_.data(), number(all.established), number(all.requests), number(all.request_bytes),
             number(all.receives), number(all.receive_bytes), number(all.not_ready), number(ended),
             ends.data());
}

void Domain::add(Endpoint& ep) {
    if (device_) {
        const std::lock_guard lock(endpoints_mutex_);
        endpoints_.insert(&ep);
    }
}

void Domain::remove(Endpoint& ep) {
    if (device_) {
        const std::lock_guard lock(endpoints_mutex_);
        endpoints_.erase(&ep);
    }
}

// An attempt or a connection that ends with the device says so itself, as it ends.
void Domain::device_gone() {
    raise_async(&fid, FI_DAT_ASYNC_DEVICE_GONE);
    const std::lock_guard lock(endpoints_mutex_);
    for (Endpoint* ep : endpoints_) {
        switch (ep->engine().core().state()) {
        case core::State::unconnected:
        case core::State::reserved:
        case core::State::passive_connection_pending:
        case core::State::tentative_connection_pending:
        case core::State::disconnected:
            raise_async(&ep->fid, FI_DAT_ASYNC_EP_BROKEN); // EP-61
            break;
        default:
            break;
        }
    }
}

void Domain::raise_async(fid_t object, fi_dat_async what, EventQueue::Events made) {
    if (!async_) {
        return;
    }
    if (made.empty() && !base::attempt([&] {
            made.emplace_back();
            made.front().data.reserve(kAsyncSize);
        })) {
        DAT_WARN(domain, "an asynchronous event (%d) is lost: out of memory", int{what});
        return;
    }
    fi_eq_entry entry{};
    entry.fid = object;
    entry.context = object->context;
    entry.data = what;
    EventQueue::Event& event = made.front();
    event.type = FI_DAT_ASYNC_EVENT;
    event.fid = object;
    event.raw = true;
    const auto* bytes = reinterpret_cast<const std::byte*>(&entry);
    event.data.assign(bytes, bytes + sizeof entry);
    eq_->push(std::move(made));
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
    if (!info || !info->domain_attr) {
        DAT_WARN(domain, "fi_domain(): info without domain_attr; pass one from fi_getinfo()");
        return -FI_EINVAL;
    }
    return no_throw([&] {
        auto made = std::make_unique<Domain>(fabric_of(fabric), *info->domain_attr, context);
        if (!made->set_zone(*info->domain_attr)) {
            return -FI_EINVAL;
        }
        made->set_name(info->domain_attr->name);
        if (const int rc = made->open()) {
            DAT_WARN(domain, "fi_domain(): %s; raise the limit on open files (ulimit -n)",
                     std::strerror(-rc));
            return rc;
        }
        const char* const name = info->domain_attr->name;
        if (name && verbs::is_device_name(name)) {
            const net::SocketAddress address(static_cast<const sockaddr*>(info->src_addr),
                                             info->src_addr ? info->src_addrlen : 0);
            if (!address.valid()) {
                DAT_WARN(domain,
                         "fi_domain(): the info for %s has no src_addr; pass one from "
                         "fi_getinfo()",
                         name);
                return -FI_EINVAL;
            }
            if (const int rc = made->open_device(address)) {
                return rc;
            }
        }
        *domain = made.release();
        return 0;
    });
}

} // namespace dat::ofi
