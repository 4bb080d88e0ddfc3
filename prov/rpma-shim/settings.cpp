// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rpma_conn_cfg_*(), rpma_srq_cfg_*() and rpma_peer_cfg_*().
#include "rpma-shim/settings.h"

#include "rpma-shim/guard.h"

#include <climits>
#include <cstddef>

namespace {

using namespace dat::rpma;

template <class Config> int make(const char* call, Config** config) {
    if (!config) {
        return RPMA_REFUSE("%s(): the pointer for the configuration is NULL", call);
    }
    return guarded(call, [&] {
        *config = new Config;
        return 0;
    });
}

template <class Config> int drop(const char* call, Config** config) {
    if (!config) {
        return RPMA_REFUSE("%s(): the pointer to the configuration is NULL", call);
    }
    delete *config;
    *config = nullptr;
    return 0;
}

template <class Config, class Value, class Given>
int set(const char* call, Config* config, std::atomic<Value> Config::*member, Given value) {
    if (!config) {
        return RPMA_REFUSE("%s(): the configuration is NULL", call);
    }
    config->*member = value;
    return 0;
}

template <class Config, class Value>
int get(const char* call, const Config* config, const std::atomic<Value> Config::*member,
        Value* value) {
    if (!config || !value) {
        return RPMA_REFUSE("%s(): %s is NULL", call,
                           config ? "the pointer for the value" : "the configuration");
    }
    *value = config->*member;
    return 0;
}

constexpr std::size_t kPeerDescriptor = 1; // bytes

} // namespace

extern "C" {

// --- of a connection ---------------------------------------------------------

int rpma_conn_cfg_new(struct rpma_conn_cfg** cfg_ptr) { return make(__func__, cfg_ptr); }
int rpma_conn_cfg_delete(struct rpma_conn_cfg** cfg_ptr) { return drop(__func__, cfg_ptr); }

int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg* cfg, int timeout_ms) {
    if (timeout_ms < 0) {
        return RPMA_REFUSE("rpma_conn_cfg_set_timeout(): timeout_ms = %d has to be 0 or more",
                           timeout_ms);
    }
    return set(__func__, cfg, &rpma_conn_cfg::timeout_ms, timeout_ms);
}
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg* cfg, int* timeout_ms) {
    return get(__func__, cfg, &rpma_conn_cfg::timeout_ms, timeout_ms);
}
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg* cfg, uint32_t cq_size) {
    return set(__func__, cfg, &rpma_conn_cfg::cq_size, cq_size);
}
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg* cfg, uint32_t* cq_size) {
    return get(__func__, cfg, &rpma_conn_cfg::cq_size, cq_size);
}
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg* cfg, uint32_t rcq_size) {
    return set(__func__, cfg, &rpma_conn_cfg::rcq_size, rcq_size);
}
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg* cfg, uint32_t* rcq_size) {
    return get(__func__, cfg, &rpma_conn_cfg::rcq_size, rcq_size);
}
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg* cfg, uint32_t sq_size) {
    return set(__func__, cfg, &rpma_conn_cfg::sq_size, sq_size);
}
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg* cfg, uint32_t* sq_size) {
    return get(__func__, cfg, &rpma_conn_cfg::sq_size, sq_size);
}
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg* cfg, uint32_t rq_size) {
    return set(__func__, cfg, &rpma_conn_cfg::rq_size, rq_size);
}
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg* cfg, uint32_t* rq_size) {
    return get(__func__, cfg, &rpma_conn_cfg::rq_size, rq_size);
}
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg* cfg, bool shared) {
    return set(__func__, cfg, &rpma_conn_cfg::shared_channel, shared);
}
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg* cfg, bool* shared) {
    return get(__func__, cfg, &rpma_conn_cfg::shared_channel, shared);
}
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg* cfg, struct rpma_srq* srq) {
    if (!srq) {
        return RPMA_REFUSE("rpma_conn_cfg_set_srq(): srq is NULL");
    }
    return set(__func__, cfg, &rpma_conn_cfg::srq, srq);
}
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg* cfg, struct rpma_srq** srq_ptr) {
    return get(__func__, cfg, &rpma_conn_cfg::srq, srq_ptr);
}

// --- of a shared receive queue -----------------------------------------------

int rpma_srq_cfg_new(struct rpma_srq_cfg** cfg_ptr) { return make(__func__, cfg_ptr); }
int rpma_srq_cfg_delete(struct rpma_srq_cfg** cfg_ptr) { return drop(__func__, cfg_ptr); }
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg* cfg, uint32_t rq_size) {
    return set(__func__, cfg, &rpma_srq_cfg::rq_size, rq_size);
}
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg* cfg, uint32_t* rq_size) {
    return get(__func__, cfg, &rpma_srq_cfg::rq_size, rq_size);
}
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg* cfg, uint32_t rcq_size) {
    return set(__func__, cfg, &rpma_srq_cfg::rcq_size, rcq_size);
}
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg* cfg, uint32_t* rcq_size) {
    return get(__func__, cfg, &rpma_srq_cfg::rcq_size, rcq_size);
}

// --- of a peer ---------------------------------------------------------------

int rpma_peer_cfg_new(struct rpma_peer_cfg** pcfg_ptr) { return make(__func__, pcfg_ptr); }
int rpma_peer_cfg_delete(struct rpma_peer_cfg** pcfg_ptr) { return drop(__func__, pcfg_ptr); }
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg* pcfg, bool supported) {
    return set(__func__, pcfg, &rpma_peer_cfg::direct_write_to_pmem, supported);
}
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg* pcfg, bool* supported) {
    return get(__func__, pcfg, &rpma_peer_cfg::direct_write_to_pmem, supported);
}

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg* pcfg, void* desc) {
    if (!pcfg || !desc) {
        return RPMA_REFUSE("rpma_peer_cfg_get_descriptor(): %s is NULL",
                           pcfg ? "the room for the descriptor" : "the configuration");
    }
    *static_cast<std::uint8_t*>(desc) = pcfg->direct_write_to_pmem ? 1 : 0;
    return 0;
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg* pcfg, size_t* desc_size) {
    if (!pcfg || !desc_size) {
        return RPMA_REFUSE("rpma_peer_cfg_get_descriptor_size(): %s is NULL",
                           pcfg ? "the pointer for the size" : "the configuration");
    }
    *desc_size = kPeerDescriptor;
    return 0;
}

int rpma_peer_cfg_from_descriptor(const void* desc, size_t desc_size,
                                  struct rpma_peer_cfg** pcfg_ptr) {
    if (!desc || !pcfg_ptr || desc_size < kPeerDescriptor) {
        return RPMA_REFUSE("rpma_peer_cfg_from_descriptor(): desc = %p, desc_size = %zu, "
                           "pcfg_ptr = %p; a descriptor of at least %zu byte, and a pointer",
                           desc, desc_size, static_cast<void*>(pcfg_ptr), kPeerDescriptor);
    }
    return guarded(__func__, [&] {
        *pcfg_ptr = new rpma_peer_cfg;
        (*pcfg_ptr)->direct_write_to_pmem = *static_cast<const std::uint8_t*>(desc) != 0;
        return 0;
    });
}

} // extern "C"
