// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: addresses of FI_EP_RDM, and whom a message came from: fi_av(3), FI_SOURCE,
// FI_SOURCE_ERR.
#include "rdm.h"
#include "sanitized.h"
#include "suite.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace dat::test;

// The oldest number of an address is the source of what comes from there.
TRANSPORT_TEST(rdm, an_address_that_is_inserted_twice__has_two_numbers) {
    only_dat();
    RdmNode a(transport);
    RdmNode b(transport);
    const fi_addr_t to_a = b.know(a);
    const auto source_of_next = [&] {
        RdmOp& in = a.trecv(1, nullptr, 0);
        b.tsend(to_a, 1, nullptr, 0);
        RdmNode::wait(in);
        return in.source;
    };
    cr_assert_eq(source_of_next(), FI_ADDR_NOTAVAIL);
    std::array<fi_addr_t, 4> numbers{};
    for (fi_addr_t& number : numbers) {
        number = a.know(b);
    }
    cr_assert_eq(source_of_next(), numbers[0]);
    const auto remove = [&](fi_addr_t number) { DAT_MUST(fi_av_remove(a.av, &number, 1, 0)); };
    remove(numbers[1]);
    remove(numbers[0]);
    cr_assert_eq(source_of_next(), numbers[2]);
    remove(numbers[3]);
    const fi_addr_t last = a.know(b);
    remove(numbers[2]);
    cr_assert_eq(source_of_next(), last);
    remove(last);
    cr_assert_eq(source_of_next(), FI_ADDR_NOTAVAIL);
    const fi_addr_t again = a.know(b);
    cr_assert_eq(source_of_next(), again);
}

// FI_SOURCE_ERR, fi_cq(3): the message is there, and the error entry has the address.
TRANSPORT_TEST(rdm, an_unknown_source__is_told_by_its_address) {
    only_dat();
    RdmNode::Options options;
    options.caps |= FI_SOURCE_ERR;
    RdmNode a(transport, options);
    cr_assert_neq(a.info().caps & FI_SOURCE_ERR, 0);
    RdmNode b(transport);
    cr_assert_eq(b.info().caps & FI_SOURCE_ERR, 0);
    const fi_addr_t to_a = b.know(a);
    const fi_addr_t to_self = b.know(b);
    Bytes in(1 << 20);
    for (const std::size_t size : {std::size_t{0}, std::size_t{64}, in.size()}) {
        for (const bool expected : {true, false}) {
            const Bytes out = pattern(size, 5);
            RdmOp* receive = expected ? &a.trecv(5, in.data(), in.size()) : nullptr;
            RdmOp& data = b.op();
            b.post(
                [&] { return fi_tsenddata(b.ep, out.data(), size, nullptr, 7, to_a, 5, &data); });
            if (!expected) { // it is there before its receive
                b.tsend(to_a, 6, nullptr, 0);
                RdmNode::wait(a.trecv(6, nullptr, 0));
                receive = &a.trecv(5, in.data(), in.size());
            }
            RdmNode::wait(*receive);
            cr_assert_eq(receive->err, FI_EADDRNOTAVAIL);
            cr_assert_eq(receive->err_data, b.address());
            cr_assert_eq(receive->entry.len, size);
            cr_assert_eq(receive->entry.tag, 5);
            cr_assert_eq(receive->entry.data, 7);
            cr_assert_neq(receive->entry.flags & FI_REMOTE_CQ_DATA, 0);
            cr_assert_eq(receive->olen, 0);
            cr_assert(std::equal(out.begin(), out.end(), in.begin()));
            cr_assert(RdmNode::wait(data).ok());
        }
    }
    // One that did not fit says that.
    b.tsend(to_a, 8, "longer", 6);
    cr_assert_eq(RdmNode::wait(a.trecv(8, in.data(), 1)).err, FI_ETRUNC);
    // Who does not ask for it is told nothing.
    b.tsend(to_self, 9, nullptr, 0);
    fi_addr_t self = to_self;
    DAT_MUST(fi_av_remove(b.av, &self, 1, 0));
    cr_assert(RdmNode::wait(b.trecv(9, nullptr, 0)).ok());
    // From then on it is known, by the address that came.
    const fi_addr_t known = a.know(b);
    b.tsend(to_a, 5, nullptr, 0);
    RdmOp& last = RdmNode::wait(a.trecv(5, in.data(), in.size()));
    cr_assert(last.ok());
    cr_assert_eq(last.source, known);
}

// It goes into the program's room, as far as that goes.
TRANSPORT_TEST(rdm, the_address_of_an_unknown_source__is_copied_where_there_is_room) {
    only_dat();
    RdmNode::Options options;
    options.caps |= FI_SOURCE_ERR;
    RdmNode a(transport, options);
    RdmNode b(transport);
    const fi_addr_t to_a = b.know(a);
    const std::string expected = b.address();
    for (const std::size_t room : {expected.size() + 8, std::size_t{4}}) {
        RdmOp& receive = a.trecv(5, nullptr, 0);
        RdmOp& send = b.tsend(to_a, 5, nullptr, 0);
        fi_cq_tagged_entry entry{};
        ssize_t got = -FI_EAGAIN;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (got == -FI_EAGAIN && std::chrono::steady_clock::now() < end) {
            b.poll();
            got = fi_cq_read(a.cq, &entry, 1);
        }
        cr_assert_eq(got, -FI_EAVAIL);
        std::string bytes(room, 'x');
        fi_cq_err_entry error{};
        error.err_data = bytes.data();
        error.err_data_size = bytes.size();
        cr_assert_eq(fi_cq_readerr(a.cq, &error, 0), 1);
        cr_assert_eq(error.op_context, &receive);
        cr_assert_eq(error.err_data, bytes.data());
        cr_assert_eq(error.err_data_size, std::min(room, expected.size()));
        cr_assert_eq(bytes.substr(0, error.err_data_size), expected.substr(0, error.err_data_size));
        RdmNode::wait_until([&] { return send.done(); }, "the end of a send");
    }
}

TRANSPORT_TEST(rdm, an_address__goes_in_and_comes_out) {
    only_dat();
    Two two(transport);
    const std::string address = two.b.address();
    std::array<char, 128> found{};
    std::size_t size = found.size();
    DAT_MUST(fi_av_lookup(two.a.av, two.to_b, found.data(), &size));
    cr_assert_eq(size, address.size());
    cr_assert(same(found.data(), address.data(), size));
    std::array<char, 128> text{};
    size = text.size();
    cr_assert_neq(std::strstr(fi_av_straddr(two.a.av, address.data(), text.data(), &size),
                              std::to_string(two.b.port()).c_str()),
                  nullptr);
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    cr_assert_eq(fi_av_insertsvc(two.a.av, transport.address, std::to_string(two.b.port()).c_str(),
                                 &number, 0, nullptr),
                 1);
    char in = 0;
    RdmOp& receive = two.b.trecv(1, &in, 1);
    cr_assert(RdmNode::wait(two.a.tsend(number, 1, "s", 1)).ok());
    cr_assert(RdmNode::wait(receive).ok());
    DAT_MUST(fi_av_remove(two.a.av, &number, 1, 0));
    cr_assert_eq(fi_tsend(two.a.ep, "s", 1, nullptr, number, 1, nullptr), -FI_EINVAL);
    std::array<fi_addr_t, 4> numbers{};
    cr_assert_eq(
        fi_av_insertsym(two.a.av, transport.address, 1, "5000", 4, numbers.data(), 0, nullptr), 4);
    size = found.size();
    DAT_MUST(fi_av_lookup(two.a.av, numbers[3], found.data(), &size));
    cr_assert_eq(static_cast<unsigned char>(found[2]) * 256 + static_cast<unsigned char>(found[3]),
                 5003);
}

// --- who is in no address vector ---

namespace {

// Endpoints that are there for one message each.
class Strangers {
  public:
    Strangers(const Transport& transport, RdmNode& server)
        : transport_(transport), home_(transport), to_server_(home_.know(server)) {}
    // The address of one that has sent its message, and gone.
    std::string one(std::uint64_t tag) {
        RdmNode::Options options;
        options.domain_of = &home_;
        RdmNode stranger(transport_, options);
        const std::string address = stranger.address();
        cr_assert(RdmNode::wait(stranger.tsend(to_server_, tag, &tag, sizeof tag)).ok());
        return address;
    }

    // One leaves `count` messages of that size. False: it could not.
    bool leaves(std::size_t count, std::size_t size) {
        RdmNode::Options options;
        options.domain_of = &home_;
        RdmNode stranger(transport_, options);
        const Bytes out = pattern(size, 3);
        bool all = true;
        for (std::size_t i = 0; i < count && all; ++i) {
            all = RdmNode::wait(stranger.tsend(to_server_, 1, out.data(), size)).ok();
        }
        return all;
    }

  private:
    const Transport& transport_;
    RdmNode home_;
    fi_addr_t to_server_;
};

// Bytes of memory that the process has touched. malloc's own count has those too that threads which
// have ended gave back.
std::size_t touched() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace

// A server that is asked from ever new addresses: what one has used serves the next.
TRANSPORT_TEST(rdm, strangers_that_come_and_go__leave_nothing) {
    only_dat();
    RdmNode server(transport);
    Strangers strangers(transport, server);
    std::uint64_t in = 0;
    const auto serve = [&](std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            RdmOp& receive = server.trecv(i, &in, sizeof in);
            strangers.one(i);
            cr_assert(RdmNode::wait(receive).ok());
            cr_assert_eq(in, i);
        }
    };
    serve(20);
    const std::size_t before = touched();
    serve(400); // which are not kept: one has several thousand
    const std::size_t after = touched();
    cr_assert(kSanitized || after < before + 1'000'000, "%zu bytes more", after - before);
}

// What one has left, and what waits for one, is of nobody who comes after it.
TRANSPORT_TEST(rdm, what_a_stranger_has_left__is_of_no_other) {
    only_dat();
    RdmNode::Options options;
    options.caps |= FI_SOURCE_ERR;
    RdmNode server(transport, options);
    Strangers strangers(transport, server);
    std::uint64_t in = 0;
    const std::string first = strangers.one(1);
    // A receive that names an address which has been taken out since.
    fi_addr_t gone = server.know(strangers.one(2));
    RdmNode::wait(server.trecv(2, &in, sizeof in));
    RdmOp& waits = server.trecv(3, &in, sizeof in, 0, gone);
    DAT_MUST(fi_av_remove(server.av, &gone, 1, 0));
    for (int i = 0; i < 12; ++i) {
        RdmOp& receive = server.trecv(3, &in, sizeof in);
        const std::string address = strangers.one(3);
        cr_assert_eq(RdmNode::wait(receive).err_data, address);
        cr_assert(!waits.done() || waits.err == FI_ECANCELED);
    }
    RdmOp& held = RdmNode::wait(server.trecv(1, &in, sizeof in));
    cr_assert_eq(in, 1);
    cr_assert_eq(held.err_data, first);
}

// Messages whose senders have gone are held, but not without end: from some amount on nobody is let
// in until they were received.
TRANSPORT_TEST(rdm, strangers_who_leave_messages__do_not_take_all_memory) {
    only_dat();
    RdmNode server(transport);
    Strangers strangers(transport, server);
    constexpr std::size_t kSize = 4000;
    constexpr std::size_t kEach = 60;
    constexpr std::size_t kMost = std::size_t{80} << 20;
    std::size_t left = 0;
    while (left < kMost && strangers.leaves(kEach, kSize)) {
        left += kEach * kSize;
    }
    cr_assert_lt(left, kMost);
    cr_assert_gt(left, std::size_t{32} << 20);
    const Bytes expected = pattern(kSize, 3);
    Bytes in(kSize);
    for (; left > 0; left -= kSize) {
        cr_assert(RdmNode::wait(server.trecv(1, in.data(), kSize)).ok());
        cr_assert_eq(in, expected);
    }
    cr_assert(strangers.leaves(1, kSize)); // as before
}
