// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Interface adapters, and what all objects have.
#include "dat-shim/evd.h"
#include "dat-shim/registry.h"
#include "dat-shim/udat/entry.h"

#include <cstring>
#include <string>
#include <string_view>

namespace dat::shim::udat {
namespace {

// IA-4
std::string without_prefix(std::string_view name) {
    constexpr std::string_view kRelaxedOrdering = "RO_AWARE_";
    return std::string(name.starts_with(kRelaxedOrdering) ? name.substr(kRelaxedOrdering.size())
                                                          : name);
}

} // namespace

Return read_async(DAT_EVD_HANDLE async, Ia::Opening& opening) {
    opening.async_elsewhere = async == DAT_EVD_ASYNC_EXISTS;
    if (!opening.async_elsewhere && async != DAT_HANDLE_NULL) {
        opening.async = lookup<Evd>(async);
        if (!opening.async || (opening.async->streams() & stream::kAsync) == 0) {
            return bad_handle(Sub::invalid_handle_evd_async);
        }
    }
    return kSuccess;
}

Return open(const Ia::Opening& opening, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* handle, bool named) {
    Ia* ia = nullptr;
    if (const Return rc = Ia::open(opening, ia)) {
        return rc;
    }
    if (named && !enter_ia(*ia)) {
        ia->begin_closing(false);
        ia->close();
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
    *handle = ia->public_handle();
    if (opening.async_elsewhere) {
        *async = DAT_EVD_OUT_OF_SCOPE;
    } else if (!opening.async) {
        *async = ia->async_evd()->handle();
    }
    return kSuccess;
}

} // namespace dat::shim::udat

using namespace dat::shim;
using namespace dat::shim::udat;

extern "C" {

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
                        DAT_EVD_HANDLE* async_evd_handle, DAT_IA_HANDLE* ia_handle,
                        DAT_UINT32 dapl_major, DAT_UINT32 dapl_minor, DAT_BOOLEAN thread_safety) {
    return answer([&] {
        if (!name || std::strlen(name) >= DAT_NAME_MAX_LENGTH) {
            return bad_argument(1);
        }
        if (async_evd_min_qlen < 0) {
            return bad_argument(2);
        }
        if (!async_evd_handle) {
            return bad_argument(3);
        }
        if (!ia_handle) {
            return bad_ia();
        }
        Ia::Opening opening;
        opening.name = without_prefix(name);
        opening.dispatch = &provider_table;
        opening.major = DAT_VERSION_MAJOR;
        opening.async_length = async_evd_min_qlen;
        if (const Return rc = read_async(*async_evd_handle, opening)) {
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
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        if ((ia_attr_mask & ~DAT_IA_FIELD_ALL) != 0 || (ia_attr_mask != 0 && !ia_attr)) {
            return bad_argument(ia_attr_mask != 0 && !ia_attr ? 4 : 3);
        }
        if ((provider_attr_mask & ~DAT_PROVIDER_FIELD_ALL) != 0 ||
            (provider_attr_mask != 0 && !provider_attr)) {
            return bad_argument(provider_attr_mask != 0 && !provider_attr ? 6 : 5);
        }
        if (async_evd_handle) {
            *async_evd_handle = ia->async_evd() ? ia->async_evd()->handle() : DAT_EVD_OUT_OF_SCOPE;
        }
        describe(*ia, ia_attr_mask ? ia_attr : nullptr,
                 provider_attr_mask ? provider_attr : nullptr);
        return kSuccess;
    });
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags) {
    return answer([&] {
        Ia* const ia = find_ia(ia_handle);
        if (!ia) {
            return bad_ia();
        }
        if (close_flags != DAT_CLOSE_ABRUPT_FLAG && close_flags != DAT_CLOSE_GRACEFUL_FLAG) {
            return bad_argument(2); // IA-10
        }
        if (const Return rc = ia->begin_closing(close_flags == DAT_CLOSE_GRACEFUL_FLAG)) {
            return rc;
        }
        leave_ia(*ia);
        ia->close();
        return kSuccess;
    });
}

// HND-1, CTX-1: any object.
DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE* handle_type) {
    return answer([&] {
        const Ia* const ia = find_ia(dat_handle);
        const Object* const object = ia ? ia : find_any(dat_handle);
        if (!object) {
            return fail(Type::invalid_handle);
        }
        if (!handle_type) {
            return bad_argument(2);
        }
        *handle_type = static_cast<DAT_HANDLE_TYPE>(static_cast<std::uint32_t>(object->kind()) - 1);
        return kSuccess;
    });
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context) {
    return answer([&] {
        Ia* const ia = find_ia(dat_handle);
        Object* const object = ia ? ia : find_any(dat_handle);
        if (!object) {
            return fail(Type::invalid_handle);
        }
        object->context = context.as_64;
        return kSuccess;
    });
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT* context) {
    return answer([&] {
        Ia* const ia = find_ia(dat_handle);
        const Object* const object = ia ? ia : find_any(dat_handle);
        if (!object) {
            return fail(Type::invalid_handle);
        }
        if (!context) {
            return bad_argument(2);
        }
        context->as_64 = object->context;
        return kSuccess;
    });
}

DAT_SHIM_EXPORT(dat_ia_openv);
DAT_SHIM_EXPORT(dat_ia_query);
DAT_SHIM_EXPORT(dat_ia_close);
DAT_SHIM_EXPORT(dat_get_handle_type);
DAT_SHIM_EXPORT(dat_set_consumer_context);
DAT_SHIM_EXPORT(dat_get_consumer_context);

} // extern "C"
