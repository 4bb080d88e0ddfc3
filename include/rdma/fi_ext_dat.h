/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_ext_dat.h - what the `dat` provider offers beyond libfabric.
 *
 * Everything here is reached through fi_open_ops() on an object that the
 * `dat` provider made; on any other provider fi_open_ops() answers
 * -FI_ENOSYS. The tables begin with their size: a member is there if
 * offsetof(member) + sizeof(member) <= size. Structures that go in begin with
 * their size as well: what lies beyond it is taken for 0. What is filled for the
 * caller stays as large as it is, or has its size beside it in the call. So a
 * program runs with later versions as it was built. Plain C, usable from C and
 * C++.
 *
 *   struct fi_dat_ops_ep *dat;
 *   if (!fi_open_ops(&ep->fid, FI_DAT_EP_OPS, 0, (void **)&dat, NULL))
 *       dat->disconnect(ep, FI_DAT_GRACEFUL);
 *
 * Unless a comment says otherwise a call does not block, may be made from
 * any thread that the domain's threading level allows, returns 0 or a
 * negative FI_E* value, and changes nothing where it fails. Calls on a fabric
 * or on a passive endpoint may be made from any thread. With FI_HOOK a program
 * has objects of libfabric around those of `dat`: they are refused, -FI_EINVAL.
 *
 * Clauses (EP-.., DISC-.., U-..) are those of the DAT semantics that this
 * provider implements; fi_dat(7) explains them.
 *
 * What a uDAPL library needs for each call. What is not named here it does by
 * itself: handles, contexts, event dispatchers and CNOs, dat.conf, the checks
 * of local memory against LMRs and of arguments against attributes, QoS.
 *
 *   dat_ia_open, _query, _close   fi_getinfo, fi_fabric, fi_domain; fi_close of
 *                                 each object, after refuse() of its requests
 *   asynchronous event dispatcher fi_domain_bind with FI_DAT_ASYNC
 *   dat_pz_create, _free          an authorization key, see FI_DAT_MAX_AUTH_KEY
 *   dat_lmr_create, _free         fi_mr_regattr with auth_key, FI_DAT_ZERO_BASED;
 *                                 fi_close, -FI_EBUSY while a window is bound
 *   dat_lmr_sync_rdma_*           nothing to do
 *   dat_rmr_create, _free         window(); fi_close
 *   dat_rmr_bind                  bind_window()
 *   dat_rmr_query                 fi_mr_key
 *   dat_psp_create, _create_any   fi_passive_ep, FI_BACKLOG, fi_listen; for
 *                                 DAT_PSP_PROVIDER_FLAG provide() before it
 *   dat_rsp_create                the same with reserve()
 *   dat_psp_free, dat_rsp_free    fi_close of the passive endpoint
 *   dat_cr_query                  info and data of FI_CONNREQ; request_endpoint()
 *   dat_cr_accept                 take_request() where an endpoint is given;
 *                                 fi_accept
 *   dat_cr_reject                 reject()
 *   dat_cr_handoff                handoff()
 *   a full backlog                refuse()
 *   dat_ep_create, _with_srq      fi_endpoint, fi_srx_context, modify()
 *   dat_ep_modify                 modify(); its states and EPA-6, EPA-7
 *   dat_ep_query, _get_status     status(), fi_getname, fi_getpeer
 *   dat_ep_connect                set_connect_timeout(), set_patience(), fi_connect
 *   dat_ep_common_connect         the same
 *   dat_ep_dup_connect            set_connect_timeout(), dup_connect()
 *   dat_ep_disconnect             disconnect()
 *   dat_ep_reset                  reset()
 *   dat_ep_free                   fi_close; -FI_EBUSY where FREE-1 forbids it
 *   dat_ep_recv_query             recv_query()
 *   dat_ep_set_watermark          set_watermark(), FI_DAT_ASYNC_RECV_WATERMARK
 *   dat_ep_post_send, _recv,
 *   _rdma_read, _rdma_write       fi_sendmsg, fi_recvmsg, fi_readmsg, fi_writemsg
 *     SUPPRESS                    FI_SELECTIVE_COMPLETION without FI_COMPLETION
 *     SOLICITED_WAIT              FI_DAT_SOLICITED
 *     UNSIGNALLED                 FI_DAT_UNSIGNALLED
 *     BARRIER_FENCE               FI_FENCE
 *     U-61                        FI_TRANSMIT_COMPLETE
 *   dat_ep_post_send_with_
 *   invalidate                    fi_sendmsg with FI_DAT_INVALIDATE
 *   dat_ep_post_rdma_read_to_rmr  fi_readmsg to the memory behind the window
 *   dat_srq_create, _free,
 *   _post_recv                    fi_srx_context, fi_recvmsg, fi_close
 *   dat_srq_query, _resize        available() of fi_dat_ops_srx
 *   dat_srq_set_lw                set_low_watermark(), FI_DAT_ASYNC_LOW_WATERMARK
 *   DTO status                    fi_cq_err_entry.prov_errno
 *   connection events             FI_CONNECTED; FI_SHUTDOWN and status().end;
 *                                 errors by fi_eq_readerr
 *   dat_evd_wait, dat_cno_wait    attend(), watch(), descriptors(), arrivals(),
 *                                 poll(2), arrived()
 *   dat_extension_op              fi_fetch_atomic, fi_compare_atomic,
 *                                 fi_writedata
 *
 * Not offered: windows whose scope is one endpoint (dat_rmr_create_for_ep),
 * multipath, and DAT_ASYNC_ERROR_EVD_OVERFLOW (queues grow instead).
 * DAT_ASYNC_ERROR_IA_CATASTROPHIC is FI_DAT_ASYNC_DEVICE_GONE; the software
 * transport has no device to fail.
 */
#ifndef FI_EXT_DAT_H
#define FI_EXT_DAT_H

/*
 * The version of `dat` that this header is of. It says what can be compiled; what the provider
 * at hand has, the sizes of the tables say, and fabric_attr->prov_version.
 */
#define FI_DAT_EXT_VERSION_MAJOR 0
#define FI_DAT_EXT_VERSION_MINOR 2
#define FI_DAT_EXT_VERSION FI_VERSION(FI_DAT_EXT_VERSION_MAJOR, FI_DAT_EXT_VERSION_MINOR)

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_context; /* of libibverbs */

/* Names for fi_open_ops(), each with the table of the same name. */
#define FI_DAT_FABRIC_OPS "fi_dat_fabric_ops" /* struct fid_fabric */
#define FI_DAT_PEP_OPS "fi_dat_pep_ops"       /* struct fid_pep */
#define FI_DAT_DOMAIN_OPS "fi_dat_domain_ops" /* struct fid_domain */
#define FI_DAT_EP_OPS "fi_dat_ep_ops"         /* struct fid_ep, active */
#define FI_DAT_SRX_OPS "fi_dat_srx_ops"       /* struct fid_ep, shared receive context */
#define FI_DAT_QUEUE_OPS "fi_dat_queue_ops"   /* struct fid_cq, struct fid_eq */

/*
 * Flags of operations beyond libfabric's.
 *
 * FI_DAT_SOLICITED: with fi_sendmsg(), and fi_writemsg() with
 * FI_REMOTE_CQ_DATA: the receiver's completion carries it as well (DTO-22).
 * FI_DAT_INVALIDATE: with fi_sendmsg(): the low 4 bytes of fi_msg.data are the
 * key of a region or window of the peer that the message ends, one that may be
 * ended so; with the completion of a receive: its data is the key that the
 * message ended. Not together with FI_REMOTE_CQ_DATA. In
 * fi_dat_bind.access: peers may end the window so.
 * FI_DAT_UNSIGNALLED: with fi_sendmsg(), fi_readmsg(), fi_writemsg() and
 * fi_recvmsg(): the operation's completion carries it as well. Reading and
 * waiting do not look at it: whether a waiter is to go on is decided by who reads
 * (DTO-23, U-27).
 * FI_DAT_BIND: with the completion of bind_window().
 * FI_DAT_QUEUED: with fi_eq_read(): only what is in the queue already; nothing is moved, and the
 * kernel not asked.
 */
#define FI_DAT_SOLICITED (1ULL << 63)
#define FI_DAT_INVALIDATE (1ULL << 62)
#define FI_DAT_BIND (1ULL << 61)
#define FI_DAT_UNSIGNALLED (1ULL << 60)
#define FI_DAT_QUEUED (1ULL << 59)

/*
 * Flag of fi_mr_regattr() and of a fi_dat_bind: peers name the first byte by
 * address 0, also where the domain has FI_MR_VIRT_ADDR.
 */
#define FI_DAT_ZERO_BASED (1ULL << 61)

/*
 * Added to the address of an RDMA read: of a region with set_flush() of the peer, which is flushed
 * before the read is answered. Any other region has no such address.
 */
#define FI_DAT_FLUSHED (1ULL << 63)

/*
 * PZ-1: a protection zone is an authorization key of a domain: any bytes, at
 * most so many. fi_ep_attr.auth_key (or modify()) and fi_mr_attr.auth_key name
 * it; without one the zone is that of fi_domain_attr.auth_key, or, without that,
 * the domain's own. Peers reach through an endpoint what is registered with its
 * zone, and nothing else. A zone exists while something has it.
 */
#define FI_DAT_MAX_AUTH_KEY 64

/*
 * The state of an endpoint as a DAT Consumer sees it (EP-1). The values are
 * those of DAT_EP_STATE, so that a uDAPL library can pass them on.
 */
enum fi_dat_ep_state {
    FI_DAT_UNCONNECTED = 0,
    FI_DAT_RESERVED = 2,
    FI_DAT_PASSIVE_CONNECTION_PENDING = 4,
    FI_DAT_ACTIVE_CONNECTION_PENDING = 6,
    FI_DAT_TENTATIVE_CONNECTION_PENDING = 7,
    FI_DAT_CONNECTED = 9,
    FI_DAT_DISCONNECT_PENDING = 10,
    FI_DAT_DISCONNECTED = 11,
    FI_DAT_COMPLETION_PENDING = 12,
};

/*
 * How the last connection attempt of an endpoint ended (EP-70). libfabric
 * reports FI_DAT_END_DISCONNECTED and FI_DAT_END_BROKEN both as FI_SHUTDOWN;
 * this tells them apart.
 */
enum fi_dat_end {
    FI_DAT_END_NONE = 0,          /* no attempt has ended since reset */
    FI_DAT_END_DISCONNECTED,      /* either side asked for it */
    FI_DAT_END_BROKEN,            /* the path, the protocol or a DTO failed */
    FI_DAT_END_PEER_REJECTED,     /* the peer's application said no */
    FI_DAT_END_NON_PEER_REJECTED, /* nobody listens, or no resources there */
    FI_DAT_END_UNREACHABLE,       /* no route, host silent */
    FI_DAT_END_TIMED_OUT,         /* the connect timeout expired */
    FI_DAT_END_ACCEPT_ERROR,      /* fi_accept() did, the handshake did not */
};

/* The finer reason behind an end, where the provider knows one (U-2). */
enum fi_dat_reason {
    FI_DAT_REASON_NONE = 0,
    FI_DAT_REASON_LOCAL,           /* this side disconnected or closed */
    FI_DAT_REASON_PEER_CLOSED,     /* orderly end of the peer's stream */
    FI_DAT_REASON_PEER_RESET,      /* the peer's transport was reset */
    FI_DAT_REASON_END_IN_FRAME,    /* the stream ended inside a frame */
    FI_DAT_REASON_PROTOCOL,        /* the peer broke the wire protocol */
    FI_DAT_REASON_TERMINATE,       /* the peer sent a Terminate */
    FI_DAT_REASON_DTO_ERROR,       /* one of this side's operations failed */
    FI_DAT_REASON_KEEPALIVE,       /* the peer fell silent */
    FI_DAT_REASON_RNR_TIMEOUT,     /* no receive buffer came in time (U-9) */
    FI_DAT_REASON_HANDSHAKE_LIMIT, /* the handshake did not end in time (U-65) */
    FI_DAT_REASON_REFUSED,         /* connection refused */
    FI_DAT_REASON_UNREACHABLE,     /* no route to the peer */
    FI_DAT_REASON_TIMEOUT,         /* the connect timeout */
    FI_DAT_REASON_REJECTED,        /* fi_reject() by the peer */
    FI_DAT_REASON_RESOURCES,       /* out of memory or descriptors here, or the device failed */
    FI_DAT_REASON_WATERMARK,       /* more receives than set_watermark() allows */
};

/*
 * What has become of an operation: fi_cq_err_entry.prov_errno of its completion (DTO-26). The
 * values are those of DAT_DTO_COMPLETION_STATUS. Beside each what a device of libibverbs says.
 */
enum fi_dat_dto_status {
    FI_DAT_DTO_SUCCESS = 0,
    FI_DAT_DTO_FLUSHED = 1,            /* IBV_WC_WR_FLUSH_ERR */
    FI_DAT_DTO_LOCAL_LENGTH = 2,       /* IBV_WC_LOC_LEN_ERR */
    FI_DAT_DTO_LOCAL_EP = 3,           /* IBV_WC_LOC_QP_OP_ERR, and what is not named here */
    FI_DAT_DTO_LOCAL_PROTECTION = 4,   /* IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_ACCESS_ERR */
    FI_DAT_DTO_BAD_RESPONSE = 5,       /* IBV_WC_BAD_RESP_ERR */
    FI_DAT_DTO_REMOTE_ACCESS = 6,      /* IBV_WC_REM_ACCESS_ERR */
    FI_DAT_DTO_REMOTE_RESPONDER = 7,   /* IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR */
    FI_DAT_DTO_TRANSPORT = 8,          /* IBV_WC_RETRY_EXC_ERR */
    FI_DAT_DTO_RECEIVER_NOT_READY = 9, /* IBV_WC_RNR_RETRY_EXC_ERR */
    FI_DAT_DTO_PARTIAL_PACKET = 10,
    FI_DAT_DTO_RMR_OPERATION_FAILED = 11, /* IBV_WC_MW_BIND_ERR */
};

struct fi_dat_ep_status {
    enum fi_dat_ep_state state;
    int recv_idle;    /* 1: no receive is outstanding (EPA-10) */
    int request_idle; /* 1: no send, RDMA or bind is outstanding */
    enum fi_dat_end end;
    enum fi_dat_reason reason;
    uint32_t terminate; /* FI_DAT_REASON_TERMINATE: layer << 12 |
                           error type << 8 | error code (RFC 5040 4.8) */
};

enum fi_dat_disconnect {
    FI_DAT_ABRUPT = 0,   /* DISC-3: outstanding operations are flushed */
    FI_DAT_GRACEFUL = 1, /* DISC-4: requests are carried out first */
};

/* Connect timeout: none, the connection attempt lasts as long as it takes. */
#define FI_DAT_TIMEOUT_INFINITE UINT64_MAX

/*
 * Asynchronous events. fi_domain_bind(domain, &eq->fid, flags) makes the event
 * queue the one of endpoints that have none of their own; with FI_DAT_ASYNC in
 * `flags` it also gets events of type FI_DAT_ASYNC_EVENT: a struct fi_eq_entry
 * whose fid and context are those of the object concerned and whose data is an
 * enum fi_dat_async. Closing that object removes them.
 */
#define FI_DAT_ASYNC (1ULL << 61)
#define FI_DAT_ASYNC_EVENT 0x80000001U

enum fi_dat_async {
    /*
     * DAT_ASYNC_ERROR_EP_BROKEN of an endpoint. U-5: its connection broke since
     * this side lacked resources; U-64: it has a shared receive context, and its
     * connection has ended, after the last completion. Queued just before the
     * event that ends the connection. EP-61: its RDMA device has gone; an endpoint
     * without a connection is told no more.
     */
    FI_DAT_ASYNC_EP_BROKEN = 1,
    FI_DAT_ASYNC_RECV_WATERMARK = 2, /* SRQ-11, EP-63: soft watermark of an endpoint */
    FI_DAT_ASYNC_LOW_WATERMARK = 3,  /* SRQ-8: of a shared receive context */
    /*
     * DAT_ASYNC_ERROR_IA_CATASTROPHIC of a domain, EP-62: its RDMA device has been
     * removed, or has failed. Its connections are broken; what is left is to close
     * its objects.
     */
    FI_DAT_ASYNC_DEVICE_GONE = 4,
    /* of a domain: the port of its RDMA device is down. Connections may outlive that. */
    FI_DAT_ASYNC_PORT_DOWN = 5,
};

/* A watermark that is never passed. */
#define FI_DAT_WATERMARK_INFINITE UINT32_MAX

/* What modify() changes: bits of fi_dat_ep_attr.mask. */
#define FI_DAT_EP_EQ (1ULL << 0)
#define FI_DAT_EP_TX_CQ (1ULL << 1)
#define FI_DAT_EP_RX_CQ (1ULL << 2)
#define FI_DAT_EP_AUTH_KEY (1ULL << 3)
#define FI_DAT_EP_TX_SIZE (1ULL << 4)
#define FI_DAT_EP_RX_SIZE (1ULL << 5)
#define FI_DAT_EP_READ_IN (1ULL << 6)
#define FI_DAT_EP_READ_OUT (1ULL << 7)

struct fi_dat_ep_attr {
    size_t size;   /* of this structure */
    uint64_t mask; /* of FI_DAT_EP_*; members that it does not name are ignored */
    /*
     * Queues, NULL for none. EPA-2: without a completion queue the completions of
     * that direction are not reported. Without an event queue fi_connect() and
     * fi_accept() answer -FI_ENOEQ. The flags are 0 or FI_SELECTIVE_COMPLETION.
     */
    struct fid_eq* eq;
    struct fid_cq* tx_cq;
    struct fid_cq* rx_cq;
    uint64_t tx_cq_flags;
    uint64_t rx_cq_flags;
    const uint8_t* auth_key; /* see FI_DAT_MAX_AUTH_KEY; size 0: the domain's */
    size_t auth_key_size;
    size_t tx_size; /* requests outstanding, as tx_attr->size */
    size_t rx_size; /* receives outstanding, as rx_attr->size */
    /*
     * RDR-1: RDMA reads of the peer that are served at once, and own ones that
     * are on the way at once; 16 each by default, at most FI_DAT_MAX_READS.
     */
    size_t read_in;
    size_t read_out;
};
#define FI_DAT_MAX_READS 128

/* RMR-2: what bind_window() is to bind. */
struct fi_dat_bind {
    size_t size; /* of this structure */
    struct fid_mr* window;
    struct fid_mr* mr; /* the region that the memory is part of */
    void* addr;        /* its first byte */
    size_t len;        /* 0: the window is unbound (RMR-7); mr and addr are ignored */
    uint64_t access;   /* of FI_REMOTE_READ, FI_REMOTE_WRITE, FI_DAT_INVALIDATE */
    uint64_t flags;    /* of FI_COMPLETION, FI_FENCE, FI_MORE, FI_DAT_ZERO_BASED */
    void* context;     /* of the completion */
};

struct fi_dat_ops_ep {
    size_t size; /* of this table, in bytes */

    /* EPA-10, EP-28. Legal in every state; a snapshot. */
    int (*status)(struct fid_ep* ep, struct fi_dat_ep_status* status);

    /*
     * DISC-1..DISC-14. `how`: an enum fi_dat_disconnect, else -FI_EINVAL. The
     * end is reported by exactly one FI_SHUTDOWN, after every completion of
     * the connection. A no-op that returns 0 where the connection has ended
     * (DISC-13); -FI_EOPBADSTATE where there has been none since reset
     * (DISC-14). fi_shutdown() is this with FI_DAT_ABRUPT, or as FI_DAT_CLOSE
     * says.
     */
    int (*disconnect)(struct fid_ep* ep, int how);

    /*
     * RST-1..RST-4: DISCONNECTED to UNCONNECTED; a no-op on UNCONNECTED.
     * -FI_EOPBADSTATE elsewhere. Completions that are on a CQ stay there. The
     * endpoint stays enabled: fi_connect() may follow at once, fi_accept()
     * after take_request().
     */
    int (*reset)(struct fid_ep* ep);

    /*
     * EP-15: the connection request `request` (fi_info.handle of an
     * FI_CONNREQ event) becomes the one that fi_accept() on this endpoint
     * answers, as if the endpoint had been made from it. The endpoint has to be
     * UNCONNECTED (else -FI_EOPBADSTATE) and of the request's fabric; a request
     * that was accepted, rejected or given elsewhere is -FI_EINVAL. A request
     * that the endpoint held before, unanswered, is rejected.
     * NULL: the endpoint lets go of the request that it holds, which another one
     * can take then; -FI_EINVAL where it holds none.
     */
    int (*take_request)(struct fid_ep* ep, fid_t request);

    /*
     * TMO-1: the timeout of later fi_connect() calls, in microseconds;
     * FI_DAT_TIMEOUT_INFINITE is the default; 0 is -FI_EINVAL.
     */
    int (*set_connect_timeout)(struct fid_ep* ep, uint64_t timeout_us);

    /*
     * EP-11: fi_connect() to where `other` is connected to. -FI_EOPBADSTATE
     * unless `other` is CONNECTED and `ep` UNCONNECTED; otherwise as
     * fi_connect().
     */
    int (*dup_connect)(struct fid_ep* ep, struct fid_ep* other, const void* param, size_t size);

    /*
     * EPA-5, EPA-6: changes what attr->mask names, all or nothing. In
     * UNCONNECTED and TENTATIVE_CONNECTION_PENDING; without
     * FI_DAT_EP_AUTH_KEY in RESERVED and PASSIVE_CONNECTION_PENDING as well;
     * elsewhere -FI_EOPBADSTATE. -FI_EINVAL: a value out of range, a queue of
     * another domain or fabric, fewer receives than are posted, unknown bits.
     * EPA-7: receives that were posted with another zone fail, with
     * LOCAL_PROTECTION, when a message takes them.
     */
    int (*modify)(struct fid_ep* ep, const struct fi_dat_ep_attr* attr);

    /*
     * RMR-2..RMR-9: posts a request that binds a window. Its completion carries
     * FI_DAT_BIND. `key` is set to the key that the window has from then on; the
     * earlier one is dead when the completion can be read. No request posted
     * later starts before it is done. In CONNECTED; in DISCONNECTED it is
     * accepted and flushed (RMR-3); elsewhere -FI_EOPBADSTATE. -FI_EACCES: window,
     * region and endpoint are not of one zone. -FI_EINVAL: the memory is not all
     * in the region, or a flag or a right is not offered. -FI_EAGAIN: as many
     * requests are outstanding as the endpoint takes. A bind that does not
     * complete successfully leaves its key dead.
     */
    int (*bind_window)(struct fid_ep* ep, const struct fi_dat_bind* bind, uint64_t* key);

    /*
     * SRQ-12: receives that this endpoint has and that have not completed, and
     * how many completions may come of them. Either pointer may be NULL.
     */
    int (*recv_query)(struct fid_ep* ep, uint32_t* allocated, uint32_t* span);

    /*
     * SRQ-11: once the endpoint has more than `soft` receives that have not
     * completed there is one FI_DAT_ASYNC_RECV_WATERMARK; with more than `hard`
     * its connection breaks. FI_DAT_WATERMARK_INFINITE, the default: never. Legal
     * in every state; takes effect within the call where it is passed already.
     */
    int (*set_watermark)(struct fid_ep* ep, uint32_t soft, uint32_t hard);

    /*
     * For how long, in microseconds, later fi_connect() calls try a destination again
     * where nobody listens, before that is NON_PEER_REJECTED; 0, the default: not at
     * all. -FI_EINVAL: more than a minute. The connect timeout holds all the same.
     */
    int (*set_patience)(struct fid_ep* ep, uint64_t patience_us);

    /*
     * Not 0: later connections of the endpoint are left by each side for itself, and told of as
     * RDMA devices do. A side that the peer has left by disconnect() has FI_SHUTDOWN as always,
     * and leaves by disconnect() of its own, reset() or fi_close(). Who left first has all its
     * completions at once, and FI_SHUTDOWN when the peer has left as well. That an operation of
     * this side has failed is told by its completion; FI_SHUTDOWN comes with disconnect(). With a
     * peer that does not do so, and over iWARP on an RDMA device, FI_SHUTDOWN comes to who left
     * first at once; by InfiniBand and RoCE at last when the connection manager gives up waiting
     * for the peer's answer, which is some 100 s on Linux. Takes a descriptor for each such
     * connection, where there is no RDMA device. 0.
     */
    int (*await_peer)(struct fid_ep* ep, int on);
};

struct fi_dat_ops_pep {
    size_t size; /* of this table, in bytes */

    /*
     * SP-10..SP-13: makes this a service point for one request, which `ep` is
     * reserved for: UNCONNECTED (else -FI_EOPBADSTATE) to RESERVED. Before
     * fi_listen(). When the request arrives the port is released, the endpoint
     * is PASSIVE_CONNECTION_PENDING and holds the request: fi_accept() on it
     * answers it; reject(), refuse() and handoff() lead back to UNCONNECTED. Closing the
     * passive endpoint before that does as well; later it does not touch the
     * endpoint, unless the FI_CONNREQ has not been read. Until then the
     * endpoint cannot be closed (-FI_EBUSY).
     */
    int (*reserve)(struct fid_pep* pep, struct fid_ep* ep);

    /*
     * SP-4: makes this a service point whose requests each come with a new
     * endpoint of `domain`, in TENTATIVE_CONNECTION_PENDING, without queues; its
     * attributes are those of `info`, which is copied, or of the passive
     * endpoint's info for NULL. Before fi_listen(). request_endpoint() tells it. It
     * needs queues, then fi_accept() answers its request, and from then on it is
     * the program's. reject(), refuse() and handoff() close it; fi_close() on
     * it is -FI_EBUSY until it was accepted. The domain cannot be closed before
     * the passive endpoint.
     */
    int (*provide)(struct fid_pep* pep, struct fid_domain* domain, const struct fi_info* info);
};

/*
 * Connection requests: `request` is fi_info.handle of an FI_CONNREQ event of a
 * passive endpoint of the fabric, which may be closed by now. -FI_EINVAL: it was
 * accepted, rejected, refused or handed off before. It never expires (CR-9).
 */
struct fi_dat_ops_fabric {
    size_t size; /* of this table, in bytes */

    /*
     * CR-7: the requester gets PEER_REJECTED with this data, of at most the size
     * that fi_reject() takes (else -FI_EINVAL). fi_reject() does the same.
     */
    int (*reject)(struct fid_fabric* fabric, fid_t request, const void* param, size_t size);

    /* SP-3: the requester gets NON_PEER_REJECTED, as if nobody listened. */
    int (*refuse)(struct fid_fabric* fabric, fid_t request);

    /*
     * CR-8, U-31: `to`, which listens on the same fabric, announces the request
     * as if it had arrived there, under a new handle; this one is dead. -FI_EINVAL:
     * `to` does not listen, or no longer; -FI_EAGAIN: its backlog is full. An
     * endpoint that held the request is UNCONNECTED again, or closed where it was
     * made for it.
     */
    int (*handoff)(struct fid_fabric* fabric, fid_t request, struct fid_pep* to);

    /* CR-1: the endpoint that is to answer the request; NULL: none is known yet. */
    int (*request_endpoint)(struct fid_fabric* fabric, fid_t request, struct fid_ep** ep);

    /*
     * Not 0: private data of connections by InfiniBand and RoCE goes as it is, for peers that know
     * nothing of `dat`, and comes as their connection manager has it: padded with zeros to 56
     * bytes with a request, 196 with an accept, 148 with a reject. So much may be sent. Of domains
     * and passive endpoints that are made from here on. Else, and that is the default, its length
     * is carried along (U-63). Elsewhere the wire carries the length itself. 0.
     */
    int (*set_raw_data)(struct fid_fabric* fabric, int raw);
};

/*
 * What a connection of the domain has at most, and its shared receive contexts. Members may be
 * added at the end.
 */
struct fi_dat_limits {
    uint32_t reads_in;  /* RDMA reads of the peer that are served at one time (IRD) */
    uint32_t reads_out; /* own ones that are on their way (ORD); others wait for those */
    int zones_share;    /* SRQ-2, not 0: endpoints of several zones take from one context */
    /* Since 0.2, by query_limits() alone. */
    uint32_t read_segments; /* that an RDMA read fills, at most tx_attr->iov_limit */
    uint32_t operations;    /* of an endpoint: most of tx_attr->size, and of rx_attr->size */
};

struct fi_dat_ops_domain {
    size_t size; /* of this table, in bytes */

    /*
     * RMR-1: a memory window of that zone (size 0: the domain's), unbound: its
     * fi_mr_key() is FI_KEY_NOTAVAIL. fi_close() frees it, bound or not (RMR-10).
     */
    int (*window)(struct fid_domain* domain, const uint8_t* auth_key, size_t auth_key_size,
                  struct fid_mr** window, void* context);

    /*
     * `there` not 0: from here on a thread of the program sleeps on the descriptors() of a
     * completion queue, and reads that when one of them is readable, as fi_cq_sread() does; said
     * before the watch() that it sleeps after. Meanwhile the domain's own thread sleeps on.
     * 0: it does not any more; due once for each time that it was said. From any thread. 0.
     */
    int (*attend)(struct fid_domain* domain, int there);

    /*
     * Fills `limits`, the caller's, up to zones_share; no further, since programs that were built
     * against version 0.1 have no more. From any thread; blocks nobody. 0.
     */
    int (*limits)(struct fid_domain* domain, struct fi_dat_limits* limits);

    /*
     * Since 0.2. Fills `limits`, the caller's, of `size` bytes, as far as this version has members;
     * the rest is 0. From any thread; blocks nobody. 0.
     */
    int (*query_limits)(struct fid_domain* domain, struct fi_dat_limits* limits, size_t size);

    /*
     * For memory that is to outlive the process or the host: from here on what peers have
     * written to the region is given to `flush`, as the range from the first to the last byte
     * written since it was called last, before a read of it at an address with FI_DAT_FLUSHED is
     * answered. So such a read behind writes that has completed says that those are where `flush`
     * puts them. What `flush` returns but 0 refuses the read. It is called by the threads that
     * move the domain, which can do nothing else meanwhile; it must not call libfabric. NULL: no
     * more. -FI_EOPNOTSUPP: on an RDMA device, which tells nobody what peers do.
     */
    int (*set_flush)(struct fid_domain* domain, struct fid_mr* mr,
                     int (*flush)(void* context, void* address, size_t length), void* context);

    /*
     * The RDMA device of the domain, by a context that this domain alone has (ibv_open_device(3));
     * it lives as long as the domain. -FI_ENODEV: it is a software domain.
     */
    int (*device)(struct fid_domain* domain, struct ibv_context** context);

    /*
     * Whether there is a way to `addr`, as of fi_connect(): an RDMA device resolves it and the
     * route to it, which blocks for at most two times `timeout_us`. 0; -FI_ETIMEDOUT and the like:
     * there is none. A software domain learns that when it connects: 0 at once. From any thread.
     */
    int (*resolve)(struct fid_domain* domain, const void* addr, uint64_t timeout_us);
};

/*
 * A receive of a shared receive context completes in the queue of the endpoint that took
 * it: buf of the completion is the context of that endpoint.
 */
struct fi_dat_ops_srx {
    size_t size; /* of this table, in bytes */

    /* SRQ-6: receives that no message has taken. */
    int (*available)(struct fid_ep* srx, uint32_t* count);

    /*
     * SRQ-8, U-37: one FI_DAT_ASYNC_LOW_WATERMARK the first time that fewer than
     * `count` receives are there, which may be at once; 0: never. -FI_EINVAL: more
     * than the context takes.
     */
    int (*set_low_watermark)(struct fid_ep* srx, uint32_t count);
};

/*
 * Sleeping for many queues. A queue that was opened with FI_WAIT_FD has descriptors of its
 * own, in which that of its domain is nested; the kernel nests some hundreds. One that was
 * opened with FI_WAIT_NONE has none: a thread lends it an eventfd, and sleeps in poll(2) on
 * that and on the descriptors by which the queue is moved. From any thread.
 */
struct fi_dat_ops_queue {
    size_t size; /* of this table, in bytes */

    /*
     * 0: the queue is empty, and a thread may go to sleep on the descriptors() that it has from
     * then on. What comes into the queue, and what changes descriptors(), writes to the eventfd
     * `fd`, which has to be non-blocking; it need not do so more than once until watch() is
     * called again. -FI_EAGAIN: something is there to be read, or to be moved, and nothing is
     * written. The descriptor stays the caller's: it is not to be closed before another call
     * has taken its place, -1 for none, or the queue is closed.
     */
    int (*watch)(struct fid* queue, int fd);

    /*
     * The descriptors that say, by being readable, that reading the queue would move
     * something; the first `count` of them are put to `fds`. Returns how many there are.
     * `changes`, unless NULL, is set to a number that is another one after each change.
     */
    size_t (*descriptors)(struct fid* queue, int* fds, size_t count, uint64_t* changes);

    /*
     * Of a completion queue on an RDMA device: the descriptor by which the device tells what
     * has completed, nested in one of descriptors(); the same at any time. -1: there is none.
     * A thread that polls it beside those, and finds it readable, calls arrived() before it reads
     * the queue, and spares that the question which of all that are nested is.
     */
    int (*arrivals)(struct fid* queue);

    /* 0; -FI_EINVAL: it has no arrivals(). */
    int (*arrived)(struct fid* queue);

    /*
     * As watch(), for a program that sleeps on the eventfd `fd` alone, and neither asks for
     * descriptors() nor calls fi_trywait(): from here on threads of the provider's own move what
     * feeds the queue, a domain's where it has FI_PROGRESS_AUTO. 0: the queue is empty, and `fd`
     * is written to when something is in it. -FI_EAGAIN: something is there to be read, and
     * nothing is written. Also -FI_ENOMEM and -FI_EMFILE, where a thread cannot be made.
     */
    int (*tell)(struct fid* queue, int fd);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_DAT_H */
