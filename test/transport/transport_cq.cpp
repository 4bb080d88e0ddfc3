// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: the completion queue. Formats, errors, blocking, wait
// objects, sizes.
#include "suite.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstring>
#include <thread>

using namespace dat::test;

namespace {

SideOptions with_format(fi_cq_format format) {
    SideOptions options;
    options.cq_format = format;
    return options;
}

SideOptions with_wait(fi_wait_obj wait) {
    SideOptions options;
    options.cq_wait = wait;
    return options;
}

void exchange_with_format(const Transport& transport, fi_cq_format format) {
    const SideOptions options = with_format(format);
    auto pair = Pair::connected(transport, options, options);
    Bytes in(100);
    Op& receive = pair->passive().recv(in.data(), in.size());
    Op& send = pair->active.send("abcde", 5);
    Region memory(pair->far, 8, FI_REMOTE_READ | FI_REMOTE_WRITE);
    Bytes local(8);
    Op& write = pair->active.write(local.data(), 8, memory.at(0));
    Op& read = pair->active.read(local.data(), 8, memory.at(0));
    for (const Op* op : {&receive, &send, &write, &read}) {
        wait_op(*op);
        cr_assert(op->ok());
    }
    if (format == FI_CQ_FORMAT_CONTEXT)
        return;
    cr_assert_eq(receive.len, 5);
    const auto means = [](const Op& op, std::uint64_t flags) {
        return (op.flags & flags) == flags;
    };
    cr_assert(means(receive, FI_MSG | FI_RECV), "flags %" PRIx64, receive.flags);
    cr_assert(means(send, FI_MSG | FI_SEND), "flags %" PRIx64, send.flags);
    cr_assert(means(write, FI_RMA | FI_WRITE), "flags %" PRIx64, write.flags);
    cr_assert(means(read, FI_RMA | FI_READ), "flags %" PRIx64, read.flags);
}

int wait_fd(fid_t fid) {
    int fd = -1;
    DAT_MUST(fi_control(fid, FI_GETWAIT, &fd));
    cr_assert_geq(fd, 0);
    return fd;
}

// Blocks as a careful application does, until there may be something to read;
// false after `timeout_ms` without. Counts how often it woke for nothing.
bool block_on(Side& side, int fd, int timeout_ms, unsigned& wakeups) {
    fid_t fid = &side.cq()->fid;
    const int may_wait = fi_trywait(side.fabric(), &fid, 1);
    if (may_wait == -FI_EAGAIN)
        return true;
    cr_assert_eq(may_wait, FI_SUCCESS, "fi_trywait: %d", may_wait);
    pollfd entry{fd, POLLIN, 0};
    const int ready = poll(&entry, 1, timeout_ms);
    wakeups += ready > 0;
    return ready > 0;
}

} // namespace

TRANSPORT_TEST(cq_format, context__has_the_context) {
    exchange_with_format(transport, FI_CQ_FORMAT_CONTEXT);
}
TRANSPORT_TEST(cq_format, msg__has_flags_and_length) {
    exchange_with_format(transport, FI_CQ_FORMAT_MSG);
}
TRANSPORT_TEST(cq_format, data__has_flags_and_length) {
    exchange_with_format(transport, FI_CQ_FORMAT_DATA);
}

TRANSPORT_TEST(cq_empty, read_and_readerr__say_try_again) {
    Side side(transport);
    std::array<fi_cq_data_entry, 4> room{};
    cr_assert_eq(fi_cq_read(side.cq(), room.data(), room.size()), -FI_EAGAIN);
    fi_cq_err_entry error{};
    cr_assert_eq(fi_cq_readerr(side.cq(), &error, 0), -FI_EAGAIN);
}

// Completions keep their order over reads of any size.
TRANSPORT_TEST(cq_read, one_at_a_time_and_in_batches__gives_each_once) {
    constexpr std::size_t kCount = 20;
    auto pair = Pair::connected(transport);
    pair->far.asleep = true;
    std::vector<Op*> receives;
    Bytes in(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
        receives.push_back(&pair->passive().recv(&in[i], 1));
    for (std::size_t i = 0; i < kCount; ++i)
        wait_op(pair->active.send("x", 1));
    std::vector<void*> got;
    cr_assert(wait_until([&] {
        std::array<fi_cq_data_entry, 7> room{};
        const ssize_t n = fi_cq_read(pair->far.cq(), room.data(), 1 + got.size() % room.size());
        cr_assert(n > 0 || n == -FI_EAGAIN);
        for (ssize_t i = 0; i < n; ++i)
            got.push_back(room[static_cast<std::size_t>(i)].op_context);
        return got.size() == kCount;
    }));
    for (std::size_t i = 0; i < kCount; ++i) {
        cr_assert_eq(got[i], receives[i]);
        receives[i]->completions = 1; // read by hand
    }
}

// FLS-2: an error is read with fi_cq_readerr(), and says what it is.
TRANSPORT_TEST(cq_error, of_a_flushed_receive__is_described) {
    only_dat();
    auto pair = Pair::connected(transport);
    Bytes in(10);
    Op& receive = pair->active.recv(in.data(), in.size());
    pair->near.asleep = true;
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    std::array<fi_cq_data_entry, 4> room{};
    cr_assert(wait_until(
        [&] { return fi_cq_read(pair->near.cq(), room.data(), room.size()) != -FI_EAGAIN; }));
    // It stays until it is read.
    cr_assert_eq(fi_cq_read(pair->near.cq(), room.data(), room.size()), -FI_EAVAIL);
    fi_cq_err_entry error{};
    cr_assert_eq(fi_cq_readerr(pair->near.cq(), &error, 0), 1);
    cr_assert_eq(error.op_context, &receive);
    cr_assert_eq(error.err, FI_ECANCELED);
    cr_assert_eq(error.prov_errno, 1);
    cr_assert(error.flags & FI_RECV);
    char text[100] = "";
    const char* said =
        fi_cq_strerror(pair->near.cq(), error.prov_errno, error.err_data, text, sizeof text);
    cr_assert(said && *said);
    cr_assert_eq(fi_cq_read(pair->near.cq(), room.data(), room.size()), -FI_EAGAIN);
    receive.completions = 1;
}

// DAT's own numbers have texts of their own.
TRANSPORT_TEST(cq_error, strerror_of_each_status__differs) {
    only_dat();
    Side side(transport);
    std::vector<std::string> texts;
    for (const int status : {1, 2, 4, 6, 7, 8, 9}) {
        const char* said = fi_cq_strerror(side.cq(), status, nullptr, nullptr, 0);
        cr_assert(said && *said, "status %d", status);
        cr_assert(std::find(texts.begin(), texts.end(), said) == texts.end(), "%s twice", said);
        texts.emplace_back(said);
    }
}

TRANSPORT_TEST(cq_sread, with_nothing_to_read__times_out) {
    SideOptions options = with_wait(FI_WAIT_UNSPEC);
    Side side(transport, options);
    fi_cq_data_entry entry{};
    cr_assert_eq(fi_cq_sread(side.cq(), &entry, 1, nullptr, 30), -FI_EAGAIN);
    cr_assert_eq(fi_cq_sread(side.cq(), &entry, 1, nullptr, 0), -FI_EAGAIN);
}

// A blocked reader drives its own side: nobody polls for it.
TRANSPORT_TEST(cq_sread, with_a_message_on_its_way__returns_it) {
    auto pair = Pair::connected(transport, {}, with_wait(FI_WAIT_UNSPEC));
    Bytes in(100'000);
    Op& receive = pair->passive().recv(in.data(), in.size());
    pair->far.asleep = true;
    std::thread sender([&] {
        const Bytes out = pattern(100'000);
        wait_op(pair->active.send(out.data(), out.size()));
    });
    fi_cq_data_entry entry{};
    const ssize_t got = fi_cq_sread(pair->far.cq(), &entry, 1, nullptr, kWaitMs);
    sender.join();
    cr_assert_eq(got, 1, "fi_cq_sread: %zd", got);
    cr_assert_eq(entry.op_context, &receive);
    cr_assert_eq(entry.len, in.size());
    cr_assert(in == pattern(100'000));
    receive.completions = 1;
}

TRANSPORT_TEST(cq_signal, of_a_blocked_reader__lets_it_go) {
    Side side(transport, with_wait(FI_WAIT_UNSPEC));
    std::thread signaller([&] { fi_cq_signal(side.cq()); });
    fi_cq_data_entry entry{};
    // Without the signal it would block for as long as the test may last.
    const ssize_t got = fi_cq_sread(side.cq(), &entry, 1, nullptr, -1);
    signaller.join();
    cr_assert(got == -FI_EAGAIN || got == -FI_ECANCELED || got == 0, "fi_cq_sread: %zd", got);
}

// fi_trywait() and poll(): each message wakes the reader.
TRANSPORT_TEST(cq_wait_fd, messages_come__wakes_for_each) {
    constexpr int kRounds = 50;
    auto pair = Pair::connected(transport, {}, with_wait(FI_WAIT_FD));
    const int fd = wait_fd(&pair->far.cq()->fid);
    pair->far.pump();
    pair->far.asleep = true;
    for (int round = 0; round < kRounds; ++round) {
        Bytes in(5);
        Op& receive = pair->passive().recv(in.data(), in.size());
        pair->active.send("hello", 5);
        unsigned wakeups = 0;
        while (!receive.done()) {
            cr_assert(block_on(pair->far, fd, kWaitMs, wakeups), "round %d: never woken", round);
            pair->far.pump_cq();
            pump_all(); // the sender's side
        }
        cr_assert(receive.ok());
    }
}

TRANSPORT_TEST(cq_wait_fd, a_message_larger_than_the_socket_buffers__arrives) {
    constexpr std::size_t kSize = 8 << 20;
    auto pair = Pair::connected(transport, {}, with_wait(FI_WAIT_FD));
    const int fd = wait_fd(&pair->far.cq()->fid);
    pair->far.asleep = true;
    Bytes in(kSize);
    const Bytes out = pattern(kSize);
    Op& receive = pair->passive().recv(in.data(), in.size());
    Op& send = pair->active.send(out.data(), out.size());
    unsigned wakeups = 0;
    while (!receive.done()) {
        pump_all();
        block_on(pair->far, fd, 10, wakeups);
        pair->far.pump_cq();
    }
    wait_op(send);
    cr_assert(in == out);
}

// A connection that is idle wakes nobody: a level that stays up would make the
// application spin.
TRANSPORT_TEST(cq_wait_fd, idle__does_not_wake) {
    auto pair = Pair::connected(transport, {}, with_wait(FI_WAIT_FD));
    const int fd = wait_fd(&pair->far.cq()->fid);
    Bytes in(5);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send("hello", 5));
    wait_op(receive);
    settle(20);
    pair->near.asleep = pair->far.asleep = true;
    unsigned wakeups = 0;
    for (int i = 0; i < 20; ++i) {
        block_on(pair->far, fd, 10, wakeups);
        pair->far.pump_cq();
    }
    cr_assert_lt(wakeups, 10, "woken %u times in 20 idle waits", wakeups);
}

// Completions that are there keep a careful application from waiting.
TRANSPORT_TEST(cq_wait_fd, with_unread_completions__trywait_says_try_again) {
    auto pair = Pair::connected(transport, {}, with_wait(FI_WAIT_FD));
    Bytes in(5);
    Op& receive = pair->passive().recv(in.data(), in.size());
    Op& second = pair->passive().recv(in.data(), in.size());
    pair->far.asleep = true;
    wait_op(pair->active.send("hello", 5));
    wait_op(pair->active.send("hello", 5));
    fi_cq_data_entry entry{};
    cr_assert(wait_until([&] { return fi_cq_read(pair->far.cq(), &entry, 1) == 1; }));
    cr_assert(wait_until([&] {
        fid_t fid = &pair->far.cq()->fid;
        return fi_trywait(pair->far.fabric(), &fid, 1) == -FI_EAGAIN;
    }));
    receive.completions = 1;
    pair->far.asleep = false;
    wait_op(second);
}

// A wait set of EQ and CQ as newer versions of ofi_rxm poll them.
TRANSPORT_TEST(cq_wait_fd, trywait_of_eq_and_cq__is_possible) {
    SideOptions options = with_wait(FI_WAIT_FD);
    options.eq_wait = FI_WAIT_FD;
    Side side(transport, options);
    std::array<fid_t, 2> fids{&side.eq()->fid, &side.cq()->fid};
    cr_assert_eq(fi_trywait(side.fabric(), fids.data(), 2), FI_SUCCESS);
    cr_assert_neq(wait_fd(fids[0]), wait_fd(fids[1]));
}

// ofi_rxm opens its CQ with 2 * 128 * 1024 entries.
TRANSPORT_TEST(cq_size, of_262144__works) {
    SideOptions options;
    options.cq_size = 262'144;
    auto pair = Pair::connected(transport, options, options);
    Bytes in(5);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send("hello", 5));
    wait_op(receive);
    cr_assert(receive.ok());
}

// architecture.md: a full CQ loses nothing, and the ending event does not wait for it.
TRANSPORT_TEST(cq_size, smaller_than_what_completes__loses_nothing) {
    only_dat();
    constexpr std::size_t kCount = 100;
    SideOptions options;
    options.cq_size = 4;
    auto pair = Pair::connected(transport, {}, options);
    Bytes in(kCount);
    std::vector<Op*> receives;
    for (std::size_t i = 0; i < kCount; ++i)
        receives.push_back(&pair->passive().recv(&in[i], 1));
    pair->far.asleep = true;
    for (std::size_t i = 0; i < kCount / 2; ++i)
        wait_op(pair->active.send("x", 1));
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    // The application reads its EQ only.
    std::optional<Event> ending;
    cr_assert(wait_until([&] {
        ending = pair->far.read_event();
        return ending.has_value();
    }));
    cr_assert_eq(ending->type, FI_SHUTDOWN);
    pair->far.pump_cq();
    require_once(receives);
    require_stream_order(receives);
    for (std::size_t i = 0; i < kCount; ++i)
        cr_assert(i < kCount / 2 ? receives[i]->ok() : receives[i]->flushed(), "receive %zu", i);
    wait_shutdown(pair->active);
}

// Sends and receives on CQs of their own.
TRANSPORT_TEST(cq_two, one_for_each_direction__gets_its_own) {
    Pair pair(transport);
    Endpoint active(pair.near);
    Endpoint passive = establish(active, pair.far);
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_DATA;
    Fid<fid_cq> sends;
    Fid<fid_cq> receives;
    DAT_MUST(fi_cq_open(pair.near.domain(), &attr, sends.out(), nullptr));
    DAT_MUST(fi_cq_open(pair.near.domain(), &attr, receives.out(), nullptr));
    Fid<fid_ep> ep;
    DAT_MUST(fi_endpoint(pair.near.domain(), pair.near.info(), ep.out(), nullptr));
    DAT_MUST(fi_ep_bind(ep.get(), &pair.near.eq()->fid, 0));
    DAT_MUST(fi_ep_bind(ep.get(), &sends->fid, FI_TRANSMIT));
    DAT_MUST(fi_ep_bind(ep.get(), &receives->fid, FI_RECV));
    DAT_MUST(fi_enable(ep.get()));
    DAT_MUST(fi_connect(ep.get(), pair.far.address().data(), nullptr, 0));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint peer(pair.far, request);
    DAT_MUST(peer.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    Bytes here(5);
    Bytes there(5);
    int send_context = 0;
    int recv_context = 0;
    Op& received = peer.recv(there.data(), 5);
    DAT_MUST(fi_recv(ep.get(), here.data(), 5, nullptr, FI_ADDR_UNSPEC, &recv_context));
    DAT_MUST(fi_send(ep.get(), "hello", 5, nullptr, FI_ADDR_UNSPEC, &send_context));
    wait_op(received);
    peer.send("there", 5);
    fi_cq_data_entry entry{};
    cr_assert(wait_until([&] { return fi_cq_read(sends.get(), &entry, 1) == 1; }));
    cr_assert_eq(entry.op_context, &send_context);
    cr_assert(wait_until([&] { return fi_cq_read(receives.get(), &entry, 1) == 1; }));
    cr_assert_eq(entry.op_context, &recv_context);
    cr_assert_eq(fi_cq_read(sends.get(), &entry, 1), -FI_EAGAIN);
    ep.close();
}

TRANSPORT_TEST(cq_open, with_bad_attributes__is_refused) {
    only_dat();
    Side side(transport);
    Fid<fid_cq> cq;
    fi_cq_attr attr{};
    attr.format = static_cast<fi_cq_format>(7); // none of them
    cr_assert_neq(fi_cq_open(side.domain(), &attr, cq.out(), nullptr), 0);
    attr = {};
    attr.wait_obj = static_cast<fi_wait_obj>(7);
    cr_assert_neq(fi_cq_open(side.domain(), &attr, cq.out(), nullptr), 0);
}
