/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dat.h - types and calls of DAT that kernel and user space share.
 *
 * Do not include it; include <dat2/udat.h>. dat_shim(7) explains the library, and
 * clauses such as EVD-10 are those of its specification.
 */
#ifndef _DAT_H_
#define _DAT_H_

#include <dat2/dat_platform_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- simple types --------------------------------------------------------- */

typedef enum dat_boolean {
    DAT_FALSE = 0,
    DAT_TRUE = 1
} DAT_BOOLEAN;

typedef DAT_UINT32 DAT_RETURN; /* see dat_error.h */

#include <dat2/dat_error.h>

/* With its final zero. */
#define DAT_NAME_MAX_LENGTH 256
typedef char* DAT_NAME_PTR;

/* A name that programs look for in a list of attributes, and what it says. */
typedef struct dat_named_attr {
    const char* name;
    const char* value;
} DAT_NAMED_ATTR;

/* Load balancing between the ports of an adapter. */
typedef DAT_UINT32 DAT_HA_LB;
#define DAT_HA_LB_NONE (DAT_HA_LB)0
#define DAT_HA_LB_INTERCOMM (DAT_HA_LB)1
#define DAT_HA_LB_INTRACOMM (DAT_HA_LB)2

/* CTX-1: the Consumer's own word on an object, a cookie on an operation. */
typedef union dat_context {
    DAT_PVOID as_ptr;
    DAT_UINT64 as_64;
    DAT_UVERYLONG as_index;
} DAT_CONTEXT;
typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;

typedef DAT_UINT32 DAT_TIMEOUT; /* microseconds */
#define DAT_TIMEOUT_INFINITE ((DAT_TIMEOUT)~0)

/* ---- handles -------------------------------------------------------------- */

/*
 * Opaque. That of an interface adapter is a small number, the others are addresses
 * that mean nothing to the program.
 */
typedef DAT_PVOID DAT_HANDLE;
#define DAT_HANDLE_NULL ((DAT_HANDLE)NULL)
typedef DAT_HANDLE DAT_CR_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;
typedef DAT_HANDLE DAT_CSP_HANDLE;

/* ---- addresses, memory ---------------------------------------------------- */

typedef DAT_SOCK_ADDR* DAT_IA_ADDRESS_PTR;
typedef DAT_UINT64 DAT_CONN_QUAL; /* connection qualifier; a TCP port, its low 16 bits */
typedef DAT_UINT64 DAT_PORT_QUAL;

typedef DAT_UINT32 DAT_LMR_CONTEXT; /* names registered memory to this side */
typedef DAT_UINT32 DAT_RMR_CONTEXT; /* names it to the peer */
typedef DAT_UINT64 DAT_VLEN;
typedef DAT_UINT64 DAT_VADDR;
typedef DAT_UINT32 DAT_SEG_LENGTH; /* bytes */

/* Of what differs between kernel and user space; completed in udat.h. */
typedef struct dat_provider_attr DAT_PROVIDER_ATTR;
typedef struct dat_evd_param DAT_EVD_PARAM;
typedef struct dat_lmr_param DAT_LMR_PARAM;
typedef enum dat_lmr_param_mask DAT_LMR_PARAM_MASK;
typedef struct dat_ia_attr DAT_IA_ATTR;

/* A piece of local memory. With length 0 the rest is not looked at (LMR-9). */
typedef struct dat_lmr_triplet {
    DAT_VADDR virtual_address;
    DAT_SEG_LENGTH segment_length;
    DAT_LMR_CONTEXT lmr_context;
} DAT_LMR_TRIPLET;

/* A piece of the peer's memory. */
typedef struct dat_rmr_triplet {
    DAT_VADDR virtual_address;
    DAT_SEG_LENGTH segment_length;
    DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_TRIPLET;

/* ---- flags ---------------------------------------------------------------- */

/* DTO-20..DTO-26: of an operation, and of an endpoint for all of its operations. */
typedef enum dat_completion_flags {
    DAT_COMPLETION_DEFAULT_FLAG = 0x0,
    DAT_COMPLETION_SUPPRESS_FLAG = 0x1,
    DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x2,
    DAT_COMPLETION_UNSIGNALLED_FLAG = 0x4,
    DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x8,
    DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10,
    DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG = 0x20
} DAT_COMPLETION_FLAGS;

/* What a completion is one of. */
typedef enum dat_dtos {
    DAT_DTO_SEND = 0,
    DAT_DTO_RDMA_WRITE = 1,
    DAT_DTO_RDMA_READ = 2,
    DAT_DTO_RECEIVE = 3,
    DAT_DTO_RECEIVE_WITH_INVALIDATE = 4,
    DAT_DTO_BIND_MW = 5,
    DAT_DTO_LMR_FMR = 6,
    DAT_DTO_LMR_INVALIDATE = 7,
    DAT_DTO_EXTENSION_BASE = 8
} DAT_DTOS;

/* Quality of service; only best effort is offered. */
typedef enum dat_qos {
    DAT_QOS_BEST_EFFORT = 0x0,
    DAT_QOS_HIGH_THROUGHPUT = 0x1,
    DAT_QOS_LOW_LATENCY = 0x2,
    DAT_QOS_ECONOMY = 0x4,
    DAT_QOS_PREMIUM = 0x8
} DAT_QOS;

/* MP-1 */
typedef enum dat_connect_flags {
    DAT_CONNECT_DEFAULT_FLAG = 0x0,
    DAT_CONNECT_MULTIPATH_FLAG = 0x1,
    DAT_CONNECT_MULTIPATH_REQUIRED_FLAG = 0x2
} DAT_CONNECT_FLAGS;

#define DAT_CONNECT_MULTIPATH_REQUESTED_FLAG DAT_CONNECT_MULTIPATH_FLAG

/* How to end a connection (DISC-3, DISC-4), or an adapter (IA-7, IA-8). */
typedef enum dat_close_flags {
    DAT_CLOSE_ABRUPT_FLAG = 0x0,
    DAT_CLOSE_GRACEFUL_FLAG = 0x1
} DAT_CLOSE_FLAGS;

#define DAT_CLOSE_DEFAULT DAT_CLOSE_ABRUPT_FLAG

/* EVD-1: which streams may feed an event dispatcher. */
typedef enum dat_evd_flags {
    DAT_EVD_SOFTWARE_FLAG = 0x1,
    DAT_EVD_CR_FLAG = 0x10,
    DAT_EVD_DTO_FLAG = 0x20,
    DAT_EVD_CONNECTION_FLAG = 0x40,
    DAT_EVD_RMR_BIND_FLAG = 0x80,
    DAT_EVD_ASYNC_FLAG = 0x100,
    DAT_EVD_DEFAULT_FLAG = 0x1f0,
    DAT_EVD_EXTENSION_BASE = 0x200
} DAT_EVD_FLAGS;

/* SP-4: who makes the endpoint for a request. */
typedef enum dat_psp_flags {
    DAT_PSP_CONSUMER_FLAG = 0,
    DAT_PSP_PROVIDER_FLAG = 1
} DAT_PSP_FLAGS;

/* LMR-4: rights to memory. */
typedef enum dat_mem_priv_flags {
    DAT_MEM_PRIV_NONE_FLAG = 0x0,
    DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x1,
    DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x2,
    DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
    DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
    DAT_MEM_PRIV_ALL_FLAG = 0x33,
    DAT_MEM_PRIV_EXTENSION_BASE = 0x40
} DAT_MEM_PRIV_FLAGS;

#define DAT_MEM_PRIV_READ_FLAG (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* How memory is addressed: by virtual address, or from 0. */
typedef enum dat_va_type {
    DAT_VA_TYPE_VA = 0,
    DAT_VA_TYPE_ZB = 1
} DAT_VA_TYPE;

/* Who may bind a memory window. */
typedef enum dat_rmr_scope {
    DAT_RMR_SCOPE_EP = 0,
    DAT_RMR_SCOPE_PZ = 1,
    DAT_RMR_SCOPE_ANY = 2
} DAT_RMR_SCOPE;

typedef enum dat_rmr_param_mask {
    DAT_RMR_FIELD_IA_HANDLE = 0x1,
    DAT_RMR_FIELD_PZ_HANDLE = 0x2,
    DAT_RMR_FIELD_LMR_TRIPLET = 0x4,
    DAT_RMR_FIELD_MEM_PRIV = 0x8,
    DAT_RMR_FIELD_RMR_CONTEXT = 0x10,
    DAT_RMR_FIELD_RMR_SCOPE = 0x20,
    DAT_RMR_FIELD_VA_TYPE = 0x40,
    DAT_RMR_FIELD_ALL = 0x7f
} DAT_RMR_PARAM_MASK;

typedef struct dat_rmr_param {
    DAT_IA_HANDLE ia_handle;
    DAT_PZ_HANDLE pz_handle;
    DAT_LMR_TRIPLET lmr_triplet;
    DAT_MEM_PRIV_FLAGS mem_priv;
    DAT_RMR_CONTEXT rmr_context;
    DAT_RMR_SCOPE rmr_scope;
    DAT_VA_TYPE va_type;
} DAT_RMR_PARAM;

/* ---- attributes of an adapter ---------------------------------------------- */

/* DTO-6: whose an array of segments is after a post. */
typedef enum dat_iov_ownership {
    DAT_IOV_CONSUMER = 0,
    DAT_IOV_PROVIDER_NOMOD = 1,
    DAT_IOV_PROVIDER_MOD = 2
} DAT_IOV_OWNERSHIP;

/* IA-13 */
typedef enum dat_ep_creator_for_psp {
    DAT_PSP_CREATES_EP_NEVER = 0,
    DAT_PSP_CREATES_EP_IFASKED = 1,
    DAT_PSP_CREATES_EP_ALWAYS = 2
} DAT_EP_CREATOR_FOR_PSP;

/* Which extensions dat_extension_op() has. */
typedef enum dat_extension {
    DAT_EXTENSION_NONE = 0,
    DAT_EXTENSION_IB = 1,
    DAT_EXTENSION_IW = 2
} DAT_EXTENSION;

typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;
typedef DAT_UINT64 DAT_IA_ATTR_MASK;
#define DAT_IA_FIELD_IA_ADAPTER_NAME UINT64_C(0x000000001)
#define DAT_IA_FIELD_IA_ADDRESS_PTR UINT64_C(0x000000040)
#define DAT_IA_FIELD_IA_EXTENSIONS_SUPPORTED UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION UINT64_C(0x000000010)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION UINT64_C(0x000000020)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION UINT64_C(0x000000004)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION UINT64_C(0x000000008)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP UINT64_C(0x000000100)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP DAT_IA_FIELD_IA_MAX_DTO_PER_EP_IN
#define DAT_IA_FIELD_IA_MAX_EPS UINT64_C(0x000000080)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ UINT64_C(0x000800000)
#define DAT_IA_FIELD_IA_MAX_EVDS UINT64_C(0x000000800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN UINT64_C(0x000001000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO UINT64_C(0x000002000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ UINT64_C(0x002000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE UINT64_C(0x004000000)
#define DAT_IA_FIELD_IA_MAX_LMRS UINT64_C(0x000004000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE UINT64_C(0x000008000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS UINT64_C(0x000010000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE UINT64_C(0x000040000)
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_FIELD_IA_MAX_PZS UINT64_C(0x000020000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN UINT64_C(0x008000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT UINT64_C(0x010000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN UINT64_C(0x000000200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED UINT64_C(0x020000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT UINT64_C(0x000000400)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED UINT64_C(0x040000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE UINT64_C(0x000080000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ UINT64_C(0x001000000)
#define DAT_IA_FIELD_IA_MAX_RMRS UINT64_C(0x000100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS UINT64_C(0x000200000)
#define DAT_IA_FIELD_IA_MAX_SRQS UINT64_C(0x000400000)
#define DAT_IA_FIELD_IA_VENDOR_NAME UINT64_C(0x000000002)
#define DAT_IA_FIELD_IA_ZB_SUPPORTED UINT64_C(0x080000000)
#define DAT_IA_FIELD_NONE UINT64_C(0x0)

/* ---- endpoint -------------------------------------------------------------- */

typedef enum dat_service_type {
    DAT_SERVICE_TYPE_RC = 0,
    DAT_SERVICE_TYPE_EXTENSION_BASE = 1
} DAT_SERVICE_TYPE;

/* EPA-3. 0 for the sizes of messages and RDMA: not set. */
typedef struct dat_ep_attr {
    DAT_SERVICE_TYPE service_type;
    DAT_SEG_LENGTH max_message_size;
    DAT_SEG_LENGTH max_rdma_size;
    DAT_QOS qos;
    DAT_COMPLETION_FLAGS recv_completion_flags;
    DAT_COMPLETION_FLAGS request_completion_flags;
    DAT_COUNT max_recv_dtos;
    DAT_COUNT max_request_dtos;
    DAT_COUNT max_recv_iov;
    DAT_COUNT max_request_iov;
    DAT_COUNT max_rdma_read_in;
    DAT_COUNT max_rdma_read_out;
    DAT_COUNT srq_soft_hw;
    DAT_COUNT max_rdma_read_iov;
    DAT_COUNT max_rdma_write_iov;
    DAT_COUNT ep_transport_specific_count;
    DAT_NAMED_ATTR* ep_transport_specific;
    DAT_COUNT ep_provider_specific_count;
    DAT_NAMED_ATTR* ep_provider_specific;
} DAT_EP_ATTR;

/* EP-1; dat_ep_states(7) has all transitions. */
typedef enum dat_ep_state {
    DAT_EP_STATE_UNCONNECTED = 0,
    DAT_EP_STATE_UNCONFIGURED_UNCONNECTED = 1,
    DAT_EP_STATE_RESERVED = 2,
    DAT_EP_STATE_UNCONFIGURED_RESERVED = 3,
    DAT_EP_STATE_PASSIVE_CONNECTION_PENDING = 4,
    DAT_EP_STATE_UNCONFIGURED_PASSIVE = 5,
    DAT_EP_STATE_ACTIVE_CONNECTION_PENDING = 6,
    DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING = 7,
    DAT_EP_STATE_UNCONFIGURED_TENTATIVE = 8,
    DAT_EP_STATE_CONNECTED = 9,
    DAT_EP_STATE_DISCONNECT_PENDING = 10,
    DAT_EP_STATE_DISCONNECTED = 11,
    DAT_EP_STATE_COMPLETION_PENDING = 12,
    DAT_EP_STATE_CONNECTED_SINGLE_PATH = 13,
    DAT_EP_STATE_CONNECTED_MULTI_PATH = 14
} DAT_EP_STATE;

#define DAT_EP_STATE_ERROR DAT_EP_STATE_DISCONNECTED

typedef struct dat_ep_param {
    DAT_IA_HANDLE ia_handle;
    DAT_EP_STATE ep_state;
    DAT_COMM comm;
    DAT_IA_ADDRESS_PTR local_ia_address_ptr;
    DAT_PORT_QUAL local_port_qual;
    DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
    DAT_PORT_QUAL remote_port_qual;
    DAT_PZ_HANDLE pz_handle;
    DAT_EVD_HANDLE recv_evd_handle;
    DAT_EVD_HANDLE request_evd_handle;
    DAT_EVD_HANDLE connect_evd_handle;
    DAT_SRQ_HANDLE srq_handle;
    DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

typedef DAT_UINT64 DAT_EP_PARAM_MASK;
#define DAT_EP_FIELD_ALL UINT64_C(0x7FFFFFFF)
#define DAT_EP_FIELD_COMM UINT64_C(0x00000004)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE UINT64_C(0x00000400)
#define DAT_EP_FIELD_EP_ATTR_ALL UINT64_C(0x7FFFF000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE UINT64_C(0x00002000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN UINT64_C(0x00400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV UINT64_C(0x02000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT UINT64_C(0x00800000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE UINT64_C(0x00004000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV UINT64_C(0x04000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS UINT64_C(0x00040000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV UINT64_C(0x00100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS UINT64_C(0x00080000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV UINT64_C(0x00200000)
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR UINT64_C(0x20000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR UINT64_C(0x08000000)
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR UINT64_C(0x40000000)
#define DAT_EP_FIELD_EP_ATTR_QOS UINT64_C(0x00008000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS UINT64_C(0x00010000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS UINT64_C(0x00020000)
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE UINT64_C(0x00001000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW UINT64_C(0x01000000)
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR UINT64_C(0x10000000)
#define DAT_EP_FIELD_EP_STATE UINT64_C(0x00000002)
#define DAT_EP_FIELD_IA_HANDLE UINT64_C(0x00000001)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR UINT64_C(0x00000008)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL UINT64_C(0x00000010)
#define DAT_EP_FIELD_PZ_HANDLE UINT64_C(0x00000080)
#define DAT_EP_FIELD_RECV_EVD_HANDLE UINT64_C(0x00000100)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR UINT64_C(0x00000020)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL UINT64_C(0x00000040)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE UINT64_C(0x00000200)
#define DAT_EP_FIELD_SRQ_HANDLE UINT64_C(0x00000800)

/* Watermarks (SRQ-8, SRQ-11), and a number that the library does not know. */
#define DAT_HW_DEFAULT DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT 0x0
#define DAT_VALUE_UNKNOWN (((DAT_COUNT) ~0)-1)
#define DAT_WATERMARK_INFINITE ((DAT_COUNT)~0)

/* ---- shared receive queue --------------------------------------------------- */

typedef struct dat_srq_attr {
    DAT_COUNT max_recv_dtos;
    DAT_COUNT max_recv_iov;
    DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

typedef enum dat_srq_state {
    DAT_SRQ_STATE_ERROR = 0,
    DAT_SRQ_STATE_OPERATIONAL = 1,
    DAT_SRQ_STATE_SHUTDOWN = 2
} DAT_SRQ_STATE;

typedef struct dat_srq_param {
    DAT_IA_HANDLE ia_handle;
    DAT_SRQ_STATE srq_state;
    DAT_PZ_HANDLE pz_handle;
    DAT_COUNT max_recv_dtos;
    DAT_COUNT max_recv_iov;
    DAT_COUNT low_watermark;
    DAT_COUNT available_dto_count;
    DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

typedef enum dat_srq_param_mask {
    DAT_SRQ_FIELD_IA_HANDLE = 0x1,
    DAT_SRQ_FIELD_SRQ_STATE = 0x2,
    DAT_SRQ_FIELD_PZ_HANDLE = 0x4,
    DAT_SRQ_FIELD_MAX_RECV_DTO = 0x8,
    DAT_SRQ_FIELD_MAX_RECV_IOV = 0x10,
    DAT_SRQ_FIELD_LOW_WATERMARK = 0x20,
    DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT = 0x40,
    DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT = 0x80,
    DAT_SRQ_FIELD_ALL = 0xff
} DAT_SRQ_PARAM_MASK;

/* ---- zone, service points, requests ------------------------------------------ */

typedef struct dat_pz_param {
    DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef enum dat_pz_param_mask {
    DAT_PZ_FIELD_IA_HANDLE = 1,
    DAT_PZ_FIELD_ALL = 1
} DAT_PZ_PARAM_MASK;

typedef struct dat_psp_param {
    DAT_IA_HANDLE ia_handle;
    DAT_CONN_QUAL conn_qual;
    DAT_EVD_HANDLE evd_handle;
    DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef enum dat_psp_param_mask {
    DAT_PSP_FIELD_IA_HANDLE = 0x1,
    DAT_PSP_FIELD_CONN_QUAL = 0x2,
    DAT_PSP_FIELD_EVD_HANDLE = 0x4,
    DAT_PSP_FIELD_PSP_FLAGS = 0x8,
    DAT_PSP_FIELD_ALL = 0xf
} DAT_PSP_PARAM_MASK;

typedef struct dat_rsp_param {
    DAT_IA_HANDLE ia_handle;
    DAT_CONN_QUAL conn_qual;
    DAT_EVD_HANDLE evd_handle;
    DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef enum dat_rsp_param_mask {
    DAT_RSP_FIELD_IA_HANDLE = 0x1,
    DAT_RSP_FIELD_CONN_QUAL = 0x2,
    DAT_RSP_FIELD_EVD_HANDLE = 0x4,
    DAT_RSP_FIELD_EP_HANDLE = 0x8,
    DAT_RSP_FIELD_ALL = 0xf
} DAT_RSP_PARAM_MASK;

typedef struct dat_csp_param {
    DAT_IA_HANDLE ia_handle;
    DAT_COMM* comm;
    DAT_IA_ADDRESS_PTR address_ptr;
    DAT_EVD_HANDLE evd_handle;
} DAT_CSP_PARAM;

typedef enum dat_csp_param_mask {
    DAT_CSP_FIELD_IA_HANDLE = 0x1,
    DAT_CSP_FIELD_COMM = 0x2,
    DAT_CSP_FIELD_IA_ADDRESS = 0x4,
    DAT_CSP_FIELD_EVD_HANDLE = 0x8,
    DAT_CSP_FIELD_ALL = 0xf
} DAT_CSP_PARAM_MASK;

typedef struct dat_cr_param {
    DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
    DAT_PORT_QUAL remote_port_qual;
    DAT_COUNT private_data_size;
    DAT_PVOID private_data;
    DAT_EP_HANDLE local_ep_handle;
} DAT_CR_PARAM;

typedef enum dat_cr_param_mask {
    DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR = 0x1,
    DAT_CR_FIELD_REMOTE_PORT_QUAL = 0x2,
    DAT_CR_FIELD_PRIVATE_DATA_SIZE = 0x4,
    DAT_CR_FIELD_PRIVATE_DATA = 0x8,
    DAT_CR_FIELD_LOCAL_EP_HANDLE = 0x10,
    DAT_CR_FIELD_ALL = 0x1f
} DAT_CR_PARAM_MASK;

/* ---- events ------------------------------------------------------------------- */

/* STS-1 */
typedef enum dat_dto_completion_status {
    DAT_DTO_SUCCESS = 0,
    DAT_DTO_ERR_FLUSHED = 1,
    DAT_DTO_ERR_LOCAL_LENGTH = 2,
    DAT_DTO_ERR_LOCAL_EP = 3,
    DAT_DTO_ERR_LOCAL_PROTECTION = 4,
    DAT_DTO_ERR_BAD_RESPONSE = 5,
    DAT_DTO_ERR_REMOTE_ACCESS = 6,
    DAT_DTO_ERR_REMOTE_RESPONDER = 7,
    DAT_DTO_ERR_TRANSPORT = 8,
    DAT_DTO_ERR_RECEIVER_NOT_READY = 9,
    DAT_DTO_ERR_PARTIAL_PACKET = 10,
    DAT_RMR_OPERATION_FAILED = 11,
    DAT_DTO_ERR_LOCAL_MM_ERROR = 12
} DAT_DTO_COMPLETION_STATUS;

#define DAT_DTO_FAILURE DAT_DTO_ERR_FLUSHED
#define DAT_DTO_LENGTH_ERROR DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_RMR_BIND_COMPLETION_STATUS DAT_DTO_COMPLETION_STATUS
#define DAT_RMR_BIND_FAILURE DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_SUCCESS DAT_DTO_SUCCESS

/* The length is that of a success. rmr_context: what a message with invalidate ended. */
typedef struct dat_dto_completion_event_data {
    DAT_EP_HANDLE ep_handle;
    DAT_DTO_COOKIE user_cookie;
    DAT_DTO_COMPLETION_STATUS status;
    DAT_SEG_LENGTH transfered_length;
    DAT_DTOS operation;
    DAT_RMR_CONTEXT rmr_context;
} DAT_DTO_COMPLETION_EVENT_DATA;

typedef struct dat_rmr_bind_completion_event_data {
    DAT_RMR_HANDLE rmr_handle;
    DAT_RMR_COOKIE user_cookie;
    DAT_RMR_BIND_COMPLETION_STATUS status;
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

typedef union dat_sp_handle {
    DAT_RSP_HANDLE rsp_handle;
    DAT_PSP_HANDLE psp_handle;
    DAT_CSP_HANDLE csp_handle;
} DAT_SP_HANDLE;

typedef struct dat_cr_arrival_event_data {
    DAT_SP_HANDLE sp_handle;
    DAT_IA_ADDRESS_PTR local_ia_address_ptr;
    DAT_CONN_QUAL conn_qual;
    DAT_CR_HANDLE cr_handle;
    DAT_BOOLEAN truncate_flag;
} DAT_CR_ARRIVAL_EVENT_DATA;

/* PD-2..PD-5 */
typedef struct dat_connection_event_data {
    DAT_EP_HANDLE ep_handle;
    DAT_COUNT private_data_size;
    DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

/* EVD-41: reasons of asynchronous events, by the kind of object. */

typedef enum ia_async_error_reason {
    DAT_IA_CATASTROPHIC_ERROR = 0,
    DAT_IA_OTHER_ERROR = 1
} DAT_IA_ASYNC_ERROR_REASON;

typedef enum ep_async_error_reason {
    DAT_EP_TRANSFER_TO_ERROR = 0,
    DAT_EP_OTHER_ERROR = 1,
    DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT = 2
} DAT_EP_ASYNC_ERROR_REASON;

typedef enum evd_async_error_reason {
    DAT_EVD_OVERFLOW_ERROR = 0,
    DAT_EVD_OTHER_ERROR = 1
} DAT_EVD_ASYNC_ERROR_REASON;

typedef enum srq_async_error_reason {
    DAT_SRQ_TRANSFER_TO_ERROR = 0,
    DAT_SRQ_OTHER_ERROR = 1,
    DAT_SRQ_LOW_WATERMARK_EVENT = 2
} DAT_SRQ_ASYNC_ERROR_REASON;

typedef enum lmr_async_error_reason {
    DAT_LMR_OTHER_ERROR = 0
} DAT_LMR_ASYNC_ERROR_REASON;

typedef enum rmr_async_error_reason {
    DAT_RMR_OTHER_ERROR = 0
} DAT_RMR_ASYNC_ERROR_REASON;

typedef enum pz_async_error_reason {
    DAT_PZ_OTHER_ERROR = 0
} DAT_PZ_ASYNC_ERROR_REASON;

typedef struct dat_asynch_error_event_data {
    DAT_HANDLE dat_handle;
    DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

typedef struct dat_software_event_data {
    DAT_PVOID pointer;
} DAT_SOFTWARE_EVENT_DATA;

typedef union dat_event_data {
    DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
    DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
    DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
    DAT_CONNECTION_EVENT_DATA connect_event_data;
    DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
    DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

/* EVD-40: which member of the data says more. */
typedef enum dat_event_number {
    DAT_DTO_COMPLETION_EVENT = 0x1,
    DAT_RMR_BIND_COMPLETION_EVENT = 0x1001,
    DAT_CONNECTION_REQUEST_EVENT = 0x2001,
    DAT_CONNECTION_EVENT_ESTABLISHED = 0x4001,
    DAT_CONNECTION_EVENT_PEER_REJECTED = 0x4002,
    DAT_CONNECTION_EVENT_NON_PEER_REJECTED = 0x4003,
    DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR = 0x4004,
    DAT_CONNECTION_EVENT_DISCONNECTED = 0x4005,
    DAT_CONNECTION_EVENT_BROKEN = 0x4006,
    DAT_CONNECTION_EVENT_TIMED_OUT = 0x4007,
    DAT_CONNECTION_EVENT_UNREACHABLE = 0x4008,
    DAT_ASYNC_ERROR_EVD_OVERFLOW = 0x8001,
    DAT_ASYNC_ERROR_IA_CATASTROPHIC = 0x8002,
    DAT_ASYNC_ERROR_EP_BROKEN = 0x8003,
    DAT_ASYNC_ERROR_TIMED_OUT = 0x8004,
    DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR = 0x8005,
    DAT_HA_DOWN_TO_1 = 0x8101,
    DAT_HA_UP_TO_MULTI_PATH = 0x8102,
    DAT_SOFTWARE_EVENT = 0x10001,
    DAT_EXTENSION_EVENT = 0x20000,
    DAT_IB_EXTENSION_RANGE_BASE = 0x40000,
    DAT_IW_EXTENSION_RANGE_BASE = 0x80000
} DAT_EVENT_NUMBER;

typedef struct dat_event {
    DAT_EVENT_NUMBER event_number;
    DAT_EVD_HANDLE evd_handle;
    DAT_EVENT_DATA event_data;
    DAT_UINT64 event_extension_data[8];
} DAT_EVENT;

/* An entry of the registry. */
typedef struct dat_provider_info {
    char ia_name[DAT_NAME_MAX_LENGTH];
    DAT_UINT32 dapl_version_major;
    DAT_UINT32 dapl_version_minor;
    DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;

/* ---- calls --------------------------------------------------------------------- */

/*
 * Every call returns DAT_SUCCESS or a code of class, type and subtype: compare with
 * DAT_GET_TYPE (GEN-1). A call that fails changes nothing (GEN-2), and what it would
 * have put out is undefined. A bad or stale handle is DAT_INVALID_HANDLE, its subtype
 * the kind of object or of event dispatcher that was wanted. A NULL pointer, a mask or
 * flag with unknown bits, or a number out of range is DAT_INVALID_PARAMETER, its
 * subtype the parameter, counted from 1. Where something cannot be made
 * DAT_INSUFFICIENT_RESOURCES says what there is too little of. What is said below of
 * errors is what a call has besides.
 *
 * Blocking: dat_evd_wait and dat_cno_wait wait for events. dat_ia_openv looks for the
 * device of an adapter, some milliseconds, and asks a name server where dat.conf names
 * a host. dat_ia_close waits for threads that wait, and up to a second for peers to
 * take what was sent; dat_cno_free for an agent that is being called. No other call
 * waits for the network or another program; what it sets in motion is told by an
 * event.
 *
 * Threads (MT-1..MT-4): dat_ia_openv, dat_ia_query, dat_cr_query, dat_ep_get_status,
 * dat_evd_dequeue, dat_evd_wait, dat_evd_enable, dat_evd_disable,
 * dat_evd_set_unwaitable, dat_evd_clear_unwaitable, dat_cno_wait, dat_psp_query,
 * dat_rsp_query, dat_pz_query, dat_registry_list_providers, dat_strerror and those
 * that create an object may be called from any thread at any time. All others have to
 * be serialized by the program among those on the same object; on different objects
 * they may be made at once. No object may be freed while another call uses it.
 *
 * Ownership: an object belongs to the IA that it was made in, and goes with it at the
 * latest. Arrays of segments and structures of attributes are read within the call and
 * are the caller's again when it returns, private data as well. Memory that is posted
 * belongs to the library until its completion was dequeued. Queries fill the whole
 * structure, whatever the mask asks for (GEN-3); addresses and handles in it remain
 * the library's.
 */

/* Interface adapter: what all other objects are made in (OBJ-2). */

/*
 * Opens the adapter `name`, of dat.conf or of an interface or device (IA-1, IA-6),
 * without a prefix RO_AWARE_ (IA-4); dat_ia_open is it with the version of this
 * header. `async_evd_handle` is in and out (IA-2): DAT_HANDLE_NULL has one made for at
 * least so many events, which dat_ia_close takes with it; a handle is used, and
 * remains the program's; DAT_EVD_ASYNC_EXISTS has none, and becomes
 * DAT_EVD_OUT_OF_SCOPE. No such name, version or thread safety:
 * DAT_PROVIDER_NOT_FOUND.
 */
extern DAT_RETURN DAT_API dat_ia_openv(IN const DAT_NAME_PTR name, IN DAT_COUNT async_evd_min_qlen,
                                       INOUT DAT_EVD_HANDLE* async_evd_handle,
                                       OUT DAT_IA_HANDLE* ia_handle, IN DAT_UINT32 dapl_major,
                                       IN DAT_UINT32 dapl_minor, IN DAT_BOOLEAN thread_safety);

/*
 * Tells what the adapter has and can (IA-12, GEN-3). A mask may be 0, its pointer NULL
 * then; so may `async_evd_handle`. Addresses are valid until the IA is closed, named
 * attributes always.
 */
extern DAT_RETURN DAT_API dat_ia_query(IN DAT_IA_HANDLE ia_handle,
                                       OUT DAT_EVD_HANDLE* async_evd_handle,
                                       IN DAT_IA_ATTR_MASK ia_attr_mask, OUT DAT_IA_ATTR* ia_attr,
                                       IN DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                                       OUT DAT_PROVIDER_ATTR* provider_attr);

/*
 * Closes the adapter; the handle is dead then. Graceful: only where the program has
 * freed all it made, else DAT_INVALID_STATE (IA-7). Abrupt: ends connections, frees
 * everything, and releases waiters with DAT_ABORT (IA-8, IA-11). An asynchronous event
 * dispatcher of the program's stays (IA-9). No call on anything of the IA may be made
 * meanwhile but by those waiters.
 */
extern DAT_RETURN DAT_API dat_ia_close(IN DAT_IA_HANDLE ia_handle, IN DAT_CLOSE_FLAGS close_flags);

/* Any object. */

/*
 * Replaces the program's own word on the object, of 8 bytes; it is neither looked at
 * nor guarded (CTX-1, CTX-2).
 */
extern DAT_RETURN DAT_API dat_set_consumer_context(IN DAT_HANDLE dat_handle,
                                                   IN DAT_CONTEXT context);

/* That word; 0 before the first one (CTX-3). */
extern DAT_RETURN DAT_API dat_get_consumer_context(IN DAT_HANDLE dat_handle,
                                                   OUT DAT_CONTEXT* context);

/* What kind of object it is (HND-1). */
extern DAT_RETURN DAT_API dat_get_handle_type(IN DAT_HANDLE dat_handle,
                                              OUT DAT_HANDLE_TYPE* handle_type);

/*
 * Connection requests. They come with an event (CR-1), never expire (CR-9), and are
 * gone with the first of dat_cr_accept, dat_cr_reject and dat_cr_handoff that succeeds
 * (OBJ-3).
 */

/*
 * Tells of the request: who asks, with what private data (CR-1, PD-5): exactly
 * `private_data_size` bytes, behind which zeroes follow; they and the address may be
 * read, the data changed in place, until the request is accepted, rejected or handed
 * off. `local_ep_handle`: DAT_HANDLE_NULL where dat_cr_accept is to be given an
 * endpoint.
 */
extern DAT_RETURN DAT_API dat_cr_query(IN DAT_CR_HANDLE cr_handle,
                                       IN DAT_CR_PARAM_MASK cr_param_mask,
                                       OUT DAT_CR_PARAM* cr_param);

/*
 * Answers with the endpoint, which has to be DAT_HANDLE_NULL where the request has
 * one, else unconnected, with a zone and a connection event dispatcher (CR-2, CR-3;
 * DAT_INVALID_STATE, DAT_INVALID_HANDLE). The handle of the request is dead then. What
 * becomes of it is told later, once: ESTABLISHED or ACCEPT_COMPLETION_ERROR (CR-5,
 * CR-6). `private_data_size` is in bytes, for the peer; more than the peer takes:
 * DAT_INVALID_PARAMETER (CR-4).
 */
extern DAT_RETURN DAT_API dat_cr_accept(IN DAT_CR_HANDLE cr_handle, IN DAT_EP_HANDLE ep_handle,
                                        IN DAT_COUNT private_data_size,
                                        IN const DAT_PVOID private_data);

/*
 * Refuses; the peer is told PEER_REJECTED with that data, in bytes (CR-7, PD-4). The
 * request is gone, and an endpoint that was made for it; a reserved one is UNCONNECTED
 * again.
 */
extern DAT_RETURN DAT_API dat_cr_reject(IN DAT_CR_HANDLE cr_handle, IN DAT_COUNT private_data_size,
                                        IN const DAT_PVOID private_data);

/*
 * Gives the request to another service point of this IA, which tells of it anew (CR-8,
 * U-31). The handle is dead then; endpoints as in dat_cr_reject. Nobody listens there:
 * DAT_INVALID_PARAMETER.
 */
extern DAT_RETURN DAT_API dat_cr_handoff(IN DAT_CR_HANDLE cr_handle, IN DAT_CONN_QUAL handoff);

/*
 * Event dispatchers; see udat.h for the others. Events of one stream keep their order
 * (EVD-5).
 */

/*
 * Changes its length: room for at least so many events; none is lost (EVD-32). More
 * are queued: DAT_INVALID_STATE.
 */
extern DAT_RETURN DAT_API dat_evd_resize(IN DAT_EVD_HANDLE evd_handle, IN DAT_COUNT evd_min_qlen);

/*
 * Queues a software event: its number has to be DAT_SOFTWARE_EVENT, and of the rest
 * the pointer is taken, which remains the program's (EVD-33). As many as the length
 * are queued already: DAT_QUEUE_FULL.
 */
extern DAT_RETURN DAT_API dat_evd_post_se(IN DAT_EVD_HANDLE evd_handle, IN const DAT_EVENT* event);

/*
 * The next event, if any: never blocks (EVD-21, EVD-5, EVD-6). Nothing there:
 * DAT_QUEUE_EMPTY, without the class bit, to be compared whole. A thread is in
 * dat_evd_wait on it: DAT_INVALID_STATE (EVD-17).
 */
extern DAT_RETURN DAT_API dat_evd_dequeue(IN DAT_EVD_HANDLE evd_handle, OUT DAT_EVENT* event);

/* Tells its length in events, streams, state and CNO (EVD-1, EVD-4). */
extern DAT_RETURN DAT_API dat_evd_query(IN DAT_EVD_HANDLE evd_handle,
                                        IN DAT_EVD_PARAM_MASK evd_param_mask,
                                        OUT DAT_EVD_PARAM* evd_param);

/*
 * Frees the queue. With all events in it, and not what feeds it: that has to be freed,
 * or changed, first, and nobody may wait, else DAT_INVALID_STATE (EVD-35, OBJ-4).
 */
extern DAT_RETURN DAT_API dat_evd_free(IN DAT_EVD_HANDLE evd_handle);

/*
 * Endpoints. Each has one thread at a time that posts (MT-2), while others dequeue. In
 * DISCONNECTED a post is flushed at once (FLS-1). Requests (sends, RDMA, binds) need
 * CONNECTED or DISCONNECTED (EP-23, EP-24), else DAT_INVALID_STATE with the state as
 * subtype (EP-29).
 *
 * Of all posts: up to max_*_iov segments of registered memory of the endpoint's zone,
 * each of 32 bits of length in bytes; those of length 0 are skipped (LMR-9).
 * `user_cookie` comes back in the completion (DTO-7), of which there is one, unless
 * DAT_COMPLETION_SUPPRESS_FLAG was given and it went well (DTO-8, DTO-21); which flags
 * may be: DTO-26. Memory of another zone: DAT_PROTECTION_VIOLATION; unknown, or
 * without the right: DAT_PRIVILEGES_VIOLATION (DTO-3). As many are outstanding, posted
 * and not dequeued, as max_*_dtos: DAT_INSUFFICIENT_RESOURCES (DTO-5). What goes wrong
 * later is the status of the completion (STS-0, STS-1), and ends the connection.
 */

/*
 * Makes an endpoint in UNCONNECTED. Zone and event dispatchers may be DAT_HANDLE_NULL:
 * without the latter what they would tell is lost (EPA-2, EP-73), and to connect it
 * needs a zone and that for connections (U-12). Several endpoints and streams may
 * share one, as far as their completion flags agree (EVD-3, EPA-11). `ep_attributes`:
 * NULL for defaults, 128 requests and receives of as many segments as there can be
 * (EPA-1); more than the adapter has: DAT_INVALID_PARAMETER (EPA-3, EPA-4, EPA-8).
 */
extern DAT_RETURN DAT_API dat_ep_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                                        IN DAT_EVD_HANDLE recv_evd_handle,
                                        IN DAT_EVD_HANDLE request_evd_handle,
                                        IN DAT_EVD_HANDLE connect_evd_handle,
                                        IN const DAT_EP_ATTR* ep_attributes,
                                        OUT DAT_EP_HANDLE* ep_handle);

/*
 * Tells of the endpoint: state, addresses, parts and attributes; which are valid in
 * which state: EPA-9. Addresses are the endpoint's, until the next query of it.
 */
extern DAT_RETURN DAT_API dat_ep_query(IN DAT_EP_HANDLE ep_handle,
                                       IN DAT_EP_PARAM_MASK ep_param_mask,
                                       OUT DAT_EP_PARAM* ep_param);

/*
 * Changes what the mask names, all of it or nothing. What may be changed in which
 * state: EPA-5, EPA-6; else DAT_INVALID_STATE, or DAT_INVALID_PARAMETER for what never
 * may.
 */
extern DAT_RETURN DAT_API dat_ep_modify(IN DAT_EP_HANDLE ep_handle,
                                        IN DAT_EP_PARAM_MASK ep_param_mask,
                                        IN const DAT_EP_PARAM* ep_param);

/*
 * Asks for a connection, from UNCONNECTED alone (EP-10). `timeout` in microseconds,
 * not 0 (TMO-1); `private_data_size` in bytes, at most max_private_data_size (PD-1).
 * Returns at once; exactly one event tells how it went (EP-30, EP-40..EP-46). The port
 * of the qualifier is its low 16 bits, and not 0. Another family, multicast,
 * broadcast: DAT_INVALID_ADDRESS (ADR-1). Any quality but best effort, and a required
 * second path: DAT_MODEL_NOT_SUPPORTED (QOS-1, MP-1).
 */
extern DAT_RETURN DAT_API dat_ep_connect(IN DAT_EP_HANDLE ep_handle,
                                         IN DAT_IA_ADDRESS_PTR ia_address,
                                         IN DAT_CONN_QUAL conn_qual, IN DAT_TIMEOUT timeout,
                                         IN DAT_COUNT private_data_size,
                                         IN const DAT_PVOID private_data, IN DAT_QOS qos,
                                         IN DAT_CONNECT_FLAGS connect_flags);

/*
 * As dat_ep_connect, to where `ep_dup_handle` is connected, else DAT_INVALID_STATE
 * (EP-11).
 */
extern DAT_RETURN DAT_API dat_ep_dup_connect(IN DAT_EP_HANDLE ep_handle,
                                             IN DAT_EP_HANDLE ep_dup_handle, IN DAT_TIMEOUT timeout,
                                             IN DAT_COUNT private_data_size,
                                             IN const DAT_PVOID private_data, IN DAT_QOS qos);

/* As dat_ep_connect, to the address and port of `remote_addr` (V2-1). */
extern DAT_RETURN DAT_API dat_ep_common_connect(IN DAT_EP_HANDLE ep_handle,
                                                IN DAT_IA_ADDRESS_PTR remote_addr,
                                                IN DAT_TIMEOUT timeout,
                                                IN DAT_COUNT private_data_size,
                                                IN const DAT_PVOID private_data);

/*
 * Ends a connection or an attempt (DISC-1..DISC-14). Graceful: requests that were
 * posted are carried out first; abrupt: they are flushed. Returns before that;
 * DISCONNECTED comes once, when it is over (DISC-10 says behind what). Ended already:
 * DAT_SUCCESS, without an event; not begun: DAT_INVALID_STATE.
 */
extern DAT_RETURN DAT_API dat_ep_disconnect(IN DAT_EP_HANDLE ep_handle,
                                            IN DAT_CLOSE_FLAGS close_flags);

/*
 * Sends a message of the segments, 0 of them being one of no bytes (DTO-1, DTO-12).
 * More segments or bytes than may be: DAT_INVALID_PARAMETER (DTO-2, DTO-4). A success
 * says that the peer has placed it; on an iWARP device, that it was sent (U-61).
 */
extern DAT_RETURN DAT_API dat_ep_post_send(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
                                           IN DAT_LMR_TRIPLET* local_iov,
                                           IN DAT_DTO_COOKIE user_cookie,
                                           IN DAT_COMPLETION_FLAGS completion_flags);

/*
 * As dat_ep_post_send; where `invalidate_flag` is set the message also ends the peer's
 * window of that context (V2-1).
 */
extern DAT_RETURN DAT_API dat_ep_post_send_with_invalidate(IN DAT_EP_HANDLE ep_handle,
                                                           IN DAT_COUNT num_segments,
                                                           IN DAT_LMR_TRIPLET* local_iov,
                                                           IN DAT_DTO_COOKIE user_cookie,
                                                           IN DAT_COMPLETION_FLAGS completion_flags,
                                                           IN DAT_BOOLEAN invalidate_flag,
                                                           IN DAT_RMR_CONTEXT rmr_context);

/*
 * Posts memory for the next message, in any state (DTO-13, EP-25); of an endpoint with
 * a shared receive queue DAT_INVALID_STATE (EP-26). Needs LOCAL_WRITE. A message that
 * is longer ends the connection (DTO-9). Flags: UNSIGNALLED alone, if the endpoint has
 * it (DTO-26).
 */
extern DAT_RETURN DAT_API dat_ep_post_recv(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
                                           IN DAT_LMR_TRIPLET* local_iov,
                                           IN DAT_DTO_COOKIE user_cookie,
                                           IN DAT_COMPLETION_FLAGS completion_flags);

/*
 * Reads the remote range into the segments, which need LOCAL_WRITE (DTO-16, RDR-2).
 * As much as they hold is read; the length of the remote range is not looked at (DTO-4).
 */
extern DAT_RETURN DAT_API dat_ep_post_rdma_read(IN DAT_EP_HANDLE ep_handle,
                                                IN DAT_COUNT num_segments,
                                                IN DAT_LMR_TRIPLET* local_iov,
                                                IN DAT_DTO_COOKIE user_cookie,
                                                IN const DAT_RMR_TRIPLET* remote_iov,
                                                IN DAT_COMPLETION_FLAGS completion_flags);

/*
 * As dat_ep_post_rdma_read, into the memory that a window of this IA is bound to, one
 * segment of it (V2-1). No such window: DAT_PRIVILEGES_VIOLATION.
 */
extern DAT_RETURN DAT_API dat_ep_post_rdma_read_to_rmr(IN DAT_EP_HANDLE ep_handle,
                                                       IN const DAT_RMR_TRIPLET* local_iov,
                                                       IN DAT_DTO_COOKIE user_cookie,
                                                       IN const DAT_RMR_TRIPLET* remote_iov,
                                                       IN DAT_COMPLETION_FLAGS completion_flags);

/*
 * Writes the segments to the beginning of the remote range, whose length is not looked
 * at (DTO-4). The peer is told nothing; what is behind it on the
 * connection comes later (DTO-15).
 */
extern DAT_RETURN DAT_API dat_ep_post_rdma_write(IN DAT_EP_HANDLE ep_handle,
                                                 IN DAT_COUNT num_segments,
                                                 IN DAT_LMR_TRIPLET* local_iov,
                                                 IN DAT_DTO_COOKIE user_cookie,
                                                 IN const DAT_RMR_TRIPLET* remote_iov,
                                                 IN DAT_COMPLETION_FLAGS completion_flags);

/*
 * Tells, as a snapshot, the state, and whether receives and requests are all done
 * (EPA-10). Each pointer may be NULL.
 */
extern DAT_RETURN DAT_API dat_ep_get_status(IN DAT_EP_HANDLE ep_handle, OUT DAT_EP_STATE* ep_state,
                                            OUT DAT_BOOLEAN* recv_idle,
                                            OUT DAT_BOOLEAN* request_idle);

/*
 * Ends a connection abruptly, frees the endpoint, and takes its events out of all
 * event dispatchers (FREE-1..FREE-3). A service point or request has it:
 * DAT_INVALID_STATE.
 */
extern DAT_RETURN DAT_API dat_ep_free(IN DAT_EP_HANDLE ep_handle);

/*
 * From DISCONNECTED to UNCONNECTED, to be connected anew; synchronous, and keeps
 * events that are queued (RST-1..RST-4). UNCONNECTED: nothing to do; else
 * DAT_INVALID_STATE.
 */
extern DAT_RETURN DAT_API dat_ep_reset(IN DAT_EP_HANDLE ep_handle);

/*
 * As dat_ep_create, with its receives from the shared queue, for as long as it lives
 * (SRQ-2). Its zone is the queue's, else DAT_INVALID_PARAMETER, unless
 * srq_ep_pz_difference_supported. Attributes may not be NULL; max_recv_iov is not
 * looked at.
 */
extern DAT_RETURN DAT_API dat_ep_create_with_srq(IN DAT_IA_HANDLE ia_handle,
                                                 IN DAT_PZ_HANDLE pz_handle,
                                                 IN DAT_EVD_HANDLE recv_evd_handle,
                                                 IN DAT_EVD_HANDLE request_evd_handle,
                                                 IN DAT_EVD_HANDLE connect_evd_handle,
                                                 IN DAT_SRQ_HANDLE srq_handle,
                                                 IN const DAT_EP_ATTR* ep_attributes,
                                                 OUT DAT_EP_HANDLE* ep_handle);

/*
 * How many buffers the endpoint has, and how many more its messages may take (SRQ-12).
 * Either pointer may be NULL.
 */
extern DAT_RETURN DAT_API dat_ep_recv_query(IN DAT_EP_HANDLE ep_handle,
                                            OUT DAT_COUNT* nbufs_allocated,
                                            OUT DAT_COUNT* bufs_alloc_span);

/*
 * Sets two numbers of receive buffers: beyond the soft one an asynchronous event is
 * raised, once for each call; beyond the hard one the connection is broken;
 * DAT_WATERMARK_INFINITE is none (SRQ-11).
 */
extern DAT_RETURN DAT_API dat_ep_set_watermark(IN DAT_EP_HANDLE ep_handle,
                                               IN DAT_COUNT soft_high_watermark,
                                               IN DAT_COUNT hard_high_watermark);

/* Memory and windows on it; see udat.h for dat_lmr_create. */

/*
 * Frees the region: ends local and remote use, but not the memory, which is the
 * program's (LMR-7). A window is bound to it: DAT_INVALID_STATE.
 */
extern DAT_RETURN DAT_API dat_lmr_free(IN DAT_LMR_HANDLE lmr_handle);

/*
 * Before peers read what was written here: has nothing to do but to check the segments
 * (LMR-8).
 */
extern DAT_RETURN DAT_API dat_lmr_sync_rdma_read(IN DAT_IA_HANDLE ia_handle,
                                                 IN const DAT_LMR_TRIPLET* local_segments,
                                                 IN DAT_VLEN num_segments);

/* After peers have written: as dat_lmr_sync_rdma_read. */
extern DAT_RETURN DAT_API dat_lmr_sync_rdma_write(IN DAT_IA_HANDLE ia_handle,
                                                  IN const DAT_LMR_TRIPLET* local_segments,
                                                  IN DAT_VLEN num_segments);

/*
 * Makes a window of the zone, bound to nothing (RMR-1). max_rmrs is 0:
 * DAT_MODEL_NOT_SUPPORTED.
 */
extern DAT_RETURN DAT_API dat_rmr_create(IN DAT_PZ_HANDLE pz_handle,
                                         OUT DAT_RMR_HANDLE* rmr_handle);

/* Not offered: DAT_MODEL_NOT_SUPPORTED (rmr_scope_supported is the zone). */
extern DAT_RETURN DAT_API dat_rmr_create_for_ep(IN DAT_PZ_HANDLE pz_handle,
                                                OUT DAT_RMR_HANDLE* rmr_handle);

/*
 * Tells its zone, memory, rights and context; while nothing is bound the latter say
 * nothing (RMR-1).
 */
extern DAT_RETURN DAT_API dat_rmr_query(IN DAT_RMR_HANDLE rmr_handle,
                                        IN DAT_RMR_PARAM_MASK rmr_param_mask,
                                        OUT DAT_RMR_PARAM* rmr_param);

/*
 * Posts a request that opens the window on the triplet's memory, in bytes, or with
 * length 0 closes it (RMR-2..RMR-9). `context` is put out at once, and may be told to
 * the peer when the completion is there; the one before is dead then. The same states
 * as for a send. A zone that is not the endpoint's and the memory's:
 * DAT_PROTECTION_VIOLATION; rights that the memory lacks: DAT_PRIVILEGES_VIOLATION
 * (RMR-8).
 */
extern DAT_RETURN DAT_API dat_rmr_bind(IN DAT_RMR_HANDLE rmr_handle, IN DAT_LMR_HANDLE lmr_handle,
                                       IN const DAT_LMR_TRIPLET* lmr_triplet,
                                       IN DAT_MEM_PRIV_FLAGS mem_priv, IN DAT_VA_TYPE va_type,
                                       IN DAT_EP_HANDLE ep_handle, IN DAT_RMR_COOKIE user_cookie,
                                       IN DAT_COMPLETION_FLAGS completion_flags,
                                       OUT DAT_RMR_CONTEXT* context);

/* Frees the window, bound or not: peers cannot use it any more (RMR-10). */
extern DAT_RETURN DAT_API dat_rmr_free(IN DAT_RMR_HANDLE rmr_handle);

/*
 * Service points. All of them are local; requests arrive while an event dispatcher of
 * them is read or waited for.
 */

/*
 * Listens at a qualifier, whose low 16 bits are a TCP port, not 0; returns when it
 * does (SP-1). Each request is an event of `evd_handle`, whose length is the backlog
 * (SP-2, SP-3). Who makes the endpoint: SP-4. Listened at already:
 * DAT_CONN_QUAL_IN_USE.
 */
extern DAT_RETURN DAT_API dat_psp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
                                         IN DAT_EVD_HANDLE evd_handle, IN DAT_PSP_FLAGS psp_flags,
                                         OUT DAT_PSP_HANDLE* psp_handle);

/*
 * As dat_psp_create, at a free qualifier, which is put out (SP-1). None is free:
 * DAT_CONN_QUAL_UNAVAILABLE.
 */
extern DAT_RETURN DAT_API dat_psp_create_any(IN DAT_IA_HANDLE ia_handle,
                                             OUT DAT_CONN_QUAL* conn_qual,
                                             IN DAT_EVD_HANDLE evd_handle,
                                             IN DAT_PSP_FLAGS psp_flags,
                                             OUT DAT_PSP_HANDLE* psp_handle);

/* Tells its qualifier, as given, event dispatcher and flag. */
extern DAT_RETURN DAT_API dat_psp_query(IN DAT_PSP_HANDLE psp_handle,
                                        IN DAT_PSP_PARAM_MASK psp_param_mask,
                                        OUT DAT_PSP_PARAM* psp_param);

/* Listens no more; requests that were told of stay (SP-6). */
extern DAT_RETURN DAT_API dat_psp_free(IN DAT_PSP_HANDLE psp_handle);

/*
 * Listens for one request, for the endpoint, which is RESERVED then (SP-10, SP-11,
 * EP-12). It is not UNCONNECTED: DAT_INVALID_STATE; DAT_HANDLE_NULL:
 * DAT_MODEL_NOT_SUPPORTED (U-30).
 */
extern DAT_RETURN DAT_API dat_rsp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
                                         IN DAT_EP_HANDLE ep_handle, IN DAT_EVD_HANDLE evd_handle,
                                         OUT DAT_RSP_HANDLE* rsp_handle);

/* Tells its qualifier, event dispatcher and endpoint. */
extern DAT_RETURN DAT_API dat_rsp_query(IN DAT_RSP_HANDLE rsp_handle,
                                        IN DAT_RSP_PARAM_MASK rsp_param_mask,
                                        OUT DAT_RSP_PARAM* rsp_param);

/*
 * Frees it. Before the request: the endpoint is UNCONNECTED again (SP-12); afterwards
 * the handle alone goes (U-52).
 */
extern DAT_RETURN DAT_API dat_rsp_free(IN DAT_RSP_HANDLE rsp_handle);

/*
 * Listens at an address and port of this adapter, port 0 being any (V2-1). Not a TCP
 * communicator of the adapter's family: DAT_COMM_NOT_SUPPORTED; listened at already:
 * DAT_PORT_IN_USE.
 */
extern DAT_RETURN DAT_API dat_csp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_COMM* comm,
                                         IN DAT_IA_ADDRESS_PTR addr, IN DAT_EVD_HANDLE evd_handle,
                                         OUT DAT_CSP_HANDLE* csp_handle);

/*
 * Tells its communicator, address with port, and event dispatcher; they are the
 * service point's.
 */
extern DAT_RETURN DAT_API dat_csp_query(IN DAT_CSP_HANDLE csp_handle,
                                        IN DAT_CSP_PARAM_MASK csp_param_mask,
                                        OUT DAT_CSP_PARAM* csp_param);

/* Listens no more, as dat_psp_free. */
extern DAT_RETURN DAT_API dat_csp_free(IN DAT_CSP_HANDLE csp_handle);

/* Protection zones. */

/*
 * Makes a protection zone: memory and endpoints of one zone may be used with each
 * other (PZ-1).
 */
extern DAT_RETURN DAT_API dat_pz_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_PZ_HANDLE* pz_handle);

/* Tells the IA that it is of. */
extern DAT_RETURN DAT_API dat_pz_query(IN DAT_PZ_HANDLE pz_handle,
                                       IN DAT_PZ_PARAM_MASK pz_param_mask,
                                       OUT DAT_PZ_PARAM* pz_param);

/* Frees the zone. Something is in it: DAT_INVALID_STATE (OBJ-4). */
extern DAT_RETURN DAT_API dat_pz_free(IN DAT_PZ_HANDLE pz_handle);

/* Shared receive queues. */

/*
 * Makes a queue of receives for many endpoints: so many, of so many segments;
 * low_watermark has to be DAT_SRQ_LW_DEFAULT (SRQ-1). Where the adapter has none:
 * DAT_MODEL_NOT_SUPPORTED.
 */
extern DAT_RETURN DAT_API dat_srq_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
                                         IN DAT_SRQ_ATTR* srq_attr, OUT DAT_SRQ_HANDLE* srq_handle);

/*
 * Frees the queue with the receives in it. An endpoint has it: DAT_INVALID_STATE
 * (SRQ-10).
 */
extern DAT_RETURN DAT_API dat_srq_free(IN DAT_SRQ_HANDLE srq_handle);

/*
 * Posts a receive: memory of the queue's zone for a message to any of its endpoints;
 * which of them is in the event (SRQ-3..SRQ-5). As many are outstanding as may be:
 * DAT_INSUFFICIENT_RESOURCES (SRQ-7).
 */
extern DAT_RETURN DAT_API dat_srq_post_recv(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT num_segments,
                                            IN DAT_LMR_TRIPLET* local_iov,
                                            IN DAT_DTO_COOKIE user_cookie);

/* Tells its attributes, and how many receives are in it, and not dequeued (SRQ-6). */
extern DAT_RETURN DAT_API dat_srq_query(IN DAT_SRQ_HANDLE srq_handle,
                                        IN DAT_SRQ_PARAM_MASK srq_param_mask,
                                        OUT DAT_SRQ_PARAM* srq_param);

/*
 * Asks for room for so many receives. It neither shrinks nor grows: less than before,
 * or the same, is granted, if not less than what is outstanding or the watermark, else
 * DAT_INVALID_STATE; more: DAT_INSUFFICIENT_RESOURCES (SRQ-9).
 */
extern DAT_RETURN DAT_API dat_srq_resize(IN DAT_SRQ_HANDLE srq_handle,
                                         IN DAT_COUNT srq_max_recv_dto);

/*
 * Arms one asynchronous event for when fewer receives are in it than so many; at once,
 * if that is so (SRQ-8). 0: none.
 */
extern DAT_RETURN DAT_API dat_srq_set_lw(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT low_watermark);

/* The registry. */

/*
 * The names that can be opened, those of dat.conf first: fills the structures that the
 * array of `max_to_return` pointers points to, which are the program's, as far as they
 * go; `entries_returned` of them are filled. For a `max_to_return` of 0 it says how many
 * names there are, and the call returns DAT_INVALID_PARAMETER (REG-5).
 */
extern DAT_RETURN DAT_API dat_registry_list_providers(IN DAT_COUNT max_to_return,
                                                      OUT DAT_COUNT* entries_returned,
                                                      OUT DAT_PROVIDER_INFO* dat_provider_list[]);

#ifdef DAT_EXTENSIONS
/* Operations and their arguments are in dat_ib_extensions.h. */
#define DAT_OPEN_EXTENSION_BASE 0x1000
#define DAT_CLOSE_EXTENSION_BASE 0x2000
#define DAT_IB_EXTENSION 1
#define DAT_IW_EXTENSION 2
typedef int DAT_EXTENDED_OP;
/*
 * What the macros of dat_ib_extensions.h call: requests as the posts above, queries of
 * counters and adapters (V2-1). What the adapter or the peer has not:
 * DAT_MODEL_NOT_SUPPORTED; no such operation: DAT_NOT_IMPLEMENTED.
 */
extern DAT_RETURN DAT_API dat_extension_op(IN DAT_HANDLE handle, IN DAT_EXTENDED_OP operation,
                                           IN ...);
#endif

#ifdef __cplusplus
}
#endif

#endif /* _DAT_H_ */
