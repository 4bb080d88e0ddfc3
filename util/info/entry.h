// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An entry of fi_getinfo(3) as what it means.
#ifndef DAT_UTIL_INFO_ENTRY_H
#define DAT_UTIL_INFO_ENTRY_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dat::info {

struct Entry {
    std::string domain;    // "eth0", "mlx5_0/1"
    std::string address;   // "192.0.2.1"
    std::string network;   // "192.0.2.0/24"
    std::string interface; // "eth0"
    std::string protocol;  // "iWARP", "InfiniBand or RoCE"
    bool device = false;   // of an RDMA device, not of software
    // Of the interface.
    bool loopback = false;
    bool carrier = true;
    bool default_route = false;
    bool inside = false;     // bridge, container or tunnel
    std::uint32_t speed = 0; // Mbit/s; 0: not told
    // What it can.
    bool rma = false;
    bool atomics = false;
    bool multi_recv = false;
    bool shared_receives = false;
    bool shm = false;     // memory is shared with processes of this host
    bool shm_any = false; // also of other users
    bool windows = false;
    // Limits.
    std::size_t message = 0;       // bytes
    std::size_t inject = 0;        // bytes
    std::size_t segments = 0;      // of an operation, local
    std::size_t rma_segments = 0;  // remote
    std::size_t requests = 0;      // outstanding, by default
    std::size_t receives = 0;      // likewise
    std::size_t most_requests = 0; // that may be asked for
    std::size_t private_data = 0;  // bytes, of a connect
    std::size_t cq_data = 0;       // bytes
    std::uint32_t reads_in = 0;    // RDMA reads of the peer that are served at once
    std::uint32_t reads_out = 0;   // own ones
    std::uint32_t read_segments = 0;
    bool registers_local = false; // memory of operations has to be registered
};

// All, in the order of fi_getinfo(3). Empty: none, and `why` says what libfabric answers.
std::vector<Entry> list_entries(std::string& why);

// For people; and as schema/dat_info.schema.json says.
std::string text_of(const std::vector<Entry>& entries);
std::string json_of(const std::vector<Entry>& entries);

} // namespace dat::info

#endif
