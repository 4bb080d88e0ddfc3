// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Return codes, events and flags as the objects use them. Their values are those of
// uDAPL 2.0; udat12/ translates those that 1.2 has otherwise.
#ifndef DAT_SHIM_CODES_H
#define DAT_SHIM_CODES_H

#include <cstdint>

namespace dat::shim {

using Return = std::uint32_t; // class bit, type, subtype

enum class Type : std::uint32_t {
    success = 0x0,
    abort = 0x10000,
    conn_qual_in_use = 0x20000,
    insufficient_resources = 0x30000,
    internal_error = 0x40000,
    invalid_handle = 0x50000,
    invalid_parameter = 0x60000,
    invalid_state = 0x70000,
    length_error = 0x80000,
    model_not_supported = 0x90000,
    provider_not_found = 0xa0000,
    privileges_violation = 0xb0000,
    protection_violation = 0xc0000,
    queue_empty = 0xd0000,
    queue_full = 0xe0000,
    timeout_expired = 0xf0000,
    provider_already_registered = 0x100000,
    provider_in_use = 0x110000,
    invalid_address = 0x120000,
    interrupted_call = 0x130000,
    conn_qual_unavailable = 0x140000,
    reserved_lmr = 0x150000,
    port_in_use = 0x160000,
    comm_not_supported = 0x170000,
    not_implemented = 0x3fff0000,
};

enum class Sub : std::uint32_t {
    none = 0,
    interrupted = 1,
    resource_memory = 2,
    resource_device = 3,
    resource_tep = 4,
    resource_tevd = 5,
    resource_protection_domain = 6,
    resource_memory_region = 7,
    resource_error_handler = 8,
    resource_credits = 9,
    resource_srq = 10,
    invalid_handle_ia = 11,
    invalid_handle_ep = 12,
    invalid_handle_lmr = 13,
    invalid_handle_rmr = 14,
    invalid_handle_pz = 15,
    invalid_handle_psp = 16,
    invalid_handle_rsp = 17,
    invalid_handle_cr = 18,
    invalid_handle_cno = 19,
    invalid_handle_evd_cr = 20,
    invalid_handle_evd_request = 21,
    invalid_handle_evd_recv = 22,
    invalid_handle_evd_conn = 23,
    invalid_handle_evd_async = 24,
    invalid_handle_srq = 25,
    invalid_handle_csp = 26,
    invalid_handle1 = 27,
    invalid_handle2 = 28,
    invalid_handle3 = 29,
    invalid_handle4 = 30,
    invalid_handle5 = 31,
    invalid_handle6 = 32,
    invalid_handle7 = 33,
    invalid_handle8 = 34,
    invalid_handle9 = 35,
    invalid_handle10 = 36,
    invalid_arg1 = 37,
    invalid_arg2 = 38,
    invalid_arg3 = 39,
    invalid_arg4 = 40,
    invalid_arg5 = 41,
    invalid_arg6 = 42,
    invalid_arg7 = 43,
    invalid_arg8 = 44,
    invalid_arg9 = 45,
    invalid_arg10 = 46,
    invalid_state_ep_unconnected = 47,
    invalid_state_ep_actconnpending = 48,
    invalid_state_ep_passconnpending = 49,
    invalid_state_ep_tentconnpending = 50,
    invalid_state_ep_connected = 51,
    invalid_state_ep_disconnected = 52,
    invalid_state_ep_reserved = 53,
    invalid_state_ep_complpending = 54,
    invalid_state_ep_discpending = 55,
    invalid_state_ep_providercontrol = 56,
    invalid_state_ep_notready = 57,
    invalid_state_ep_recv_watermark = 58,
    invalid_state_ep_pz = 59,
    invalid_state_ep_evd_request = 60,
    invalid_state_ep_evd_recv = 61,
    invalid_state_ep_evd_connect = 62,
    invalid_state_ep_unconfigured = 63,
    invalid_state_ep_unconfreserved = 64,
    invalid_state_ep_unconfpassive = 65,
    invalid_state_ep_unconftentative = 66,
    invalid_state_cno_in_use = 67,
    invalid_state_cno_dead = 68,
    invalid_state_evd_open = 69,
    invalid_state_evd_enabled = 70,
    invalid_state_evd_disabled = 71,
    invalid_state_evd_waitable = 72,
    invalid_state_evd_unwaitable = 73,
    invalid_state_evd_in_use = 74,
    invalid_state_evd_config_notify = 75,
    invalid_state_evd_config_solicited = 76,
    invalid_state_evd_config_threshold = 77,
    invalid_state_evd_waiter = 78,
    invalid_state_evd_async = 79,
    invalid_state_ia_in_use = 80,
    invalid_state_lmr_in_use = 81,
    invalid_state_lmr_free = 82,
    invalid_state_pz_in_use = 83,
    invalid_state_pz_free = 84,
    invalid_state_srq_operational = 85,
    invalid_state_srq_error = 86,
    invalid_state_srq_in_use = 87,
    invalid_state_srq_shutdown = 88,
    privileges_read = 89,
    privileges_write = 90,
    privileges_rdma_read = 91,
    privileges_rdma_write = 92,
    protection_read = 93,
    protection_write = 94,
    protection_rdma_read = 95,
    protection_rdma_write = 96,
    invalid_address_unsupported = 97,
    invalid_address_unreachable = 98,
    invalid_address_malformed = 99,
    name_not_registered = 100,
    major_not_found = 101,
    minor_not_found = 102,
    thread_safety_not_found = 103,
};

inline constexpr Return kSuccess = 0;

// U-47: the class bit is always there, but in the two below.
constexpr Return fail(Type type, Sub sub = Sub::none) {
    return 0x80000000U | static_cast<std::uint32_t>(type) | static_cast<std::uint32_t>(sub);
}

// That there is nothing has no class bit: programs compare these whole (U-69).
inline constexpr Return kQueueEmpty = static_cast<Return>(Type::queue_empty);
inline constexpr Return kTimeoutExpired = static_cast<Return>(Type::timeout_expired);

constexpr Type type_of(Return code) { return static_cast<Type>(code & 0x3fff0000U); }

// A post found its queue full. A program that posts until then, and goes on behind the next
// completion, has done nothing wrong, so no line says it. The bit, that of warnings, tells it from
// other want of resources, and is in no code that a call answers.
inline constexpr Return kUnsaid = 0x40000000U;
inline constexpr Return kQueueFull =
    fail(Type::insufficient_resources, Sub::resource_memory) | kUnsaid;
inline constexpr Return kSharedQueueFull =
    fail(Type::insufficient_resources, Sub::resource_srq) | kUnsaid;
inline constexpr Return kEvdFull = fail(Type::queue_full) | kUnsaid;

// The parameter that is wrong, counted from 1.
constexpr Return bad_argument(unsigned which) {
    return fail(Type::invalid_parameter,
                static_cast<Sub>(static_cast<std::uint32_t>(Sub::invalid_arg1) + which - 1));
}

// EVD-40
enum class Number : std::uint32_t {
    dto_completion = 0x1,
    rmr_bind_completion = 0x1001,
    connection_request = 0x2001,
    established = 0x4001,
    peer_rejected = 0x4002,
    non_peer_rejected = 0x4003,
    accept_completion_error = 0x4004,
    disconnected = 0x4005,
    broken = 0x4006,
    timed_out = 0x4007,
    unreachable = 0x4008,
    async_error_evd_overflow = 0x8001,
    async_error_ia_catastrophic = 0x8002,
    async_error_ep_broken = 0x8003,
    async_error_timed_out = 0x8004,
    async_error_provider_internal_error = 0x8005,
    software = 0x10001,
    ib_dto = 0x40000, // DTO of an extension
};

// EVD-1
namespace stream {
inline constexpr std::uint32_t kSoftware = 0x001;
inline constexpr std::uint32_t kRequest = 0x010;
inline constexpr std::uint32_t kDto = 0x020;
inline constexpr std::uint32_t kConnection = 0x040;
inline constexpr std::uint32_t kAsync = 0x100;
inline constexpr std::uint32_t kAll = 0x3f1; // with RMR binds and extensions
} // namespace stream

// DTO-20
namespace completion {
inline constexpr std::uint32_t kDefault = 0;
inline constexpr std::uint32_t kSuppress = 1;
inline constexpr std::uint32_t kSolicited = 2;
inline constexpr std::uint32_t kUnsignalled = 4;
inline constexpr std::uint32_t kBarrier = 8;
inline constexpr std::uint32_t kThreshold = 0x10;
} // namespace completion

// LMR-4
namespace privilege {
inline constexpr std::uint32_t kLocalRead = 0x01;
inline constexpr std::uint32_t kRemoteRead = 0x02;
inline constexpr std::uint32_t kLocalWrite = 0x10;
inline constexpr std::uint32_t kRemoteWrite = 0x20;
inline constexpr std::uint32_t kRemoteAtomic = 0x40;
inline constexpr std::uint32_t kAll = 0x73;
inline constexpr std::uint32_t kRemote = kRemoteRead | kRemoteWrite | kRemoteAtomic;
} // namespace privilege

// DTO event: what was done.
enum class Operation : std::uint8_t {
    send = 0,
    rdma_write = 1,
    rdma_read = 2,
    receive = 3,
    receive_with_invalidate = 4,
    bind = 5,
    write_immediate = 8,
    receive_immediate = 9,
    fetch_add = 10,
    compare_swap = 11,
};

// EVD-41
enum : std::int32_t {
    kReasonTransferToError = 0,
    kReasonCatastrophic = 0, // of an IA, as the next
    kReasonOther = 1,
    kReasonWatermark = 2, // soft high of an endpoint, low of a shared receive queue
};

inline constexpr std::int32_t kInfinite = -1;  // DAT_WATERMARK_INFINITE
inline constexpr std::uint32_t kForever = ~0U; // DAT_TIMEOUT_INFINITE

} // namespace dat::shim

#endif
