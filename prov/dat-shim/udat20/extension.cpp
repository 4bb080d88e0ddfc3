// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_extension_op: immediate data, atomics, counters, and a look at an adapter. What is
// InfiniBand's alone (datagrams, collectives) answers that it is not there.
#include "dat-shim/ep.h"
#include "dat-shim/evd.h"
#include "dat-shim/udat/entry.h"
#include "engine/kernel.h"

#include <dat2/dat_ib_extensions.h>

#include <cstdarg>
#include <cstdio>

namespace dat::shim::udat {
namespace {

Return fetch_add(DAT_HANDLE handle, va_list args) {
    Ep* const ep = lookup<Ep>(handle);
    const auto add = va_arg(args, DAT_UINT64);
    const auto* const local = va_arg(args, DAT_LMR_TRIPLET*);
    const auto cookie = va_arg(args, DAT_DTO_COOKIE);
    const auto* const remote = va_arg(args, DAT_RMR_TRIPLET*);
    const auto flags = bits(va_arg(args, int));
    if (!ep) {
        return bad_ep();
    }
    return local && remote ? ep->post_atomic(*local, *remote, add, nullptr, cookie.as_64, flags)
                           : bad_argument(local ? 6 : 4);
}

Return compare_swap(DAT_HANDLE handle, va_list args) {
    Ep* const ep = lookup<Ep>(handle);
    const std::uint64_t compare = va_arg(args, DAT_UINT64);
    const auto swap = va_arg(args, DAT_UINT64);
    const auto* const local = va_arg(args, DAT_LMR_TRIPLET*);
    const auto cookie = va_arg(args, DAT_DTO_COOKIE);
    const auto* const remote = va_arg(args, DAT_RMR_TRIPLET*);
    const auto flags = bits(va_arg(args, int));
    if (!ep) {
        return bad_ep();
    }
    return local && remote ? ep->post_atomic(*local, *remote, swap, &compare, cookie.as_64, flags)
                           : bad_argument(local ? 7 : 5);
}

Return write_immediate(DAT_HANDLE handle, va_list args) {
    Ep* const ep = lookup<Ep>(handle);
    const auto count = va_arg(args, DAT_COUNT);
    const auto* const local = va_arg(args, DAT_LMR_TRIPLET*);
    const auto cookie = va_arg(args, DAT_DTO_COOKIE);
    const auto* const remote = va_arg(args, DAT_RMR_TRIPLET*);
    const std::uint32_t immediate = va_arg(args, DAT_UINT32);
    const auto flags = bits(va_arg(args, int));
    if (!ep) {
        return bad_ep();
    }
    return remote ? ep->post_write_immediate(count, local, cookie.as_64, *remote, flags, immediate)
                  : bad_argument(6);
}

// How many counters an object of that kind has; 0: none.
int counters_of(const Object& object) {
    switch (object.kind()) {
    case Kind::ia:
        return DCNT_IA_ALL_COUNTERS;
    case Kind::ep:
        return DCNT_EP_ALL_COUNTERS;
    case Kind::evd:
        return DCNT_EVD_ALL_COUNTERS;
    default:
        return 0;
    }
}

// Counting on the path of a post would cost more than it tells: what is known without it
// is told, the rest is 0. Both have 32 bits, and begin anew behind them; neither is reset.
DAT_UINT64 counter(const Object& object, int which) {
    if (object.kind() == Kind::ep) {
        const Ep& ep = static_cast<const Ep&>(object);
        switch (which) {
        case DCNT_EP_POST_SEND: // with RDMA, atomics and binds: they are in one ring
            return ep.posted_requests();
        case DCNT_EP_POST_RECV: // not those of a shared queue
            return ep.posted_receives();
        default:
            return 0;
        }
    }
    return 0;
}

Return query_counters(DAT_HANDLE handle, va_list args) {
    const Ia* const ia = find_ia(handle);
    const Object* const object = ia ? ia : find_any(handle);
    const int which = va_arg(args, int);
    auto* const out = va_arg(args, DAT_UINT64*);
    if (!object) {
        return fail(Type::invalid_handle);
    }
    const int all = counters_of(*object);
    if (which < 0 || which > all || all == 0 || !out) {
        return bad_argument(out ? 3 : 4);
    }
    for (int i = which == all ? 0 : which; i < (which == all ? all : which + 1); ++i) {
        out[which == all ? i : 0] = counter(*object, i);
    }
    return kSuccess;
}

Return print_counters(DAT_HANDLE handle, va_list args) {
    const Ia* const ia = find_ia(handle);
    const Object* const object = ia ? ia : find_any(handle);
    const int which = va_arg(args, int);
    if (!object) {
        return fail(Type::invalid_handle);
    }
    const int all = counters_of(*object);
    if (which < 0 || which > all || all == 0) {
        return bad_argument(3);
    }
    const char* const kind = object->kind() == Kind::ia   ? "IA"
                             : object->kind() == Kind::ep ? "EP"
                                                          : "EVD";
    for (int i = which == all ? 0 : which; i < (which == all ? all : which + 1); ++i) {
        if (const DAT_UINT64 value = counter(*object, i)) {
            kernel::uncancelled(std::printf, "%s counter %d: %llu\n", kind, i,
                                static_cast<unsigned long long>(value));
        }
    }
    return kSuccess;
}

// Of entry points.
DAT_RETURN open_query(va_list args) {
    const auto name = va_arg(args, DAT_NAME_PTR);
    auto* const ia = va_arg(args, DAT_HANDLE*);
    const auto ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
    auto* const ia_attr = va_arg(args, DAT_IA_ATTR*);
    const auto provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);
    auto* const provider_attr = va_arg(args, DAT_PROVIDER_ATTR*);
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    if (const DAT_RETURN rc = dat_ia_open(name, 8, &async, ia)) {
        return rc;
    }
    const DAT_RETURN rc = dat_ia_query(*ia, &async, ia_mask, ia_attr, provider_mask, provider_attr);
    if (rc != DAT_SUCCESS) {
        dat_ia_close(*ia, DAT_CLOSE_ABRUPT_FLAG);
    }
    return rc;
}

Return own_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list args) {
    switch (operation) {
    case DAT_IB_FETCH_AND_ADD_OP:
        return fetch_add(handle, args);
    case DAT_IB_CMP_AND_SWAP_OP:
        return compare_swap(handle, args);
    case DAT_IB_RDMA_WRITE_IMMED_OP:
        return write_immediate(handle, args);
    case DAT_IB_QUERY_COUNTERS_OP:
        return query_counters(handle, args);
    case DAT_IB_PRINT_COUNTERS_OP:
        return print_counters(handle, args);
    case DAT_IB_UD_SEND_OP:
    case DAT_IB_UD_CM_FREE_OP:
    case DAT_IB_UD_AH_FREE_OP:
        return fail(Type::model_not_supported);
    default:
        return fail(Type::not_implemented);
    }
}

} // namespace

DAT_RETURN extended_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list args) {
    switch (operation) {
    case DAT_IB_OPEN_QUERY_OP:
        return open_query(args);
    case DAT_IB_CLOSE_QUERY_OP:
        return dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG);
    default:
        return answer([&] { return own_op(handle, operation, args); }, "dat_extension_op");
    }
}

} // namespace dat::shim::udat

extern "C" DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, ...) {
    va_list args;
    va_start(args, operation);
    const DAT_RETURN rc = dat::shim::udat::extended_op(handle, operation, args);
    va_end(args);
    return rc;
}
