// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Atomics, fi_atomic(3), on what RFC 7306 carries: one 8-byte integer, added to or
// replaced in part under a condition.
#include "ofi/atomic.h"

#include "base/log.h"
#include "ofi/no_op.h"
#include "ofi/post.h"

namespace dat::ofi {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

// The three families of calls; the values are the flags of fi_query_atomic().
enum Family : std::uint64_t { kBase = 0, kFetch = FI_FETCH_ATOMIC, kCompare = FI_COMPARE_ATOMIC };

bool offered(Family family, fi_datatype type, fi_op op) {
    if (type != FI_INT64 && type != FI_UINT64) {
        return false;
    }
    switch (op) {
    case FI_SUM:
    case FI_BOR:
    case FI_BAND:
    case FI_ATOMIC_WRITE:
        return family != kCompare;
    case FI_ATOMIC_READ:
        return family == kFetch;
    case FI_CSWAP:
    case FI_MSWAP:
        return family == kCompare;
    default:
        return false;
    }
}

// A device has InfiniBand's two: add, and swap if equal, of all bits.
bool offered(Domain& domain, Family family, fi_datatype type, fi_op op) {
    if (verbs::Domain* device = domain.device();
        device &&
        (!device->device().atomics || (op != FI_SUM && op != FI_ATOMIC_READ && op != FI_CSWAP))) {
        return false;
    }
    return offered(family, type, op);
}

int refuse_atomic(const char* call, fi_datatype type, fi_op op) {
    DAT_WARN(ep_data,
             "%s: datatype = %d, op = %d are not offered; FI_INT64 and FI_UINT64 with FI_SUM, "
             "FI_BOR, FI_BAND, FI_ATOMIC_WRITE, to fetch also FI_ATOMIC_READ, to compare FI_CSWAP "
             "and FI_MSWAP are; over an RDMA device that has atomics FI_SUM, FI_ATOMIC_READ and "
             "FI_CSWAP",
             call, static_cast<int>(type), static_cast<int>(op));
    return -FI_EOPNOTSUPP;
}

int refuse_shape(const char* call) {
    DAT_WARN(ep_data,
             "%s: operand, result, comparand and target have to be one value of 8 bytes each",
             call);
    return -FI_EINVAL;
}

std::uint64_t load(const void* value) {
    std::uint64_t loaded = 0;
    std::memcpy(&loaded, value, sizeof loaded);
    return loaded;
}

// An atomic as the caller described it; pointers are to one value each.
struct Asked {
    const char* call;
    Family family;
    fi_datatype type;
    fi_op op;
    const void* operand;
    const void* compare; // kCompare
    void* result;        // kFetch, kCompare
    std::uint64_t address;
    std::uint64_t key;
    void* context;
    std::uint64_t flags;
    engine::Role role = engine::Role::alone;
};

engine::AtomicOperands operands_of(const Asked& asked) {
    const std::uint64_t value = asked.op == FI_ATOMIC_READ ? 0 : load(asked.operand);
    switch (asked.op) {
    case FI_ATOMIC_WRITE:
        return {value, kAllBits, 0, 0};
    case FI_BOR:
        return {value, value, 0, 0};
    case FI_BAND:
        return {0, ~value, 0, 0};
    case FI_CSWAP:
        return {value, kAllBits, load(asked.compare), kAllBits};
    case FI_MSWAP:
        return {value, load(asked.compare), 0, 0};
    default: // FI_SUM, FI_ATOMIC_READ
        return {value, 0, 0, 0};
    }
}

constexpr std::size_t kValue = sizeof(std::uint64_t);

template <class Path> ssize_t submit_atomic(fid_ep* ep, const Asked& asked) {
    if (!offered(ep_of(ep).domain(), asked.family, asked.type, asked.op)) {
        return refuse_atomic(asked.call, asked.type, asked.op);
    }
    if ((!asked.operand && asked.op != FI_ATOMIC_READ) ||
        (asked.family == kCompare && !asked.compare) || (asked.family != kBase && !asked.result)) {
        return refuse_shape(asked.call);
    }
    const iovec read[] = {{const_cast<void*>(asked.operand), asked.operand ? kValue : 0},
                          {const_cast<void*>(asked.compare), asked.compare ? kValue : 0}};
    if (const int rc = check_memory<Path>(asked.call, read, 2, engine::Touch::read)) {
        return rc;
    }
    const engine::AtomicOperands operands = operands_of(asked);
    const bool adds = asked.op == FI_SUM || asked.op == FI_ATOMIC_READ;
    const iovec result{asked.result, sizeof(std::uint64_t)};
    return submit<Path>(
        asked.call, ep,
        {.op = adds ? engine::OpCode::fetch_add : engine::OpCode::compare_swap,
         .completion_flags = FI_ATOMIC | (asked.family == kBase ? FI_WRITE : FI_READ),
         .iov = &result,
         .count = asked.family == kBase ? std::size_t{0} : std::size_t{1},
         .length = sizeof(std::uint64_t),
         .context = asked.context,
         .flags = asked.flags,
         .address = asked.address,
         .key = asked.key,
         .role = asked.role,
         .operands = &operands});
}

// The calls over one Path.
template <class Path> struct Atomics {
    static ssize_t write(fid_ep* ep, const void* buf, std::size_t count, void*, fi_addr_t,
                         std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                         void* context) {
        return count != 1
                   ? refuse_shape("fi_atomic()")
                   : submit_atomic<Path>(ep, {"fi_atomic()", kBase, type, op, buf, nullptr, nullptr,
                                              address, key, context, ep_of(ep).tx_flags()});
    }

    static ssize_t writev(fid_ep* ep, const fi_ioc* iov, void** desc, std::size_t count,
                          fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type,
                          fi_op op, void* context) {
        return count != 1 ? refuse_shape("fi_atomicv()")
                          : write(ep, iov[0].addr, iov[0].count, desc, to, address, key, type, op,
                                  context);
    }

    static ssize_t inject(fid_ep* ep, const void* buf, std::size_t count, fi_addr_t,
                          std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op) {
        return count != 1
                   ? refuse_shape("fi_inject_atomic()")
                   : submit_atomic<Path>(ep, {"fi_inject_atomic()", kBase, type, op, buf, nullptr,
                                              nullptr, address, key, nullptr,
                                              ep_of(ep).injected_flags(), engine::Role::silent});
    }

    // What the calls with a message have in common.
    static ssize_t message(const char* call, Family family, fid_ep* ep, const fi_msg_atomic& msg,
                           const fi_ioc* compare, std::size_t compare_count, fi_ioc* result,
                           std::size_t result_count, std::uint64_t flags) {
        if (const int rc = check(call, 1, flags, kRequestFlags)) {
            return rc;
        }
        const bool reads = msg.op == FI_ATOMIC_READ; // without an operand
        if ((!reads && (msg.iov_count != 1 || msg.msg_iov[0].count != 1)) ||
            msg.rma_iov_count != 1 || msg.rma_iov[0].count != 1 ||
            (family == kCompare && (compare_count != 1 || compare[0].count != 1)) ||
            (family != kBase && (result_count != 1 || result[0].count != 1))) {
            return refuse_shape(call);
        }
        return submit_atomic<Path>(
            ep, {call, family, msg.datatype, msg.op, reads ? nullptr : msg.msg_iov[0].addr,
                 family == kCompare ? compare[0].addr : nullptr,
                 family != kBase ? result[0].addr : nullptr, msg.rma_iov[0].addr,
                 msg.rma_iov[0].key, msg.context, flags});
    }

    static ssize_t writemsg(fid_ep* ep, const fi_msg_atomic* msg, std::uint64_t flags) {
        return message("fi_atomicmsg()", kBase, ep, *msg, nullptr, 0, nullptr, 0, flags);
    }

    static ssize_t readwrite(fid_ep* ep, const void* buf, std::size_t count, void*, void* result,
                             void*, fi_addr_t, std::uint64_t address, std::uint64_t key,
                             fi_datatype type, fi_op op, void* context) {
        return count != 1
                   ? refuse_shape("fi_fetch_atomic()")
                   : submit_atomic<Path>(ep, {"fi_fetch_atomic()", kFetch, type, op, buf, nullptr,
                                              result, address, key, context, ep_of(ep).tx_flags()});
    }

    static ssize_t readwritev(fid_ep* ep, const fi_ioc* iov, void**, std::size_t count,
                              fi_ioc* result, void**, std::size_t result_count, fi_addr_t,
                              std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                              void* context) {
        const bool reads = op == FI_ATOMIC_READ;
        if ((!reads && (count != 1 || iov[0].count != 1)) || result_count != 1 ||
            result[0].count != 1) {
            return refuse_shape("fi_fetch_atomicv()");
        }
        return readwrite(ep, reads ? nullptr : iov[0].addr, 1, nullptr, result[0].addr, nullptr, 0,
                         address, key, type, op, context);
    }

    static ssize_t readwritemsg(fid_ep* ep, const fi_msg_atomic* msg, fi_ioc* result, void**,
                                std::size_t result_count, std::uint64_t flags) {
        return message("fi_fetch_atomicmsg()", kFetch, ep, *msg, nullptr, 0, result, result_count,
                       flags);
    }

    static ssize_t compwrite(fid_ep* ep, const void* buf, std::size_t count, void*,
                             const void* compare, void*, void* result, void*, fi_addr_t,
                             std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                             void* context) {
        return count != 1 ? refuse_shape("fi_compare_atomic()")
                          : submit_atomic<Path>(ep, {"fi_compare_atomic()", kCompare, type, op, buf,
                                                     compare, result, address, key, context,
                                                     ep_of(ep).tx_flags()});
    }

    static ssize_t compwritev(fid_ep* ep, const fi_ioc* iov, void**, std::size_t count,
                              const fi_ioc* compare, void**, std::size_t compare_count,
                              fi_ioc* result, void**, std::size_t result_count, fi_addr_t,
                              std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                              void* context) {
        if (count != 1 || iov[0].count != 1 || compare_count != 1 || compare[0].count != 1 ||
            result_count != 1 || result[0].count != 1) {
            return refuse_shape("fi_compare_atomicv()");
        }
        return compwrite(ep, iov[0].addr, 1, nullptr, compare[0].addr, nullptr, result[0].addr,
                         nullptr, 0, address, key, type, op, context);
    }

    static ssize_t compwritemsg(fid_ep* ep, const fi_msg_atomic* msg, const fi_ioc* compare, void**,
                                std::size_t compare_count, fi_ioc* result, void**,
                                std::size_t result_count, std::uint64_t flags) {
        return message("fi_compare_atomicmsg()", kCompare, ep, *msg, compare, compare_count, result,
                       result_count, flags);
    }

    static constexpr fi_ops_atomic ops();
};

template <Family F> int valid(fid_ep* ep, fi_datatype type, fi_op op, std::size_t* count) {
    if (!count || !offered(ep_of(ep).domain(), F, type, op)) {
        return -FI_EOPNOTSUPP;
    }
    *count = 1;
    return 0;
}

template <class Path> constexpr fi_ops_atomic Atomics<Path>::ops() {
    return {
        .size = sizeof(fi_ops_atomic),
        .write = write,
        .writev = writev,
        .writemsg = writemsg,
        .inject = inject,
        .readwrite = readwrite,
        .readwritev = readwritev,
        .readwritemsg = readwritemsg,
        .compwrite = compwrite,
        .compwritev = compwritev,
        .compwritemsg = compwritemsg,
        .writevalid = valid<kBase>,
        .readwritevalid = valid<kFetch>,
        .compwritevalid = valid<kCompare>,
    };
}

} // namespace

int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* attr,
                 std::uint64_t flags) {
    if (flags != kBase && flags != kFetch && flags != kCompare) {
        DAT_WARN(domain,
                 "fi_query_atomic(): flags = 0x%llx; one of FI_FETCH_ATOMIC and FI_COMPARE_ATOMIC, "
                 "or neither",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    if (!offered(domain_of(domain), static_cast<Family>(flags), type, op)) {
        return -FI_EOPNOTSUPP; // a question, not a mistake
    }
    attr->count = 1;
    attr->size = sizeof(std::uint64_t);
    return 0;
}

fi_ops_atomic atomic_ops_unconnected = Atomics<Unlinked>::ops();
fi_ops_atomic atomic_ops_iwarp = Atomics<OverIwarp>::ops();
fi_ops_atomic atomic_ops_shm = Atomics<OverShm>::ops();
fi_ops_atomic atomic_ops_verbs = Atomics<OverVerbs>::ops();
fi_ops_atomic atomic_ops_checked = Atomics<CheckedPath>::ops();

#define DAT_NO(slot) .slot = DAT_NOT_ENABLED(fi_ops_atomic, slot)
fi_ops_atomic atomic_ops_not_enabled = {
    .size = sizeof(fi_ops_atomic),
    DAT_NO(write),
    DAT_NO(writev),
    DAT_NO(writemsg),
    DAT_NO(inject),
    DAT_NO(readwrite),
    DAT_NO(readwritev),
    DAT_NO(readwritemsg),
    DAT_NO(compwrite),
    DAT_NO(compwritev),
    DAT_NO(compwritemsg),
    .writevalid = valid<kBase>,
    .readwritevalid = valid<kFetch>,
    .compwritevalid = valid<kCompare>,
};
#undef DAT_NO

} // namespace dat::ofi
