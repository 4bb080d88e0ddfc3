// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See mr.h.
#include "ofi/mr.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/mr_table.h"
#include "engine/touchable.h"
#include "ofi/cntr.h"
#include "ofi/domain.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/no_op.h"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace dat::ofi {
namespace {

constexpr std::uint64_t kAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

// libfabric's own layers register with it (OFI_MR_NOCACHE): it is not to be cached. Nothing is.
constexpr std::uint64_t kNoCache = std::uint64_t{1} << 60;

class MemoryRegion final : public fid_mr {
  public:
    MemoryRegion(Domain& domain, ZoneHandle zone, void* context);
    ~MemoryRegion() {
        for (Counter* counter : {reads_, writes_}) {
            if (counter) {
                counter->users.remove();
            }
        }
        domain_.users.remove();
    }

    // Puts it into the domain's table, if peers may use it; sets the key. 0, or -FI_ENOKEY
    // where the requested key is taken.
    int publish(const engine::Region& region, std::uint64_t requested_key);
    // The same on a device. 0 or -errno, logged.
    int publish(const engine::Region& region, const verbs::Domain::Access& access);
    // FI_RMA_EVENT: the counter counts what peers do to it.
    int bind(Counter& counter, std::uint64_t flags);
    // From here on no peer reaches it. False: windows are cut from it (LMR-7).
    bool withdraw() {
        const engine::BiasedLockOwner in(domain_.biased_lock());
        if (table_key_ && !domain_.engine().regions().remove(*table_key_)) {
            return false;
        }
        if (device_region_) {
            domain_.device()->deregister(device_region_);
        }
        return true;
    }
    Domain& domain() { return domain_; }
    // These two: under the lock.
    const engine::Region& region() const {
        return table_key_ ? *domain_.engine().regions().region(*table_key_) : local_;
    }
    std::uint32_t table_key() {
        if (!table_key_) {
            table_key_ = domain_.engine().regions().add(local_);
        }
        return *table_key_;
    }

  private:
    Domain& domain_;
    const ZoneHandle zone_;
    std::optional<std::uint32_t> table_key_; // none: no peer uses it, and no window
    engine::Region local_;                   // while there is none
    Counter* reads_ = nullptr;
    Counter* writes_ = nullptr;
    ibv_mr* device_region_ = nullptr;
};

int MemoryRegion::bind(Counter& counter, std::uint64_t flags) {
    const bool reads = (flags & FI_REMOTE_READ) != 0;
    const bool writes = (flags & FI_REMOTE_WRITE) != 0;
    if ((flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0 || (!reads && !writes) ||
        (reads && reads_) || (writes && writes_) || &counter.domain() != &domain_) {
        DAT_WARN(mr,
                 "fi_mr_bind(): flags = 0x%llx; FI_REMOTE_READ, FI_REMOTE_WRITE or both, each "
                 "once, with a counter of the same domain",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    if (device_region_) {
        DAT_WARN(mr, "fi_mr_bind(): a device does not tell what peers do to memory");
        return -FI_ENOSYS;
    }
    const engine::BiasedLockOwner in(domain_.biased_lock());
    if (table_key_) {
        domain_.engine().regions().count(*table_key_, reads ? &counter : nullptr,
                                         writes ? &counter : nullptr);
    }
    if (reads) {
        reads_ = &counter;
        counter.users.add();
    }
    if (writes) {
        writes_ = &counter;
        counter.users.add();
    }
    return 0;
}

int MemoryRegion::publish(const engine::Region& region, std::uint64_t requested_key) {
    const engine::BiasedLockOwner in(domain_.biased_lock());
    engine::MrTable& table = domain_.engine().regions();
    if (region.access == 0) {
        key = FI_KEY_NOTAVAIL;
        local_ = region;
        return 0;
    }
    if (domain_.provider_keys()) {
        key = table_key_.emplace(table.add(region));
        return 0;
    }
    key = requested_key;
    const std::uint32_t short_key = engine::MrTable::short_key(requested_key);
    if (!table.add(short_key, region)) {
        return -FI_ENOKEY;
    }
    table_key_ = short_key;
    return 0;
}

int MemoryRegion::publish(const engine::Region& region, const verbs::Domain::Access& access) {
    const engine::BiasedLockOwner in(domain_.biased_lock());
    device_region_ =
        domain_.device()->register_memory(region.zone, region.base, region.length, access);
    if (!device_region_) {
        return verbs::log_failure("fi_mr_reg*()", errno);
    }
    key = verbs::Domain::key_of(device_region_);
    mem_desc = domain_.device()->memory().name_of(device_region_);
    bool added = false; // for windows
    const bool memory = base::attempt(
        [&] { added = domain_.engine().regions().add(static_cast<std::uint32_t>(key), region); });
    if (!added) {
        domain_.device()->deregister(std::exchange(device_region_, nullptr));
        DAT_WARN(mr, "fi_mr_reg*(): %s",
                 memory ? "the device gave a key that is in use" : "out of memory");
        return memory ? -ENOKEY : -ENOMEM;
    }
    table_key_ = static_cast<std::uint32_t>(key);
    return 0;
}

int close(fid_t f) {
    MemoryRegion& region = object_of<MemoryRegion, fid_mr>(f);
    if (!region.withdraw()) {
        DAT_WARN(mr, "fi_close() of a memory region: windows are bound to it, or about to be");
        return -FI_EBUSY;
    }
    delete &region;
    return 0;
}

int bind(fid_t f, fid_t to, std::uint64_t flags) {
    if (to->fclass != FI_CLASS_CNTR) {
        DAT_WARN(mr, "fi_mr_bind(): objects of class %zu cannot be bound; counters can",
                 to->fclass);
        return -FI_ENOSYS;
    }
    return object_of<MemoryRegion, fid_mr>(f).bind(object_of<Counter, fid_cntr>(to), flags);
}

// A region is enabled from the start; FI_ENABLE on it has nothing to do.
int control(fid_t, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

MemoryRegion::MemoryRegion(Domain& domain, ZoneHandle zone, void* context)
    : domain_(domain), zone_(std::move(zone)) {
    fid.fclass = FI_CLASS_MR;
    fid.context = context;
    fid.ops = &g_fid_ops;
    mem_desc = this; // only a device needs it, but some programs take NULL for a failure
    domain_.users.add();
}

struct Asked {
    iovec range;
    std::uint64_t access;
    std::uint64_t offset;
    std::uint64_t key;
    std::uint64_t flags;
    const std::uint8_t* auth_key = nullptr;
    std::size_t auth_key_size = 0;
};

// The whole address space, whatever is mapped: MPICH registers it for a window whose memory is
// attached later, of a domain that does not ask for FI_MR_ALLOCATED. So of one for FI_EP_RDM alone.
bool is_everything(const Domain& domain, const Asked& asked) {
    return !asked.range.iov_base && asked.range.iov_len == SIZE_MAX && domain.long_keys();
}

int check_asked(Domain& domain, const Asked& asked) {
    if ((asked.flags & ~(FI_DAT_ZERO_BASED | kNoCache)) != 0) {
        DAT_WARN(mr,
                 "fi_mr_reg*(): flags = 0x%llx; only FI_DAT_ZERO_BASED is offered, and no dmabuf",
                 static_cast<unsigned long long>(asked.flags));
        return -FI_EBADFLAGS;
    }
    if ((asked.flags & FI_DAT_ZERO_BASED) != 0 && domain.device()) {
        DAT_WARN(mr, "fi_mr_reg*(): FI_DAT_ZERO_BASED is not offered on an RDMA device");
        return -FI_EINVAL;
    }
    if ((asked.access & ~kAccess) != 0) {
        DAT_WARN(mr, "fi_mr_reg*(): access = 0x%llx has other bits than 0x%llx",
                 static_cast<unsigned long long>(asked.access),
                 static_cast<unsigned long long>(kAccess));
        return -FI_EINVAL;
    }
    if (asked.offset != 0) {
        DAT_WARN(mr, "fi_mr_reg*(): offset = %llu has to be 0",
                 static_cast<unsigned long long>(asked.offset));
        return -FI_EINVAL;
    }
    if (!asked.range.iov_base && asked.range.iov_len > 0 && !is_everything(domain, asked)) {
        DAT_WARN(mr, "fi_mr_reg*(): a NULL buffer of %zu bytes", asked.range.iov_len);
        return -FI_EINVAL;
    }
    const bool has_key = (asked.access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0;
    if (has_key && !domain.provider_keys() && !domain.long_keys() &&
        asked.key >= engine::MrTable::kKeyLimit) {
        DAT_WARN(mr,
                 "fi_mr_reg*(): requested_key = 0x%llx is longer than the mr_key_size of 4 "
                 "bytes",
                 static_cast<unsigned long long>(asked.key));
        return -FI_EKEYREJECTED;
    }
    return 0;
}

// U-72. A device looks for itself.
int check_memory(const Asked& asked) {
    const bool written = (asked.access & (FI_RECV | FI_READ | FI_REMOTE_WRITE)) != 0;
    const engine::Touch how = written ? engine::Touch::write : engine::Touch::read;
    const auto address = reinterpret_cast<std::uintptr_t>(asked.range.iov_base);
    const engine::Untouchable bad = engine::find_untouchable(address, asked.range.iov_len, how);
    if (!bad) {
        return 0;
    }
    DAT_WARN(mr,
             "fi_mr_reg*(): %zu bytes at %p with access = 0x%llx: %s; all of it has to be mapped "
             "with the rights that are asked for",
             asked.range.iov_len, asked.range.iov_base,
             static_cast<unsigned long long>(asked.access), engine::explain(bad, how).text.data());
    return -FI_EFAULT;
}

int add(fid_t f, const Asked& asked, fid_mr** mr, void* context) {
    if (f->fclass != FI_CLASS_DOMAIN) {
        DAT_WARN(mr, "fi_mr_reg*(): the object is not a domain");
        return -FI_EINVAL;
    }
    Domain& domain = object_of<Domain, fid_domain>(f);
    if (const int rc = check_asked(domain, asked)) {
        return rc;
    }
    const bool sparse = is_everything(domain, asked);
    if (const int rc = sparse || domain.device() ? 0 : check_memory(asked)) {
        return rc;
    }
    return no_throw([&] {
        engine::Region region;
        region.base = static_cast<std::byte*>(asked.range.iov_base);
        region.length = asked.range.iov_len;
        region.sparse = sparse;
        const bool by_address =
            domain.virtual_addresses() && (asked.flags & FI_DAT_ZERO_BASED) == 0;
        region.address = by_address ? reinterpret_cast<std::uintptr_t>(asked.range.iov_base) : 0;
        ZoneHandle zone = domain.zone("fi_mr_regattr()", asked.auth_key, asked.auth_key_size);
        if (!zone) {
            return -FI_EINVAL;
        }
        region.zone = zone.get();
        region.access = static_cast<std::uint8_t>(
            ((asked.access & FI_REMOTE_READ) != 0 ? engine::kRemoteRead : 0) |
            ((asked.access & FI_REMOTE_WRITE) != 0 ? engine::kRemoteWrite : 0));
        auto made = std::make_unique<MemoryRegion>(domain, std::move(zone), context);
        if (domain.device()) {
            const int rc = made->publish(
                region, verbs::Domain::Access{(asked.access & (FI_RECV | FI_READ)) != 0,
                                              (asked.access & FI_REMOTE_READ) != 0,
                                              (asked.access & FI_REMOTE_WRITE) != 0});
            if (rc == 0) {
                *mr = made.release();
            }
            return fi_result(rc);
        }
        if (const int rc = made->publish(region, asked.key)) {
            DAT_WARN(mr,
                     "fi_mr_reg*(): requested_key = 0x%llx is in use by another region, or is the "
                     "same in 4 bytes as that of one",
                     static_cast<unsigned long long>(asked.key));
            return rc;
        }
        *mr = made.release();
        return 0;
    });
}

int register_buffer(fid_t f, const void* buf, std::size_t len, std::uint64_t access,
                    std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags,
                    fid_mr** mr, void* context) {
    return add(f, {{const_cast<void*>(buf), len}, access, offset, requested_key, flags}, mr,
               context);
}

int register_vector(fid_t f, const iovec* iov, std::size_t count, std::uint64_t access,
                    std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags,
                    fid_mr** mr, void* context) {
    if (count != 1) {
        DAT_WARN(mr, "fi_mr_regv(): count = %zu; a region is one range (mr_iov_limit 1)", count);
        return -FI_EINVAL;
    }
    return add(f, {iov[0], access, offset, requested_key, flags}, mr, context);
}

std::uint32_t api_version(fid_t domain) {
    return object_of<Domain, fid_domain>(domain).fabric().api_version;
}

int register_attributes(fid_t f, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** mr) {
    // A newer libfabric puts another structure in place of the vector with some
    // flags: they are refused before it is looked at.
    if ((flags & ~(FI_DAT_ZERO_BASED | kNoCache)) != 0) {
        return add(f, {{nullptr, 0}, 0, 0, 0, flags}, mr, nullptr);
    }
    if (attr->iov_count != 1) {
        DAT_WARN(mr, "fi_mr_regattr(): iov_count = %zu; a region is one range (mr_iov_limit 1)",
                 attr->iov_count);
        return -FI_EINVAL;
    }
    // The member exists from API version 1.9 on.
    if (f->fclass == FI_CLASS_DOMAIN && api_version(f) >= FI_VERSION(1, 9) &&
        attr->iface != FI_HMEM_SYSTEM) {
        DAT_WARN(mr, "fi_mr_regattr(): iface = %d; only FI_HMEM_SYSTEM is offered", attr->iface);
        return -FI_ENOSYS;
    }
    const bool has_auth_key = f->fclass == FI_CLASS_DOMAIN && api_version(f) >= FI_VERSION(1, 5);
    return add(f,
               {attr->mr_iov[0], attr->access, attr->offset, attr->requested_key, flags,
                has_auth_key ? attr->auth_key : nullptr, has_auth_key ? attr->auth_key_size : 0},
               mr, attr->context);
}

} // namespace

const engine::Region* region_of(fid_mr* mr, Domain& domain) {
    const bool known =
        mr && mr->fid.ops == &g_fid_ops && &static_cast<MemoryRegion*>(mr)->domain() == &domain;
    return known ? &static_cast<MemoryRegion*>(mr)->region() : nullptr;
}

std::uint32_t table_key_of(fid_mr* mr) { return static_cast<MemoryRegion*>(mr)->table_key(); }

fi_ops_mr mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = register_buffer,
    .regv = register_vector,
    .regattr = register_attributes,
};

} // namespace dat::ofi
