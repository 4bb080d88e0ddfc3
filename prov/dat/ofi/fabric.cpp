// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See fabric.h.
#include "ofi/fabric.h"

#include "base/log.h"
#include "ofi/cm.h"
#include "ofi/cntr.h"
#include "ofi/cq.h"
#include "ofi/domain.h"
#include "ofi/eq.h"
#include "ofi/errors.h"
#include "ofi/no_op.h"
#include "ofi/pep.h"

#include <utility>

namespace dat::ofi {
namespace {

int close(fid_t f) {
    Fabric& fabric = object_of<Fabric, fid_fabric>(f);
    if (fabric.users.count() > 0) {
        DAT_WARN(fabric,
                 "fi_close() of a fabric: %d of its domains, event queues and passive "
                 "endpoints are open",
                 fabric.users.count());
        return -FI_EBUSY;
    }
    delete &fabric;
    return 0;
}

int try_wait(fid_fabric*, fid_t* fids, int count) {
    for (int i = 0; i < count; ++i) {
        int rc = -FI_EINVAL;
        if (fids[i]->fclass == FI_CLASS_CQ) {
            rc = object_of<CompletionQueue, fid_cq>(fids[i]).try_wait();
        } else if (fids[i]->fclass == FI_CLASS_EQ) {
            rc = object_of<EventQueue, fid_eq>(fids[i]).try_wait();
        } else if (fids[i]->fclass == FI_CLASS_CNTR) {
            rc = object_of<Counter, fid_cntr>(fids[i]).try_wait();
        } else {
            DAT_WARN(fabric,
                     "fi_trywait(): fids[%d] is neither an event queue nor a completion "
                     "queue nor a counter",
                     i);
        }
        if (rc) {
            return rc;
        }
    }
    return 0;
}

int open_domain_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** domain,
                           std::uint64_t flags, void* context) {
    if (flags != 0) {
        DAT_WARN(domain, "fi_domain2(): flags = 0x%llx; none is offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    return open_domain(fabric, info, domain, context);
}

int open_ops(fid_t, const char* name, std::uint64_t flags, void** table, void*) {
    return give_table(dat_fabric_ops, FI_DAT_FABRIC_OPS, name, flags, table);
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = DAT_NOT_OFFERED(fi_ops, bind),
    .control = DAT_NOT_OFFERED(fi_ops, control),
    .ops_open = open_ops,
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_fabric g_fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = open_pep,
    .eq_open = open_eq,
    .wait_open = DAT_NOT_OFFERED(fi_ops_fabric, wait_open),
    .trywait = try_wait,
    .domain2 = open_domain_with_flags,
};

// The handle of a request is a fid, but nothing can be done with it except by
// fi_endpoint(), fi_reject() and fi_ext_dat.h.
constinit fi_ops g_request_ops = fid_ops(DAT_NOT_OFFERED(fi_ops, close));

} // namespace

Fabric::Fabric(std::uint32_t api, void* context) {
    fid.fclass = FI_CLASS_FABRIC;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_fabric_ops;
    api_version = api;
}

fid_t Fabric::add_request(std::unique_ptr<Incoming>& request, PassiveEndpoint& origin,
                          Endpoint* holder) {
    auto made = std::make_unique<Request>();
    made->handle = {FI_CLASS_CONNREQ, nullptr, &g_request_ops};
    made->origin = &origin;
    made->holder = holder;
    made->bound = holder != nullptr;
    const fid_t handle = &made->handle;
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Request>& place = requests_[handle];
    made->request = std::move(request);
    place = std::move(made);
    return handle;
}

bool Fabric::hold_request(fid_t handle, Endpoint& holder) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(handle);
    if (found == requests_.end() || found->second->holder) {
        return false;
    }
    found->second->holder = &holder;
    found->second->held_before = true;
    return true;
}

void Fabric::drop_request(fid_t handle, Endpoint& holder) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(handle);
    if (found == requests_.end() || found->second->holder != &holder) {
        return;
    }
    found->second->holder = nullptr;
    if (!found->second->origin) { // nobody can reject it any more
        requests_.erase(found);
    }
}

bool Fabric::release_request(fid_t handle, const Endpoint& holder) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(handle);
    if (found == requests_.end() || found->second->holder != &holder || found->second->bound) {
        return false;
    }
    found->second->holder = nullptr;
    found->second->held_before = false;
    return true;
}

bool Fabric::holder_of(fid_t handle, Endpoint*& holder) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(handle);
    if (found == requests_.end()) {
        return false;
    }
    holder = found->second->holder;
    return true;
}

std::unique_ptr<Request> Fabric::take_request(fid_t handle, const Endpoint* by) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(handle);
    if (found == requests_.end() || (by && found->second->holder != by)) {
        return nullptr;
    }
    std::unique_ptr<Request> request = std::move(found->second);
    request->place = requests_.extract(found);
    return request;
}

void Fabric::put_back(std::unique_ptr<Request> request) {
    const std::lock_guard lock(mutex_);
    Request::ByHandle::node_type place = std::move(request->place);
    place.mapped() = std::move(request);
    requests_.insert(std::move(place));
}

int Fabric::reject_request(const char* call, fid_t handle, const void* param, std::size_t size) {
    std::unique_ptr<Request> request = take_request(handle, nullptr);
    if (!request) {
        return refuse_settled(call);
    }
    std::span<const std::byte> data;
    const std::size_t limit = request->request->max_reject_data();
    if (const int rc = read_private_data(call, param, size, limit, data)) {
        put_back(std::move(request));
        return rc;
    }
    settle(std::move(request), true, data);
    return 0;
}

void Fabric::discard_request(fid_t handle) {
    if (std::unique_ptr<Request> request = take_request(handle, nullptr)) {
        settle(std::move(request), false);
    }
}

void Fabric::add_passive(PassiveEndpoint& pep) {
    const std::lock_guard lock(mutex_);
    passive_.emplace(&pep.fid, &pep);
}

void Fabric::remove_passive(PassiveEndpoint& pep) {
    const std::lock_guard lock(mutex_);
    passive_.erase(&pep.fid);
}

PassiveEndpoint* Fabric::find_passive(fid_t pep) {
    const std::lock_guard lock(mutex_);
    const auto found = passive_.find(pep);
    return found == passive_.end() ? nullptr : found->second;
}

void Fabric::forget_origin(const PassiveEndpoint& origin) {
    const std::lock_guard lock(mutex_);
    std::erase_if(requests_, [&](auto& entry) {
        Request& request = *entry.second;
        if (request.origin != &origin) {
            return false;
        }
        request.origin = nullptr;
        return request.held_before && !request.holder;
    });
}

bool Fabric::addresses(fid_t handle, net::SocketAddress& local, net::SocketAddress& peer) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(handle);
    if (found == requests_.end()) {
        return false;
    }
    local = found->second->request->local();
    peer = found->second->request->peer();
    return true;
}

int open_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
    return no_throw([&] {
        *fabric = new Fabric(attr ? attr->api_version : fi_version(), context);
        return 0;
    });
}

} // namespace dat::ofi
