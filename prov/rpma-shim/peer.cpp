// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rpma_peer_*() and rpma_utils_*().
#include "rpma-shim/peer.h"

#include "rpma-shim/device.h"
#include "rpma-shim/guard.h"

#include <memory>
#include <string>

using namespace dat::rpma;

extern "C" {

int rpma_utils_get_ibv_context(const char* addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context** ibv_ctx_ptr) {
    if (!addr || !ibv_ctx_ptr) {
        return RPMA_REFUSE("rpma_utils_get_ibv_context(): %s is NULL",
                           addr ? "ibv_ctx_ptr" : "addr");
    }
    if (type != RPMA_UTIL_IBV_CONTEXT_LOCAL && type != RPMA_UTIL_IBV_CONTEXT_REMOTE) {
        return RPMA_REFUSE("rpma_utils_get_ibv_context(): type = %d is neither "
                           "RPMA_UTIL_IBV_CONTEXT_LOCAL (0) nor _REMOTE (1)",
                           static_cast<int>(type));
    }
    return guarded(__func__, [&] {
        const bool local = type == RPMA_UTIL_IBV_CONTEXT_LOCAL;
        std::string why;
        const auto address = Address::resolve(addr, nullptr, local, why);
        if (!address) {
            return RPMA_FAIL(RPMA_E_PROVIDER, "the address \"%s\": %s", addr, why.c_str());
        }
        Device* const device = Device::find(*address, local);
        if (!device) {
            return RPMA_E_PROVIDER;
        }
        RPMA_SAY(RPMA_LOG_LEVEL_NOTICE, "%s is served by %s", addr, device->by());
        *ibv_ctx_ptr = device->context();
        return 0;
    });
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context* ibv_ctx, int* is_odp_capable) {
    if (!ibv_ctx || !is_odp_capable) {
        return RPMA_REFUSE("rpma_utils_ibv_context_is_odp_capable(): %s is NULL",
                           ibv_ctx ? "is_odp_capable" : "ibv_ctx");
    }
    *is_odp_capable = 0; // memory is pinned, or looked at, when it is registered
    return 0;
}

int rpma_peer_new(struct ibv_context* ibv_ctx, struct rpma_peer** peer_ptr) {
    if (!ibv_ctx || !peer_ptr) {
        return RPMA_REFUSE("rpma_peer_new(): %s is NULL", ibv_ctx ? "peer_ptr" : "ibv_ctx");
    }
    return guarded(__func__, [&] {
        Device* const device = Device::of(ibv_ctx);
        if (!device) {
            return RPMA_FAIL(RPMA_E_PROVIDER,
                             "rpma_peer_new(): no device is known by the context "
                             "%p",
                             static_cast<void*>(ibv_ctx));
        }
        auto peer = std::make_shared<rpma_peer>(*device);
        auto& info = const_cast<fi_info&>(device->info());
        if (const int rc = fi_domain(device->fabric(), &info, peer->domain.out(), nullptr)) {
            return RPMA_FAILURE("rpma_peer_new(): a domain", rc);
        }
        peer->of_program = peer;
        *peer_ptr = peer.get();
        return 0;
    });
}

int rpma_peer_delete(struct rpma_peer** peer_ptr) {
    if (!peer_ptr) {
        return RPMA_REFUSE("rpma_peer_delete(): peer_ptr is NULL");
    }
    if (!*peer_ptr) {
        return 0;
    }
    const std::shared_ptr<rpma_peer> peer = std::move((*peer_ptr)->of_program);
    *peer_ptr = nullptr;
    if (peer.use_count() > 1) {
        return RPMA_FAIL(
            RPMA_E_PROVIDER,
            "rpma_peer_delete(): %ld regions, connections, endpoints or shared receive "
            "queues of the peer are there; its domain ends with the last of them",
            peer.use_count() - 1);
    }
    const int rc = peer->domain.reset();
    return rc == 0 ? 0 : RPMA_FAILURE("rpma_peer_delete()", rc);
}

} // extern "C"
