// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rpma_conn_req_*() and rpma_ep_*().
#include "rpma-shim/conn.h"
#include "rpma-shim/guard.h"
#include "rpma-shim/post.h"

#include <rdma/fi_errno.h>

#include <cerrno>
#include <cstring>
#include <string>

using namespace dat::rpma;

struct rpma_ep {
    explicit rpma_ep(rpma_peer& of) : kept(of.shared_from_this()), peer(of) {}
    // Before what it reports to.
    ~rpma_ep() { pep.reset(); }
    int settle();

    const std::shared_ptr<rpma_peer> kept;
    rpma_peer& peer;
    Channel events;
    Owned<fid_eq> eq;
    fi_dat_ops_queue* event_ops = nullptr;
    Owned<fid_pep> pep;
    std::mutex mutex;
};

// The descriptor is readable if there is a request. As Completions::settle().
int rpma_ep::settle() {
    events.lower();
    const int rc = event_ops->tell(&eq.get()->fid, events.fd());
    if (rc) {
        events.raise();
    }
    return rc;
}

namespace {

const rpma_conn_cfg& or_default(const rpma_conn_cfg* config) {
    static const rpma_conn_cfg defaults;
    return config ? *config : defaults;
}

// The requester is told no. 0 or -FI_E*.
int reject(rpma_conn_req& request) {
    fi_dat_ops_fabric* ops = nullptr;
    const int rc = fi_open_ops(&request.fabric->fid, FI_DAT_FABRIC_OPS, 0,
                               reinterpret_cast<void**>(&ops), nullptr);
    const fid_t handle = std::exchange(request.handle, nullptr);
    return rc ? rc : ops->reject(request.fabric, handle, nullptr, 0);
}

// What a program gives to its peer: 0, or one of RPMA_E_*, logged.
int check_data(const rpma_conn_private_data* data, bool passive) {
    if (data && (!data->ptr || data->len == 0)) {
        return RPMA_REFUSE("rpma_conn_req_connect(): private data with ptr = %p and len = %u; both "
                           "have to be set, or pdata be NULL",
                           data->ptr, data->len);
    }
    const std::size_t most = passive ? kAcceptData : kConnectData;
    if (data && data->len > most) {
        return RPMA_FAIL(RPMA_E_PROVIDER,
                         "rpma_conn_req_connect(): private data of %u bytes; %s takes %zu",
                         data->len, passive ? "an accept" : "a connect", most);
    }
    return 0;
}

int open_listener(rpma_ep& ep, const Address& address) {
    const dat::shim::Info info = ep.peer.device.at(address);
    if (!info) {
        return RPMA_E_PROVIDER;
    }
    int rc = ep.events.open();
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_NONE;
    rc = rc ? rc : fi_eq_open(ep.peer.device.fabric(), &attr, ep.eq.out(), nullptr);
    rc = rc ? rc
            : fi_open_ops(&ep.eq.get()->fid, FI_DAT_QUEUE_OPS, 0,
                          reinterpret_cast<void**>(&ep.event_ops), nullptr);
    rc = rc ? rc : fi_passive_ep(ep.peer.device.fabric(), info.get(), ep.pep.out(), nullptr);
    rc = rc ? rc : fi_pep_bind(ep.pep.get(), &ep.eq.get()->fid, 0);
    rc = rc ? rc : fi_listen(ep.pep.get());
    if (rc) {
        return RPMA_FAILURE("rpma_ep_listen()", rc);
    }
    ep.settle();
    return 0;
}

// The next request, which is rejected with `request` if it is not taken on; or RPMA_E_NO_EVENT.
int read_request(rpma_ep& ep, dat::shim::Info& info, rpma_conn_req& request) {
    alignas(fi_eq_cm_entry) std::byte buffer[sizeof(fi_eq_cm_entry) + 512];
    std::uint32_t type = 0;
    const ssize_t got = fi_eq_read(ep.eq.get(), &type, buffer, sizeof buffer, 0);
    if (got < 0) {
        return got == -FI_EAGAIN ? RPMA_E_NO_EVENT : RPMA_FAILURE("rpma_ep_next_conn_req()", got);
    }
    fi_eq_cm_entry entry;
    std::memcpy(&entry, buffer, sizeof entry);
    info.reset(entry.info);
    request.handle = info->handle;
    request.conn->private_data.assign(buffer + sizeof entry, buffer + got);
    return 0;
}

int next_request(rpma_ep& ep, dat::shim::Info& info, rpma_conn_req& request) {
    for (;;) {
        {
            const std::lock_guard lock(ep.mutex);
            int rc = read_request(ep, info, request);
            if (rc != RPMA_E_NO_EVENT) {
                ep.settle();
                return rc;
            }
            rc = ep.settle();
            if (rc == -FI_EAGAIN) {
                continue;
            }
            if (rc) {
                return RPMA_FAILURE("rpma_ep_next_conn_req()", rc);
            }
        }
        if (ep.events.is_nonblocking()) {
            return RPMA_E_NO_EVENT;
        }
        if (ep.events.sleep() == EBADF) {
            return RPMA_FAIL(RPMA_E_PROVIDER,
                             "descriptor %d, which a thread waits for requests at, was closed by "
                             "the program",
                             ep.events.fd());
        }
    }
}

// RP-1. 0 or RPMA_E_PROVIDER, logged.
int resolve(rpma_peer& peer, const Address& address, int timeout_ms) {
    fi_dat_ops_domain* ops = nullptr;
    int rc = fi_open_ops(&peer.domain.get()->fid, FI_DAT_DOMAIN_OPS, 0,
                         reinterpret_cast<void**>(&ops), nullptr);
    rc = rc ? rc
            : ops->resolve(peer.domain.get(), address.get(),
                           std::uint64_t{1000} * static_cast<std::uint64_t>(timeout_ms));
    return rc == 0 ? 0 : RPMA_FAILURE("rpma_conn_req_new(): a way to the address", rc);
}

int connect(rpma_conn_req& request, const rpma_conn_private_data* data) {
    rpma_conn& conn = *request.conn;
    const void* const bytes = data ? data->ptr : nullptr;
    const std::size_t size = data ? data->len : 0;
    if (!request.passive) {
        const int rc = fi_connect(conn.ep, request.destination.data(), bytes, size);
        return rc == 0 ? 0 : RPMA_FAILURE("rpma_conn_req_connect()", rc);
    }
    const int rc = fi_accept(conn.ep, bytes, size);
    if (rc == 0) {
        request.handle = nullptr;
        return 0;
    }
    return RPMA_FAILURE("rpma_conn_req_connect(): accepting", rc);
}

} // namespace

rpma_conn_req::~rpma_conn_req() {
    if (handle) {
        reject(*this);
    }
}

extern "C" {

// --- requests ----------------------------------------------------------------

int rpma_conn_req_new(struct rpma_peer* peer, const char* addr, const char* port,
                      const struct rpma_conn_cfg* cfg, struct rpma_conn_req** req_ptr) {
    if (!peer || !addr || !port || !req_ptr) {
        return RPMA_REFUSE("rpma_conn_req_new(): peer = %p, addr = %p, port = %p, req_ptr = %p; "
                           "none of them may be NULL",
                           static_cast<void*>(peer), static_cast<const void*>(addr),
                           static_cast<const void*>(port), static_cast<void*>(req_ptr));
    }
    return guarded(__func__, [&] {
        std::string why;
        const auto address = Address::resolve(addr, port, false, why);
        if (!address) {
            return RPMA_FAIL(RPMA_E_PROVIDER, "%s:%s: %s", addr, port, why.c_str());
        }
        const dat::shim::Info info = peer->device.towards(*address);
        if (!info) {
            return RPMA_E_PROVIDER;
        }
        if (const int rc = resolve(*peer, *address, or_default(cfg).timeout_ms)) {
            return rc;
        }
        auto request = std::make_unique<rpma_conn_req>();
        request->conn = std::make_unique<rpma_conn>(*peer);
        const auto* const at = reinterpret_cast<const std::byte*>(address->get());
        request->destination.assign(at, at + address->size());
        if (const int rc = request->conn->open(RPMA_HERE, *info, or_default(cfg))) {
            return rc;
        }
        RPMA_SAY(RPMA_LOG_LEVEL_NOTICE, "a connection to %s:%s goes by %s", addr, port,
                 peer->device.by());
        *req_ptr = request.release();
        return 0;
    });
}

int rpma_conn_req_delete(struct rpma_conn_req** req_ptr) {
    if (!req_ptr) {
        return RPMA_REFUSE("rpma_conn_req_delete(): req_ptr is NULL");
    }
    const std::unique_ptr<rpma_conn_req> request(*req_ptr);
    *req_ptr = nullptr;
    if (!request) {
        return 0;
    }
    return guarded(__func__, [&] {
        const int rejected = request->handle ? reject(*request) : 0;
        const int closed = request->conn->close();
        const int rc = rejected ? rejected : closed;
        return rc == 0 ? 0 : RPMA_FAILURE("rpma_conn_req_delete()", rc);
    });
}

int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset,
                       size_t len, const void* op_context) {
    if (!req || !dst) {
        return RPMA_REFUSE("rpma_conn_req_recv(): %s is NULL", req ? "dst" : "req");
    }
    return post_receive("rpma_conn_req_recv()", req->conn->ep, dst, offset, len, op_context);
}

int rpma_conn_req_get_private_data(const struct rpma_conn_req* req,
                                   struct rpma_conn_private_data* pdata) {
    if (!req || !pdata) {
        return RPMA_REFUSE("rpma_conn_req_get_private_data(): %s is NULL", req ? "pdata" : "req");
    }
    return rpma_conn_get_private_data(req->conn.get(), pdata);
}

int rpma_conn_req_connect(struct rpma_conn_req** req_ptr,
                          const struct rpma_conn_private_data* pdata, struct rpma_conn** conn_ptr) {
    if (!req_ptr || !*req_ptr) {
        return RPMA_REFUSE("rpma_conn_req_connect(): %s is NULL", req_ptr ? "*req_ptr" : "req_ptr");
    }
    rpma_conn_req* const given = std::exchange(*req_ptr, nullptr);
    int rc = conn_ptr ? check_data(pdata, given->passive)
                      : RPMA_REFUSE("rpma_conn_req_connect(): conn_ptr is NULL");
    rc = rc ? rc : guarded(__func__, [&] { return connect(*given, pdata); });
    if (rc == 0) {
        *conn_ptr = given->conn.release();
        delete given;
        return 0;
    }
    rpma_conn_req* left = given;
    rpma_conn_req_delete(&left);
    return rc;
}

// --- listeners ---------------------------------------------------------------

int rpma_ep_listen(struct rpma_peer* peer, const char* addr, const char* port,
                   struct rpma_ep** ep_ptr) {
    if (!peer || !addr || !port || !ep_ptr) {
        return RPMA_REFUSE("rpma_ep_listen(): peer = %p, addr = %p, port = %p, ep_ptr = %p; none "
                           "of them may be NULL",
                           static_cast<void*>(peer), static_cast<const void*>(addr),
                           static_cast<const void*>(port), static_cast<void*>(ep_ptr));
    }
    return guarded(__func__, [&] {
        std::string why;
        const auto address = Address::resolve(addr, port, true, why);
        if (!address) {
            return RPMA_FAIL(RPMA_E_PROVIDER, "%s:%s: %s", addr, port, why.c_str());
        }
        auto ep = std::make_unique<rpma_ep>(*peer);
        if (const int rc = open_listener(*ep, *address)) {
            return rc;
        }
        RPMA_SAY(RPMA_LOG_LEVEL_NOTICE, "listening at %s:%s by %s", addr, port, peer->device.by());
        *ep_ptr = ep.release();
        return 0;
    });
}

int rpma_ep_shutdown(struct rpma_ep** ep_ptr) {
    if (!ep_ptr) {
        return RPMA_REFUSE("rpma_ep_shutdown(): ep_ptr is NULL");
    }
    const std::unique_ptr<rpma_ep> ep(*ep_ptr);
    *ep_ptr = nullptr;
    return 0;
}

int rpma_ep_get_fd(const struct rpma_ep* ep, int* fd) {
    if (!ep || !fd) {
        return RPMA_REFUSE("rpma_ep_get_fd(): %s is NULL", ep ? "fd" : "ep");
    }
    *fd = ep->events.fd();
    return 0;
}

int rpma_ep_next_conn_req(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg,
                          struct rpma_conn_req** req_ptr) {
    if (!ep || !req_ptr) {
        return RPMA_REFUSE("rpma_ep_next_conn_req(): %s is NULL", ep ? "req_ptr" : "ep");
    }
    return guarded(__func__, [&] {
        auto request = std::make_unique<rpma_conn_req>();
        request->passive = true;
        request->fabric = ep->peer.device.fabric();
        request->conn = std::make_unique<rpma_conn>(ep->peer);
        dat::shim::Info info;
        int rc = next_request(*ep, info, *request);
        rc = rc ? rc : request->conn->open(RPMA_HERE, *info, or_default(cfg));
        if (rc) {
            return rc;
        }
        *req_ptr = request.release();
        return 0;
    });
}

} // extern "C"
