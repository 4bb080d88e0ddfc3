// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the entry points of uDAPL 2.0 share: they find the objects behind handles, check
// pointers, translate structures, and let nothing be thrown into C.
// May include: dat-shim, dat headers.
#ifndef DAT_SHIM_UDAT20_ENTRY_H
#define DAT_SHIM_UDAT20_ENTRY_H

#include "dat-shim/codes.h"
#include "dat-shim/event.h"
#include "dat-shim/ia.h"

#include <dat2/udat.h>

#include <dat2/dat_registry.h>

#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <type_traits>

namespace dat::shim::udat20 {

// Runs what may allocate.
template <class Call> DAT_RETURN guarded(Call&& call) noexcept {
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return fail(Type::insufficient_resources, Sub::resource_memory);
    } catch (...) {
        return fail(Type::internal_error);
    }
}

// By its number (dats_get_ia_handle) or by its own handle.
Ia* find_ia(DAT_IA_HANDLE handle);

template <class T> T* lookup(DAT_HANDLE handle) {
    if constexpr (std::is_same_v<T, Ia>) {
        return find_ia(handle);
    } else {
        return find<T>(handle);
    }
}

inline DAT_RETURN bad_handle(Sub what) { return fail(Type::invalid_handle, what); }

// PD-1, CR-4: false where it is none.
inline bool read_private_data(DAT_COUNT size, const void* data, std::span<const std::byte>& out,
                              std::size_t most) {
    if (size < 0 || static_cast<std::size_t>(size) > most || (size > 0 && !data)) {
        return false;
    }
    out = {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
    return true;
}

// EVD-40, into the layout of 2.0.
void translate_rare(const Event& event, DAT_EVENT& out);

inline void translate(const Event& event, DAT_EVD_HANDLE evd, DAT_EVENT& out) {
    out.event_number = static_cast<DAT_EVENT_NUMBER>(event.number);
    out.evd_handle = evd;
    if (event.number != Number::dto_completion) [[unlikely]] {
        translate_rare(event, out);
        return;
    }
    DAT_DTO_COMPLETION_EVENT_DATA& dto = out.event_data.dto_completion_event_data;
    dto.ep_handle = event.dto.ep;
    dto.user_cookie.as_64 = event.dto.cookie;
    dto.status = static_cast<DAT_DTO_COMPLETION_STATUS>(event.dto.status);
    dto.transfered_length = event.dto.length;
    dto.operation = static_cast<DAT_DTOS>(event.dto.operation);
    dto.rmr_context = event.dto.rmr_context;
}

// What dat_ia_query tells.
void describe(Ia& ia, DAT_IA_ATTR* ia_attr, DAT_PROVIDER_ATTR* provider_attr);

// The table behind the handles.
extern const DAT_PROVIDER provider_table;

// What the table has and no entry point is.
// `device` is empty: that of the name.
DAT_RETURN open_as_provider(const std::string& name, const std::string& device, DAT_COUNT qlen,
                            DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia);
DAT_RETURN extended_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list args);

} // namespace dat::shim::udat20

#endif
