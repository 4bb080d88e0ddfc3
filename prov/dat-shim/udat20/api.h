// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What uDAPL 2.0 has otherwise than 1.2, for the entry points in udat/: codes and values
// are those of dat-shim already.
#ifndef DAT_SHIM_UDAT20_API_H
#define DAT_SHIM_UDAT20_API_H

#include "dat-shim/cno.h"
#include "dat-shim/codes.h"
#include "dat-shim/event.h"
#include "dat-shim/ia.h"
#include "dat-shim/memory.h"

#include <dat2/udat.h>

#include <dat2/dat_registry.h>

#include <cstdarg>
#include <cstdint>
#include <span>
#include <string>

namespace dat::shim {
class Ep;
}

namespace dat::shim::udat {

constexpr DAT_RETURN to_api(Return code) { return code; }

constexpr std::uint64_t ep_fields(DAT_EP_PARAM_MASK mask) { return mask; }
// The mask's values overlap, so any of them is taken.
inline constexpr int kCnoFields = DAT_CNO_FIELD_PROXY | DAT_CNO_FIELD_ALL;
inline constexpr std::uint32_t kStreams = stream::kAll;
inline constexpr std::uint32_t kPrivileges = privilege::kAll;

// MP-1, U-13
inline constexpr std::uint32_t kConnectFlags =
    DAT_CONNECT_MULTIPATH_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;
inline constexpr std::uint32_t kConnectFlagsNotOffered = DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;

// As the registry takes it, and the table behind the handles.
using Provider = const DAT_PROVIDER;
extern const DAT_PROVIDER provider_table;

// By its number (dats_get_ia_handle) or by its own handle.
Ia* find_ia(DAT_IA_HANDLE handle);
bool enter_ia(Ia& ia); // gives it a number; false: there are too many
void leave_ia(const Ia& ia);

// Where a range is at the peer, for Ep::post_*.
inline const DAT_RMR_TRIPLET& range_at_peer(const DAT_RMR_TRIPLET& triplet) { return triplet; }

constexpr bool is_strongly_ordered(DAT_MEM_TYPE) { return false; }

// add_own(): the members that no other version has.
inline void add_own(const Event::Dto& from, DAT_DTO_COMPLETION_EVENT_DATA& to) {
    to.operation = static_cast<DAT_DTOS>(from.operation);
    to.rmr_context = from.rmr_context;
}
inline void add_own(const Event::Request&, DAT_CR_ARRIVAL_EVENT_DATA& to) {
    to.truncate_flag = DAT_FALSE; // PD-6
}
inline void add_own(const Lmr& lmr, DAT_LMR_PARAM& to) {
    to.va_type = lmr.asked.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}
inline void add_own(const Rmr& rmr, DAT_RMR_PARAM& to) {
    to.rmr_scope = DAT_RMR_SCOPE_PZ;
    to.va_type = rmr.bound.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}
void add_own(Ep& ep, DAT_EP_PARAM& to);
void add_own(Cno& cno, DAT_CNO_PARAM& to);
void add_own(const Abilities& can, DAT_IA_ATTR& to);
void add_own(DAT_PROVIDER_ATTR& to);
// A completion of an extension, all of it but what every DTO has.
void translate_extension(const Event::Dto& dto, DAT_EVENT& out);
// SP-11, U-52: the 2.0 event has the handle of either kind of service point.
inline DAT_HANDLE point_in_event(void* handle) { return handle; }

// Names that programs look for, in the attributes of the adapter or of the provider.
std::span<DAT_NAMED_ATTR> named_attributes(const Abilities& can);

// Codes that no other version has, or has otherwise, for dat_strerror().
struct CodeName {
    std::uint32_t code;
    const char* name;
};
inline constexpr CodeName kOwnTypes[] = {
    {DAT_PROVIDER_NOT_FOUND, "DAT_PROVIDER_NOT_FOUND"},
    {DAT_RESERVED_LMR, "DAT_RESERVED_LMR"},
    {DAT_PORT_IN_USE, "DAT_PORT_IN_USE"},
    {DAT_COMM_NOT_SUPPORTED, "DAT_COMM_NOT_SUPPORTED"},
};
inline constexpr CodeName kOwnSubtypes[] = {
    {DAT_INVALID_HANDLE_CSP, "DAT_INVALID_HANDLE_CSP"},
    {DAT_INVALID_STATE_SRQ_SHUTDOWN, "DAT_INVALID_STATE_SRQ_SHUTDOWN"},
};

// As an entry point, of which the table has it.
DAT_RETURN extended_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list args);

} // namespace dat::shim::udat

// Beside the definition of an entry point: nothing, since libdat2.map gives all of them their node.
#define DAT_SHIM_EXPORT(name) static_assert(true)

#endif
