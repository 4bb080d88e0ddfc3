/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * librpma.h - the interface of librpma 1.2, as librpma.so.0 of the `dat`
 * provider offers it; rpma_shim(7) says what runs on it, and what differs.
 *
 * Types, values and functions are those of any librpma of that version, so a
 * program that was compiled with another one's header runs on this library,
 * and the other way round. What a function does its manual page of librpma
 * says; here stands what is short. Unless a comment says otherwise a function
 * returns 0 or one of RPMA_E_*, and changes nothing where it fails. Objects
 * are made by *_new() and the like through a pointer that the caller has, and
 * ended by *_delete() and the like, which set that pointer to NULL and take
 * one to NULL as well.
 */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- results ------------------------------------------------------------- */

#define RPMA_W_WAIT_FOR_COMPLETION (1)

#define RPMA_E_UNKNOWN (-100000)
#define RPMA_E_NOSUPP (-100001)          /* not offered, here or by the peer */
#define RPMA_E_PROVIDER (-100002)        /* what is below has failed; the log says how */
#define RPMA_E_NOMEM (-100003)           /* out of memory */
#define RPMA_E_INVAL (-100004)           /* an argument is wrong; the log says which */
#define RPMA_E_NO_COMPLETION (-100005)   /* nothing has completed */
#define RPMA_E_NO_EVENT (-100006)        /* nothing has happened */
#define RPMA_E_AGAIN (-100007)           /* may well work the next time */
#define RPMA_E_SHARED_CHANNEL (-100008)  /* use rpma_conn_wait() */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* use rpma_cq_wait() */

/* The text of one of these; of what is none, as of RPMA_E_UNKNOWN. Never NULL. */
const char* rpma_err_2str(int ret);

/* --- devices --------------------------------------------------------------- */

#define RPMA_DEFAULT_TIMEOUT_MS 1000

enum rpma_util_ibv_context_type {
    RPMA_UTIL_IBV_CONTEXT_LOCAL,  /* the address is one of this host */
    RPMA_UTIL_IBV_CONTEXT_REMOTE, /* the address is a peer's */
};

/* What leads to an address: a device, or memory and TCP without one. Not to be closed. */
int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr);

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable);

/* --- what a peer can do ------------------------------------------------------ */

struct rpma_peer_cfg;

int rpma_peer_cfg_new(struct rpma_peer_cfg** pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg** pcfg_ptr);
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg* pcfg, bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg* pcfg, bool* supported);
/* To be sent to the peer, as it is. */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size);
int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size,
                                  struct rpma_peer_cfg** pcfg_ptr);

/* --- peer ---------------------------------------------------------------------- */

struct rpma_peer;

int rpma_peer_new(struct ibv_context* ibv_ctx, struct rpma_peer** peer_ptr);
int rpma_peer_delete(struct rpma_peer** peer_ptr);

/* --- memory -------------------------------------------------------------------- */

struct rpma_mr_local;
struct rpma_mr_remote;

/* What a region may be used for. */
#define RPMA_MR_USAGE_READ_SRC (1 << 0)
#define RPMA_MR_USAGE_READ_DST (1 << 1)
#define RPMA_MR_USAGE_WRITE_SRC (1 << 2)
#define RPMA_MR_USAGE_WRITE_DST (1 << 3)
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4)
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5)
#define RPMA_MR_USAGE_SEND (1 << 6)
#define RPMA_MR_USAGE_RECV (1 << 7)

int rpma_mr_reg(struct rpma_peer* peer, void* ptr, size_t size, int usage,
                struct rpma_mr_local** mr_ptr);
int rpma_mr_dereg(struct rpma_mr_local** mr_ptr);
/* To be sent to the peer, as it is. */
int rpma_mr_get_descriptor(const struct rpma_mr_local* mr, void* desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local* mr, size_t* desc_size);
int rpma_mr_get_ptr(const struct rpma_mr_local* mr, void** ptr);
int rpma_mr_get_size(const struct rpma_mr_local* mr, size_t* size);
/* `advice` and `flags` are those of ibv_advise_mr(3). */
int rpma_mr_advise(struct rpma_mr_local* mr, size_t offset, size_t len, int advice, uint32_t flags);

int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size,
                                   struct rpma_mr_remote** mr_ptr);
int rpma_mr_remote_get_size(const struct rpma_mr_remote* mr, size_t* size);
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote* mr, int* flush_type);
int rpma_mr_remote_delete(struct rpma_mr_remote** mr_ptr);

/* --- shared receive queue -------------------------------------------------------- */

struct rpma_cq;
struct rpma_srq;
struct rpma_srq_cfg;

int rpma_srq_cfg_new(struct rpma_srq_cfg** cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg** cfg_ptr);
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg* cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg* cfg, uint32_t* rq_size);
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg* cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg* cfg, uint32_t* rcq_size);

/* `cfg`: NULL for the defaults. */
int rpma_srq_new(struct rpma_peer* peer, struct rpma_srq_cfg* cfg, struct rpma_srq** srq_ptr);
int rpma_srq_delete(struct rpma_srq** srq_ptr);
int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len,
                  const void* op_context);
/* NULL where it has none. */
int rpma_srq_get_rcq(const struct rpma_srq* srq, struct rpma_cq** rcq_ptr);

/* --- configuration of a connection ------------------------------------------------- */

struct rpma_conn_cfg;

int rpma_conn_cfg_new(struct rpma_conn_cfg** cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg** cfg_ptr);
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms);
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg* cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg* cfg, uint32_t* cq_size);
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg* cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg* cfg, uint32_t* rcq_size);
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg* cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg* cfg, uint32_t* sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg* cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg* cfg, uint32_t* rq_size);
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg* cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg* cfg, bool* shared);
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg* cfg, struct rpma_srq* srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg* cfg, struct rpma_srq** srq_ptr);

/* --- requests ------------------------------------------------------------------------ */

struct rpma_conn;
struct rpma_conn_req;

struct rpma_conn_private_data {
    void* ptr;
    uint8_t len;
};

/* `cfg`: NULL for the defaults. */
int rpma_conn_req_new(struct rpma_peer* peer, const char* addr, const char* port,
                      const struct rpma_conn_cfg* cfg, struct rpma_conn_req** req_ptr);
int rpma_conn_req_delete(struct rpma_conn_req** req_ptr);
int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset,
                       size_t len, const void* op_context);
int rpma_conn_req_get_private_data(const struct rpma_conn_req* req,
                                   struct rpma_conn_private_data* pdata);
/* The request has gone when it returns, whatever that is, unless there was none. */
int rpma_conn_req_connect(struct rpma_conn_req** req_ptr,
                          const struct rpma_conn_private_data* pdata, struct rpma_conn** conn_ptr);

struct rpma_ep;

int rpma_ep_listen(struct rpma_peer* peer, const char* addr, const char* port,
                   struct rpma_ep** ep_ptr);
int rpma_ep_shutdown(struct rpma_ep** ep_ptr);
int rpma_ep_get_fd(const struct rpma_ep* ep, int* fd);
/* `cfg`: NULL for the defaults. */
int rpma_ep_next_conn_req(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg,
                          struct rpma_conn_req** req_ptr);

/* --- connections ----------------------------------------------------------------------- */

enum rpma_conn_event {
    RPMA_CONN_UNDEFINED = -1,
    RPMA_CONN_ESTABLISHED,
    RPMA_CONN_CLOSED,
    RPMA_CONN_LOST,
    RPMA_CONN_REJECTED,
    RPMA_CONN_UNREACHABLE,
};

const char* rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

int rpma_conn_get_event_fd(const struct rpma_conn* conn, int* fd);
int rpma_conn_next_event(struct rpma_conn* conn, enum rpma_conn_event* event);
int rpma_conn_get_private_data(const struct rpma_conn* conn, struct rpma_conn_private_data* pdata);
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn* conn, const struct rpma_peer_cfg* pcfg);
int rpma_conn_get_qp_num(const struct rpma_conn* conn, uint32_t* qp_num);
int rpma_conn_get_cq(const struct rpma_conn* conn, struct rpma_cq** cq_ptr);
/* NULL where it has none of its own. */
int rpma_conn_get_rcq(const struct rpma_conn* conn, struct rpma_cq** rcq_ptr);
int rpma_conn_get_compl_fd(const struct rpma_conn* conn, int* fd);
int rpma_conn_wait(struct rpma_conn* conn, int flags, struct rpma_cq** cq, bool* is_rcq);
int rpma_conn_disconnect(struct rpma_conn* conn);
int rpma_conn_delete(struct rpma_conn** conn_ptr);

/* --- operations ---------------------------------------------------------------------------- */

/* A completion where the operation fails, or in any case. One of them has to be given. */
#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset,
              const struct rpma_mr_remote* src, size_t src_offset, size_t len, int flags,
              const void* op_context);
int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
               const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags,
               const void* op_context);
int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags,
                        uint32_t imm, const void* op_context);

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                      const char src[8], int flags, const void* op_context);

enum rpma_flush_type {
    RPMA_FLUSH_TYPE_PERSISTENT, /* what was written outlives the peer's power */
    RPMA_FLUSH_TYPE_VISIBILITY, /* the peer's processors see it */
};

int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context);
int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len,
              int flags, const void* op_context);
int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset,
                       size_t len, int flags, uint32_t imm, const void* op_context);
int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len,
              const void* op_context);

/* --- completions ------------------------------------------------------------------------------ */

int rpma_cq_get_fd(const struct rpma_cq* cq, int* fd);
int rpma_cq_wait(struct rpma_cq* cq);
/* `num_entries_got` may be NULL where num_entries is 1. */
int rpma_cq_get_wc(struct rpma_cq* cq, int num_entries, struct ibv_wc* wc, int* num_entries_got);

/* --- log ---------------------------------------------------------------------------------------- */

enum rpma_log_level {
    RPMA_LOG_DISABLED = -1,
    RPMA_LOG_LEVEL_FATAL,
    RPMA_LOG_LEVEL_ERROR,
    RPMA_LOG_LEVEL_WARNING,
    RPMA_LOG_LEVEL_NOTICE,
    RPMA_LOG_LEVEL_INFO,
    RPMA_LOG_LEVEL_DEBUG,
};

enum rpma_log_threshold {
    RPMA_LOG_THRESHOLD,     /* above it no function of the log is called */
    RPMA_LOG_THRESHOLD_AUX, /* the library's own function writes to stderr up to it */
    RPMA_LOG_THRESHOLD_MAX,
};

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level* level);

typedef void rpma_log_function(enum rpma_log_level level, const char* file_name, const int line_no,
                               const char* function_name, const char* message_format, ...);

#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

int rpma_log_set_function(rpma_log_function* log_function);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
