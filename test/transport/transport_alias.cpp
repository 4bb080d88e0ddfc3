// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: aliases of an endpoint, fi_ep_alias(3).
#include "suite.h"

#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cstring>

using namespace dat::test;

namespace {

constexpr std::uint64_t kReported = FI_COMPLETION;

// Successes are reported where the flags of a call say so, and no flags do by default.
SideOptions selective() {
    SideOptions options;
    options.selective = true;
    options.caps = FI_MSG | FI_RMA | FI_ATOMIC;
    return options;
}

Fid<fid_ep> alias_of(fid_ep* ep, std::uint64_t flags) {
    Fid<fid_ep> alias;
    DAT_MUST(fi_ep_alias(ep, alias.out(), flags));
    cr_assert_eq(alias->fid.fclass, FI_CLASS_EP);
    cr_assert_eq(alias->fid.context, ep->fid.context);
    return alias;
}

std::uint64_t flags_of(fid_ep* ep, std::uint64_t direction) {
    std::uint64_t flags = direction;
    DAT_MUST(fi_control(&ep->fid, FI_GETOPSFLAG, &flags));
    return flags;
}

} // namespace

// Each call without flags has those of the alias; the endpoint keeps its own.
TRANSPORT_TEST(alias, of_other_flags__gives_them_to_each_call) {
    only_dat();
    SideOptions takes = selective();
    takes.rx_mode = FI_RX_CQ_DATA; // a write with data takes a receive
    auto pair = Pair::connected(transport, selective(), takes);
    fid_ep* const ep = pair->active.get();
    const Fid<fid_ep> owner = alias_of(ep, FI_TRANSMIT | kReported);
    fid_ep* const alias = owner.get();
    const Fid<fid_ep> receiver = alias_of(pair->passive().get(), FI_RECV | kReported);
    Region memory(pair->far, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
    const Remote to = memory.at(
        8 - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(memory.data()) % 8));
    std::uint64_t value = 7;
    std::uint64_t result = 0;
    std::uint64_t none = 0;
    const iovec iov{&value, sizeof value};
    Bytes in(8);
    const auto run = [&](const char* what, const std::function<ssize_t(fid_ep*, Op&)>& post) {
        Op& op = new_op();
        cr_assert_eq(post_when_possible([&] { return post(alias, op); }), 0, "%s", what);
        wait_op(op);
        cr_assert(op.ok(), "%s: error %d", what, op.err);
    };
    const auto message = [&](const char* what, const std::function<ssize_t(fid_ep*, Op&)>& post) {
        Op& arrived = new_op();
        std::fill(in.begin(), in.end(), std::uint8_t{0});
        DAT_MUST(static_cast<int>(
            fi_recv(receiver.get(), in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, &arrived)));
        run(what, post);
        wait_op(arrived);
        cr_assert(arrived.ok() && std::memcmp(in.data(), &value, sizeof value) == 0, "%s", what);
    };
    message("fi_send", [&](fid_ep* from, Op& op) {
        return fi_send(from, &value, sizeof value, nullptr, FI_ADDR_UNSPEC, &op);
    });
    message("fi_sendv", [&](fid_ep* from, Op& op) {
        return fi_sendv(from, &iov, nullptr, 1, FI_ADDR_UNSPEC, &op);
    });
    run("fi_write", [&](fid_ep* from, Op& op) {
        return fi_write(from, &value, sizeof value, nullptr, FI_ADDR_UNSPEC, to.address, to.key,
                        &op);
    });
    run("fi_writev", [&](fid_ep* from, Op& op) {
        return fi_writev(from, &iov, nullptr, 1, FI_ADDR_UNSPEC, to.address, to.key, &op);
    });
    const iovec into{&result, sizeof result};
    run("fi_read", [&](fid_ep* from, Op& op) {
        return fi_read(from, &result, sizeof result, nullptr, FI_ADDR_UNSPEC, to.address, to.key,
                       &op);
    });
    cr_assert_eq(result, 7);
    result = 0;
    run("fi_readv", [&](fid_ep* from, Op& op) {
        return fi_readv(from, &into, nullptr, 1, FI_ADDR_UNSPEC, to.address, to.key, &op);
    });
    cr_assert_eq(result, 7);
    run("fi_atomic", [&](fid_ep* from, Op& op) {
        return fi_atomic(from, &value, 1, nullptr, FI_ADDR_UNSPEC, to.address, to.key, FI_UINT64,
                         FI_SUM, &op);
    });
    run("fi_fetch_atomic", [&](fid_ep* from, Op& op) {
        return fi_fetch_atomic(from, nullptr, 1, nullptr, &result, nullptr, FI_ADDR_UNSPEC,
                               to.address, to.key, FI_UINT64, FI_ATOMIC_READ, &op);
    });
    cr_assert_eq(result, 14);
    const std::uint64_t with = 14;
    run("fi_compare_atomic", [&](fid_ep* from, Op& op) {
        return fi_compare_atomic(from, &value, 1, nullptr, &with, nullptr, &result, nullptr,
                                 FI_ADDR_UNSPEC, to.address, to.key, FI_UINT64, FI_CSWAP, &op);
    });
    cr_assert_eq(result, 14);
    if (!transport.device) {
        message("fi_senddata", [&](fid_ep* from, Op& op) {
            return fi_senddata(from, &value, sizeof value, nullptr, 5, FI_ADDR_UNSPEC, &op);
        });
        Op& arrived = new_op();
        DAT_MUST(static_cast<int>(
            fi_recv(receiver.get(), nullptr, 0, nullptr, FI_ADDR_UNSPEC, &arrived)));
        run("fi_writedata", [&](fid_ep* from, Op& op) {
            return fi_writedata(from, &value, sizeof value, nullptr, 5, FI_ADDR_UNSPEC, to.address,
                                to.key, &op);
        });
        wait_op(arrived);
        cr_assert_eq(arrived.data, 5);
    }
    // Flags of a call are all of its flags, and inject calls have none.
    const std::size_t before = pair->near.completions();
    DAT_MUST(static_cast<int>(
        fi_inject_write(alias, &none, sizeof none, FI_ADDR_UNSPEC, to.address, to.key)));
    const fi_rma_iov there{to.address, sizeof none, to.key};
    const iovec zero{&none, sizeof none};
    const fi_msg_rma write{&zero, nullptr, 1, FI_ADDR_UNSPEC, &there, 1, nullptr, 0};
    DAT_MUST(static_cast<int>(fi_writemsg(alias, &write, 0)));
    DAT_MUST(static_cast<int>(
        fi_write(ep, &none, sizeof none, nullptr, FI_ADDR_UNSPEC, to.address, to.key, nullptr)));
    run("fi_read", [&](fid_ep* from, Op& op) {
        return fi_read(from, &result, sizeof result, nullptr, FI_ADDR_UNSPEC, to.address, to.key,
                       &op);
    });
    cr_assert_eq(result, 0);
    cr_assert_eq(pair->near.completions(), before + 1);
}

TRANSPORT_TEST(alias, flags__begin_with_those_it_is_of_and_are_its_own) {
    only_dat();
    auto pair = Pair::connected(transport, selective(), selective());
    fid_ep* const ep = pair->active.get();
    std::uint64_t wanted = FI_TRANSMIT | FI_TRANSMIT_COMPLETE;
    DAT_MUST(fi_control(&ep->fid, FI_SETOPSFLAG, &wanted));
    const Fid<fid_ep> same = alias_of(ep, 0);
    cr_assert_eq(flags_of(same.get(), FI_TRANSMIT), FI_TRANSMIT_COMPLETE);
    cr_assert_eq(flags_of(same.get(), FI_RECV), 0u);
    wanted = FI_RECV | FI_COMPLETION;
    DAT_MUST(fi_control(&same->fid, FI_SETOPSFLAG, &wanted));
    cr_assert_eq(flags_of(same.get(), FI_RECV), FI_COMPLETION);
    cr_assert_eq(flags_of(ep, FI_RECV), 0u);
    const Fid<fid_ep> second = alias_of(same.get(), FI_TRANSMIT | FI_COMPLETION);
    cr_assert_eq(flags_of(second.get(), FI_TRANSMIT), FI_COMPLETION);
    cr_assert_eq(flags_of(second.get(), FI_RECV), FI_COMPLETION);
    cr_assert_eq(flags_of(same.get(), FI_TRANSMIT), FI_TRANSMIT_COMPLETE);
    for (const std::uint64_t wrong :
         {std::uint64_t{FI_COMPLETION}, std::uint64_t{FI_TRANSMIT | FI_RECV},
          std::uint64_t{FI_TRANSMIT | FI_MULTI_RECV}, std::uint64_t{FI_RECV | FI_INJECT}}) {
        Fid<fid_ep> refused;
        cr_assert_eq(fi_ep_alias(ep, refused.out(), wrong), -FI_EINVAL);
    }
}

// Whatever is not an operation is the endpoint's own.
TRANSPORT_TEST(alias, connection__is_that_of_the_endpoint) {
    only_dat();
    auto pair = Pair::connected(transport, selective(), selective());
    fid_ep* const ep = pair->active.get();
    Fid<fid_ep> alias = alias_of(ep, 0);
    std::uint8_t names[2][64] = {};
    std::size_t sizes[2] = {sizeof names[0], sizeof names[1]};
    DAT_MUST(fi_getpeer(ep, names[0], &sizes[0]));
    DAT_MUST(fi_getpeer(alias.get(), names[1], &sizes[1]));
    cr_assert(sizes[0] == sizes[1] && std::memcmp(names[0], names[1], sizes[0]) == 0);
    Op& receive = new_op();
    std::uint8_t room = 0;
    DAT_MUST(static_cast<int>(fi_recv(alias.get(), &room, 1, nullptr, FI_ADDR_UNSPEC, &receive)));
    if (!transport.device) {
        DAT_MUST(static_cast<int>(fi_cancel(&alias->fid, &receive)));
        wait_op(receive);
        cr_assert(receive.flushed());
    }
    // The functions of fi_ext_dat.h know it for what it is not.
    fi_dat_ep_status status{};
    cr_assert_eq(pair->active.dat()->status(alias.get(), &status), -FI_EINVAL);
    cr_assert_eq(fi_close(pair->active.fid()), -FI_EBUSY);
    DAT_MUST(fi_shutdown(alias.get(), 0));
    wait_shutdown(pair->active);
    DAT_MUST(alias.close());
    DAT_MUST(pair->active.close());
}
