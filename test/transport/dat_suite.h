// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the tests of fi_ext_dat.h have in common.
#ifndef DAT_TEST_TRANSPORT_DAT_SUITE_H
#define DAT_TEST_TRANSPORT_DAT_SUITE_H

#include "suite.h"

namespace dat::test {

// A table of fi_ext_dat.h.
template <class Table> Table* table_of(fid_t object, const char* name) {
    void* table = nullptr;
    DAT_MUST(fi_open_ops(object, name, 0, &table, nullptr));
    return static_cast<Table*>(table);
}
inline fi_dat_ops_fabric* dat_of(fid_fabric* fabric) {
    return table_of<fi_dat_ops_fabric>(&fabric->fid, FI_DAT_FABRIC_OPS);
}
inline fi_dat_ops_pep* dat_of(fid_pep* pep) {
    return table_of<fi_dat_ops_pep>(&pep->fid, FI_DAT_PEP_OPS);
}
inline fi_dat_ops_domain* dat_of(fid_domain* domain) {
    return table_of<fi_dat_ops_domain>(&domain->fid, FI_DAT_DOMAIN_OPS);
}

inline fi_dat_ep_state state_of(fid_ep* ep) {
    fi_dat_ep_status status{};
    DAT_MUST(table_of<fi_dat_ops_ep>(&ep->fid, FI_DAT_EP_OPS)->status(ep, &status));
    return status.state;
}

inline fi_dat_ep_attr attr_with(std::uint64_t mask) {
    fi_dat_ep_attr attr{};
    attr.size = sizeof attr;
    attr.mask = mask;
    return attr;
}

// A region of `side` in the protection zone `zone`; closed with the Fid.
inline Fid<fid_mr> region_in(Side& side, const Bytes& zone, Bytes& memory,
                             std::uint64_t flags = 0) {
    static std::uint64_t requested_key = 0x77000;
    const iovec range{memory.data(), memory.size()};
    fi_mr_attr attr{};
    attr.mr_iov = &range;
    attr.iov_count = 1;
    attr.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    attr.requested_key = ++requested_key;
    attr.auth_key = const_cast<std::uint8_t*>(zone.data());
    attr.auth_key_size = zone.size();
    Fid<fid_mr> mr;
    DAT_MUST(fi_mr_regattr(side.domain(), &attr, flags, mr.out()));
    return mr;
}

// Where peers of `side` find a region's first byte.
inline Remote begin_of(const Side& side, const Bytes& memory, const Fid<fid_mr>& mr) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return {side.device() ? address : 0, fi_mr_key(mr.get())};
}

// Both directions work.
inline void exchange(Endpoint& a, Endpoint& b) {
    for (Endpoint* from : {&a, &b}) {
        Endpoint& to = from == &a ? b : a;
        const Bytes out = pattern(3000, from == &a ? 1 : 2);
        Bytes in(out.size());
        Op& receive = to.recv(in.data(), in.size());
        Op& send = from->send_confirmed(out.data(), out.size());
        wait_op(send);
        wait_op(receive);
        cr_assert(send.ok() && receive.ok() && in == out);
    }
}

} // namespace dat::test

#endif
