// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the entry points share. They find the objects behind handles, check pointers,
// translate structures, and let nothing be thrown into C. They are compiled once for each
// version of the API, with its headers and the differences that its api.h spells out.
#ifndef DAT_SHIM_UDAT_ENTRY_H
#define DAT_SHIM_UDAT_ENTRY_H

#if DAT_SHIM_API == 20
#include "dat-shim/udat20/api.h"
#elif DAT_SHIM_API == 12
#include "dat-shim/udat12/api.h"
#else
#error "DAT_SHIM_API says which version of the API is compiled: 12 or 20"
#endif

#include "dat-shim/codes.h"
#include "dat-shim/ep.h"
#include "dat-shim/event.h"
#include "dat-shim/ia.h"
#include "dat-shim/inside.h"
#include "dat-shim/reason.h"
#include "dat-shim/service_point.h"

#include <cstddef>
#include <cxxabi.h>
#include <new>
#include <span>
#include <string>
#include <type_traits>

namespace dat::shim::udat {

// What the call answers that was refused, or failed. A line of the log says so, but where a queue
// is full (kUnsaid), or a signal has interrupted the call.
[[gnu::cold]] DAT_RETURN refused(Return code, const char* call);

// `code`, in the words of this version. That there is nothing has no class bit, and is said by no
// line.
[[gnu::always_inline]] inline DAT_RETURN told(Return code, const char* call) {
    if ((code & DAT_CLASS_ERROR) != 0) [[unlikely]] {
        return refused(code, call);
    }
    return to_api(code);
}

// What every entry point is: its code, in the words of this version. None calls another: a thread
// is inside once (inside.h). `name`: of the entry point.
template <class Call>
DAT_RETURN answer(Call&& call, const char* name = __builtin_FUNCTION()) noexcept {
    try {
        const Inside here;
        return told(call(), name);
    } catch (const std::bad_alloc&) {
        return told(fail(Type::insufficient_resources, Sub::resource_memory), name);
    } catch (...) {
        return told(fail(Type::internal_error), name);
    }
}

// The same where the call may sleep, and the thread be cancelled there (pthread_cancel(3)).
template <class Call>
DAT_RETURN answer_sleeper(Call&& call, const char* name = __builtin_FUNCTION()) {
    try {
        const Inside here;
        return told(call(), name);
    } catch (const abi::__forced_unwind&) {
        throw;
    } catch (const std::bad_alloc&) {
        return told(fail(Type::insufficient_resources, Sub::resource_memory), name);
    } catch (...) {
        return told(fail(Type::internal_error), name);
    }
}

template <class T> [[gnu::always_inline]] inline T* lookup(DAT_HANDLE handle) {
    if constexpr (std::is_same_v<T, Ia>) {
        return find_ia(handle);
    } else {
        return find<T>(handle);
    }
}

inline Return bad_handle(Sub what) { return fail(Type::invalid_handle, what); }
inline Return bad_ia() { return bad_handle(Sub::invalid_handle_ia); }
inline Return bad_ep() { return bad_handle(Sub::invalid_handle_ep); }
inline Return bad_cno() { return bad_handle(Sub::invalid_handle_cno); }
inline Return bad_cr() { return bad_handle(Sub::invalid_handle_cr); }
inline Return bad_pz() { return bad_handle(Sub::invalid_handle_pz); }
inline Return bad_lmr() { return bad_handle(Sub::invalid_handle_lmr); }
inline Return bad_rmr() { return bad_handle(Sub::invalid_handle_rmr); }

// Flags and masks, whatever enumeration they are of; a program may pass any value.
template <class T> std::uint32_t bits(T flags) { return static_cast<std::uint32_t>(flags); }

// PD-1, CR-4. `argument` is the one that says the size.
inline Return read_private_data(unsigned argument, DAT_COUNT size, const void* data,
                                std::size_t most, std::span<const std::byte>& out) {
    if (size < 0 || static_cast<std::size_t>(size) > most || (size > 0 && !data)) {
        return because(bad_argument(argument),
                       "private data of %d bytes at %p: 0 to %zu is offered", size, data, most);
    }
    out = {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
    return kSuccess;
}

// EVD-40, into the layout of this version.
void translate_rare(const Event& event, DAT_EVENT& out);

// One of Number::dto_completion.
inline void translate_plain(const Event::Dto& dto, DAT_EVD_HANDLE evd, DAT_EVENT& out) {
    out.event_number = DAT_DTO_COMPLETION_EVENT;
    out.evd_handle = evd;
    DAT_DTO_COMPLETION_EVENT_DATA& data = out.event_data.dto_completion_event_data;
    data.ep_handle = dto.ep;
    data.user_cookie.as_64 = dto.cookie;
    data.status = static_cast<DAT_DTO_COMPLETION_STATUS>(dto.status);
    data.transfered_length = dto.length;
    add_own(dto, data);
}

inline void translate(const Event& event, DAT_EVD_HANDLE evd, DAT_EVENT& out) {
    if (event.number == Number::dto_completion) [[likely]] {
        translate_plain(event.dto, evd, out);
        return;
    }
    out.event_number = static_cast<DAT_EVENT_NUMBER>(event.number);
    out.evd_handle = evd;
    translate_rare(event, out);
}

// IA-2: fills in what the Consumer says of the asynchronous EVD.
Return read_async(DAT_EVD_HANDLE async, Ia::Opening& opening);
// `named`: the Consumer gets it from this library, not from a registry above it.
Return open(const Ia::Opening& opening, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia, bool named);

// What dat_ia_query tells.
void describe(Ia& ia, DAT_IA_ATTR* ia_attr, DAT_PROVIDER_ATTR* provider_attr);

// LMR-1..LMR-6. `asked`: all but zone and region. `handle_argument`: the number of the
// parameter `lmr`.
struct LmrResults {
    DAT_LMR_HANDLE* lmr;
    DAT_LMR_CONTEXT* lmr_context;
    DAT_RMR_CONTEXT* rmr_context;
    DAT_VLEN* length;
    DAT_VADDR* address;
    unsigned handle_argument;
};
Return create_lmr(Ia& ia, DAT_PZ_HANDLE pz, DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION& region,
                  Lmr::Asked asked, const LmrResults& results);

// RMR-2..RMR-9. `lmr`: of the triplet's memory; not looked at where nothing is bound.
struct BindAsked {
    Lmr* lmr;
    const DAT_LMR_TRIPLET& triplet;
    std::uint32_t privileges;
    unsigned privileges_argument;
    unsigned triplet_argument;
    bool zero_based;
    DAT_RMR_COOKIE cookie;
    DAT_COMPLETION_FLAGS flags;
};
Return bind(Rmr& rmr, Ep& ep, const BindAsked& asked, DAT_RMR_CONTEXT& context);

// SP-1..SP-13. nullptr: no handle of a service point of that kind.
ServicePoint* find_point(DAT_HANDLE handle, Kind kind);
// `qualifier`: the one that it got, where it is not nullptr.
Return create_point(Ia& ia, const ServicePoint::Asked& asked, DAT_HANDLE* handle,
                    DAT_CONN_QUAL* qualifier = nullptr);
Return free_point(DAT_HANDLE handle, Kind kind, Sub what);
Return bad_request_evd();
Return reject(DAT_CR_HANDLE handle, std::span<const std::byte> data); // CR-7

} // namespace dat::shim::udat

#endif
