// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See window.h; and the request of an endpoint that binds one.
#include "ofi/window.h"

#include "base/attempt.h"
#include "base/log.h"
#include "ofi/domain.h"
#include "ofi/errors.h"
#include "ofi/mr.h"
#include "ofi/no_op.h"
#include "ofi/post.h"

#include <cstring>
#include <memory>

namespace dat::ofi {
namespace {

class MemoryWindow final : public fid_mr {
  public:
    MemoryWindow(Domain& domain, ZoneHandle zone, void* context);
    ~MemoryWindow() {
        {
            const engine::BiasedLockOwner in(domain.biased_lock());
            domain.engine().regions().close(window);
        }
        domain.users.remove();
    }

    Domain& domain;
    const ZoneHandle zone;
    engine::Window window; // guarded by the lock
};

int close(fid_t f) {
    delete &object_of<MemoryWindow, fid_mr>(f);
    return 0;
}

constinit fi_ops g_fid_ops = fid_ops(close);

MemoryWindow::MemoryWindow(Domain& d, ZoneHandle z, void* context)
    : domain(d), zone(std::move(z)), window(key, FI_KEY_NOTAVAIL) {
    fid.fclass = FI_CLASS_MR;
    fid.context = context;
    fid.ops = &g_fid_ops;
    mem_desc = nullptr;
    domain.users.add();
}

// nullptr: it is no window of this provider.
MemoryWindow* window_of(fid_mr* f) {
    return f && f->fid.ops == &g_fid_ops ? static_cast<MemoryWindow*>(f) : nullptr;
}

} // namespace

int open_window(fid_domain* f, const std::uint8_t* key, std::size_t size, fid_mr** window,
                void* context) {
    return no_throw([&] {
        Domain& domain = domain_of(f);
        if (domain.device() && !domain.device()->device().windows) {
            DAT_WARN(mr, "window(): this RDMA device has no memory windows of type 2; "
                         "FI_DAT_TRANSPORT=soft has them");
            return -FI_EOPNOTSUPP;
        }
        ZoneHandle zone = domain.zone("window()", key, size);
        if (!zone) {
            return -FI_EINVAL;
        }
        *window = new MemoryWindow(domain, std::move(zone), context);
        return 0;
    });
}

namespace {

constexpr std::uint64_t kRights = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DAT_INVALIDATE;
constexpr std::uint64_t kFlags = FI_COMPLETION | FI_FENCE | FI_MORE | FI_DAT_ZERO_BASED;

int refuse(int rc, const char* why) {
    DAT_WARN(ep_data, "bind_window(): %s", why);
    return rc;
}

// The window as the table keeps it. 0 or -FI_E*. Under the lock.
int describe(const fi_dat_bind& bind, const MemoryWindow& window, const engine::Endpoint& endpoint,
             engine::Region& region) {
    if (window.zone.get() != endpoint.zone()) {
        return refuse(-FI_EACCES, "the window is of another protection zone than the endpoint");
    }
    if (bind.len == 0) {
        return 0; // RMR-7
    }
    const engine::Region* whole = region_of(bind.mr, window.domain);
    if (!whole) {
        return refuse(-FI_EINVAL, "mr is no memory region of the endpoint's domain");
    }
    if (whole->zone != window.zone.get()) {
        return refuse(-FI_EACCES, "the region is of another protection zone than the window");
    }
    region.base = static_cast<std::byte*>(bind.addr);
    region.length = bind.len;
    const auto offset = static_cast<std::uint64_t>(region.base - whole->base);
    if (region.base < whole->base || offset > whole->length ||
        region.length > whole->length - offset) {
        DAT_WARN(ep_data, "bind_window(): %zu bytes at %p are not all in the region, %llu at %p",
                 bind.len, bind.addr, static_cast<unsigned long long>(whole->length),
                 static_cast<void*>(whole->base));
        return -FI_EINVAL;
    }
    const bool by_address =
        window.domain.virtual_addresses() && (bind.flags & FI_DAT_ZERO_BASED) == 0;
    region.address = by_address ? reinterpret_cast<std::uintptr_t>(bind.addr) : 0;
    region.zone = whole->zone;
    region.sparse = whole->sparse;
    region.access = static_cast<std::uint8_t>(
        ((bind.access & FI_REMOTE_READ) != 0 ? engine::kRemoteRead : 0) |
        ((bind.access & FI_REMOTE_WRITE) != 0 ? engine::kRemoteWrite : 0) |
        ((bind.access & FI_DAT_INVALIDATE) != 0 ? engine::kRemoteInvalidate : 0));
    return 0;
}

// The key that the device gives it; 0: the table is to give one. 0 or -FI_E*. Under the lock.
int device_key(Domain& domain, const engine::Region& region, std::uint32_t source,
               const fi_dat_bind& bind, std::uint32_t& key) {
    if (!domain.device() || bind.len == 0) {
        return 0;
    }
    if ((bind.flags & FI_DAT_ZERO_BASED) != 0) {
        return refuse(-FI_EINVAL, "flags: FI_DAT_ZERO_BASED is not offered on an RDMA device");
    }
    const engine::Region& whole = *domain.engine().regions().region(source);
    const bool writes = (bind.access & FI_REMOTE_WRITE) != 0;
    const int rc = domain.device()->make_window(region.zone, whole.base, source, writes, key);
    return rc == -EACCES ? refuse(-FI_EACCES, "FI_REMOTE_WRITE to a region that this side may not "
                                              "write: register it with FI_RECV or FI_READ")
                         : fi_result(rc);
}

void fill(engine::Request& request, const fi_dat_bind& bind, std::uint32_t key, bool reported) {
    request = engine::Request{};
    request.context = bind.context;
    request.completion_flags = FI_DAT_BIND;
    request.remote_key = key;
    request.op = engine::OpCode::bind;
    request.level = engine::Level::taken;
    request.fence = (bind.flags & FI_FENCE) != 0;
    request.signaled = reported;
}

} // namespace

int Endpoint::bind_window(const fi_dat_bind& bind, std::uint64_t& key) {
    MemoryWindow* window = window_of(bind.window);
    if (!window || &window->domain != &domain_) {
        return refuse(-FI_EINVAL, "window is none of the endpoint's domain");
    }
    if ((bind.access & ~kRights) != 0 || (bind.flags & ~kFlags) != 0) {
        DAT_WARN(ep_data,
                 "bind_window(): access = 0x%llx, flags = 0x%llx: other bits than 0x%llx "
                 "and 0x%llx",
                 static_cast<unsigned long long>(bind.access),
                 static_cast<unsigned long long>(bind.flags),
                 static_cast<unsigned long long>(kRights), static_cast<unsigned long long>(kFlags));
        return -FI_EINVAL;
    }
    const engine::BiasedLockOwner in(biased_lock());
    engine::MrTable& table = domain_.engine().regions();
    engine::Region region;
    if (const int rc = describe(bind, *window, engine_, region)) {
        return rc;
    }
    if (!enabled_) {
        log_not_enabled();
        return -FI_EOPBADSTATE;
    }
    const std::uint32_t source = bind.len > 0 ? table_key_of(bind.mr) : 0;
    std::uint32_t prepared = 0;
    if (const int rc = device_key(domain_, region, source, bind, prepared)) {
        return rc;
    }
    const std::uint32_t of_device = prepared;
    if (!base::attempt(
            [&] { prepared = table.prepare(window->window, region, source, of_device); })) {
        if (of_device != 0) {
            domain_.device()->windows().window_gone(of_device);
        }
        return refuse(-FI_ENOMEM, "out of memory");
    }
    const core::PostVerdict verdict = Unlinked::post(
        engine_, (bind.flags & FI_MORE) != 0, [&](engine::Request& request, std::uint64_t) {
            fill(request, bind, prepared, tx_reported(bind.flags));
        });
    if (verdict != core::PostVerdict::posted && verdict != core::PostVerdict::flushed) {
        table.spoil(prepared);
        return verdict == core::PostVerdict::full ? -FI_EAGAIN
                                                  : refuse_state("bind_window()", *this);
    }
    key = bind.len > 0 ? prepared : FI_KEY_NOTAVAIL;
    return 0;
}

} // namespace dat::ofi
