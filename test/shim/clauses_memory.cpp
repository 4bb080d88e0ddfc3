// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Memory that cannot be touched is refused when it is registered (U-72), and handles and regions
// take no more address space than they need.
#include "../attack/memory_kinds.h"
#include "../transport/sanitized.h"
#include "pair.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>
#include <memory>

using namespace dat::test;

namespace {

constexpr DAT_MEM_PRIV_FLAGS kReading[] = {DAT_MEM_PRIV_NONE_FLAG, DAT_MEM_PRIV_LOCAL_READ_FLAG,
                                           DAT_MEM_PRIV_REMOTE_READ_FLAG};
constexpr DAT_MEM_PRIV_FLAGS kWriting[] = {DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
                                           DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_MEM_PRIV_ALL_FLAG};
constexpr std::size_t kSizes[] = {std::size_t{64} << 10, std::size_t{16} << 20};

DAT_RETURN add(const Adapter& adapter, const Range& range, DAT_MEM_PRIV_FLAGS privileges,
               DAT_LMR_HANDLE& lmr) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = range.data();
    DAT_LMR_CONTEXT lmr_context = 0;
    return lmr_create(adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, range.size, adapter.pz, privileges,
                      &lmr, &lmr_context, nullptr, nullptr, nullptr);
}

void require_refused(const Adapter& adapter, const Range& range, DAT_MEM_PRIV_FLAGS privileges) {
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    const DAT_RETURN rc = add(adapter, range, privileges, lmr);
    cr_assert_eq(DAT_GET_TYPE(rc), static_cast<DAT_UINT32>(DAT_INVALID_ADDRESS),
                 "memory %s of %zu bytes, privileges 0x%x, is %s", range.what.c_str(), range.size,
                 static_cast<unsigned>(privileges), words(rc));
    cr_assert_eq(lmr, DAT_HANDLE_NULL);
}

void require_taken(const Adapter& adapter, const Range& range, DAT_MEM_PRIV_FLAGS privileges) {
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    const DAT_RETURN rc = add(adapter, range, privileges, lmr);
    cr_assert_eq(rc, DAT_SUCCESS, "memory %s of %zu bytes, privileges 0x%x, is %s",
                 range.what.c_str(), range.size, static_cast<unsigned>(privileges), words(rc));
    EXPECT_OK(dat_lmr_free(lmr));
}

} // namespace

// U-72
Test(shim_memory, that_cannot_be_touched__is_refused) {
    Adapter adapter;
    for (const std::size_t size : kSizes) {
        for (const Range& range : untouchable(size)) {
            for (const auto privileges : kReading)
                require_refused(adapter, range, privileges);
            for (const auto privileges : kWriting)
                require_refused(adapter, range, privileges);
        }
    }
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    EXPECT_TYPE(add(adapter, Range("NULL", std::uintptr_t{0}, 4096), kReading[1], lmr),
                DAT_INVALID_PARAMETER);
    EXPECT_OK(dat_pz_free(adapter.pz)); // nothing that was refused uses it
}

// U-72
Test(shim_memory, that_can_be_read_alone__is_taken_for_reading) {
    Adapter adapter;
    for (const std::size_t size : kSizes) {
        for (const Range& range : read_only(size)) {
            for (const auto privileges : kReading)
                require_taken(adapter, range, privileges);
            for (const auto privileges : kWriting)
                require_refused(adapter, range, privileges);
        }
    }
}

// U-72
Test(shim_memory, of_each_kind__is_taken) {
    Adapter adapter;
    for (const std::size_t size : kSizes) {
        for (const Range& range : touchable(size)) {
            for (const auto privileges : kWriting)
                require_taken(adapter, range, privileges);
        }
    }
}

// fi_dat(7), FI_DAT_CHECK_BUFFERS: memory that was unmapped behind the library is looked at by
// each kind of post; those before and after it go through.
Test(shim_memory, that_is_gone__is_refused_at_the_post_where_that_is_wanted) {
    setenv("FI_DAT_CHECK_BUFFERS", "1", 1);
    Pair pair;
    constexpr std::size_t kSize = 65536;
    const Range range("gone", map_anonymous(kSize, PROT_READ | PROT_WRITE), kSize);
    DAT_REGION_DESCRIPTION region{};
    region.for_va = range.data();
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT context = 0;
    EXPECT_OK(lmr_create(pair.adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, kSize, pair.adapter.pz,
                         DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, nullptr, nullptr, nullptr));
    DAT_LMR_TRIPLET gone = local_range(range.address, 64, context);
    EXPECT_OK(pair.b.receive(pair.memory.at(0, 64), 1));
    EXPECT_OK(pair.a.send(gone, 2));
    expect_dto(pair.b.recv, 1);
    expect_dto(pair.a.request, 2);

    mprotect(range.data(), kSize, PROT_NONE);
    DAT_RMR_TRIPLET remote = pair.memory.remote(0, 64);
    EXPECT_TYPE(pair.a.send(gone, 3), DAT_INVALID_ADDRESS);
    EXPECT_TYPE(pair.a.send(gone, 3, DAT_COMPLETION_SUPPRESS_FLAG), DAT_INVALID_ADDRESS);
    EXPECT_TYPE(pair.b.receive(gone, 3), DAT_INVALID_ADDRESS);
    EXPECT_TYPE(dat_ep_post_rdma_write(pair.a.ep, 1, &gone, cookie_of(3), &remote,
                                       DAT_COMPLETION_DEFAULT_FLAG),
                DAT_INVALID_ADDRESS);
    EXPECT_TYPE(dat_ep_post_rdma_read(pair.a.ep, 1, &gone, cookie_of(3), &remote,
                                      DAT_COMPLETION_DEFAULT_FLAG),
                DAT_INVALID_ADDRESS);

    EXPECT_OK(pair.b.receive(pair.memory.at(0, 64), 4));
    EXPECT_OK(pair.a.send(pair.memory.at(64, 64), 5));
    expect_dto(pair.b.recv, 4);
    expect_dto(pair.a.request, 5);
}

// GEN-6, U-23: 100,000 objects, the handles of which stay readable and are refused once they are
// freed.
Test(shim_memory, a_hundred_thousand_handles__work) {
    Adapter adapter;
    std::vector<DAT_PZ_HANDLE> zones(100'000);
    for (DAT_PZ_HANDLE& zone : zones) {
        EXPECT_OK(dat_pz_create(adapter.ia, &zone));
    }
    DAT_PZ_PARAM param;
    for (DAT_PZ_HANDLE zone : zones) {
        EXPECT_OK(dat_pz_query(zone, DAT_PZ_FIELD_ALL, &param));
    }
    for (DAT_PZ_HANDLE zone : zones) {
        EXPECT_OK(dat_pz_free(zone));
    }
    for (DAT_PZ_HANDLE zone : zones) {
        EXPECT_TYPE(dat_pz_query(zone, DAT_PZ_FIELD_ALL, &param), DAT_INVALID_HANDLE);
        std::uintptr_t word = 0; // what a genuine libdat2 would call through
        std::memcpy(&word, zone, sizeof word);
        cr_assert_neq(word, 0);
    }
}

// Regions too: each has a context of its own, and posts are checked with any of them.
Test(shim_memory, ten_thousand_regions__have_a_context_each) {
    Pair pair;
    std::vector<std::unique_ptr<Memory>> regions(10'000);
    for (auto& region : regions) {
        region = std::make_unique<Memory>(pair.adapter);
    }
    std::uint64_t cookie = 0;
    for (std::size_t i = 0; i < regions.size(); i += 999) {
        EXPECT_OK(pair.b.receive(pair.memory.at(0, 64), ++cookie));
        EXPECT_OK(pair.a.send(regions[i]->at(0, 64), cookie));
        expect_dto(pair.b.recv, cookie);
        expect_dto(pair.a.request, cookie);
    }
    const DAT_LMR_CONTEXT last = regions.back()->lmr_context;
    for (const auto& region : regions) {
        EXPECT_OK(dat_lmr_free(region->lmr));
    }
    for (const std::uint32_t wild : {0U, 1U, ~0U, 0x7fffffffU, static_cast<unsigned>(last)}) {
        DAT_LMR_TRIPLET piece = pair.memory.at(0, 8);
        piece.lmr_context = static_cast<DAT_LMR_CONTEXT>(wild);
        EXPECT_TYPE(pair.a.send(piece, 1), DAT_PRIVILEGES_VIOLATION);
    }
}

namespace {

// In a child: how far it came.
int use_adapter_in_little_space() {
    const rlimit limit{std::size_t{200} << 20, std::size_t{200} << 20};
    if (!kSanitized && setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    std::string name = place().adapter;
    if (dat_ia_open(name.data(), 8, &async, &ia) != DAT_SUCCESS)
        return 2;
    for (int i = 0; i < 100'000; ++i) {
        if (dat_pz_create(ia, &pz) != DAT_SUCCESS)
            return 3;
    }
    return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS ? 0 : 4;
}

} // namespace

Test(shim_memory, under_a_limit_of_address_space__an_adapter_opens) {
    const pid_t child = fork();
    if (child == 0)
        _exit(use_adapter_in_little_space());
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x",
              static_cast<unsigned>(status));
}
