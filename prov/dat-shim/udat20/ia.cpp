// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Interface adapters, and what all objects have. May include: dat-shim, dat headers.
#include "dat-shim/evd.h"
#include "dat-shim/registry.h"
#include "dat-shim/udat20/entry.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

namespace dat::shim::udat20 {
namespace {

// IAs by their numbers, from 1. A number is used again as late as possible.
constexpr std::size_t kMostIas = 4095;
constinit std::mutex g_mutex;
constinit std::array<std::atomic<Ia*>, kMostIas + 1> g_ias{};
constinit std::size_t g_last = 0; // guarded by g_mutex

std::size_t number_of(DAT_IA_HANDLE handle) { return reinterpret_cast<std::uintptr_t>(handle); }

// False: there are too many.
bool enter(Ia& ia) {
    const std::lock_guard lock(g_mutex);
    for (std::size_t i = 0; i < kMostIas; ++i) {
        g_last = g_last % kMostIas + 1;
        if (!g_ias[g_last]) {
            ia.set_number(reinterpret_cast<void*>(g_last));
            g_ias[g_last] = &ia;
            return true;
        }
    }
    return false;
}

void leave(const Ia& ia) {
    const std::size_t number = number_of(ia.public_handle());
    if (number <= kMostIas) {
        g_ias[number] = nullptr;
    }
}

constexpr const char* kRelaxedOrdering = "RO_AWARE_"; // IA-4

// Fills in what the Consumer says of the asynchronous EVD (IA-2).
DAT_RETURN read_async(DAT_EVD_HANDLE async, Ia::Opening& opening) {
    opening.async_elsewhere = async == DAT_EVD_ASYNC_EXISTS;
    if (!opening.async_elsewhere && async != DAT_HANDLE_NULL) {
        opening.async = lookup<Evd>(async);
        if (!opening.async || (opening.async->streams() & stream::kAsync) == 0) {
            return bad_handle(Sub::invalid_handle_evd_async);
        }
    }
    return DAT_SUCCESS;
}

DAT_RETURN open(const Ia::Opening& opening, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* handle,
                bool numbered) {
    Ia* ia = nullptr;
    if (const Return rc = Ia::open(opening, ia)) {
        return rc;
    }
    if (numbered && !enter(*ia)) {
        ia->close();
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
    *handle = ia->public_handle();
    if (opening.async_elsewhere) {
        *async = DAT_EVD_OUT_OF_SCOPE;
    } else if (!opening.async) {
        *async = ia->async_evd()->handle();
    }
    return DAT_SUCCESS;
}

std::string without_prefix(std::string name) {
    if (name.starts_with(kRelaxedOrdering)) {
        name.erase(0, std::strlen(kRelaxedOrdering));
    }
    return name;
}

} // namespace

Ia* find_ia(DAT_IA_HANDLE handle) {
    const std::size_t number = number_of(handle);
    return number <= kMostIas ? g_ias[number].load() : find<Ia>(handle);
}

DAT_RETURN open_as_provider(const std::string& name, const std::string& device, DAT_COUNT qlen,
                            DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia) {
    Ia::Opening opening;
    opening.name = name;
    opening.device = device;
    opening.dispatch = &provider_table;
    opening.async_length = qlen;
    if (const DAT_RETURN rc = read_async(*async, opening)) {
        return rc;
    }
    if (opening.device.empty()) {
        if (const Return rc = resolve(name, 2, 2, 0, false, opening.device)) {
            return rc;
        }
    }
    return open(opening, async, ia, false);
}

} // namespace dat::shim::udat20

using namespace dat::shim;
using namespace dat::shim::udat20;

extern "C" {

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
                        DAT_EVD_HANDLE* async_evd_handle, DAT_IA_HANDLE* ia_handle,
                        DAT_UINT32 dapl_major, DAT_UINT32 dapl_minor, DAT_BOOLEAN thread_safety) {
    if (!name) {
        return bad_argument(1);
    }
    if (async_evd_min_qlen < 0) {
        return bad_argument(2);
    }
    if (!async_evd_handle || !ia_handle) {
        return bad_argument(async_evd_handle ? 4 : 3);
    }
    return guarded([&] {
        Ia::Opening opening;
        opening.name = without_prefix(name);
        opening.dispatch = &provider_table;
        opening.async_length = async_evd_min_qlen;
        if (const DAT_RETURN rc = read_async(*async_evd_handle, opening)) {
            return rc;
        }
        if (const Return rc = resolve(opening.name, DAT_VERSION_MAJOR, dapl_major, dapl_minor,
                                      thread_safety != DAT_FALSE, opening.device)) {
            return rc;
        }
        return open(opening, async_evd_handle, ia_handle, true);
    });
}

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd_handle,
                        DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR* ia_attr,
                        DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                        DAT_PROVIDER_ATTR* provider_attr) {
    Ia* const ia = find_ia(ia_handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if ((ia_attr_mask & ~DAT_IA_FIELD_ALL) != 0 || (ia_attr_mask != 0 && !ia_attr)) {
        return bad_argument(ia_attr_mask != 0 && !ia_attr ? 4 : 3);
    }
    if ((provider_attr_mask & ~DAT_PROVIDER_FIELD_ALL) != 0 ||
        (provider_attr_mask != 0 && !provider_attr)) {
        return bad_argument(provider_attr_mask != 0 && !provider_attr ? 6 : 5);
    }
    return guarded([&] {
        if (async_evd_handle) {
            *async_evd_handle = ia->async_evd() ? ia->async_evd()->handle() : DAT_EVD_OUT_OF_SCOPE;
        }
        describe(*ia, ia_attr_mask ? ia_attr : nullptr,
                 provider_attr_mask ? provider_attr : nullptr);
        return DAT_RETURN{DAT_SUCCESS};
    });
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags) {
    Ia* const ia = find_ia(ia_handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if (close_flags != DAT_CLOSE_ABRUPT_FLAG && close_flags != DAT_CLOSE_GRACEFUL_FLAG) {
        return bad_argument(2); // IA-10
    }
    return guarded([&] {
        if (const Return rc = ia->may_close(close_flags == DAT_CLOSE_GRACEFUL_FLAG)) {
            return rc;
        }
        leave(*ia);
        ia->close();
        return kSuccess;
    });
}

// HND-1, CTX-1: any object.
DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE* handle_type) {
    const Ia* const ia = find_ia(dat_handle);
    const Object* const object = ia ? ia : find_any(dat_handle);
    if (!object) {
        return fail(Type::invalid_handle);
    }
    if (!handle_type) {
        return bad_argument(2);
    }
    *handle_type = static_cast<DAT_HANDLE_TYPE>(static_cast<std::uint32_t>(object->kind()) - 1);
    return DAT_SUCCESS;
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context) {
    Ia* const ia = find_ia(dat_handle);
    Object* const object = ia ? ia : find_any(dat_handle);
    if (!object) {
        return fail(Type::invalid_handle);
    }
    object->context = context.as_64;
    return DAT_SUCCESS;
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT* context) {
    Ia* const ia = find_ia(dat_handle);
    const Object* const object = ia ? ia : find_any(dat_handle);
    if (!object) {
        return fail(Type::invalid_handle);
    }
    if (!context) {
        return bad_argument(2);
    }
    context->as_64 = object->context;
    return DAT_SUCCESS;
}

// The number that a program knows becomes the handle that a provider knows, and back.
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia_handle) {
    const Ia* const ia = find_ia(handle);
    if (!ia) {
        return bad_handle(Sub::invalid_handle_ia);
    }
    if (!ia_handle) {
        return bad_argument(2);
    }
    *ia_handle = handle == ia->handle() ? ia->public_handle() : ia->handle();
    return DAT_SUCCESS;
}

} // extern "C"
