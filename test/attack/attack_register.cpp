// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory that cannot be touched is refused when it is registered, as a device does (U-72), and all
// that can be is taken.
#include "../transport/suite.h"
#include "memory_kinds.h"

#include <cstring>

using namespace dat::test;

namespace {

constexpr std::uint64_t kReading = FI_SEND | FI_WRITE | FI_REMOTE_READ;
constexpr std::uint64_t kWriting[] = {FI_RECV, FI_READ, FI_REMOTE_WRITE, kReading | FI_RECV,
                                      FI_REMOTE_READ | FI_REMOTE_WRITE};
// One that is touched, and one that is looked up.
constexpr std::size_t kSizes[] = {std::size_t{64} << 10, std::size_t{16} << 20};

enum class Call { reg, regv, regattr };
constexpr Call kCalls[] = {Call::reg, Call::regv, Call::regattr};

int add(Side& side, const Range& range, std::uint64_t access, Call call, Fid<fid_mr>& mr,
        std::uint64_t key = 77) {
    const iovec piece{range.data(), range.size};
    fi_mr_attr attr{};
    attr.mr_iov = &piece;
    attr.iov_count = 1;
    attr.access = access;
    attr.requested_key = key;
    switch (call) {
    case Call::reg:
        return fi_mr_reg(side.domain(), piece.iov_base, piece.iov_len, access, 0, key, 0, mr.out(),
                         nullptr);
    case Call::regv:
        return fi_mr_regv(side.domain(), &piece, 1, access, 0, key, 0, mr.out(), nullptr);
    default:
        return fi_mr_regattr(side.domain(), &attr, 0, mr.out());
    }
}

void require_refused(Side& side, const Range& range, std::uint64_t access, Call call) {
    Fid<fid_mr> mr;
    const int rc = add(side, range, access, call, mr);
    cr_assert_eq(rc, -FI_EFAULT, "memory %s of %zu bytes, access 0x%llx, is %d", range.what.c_str(),
                 range.size, static_cast<unsigned long long>(access), rc);
    cr_assert_not(mr);
}

void require_taken(Side& side, const Range& range, std::uint64_t access, Call call) {
    Fid<fid_mr> mr;
    const int rc = add(side, range, access, call, mr);
    cr_assert_eq(rc, 0, "memory %s of %zu bytes, access 0x%llx, is %d", range.what.c_str(),
                 range.size, static_cast<unsigned long long>(access), rc);
    DAT_MUST(mr.close());
}

} // namespace

TRANSPORT_TEST(attack_register, memory_that_cannot_be_touched__is_refused) {
    only_dat();
    Side side(transport);
    for (const std::size_t size : kSizes) {
        for (const Call call : kCalls) {
            for (const Range& range : untouchable(size)) {
                require_refused(side, range, 0, call);
                require_refused(side, range, kReading, call);
                for (const std::uint64_t access : kWriting)
                    require_refused(side, range, access, call);
            }
        }
    }
    // A NULL buffer is an argument that is wrong in itself.
    Fid<fid_mr> mr;
    cr_assert_eq(add(side, Range("NULL", std::uintptr_t{0}, 4096), kReading, Call::reg, mr),
                 -FI_EINVAL);
    // The key that was asked for is free.
    const Range good = std::move(touchable(kSizes[0]).front());
    require_taken(side, good, kReading, Call::reg);
}

TRANSPORT_TEST(attack_register, memory_that_can_be_read_alone__is_taken_for_reading) {
    only_dat();
    Side side(transport);
    for (const std::size_t size : kSizes) {
        for (const Call call : kCalls) {
            for (const Range& range : read_only(size)) {
                require_taken(side, range, 0, call);
                require_taken(side, range, kReading, call);
                for (const std::uint64_t access : kWriting)
                    require_refused(side, range, access, call);
            }
        }
    }
    static const char kConstant[] = "of the program's own file";
    require_taken(side,
                  Range("constant", reinterpret_cast<std::uintptr_t>(kConstant), sizeof kConstant),
                  kReading, Call::reg);
}

TRANSPORT_TEST(attack_register, memory_of_each_kind__is_taken_and_left_as_it_is) {
    only_dat();
    Side side(transport);
    for (const std::size_t size : kSizes) {
        for (const Call call : kCalls) {
            for (const Range& range : touchable(size)) {
                range.data()[0] = 1;
                range.data()[range.size / 2] = 2;
                for (const std::uint64_t access : kWriting)
                    require_taken(side, range, access, call);
                require_taken(side, range, kReading, call);
                cr_assert(range.data()[0] == 1 && range.data()[range.size / 2] == 2);
            }
        }
    }
    std::uint8_t local[100];
    std::memset(local, 7, sizeof local);
    const auto at = reinterpret_cast<std::uintptr_t>(local);
    require_taken(side, Range("stack", at, sizeof local), kWriting[4], Call::reg);
    cr_assert(local[0] == 7 && local[99] == 7);
    require_taken(side, Range("of no length", at, 0), kWriting[4], Call::reg);
    require_taken(side, Range("of no length, nowhere", std::uintptr_t{1} << 40, 0), kReading,
                  Call::reg);
}

// What is hardly used stays so.
TRANSPORT_TEST(attack_register, a_gibibyte_that_nobody_has_touched__takes_no_memory) {
    only_dat();
    Side side(transport);
    constexpr std::size_t kSize = std::size_t{1} << 30;
    constexpr int kBoth = PROT_READ | PROT_WRITE;
    const Range ranges[] = {
        {"anonymous", map_anonymous(kSize, kBoth), kSize},
        {"shared", map_anonymous(kSize, kBoth, MAP_SHARED), kSize},
        {"a file", map_file(kSize, kSize, kBoth), kSize},
    };
    for (const Range& range : ranges) {
        const std::size_t before = resident();
        Fid<fid_mr> mr;
        DAT_MUST(add(side, range, FI_REMOTE_READ | FI_REMOTE_WRITE, Call::reg, mr));
        cr_assert_lt(resident(), before + (std::size_t{64} << 20));
        DAT_MUST(mr.close());
    }
}

// A mapping with a long path, and many mappings, in the list that large ranges are looked up in.
TRANSPORT_TEST(attack_register, many_mappings__are_looked_through) {
    only_dat();
    Side side(transport);
    const std::size_t page = page_size();
    const Range many("many", map_anonymous(4000 * page, PROT_READ), 4000 * page);
    for (std::size_t i = 0; i < 4000; i += 2)
        mprotect(many.data() + i * page, page, PROT_READ | PROT_WRITE);
    require_taken(side, many, kReading, Call::reg);
    require_refused(side, many, FI_REMOTE_WRITE, Call::reg);
    for (std::size_t i = 1; i < 4000; i += 2)
        mprotect(many.data() + i * page, page, PROT_READ | PROT_WRITE);
    require_taken(side, many, FI_REMOTE_WRITE, Call::reg);
}
