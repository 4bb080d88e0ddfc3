/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_ext_dat.h - what the `dat` provider offers beyond libfabric.
 *
 * Everything here is reached through fi_open_ops() on an object that the
 * `dat` provider made; on any other provider fi_open_ops() answers
 * -FI_ENOSYS. The tables begin with their size: a member is there if
 * offsetof(member) < size. Plain C, usable from C and C++.
 *
 *   struct fi_dat_ops_ep *dat;
 *   if (!fi_open_ops(&ep->fid, FI_DAT_EP_OPS, 0, (void **)&dat, NULL))
 *       dat->disconnect(ep, FI_DAT_GRACEFUL);
 *
 * Unless a comment says otherwise a call does not block, may be made from
 * any thread that the domain's threading level allows, returns 0 or a
 * negative FI_E* value, and changes nothing where it fails.
 *
 * Clauses (EP-.., DISC-.., U-..) are those of the DAT semantics that this
 * provider implements; fi_dat(7) explains them.
 */
#ifndef FI_EXT_DAT_H
#define FI_EXT_DAT_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name for fi_open_ops() on an endpoint (struct fid_ep, active). */
#define FI_DAT_EP_OPS "fi_dat_ep_ops"

/*
 * Flags of operations beyond libfabric's.
 *
 * FI_DAT_SOLICITED: with fi_sendmsg(), and fi_writemsg() with
 * FI_REMOTE_CQ_DATA: the receiver's completion carries it as well (DTO-22).
 * FI_DAT_INVALIDATE: with fi_sendmsg(): the low 4 bytes of fi_msg.data are the
 * key of a region or window of the peer that the message ends, one that may be
 * ended so; with the completion of a receive: its data is the key that the
 * message ended. Not together with FI_REMOTE_CQ_DATA.
 */
#define FI_DAT_SOLICITED (1ULL << 63)
#define FI_DAT_INVALIDATE (1ULL << 62)

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
    FI_DAT_REASON_RESOURCES,       /* out of memory or descriptors here */
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
     */
    int (*take_request)(struct fid_ep* ep, fid_t request);

    /*
     * TMO-1: the timeout of later fi_connect() calls, in microseconds;
     * FI_DAT_TIMEOUT_INFINITE is the default; 0 is -FI_EINVAL.
     */
    int (*set_connect_timeout)(struct fid_ep* ep, uint64_t timeout_us);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_DAT_H */
