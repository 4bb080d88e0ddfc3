// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The configurations that a program fills in: plain values with librpma's defaults (RP-13).
#ifndef DAT_RPMA_SETTINGS_H
#define DAT_RPMA_SETTINGS_H

#include <librpma.h>

#include <atomic>
#include <cstdint>

// A program may set one in one thread and read it in another.
struct rpma_conn_cfg {
    std::atomic<int> timeout_ms{RPMA_DEFAULT_TIMEOUT_MS};
    std::atomic<std::uint32_t> cq_size{10};
    std::atomic<std::uint32_t> rcq_size{0}; // 0: receives complete in the main queue
    std::atomic<std::uint32_t> sq_size{10};
    std::atomic<std::uint32_t> rq_size{10};
    std::atomic<bool> shared_channel{false};
    std::atomic<rpma_srq*> srq{nullptr};
};

struct rpma_srq_cfg {
    std::atomic<std::uint32_t> rq_size{20};
    std::atomic<std::uint32_t> rcq_size{20}; // 0: receives complete in those of the connections
};

struct rpma_peer_cfg {
    std::atomic<bool> direct_write_to_pmem{false};
};

#endif
