// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// fi_getinfo(): what is offered, and whether hints agree with it.
#ifndef DAT_OFI_INFO_H
#define DAT_OFI_INFO_H

#include "links/iwarp/connect.h"
#include "links/verbs/device.h"

#include <rdma/fabric.h>
#include <rdma/fi_ext_dat.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dat::ofi {

struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>; // a list

inline constexpr std::size_t kDefaultQueueSize = 128;
inline constexpr std::size_t kMaxQueueSize = 32768;
inline constexpr std::size_t kMaxSharedSize = std::size_t{1} << 20;
inline constexpr std::size_t kMaxMessageSize = std::size_t{1} << 40;
// To a peer that is no `dat` provider, and of FI_EP_RDM: RFC 5041 has offsets of 32 bits, RFC 5040
// reads whose size has as many.
inline constexpr std::size_t kMaxNarrowSize = UINT32_MAX;
inline constexpr std::size_t kMaxConnectionData = iwarp::kMaxPrivateData;

// Operation flags that a tx_attr or rx_attr may set as the default of an endpoint.
inline constexpr std::uint64_t kTxOpFlags =
    FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
inline constexpr std::uint64_t kRxOpFlags = FI_COMPLETION | FI_MULTI_RECV;

// fi_getinfo(3). One entry for each source address, the best first.
int getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
            const fi_info* hints, fi_info** info);

// A copy of the address for fi_info.src_addr or dest_addr, and its size. Throws
// std::bad_alloc.
void* copy_address(const net::SocketAddress& address, std::size_t& size);

// What a kind of domain has: the software one, or that of a device.
struct Offering {
    fi_ep_type type;           // of an endpoint
    std::uint64_t caps;        // of an endpoint
    std::uint64_t tx_op_flags; // of a tx_attr
    std::uint64_t rx_op_flags; // of an rx_attr
    std::uint64_t msg_order;
    std::uint64_t comp_order;
    std::uint32_t protocol;
    int mr_mode;             // that RMA requires
    int wished_mode;         // that makes it faster
    bool shared_receives;    // fi_srx_context(3)
    bool invalidates;        // FI_DAT_INVALIDATE
    bool data_takes_receive; // a write with remote CQ data (U-62)
    std::size_t data_size;   // of remote CQ data
    std::size_t key_size;    // of memory, where the program chooses it
    std::size_t inject_size; // bytes, at most
    std::size_t queue_size;  // operations, at most
    std::size_t usual_size;  // operations of a program that asks for no number
    std::size_t iov_limit;
    std::size_t remote_segments; // of one operation
    std::size_t message_size;
    std::size_t connection_data; // of a connect (U-63)
    fi_dat_limits limits;
};
const Offering& soft_offering();
Offering offering_of(const verbs::Device& device);
// FI_EP_RDM: of the software domain, and of that of a device, for a program that asks for `caps`
// (0: all).
const Offering& rdm_offering();
Offering rdm_offering_of(const verbs::Device& device, std::uint64_t caps);

// Why hints do not agree with what is offered.
struct Refusal {
    char what[160] = "";  // which hint, its value, and what is offered
    bool routine = false; // a question that other providers' layers always ask
};
// True: the attributes agree. Addresses and names are not looked at.
bool agrees(const fi_info& hints, std::uint32_t version, const Offering& offering, Refusal& why);

// The offer without addresses and names, made to fit hints that agree; nullptr:
// none. Throws std::bad_alloc.
Info make_offer(const fi_info* hints, std::uint32_t version, const Offering& offering);

} // namespace dat::ofi

#endif
