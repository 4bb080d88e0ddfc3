// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See alias.h. Each call is one of the endpoint, which is given the flags that it has from the
// alias.
#include "ofi/alias.h"

#include "base/log.h"
#include "ofi/errors.h"
#include "ofi/info.h"
#include "ofi/no_op.h"

#include <atomic>
#include <memory>
#include <utility>

namespace dat::ofi {
namespace {

class Alias final : public fid_ep {
  public:
    // With the flags that it begins with.
    Alias(Endpoint& of, std::uint64_t of_requests, std::uint64_t of_receives);
    ~Alias() { endpoint.aliases().remove(); }

    Endpoint& endpoint;
    std::atomic<std::uint64_t> tx_flags;
    std::atomic<std::uint64_t> rx_flags;
};

Alias& alias_of(fid_ep* f) { return static_cast<Alias&>(*f); }
Alias& alias_of(fid_t f) { return object_of<Alias, fid_ep>(f); }

std::uint64_t tx(fid_ep* f) { return alias_of(f).tx_flags.load(std::memory_order_relaxed); }
std::uint64_t rx(fid_ep* f) { return alias_of(f).rx_flags.load(std::memory_order_relaxed); }

// A call whose flags are in it: the endpoint's own, in whichever table it has now.
template <auto Table, auto Slot> struct Same;
template <class Ops, Ops* fid_ep::*Table, class Result, class... Args,
          Result (*Ops::*Slot)(fid_ep*, Args...)>
struct Same<Table, Slot> {
    static Result call(fid_ep* f, Args... args) {
        fid_ep* const ep = &alias_of(f).endpoint;
        return (std::atomic_ref(ep->*Table).load(std::memory_order_acquire)->*Slot)(
            ep, std::forward<Args>(args)...);
    }
};
// The same of a call that takes a fid.
template <class Ops, Ops* fid_ep::*Table, class Result, class... Args,
          Result (*Ops::*Slot)(fid_t, Args...)>
struct Same<Table, Slot> {
    static Result call(fid_t f, Args... args) {
        fid_ep* const ep = &alias_of(f).endpoint;
        return (ep->*Table->*Slot)(&ep->fid, std::forward<Args>(args)...);
    }
};

// ---- messages

fi_msg message(const iovec* iov, void** desc, std::size_t count, void* context,
               std::uint64_t data = 0) {
    return {iov, desc, count, FI_ADDR_UNSPEC, context, data};
}

constexpr auto send_message = Same<&fid_ep::msg, &fi_ops_msg::sendmsg>::call;
constexpr auto receive_message = Same<&fid_ep::msg, &fi_ops_msg::recvmsg>::call;

ssize_t recvv(fid_ep* f, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
              void* context) {
    const fi_msg msg = message(iov, desc, count, context);
    return receive_message(f, &msg, rx(f));
}

ssize_t recv(fid_ep* f, void* buf, std::size_t len, void* desc, fi_addr_t from, void* context) {
    const iovec iov{buf, len};
    return recvv(f, &iov, &desc, 1, from, context);
}

ssize_t sendv(fid_ep* f, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
              void* context) {
    const fi_msg msg = message(iov, desc, count, context);
    return send_message(f, &msg, tx(f));
}

ssize_t send(fid_ep* f, const void* buf, std::size_t len, void* desc, fi_addr_t to, void* context) {
    const iovec iov{const_cast<void*>(buf), len};
    return sendv(f, &iov, &desc, 1, to, context);
}

ssize_t senddata(fid_ep* f, const void* buf, std::size_t len, void* desc, std::uint64_t data,
                 fi_addr_t, void* context) {
    const iovec iov{const_cast<void*>(buf), len};
    const fi_msg msg = message(&iov, &desc, 1, context, data);
    return send_message(f, &msg, tx(f) | FI_REMOTE_CQ_DATA);
}

fi_ops_msg g_msg_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = recv,
    .recvv = recvv,
    .recvmsg = receive_message,
    .send = send,
    .sendv = sendv,
    .sendmsg = send_message,
    .inject = Same<&fid_ep::msg, &fi_ops_msg::inject>::call,
    .senddata = senddata,
    .injectdata = Same<&fid_ep::msg, &fi_ops_msg::injectdata>::call,
};

// ---- RDMA

constexpr auto read_message = Same<&fid_ep::rma, &fi_ops_rma::readmsg>::call;
constexpr auto write_message = Same<&fid_ep::rma, &fi_ops_rma::writemsg>::call;

// By `call`, with `flags`.
template <class Call>
ssize_t transfer(Call&& call, fid_ep* f, const iovec* iov, void** desc, std::size_t count,
                 std::uint64_t address, std::uint64_t key, void* context, std::uint64_t flags,
                 std::uint64_t data = 0) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < count; ++i) {
        length += iov[i].iov_len;
    }
    const fi_rma_iov there{address, length, key};
    const fi_msg_rma msg{iov, desc, count, FI_ADDR_UNSPEC, &there, 1, context, data};
    return call(f, &msg, flags);
}

ssize_t readv(fid_ep* f, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
              std::uint64_t address, std::uint64_t key, void* context) {
    return transfer(read_message, f, iov, desc, count, address, key, context, tx(f));
}

ssize_t read(fid_ep* f, void* buf, std::size_t len, void* desc, fi_addr_t from,
             std::uint64_t address, std::uint64_t key, void* context) {
    const iovec iov{buf, len};
    return readv(f, &iov, &desc, 1, from, address, key, context);
}

ssize_t writev(fid_ep* f, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
               std::uint64_t address, std::uint64_t key, void* context) {
    return transfer(write_message, f, iov, desc, count, address, key, context, tx(f));
}

ssize_t write(fid_ep* f, const void* buf, std::size_t len, void* desc, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, void* context) {
    const iovec iov{const_cast<void*>(buf), len};
    return writev(f, &iov, &desc, 1, to, address, key, context);
}

ssize_t writedata(fid_ep* f, const void* buf, std::size_t len, void* desc, std::uint64_t data,
                  fi_addr_t, std::uint64_t address, std::uint64_t key, void* context) {
    const iovec iov{const_cast<void*>(buf), len};
    return transfer(write_message, f, &iov, &desc, 1, address, key, context,
                    tx(f) | FI_REMOTE_CQ_DATA, data);
}

fi_ops_rma g_rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = readv,
    .readmsg = read_message,
    .write = write,
    .writev = writev,
    .writemsg = write_message,
    .inject = Same<&fid_ep::rma, &fi_ops_rma::inject>::call,
    .writedata = writedata,
    .injectdata = Same<&fid_ep::rma, &fi_ops_rma::injectdata>::call,
};

// ---- atomics

constexpr auto update_message = Same<&fid_ep::atomic, &fi_ops_atomic::writemsg>::call;
constexpr auto fetch_message = Same<&fid_ep::atomic, &fi_ops_atomic::readwritemsg>::call;
constexpr auto compare_message = Same<&fid_ep::atomic, &fi_ops_atomic::compwritemsg>::call;

// What the calls with a message are given: `there` is written, and used.
fi_msg_atomic atomic_message(const fi_ioc* iov, void** desc, std::size_t count, fi_rma_ioc& there,
                             std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                             void* context) {
    there = {address, count > 0 ? iov[0].count : 0, key};
    fi_msg_atomic msg{};
    msg.msg_iov = iov;
    msg.desc = desc;
    msg.iov_count = count;
    msg.rma_iov = &there;
    msg.rma_iov_count = 1;
    msg.datatype = type;
    msg.op = op;
    msg.context = context;
    return msg;
}

ssize_t updatev(fid_ep* f, const fi_ioc* iov, void** desc, std::size_t count, fi_addr_t,
                std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                void* context) {
    fi_rma_ioc there;
    const fi_msg_atomic msg =
        atomic_message(iov, desc, count, there, address, key, type, op, context);
    return update_message(f, &msg, tx(f));
}

ssize_t update(fid_ep* f, const void* buf, std::size_t count, void* desc, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
               void* context) {
    const fi_ioc iov{const_cast<void*>(buf), count};
    return updatev(f, &iov, &desc, 1, to, address, key, type, op, context);
}

ssize_t fetchv(fid_ep* f, const fi_ioc* iov, void** desc, std::size_t count, fi_ioc* result,
               void** result_desc, std::size_t result_count, fi_addr_t, std::uint64_t address,
               std::uint64_t key, fi_datatype type, fi_op op, void* context) {
    fi_rma_ioc there;
    fi_msg_atomic msg = atomic_message(iov, desc, count, there, address, key, type, op, context);
    there.count = result_count > 0 ? result[0].count : 0; // one that reads has no operand
    return fetch_message(f, &msg, result, result_desc, result_count, tx(f));
}

ssize_t fetch(fid_ep* f, const void* buf, std::size_t count, void* desc, void* result,
              void* result_desc, fi_addr_t to, std::uint64_t address, std::uint64_t key,
              fi_datatype type, fi_op op, void* context) {
    const fi_ioc iov{const_cast<void*>(buf), count};
    fi_ioc into{result, count};
    return fetchv(f, &iov, &desc, 1, &into, &result_desc, 1, to, address, key, type, op, context);
}

ssize_t comparev(fid_ep* f, const fi_ioc* iov, void** desc, std::size_t count,
                 const fi_ioc* compare, void** compare_desc, std::size_t compare_count,
                 fi_ioc* result, void** result_desc, std::size_t result_count, fi_addr_t,
                 std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                 void* context) {
    fi_rma_ioc there;
    const fi_msg_atomic msg =
        atomic_message(iov, desc, count, there, address, key, type, op, context);
    return compare_message(f, &msg, compare, compare_desc, compare_count, result, result_desc,
                           result_count, tx(f));
}

ssize_t compare_one(fid_ep* f, const void* buf, std::size_t count, void* desc, const void* compare,
                    void* compare_desc, void* result, void* result_desc, fi_addr_t to,
                    std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                    void* context) {
    const fi_ioc iov{const_cast<void*>(buf), count};
    const fi_ioc with{const_cast<void*>(compare), count};
    fi_ioc into{result, count};
    return comparev(f, &iov, &desc, 1, &with, &compare_desc, 1, &into, &result_desc, 1, to, address,
                    key, type, op, context);
}

fi_ops_atomic g_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = update,
    .writev = updatev,
    .writemsg = update_message,
    .inject = Same<&fid_ep::atomic, &fi_ops_atomic::inject>::call,
    .readwrite = fetch,
    .readwritev = fetchv,
    .readwritemsg = fetch_message,
    .compwrite = compare_one,
    .compwritev = comparev,
    .compwritemsg = compare_message,
    .writevalid = Same<&fid_ep::atomic, &fi_ops_atomic::writevalid>::call,
    .readwritevalid = Same<&fid_ep::atomic, &fi_ops_atomic::readwritevalid>::call,
    .compwritevalid = Same<&fid_ep::atomic, &fi_ops_atomic::compwritevalid>::call,
};

// ---- the object

int close(fid_t f) {
    delete &alias_of(f);
    return 0;
}

int bind(fid_t f, fid_t to, std::uint64_t flags) {
    fid& endpoint = alias_of(f).endpoint.fid;
    return endpoint.ops->bind(&endpoint, to, flags);
}

int get_flags(Alias& alias, std::uint64_t& flags) {
    const bool sends = (flags & FI_TRANSMIT) != 0;
    if (sends == ((flags & FI_RECV) != 0)) {
        DAT_WARN(ep_ctrl, "fi_control(FI_GETOPSFLAG): set either FI_TRANSMIT or FI_RECV");
        return -FI_EINVAL;
    }
    flags = sends ? alias.tx_flags : alias.rx_flags;
    return 0;
}

int set_flags(const char* call, Alias& alias, std::uint64_t flags) {
    if (!are_default_flags(call, alias.endpoint.domain().offering(), flags)) {
        return -FI_EINVAL;
    }
    std::atomic<std::uint64_t>& to = (flags & FI_TRANSMIT) != 0 ? alias.tx_flags : alias.rx_flags;
    to = flags & ~(FI_TRANSMIT | FI_RECV);
    return 0;
}

int add(Endpoint& ep, std::uint64_t of_requests, std::uint64_t of_receives, std::uint64_t flags,
        fid** alias) {
    return no_throw([&] {
        auto made = std::make_unique<Alias>(ep, of_requests, of_receives);
        if (const int rc = flags != 0 ? set_flags("fi_ep_alias()", *made, flags) : 0) {
            return rc;
        }
        *alias = &made.release()->fid;
        return 0;
    });
}

int control(fid_t f, int command, void* arg) {
    Alias& alias = alias_of(f);
    switch (command) {
    case FI_ALIAS: {
        const auto& asked = *static_cast<const struct fi_alias*>(arg);
        return add(alias.endpoint, alias.tx_flags, alias.rx_flags, asked.flags, asked.fid);
    }
    case FI_GETOPSFLAG:
        return get_flags(alias, *static_cast<std::uint64_t*>(arg));
    case FI_SETOPSFLAG:
        return set_flags("fi_control(FI_SETOPSFLAG)", alias,
                         *static_cast<const std::uint64_t*>(arg));
    default:
        return alias.endpoint.fid.ops->control(&alias.endpoint.fid, command, arg);
    }
}

// The functions of fi_ext_dat.h take the endpoint itself, and know it by this slot (ours.h).
int tostr(const fid*, char*, std::size_t) { return -FI_ENOSYS; }

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
    .tostr = tostr,
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_ep g_ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = Same<&fid_ep::ops, &fi_ops_ep::cancel>::call,
    .getopt = Same<&fid_ep::ops, &fi_ops_ep::getopt>::call,
    .setopt = Same<&fid_ep::ops, &fi_ops_ep::setopt>::call,
    .tx_ctx = DAT_NOT_OFFERED(fi_ops_ep, tx_ctx),
    .rx_ctx = DAT_NOT_OFFERED(fi_ops_ep, rx_ctx),
    .rx_size_left = Same<&fid_ep::ops, &fi_ops_ep::rx_size_left>::call,
    .tx_size_left = Same<&fid_ep::ops, &fi_ops_ep::tx_size_left>::call,
};

fi_ops_cm g_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = Same<&fid_ep::cm, &fi_ops_cm::setname>::call,
    .getname = Same<&fid_ep::cm, &fi_ops_cm::getname>::call,
    .getpeer = Same<&fid_ep::cm, &fi_ops_cm::getpeer>::call,
    .connect = Same<&fid_ep::cm, &fi_ops_cm::connect>::call,
    .listen = DAT_NOT_OFFERED(fi_ops_cm, listen),
    .accept = Same<&fid_ep::cm, &fi_ops_cm::accept>::call,
    .reject = DAT_NOT_OFFERED(fi_ops_cm, reject),
    .shutdown = Same<&fid_ep::cm, &fi_ops_cm::shutdown>::call,
    .join = DAT_NOT_OFFERED(fi_ops_cm, join),
};

Alias::Alias(Endpoint& of, std::uint64_t of_requests, std::uint64_t of_receives)
    : fid_ep{}, endpoint(of), tx_flags(of_requests), rx_flags(of_receives) {
    fid.fclass = FI_CLASS_EP;
    fid.context = of.fid.context;
    fid.ops = &g_fid_ops;
    ops = &g_ep_ops;
    cm = &g_cm_ops;
    msg = &g_msg_ops;
    rma = &g_rma_ops;
    tagged = &no_tagged_ops;
    atomic = &g_atomic_ops;
    collective = &no_collective_ops;
    endpoint.aliases().add();
}

} // namespace

int open_alias(Endpoint& ep, std::uint64_t flags, fid** alias) {
    return add(ep, ep.tx_flags(), ep.rx_flags(), flags, alias);
}

} // namespace dat::ofi
