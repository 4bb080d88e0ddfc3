// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: registered memory. Each call that registers with each combination of
// rights, and the same memory registered again.
#include "suite.h"

#include <algorithm>
#include <array>
#include <sys/mman.h>

using namespace dat::test;

namespace {

constexpr std::array<std::uint64_t, 6> kRights{FI_SEND,  FI_RECV,        FI_READ,
                                               FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
constexpr std::size_t kCombinations = std::size_t{1} << kRights.size();
constexpr std::uint64_t kLocal = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
constexpr std::uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;

std::uint64_t combination(std::size_t number) {
    std::uint64_t access = 0;
    for (std::size_t i = 0; i < kRights.size(); ++i)
        access |= (number >> i & 1) != 0 ? kRights[i] : 0;
    return access;
}

enum class Call { reg, regv, regattr };
constexpr Call kCalls[] = {Call::reg, Call::regv, Call::regattr};

// Memory that somebody else owns, registered by one of the calls.
struct Registered {
    Fid<fid_mr> mr;
    Remote remote{};

    // `key`: where keys are the program's; else another with each.
    Registered(Side& side, void* base, std::size_t size, std::uint64_t access,
               Call call = Call::reg, std::optional<std::uint64_t> key = {}) {
        static std::uint64_t next_key = 0x100000;
        static int context = 0;
        const std::uint64_t requested = key ? *key : ++next_key;
        const iovec range{base, size};
        fi_mr_attr attr{};
        attr.mr_iov = &range;
        attr.iov_count = 1;
        attr.access = access;
        attr.requested_key = requested;
        attr.context = &context;
        switch (call) {
        case Call::reg:
            DAT_MUST(
                fi_mr_reg(side.domain(), base, size, access, 0, requested, 0, mr.out(), &context));
            break;
        case Call::regv:
            DAT_MUST(
                fi_mr_regv(side.domain(), &range, 1, access, 0, requested, 0, mr.out(), &context));
            break;
        case Call::regattr:
            DAT_MUST(fi_mr_regattr(side.domain(), &attr, 0, mr.out()));
            break;
        }
        cr_assert_eq(mr->fid.context, &context);
        cr_assert_eq(mr->fid.fclass, FI_CLASS_MR);
        const int mode = side.info()->domain_attr->mr_mode;
        const std::uint64_t given = fi_mr_key(mr.get());
        const bool reached = (access & kRemote) != 0;
        if ((mode & FI_MR_PROV_KEY) == 0)
            cr_assert_eq(given, reached ? requested : FI_KEY_NOTAVAIL);
        // A peer may try what was asked for where no key was given.
        remote = {(mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(base) : 0,
                  given == FI_KEY_NOTAVAIL ? requested : given};
    }
    Remote at(std::size_t offset) const { return {remote.address + offset, remote.key}; }
};

struct Ends {
    std::unique_ptr<Pair> pair;

    explicit Ends(const Transport& transport, int mr_mode = 0) {
        SideOptions options;
        options.mr_mode = mr_mode;
        pair = Pair::connected(transport, options, options);
    }
    bool write(std::uint8_t value, Remote to) {
        Op& op = pair->active.write_confirmed(&value, 1, to);
        wait_op(op);
        if (!op.ok())
            return false;
        // A message behind it tells that it is there, which not every device waits for (DTO-15).
        std::uint8_t note = 0;
        Op& receive = pair->passive().recv(&note, 1);
        wait_op(pair->active.send(&value, 1));
        wait_op(receive);
        return true;
    }
    bool read(std::uint8_t& value, Remote from) {
        Op& op = pair->active.read(&value, 1, from);
        wait_op(op);
        return op.ok();
    }
    std::uint8_t read(Remote from) {
        std::uint8_t value = 0;
        cr_assert(read(value, from));
        return value;
    }
    // After a refusal.
    void connect_again() {
        wait_shutdown(pair->active);
        wait_shutdown(pair->passive());
        DAT_MUST(pair->active.reset());
        pair->accepted.reset();
        pair->connect();
    }
};

// The program names the memory of each operation.
constexpr int kNamed = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

// Each operation that `access` lets the owner do with the memory, named by its descriptor: of
// kSize bytes, which no device takes inline. The memory is at the active side, `there` at the
// passive one.
constexpr std::size_t kSize = 1024;

void use_locally(Ends& ends, std::uint64_t access, std::uint8_t* memory, void* descriptor,
                 Bytes& there, const Registered& target) {
    Endpoint& ep = ends.pair->active;
    Endpoint& peer = ends.pair->passive();
    const Remote remote = target.at(0);
    const auto run = [](const std::function<ssize_t(Op&)>& post) {
        Op& op = new_op();
        cr_assert_eq(post_when_possible([&] { return post(op); }), 0);
        wait_op(op);
        cr_assert(op.ok(), "error %d", op.err);
    };
    if (access & FI_WRITE) {
        std::fill_n(memory, kSize, std::uint8_t{11});
        run([&](Op& op) {
            return fi_write(ep.get(), memory, kSize, descriptor, FI_ADDR_UNSPEC, remote.address,
                            remote.key, &op);
        });
        cr_assert_eq(ends.read(target.at(kSize - 1)), 11);
    }
    if (access & FI_READ) {
        std::fill_n(there.data(), kSize, std::uint8_t{22});
        run([&](Op& op) {
            return fi_read(ep.get(), memory, kSize, descriptor, FI_ADDR_UNSPEC, remote.address,
                           remote.key, &op);
        });
        cr_assert(same(memory, there.data(), kSize));
    }
    Bytes message(kSize);
    if (access & FI_SEND) {
        Op& receive = peer.recv(message.data(), kSize);
        std::fill_n(memory, kSize, std::uint8_t{33});
        run([&](Op& op) {
            return fi_send(ep.get(), memory, kSize, descriptor, FI_ADDR_UNSPEC, &op);
        });
        wait_op(receive);
        cr_assert(same(memory, message.data(), kSize));
    }
    if (access & FI_RECV) {
        std::fill_n(message.data(), kSize, std::uint8_t{44});
        Op& receive = new_op();
        DAT_MUST(fi_recv(ep.get(), memory, kSize, descriptor, FI_ADDR_UNSPEC, &receive));
        wait_op(peer.send(message.data(), kSize));
        wait_op(receive);
        cr_assert(receive.ok(), "error %d", receive.err);
        cr_assert(same(memory, message.data(), kSize));
    }
}

} // namespace

TRANSPORT_TEST(mr_rights, of_each_combination_by_each_call__can_be_used) {
    Ends ends(transport, kNamed);
    Bytes memory(kSize);
    Bytes there(kSize);
    const Registered target(ends.pair->far, there.data(), kSize, kRemote);
    for (const Call call : kCalls) {
        for (std::size_t i = 0; i < kCombinations; ++i) {
            const std::uint64_t access = combination(i);
            Registered own(ends.pair->near, memory.data(), kSize, access, call);
            use_locally(ends, access, memory.data(), fi_mr_desc(own.mr.get()), there, target);
            Registered theirs(ends.pair->far, memory.data(), kSize, access, call);
            if (access & FI_REMOTE_WRITE) {
                cr_assert(ends.write(static_cast<std::uint8_t>(i), theirs.at(0)));
                cr_assert_eq(memory[0], i);
            }
            memory[0] = static_cast<std::uint8_t>(i + 100);
            if (access & FI_REMOTE_READ)
                cr_assert_eq(ends.read(theirs.at(0)), i + 100);
            DAT_MUST(own.mr.close());
            DAT_MUST(theirs.mr.close());
        }
    }
}

// Whose memory need not be registered: then descriptors say nothing (fi_mr(3), FI_MR_LOCAL).
TRANSPORT_TEST(mr_rights, of_a_program_that_names_nothing__need_no_descriptor) {
    only_dat();
    SideOptions options;
    options.threading = FI_THREAD_DOMAIN;
    const std::unique_ptr<Pair> pair = Pair::connected(transport, options, options);
    void* const nothing = reinterpret_cast<void*>(std::uintptr_t{8});
    Bytes from(kSize, std::uint8_t{1});
    Bytes into(kSize);
    Op& receive = new_op();
    DAT_MUST(fi_recv(pair->passive().get(), into.data(), kSize, nothing, FI_ADDR_UNSPEC, &receive));
    Op& send = new_op();
    DAT_MUST(fi_send(pair->active.get(), from.data(), kSize, nothing, FI_ADDR_UNSPEC, &send));
    wait_op(send);
    wait_op(receive);
    cr_assert(receive.ok() && same(into.data(), from.data(), kSize));
}

// What the owner may do gives a peer nothing, and one right does not give the other.
TRANSPORT_TEST(mr_rights, that_a_combination_leaves_out__are_refused) {
    only_dat();
    Ends ends(transport);
    std::uint8_t memory = 7;
    for (const Call call : kCalls) {
        for (const std::uint64_t local : {std::uint64_t{0}, kLocal}) {
            for (const std::uint64_t remote : {std::uint64_t{0}, std::uint64_t{FI_REMOTE_READ},
                                               std::uint64_t{FI_REMOTE_WRITE}}) {
                const Registered theirs(ends.pair->far, &memory, 1, local | remote, call);
                std::uint8_t value = 5;
                if ((remote & FI_REMOTE_WRITE) == 0) {
                    cr_assert_not(ends.write(9, theirs.at(0)));
                    cr_assert_eq(memory, 7);
                    ends.connect_again();
                }
                if ((remote & FI_REMOTE_READ) == 0) {
                    cr_assert_not(ends.read(value, theirs.at(0)));
                    cr_assert_eq(value, 5);
                    ends.connect_again();
                }
            }
        }
    }
}

// Each has its own key, bounds and end.
TRANSPORT_TEST(mr_again, overlapping_while_the_first_stands__each_goes_its_own_way) {
    Ends ends(transport);
    Bytes memory(12'288);
    const auto make = [&](std::size_t from, std::size_t size) {
        return std::make_unique<Registered>(ends.pair->far, memory.data() + from, size, kRemote);
    };
    struct Range {
        std::size_t from, size;
    };
    constexpr Range kRanges[] = {{4096, 4096}, {4096, 4096}, {5000, 100},
                                 {0, 5000},    {8000, 4288}, {0, 12'288}};
    std::vector<std::unique_ptr<Registered>> regions;
    for (const Range& range : kRanges)
        regions.push_back(make(range.from, range.size));
    for (std::size_t closed = 0; closed < regions.size(); ++closed) {
        for (std::size_t i = closed; i < regions.size(); ++i) {
            const Range& range = kRanges[i];
            const auto mark = static_cast<std::uint8_t>(16 * closed + i + 1);
            for (const std::size_t offset : {std::size_t{0}, range.size - 1}) {
                cr_assert(ends.write(mark, regions[i]->at(offset)));
                cr_assert_eq(memory[range.from + offset], mark);
                cr_assert_eq(ends.read(regions[i]->at(offset)), mark);
            }
            for (std::size_t j = 0; j < i; ++j)
                cr_assert_neq(regions[i]->remote.key, regions[j]->remote.key);
        }
        DAT_MUST(regions[closed]->mr.close());
    }
}

// A key that ended stays so while the same memory has another.
TRANSPORT_TEST(mr_again, overlapping__the_closed_one_is_refused) {
    only_dat();
    Ends ends(transport);
    std::uint8_t memory = 7;
    Registered first(ends.pair->far, &memory, 1, kRemote);
    const Registered second(ends.pair->far, &memory, 1, kRemote);
    DAT_MUST(first.mr.close());
    cr_assert_not(ends.write(9, first.at(0)));
    cr_assert_eq(memory, 7);
    ends.connect_again();
    cr_assert(ends.write(9, second.at(0)));
    cr_assert_eq(memory, 9);
}

TRANSPORT_TEST(mr_again, after_it_was_closed__has_the_new_rights) {
    Ends ends(transport);
    std::uint8_t memory = 0;
    for (std::uint8_t round = 0; round < 20; ++round) {
        const bool writes = round % 2 == 0;
        const Registered region(ends.pair->far, &memory, 1,
                                writes ? FI_REMOTE_WRITE : FI_REMOTE_READ, kCalls[round % 3], 77);
        if (writes) {
            cr_assert(ends.write(round, region.at(0)));
            cr_assert_eq(memory, round);
        } else {
            cr_assert_eq(ends.read(region.at(0)), round - 1);
        }
    }
}

TRANSPORT_TEST(mr_again, with_less_under_the_same_key__is_refused_what_it_had) {
    only_dat();
    Ends ends(transport);
    std::uint8_t memory = 7;
    {
        const Registered more(ends.pair->far, &memory, 1, kRemote, Call::reg, 77);
        cr_assert(ends.write(8, more.at(0)));
    }
    const Registered less(ends.pair->far, &memory, 1, FI_REMOTE_READ, Call::reg, 77);
    cr_assert_eq(ends.read(less.at(0)), 8);
    cr_assert_not(ends.write(9, less.at(0)));
    cr_assert_eq(memory, 8);
}

// The address is the same, the pages are others: of peers and of the owner.
TRANSPORT_TEST(mr_again, at_an_address_that_was_unmapped__is_the_new_memory) {
    Ends ends(transport, kNamed);
    const auto map = [](void* at) {
        void* const memory = mmap(at, kSize, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
        cr_assert_neq(memory, MAP_FAILED);
        return static_cast<std::uint8_t*>(memory);
    };
    std::uint8_t* memory = map(nullptr);
    Bytes there(kSize);
    const Registered target(ends.pair->far, there.data(), kSize, kRemote);
    for (std::uint8_t round = 1; round < 10; ++round) {
        Registered theirs(ends.pair->far, memory, kSize, kRemote);
        Registered own(ends.pair->near, memory, kSize, kLocal);
        cr_assert(ends.write(round, theirs.at(kSize - 1)));
        cr_assert_eq(memory[kSize - 1], round);
        cr_assert_eq(ends.read(theirs.at(0)), 0);
        use_locally(ends, kLocal, memory, fi_mr_desc(own.mr.get()), there, target);
        DAT_MUST(theirs.mr.close());
        DAT_MUST(own.mr.close());
        cr_assert_eq(munmap(memory, kSize), 0);
        memory = map(memory);
    }
    munmap(memory, kSize);
}

// What an operation was posted with stands; others of the same memory may end meanwhile.
TRANSPORT_TEST(mr_again, closed_while_an_operation_of_the_other_waits__does_not_harm_it) {
    Ends ends(transport, kNamed);
    Bytes memory(4096);
    Registered first(ends.pair->near, memory.data(), memory.size(), kLocal);
    std::uint8_t out = 0;
    for (const bool larger : {false, true}) {
        Registered second(ends.pair->near, memory.data(), larger ? memory.size() : 100,
                          kLocal | kRemote);
        Op& receive = new_op();
        DAT_MUST(fi_recv(ends.pair->active.get(), memory.data(), 1, fi_mr_desc(first.mr.get()),
                         FI_ADDR_UNSPEC, &receive));
        DAT_MUST(second.mr.close());
        ++out;
        wait_op(ends.pair->passive().send(&out, 1));
        wait_op(receive);
        cr_assert(receive.ok(), "error %d", receive.err);
        cr_assert_eq(memory[0], out);
    }
}
