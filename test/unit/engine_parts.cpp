// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The parts of the software domain, each alone: the table of regions, the reactor and
// its timers, random numbers, socket addresses.
#include "engine/mr_table.h"
#include "engine/random.h"
#include "engine/reactor.h"
#include "net/socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <criterion/criterion.h>
#include <poll.h>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace dat::engine;

namespace {

constexpr int kZone = 0;
constexpr int kOtherZone = 0;
constexpr std::uint8_t kBoth = kRemoteRead | kRemoteWrite;

struct Regions {
    std::array<std::byte, 64> memory{};
    MrTable table;
    Regions() { table.add(7, {memory.data(), memory.size(), 0x1000, &kZone, kBoth}); }
    Refusal why(std::uint64_t address, std::uint64_t length, std::uint8_t access = kRemoteWrite,
                std::uint32_t key = 7, const void* zone = &kZone) {
        const Target target = table.find(key, address, length, access, zone);
        cr_assert_eq(target.at == nullptr, target.why != Refusal::none);
        return target.why;
    }
};

} // namespace

// RFC 5040 7.1: both ends of the range, from both sides.
Test(mr_table, access_is_allowed_up_to_the_last_byte_and_not_beyond) {
    Regions r;
    cr_assert(r.why(0x1000, 64) == Refusal::none);
    cr_assert(r.why(0x1000, 65) == Refusal::out_of_range);
    cr_assert(r.why(0x103f, 1) == Refusal::none);
    cr_assert(r.why(0x1040, 0) == Refusal::none);
    cr_assert(r.why(0x1040, 1) == Refusal::out_of_range);
    cr_assert(r.why(0x1041, 0) == Refusal::out_of_range);
    cr_assert(r.why(0x0fff, 1) == Refusal::out_of_range);
    cr_assert(r.why(0x1001, ~std::uint64_t{0}) == Refusal::out_of_range);
    cr_assert(r.why(~std::uint64_t{0}, 2) == Refusal::out_of_range);
}

// PZ-1, LMR-4, LMR-7.
Test(mr_table, key_zone_and_right_are_checked_in_that_order) {
    Regions r;
    cr_assert(r.why(0x1000, 1, kRemoteWrite, 8, &kOtherZone) == Refusal::unknown_key);
    cr_assert(r.why(0x9999, 1, kRemoteInvalidate, 7, &kOtherZone) == Refusal::wrong_zone);
    cr_assert(r.why(0x9999, 1, kRemoteInvalidate) == Refusal::no_right);
    cr_assert(r.table.remove(7));
    cr_assert(!r.table.remove(7));
    cr_assert(r.why(0x1000, 1) == Refusal::unknown_key);
}

Test(mr_table, a_key_is_given_once_and_chosen_keys_differ) {
    Regions r;
    cr_assert(!r.table.add(7, {}));
    std::vector<std::uint32_t> keys;
    for (int i = 0; i < 1000; ++i) {
        keys.push_back(r.table.add(Region{}));
    }
    std::sort(keys.begin(), keys.end());
    cr_assert(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
    cr_assert(std::find(keys.begin(), keys.end(), 0u) == keys.end());
    cr_assert_eq(r.table.size(), 1001u);
}

namespace {

struct Note final : Timer {
    explicit Note(std::string& log, char letter) : log_(log), letter_(letter) {}
    void expired() override { log_ += letter_; }
    std::string& log_;
    char letter_;
};

// Waits until the reactor has something to do, then lets it.
void turn(Reactor& reactor) {
    pollfd fd{reactor.fd(), POLLIN, 0};
    cr_assert_eq(poll(&fd, 1, 20000), 1);
    reactor.run();
}

} // namespace

Test(reactor, timers_expire_in_the_order_of_their_deadlines_and_once) {
    Reactor reactor;
    cr_assert_eq(reactor.open(), 0);
    std::string log;
    Note a(log, 'a'), b(log, 'b'), c(log, 'c'), d(log, 'd');
    const auto now = Clock::now();
    reactor.arm(a, now + std::chrono::milliseconds(30));
    reactor.arm(b, now + std::chrono::milliseconds(10));
    reactor.arm(c, now + std::chrono::milliseconds(20));
    reactor.arm(d, now + std::chrono::milliseconds(15));
    reactor.disarm(d);
    while (log.size() < 3) {
        turn(reactor);
    }
    cr_assert_str_eq(log.c_str(), "bca");
    cr_assert(!a.armed() && !b.armed() && !c.armed() && !d.armed());
}

Test(reactor, an_earlier_deadline_that_is_set_later_is_kept) {
    Reactor reactor;
    cr_assert_eq(reactor.open(), 0);
    std::string log;
    Note late(log, 'l'), soon(log, 's');
    reactor.arm(late, std::chrono::hours(1));
    reactor.arm(soon, std::chrono::milliseconds(1));
    turn(reactor);
    cr_assert_str_eq(log.c_str(), "s");
    reactor.disarm(late);
}

namespace {

// On its first call it takes another out of the reactor, and itself.
struct Remover final : Pollable {
    Remover(Reactor& reactor, int fd) : reactor_(reactor), fd_(fd) {
        cr_assert_eq(reactor.add(fd, EPOLLIN, *this), 0);
    }
    void ready(std::uint32_t) override {
        ++calls;
        cr_assert(present);
        reactor_.remove(fd_, *this);
        present = false;
        if (other->present) {
            reactor_.remove(other->fd_, *other);
            other->present = false;
        }
    }
    Reactor& reactor_;
    int fd_;
    Remover* other = nullptr;
    bool present = true;
    int calls = 0;
};

} // namespace

Test(reactor, what_is_removed_while_events_are_dispatched_is_not_called) {
    Reactor reactor;
    cr_assert_eq(reactor.open(), 0);
    const int first = eventfd(1, EFD_CLOEXEC);
    const int second = eventfd(1, EFD_CLOEXEC);
    Remover a(reactor, first), b(reactor, second);
    a.other = &b;
    b.other = &a;
    turn(reactor);
    cr_assert_eq(a.calls + b.calls, 1);
    close(first);
    close(second);
}

namespace {

struct CountedPollable final : Pollable {
    void ready(std::uint32_t) override { ++calls; }
    int calls = 0;
};

} // namespace

Test(reactor, what_is_removed_after_it_was_found_is_not_called) {
    Reactor reactor;
    cr_assert_eq(reactor.open(), 0);
    const int fd = eventfd(1, EFD_CLOEXEC);
    CountedPollable gone, there;
    cr_assert_eq(reactor.add(fd, EPOLLIN, gone), 0);
    Reactor::Found found;
    reactor.look(found);
    cr_assert_eq(found.count, 1);
    reactor.remove(fd, gone);
    cr_assert_eq(reactor.add(fd, EPOLLIN, there), 0);
    reactor.run(found);
    cr_assert_eq(gone.calls + there.calls, 0);
    reactor.look(found);
    reactor.run(found);
    cr_assert_eq(there.calls, 1);
    close(fd);
}

Test(reactor, what_is_handed_over_calls_the_other) {
    Reactor reactor;
    cr_assert_eq(reactor.open(), 0);
    const int fd = eventfd(1, EFD_CLOEXEC);
    CountedPollable before, after;
    cr_assert_eq(reactor.add(fd, EPOLLIN, before), 0);
    reactor.hand_over(before, after);
    turn(reactor);
    cr_assert_eq(before.calls, 0);
    cr_assert_eq(after.calls, 1);
    cr_assert(reactor.modify(fd, 0, after));
    cr_assert_eq(reactor.run(), 0);
    reactor.remove(fd, after);
    close(fd);
}

// Numbers are drawn some at a time: a child that went on with its parent's would give out the same.
Test(random, numbers_of_a_forked_process_are_not_those_of_its_parent) {
    using Numbers = std::array<std::uint64_t, 8>;
    const auto some = [] {
        Numbers numbers;
        std::ranges::generate(numbers, random_bits);
        return numbers;
    };
    some();
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const Numbers numbers = some();
        const bool sent = write(ends[1], numbers.data(), sizeof numbers) == sizeof numbers;
        _exit(sent ? 0 : 1);
    }
    Numbers of_child;
    cr_assert_eq(read(ends[0], of_child.data(), sizeof of_child), ssize_t{sizeof of_child});
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    for (const std::uint64_t number : some()) {
        cr_assert_eq(std::ranges::count(of_child, number), 0);
    }
    close(ends[0]);
    close(ends[1]);
}

Test(socket_address, families_sizes_and_texts) {
    using dat::net::SocketAddress;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(80);
    inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(443);
    inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
    const SocketAddress a(reinterpret_cast<sockaddr*>(&v4), sizeof v4);
    const SocketAddress b(reinterpret_cast<sockaddr*>(&v6), sizeof v6);
    cr_assert(a.text() == "192.0.2.1:80");
    cr_assert(b.text() == "[2001:db8::1]:443");
    cr_assert(!a.wildcard() && !a.loopback() && !a.multicast_or_broadcast());
    cr_assert_eq(b.port(), 443);
    SocketAddress other_port = a;
    other_port.set_port(81);
    cr_assert(a.same_host(other_port) && b.same_host(b) && !a.same_host(b));
    v4.sin_addr.s_addr ^= htonl(1);
    cr_assert(!a.same_host(SocketAddress(reinterpret_cast<sockaddr*>(&v4), sizeof v4)));
    cr_assert(!SocketAddress(reinterpret_cast<sockaddr*>(&v4), sizeof v4 - 1).valid());
    cr_assert(!SocketAddress(reinterpret_cast<sockaddr*>(&v6), sizeof v4).valid());
    cr_assert(!SocketAddress(nullptr, 99).valid());
    inet_pton(AF_INET, "127.3.2.1", &v4.sin_addr);
    cr_assert(SocketAddress(reinterpret_cast<sockaddr*>(&v4), sizeof v4).loopback());
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
    cr_assert(SocketAddress(reinterpret_cast<sockaddr*>(&v6), sizeof v6).loopback());
    inet_pton(AF_INET, "224.0.0.1", &v4.sin_addr);
    cr_assert(SocketAddress(reinterpret_cast<sockaddr*>(&v4), sizeof v4).multicast_or_broadcast());
}
