// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What uDAPL 1.2 has otherwise than 2.0, for the entry points in udat/. Codes and values of
// dat-shim are those of 2.0: here they become those of 1.2.
#ifndef DAT_SHIM_UDAT12_API_H
#define DAT_SHIM_UDAT12_API_H

#include "dat-shim/cno.h"
#include "dat-shim/codes.h"
#include "dat-shim/event.h"
#include "dat-shim/ia.h"
#include "dat-shim/memory.h"

#include <dat/udat.h>

#include <dat/dat_registry.h>

#include <cstdint>
#include <span>

namespace dat::shim {
class Ep;
}

namespace dat::shim::udat {

// ABI-R3: 1.2 lacks two subtypes in the midst of the others; their errors are not found here.
constexpr std::uint32_t to_subtype(Sub sub) {
    const auto value = static_cast<std::uint32_t>(sub);
    if (sub == Sub::invalid_handle_csp || sub == Sub::invalid_state_srq_shutdown) {
        return DAT_NO_SUBTYPE;
    }
    return value - (sub > Sub::invalid_handle_csp ? 1 : 0) -
           (sub > Sub::invalid_state_srq_shutdown ? 1 : 0);
}
static_assert(to_subtype(Sub::invalid_handle_srq) == DAT_INVALID_HANDLE_SRQ);
static_assert(to_subtype(Sub::invalid_handle1) == DAT_INVALID_HANDLE1);
static_assert(to_subtype(Sub::invalid_state_srq_in_use) == DAT_INVALID_STATE_SRQ_IN_USE);
static_assert(to_subtype(Sub::privileges_read) == DAT_PRIVILEGES_READ);
static_assert(to_subtype(Sub::thread_safety_not_found) == DAT_THREAD_SAFETY_NOT_FOUND);

constexpr DAT_RETURN to_api(Return code) {
    if (code == kSuccess) [[likely]] {
        return DAT_SUCCESS;
    }
    const auto type = type_of(code) == Type::not_implemented
                          ? std::uint32_t{DAT_NOT_IMPLEMENTED}
                          : static_cast<std::uint32_t>(type_of(code));
    return (code & DAT_CLASS_ERROR) | type | to_subtype(static_cast<Sub>(code & DAT_SUBTYPE_MASK));
}
static_assert(to_api(fail(Type::not_implemented)) == (DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED));

// From the state on, but for the attributes, all are one bit higher in 2.0, which has `comm`.
constexpr std::uint64_t ep_fields(DAT_EP_PARAM_MASK mask) {
    constexpr std::uint64_t kShifted =
        (DAT_EP_FIELD_SRQ_HANDLE << 1) - DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR;
    return (mask & ~kShifted) | ((mask & kShifted) << 1);
}
static_assert(ep_fields(DAT_EP_FIELD_PZ_HANDLE) == 0x80);
static_assert(ep_fields(DAT_EP_FIELD_SRQ_HANDLE) == 0x800);
static_assert(ep_fields(DAT_EP_FIELD_EP_ATTR_ALL | DAT_EP_FIELD_EP_STATE) == 0x7ffff002);

inline constexpr int kCnoFields = DAT_CNO_FIELD_ALL;
inline constexpr std::uint32_t kStreams = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
inline constexpr std::uint32_t kPrivileges = DAT_MEM_PRIV_ALL_FLAG;
// LMR-1: for bridges that reorder; here none does.
constexpr std::uint32_t without_ordering(DAT_MEM_PRIV_FLAGS privileges) {
    return static_cast<std::uint32_t>(privileges) & ~std::uint32_t{DAT_MEM_PRIV_RO_DISABLE_FLAG};
}

// MP-1, U-13
inline constexpr std::uint32_t kConnectFlags = DAT_CONNECT_MULTIPATH_FLAG;
inline constexpr std::uint32_t kConnectFlagsNotOffered = DAT_CONNECT_MULTIPATH_FLAG;

// As the registry takes it, and the table behind the handles.
using Provider = DAT_PROVIDER;
extern const DAT_PROVIDER provider_table;

// An IA has its own handle, through which macros find the table as through others (ABI-D1).
inline Ia* find_ia(DAT_IA_HANDLE handle) { return find<Ia>(handle); }
inline bool enter_ia(Ia&) { return true; }
inline void leave_ia(const Ia&) {}

// Where a range is at the peer, for Ep::post_*.
struct RangeAtPeer {
    std::uint64_t virtual_address;
    std::uint32_t rmr_context;
};
inline RangeAtPeer range_at_peer(const DAT_RMR_TRIPLET& triplet) {
    return {triplet.target_address, triplet.rmr_context};
}

constexpr bool is_strongly_ordered(DAT_MEM_TYPE type) { return type == DAT_MEM_TYPE_SO_VIRTUAL; }

// add_own(): the members that no other version has.
inline void add_own(const Event::Dto&, DAT_DTO_COMPLETION_EVENT_DATA&) {}
inline void add_own(const Event::Request&, DAT_CR_ARRIVAL_EVENT_DATA&) {}
inline void add_own(const Lmr&, DAT_LMR_PARAM&) {}
inline void add_own(const Rmr&, DAT_RMR_PARAM&) {}
inline void add_own(Ep&, DAT_EP_PARAM&) {}
inline void add_own(Cno& cno, DAT_CNO_PARAM& to) {
    const Cno::Agent agent = cno.agent();
    to.agent = {agent.instance, agent.function};
}
inline void add_own(const Abilities&, DAT_IA_ATTR&) {}
inline void add_own(DAT_PROVIDER_ATTR&) {}
// A receive that a peer with extensions completed is a receive.
inline void translate_extension(const Event::Dto&, DAT_EVENT& out) {
    out.event_number = DAT_DTO_COMPLETION_EVENT;
}
// SP-11, U-52: an RSP is gone when its request arrives.
inline DAT_HANDLE point_in_event(void* handle) {
    const Shell* const shell = shell_of(handle);
    return shell && shell->is(Kind::psp) ? handle : DAT_HANDLE_NULL;
}

std::span<DAT_NAMED_ATTR> named_attributes(const Abilities& can);

// Codes that no other version has, or has otherwise, for dat_strerror().
struct CodeName {
    std::uint32_t code;
    const char* name;
};
inline constexpr CodeName kOwnTypes[] = {
    {DAT_NAME_NOT_FOUND, "DAT_NAME_NOT_FOUND"}, // ABI-D9
};
inline constexpr CodeName kOwnSubtypes[] = {
    {DAT_INVALID_RO_COOKIE, "DAT_INVALID_RO_COOKIE"},
};

} // namespace dat::shim::udat

// Beside the definition of an entry point: exports it at both nodes of libdat.map. That of Linux is
// the default. "@@@" takes the place of the plain name, which GNU ld would hide beside another
// version of it; "remove" keeps the name out that the second version is made from. PIC: defined by
// libtool for what goes into a library; a program has no nodes.
#ifdef PIC
#define DAT_SHIM_EXPORT(name)                                                                      \
    __asm__(".symver " #name ", " #name "@@@DAT_1.2\n"                                             \
            ".globl " #name "_of_sunw\n"                                                           \
            ".set " #name "_of_sunw, " #name "\n"                                                  \
            ".symver " #name "_of_sunw, " #name "@SUNW_1.1, remove")
#else
#define DAT_SHIM_EXPORT(name) static_assert(true)
#endif

#endif
