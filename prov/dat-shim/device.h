// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The network interfaces and RDMA devices that the provider offers.
#ifndef DAT_SHIM_DEVICE_H
#define DAT_SHIM_DEVICE_H

#include "dat-shim/provider.h"

#include <rdma/fabric.h>
#include <rdma/fi_ext_dat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dat::shim {

// What the provider offers on an adapter: name of an interface, address of one, or device and
// port as "mlx5_0/1". Where an RDMA device has the address its offer comes before that of TCP,
// as FI_DAT_TRANSPORT permits; IPv4 comes before IPv6. Empty: nothing goes by that name.
// Precondition: not out_of_descriptors().
Info offer_of(const std::string& adapter);

// There are fewer than it takes to find what this host has. With RDMA devices these are several:
// with too few the device would not be found, and TCP be used in its place.
bool out_of_descriptors();

// The names of all interfaces on which there is an offer, each once; loopback last.
std::vector<std::string> interfaces();

// "mlx5_0/1" of the two words; a port of "" or "0" is the first. Empty: this host has no
// RDMA device of that name.
std::string rdma_port(const std::string& device, const std::string& port);

// The interface or device that the name of an IA has in it as a word, as "ofa-v2-eth0" has
// eth0, and "ofa-v2-mlx5_0-1" mlx5_0; the longest if there are several. Empty: none.
std::string adapter_in(std::string_view ia_name);

// What no IA goes beyond (IA-12).
struct Limits {
    static constexpr std::int32_t kMaxEvdLength = 1 << 20;
    static constexpr std::int32_t kMaxDtos = 32768;
    static constexpr std::int32_t kMaxTaken = 16384; // of an SRQ, by one endpoint
    static constexpr std::int32_t kMaxSharedDtos = 1 << 20;
    static constexpr std::int32_t kMaxSegments = 4;
    static constexpr std::uint32_t kMaxLength = UINT32_MAX; // of a message, or RDMA
    static constexpr std::size_t kMaxPrivateData = 508;     // bytes (U-63)
};

// What an IA can do.
struct Abilities {
    bool device;          // an RDMA device, not the software transport
    bool iwarp;           // else InfiniBand or RoCE
    bool atomics;         // fetch-add and compare-swap of 8 bytes, where the peer has them too
    bool immediate;       // data with a write, likewise
    bool windows;         // RMRs that can be bound
    bool zero_based;      // memory whose first byte is 0
    bool shared_receives; // SRQs
    bool zones_share;     // endpoints of several PZs take from one of them (SRQ-2)
    std::int32_t max_dtos;
    std::int32_t max_segments;
    std::int32_t max_read_segments;
    std::int32_t max_reads_in; // of an endpoint, from its peer
    std::int32_t max_reads_out;
    std::int32_t mtu;             // bytes of a packet that are the program's, about
    std::uint32_t max_length;     // bytes of a message, or RDMA
    std::size_t max_private_data; // bytes, of a connect (U-63)
};
// `fabric`, `domain`: open ones of `info`. May throw std::bad_alloc.
Abilities abilities_of(fi_info& info, fid_fabric& fabric, fid_domain& domain);

} // namespace dat::shim

#endif
