// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: what goes beyond plain sends, reads and writes: completion levels, atomics,
// counters, poll sets.
#include "suite.h"

#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace dat::test;

namespace {

constexpr std::uint64_t kAll = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

SideOptions with_caps(std::uint64_t caps) {
    SideOptions options;
    options.caps = caps;
    return options;
}

} // namespace

// ---- completion levels -----------------------------------------------------

// U-61: the default completes although nobody takes the message; the two others, on a
// connection of their own, only when it has a receive.
TRANSPORT_TEST(level, of_a_send_without_a_receive__is_kept) {
    only_dat();
    for (const std::uint64_t level :
         {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE}) {
        auto pair = Pair::connected(transport);
        char out = 'x';
        const iovec iov{&out, 1};
        Op& sent = new_op();
        const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &sent, 0};
        DAT_MUST(static_cast<int>(fi_sendmsg(pair->active.get(), &msg, FI_COMPLETION | level)));
        if (level == FI_INJECT_COMPLETE) {
            wait_op(sent);
        } else {
            settle(40);
            cr_assert(!sent.done(), "level 0x%llx completed early",
                      static_cast<unsigned long long>(level));
        }
        Bytes in(1);
        Op& receive = pair->passive().recv(in.data(), in.size());
        wait_op(receive);
        wait_op(sent);
        cr_assert(sent.ok() && receive.ok());
    }
}

// U-61: a write that the peer refuses is not a success at the two upper levels.
TRANSPORT_TEST(level, of_a_write_that_is_refused__tells_at_once) {
    only_dat();
    for (const std::uint64_t level : {FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE}) {
        auto pair = Pair::connected(transport);
        Region memory(pair->far, 8, FI_REMOTE_READ);
        const Remote at = memory.at(0);
        char out = 'x';
        const iovec iov{&out, 1};
        const fi_rma_iov rma{at.address, 1, at.key};
        Op& written = new_op();
        const fi_msg_rma msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &rma, 1, &written, 0};
        DAT_MUST(static_cast<int>(fi_writemsg(pair->active.get(), &msg, FI_COMPLETION | level)));
        wait_op(written);
        cr_assert_eq(written.err, FI_EACCES);
        cr_assert(memory.all(0));
    }
}

// ---- atomics ---------------------------------------------------------------

namespace {

struct Word {
    explicit Word(Side& side, std::uint64_t start) : memory(side, 64, kAll) { set(start); }
    void set(std::uint64_t value) { std::memcpy(memory.data() + offset(), &value, sizeof value); }
    std::uint64_t get() {
        std::uint64_t value = 0;
        std::memcpy(&value, memory.data() + offset(), sizeof value);
        return value;
    }
    Remote at() { return memory.at(static_cast<std::int64_t>(offset())); }
    Remote beside() { return memory.at(static_cast<std::int64_t>(offset()) + 1); }
    std::size_t offset() { return 8 - reinterpret_cast<std::uintptr_t>(memory.data()) % 8; }
    Region memory;
};

const SideOptions kAtomics = with_caps(FI_MSG | FI_RMA | FI_ATOMIC);

} // namespace

TRANSPORT_TEST(atomic, each_operation__does_what_it_says) {
    only_dat();
    auto pair = Pair::connected(transport, kAtomics, kAtomics);
    fid_ep* ep = pair->active.get();
    Word word(pair->far, 0);
    const auto fetch = [&](fi_op op, std::uint64_t before, std::uint64_t operand) {
        word.set(before);
        std::uint64_t old = 0;
        Op& done = new_op();
        DAT_MUST(static_cast<int>(fi_fetch_atomic(ep, &operand, 1, nullptr, &old, nullptr, 0,
                                                  word.at().address, word.at().key, FI_UINT64, op,
                                                  &done)));
        wait_op(done);
        cr_assert(done.ok() && old == before);
        cr_assert_eq(done.flags, FI_ATOMIC | FI_READ);
        return word.get();
    };
    cr_assert_eq(fetch(FI_SUM, 40, 2), 42);
    cr_assert_eq(fetch(FI_SUM, UINT64_MAX, 1), 0);
    cr_assert_eq(fetch(FI_BOR, 0xf0, 0x3c), 0xfc);
    cr_assert_eq(fetch(FI_BAND, 0xf0, 0x3c), 0x30);
    cr_assert_eq(fetch(FI_ATOMIC_WRITE, 7, 9), 9);
    cr_assert_eq(fetch(FI_ATOMIC_READ, 7, 9), 7);
    const auto compare = [&](fi_op op, std::uint64_t before, std::uint64_t operand,
                             std::uint64_t with) {
        word.set(before);
        std::uint64_t old = 0;
        Op& done = new_op();
        DAT_MUST(static_cast<int>(fi_compare_atomic(ep, &operand, 1, nullptr, &with, nullptr, &old,
                                                    nullptr, 0, word.at().address, word.at().key,
                                                    FI_INT64, op, &done)));
        wait_op(done);
        cr_assert(done.ok() && old == before);
        return word.get();
    };
    cr_assert_eq(compare(FI_CSWAP, 5, 6, 5), 6);
    cr_assert_eq(compare(FI_CSWAP, 5, 6, 4), 5);
    cr_assert_eq(compare(FI_MSWAP, 0xabcd, 0x1234, 0x00ff), 0xab34);
    // Without a result: in order, each once; and injected, without a completion.
    word.set(0);
    std::uint64_t one = 1;
    std::vector<Op*> ops;
    for (int i = 0; i < 100; ++i) {
        ops.push_back(&new_op());
        DAT_MUST(static_cast<int>(post_when_possible([&] {
            return fi_atomic(ep, &one, 1, nullptr, 0, word.at().address, word.at().key, FI_UINT64,
                             FI_SUM, ops.back());
        })));
        DAT_MUST(static_cast<int>(post_when_possible([&] {
            return fi_inject_atomic(ep, &one, 1, 0, word.at().address, word.at().key, FI_UINT64,
                                    FI_SUM);
        })));
    }
    wait_ops(ops);
    wait_until([&] { return word.get() == 200; });
    cr_assert_eq(word.get(), 200);
    require_once(ops);
    cr_assert(word.memory.guards_whole());
}

// What every transport with atomics has, devices among them; the rest is refused there.
TRANSPORT_TEST(atomic, of_devices__do_what_they_say) {
    only_dat();
    auto pair = Pair::connected(transport, kAtomics, kAtomics);
    fid_ep* ep = pair->active.get();
    Word word(pair->far, 40);
    const Remote at = word.at();
    std::uint64_t operand = 2;
    std::uint64_t old = 0;
    Op& summed = new_op();
    DAT_MUST(static_cast<int>(fi_fetch_atomic(ep, &operand, 1, nullptr, &old, nullptr, 0,
                                              at.address, at.key, FI_UINT64, FI_SUM, &summed)));
    wait_op(summed);
    cr_assert(summed.ok() && old == 40 && word.get() == 42);
    Op& read = new_op();
    DAT_MUST(static_cast<int>(fi_fetch_atomic(ep, nullptr, 1, nullptr, &old, nullptr, 0, at.address,
                                              at.key, FI_UINT64, FI_ATOMIC_READ, &read)));
    wait_op(read);
    cr_assert(read.ok() && old == 42 && word.get() == 42);
    for (std::uint64_t with : {41U, 42U}) { // does not swap, then does
        Op& swapped = new_op();
        operand = 7;
        DAT_MUST(static_cast<int>(fi_compare_atomic(ep, &operand, 1, nullptr, &with, nullptr, &old,
                                                    nullptr, 0, at.address, at.key, FI_INT64,
                                                    FI_CSWAP, &swapped)));
        wait_op(swapped);
        cr_assert(swapped.ok() && old == 42);
        cr_assert_eq(word.get(), with == 42 ? 7 : 42);
    }
    // Without a result, and injected.
    std::vector<Op*> ops;
    const std::uint64_t one = 1;
    for (int i = 0; i < 50; ++i) {
        ops.push_back(&new_op());
        DAT_MUST(static_cast<int>(post_when_possible([&] {
            return fi_atomic(ep, &one, 1, nullptr, 0, at.address, at.key, FI_UINT64, FI_SUM,
                             ops.back());
        })));
        DAT_MUST(static_cast<int>(post_when_possible([&] {
            return fi_inject_atomic(ep, &one, 1, 0, at.address, at.key, FI_UINT64, FI_SUM);
        })));
    }
    wait_ops(ops);
    wait_until([&] { return word.get() == 107; });
    cr_assert_eq(word.get(), 107);
    require_once(ops);
    cr_assert(word.memory.guards_whole());
    if (transport.device) {
        std::size_t count = 0;
        cr_assert_eq(fi_fetch_atomicvalid(ep, FI_UINT64, FI_BOR, &count), -FI_EOPNOTSUPP);
        cr_assert_eq(
            fi_atomic(ep, &one, 1, nullptr, 0, at.address, at.key, FI_UINT64, FI_BOR, nullptr),
            -FI_EOPNOTSUPP);
        fi_atomic_attr attr{};
        cr_assert_eq(
            fi_query_atomic(pair->near.domain(), FI_UINT64, FI_MSWAP, &attr, FI_COMPARE_ATOMIC),
            -FI_EOPNOTSUPP);
    }
}

// An atomic, a read and a write are answered in order.
TRANSPORT_TEST(atomic, between_reads_and_writes__keeps_its_place) {
    only_dat();
    auto pair = Pair::connected(transport, kAtomics, kAtomics);
    Word word(pair->far, 10);
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t old = 0;
    const std::uint64_t operand = 5;
    Op& read = pair->active.read(&first, 8, word.at());
    Op& added = new_op();
    DAT_MUST(static_cast<int>(fi_fetch_atomic(pair->active.get(), &operand, 1, nullptr, &old,
                                              nullptr, 0, word.at().address, word.at().key,
                                              FI_UINT64, FI_SUM, &added)));
    Op& again = pair->active.read(&second, 8, word.at());
    wait_op(read);
    wait_op(added);
    wait_op(again);
    cr_assert_eq(old, 10);
    cr_assert_eq(second, 15);
    cr_assert(read.order < added.order && added.order < again.order);
}

// FI_ORDER_ATOMIC_RAR, RAW, WAR and WAW: each sees exactly what was posted before it, also
// where more are posted than go to the peer at once.
TRANSPORT_TEST(atomic, behind_others__sees_those_before_it_and_no_later_one) {
    only_dat();
    auto pair = Pair::connected(transport, kAtomics, kAtomics);
    constexpr std::uint64_t kOrder =
        FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
    cr_assert_eq(pair->near.info()->tx_attr->msg_order & kOrder, kOrder);
    cr_assert_eq(pair->near.info()->rx_attr->msg_order & kOrder, kOrder);
    cr_assert_geq(pair->near.info()->ep_attr->max_order_war_size, sizeof(std::uint64_t));
    fid_ep* ep = pair->active.get();
    Word word(pair->far, 0);
    constexpr std::size_t kCount = 200;
    std::vector<std::uint64_t> seen(kCount);
    std::vector<std::uint64_t> expected(kCount);
    std::vector<Op*> ops;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
        expected[i] = sum;
        const std::uint64_t addend = i + 1;
        ops.push_back(&new_op());
        const bool fetches = i % 3 != 1;
        DAT_MUST(static_cast<int>(post_when_possible([&] {
            return fetches ? fi_fetch_atomic(ep, &addend, 1, nullptr, &seen[i], nullptr, 0,
                                             word.at().address, word.at().key, FI_UINT64,
                                             i % 3 == 0 ? FI_SUM : FI_ATOMIC_READ, ops.back())
                           : fi_atomic(ep, &addend, 1, nullptr, 0, word.at().address, word.at().key,
                                       FI_UINT64, FI_SUM, ops.back());
        })));
        sum += i % 3 == 2 ? 0 : addend;
    }
    wait_ops(ops);
    for (std::size_t i = 0; i < kCount; ++i)
        cr_assert(i % 3 == 1 || seen[i] == expected[i], "%zu: %llu", i,
                  static_cast<unsigned long long>(seen[i]));
    wait_until([&] { return word.get() == sum; });
    cr_assert_eq(word.get(), sum);
}

// RFC 7306: rights, bounds and alignment are checked before memory changes.
TRANSPORT_TEST(atomic, on_memory_that_is_not_for_it__is_refused_by_the_peer) {
    only_dat();
    for (const bool aligned : {true, false}) {
        auto pair = Pair::connected(transport, kAtomics, kAtomics);
        Word word(pair->far, 3);
        Region read_only(pair->far, 64, FI_REMOTE_READ);
        const Remote at = aligned ? read_only.at(0) : word.beside();
        const std::uint64_t one = 1;
        Op& done = new_op();
        DAT_MUST(static_cast<int>(fi_atomic(pair->active.get(), &one, 1, nullptr, 0, at.address,
                                            at.key, FI_UINT64, FI_SUM, &done)));
        wait_op(done);
        cr_assert_neq(done.err, 0);
        wait_shutdown(pair->active);
        require_end(pair->active, FI_DAT_END_BROKEN);
        cr_assert(word.get() == 3 && read_only.all(0));
    }
}

TRANSPORT_TEST(atomic, not_offered__is_said_by_query_and_call) {
    only_dat();
    auto pair = Pair::connected(transport, kAtomics, kAtomics);
    fid_ep* ep = pair->active.get();
    fi_atomic_attr attr{};
    std::size_t count = 0;
    DAT_MUST(fi_query_atomic(pair->near.domain(), FI_UINT64, FI_SUM, &attr, 0));
    cr_assert(attr.count == 1 && attr.size == 8);
    DAT_MUST(fi_compare_atomicvalid(ep, FI_INT64, FI_CSWAP, &count));
    cr_assert_eq(count, 1);
    cr_assert_eq(fi_query_atomic(pair->near.domain(), FI_FLOAT, FI_SUM, &attr, 0), -FI_EOPNOTSUPP);
    cr_assert_eq(fi_query_atomic(pair->near.domain(), FI_UINT64, FI_SUM, &attr, 1), -FI_EINVAL);
    cr_assert_eq(fi_atomicvalid(ep, FI_UINT64, FI_ATOMIC_READ, &count), -FI_EOPNOTSUPP);
    std::uint64_t two[2] = {1, 1};
    cr_assert_eq(fi_atomic(ep, two, 2, nullptr, 0, 0, 1, FI_UINT64, FI_SUM, nullptr), -FI_EINVAL);
    cr_assert_eq(fi_atomic(ep, two, 1, nullptr, 0, 0, 1, FI_UINT32, FI_SUM, nullptr),
                 -FI_EOPNOTSUPP);
    cr_assert_eq(fi_atomic(ep, nullptr, 1, nullptr, 0, 0, 1, FI_UINT64, FI_SUM, nullptr),
                 -FI_EINVAL);
}

// ---- counters --------------------------------------------------------------

namespace {

struct CountedSide {
    // Opened on the first endpoint's domain, bound to each before it is enabled.
    static SideOptions options(CountedSide& self, bool selective) {
        SideOptions options;
        options.selective = selective;
        options.before_enable = [&self](fid_ep* ep) { self.bind(ep); };
        return options;
    }
    explicit CountedSide(const Transport& transport, bool selective = true)
        : side(transport, options(*this, selective)) {
        for (auto* counter : {&tx, &rx, &remote})
            DAT_MUST(fi_cntr_open(side.domain(), nullptr, counter->out(), nullptr));
    }
    void bind(fid_ep* ep) {
        DAT_MUST(fi_ep_bind(ep, &tx->fid, FI_SEND | FI_READ | FI_WRITE));
        DAT_MUST(fi_ep_bind(ep, &rx->fid, FI_RECV));
        DAT_MUST(fi_ep_bind(ep, &remote->fid, FI_REMOTE_READ | FI_REMOTE_WRITE));
    }
    Side side;
    Fid<fid_cntr> tx, rx, remote;
};

void wait_count(fid_cntr* counter, std::uint64_t value) {
    wait_until([&] { return fi_cntr_read(counter) >= value; });
    cr_assert_eq(fi_cntr_read(counter), value);
}

} // namespace

// fi_cntr(3): successes count, reported or not; what peers do counts here.
TRANSPORT_TEST(counter, of_each_kind__counts_what_succeeded) {
    only_dat();
    CountedSide here(transport);
    CountedSide there(transport);
    there.side.listen();
    Endpoint active(here.side);
    Endpoint passive = establish(active, there.side);
    Fid<fid_cntr> of_region; // closed after what it is bound to
    Region memory(there.side, 100, kAll);
    DAT_MUST(fi_cntr_open(there.side.domain(), nullptr, of_region.out(), nullptr));
    DAT_MUST(fi_mr_bind(memory.mr(), &of_region->fid, FI_REMOTE_WRITE));
    Bytes in(10);
    const Remote at = memory.at(0);
    const auto must = [](ssize_t result) { DAT_MUST(static_cast<int>(result)); };
    for (int i = 0; i < 3; ++i)
        must(fi_recv(passive.get(), in.data(), in.size(), nullptr, 0, nullptr));
    must(fi_send(active.get(), "a", 1, nullptr, 0, nullptr));
    must(fi_inject(active.get(), "b", 1, 0));
    must(fi_write(active.get(), "c", 1, nullptr, 0, at.address, at.key, nullptr));
    Bytes out(1);
    must(fi_read(active.get(), out.data(), 1, nullptr, 0, at.address, at.key, nullptr));
    must(fi_send(active.get(), "d", 1, nullptr, 0, nullptr));
    wait_count(here.tx.get(), 5);
    wait_count(there.rx.get(), 3);
    wait_count(there.remote.get(), 2);
    wait_count(of_region.get(), 1);
    cr_assert_eq(fi_cntr_readerr(here.tx.get()), 0);
    cr_assert_eq(here.side.completions(), 0, "selective, and nobody asked");
    cr_assert_eq(fi_close(&of_region->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&here.tx->fid), -FI_EBUSY);
}

// DISC-7: what is flushed counts as an error, once.
TRANSPORT_TEST(counter, of_flushed_operations__counts_errors) {
    only_dat();
    CountedSide here(transport, false);
    Side there(transport);
    there.listen();
    Endpoint active(here.side);
    Endpoint passive = establish(active, there);
    Bytes in(10);
    std::vector<Op*> ops;
    for (int i = 0; i < 5; ++i)
        ops.push_back(&active.recv(in.data(), in.size()));
    DAT_MUST(active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(active);
    wait_ops(ops);
    cr_assert_eq(fi_cntr_readerr(here.rx.get()), 5);
    cr_assert_eq(fi_cntr_read(here.rx.get()), 0);
}

// fi_cntr_wait(): the value, the error, the time.
TRANSPORT_TEST(counter, waited_for__ends_by_value_error_or_time) {
    only_dat();
    CountedSide here(transport, false);
    Side there(transport);
    there.listen();
    Endpoint active(here.side);
    Endpoint passive = establish(active, there);
    cr_assert_eq(fi_cntr_wait(here.rx.get(), 1, 10), -FI_ETIMEDOUT);
    Bytes in(10);
    Op& receive = active.recv(in.data(), in.size());
    passive.send("x", 1);
    cr_assert_eq(fi_cntr_wait(here.rx.get(), 1, kWaitMs), 0);
    wait_op(receive);
    Op& flushed = active.recv(in.data(), in.size());
    DAT_MUST(passive.disconnect(FI_DAT_ABRUPT));
    cr_assert_eq(fi_cntr_wait(here.rx.get(), 2, kWaitMs), -FI_EAVAIL);
    wait_op(flushed);
    wait_shutdown(active);
    wait_shutdown(passive);
    // It was told of that, and is of one that came before the wait.
    cr_assert_eq(fi_cntr_wait(here.rx.get(), 2, 1), -FI_ETIMEDOUT);
    Endpoint again(here.side);
    Endpoint there_again = establish(again, there);
    Op& early = again.recv(in.data(), in.size());
    DAT_MUST(there_again.disconnect(FI_DAT_ABRUPT));
    wait_op(early);
    wait_shutdown(again);
    cr_assert_eq(fi_cntr_wait(here.rx.get(), 2, 1), -FI_EAVAIL);
    cr_assert_eq(fi_cntr_wait(here.rx.get(), 2, 1), -FI_ETIMEDOUT);
    // By hand.
    DAT_MUST(fi_cntr_set(here.tx.get(), 40));
    DAT_MUST(fi_cntr_add(here.tx.get(), 2));
    DAT_MUST(fi_cntr_seterr(here.tx.get(), 7));
    DAT_MUST(fi_cntr_adderr(here.tx.get(), 1));
    cr_assert_eq(fi_cntr_read(here.tx.get()), 42);
    cr_assert_eq(fi_cntr_readerr(here.tx.get()), 8);
    fid_t fid = &here.tx->fid;
    DAT_MUST(fi_trywait(here.side.fabric(), &fid, 1));
    DAT_MUST(fi_cntr_add(here.tx.get(), 1));
    cr_assert_eq(fi_trywait(here.side.fabric(), &fid, 1), -FI_EAGAIN);
}

TRANSPORT_TEST(counter, wrong_flags_and_second_bindings__are_refused) {
    only_dat();
    CountedSide here(transport);
    fid_ep* ep = nullptr;
    DAT_MUST(fi_endpoint(here.side.domain(), here.side.info(), &ep, nullptr));
    const Fid<fid_ep> owner(ep);
    cr_assert_eq(fi_ep_bind(ep, &here.tx->fid, 0), -FI_EINVAL);
    DAT_MUST(fi_ep_bind(ep, &here.tx->fid, FI_SEND));
    cr_assert_eq(fi_ep_bind(ep, &here.rx->fid, FI_SEND | FI_RECV), -FI_EINVAL);
    DAT_MUST(fi_ep_bind(ep, &here.rx->fid, FI_RECV));
    fi_cntr_attr attr{};
    Fid<fid_cntr> pollable; // FI_WAIT_NONE: no descriptor, but it can be waited for
    DAT_MUST(fi_cntr_open(here.side.domain(), &attr, pollable.out(), nullptr));
    int fd = -1;
    cr_assert_eq(fi_control(&pollable->fid, FI_GETWAIT, &fd), -FI_ENODATA);
    cr_assert_eq(fi_cntr_wait(pollable.get(), 1, 1), -FI_ETIMEDOUT);
    attr.wait_obj = FI_WAIT_MUTEX_COND;
    fid_cntr* none = nullptr;
    cr_assert_eq(fi_cntr_open(here.side.domain(), &attr, &none, nullptr), -FI_ENOSYS);
}

// ---- poll sets -------------------------------------------------------------

namespace {

// What it names, of up to `most`.
std::vector<void*> named(fid_poll* set, std::size_t most = 8) {
    std::vector<void*> contexts(most);
    const int count = fi_poll(set, contexts.data(), static_cast<int>(most));
    DAT_MUST(std::min(count, 0));
    contexts.resize(static_cast<std::size_t>(count));
    return contexts;
}

} // namespace

// fi_poll(3): queues that are not empty, and counters that have changed.
TRANSPORT_TEST(poll_set, of_queues_and_counters__names_those_that_have_something) {
    only_dat();
    CountedSide here(transport, false);
    Side there(transport);
    there.listen();
    Endpoint active(here.side);
    Endpoint passive = establish(active, there);
    Fid<fid_poll> set;
    DAT_MUST(fi_poll_open(here.side.domain(), nullptr, set.out()));
    cr_assert(named(set.get()).empty());
    fid_t queue = &here.side.cq()->fid;
    fid_t counter = &here.rx->fid;
    queue->context = &queue;
    counter->context = &counter;
    for (fid_t each : {queue, counter}) {
        DAT_MUST(fi_poll_add(set.get(), each, 0));
    }
    cr_assert(named(set.get()).empty());

    Bytes in(10);
    Op& receive = active.recv(in.data(), in.size());
    passive.send("x", 1);
    here.side.asleep = true; // its queue is left to this
    std::vector<void*> all;
    wait_until([&] {
        const std::vector<void*> some = named(set.get(), 1); // in turn, where there is room for one
        all.insert(all.end(), some.begin(), some.end());
        return std::ranges::count(all, &queue) >= 2 && std::ranges::count(all, &counter) >= 1;
    });
    cr_assert_eq(std::ranges::count(all, &counter), 1, "it was named, and has not changed since");
    cr_assert(named(set.get(), 0).empty());
    here.side.asleep = false;
    wait_op(receive);
    cr_assert(named(set.get()).empty());
    DAT_MUST(fi_cntr_seterr(here.rx.get(), 1));
    cr_assert(named(set.get()) == std::vector<void*>{&counter});

    // An error is something.
    active.recv(in.data(), in.size());
    DAT_MUST(fi_poll_del(set.get(), counter, 0));
    here.side.asleep = true;
    DAT_MUST(passive.disconnect(FI_DAT_ABRUPT));
    wait_until([&] { return named(set.get()) == std::vector<void*>{&queue}; });
    here.side.asleep = false;
    wait_shutdown(active);
    wait_shutdown(passive);
    cr_assert(named(set.get()).empty());
    DAT_MUST(fi_poll_del(set.get(), queue, 0));
}

TRANSPORT_TEST(poll_set, wrong_calls__are_refused_and_change_nothing) {
    only_dat();
    Side here(transport);
    Side there(transport);
    fid_poll* none = nullptr;
    fi_poll_attr attr{.flags = 1};
    cr_assert_eq(fi_poll_open(here.domain(), &attr, &none), -FI_EBADFLAGS);
    attr.flags = 0;
    Fid<fid_poll> set;
    DAT_MUST(fi_poll_open(here.domain(), &attr, set.out()));
    cr_assert_eq(fi_poll_add(set.get(), &here.eq()->fid, 0), -FI_EINVAL);
    cr_assert_eq(fi_poll_add(set.get(), &there.cq()->fid, 0), -FI_EINVAL, "of another domain");
    cr_assert_eq(fi_poll_add(set.get(), &here.cq()->fid, 1), -FI_EBADFLAGS);
    cr_assert_eq(fi_poll_del(set.get(), &here.cq()->fid, 0), -FI_EINVAL);
    DAT_MUST(fi_poll_add(set.get(), &here.cq()->fid, 0));
    cr_assert_eq(fi_poll_add(set.get(), &here.cq()->fid, 0), -FI_EALREADY);
    cr_assert_eq(fi_poll(set.get(), nullptr, 1), -FI_EINVAL);
    void* context = nullptr;
    cr_assert_eq(fi_poll(set.get(), &context, -1), -FI_EINVAL);
    cr_assert_eq(fi_close(&set->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&here.cq()->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&here.domain()->fid), -FI_EBUSY);
    DAT_MUST(fi_poll_del(set.get(), &here.cq()->fid, 0));
}
