// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Buffers of operations that cannot be touched (fi_dat(7), "Memory that cannot be touched"): what
// is refused in any case, what the kernel finds out, and what FI_DAT_CHECK_BUFFERS does. May
// include: suite.h, memory_kinds.h.
#include "../transport/suite.h"
#include "memory_kinds.h"

#include <rdma/fi_atomic.h>

#include <cstdlib>

using namespace dat::test;

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;

struct Ends {
    explicit Ends(const Transport& transport) {
        SideOptions options;
        options.caps = FI_MSG | FI_RMA | FI_ATOMIC;
        pair = Pair::connected(transport, options, options);
        target.emplace(pair->far, kLarge, FI_REMOTE_READ | FI_REMOTE_WRITE);
    }
    // What was refused changed nothing: a message goes through.
    void exchange() {
        std::uint8_t sent = ++count;
        std::uint8_t got = 0;
        Op& receive = pair->passive().recv(&got, 1);
        Op& send = pair->active.send(&sent, 1);
        wait_op(send);
        wait_op(receive);
        cr_assert(send.ok() && receive.ok() && got == sent);
    }
    std::unique_ptr<Pair> pair;
    std::optional<Region> target;
    std::uint8_t count = 0;
};

std::uint8_t g_good[64];

// A post of `size` bytes at `at`; where two segments go, the first is good.
struct Call {
    const char* name;
    bool small; // takes no more than an inject does
    ssize_t (*post)(fid_ep* ep, void* at, std::size_t size, const Remote& to, Op& op);
};

iovec g_two[2];
const iovec* two(void* at, std::size_t size) {
    g_two[0] = {g_good, 1};
    g_two[1] = {at, size};
    return g_two;
}

fi_msg message(void* at, std::size_t size, Op& op) {
    fi_msg msg{};
    msg.msg_iov = two(at, size);
    msg.iov_count = 2;
    msg.addr = FI_ADDR_UNSPEC;
    msg.context = &op;
    return msg;
}

fi_rma_iov g_far;
fi_msg_rma message(void* at, std::size_t size, const Remote& to, Op& op) {
    g_far = {to.address, size + 1, to.key};
    fi_msg_rma msg{};
    msg.msg_iov = two(at, size);
    msg.iov_count = 2;
    msg.addr = FI_ADDR_UNSPEC;
    msg.rma_iov = &g_far;
    msg.rma_iov_count = 1;
    msg.context = &op;
    return msg;
}

// The first byte is one remote segment, the rest another.
fi_rma_iov g_both[2];
const fi_msg_rma* divided(fi_msg_rma& msg) {
    const fi_rma_iov whole = *msg.rma_iov;
    g_both[0] = {whole.addr, 1, whole.key};
    g_both[1] = {whole.addr + 1, whole.len - 1, whole.key};
    msg.rma_iov = g_both;
    msg.rma_iov_count = 2;
    return &msg;
}

constexpr fi_addr_t kNo = FI_ADDR_UNSPEC;

const Call kReading[] = {
    {"fi_send", false,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         return fi_send(ep, at, n, nullptr, kNo, &op);
     }},
    {"fi_sendv", false,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         return fi_sendv(ep, two(at, n), nullptr, 2, kNo, &op);
     }},
    {"fi_sendmsg", false,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         const fi_msg msg = message(at, n, op);
         return fi_sendmsg(ep, &msg, FI_COMPLETION);
     }},
    {"fi_sendmsg, FI_INJECT", true,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         const fi_msg msg = message(at, n, op);
         return fi_sendmsg(ep, &msg, FI_COMPLETION | FI_INJECT);
     }},
    {"fi_inject", true,
     [](auto ep, auto at, auto n, auto&, auto&) { return fi_inject(ep, at, n, kNo); }},
    {"fi_senddata", false,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         return fi_senddata(ep, at, n, nullptr, 1, kNo, &op);
     }},
    {"fi_injectdata", true,
     [](auto ep, auto at, auto n, auto&, auto&) { return fi_injectdata(ep, at, n, 1, kNo); }},
    {"fi_write", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         return fi_write(ep, at, n, nullptr, kNo, to.address, to.key, &op);
     }},
    {"fi_writev", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         return fi_writev(ep, two(at, n), nullptr, 2, kNo, to.address, to.key, &op);
     }},
    {"fi_writemsg", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         const fi_msg_rma msg = message(at, n, to, op);
         return fi_writemsg(ep, &msg, FI_COMPLETION);
     }},
    {"fi_writemsg, over two remote segments", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         fi_msg_rma msg = message(at, n, to, op);
         return fi_writemsg(ep, divided(msg), FI_COMPLETION);
     }},
    {"fi_inject_write", true,
     [](auto ep, auto at, auto n, auto& to, auto&) {
         return fi_inject_write(ep, at, n, kNo, to.address, to.key);
     }},
    {"fi_writedata", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         return fi_writedata(ep, at, n, nullptr, 1, kNo, to.address, to.key, &op);
     }},
    {"fi_inject_writedata", true,
     [](auto ep, auto at, auto n, auto& to, auto&) {
         return fi_inject_writedata(ep, at, n, 1, kNo, to.address, to.key);
     }},
    {"fi_atomic", true,
     [](auto ep, auto at, auto, auto& to, auto& op) {
         return fi_atomic(ep, at, 1, nullptr, kNo, to.address, to.key, FI_UINT64, FI_SUM, &op);
     }},
    {"fi_compare_atomic, its comparand", true,
     [](auto ep, auto at, auto, auto& to, auto& op) {
         return fi_compare_atomic(ep, g_good, 1, nullptr, at, nullptr, g_good + 8, nullptr, kNo,
                                  to.address, to.key, FI_UINT64, FI_CSWAP, &op);
     }},
};

const Call kWriting[] = {
    {"fi_recv", false,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         return fi_recv(ep, at, n, nullptr, kNo, &op);
     }},
    {"fi_recvv", false,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         return fi_recvv(ep, two(at, n), nullptr, 2, kNo, &op);
     }},
    {"fi_recvmsg", false,
     [](auto ep, auto at, auto n, auto&, auto& op) {
         const fi_msg msg = message(at, n, op);
         return fi_recvmsg(ep, &msg, FI_COMPLETION);
     }},
    {"fi_read", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         return fi_read(ep, at, n, nullptr, kNo, to.address, to.key, &op);
     }},
    {"fi_readv", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         return fi_readv(ep, two(at, n), nullptr, 2, kNo, to.address, to.key, &op);
     }},
    {"fi_readmsg", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         const fi_msg_rma msg = message(at, n, to, op);
         return fi_readmsg(ep, &msg, FI_COMPLETION);
     }},
    {"fi_readmsg, over two remote segments", false,
     [](auto ep, auto at, auto n, auto& to, auto& op) {
         fi_msg_rma msg = message(at, n, to, op);
         return fi_readmsg(ep, divided(msg), FI_COMPLETION);
     }},
    {"fi_fetch_atomic, its result", true,
     [](auto ep, auto at, auto, auto& to, auto& op) {
         return fi_fetch_atomic(ep, g_good, 1, nullptr, at, nullptr, kNo, to.address, to.key,
                                FI_UINT64, FI_SUM, &op);
     }},
};

void require_refused(Ends& ends, const Call& call, const char* what, std::uintptr_t at,
                     std::size_t size) {
    const ssize_t rc = call.post(ends.pair->active.get(), reinterpret_cast<void*>(at), size,
                                 ends.target->at(0), new_op());
    cr_assert_eq(rc, -FI_EFAULT, "%s of %zu bytes, %s, is %zd", call.name, size, what, rc);
}

// A range that cannot be touched as a whole; its last bytes for calls that take few.
void require_refused(Ends& ends, const Call& call, const Range& range) {
    if (!call.small)
        require_refused(ends, call, range.what.c_str(), range.address, range.size);
    else if (range.what != "with a hole" && range.what != "with a page that is read-only")
        require_refused(ends, call, range.what.c_str(), range.address + range.size - 8, 8);
}

// A region of the passive side of kLarge bytes, that cannot be touched any more from `from` on.
class Gone {
  public:
    explicit Gone(Pair& pair, std::size_t from = 0, int rights = PROT_NONE)
        : range_("gone", map_anonymous(kLarge, PROT_READ | PROT_WRITE), kLarge) {
        DAT_MUST(fi_mr_reg(pair.far.domain(), range_.data(), range_.size,
                           FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 9, 0, mr_.out(), nullptr));
        mprotect(range_.data() + from, kLarge - from, rights);
    }
    Remote remote() const { return {0, fi_mr_key(mr_.get())}; }

  private:
    const Range range_;
    Fid<fid_mr> mr_;
};

void must_break(Ends& ends) {
    wait_shutdown(ends.pair->active);
    wait_shutdown(ends.pair->passive());
}

// Without this the provider of this process would have been read with another setting.
void check_buffers() { setenv("FI_DAT_CHECK_BUFFERS", "1", 1); }

} // namespace

// NULL, and a member of what NULL points to.
TRANSPORT_TEST(attack_post, buffers_where_none_can_be__are_refused) {
    only_dat();
    Ends ends(transport);
    for (const std::uintptr_t at : {std::uintptr_t{0}, std::uintptr_t{8}, std::uintptr_t{4095}}) {
        for (const Call& call : kReading)
            if (at != 0 || std::string(call.name).find("atomic") == std::string::npos)
                require_refused(ends, call, "low", at, 8);
        for (const Call& call : kWriting)
            if (at != 0 || std::string(call.name).find("atomic") == std::string::npos)
                require_refused(ends, call, "low", at, 8);
    }
    ends.exchange();
    // Of no bytes a buffer may be anywhere.
    Op& receive = ends.pair->passive().recv(nullptr, 0);
    Op& send = ends.pair->active.send(nullptr, 0);
    wait_op(send);
    wait_op(receive);
    cr_assert(send.ok() && receive.ok());
}

// The kernel reads a large buffer: what it cannot read is LOCAL_PROTECTION.
TRANSPORT_TEST(attack_post, a_large_buffer_that_cannot_be_read__is_local_protection) {
    only_dat();
    for (const Range& range : untouchable(kLarge)) {
        if (range.address + range.size < range.address || range.address >> 63 != 0)
            continue;
        for (const bool write : {false, true}) {
            Ends ends(transport);
            Bytes into(2 * kLarge);
            ends.pair->passive().recv(into.data(), into.size());
            Op& op =
                write ? ends.pair->active.write_confirmed(range.data(), kLarge, ends.target->at(0))
                      : ends.pair->active.send_confirmed(range.data(), kLarge);
            wait_op(op);
            cr_assert_eq(op.err, FI_EACCES, "memory %s: %d", range.what.c_str(), op.err);
            cr_assert_eq(op.prov_errno, 4, "memory %s", range.what.c_str()); // LOCAL_PROTECTION
            must_break(ends);
        }
    }
}

// The kernel writes it: what it cannot write breaks the connection, and not the process.
SHM_TEST(attack_post, a_large_receive_that_cannot_be_written__breaks_the_connection) {
    only_dat();
    Bytes from(kLarge, std::uint8_t{7});
    for (const int rights : {PROT_NONE, PROT_READ}) {
        for (const bool read : {false, true}) {
            Ends ends(transport);
            const Range range("bad", map_anonymous(kLarge, rights), kLarge);
            if (read) {
                ends.pair->active.read(range.data(), kLarge, ends.target->at(0));
            } else {
                ends.pair->passive().recv(range.data(), kLarge);
                ends.pair->active.send(from.data(), kLarge);
            }
            must_break(ends);
        }
    }
}

SHM_TEST(attack_post, a_large_write_to_a_region_that_is_gone__breaks_the_connection) {
    only_dat();
    Ends ends(transport);
    Bytes local(kLarge);
    const Gone gone(*ends.pair);
    Op& op = ends.pair->active.write_confirmed(local.data(), kLarge, gone.remote());
    wait_op(op);
    cr_assert(!op.ok());
    must_break(ends);
}

// What is sent of it before is only a part; and it is no fault of a request of the owner.
TRANSPORT_TEST(attack_post, a_large_read_of_a_region_that_is_gone__breaks_the_connection) {
    only_dat();
    for (const std::size_t from : {std::size_t{0}, kLarge / 2, kLarge - 4096}) {
        for (const bool busy : {false, true}) {
            Ends ends(transport);
            Bytes local(kLarge);
            Bytes sent(100'000);
            Bytes into(100'000);
            const Gone gone(*ends.pair, from);
            if (busy) {
                ends.pair->active.recv(into.data(), into.size());
                ends.pair->passive().send(sent.data(), sent.size());
            }
            Op& op = ends.pair->active.read(local.data(), kLarge, gone.remote());
            wait_op(op);
            cr_assert(!op.ok());
            must_break(ends);
        }
    }
}

// Others in one system call with it are as good as ever.
TRANSPORT_TEST(attack_post, requests_before_one_that_cannot_be_read__succeed) {
    only_dat();
    Ends ends(transport);
    const Range bad("bad", map_anonymous(kLarge, PROT_NONE), kLarge);
    Bytes from = pattern(4096);
    Bytes into(8 * 4096);
    Bytes large(kLarge);
    std::vector<Op*> receives;
    for (int i = 0; i < 7; ++i)
        receives.push_back(
            &ends.pair->passive().recv(into.data() + 4096 * static_cast<std::size_t>(i), 4096));
    ends.pair->passive().recv(large.data(), large.size());
    std::vector<Op*> sends;
    for (int i = 0; i < 7; ++i)
        sends.push_back(&ends.pair->active.send(from.data(), 4096));
    Op& last = ends.pair->active.send(bad.data(), kLarge);
    wait_op(last);
    for (const Op* op : sends)
        cr_assert(op->ok());
    cr_assert_eq(last.prov_errno, 4); // LOCAL_PROTECTION
    must_break(ends);
    for (const Op* op : receives)
        cr_assert(op->ok());
    cr_assert(same(into.data() + 6 * 4096, from.data(), 4096));
}

TRANSPORT_TEST(attack_check, buffers_that_cannot_be_touched__are_refused_at_the_post) {
    only_dat();
    check_buffers();
    Ends ends(transport);
    for (const std::size_t size : {std::size_t{8192}, kLarge - 4096}) {
        for (const Range& range : untouchable(size)) {
            for (const Call& call : kReading)
                require_refused(ends, call, range);
            for (const Call& call : kWriting)
                require_refused(ends, call, range);
        }
        for (const Range& range : read_only(size)) {
            for (const Call& call : kWriting)
                require_refused(ends, call, range);
        }
    }
    ends.exchange();
}

TRANSPORT_TEST(attack_check, buffers_that_can_be_touched__are_taken) {
    only_dat();
    check_buffers();
    Ends ends(transport);
    ends.exchange();
    const Range constant("constant", map_anonymous(kLarge, PROT_READ), kLarge);
    Bytes got(kLarge);
    Op& receive = ends.pair->passive().recv(got.data(), kLarge);
    Op& send = ends.pair->active.send(constant.data(), kLarge);
    wait_op(send);
    wait_op(receive);
    cr_assert(send.ok() && receive.ok());
    Op& write = ends.pair->active.write_confirmed(constant.data(), 8, ends.target->at(0));
    Op& read = ends.pair->active.read(got.data(), kLarge, ends.target->at(0));
    wait_op(write);
    wait_op(read);
    cr_assert(write.ok() && read.ok());
}

// A shared receive context has calls of its own.
TRANSPORT_TEST(attack_check, shared_receives_that_cannot_be_touched__are_refused) {
    only_dat();
    check_buffers();
    Side side(transport);
    fi_rx_attr attr = *side.info()->rx_attr;
    Fid<fid_ep> srx;
    DAT_MUST(fi_srx_context(side.domain(), &attr, srx.out(), nullptr));
    for (const Range& range : untouchable(8192)) {
        cr_assert_eq(fi_recv(srx.get(), range.data(), range.size, nullptr, kNo, nullptr),
                     -FI_EFAULT);
        cr_assert_eq(fi_recvv(srx.get(), two(range.data(), range.size), nullptr, 2, kNo, nullptr),
                     -FI_EFAULT);
    }
    cr_assert_eq(fi_recv(srx.get(), nullptr, 8, nullptr, kNo, nullptr), -FI_EFAULT);
    DAT_MUST(fi_recv(srx.get(), g_good, sizeof g_good, nullptr, kNo, nullptr));
}

// A peer that uses a region which was unmapped is refused, whatever its size.
TRANSPORT_TEST(attack_check, accesses_to_a_region_that_is_gone__are_refused) {
    only_dat();
    check_buffers();
    Bytes local(kLarge);
    for (const int rights : {PROT_NONE, PROT_READ}) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{20'000}, kLarge}) {
            for (int what = 0; what < (size == 8 ? 3 : 2); ++what) {
                if (rights == PROT_READ && what == 1)
                    continue;
                Ends ends(transport);
                const Gone gone(*ends.pair, 0, rights);
                const Remote to = gone.remote();
                Op& op = what == 0   ? ends.pair->active.write_confirmed(local.data(), size, to)
                         : what == 1 ? ends.pair->active.read(local.data(), size, to)
                                     : new_op();
                if (what == 2)
                    DAT_MUST(fi_atomic(ends.pair->active.get(), local.data(), 1, nullptr, kNo,
                                       to.address, to.key, FI_UINT64, FI_SUM, &op));
                wait_op(op);
                cr_assert_eq(op.err, FI_EACCES, "operation %d of %zu bytes: %d", what, size,
                             op.err);
                must_break(ends);
            }
        }
    }
}
