// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See conn.h; and rpma_conn_*() but for operations and waiting.
#include "rpma-shim/conn.h"

#include "rpma-shim/fast.h"
#include "rpma-shim/guard.h"
#include "rpma-shim/srq.h"

#include <rdma/fi_errno.h>

#include <cerrno>
#include <cstring>

using namespace dat::rpma;

namespace {

// Numbers as queue pairs have them, of 24 bits; no two connections of a process have the same.
std::uint32_t next_number() {
    static std::atomic<std::uint32_t> last{1};
    const std::uint32_t number = (last.fetch_add(1) + 1) & 0xffffff;
    return number != 0 ? number : next_number();
}

constexpr std::size_t kLargestEvent = sizeof(fi_eq_cm_entry) + 512; // bytes, with private data

} // namespace

rpma_conn::~rpma_conn() { close(); }

int rpma_conn::open_queues(const rpma_conn_cfg& config) {
    shared_channel = config.shared_channel;
    srq = config.srq;
    int rc = main.open();
    cq = std::make_unique<rpma_cq>(main, shared_channel, this);
    rc = rc ? rc : cq->open(peer, config.cq_size);
    if (rc == 0 && config.rcq_size > 0 && !(srq && srq->rcq)) {
        rc = shared_channel ? 0 : receives.open();
        rcq = std::make_unique<rpma_cq>(shared_channel ? main : receives, shared_channel, this);
        rc = rc ? rc : rcq->open(peer, config.rcq_size);
    }
    rc = rc ? rc : events.open();
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_NONE;
    rc = rc ? rc : fi_eq_open(peer.device.fabric(), &attr, eq.out(), nullptr);
    return rc ? rc
              : fi_open_ops(&eq.get()->fid, FI_DAT_QUEUE_OPS, 0,
                            reinterpret_cast<void**>(&event_ops), nullptr);
}

int rpma_conn::open(const Origin& origin, fi_info& info, const rpma_conn_cfg& config) {
    if (config.shared_channel && config.srq && config.srq.load()->rcq) {
        return fail(origin, RPMA_E_INVAL,
                    "a shared completion channel does not go together with a shared receive queue "
                    "that has a completion queue of its own");
    }
    if (const int rc = open_queues(config)) {
        return failure(origin, "the queues of a connection", rc);
    }
    info.tx_attr->size = config.sq_size;
    info.rx_attr->size = config.rq_size;
    info.ep_attr->rx_ctx_cnt = srq ? FI_SHARED_CONTEXT : 1;
    number = next_number();
    int rc =
        fi_endpoint(peer.domain.get(), &info, &ep, reinterpret_cast<void*>(std::uintptr_t{number}));
    fast = rc == 0 && fast::is_offered(ep);
    rc = rc ? rc : fi_open_ops(&ep->fid, FI_DAT_EP_OPS, 0, reinterpret_cast<void**>(&ops), nullptr);
    rc = rc ? rc : ops->await_peer(ep, 1);
    rc = rc ? rc : fi_ep_bind(ep, &eq.get()->fid, 0);
    rc = rc ? rc : fi_ep_bind(ep, &cq->cq.get()->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
    const rpma_cq& receive_queue = srq && srq->rcq ? *srq->rcq : rcq ? *rcq : *cq;
    rc = rc ? rc : fi_ep_bind(ep, &receive_queue.cq.get()->fid, FI_RECV);
    rc = rc || !srq ? rc : fi_ep_bind(ep, &srq->context.get()->fid, 0);
    rc = rc ? rc : fi_enable(ep);
    if (rc) {
        return failure(origin, "the endpoint of a connection", rc);
    }
    settle_events();
    main.settle();
    if (receives.queues[0]) {
        receives.settle();
    }
    return 0;
}

int rpma_conn::close() {
    int rc = 0;
    if (ep) {
        rc = fi_close(&ep->fid);
        ep = nullptr;
    }
    for (const auto* each : {&rcq, &cq}) {
        const int closed = *each ? (*each)->cq.reset() : 0;
        rc = rc ? rc : closed;
    }
    const int closed = eq.reset();
    return rc ? rc : closed;
}

namespace {

// The peer has gone, in order or not.
bool is_peers(const fi_dat_ep_status& status) {
    switch (status.reason) {
    case FI_DAT_REASON_PEER_CLOSED:
    case FI_DAT_REASON_PEER_RESET:
    case FI_DAT_REASON_END_IN_FRAME:
    case FI_DAT_REASON_KEEPALIVE:
        return status.end == FI_DAT_END_DISCONNECTED || status.end == FI_DAT_END_BROKEN;
    default:
        return false;
    }
}

} // namespace

bool rpma_conn::withholds() const {
    fi_dat_ep_status status;
    return !left_.load(std::memory_order_acquire) && ops->status(ep, &status) == 0 &&
           is_peers(status);
}

// --- events ------------------------------------------------------------------

// The descriptor is readable if there is an event. As Completions::settle().
int rpma_conn::settle_events() {
    events.lower();
    const int rc = event_ops->tell(&eq.get()->fid, events.fd());
    if (rc) {
        events.raise();
    }
    return rc;
}

// The end of a connection, or of the attempt to make it, as the README has it.
rpma_conn_event rpma_conn::ended() {
    fi_dat_ep_status status{};
    ops->status(ep, &status);
    RPMA_SAY(RPMA_LOG_LEVEL_INFO, "a connection has ended: end %d, reason %d", status.end,
             status.reason);
    switch (status.end) {
    case FI_DAT_END_PEER_REJECTED:
    case FI_DAT_END_NON_PEER_REJECTED:
    case FI_DAT_END_ACCEPT_ERROR:
        return RPMA_CONN_REJECTED;
    case FI_DAT_END_UNREACHABLE:
    case FI_DAT_END_TIMED_OUT:
        return RPMA_CONN_UNREACHABLE;
    default:
        break;
    }
    if (!established_ ||
        (status.end == FI_DAT_END_BROKEN && status.reason == FI_DAT_REASON_RESOURCES)) {
        return RPMA_CONN_LOST;
    }
    return RPMA_CONN_CLOSED;
}

// 0; RPMA_E_NO_EVENT: there is none.
int rpma_conn::read_event(rpma_conn_event& event) {
    alignas(fi_eq_cm_entry) std::byte buffer[kLargestEvent];
    std::uint32_t type = 0;
    const ssize_t got = fi_eq_read(eq.get(), &type, buffer, sizeof buffer, 0);
    if (got == -FI_EAVAIL) {
        fi_eq_err_entry entry{};
        fi_eq_readerr(eq.get(), &entry, 0);
        event = ended();
        return 0;
    }
    if (got < 0) {
        return got == -FI_EAGAIN ? RPMA_E_NO_EVENT : RPMA_FAILURE("rpma_conn_next_event()", got);
    }
    if (type == FI_CONNECTED) {
        established_ = true;
        const auto size = static_cast<std::size_t>(got) - sizeof(fi_eq_cm_entry);
        if (private_data.empty() && size > 0) {
            private_data.assign(buffer + sizeof(fi_eq_cm_entry),
                                buffer + sizeof(fi_eq_cm_entry) + size);
        }
        event = RPMA_CONN_ESTABLISHED;
        return 0;
    }
    event = ended();
    return 0;
}

int rpma_conn::next_event(rpma_conn_event& event) {
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            int rc = read_event(event);
            if (rc != RPMA_E_NO_EVENT) {
                settle_events();
                return rc;
            }
            rc = settle_events();
            if (rc == -FI_EAGAIN) {
                continue;
            }
            if (rc) {
                return RPMA_FAILURE("rpma_conn_next_event()", rc);
            }
        }
        if (events.is_nonblocking()) {
            return RPMA_E_NO_EVENT;
        }
        if (events.sleep() == EBADF) {
            return RPMA_FAIL(RPMA_E_PROVIDER,
                             "descriptor %d, which a thread waits for events at, was closed by the "
                             "program",
                             events.fd());
        }
    }
}

int rpma_conn::disconnect() {
    left_.store(true, std::memory_order_release);
    const int rc = ops->disconnect(ep, FI_DAT_ABRUPT);
    for (const auto* each : {&cq, &rcq}) {
        if (*each) {
            (*each)->release();
        }
    }
    return rc;
}

extern "C" {

int rpma_conn_get_event_fd(const struct rpma_conn* conn, int* fd) {
    if (!conn || !fd) {
        return RPMA_REFUSE("rpma_conn_get_event_fd(): %s is NULL", conn ? "fd" : "conn");
    }
    *fd = conn->events.fd();
    return 0;
}

int rpma_conn_next_event(struct rpma_conn* conn, enum rpma_conn_event* event) {
    if (!conn || !event) {
        return RPMA_REFUSE("rpma_conn_next_event(): %s is NULL", conn ? "event" : "conn");
    }
    rpma_conn_event next = RPMA_CONN_UNDEFINED;
    const int rc = guarded(__func__, [&] { return conn->next_event(next); });
    if (rc == 0) {
        *event = next;
        RPMA_SAY(RPMA_LOG_LEVEL_NOTICE, "%s", rpma_utils_conn_event_2str(next));
    }
    return rc;
}

int rpma_conn_get_private_data(const struct rpma_conn* conn, struct rpma_conn_private_data* pdata) {
    if (!conn || !pdata) {
        return RPMA_REFUSE("rpma_conn_get_private_data(): %s is NULL", conn ? "pdata" : "conn");
    }
    const auto& data = conn->private_data;
    pdata->ptr = data.empty() ? nullptr : const_cast<std::byte*>(data.data());
    pdata->len = static_cast<std::uint8_t>(data.size());
    return 0;
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn* conn, const struct rpma_peer_cfg* pcfg) {
    if (!conn || !pcfg) {
        return RPMA_REFUSE("rpma_conn_apply_remote_peer_cfg(): %s is NULL", conn ? "pcfg" : "conn");
    }
    conn->direct_write_to_pmem = pcfg->direct_write_to_pmem;
    return 0;
}

int rpma_conn_get_qp_num(const struct rpma_conn* conn, uint32_t* qp_num) {
    if (!conn || !qp_num) {
        return RPMA_REFUSE("rpma_conn_get_qp_num(): %s is NULL", conn ? "qp_num" : "conn");
    }
    *qp_num = conn->number;
    return 0;
}

int rpma_conn_get_cq(const struct rpma_conn* conn, struct rpma_cq** cq_ptr) {
    if (!conn || !cq_ptr) {
        return RPMA_REFUSE("rpma_conn_get_cq(): %s is NULL", conn ? "cq_ptr" : "conn");
    }
    *cq_ptr = conn->cq.get();
    return 0;
}

int rpma_conn_get_rcq(const struct rpma_conn* conn, struct rpma_cq** rcq_ptr) {
    if (!conn || !rcq_ptr) {
        return RPMA_REFUSE("rpma_conn_get_rcq(): %s is NULL", conn ? "rcq_ptr" : "conn");
    }
    *rcq_ptr = conn->rcq.get();
    return 0;
}

int rpma_conn_get_compl_fd(const struct rpma_conn* conn, int* fd) {
    if (!conn || !fd) {
        return RPMA_REFUSE("rpma_conn_get_compl_fd(): %s is NULL", conn ? "fd" : "conn");
    }
    if (!conn->shared_channel) {
        return RPMA_FAIL(RPMA_E_NOT_SHARED_CHNL,
                         "rpma_conn_get_compl_fd(): the connection was made without a shared "
                         "completion channel; use rpma_cq_get_fd()");
    }
    *fd = conn->main.channel.fd();
    return 0;
}

int rpma_conn_disconnect(struct rpma_conn* conn) {
    if (!conn) {
        return RPMA_REFUSE("rpma_conn_disconnect(): conn is NULL");
    }
    return guarded(__func__, [&] {
        const int rc = conn->disconnect();
        return rc == 0 ? 0 : RPMA_FAILURE("rpma_conn_disconnect()", rc);
    });
}

int rpma_conn_delete(struct rpma_conn** conn_ptr) {
    if (!conn_ptr) {
        return RPMA_REFUSE("rpma_conn_delete(): conn_ptr is NULL");
    }
    const std::unique_ptr<rpma_conn> conn(*conn_ptr);
    *conn_ptr = nullptr;
    if (const int rc = conn ? conn->close() : 0) {
        return RPMA_FAILURE("rpma_conn_delete()", rc);
    }
    return 0;
}

} // extern "C"
