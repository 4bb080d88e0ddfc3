// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: remote CQ data, and solicited messages.
#include "suite.h"

#include <cstring>

using namespace dat::test;

namespace {

constexpr std::uint64_t kAll = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kData = 0x89abcdef;

// Completions without a context, of writes with data.
struct Unposted {
    explicit Unposted(Side& side) : side_(side) {
        side.intercept = [this](void* context, const Op& op) {
            if (!context)
                seen.push_back(op);
            return context == nullptr;
        };
    }
    ~Unposted() { side_.intercept = nullptr; }
    void wait(std::size_t count) {
        wait_until([&] { return seen.size() >= count; });
        cr_assert_eq(seen.size(), count);
    }
    std::vector<Op> seen;

  private:
    Side& side_;
};

} // namespace

TRANSPORT_TEST(data_send, of_every_size__comes_with_its_data) {
    auto pair = Pair::connected(transport);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{300000}}) {
        const Bytes out = pattern(size + 1);
        Bytes in(size + 1);
        Op& receive = pair->passive().recv(in.data(), in.size());
        Op& sent = new_op();
        DAT_MUST(static_cast<int>(fi_senddata(pair->active.get(), out.data(), size, nullptr, kData,
                                              FI_ADDR_UNSPEC, &sent)));
        wait_op(sent);
        wait_op(receive);
        cr_assert(receive.ok() && receive.len == size);
        cr_assert(receive.flags & FI_REMOTE_CQ_DATA);
        cr_assert_eq(receive.data, kData);
        cr_assert(same(in.data(), out.data(), size));
    }
    // And the one behind has none.
    Bytes in(10);
    Op& plain = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send("x", 1));
    wait_op(plain);
    cr_assert(plain.ok() && !(plain.flags & FI_REMOTE_CQ_DATA));
}

// U-9: also where the receive is posted later.
TRANSPORT_TEST(data_send, before_its_receive__keeps_its_data) {
    auto pair = Pair::connected(transport);
    DAT_MUST(static_cast<int>(fi_injectdata(pair->active.get(), "abc", 3, kData, FI_ADDR_UNSPEC)));
    settle(20);
    Bytes in(10);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(receive);
    cr_assert(receive.ok() && receive.len == 3 && receive.data == kData);
}

// U-62: no receive is taken.
TRANSPORT_TEST(data_write, without_FI_RX_CQ_DATA__takes_no_receive) {
    only_dat();
    auto pair = Pair::connected(transport);
    Region memory(pair->far, 1000, kAll);
    Unposted unposted(pair->far);
    Bytes in(10);
    Op& receive = pair->passive().recv(in.data(), in.size());
    const Bytes out = pattern(500);
    const Remote at = memory.at(100);
    Op& written = new_op();
    DAT_MUST(static_cast<int>(fi_writedata(pair->active.get(), out.data(), out.size(), nullptr,
                                           kData, FI_ADDR_UNSPEC, at.address, at.key, &written)));
    wait_op(written);
    unposted.wait(1);
    const Op& told = unposted.seen[0];
    cr_assert_eq(told.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    cr_assert(told.data == kData && told.len == out.size());
    cr_assert(std::memcmp(memory.data() + 100, out.data(), out.size()) == 0, "placed before");
    cr_assert(!receive.done());
    wait_op(pair->active.send("x", 1));
    wait_op(receive);
    cr_assert(receive.ok() && receive.len == 1);
}

TRANSPORT_TEST(data_write, with_FI_RX_CQ_DATA__takes_one) {
    only_dat();
    SideOptions far;
    far.rx_mode = FI_RX_CQ_DATA;
    auto pair = Pair::connected(transport, {}, far);
    Region memory(pair->far, 100, kAll);
    const Remote at = memory.at(0);
    Op& written = new_op();
    DAT_MUST(static_cast<int>(fi_writedata(pair->active.get(), "hello", 5, nullptr, kData,
                                           FI_ADDR_UNSPEC, at.address, at.key, &written)));
    settle(20);
    cr_assert_eq(pair->far.completions(), 0, "no receive is there");
    Bytes in(10);
    Op& receive = pair->passive().recv(in.data(), in.size());
    Op& behind = pair->passive().recv(in.data(), in.size());
    wait_op(receive);
    cr_assert(receive.ok() && receive.data == kData && receive.len == 5);
    cr_assert_eq(receive.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    cr_assert(std::memcmp(memory.data(), "hello", 5) == 0);
    wait_op(pair->active.send("x", 1));
    wait_op(behind);
    cr_assert(behind.ok() && (behind.flags & FI_RECV));
}

// FI_RM_ENABLED: nobody posts for these, so the queue's size bounds them; none is lost.
TRANSPORT_TEST(data_write, more_than_the_queue_holds__waits_and_none_is_lost) {
    only_dat();
    SideOptions far;
    far.cq_size = 8;
    auto pair = Pair::connected(transport, {}, far);
    Region memory(pair->far, 8, kAll);
    Unposted unposted(pair->far);
    const Remote at = memory.at(0);
    constexpr std::uint64_t kCount = 3000;
    pair->far.asleep = true;
    std::uint64_t posted = 0;
    // As many as go out while the target does not read.
    wait_until(
        [&] {
            for (; posted < kCount; ++posted) {
                if (fi_inject_writedata(pair->active.get(), "12345678", 8, posted, FI_ADDR_UNSPEC,
                                        at.address, at.key) != 0)
                    return false;
            }
            return true;
        },
        200);
    pair->far.asleep = false;
    wait_until([&] {
        for (; posted < kCount; ++posted) {
            if (fi_inject_writedata(pair->active.get(), "12345678", 8, posted, FI_ADDR_UNSPEC,
                                    at.address, at.key) != 0)
                return false;
        }
        return unposted.seen.size() == kCount;
    });
    cr_assert_eq(unposted.seen.size(), kCount);
    for (std::uint64_t i = 0; i < kCount; ++i)
        cr_assert_eq(unposted.seen[i].data, i);
}

// Those that came before the end come before the event.
TRANSPORT_TEST(data_write, left_when_the_connection_ends__comes_before_the_event) {
    only_dat();
    SideOptions far;
    far.cq_size = 4;
    auto pair = Pair::connected(transport, {}, far);
    Region memory(pair->far, 8, kAll);
    Unposted unposted(pair->far);
    const Remote at = memory.at(0);
    for (std::uint64_t i = 0; i < 20; ++i)
        DAT_MUST(static_cast<int>(fi_inject_writedata(pair->active.get(), "x", 1, i, FI_ADDR_UNSPEC,
                                                      at.address, at.key)));
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    wait_shutdown(pair->passive());
    cr_assert_eq(unposted.seen.size(), 20);
}

// Of 8 bytes as well as of 4, in turn: no half of one is taken for another's.
TRANSPORT_TEST(data_wide, of_sends_and_writes__is_exact) {
    only_dat();
    constexpr std::uint64_t kValues[] = {
        0xfedcba9876543210, 1,          std::uint64_t{1} << 32,  0,
        ~std::uint64_t{0},  UINT32_MAX, 0x8000000000000000 | 77, 5};
    auto pair = Pair::connected(transport);
    if (pair->near.info()->domain_attr->cq_data_size < 8)
        cr_skip_test("remote CQ data has 4 bytes");
    Region memory(pair->far, 200'000, kAll);
    const Remote at = memory.at(0);
    Unposted unposted(pair->far);
    Bytes in(200'000);
    for (const std::size_t size : {0U, 1U, 96U, 97U, 600U, 200'000U}) {
        const Bytes out = pattern(200'000, static_cast<unsigned>(size));
        for (const std::uint64_t value : kValues) {
            Op& receive = pair->passive().recv(in.data(), in.size());
            Op& sent = new_op();
            Op& written = new_op();
            DAT_MUST(post_when_possible([&] {
                return fi_senddata(pair->active.get(), out.data(), size, nullptr, value,
                                   FI_ADDR_UNSPEC, &sent);
            }));
            DAT_MUST(post_when_possible([&] {
                return fi_writedata(pair->active.get(), out.data(), size, nullptr, ~value,
                                    FI_ADDR_UNSPEC, at.address, at.key, &written);
            }));
            wait_op(sent);
            wait_op(written);
            wait_op(receive);
            cr_assert(receive.ok() && receive.len == size);
            cr_assert_eq(receive.data, value, "%zu bytes", size);
            cr_assert(same(in.data(), out.data(), size));
            unposted.wait(1);
            cr_assert_eq(unposted.seen[0].data, ~value, "%zu bytes", size);
            unposted.seen.clear();
            cr_assert(same(memory.data(), out.data(), size));
        }
    }
}

// Where each receive is posted later, and what is owed when the connection ends.
TRANSPORT_TEST(data_wide, of_messages_that_wait_or_are_owed__is_kept) {
    only_dat();
    for (const bool ends : {false, true}) {
        auto pair = Pair::connected(transport);
        if (pair->near.info()->domain_attr->cq_data_size < 8)
            cr_skip_test("remote CQ data has 4 bytes");
        constexpr std::uint64_t kFirst = 0x1122334455667788;
        Bytes in(10);
        std::vector<Op*> receives;
        if (ends) {
            for (int i = 0; i < 6; ++i)
                receives.push_back(&pair->passive().recv(in.data(), in.size()));
            pair->far.asleep = true;
        }
        for (std::uint64_t i = 0; i < 6; ++i) {
            DAT_MUST(static_cast<int>(
                i % 3 == 2 ? fi_inject(pair->active.get(), "abc", 3, FI_ADDR_UNSPEC)
                           : fi_injectdata(pair->active.get(), "abc", 3,
                                           i % 3 == 1 ? i : kFirst + i, FI_ADDR_UNSPEC)));
        }
        if (ends) {
            DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
            pair->far.asleep = false;
            wait_shutdown(pair->passive());
        } else {
            settle(20);
            for (int i = 0; i < 6; ++i)
                receives.push_back(&pair->passive().recv(in.data(), in.size()));
        }
        wait_ops(receives);
        for (std::uint64_t i = 0; i < 6; ++i) {
            cr_assert(receives[i]->ok() && receives[i]->len == 3);
            cr_assert_eq((receives[i]->flags & FI_REMOTE_CQ_DATA) != 0, i % 3 != 2);
            const std::uint64_t expected = i % 3 == 2 ? 0 : i % 3 == 1 ? i : kFirst + i;
            cr_assert_eq(receives[i]->data, expected, "message %zu", static_cast<std::size_t>(i));
        }
    }
}

TRANSPORT_TEST(data_refusals, of_a_size_or_flag_not_offered__name_it) {
    only_dat();
    auto pair = Pair::connected(transport);
    fid_ep* ep = pair->active.get();
    cr_assert_eq(pair->near.info()->domain_attr->cq_data_size, transport.device ? 4 : 8);
    if (transport.device)
        cr_assert_eq(fi_senddata(ep, "x", 1, nullptr, std::uint64_t{1} << 32, 0, nullptr),
                     -FI_EINVAL);
    const iovec iov{nullptr, 0};
    const fi_msg msg{&iov, nullptr, 1, 0, nullptr, 1};
    cr_assert_eq(fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA | FI_DAT_INVALIDATE), -FI_EBADFLAGS);
}

// DTO-22: the receiver learns which messages are solicited.
TRANSPORT_TEST(solicited_send, marks_the_receivers_completion) {
    only_dat();
    auto pair = Pair::connected(transport);
    for (const std::uint64_t data : {std::uint64_t{0}, std::uint64_t{FI_REMOTE_CQ_DATA}}) {
        for (const std::uint64_t solicited : {std::uint64_t{0}, std::uint64_t{FI_DAT_SOLICITED}}) {
            Bytes in(10);
            Op& receive = pair->passive().recv(in.data(), in.size());
            char out = 'x';
            const iovec iov{&out, 1};
            Op& sent = new_op();
            const fi_msg msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &sent, kData};
            DAT_MUST(static_cast<int>(
                fi_sendmsg(pair->active.get(), &msg, FI_COMPLETION | data | solicited)));
            wait_op(sent);
            wait_op(receive);
            cr_assert_eq(receive.flags, FI_RECV | FI_MSG | data | solicited);
        }
    }
}
