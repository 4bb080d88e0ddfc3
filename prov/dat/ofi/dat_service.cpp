// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What fi_ext_dat.h offers on a fabric and on a passive endpoint: service points and
// connection requests as DAT has them.
#include "base/log.h"
#include "ofi/domain.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/ours.h"
#include "ofi/pep.h"

namespace dat::ofi {

int refuse_settled(const char* call) {
    DAT_WARN(ep_ctrl,
             "%s: no such connection request, or it was accepted, rejected, refused or handed "
             "off before",
             call);
    return -FI_EINVAL;
}

// The endpoint that holds the request is free of it; `how`: reject or handoff.
void unbind(const Request& request, core::Stimulus how) {
    if (request.bound) {
        request.holder->request_gone(how);
    }
}

void settle(std::unique_ptr<Request> request, bool reject, std::span<const std::byte> data) {
    if (reject) {
        request->request->reject(data);
    }
    unbind(*request, core::Stimulus::reject);
}

namespace {

int reject(fid_fabric* fabric, fid_t request, const void* param, std::size_t size) {
    return no_throw(
        [&] { return fabric_of(fabric).reject_request("reject()", request, param, size); });
}

int refuse(fid_fabric* fabric, fid_t request) {
    std::unique_ptr<Request> taken = fabric_of(fabric).take_request(request, nullptr);
    if (!taken) {
        return refuse_settled("refuse()");
    }
    settle(std::move(taken), false);
    return 0;
}

int hand_off(Fabric& fabric, fid_t handle, PassiveEndpoint& to) {
    std::unique_ptr<Request> request = fabric.take_request(handle, nullptr);
    if (!request) {
        return refuse_settled("handoff()");
    }
    const int rc = no_throw([&] { return to.take_in(request->request, false); });
    if (rc) {
        DAT_WARN(ep_ctrl, "handoff(): %s",
                 rc == -FI_EAGAIN   ? "as many requests wait there as its backlog allows"
                 : rc == -FI_ENOMEM ? "out of memory"
                                    : "the passive endpoint does not listen");
        if (request->request) {
            fabric.put_back(std::move(request));
        } else {
            unbind(*request, core::Stimulus::handoff);
        }
        return rc;
    }
    unbind(*request, core::Stimulus::handoff);
    to.came_by_handoff();
    return 0;
}

int handoff(fid_fabric* fabric, fid_t request, fid_pep* to) {
    PassiveEndpoint* pep = to ? fabric_of(fabric).find_passive(&to->fid) : nullptr;
    if (!pep) {
        DAT_WARN(ep_ctrl, "handoff(): no passive endpoint of this fabric");
        return -FI_EINVAL;
    }
    return no_throw([&] { return hand_off(fabric_of(fabric), request, *pep); });
}

int request_endpoint(fid_fabric* fabric, fid_t request, fid_ep** ep) {
    Endpoint* holder = nullptr;
    if (!fabric_of(fabric).holder_of(request, holder)) {
        return refuse_settled("request_endpoint()");
    }
    *ep = holder;
    return 0;
}

int set_raw_data(fid_fabric* fabric, int raw) {
    fabric_of(fabric).set_raw_data(raw != 0);
    return 0;
}

int reserve(fid_pep* pep, fid_ep* ep) { return pep_of(pep).reserve(ep_of(ep)); }

int provide(fid_pep* pep, fid_domain* domain, const fi_info* info) {
    return no_throw([&] { return pep_of(pep).provide(domain_of(domain), info); });
}

} // namespace

fi_dat_ops_fabric dat_fabric_ops = {
    .size = sizeof(fi_dat_ops_fabric),
    .reject = OfOurs<reject>::call,
    .refuse = OfOurs<refuse>::call,
    .handoff = OfOurs<handoff>::call,
    .request_endpoint = OfOurs<request_endpoint>::call,
    .set_raw_data = OfOurs<set_raw_data>::call,
};

fi_dat_ops_pep dat_pep_ops = {
    .size = sizeof(fi_dat_ops_pep),
    .reserve = OfOurs<reserve>::call,
    .provide = OfOurs<provide>::call,
};

} // namespace dat::ofi
