// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// RDMA and atomics of a reliable datagram endpoint: those of the endpoint that it has with the
// peer.
#include "base/log.h"
#include "ofi/atomic.h"
#include "ofi/rdm_ep.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace dat::ofi {
namespace {

// The endpoint of a peer that is connected; nullptr: `error` is what the call returns. It stays
// until the one it is of is closed.
Endpoint* endpoint_towards(fid_ep* f, fi_addr_t to, ssize_t& error) {
    RdmEndpoint& ep = rdm_of(f);
    const engine::BiasedLockOwner in(ep.biased_lock());
    int rc = 0;
    RdmPeer* const peer = ep.peer(to, rc);
    error = peer ? peer->ready_for_rma() : rc;
    return error == 0 ? &peer->endpoint() : nullptr;
}

// Calls the slot of the table of that endpoint.
template <auto Table, auto Slot, class... Args>
ssize_t pass_on(fid_ep* f, fi_addr_t to, Args... args) {
    ssize_t error = 0;
    Endpoint* const towards = endpoint_towards(f, to, error);
    if (!towards) {
        return error;
    }
    fid_ep* const ep = towards;
    return (ep->*Table->*Slot)(ep, args...);
}

// The calls whose address is the Nth argument behind the endpoint: all of them as they are.
template <auto Table, auto Slot, std::size_t At, class Type> struct PassedOn;
template <auto Table, auto Slot, std::size_t At, class... Args>
struct PassedOn<Table, Slot, At, ssize_t (*)(fid_ep*, Args...)> {
    static ssize_t call(fid_ep* f, Args... args) {
        const auto to = std::get<At>(std::tuple<Args...>(args...));
        return pass_on<Table, Slot>(f, to, args...);
    }
};
// Those whose message has it.
template <auto Table, auto Slot, class Type> struct PassedOnMessage;
template <auto Table, auto Slot, class Message, class... Args>
struct PassedOnMessage<Table, Slot, ssize_t (*)(fid_ep*, const Message*, Args...)> {
    static ssize_t call(fid_ep* f, const Message* message, Args... args) {
        return pass_on<Table, Slot>(f, message->addr, message, args...);
    }
};

#define DAT_RMA(slot, at)                                                                          \
    .slot = PassedOn<&fid_ep::rma, &fi_ops_rma::slot, at, decltype(fi_ops_rma::slot)>::call
#define DAT_RMA_MSG(slot)                                                                          \
    .slot = PassedOnMessage<&fid_ep::rma, &fi_ops_rma::slot, decltype(fi_ops_rma::slot)>::call
#define DAT_ATOMIC(slot, at)                                                                       \
    .slot = PassedOn<&fid_ep::atomic, &fi_ops_atomic::slot, at, decltype(fi_ops_atomic::slot)>::call
#define DAT_ATOMIC_MSG(slot)                                                                       \
    .slot = PassedOnMessage<&fid_ep::atomic, &fi_ops_atomic::slot,                                 \
                            decltype(fi_ops_atomic::slot)>::call

template <std::uint64_t Flags>
int valid(fid_ep* f, fi_datatype type, fi_op op, std::size_t* count) {
    fi_atomic_attr attr{};
    const int rc =
        count ? query_atomic(&rdm_of(f).domain(), type, op, &attr, Flags) : -FI_EOPNOTSUPP;
    if (rc == 0) {
        *count = attr.count;
    }
    return rc;
}

} // namespace

fi_ops_rma rdm_rma_ops = {
    .size = sizeof(fi_ops_rma),
    DAT_RMA(read, 3),
    DAT_RMA(readv, 3),
    DAT_RMA_MSG(readmsg),
    DAT_RMA(write, 3),
    DAT_RMA(writev, 3),
    DAT_RMA_MSG(writemsg),
    DAT_RMA(inject, 2),
    DAT_RMA(writedata, 4),
    DAT_RMA(injectdata, 3),
};

fi_ops_atomic rdm_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    DAT_ATOMIC(write, 3),
    DAT_ATOMIC(writev, 3),
    DAT_ATOMIC_MSG(writemsg),
    DAT_ATOMIC(inject, 2),
    DAT_ATOMIC(readwrite, 5),
    DAT_ATOMIC(readwritev, 6),
    DAT_ATOMIC_MSG(readwritemsg),
    DAT_ATOMIC(compwrite, 7),
    DAT_ATOMIC(compwritev, 9),
    DAT_ATOMIC_MSG(compwritemsg),
    .writevalid = valid<0>,
    .readwritevalid = valid<FI_FETCH_ATOMIC>,
    .compwritevalid = valid<FI_COMPARE_ATOMIC>,
};

} // namespace dat::ofi
