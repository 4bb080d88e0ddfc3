// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rpma_mr_*().
#include "rpma-shim/durable.h"
#include "rpma-shim/guard.h"
#include "rpma-shim/peer.h"

#include <cstring>
#include <endian.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

using namespace dat::rpma;

namespace {

constexpr int kAllUsages =
    RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
    RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
    RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
constexpr int kFlushUsages =
    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

// A flush is a read of the memory that has been written.
std::uint64_t access_for(int usage) {
    struct {
        int usage;
        std::uint64_t access;
    } constexpr kAccess[] = {
        {RPMA_MR_USAGE_READ_SRC | kFlushUsages, FI_REMOTE_READ},
        {RPMA_MR_USAGE_READ_DST, FI_READ},
        {RPMA_MR_USAGE_WRITE_SRC, FI_WRITE},
        {RPMA_MR_USAGE_WRITE_DST, FI_REMOTE_WRITE},
        {RPMA_MR_USAGE_SEND, FI_SEND},
        {RPMA_MR_USAGE_RECV, FI_RECV},
    };
    std::uint64_t access = 0;
    for (const auto& each : kAccess) {
        access |= (usage & each.usage) != 0 ? each.access : 0;
    }
    return access;
}

// What peers get of a region: 21 bytes without gaps, the lowest byte first.
struct __attribute__((packed)) Descriptor {
    std::uint64_t address;
    std::uint64_t size;
    std::uint32_t key;
    std::uint8_t usage;
};
static_assert(sizeof(Descriptor) == 21);

// What the descriptor promises holds: where memory outlives nothing, it does not say so, and the
// peer's flush is told RPMA_E_NOSUPP. A device writes to memory by itself, and the platform decides
// what that is worth. 0 or one of RPMA_E_*, logged.
int make_durable(const rpma_peer& peer, rpma_mr_local& mr) {
    if (!peer.device.is_soft()) {
        return 0;
    }
    const Durability durability = durability_of(mr.base, mr.size);
    if (durability == Durability::none) {
        RPMA_SAY(RPMA_LOG_LEVEL_WARNING,
                 "rpma_mr_reg(): %zu bytes at %p are no shared mapping of a file: the region is "
                 "without RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, and a peer's flush of that type is "
                 "told RPMA_E_NOSUPP",
                 mr.size, mr.base);
        mr.usage &= ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
        return 0;
    }
    fi_dat_ops_domain* ops = nullptr;
    const int rc = fi_open_ops(&peer.domain.get()->fid, FI_DAT_DOMAIN_OPS, 0,
                               reinterpret_cast<void**>(&ops), nullptr);
    const int set =
        rc ? rc
           : ops->set_flush(peer.domain.get(), mr.mr.get(),
                            durability == Durability::direct ? flush_direct : flush_file, nullptr);
    return set == 0 ? 0 : RPMA_FAILURE("rpma_mr_reg()", set);
}

// Asks the kernel for pages of memory that is not pinned; a hint, so that nothing can fail.
void fetch(void* address, std::size_t size) {
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t from = begin & ~(page - 1);
    madvise(reinterpret_cast<void*>(from), begin + size - from, MADV_WILLNEED);
}

template <class Object, class Value> bool is_missing(const Object* object, const Value* value) {
    return !object || !value;
}

} // namespace

extern "C" {

int rpma_mr_reg(struct rpma_peer* peer, void* ptr, size_t size, int usage,
                struct rpma_mr_local** mr_ptr) {
    if (!peer || !ptr || size == 0 || !mr_ptr) {
        return RPMA_REFUSE("rpma_mr_reg(): peer = %p, ptr = %p, size = %zu, mr_ptr = %p; none of "
                           "them may be NULL or 0",
                           static_cast<void*>(peer), ptr, size, static_cast<void*>(mr_ptr));
    }
    if (usage == 0 || (usage & ~kAllUsages) != 0) {
        return RPMA_REFUSE("rpma_mr_reg(): usage = 0x%x; at least one of RPMA_MR_USAGE_* (0x%x), "
                           "and nothing else",
                           static_cast<unsigned>(usage), static_cast<unsigned>(kAllUsages));
    }
    return guarded(__func__, [&] {
        auto mr = std::make_unique<rpma_mr_local>();
        mr->peer = peer->shared_from_this();
        mr->base = ptr;
        mr->size = size;
        mr->usage = usage;
        mr->soft = peer->device.is_soft();
        if (const int rc = fi_mr_reg(peer->domain.get(), ptr, size, access_for(usage), 0, 0, 0,
                                     mr->mr.out(), nullptr)) {
            return RPMA_FAILURE("rpma_mr_reg()", rc);
        }
        if ((usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) != 0) {
            if (const int rc = make_durable(*peer, *mr)) {
                return rc;
            }
        }
        *mr_ptr = mr.release();
        return 0;
    });
}

int rpma_mr_dereg(struct rpma_mr_local** mr_ptr) {
    if (!mr_ptr) {
        return RPMA_REFUSE("rpma_mr_dereg(): mr_ptr is NULL");
    }
    const std::unique_ptr<rpma_mr_local> mr(*mr_ptr);
    *mr_ptr = nullptr;
    if (const int rc = mr ? mr->mr.reset() : 0) {
        return RPMA_FAILURE("rpma_mr_dereg()", rc);
    }
    return 0;
}

int rpma_mr_get_descriptor(const struct rpma_mr_local* mr, void* desc) {
    if (is_missing(mr, desc)) {
        return RPMA_REFUSE("rpma_mr_get_descriptor(): %s is NULL", mr ? "desc" : "mr");
    }
    const std::uint64_t key = fi_mr_key(mr->mr.get());
    const Descriptor made{htole64(reinterpret_cast<std::uintptr_t>(mr->base)), htole64(mr->size),
                          htole32(key == FI_KEY_NOTAVAIL ? 0 : static_cast<std::uint32_t>(key)),
                          static_cast<std::uint8_t>(mr->usage)};
    std::memcpy(desc, &made, sizeof made);
    return 0;
}

int rpma_mr_get_descriptor_size(const struct rpma_mr_local* mr, size_t* desc_size) {
    if (is_missing(mr, desc_size)) {
        return RPMA_REFUSE("rpma_mr_get_descriptor_size(): %s is NULL", mr ? "desc_size" : "mr");
    }
    *desc_size = sizeof(Descriptor);
    return 0;
}

int rpma_mr_get_ptr(const struct rpma_mr_local* mr, void** ptr) {
    if (is_missing(mr, ptr)) {
        return RPMA_REFUSE("rpma_mr_get_ptr(): %s is NULL", mr ? "ptr" : "mr");
    }
    *ptr = mr->base;
    return 0;
}

int rpma_mr_get_size(const struct rpma_mr_local* mr, size_t* size) {
    if (is_missing(mr, size)) {
        return RPMA_REFUSE("rpma_mr_get_size(): %s is NULL", mr ? "size" : "mr");
    }
    *size = mr->size;
    return 0;
}

int rpma_mr_advise(struct rpma_mr_local* mr, size_t offset, size_t len, int advice,
                   uint32_t flags) {
    if (!mr || !mr->has(offset, len)) {
        return RPMA_REFUSE("rpma_mr_advise(): mr = %p, offset = %zu, len = %zu; it has %zu bytes",
                           static_cast<void*>(mr), offset, len, mr ? mr->size : 0);
    }
    if (!mr->soft || advice < IBV_ADVISE_MR_ADVICE_PREFETCH ||
        advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
        return RPMA_FAIL(RPMA_E_NOSUPP,
                         "rpma_mr_advise(): advice = %d, flags = 0x%x: memory of a device is not "
                         "paged on demand, and elsewhere there are IBV_ADVISE_MR_ADVICE_PREFETCH, "
                         "_PREFETCH_WRITE and _PREFETCH_NO_FAULT",
                         advice, flags);
    }
    fetch(mr->at(offset), len);
    return 0;
}

int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size,
                                   struct rpma_mr_remote** mr_ptr) {
    if (is_missing(desc, mr_ptr)) {
        return RPMA_REFUSE("rpma_mr_remote_from_descriptor(): %s is NULL",
                           desc ? "mr_ptr" : "desc");
    }
    if (desc_size < sizeof(Descriptor)) {
        return RPMA_REFUSE("rpma_mr_remote_from_descriptor(): desc_size = %zu; a descriptor has "
                           "%zu bytes",
                           desc_size, sizeof(Descriptor));
    }
    Descriptor given;
    std::memcpy(&given, desc, sizeof given);
    if (given.usage == 0) {
        return RPMA_REFUSE("rpma_mr_remote_from_descriptor(): the usage in it is 0: this is no "
                           "descriptor of a region");
    }
    return guarded(__func__, [&] {
        *mr_ptr = new rpma_mr_remote{le64toh(given.address), le64toh(given.size),
                                     le32toh(given.key), given.usage};
        return 0;
    });
}

int rpma_mr_remote_get_size(const struct rpma_mr_remote* mr, size_t* size) {
    if (is_missing(mr, size)) {
        return RPMA_REFUSE("rpma_mr_remote_get_size(): %s is NULL", mr ? "size" : "mr");
    }
    *size = mr->size;
    return 0;
}

int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote* mr, int* flush_type) {
    if (is_missing(mr, flush_type)) {
        return RPMA_REFUSE("rpma_mr_remote_get_flush_type(): %s is NULL", mr ? "flush_type" : "mr");
    }
    *flush_type = mr->usage & kFlushUsages;
    return 0;
}

int rpma_mr_remote_delete(struct rpma_mr_remote** mr_ptr) {
    if (!mr_ptr) {
        return RPMA_REFUSE("rpma_mr_remote_delete(): mr_ptr is NULL");
    }
    delete *mr_ptr;
    *mr_ptr = nullptr;
    return 0;
}

} // extern "C"
