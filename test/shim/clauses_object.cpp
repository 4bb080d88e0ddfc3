// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Handles, adapters, zones, memory. A comment above a test names what it proves.
#include "pair.h"

#include "../transport/sanitized.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace dat::test;

// GEN-6, U-23
Test(shim_object, stale_and_wild_handles__are_refused) {
    Adapter adapter;
    DAT_PZ_HANDLE pz;
    EXPECT_OK(dat_pz_create(adapter.ia, &pz));
    EXPECT_OK(dat_pz_free(pz));
    EXPECT_TYPE(dat_pz_free(pz), DAT_INVALID_HANDLE);
    int local = 0;
    EXPECT_TYPE(dat_ep_free(&local), DAT_INVALID_HANDLE);
    EXPECT_TYPE(dat_ep_free(adapter.pz), DAT_INVALID_HANDLE);
    EXPECT_TYPE(dat_ep_free(DAT_HANDLE_NULL), DAT_INVALID_HANDLE);
    EXPECT_TYPE(dat_evd_free(static_cast<char*>(adapter.async) + 8), DAT_INVALID_HANDLE);
    DAT_PZ_HANDLE other;
    EXPECT_OK(dat_pz_create(adapter.ia, &other));
    cr_assert_neq(other, pz, "the value of a handle is used again at once");
}

// IA-1, IA-2, OBJ-2
Test(shim_object, an_adapter_opened_twice__is_two_instances) {
    Adapter one;
    Adapter two;
    cr_assert_neq(one.ia, two.ia);
    cr_assert_neq(one.async, two.async);
    DAT_EP_HANDLE ep;
    EXPECT_TYPE(dat_ep_create(one.ia, one.pz, two.evd(DAT_EVD_DTO_FLAG), DAT_HANDLE_NULL,
                              DAT_HANDLE_NULL, nullptr, &ep),
                DAT_INVALID_HANDLE);
}

// IA-7, IA-8, IA-10, IA-9
Test(shim_object, a_graceful_close__needs_an_empty_adapter) {
    Adapter adapter;
    EXPECT_TYPE(dat_ia_close(adapter.ia, close_flag(7)), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(dat_ia_close(adapter.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
    EXPECT_OK(dat_pz_free(adapter.pz));
    EXPECT_OK(dat_ia_close(adapter.ia, DAT_CLOSE_GRACEFUL_FLAG));
    EXPECT_TYPE(dat_ia_close(adapter.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE);
    DAT_EVENT event;
    EXPECT_TYPE(dat_evd_dequeue(adapter.async, &event), DAT_INVALID_HANDLE);
}

// IA-11, DISC-16
Test(shim_object, an_abrupt_close__ends_connections_and_all_objects) {
    Pair pair;
    DAT_EP_HANDLE far;
    Adapter other;
    Side c(other);
    EXPECT_OK(c.connect(pair.listener.qualifier));
    Side d(pair.adapter);
    EXPECT_OK(dat_cr_accept(pair.listener.request(), d.ep, 0, nullptr));
    expect(d.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(c.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    far = c.ep;
    EXPECT_OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
    expect(d.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT_TYPE(dat_ep_free(far), DAT_INVALID_HANDLE);
}

// IA-6
Test(shim_object, a_name_that_is_none__is_not_found) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    char nothing[] = "no such thing";
    EXPECT_TYPE(dat_ia_open(nothing, 8, &async, &ia), DAT_PROVIDER_NOT_FOUND);
    std::string known = place().adapter;
    const DAT_RETURN rc = dat_ia_openv(known.data(), 8, &async, &ia, kOtherMajor, 0, DAT_FALSE);
    EXPECT_TYPE(rc, DAT_PROVIDER_NOT_FOUND);
    cr_assert_eq(DAT_GET_SUBTYPE(rc), DAT_MAJOR_NOT_FOUND);
}

// IA-4, IA-12, IA-13, GEN-3
Test(shim_object, attributes__are_those_of_the_adapter) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    std::string name = std::string("RO_AWARE_") + place().adapter;
    EXPECT_OK(dat_ia_open(name.data(), 8, &async, &ia));
    DAT_IA_ATTR attr;
    DAT_PROVIDER_ATTR provider{};
    DAT_EVD_HANDLE told = DAT_HANDLE_NULL;
    EXPECT_OK(dat_ia_query(ia, &told, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
    cr_assert_eq(told, async);
    cr_assert_str_eq(attr.adapter_name, place().adapter);
    cr_assert_geq(provider.max_private_data_size, place().device ? 52 : 64); // U-63
    cr_assert_eq(256 % provider.optimal_buffer_alignment, 0u);
    for (const auto& row : provider.evd_stream_merging_supported) {
        for (const DAT_BOOLEAN merged : row) {
            cr_assert_eq(merged, DAT_TRUE);
        }
    }
    EXPECT_TYPE(dat_ia_query(ia, &told, ~DAT_IA_FIELD_ALL, &attr, 0, nullptr),
                DAT_INVALID_PARAMETER);
    EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// CTX-1, CTX-2, CTX-3, HND-1
Test(shim_object, each_object__has_a_context_and_a_type) {
    Pair pair;
    const struct {
        DAT_HANDLE handle;
        DAT_HANDLE_TYPE type;
    } objects[] = {
        {pair.adapter.ia, DAT_HANDLE_TYPE_IA},    {pair.adapter.pz, DAT_HANDLE_TYPE_PZ},
        {pair.a.ep, DAT_HANDLE_TYPE_EP},          {pair.a.recv, DAT_HANDLE_TYPE_EVD},
        {pair.memory.lmr, DAT_HANDLE_TYPE_LMR},   {pair.listener.psp, DAT_HANDLE_TYPE_PSP},
        {pair.adapter.async, DAT_HANDLE_TYPE_EVD}};
    for (const auto& object : objects) {
        DAT_HANDLE_TYPE type;
        DAT_CONTEXT context;
        EXPECT_OK(dat_get_handle_type(object.handle, &type));
        cr_assert_eq(type, object.type);
        EXPECT_OK(dat_get_consumer_context(object.handle, &context));
        cr_assert_eq(context.as_64, 0u);
        context.as_64 = 77;
        EXPECT_OK(dat_set_consumer_context(object.handle, context));
        context.as_64 = 0;
        EXPECT_OK(dat_get_consumer_context(object.handle, &context));
        cr_assert_eq(context.as_64, 77u);
    }
}

// OBJ-4, PZ-1
Test(shim_object, what_is_in_use__is_not_freed) {
    Pair pair;
    EXPECT_TYPE(dat_pz_free(pair.adapter.pz), DAT_INVALID_STATE);
    EXPECT_TYPE(dat_evd_free(pair.a.recv), DAT_INVALID_STATE);
    EXPECT_TYPE(dat_evd_free(pair.listener.evd), DAT_INVALID_STATE);
    EXPECT_OK(dat_psp_free(pair.listener.psp));
    EXPECT_OK(dat_evd_free(pair.listener.evd));
    EXPECT_OK(dat_ep_free(pair.a.ep));
    EXPECT_OK(dat_evd_free(pair.a.recv));
    // One user is enough, of each kind.
    DAT_PZ_HANDLE zone;
    EXPECT_OK(dat_pz_create(pair.adapter.ia, &zone));
    const auto needed = [&] { EXPECT_TYPE(dat_pz_free(zone), DAT_INVALID_STATE); };
    DAT_EP_HANDLE ep;
    EXPECT_OK(dat_ep_create(pair.adapter.ia, zone, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                            DAT_HANDLE_NULL, nullptr, &ep));
    needed();
    EXPECT_OK(dat_ep_free(ep));
    DAT_RMR_HANDLE rmr;
    EXPECT_OK(dat_rmr_create(zone, &rmr));
    needed();
    EXPECT_OK(dat_rmr_free(rmr));
    DAT_SRQ_ATTR srq_attr{4, 1, 0};
    DAT_SRQ_HANDLE srq;
    EXPECT_OK(dat_srq_create(pair.adapter.ia, zone, &srq_attr, &srq));
    needed();
    EXPECT_OK(dat_srq_free(srq));
    char bytes[8];
    DAT_REGION_DESCRIPTION region{};
    region.for_va = bytes;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN size;
    DAT_VADDR address;
    EXPECT_OK(lmr_create(pair.adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof bytes, zone,
                         DAT_MEM_PRIV_ALL_FLAG, &lmr, &lmr_context, &rmr_context, &size, &address));
    needed();
    EXPECT_OK(dat_lmr_free(lmr));
    EXPECT_OK(dat_pz_free(zone));
}

// LMR-1, LMR-2, LMR-3, LMR-4, LMR-5, U-55
Test(shim_memory, regions__of_each_type) {
    Adapter adapter;
    Memory all(adapter);
    cr_assert_neq(all.rmr_context, 0u);
    Memory local(adapter, static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG |
                                                          DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
    cr_assert_eq(local.rmr_context, 0u);

    DAT_REGION_DESCRIPTION region{};
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN size;
    DAT_VADDR address;
    const auto create = [&](DAT_MEM_TYPE type, DAT_VLEN length) {
        return lmr_create(adapter.ia, type, region, length, adapter.pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
                          &lmr_context, &rmr_context, &size, &address);
    };
    region.for_lmr_handle = all.lmr;
    EXPECT_OK(create(DAT_MEM_TYPE_LMR, 1));
    cr_assert_eq(size, all.bytes.size());
    cr_assert_eq(address, reinterpret_cast<std::uintptr_t>(all.bytes.data()));

    char cookie[DAT_LMR_COOKIE_SIZE] = "shared";
    region.for_shared_memory = {all.bytes.data(), &cookie};
    EXPECT_TYPE(create(DAT_MEM_TYPE_SHARED_VIRTUAL, 64), DAT_INVALID_STATE);
    void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    region.for_shared_memory.virtual_address = shared;
    EXPECT_OK(create(DAT_MEM_TYPE_SHARED_VIRTUAL, 4096));

    region.for_va = all.bytes.data();
    EXPECT_TYPE(create(DAT_MEM_TYPE_VIRTUAL, 0), DAT_INVALID_PARAMETER);
    EXPECT_TYPE(create(memory_type(9), 64), DAT_INVALID_PARAMETER);
}

// LMR-8, LMR-9
Test(shim_memory, sync__looks_at_the_segments) {
    Adapter adapter;
    Memory memory(adapter);
    DAT_LMR_TRIPLET piece = memory.at(0, 64);
    EXPECT_OK(dat_lmr_sync_rdma_read(adapter.ia, &piece, 1));
    EXPECT_OK(dat_lmr_sync_rdma_write(adapter.ia, &piece, 1));
    piece = memory.at(0, memory.bytes.size() + 1);
    EXPECT_TYPE(dat_lmr_sync_rdma_read(adapter.ia, &piece, 1), DAT_INVALID_PARAMETER);
    piece = local_range(~0ULL, 0, 12345);
    EXPECT_OK(dat_lmr_sync_rdma_write(adapter.ia, &piece, 1));
}

// RMR-1, RMR-2, RMR-5, RMR-7, RMR-10, LMR-7, U-51
Test(shim_memory, a_window__is_bound_unbound_and_freed) {
    Pair pair;
    DAT_RMR_HANDLE rmr;
    EXPECT_OK(dat_rmr_create(pair.adapter.pz, &rmr));
    DAT_LMR_TRIPLET piece = pair.memory.at(0, 256);
    DAT_RMR_COOKIE cookie;
    cookie.as_64 = 5;
    DAT_RMR_CONTEXT context = 0;
    const auto bind = [&] {
        return rmr_bind(rmr, pair.memory.lmr, piece, DAT_MEM_PRIV_REMOTE_READ_FLAG, pair.b.ep,
                        cookie, &context);
    };
    EXPECT_OK(bind());
    const DAT_EVENT event = expect(pair.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
    cr_assert_eq(event.event_data.rmr_completion_event_data.rmr_handle, rmr);
    cr_assert_eq(event.event_data.rmr_completion_event_data.user_cookie.as_64, 5u);
    EXPECT_TYPE(dat_lmr_free(pair.memory.lmr), DAT_INVALID_STATE);

    std::memcpy(pair.memory.bytes.data(), "window", 7);
    DAT_LMR_TRIPLET sink = pair.memory.at(512, 7);
    const DAT_RMR_TRIPLET source = remote_range(pair.memory.at(0, 7).virtual_address, 7, context);
    DAT_DTO_COOKIE dto;
    dto.as_64 = 6;
    EXPECT_OK(
        dat_ep_post_rdma_read(pair.a.ep, 1, &sink, dto, &source, DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(pair.a.request, 6);
    cr_assert_str_eq(pair.memory.bytes.data() + 512, "window");

    piece.segment_length = 0;
    EXPECT_OK(bind());
    expect(pair.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
    EXPECT_OK(
        dat_ep_post_rdma_read(pair.a.ep, 1, &sink, dto, &source, DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(pair.a.request, 6, DAT_DTO_ERR_REMOTE_ACCESS);
    expect(pair.a.conn, DAT_CONNECTION_EVENT_BROKEN);
    EXPECT_OK(dat_rmr_free(rmr));
    EXPECT_OK(dat_lmr_free(pair.memory.lmr));
    EXPECT_TYPE(dat_lmr_free(pair.memory.lmr), DAT_INVALID_HANDLE);
}

// RMR-3, RMR-8
Test(shim_memory, a_bind_that_is_not_allowed__is_refused) {
    Adapter adapter;
    Memory memory(adapter, static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG));
    Side side(adapter);
    DAT_RMR_HANDLE rmr;
    EXPECT_OK(dat_rmr_create(adapter.pz, &rmr));
    DAT_LMR_TRIPLET piece = memory.at(0, 64);
    DAT_RMR_COOKIE cookie;
    cookie.as_64 = 0;
    DAT_RMR_CONTEXT context;
    const auto bind = [&](DAT_MEM_PRIV_FLAGS rights) {
        return rmr_bind(rmr, memory.lmr, piece, rights, side.ep, cookie, &context);
    };
    EXPECT_TYPE(bind(DAT_MEM_PRIV_REMOTE_WRITE_FLAG), DAT_PRIVILEGES_VIOLATION);
    EXPECT_TYPE(bind(DAT_MEM_PRIV_REMOTE_READ_FLAG), DAT_INVALID_STATE);
    piece.segment_length = 1 << 20;
    EXPECT_TYPE(bind(DAT_MEM_PRIV_REMOTE_READ_FLAG), DAT_INVALID_PARAMETER);
}

// REG-4, REG-5
Test(shim_registry, names__are_listed_and_entered) {
    DAT_COUNT count = -1;
    EXPECT_TYPE(dat_registry_list_providers(0, &count, nullptr), DAT_INVALID_PARAMETER);
    cr_assert_gt(count, 0);
    std::vector<DAT_PROVIDER_INFO> infos(static_cast<std::size_t>(count));
    std::vector<DAT_PROVIDER_INFO*> pointers;
    for (DAT_PROVIDER_INFO& info : infos) {
        pointers.push_back(&info);
    }
    EXPECT_OK(dat_registry_list_providers(count, &count, pointers.data()));
    cr_assert_eq(static_cast<std::size_t>(count), infos.size());
    // A shorter array is filled; of a longer one the rest stays as it is.
    DAT_PROVIDER_INFO first{};
    DAT_PROVIDER_INFO* short_list[] = {&first, nullptr};
    EXPECT_OK(dat_registry_list_providers(1, &count, short_list));
    cr_assert_eq(count, 1);
    cr_assert_str_eq(first.ia_name, infos.front().ia_name);
    pointers.push_back(nullptr);
    EXPECT_OK(dat_registry_list_providers(static_cast<DAT_COUNT>(pointers.size()), &count,
                                          pointers.data()));
    cr_assert_eq(static_cast<std::size_t>(count), infos.size());
    EXPECT_TYPE(dat_registry_list_providers(1, &count, nullptr), DAT_INVALID_PARAMETER);
    const char* const interface = place().device ? place().device : place().adapter;
    bool found = false;
    for (const DAT_PROVIDER_INFO& info : infos) {
        found |= std::string(info.ia_name) == interface;
    }
    cr_assert(found, "%s is not listed", interface);

    DAT_PROVIDER provider{};
    DAT_PROVIDER_INFO mine{};
    std::strcpy(mine.ia_name, "mine");
    mine.dapl_version_major = DAT_VERSION_MAJOR;
    EXPECT_TYPE(dat_registry_remove_provider(&provider, &mine), DAT_INVALID_PARAMETER);
    EXPECT_OK(dat_registry_add_provider(&provider, &mine));
    EXPECT_TYPE(dat_registry_add_provider(&provider, &mine), DAT_PROVIDER_ALREADY_REGISTERED);
    EXPECT_OK(dat_registry_remove_provider(&provider, &mine));
}

namespace {

// What `call` writes to standard error, to which messages go.
template <class Call> std::string said_by(Call&& call) {
    std::FILE* const file = std::tmpfile();
    cr_assert_not_null(file);
    const int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    call();
    std::fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    std::rewind(file);
    std::string text(4096, 0);
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
}

} // namespace

// CONTRIBUTING.md: a refused call says which value was wrong, and what would be right.
Test(shim_object, an_endpoint_that_is_refused__says_why) {
    setenv("DAPL_DBG_TYPE", "1", 1);
    Adapter adapter;
    const DAT_EVD_HANDLE software = adapter.evd(DAT_EVD_SOFTWARE_FLAG);
    DAT_EP_HANDLE ep;
    const auto create = [&](const DAT_EP_ATTR& attr, DAT_EVD_HANDLE conn) {
        return dat_ep_create(adapter.ia, adapter.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, conn, &attr,
                             &ep);
    };
    DAT_EP_ATTR good{};
    good.max_recv_dtos = good.max_request_dtos = good.max_recv_iov = good.max_request_iov = 1;
    const auto refused = [&](auto&& change) {
        DAT_EP_ATTR attr = good;
        change(attr);
        return said_by([&] { EXPECT_TYPE(create(attr, nullptr), DAT_INVALID_PARAMETER); });
    };
    const struct {
        std::string said;
        const char* wanted;
    } cases[] = {
        {refused([](DAT_EP_ATTR& attr) { attr.max_request_dtos = 2000000; }),
         "max_request_dtos of 2000000: 0 to "},
        {refused([](DAT_EP_ATTR& attr) { attr.max_rdma_read_in = -3; }),
         "max_rdma_read_in of -3: 0 to "},
        {refused([](DAT_EP_ATTR& attr) { attr.srq_soft_hw = -2; }), "srq_soft_hw of -2: -1 to "},
        {refused([](DAT_EP_ATTR& attr) {
             attr.request_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
         }),
         "request_completion_flags of 0x8: 0 or one of DAT_COMPLETION_UNSIGNALLED"},
        {said_by([&] { EXPECT_TYPE(create(good, software), DAT_INVALID_HANDLE); }),
         "DAT_EVD_CONNECTION_FLAG"},
    };
    for (const auto& each : cases) {
        cr_assert(each.said.find(each.wanted) != std::string::npos, "%s is not in: %s", each.wanted,
                  each.said.c_str());
        cr_assert_eq(std::count(each.said.begin(), each.said.end(), '\n'), 1);
    }
    cr_assert(said_by([&] { EXPECT_OK(create(good, nullptr)); }).empty());
}

// A sanitizer needs descriptors to check what it checks.
#ifndef DAT_SANITIZED

// Opens the adapter of that name in a process with no descriptor, with one, and so on, until it
// opens; until then it is refused for that, and that alone.
static void open_with_ever_more_descriptors(std::string name) {
    rlimit few{};
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
    few.rlim_cur = std::min<rlim_t>(few.rlim_cur, 256);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    std::vector<int> all;
    for (int fd = 0; (fd = open("/dev/null", O_RDONLY)) >= 0;) {
        all.push_back(fd);
    }
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    const std::size_t most = all.size();
    DAT_RETURN code = DAT_SUCCESS;
    while ((code = dat_ia_open(name.data(), 8, &async, &ia)) != DAT_SUCCESS && !all.empty()) {
        EXPECT_TYPE(code, DAT_INSUFFICIENT_RESOURCES);
        close(all.back());
        all.pop_back();
    }
    EXPECT_OK(code);
    cr_assert_gt(most - all.size(), 1u);
    std::ranges::for_each(all, close);
    EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// IA-6
Test(shim_object, an_ia_without_descriptors__is_insufficient_resources) {
    setenv("DAT_OVERRIDE", "/dev/null", 1);
    open_with_ever_more_descriptors(place().adapter);
}

// IA-6, REG-1: a dat.conf that could not be read is read once it can be.
Test(shim_object, an_ia_without_descriptors__is_in_dat_conf_all_the_same) {
    const int conf = memfd_create("dat.conf", 0);
    cr_assert_geq(conf, 0);
    const std::string line = std::string("named") + (DAT_TEST_API == 20 ? " u2.0" : " u1.2") +
                             " nonthreadsafe default library.so.2 dapl.2.0 \"" + place().adapter +
                             " 0\" \"\"\n";
    cr_assert_eq(write(conf, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    setenv("DAT_OVERRIDE", ("/proc/self/fd/" + std::to_string(conf)).c_str(), 1);
    open_with_ever_more_descriptors("named");
    close(conf);
}

#endif

// GEN-1
Test(shim_object, codes__have_words) {
    const char* major = nullptr;
    const char* minor = nullptr;
    EXPECT_OK(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EP_RESERVED,
                           &major, &minor));
    cr_assert_str_eq(major, "DAT_INVALID_STATE");
    cr_assert_str_eq(minor, "DAT_INVALID_STATE_EP_RESERVED");
    EXPECT_OK(dat_strerror(DAT_SUCCESS, &major, nullptr));
    EXPECT_TYPE(dat_strerror(0x2aaa0000, &major, &minor), DAT_INVALID_PARAMETER);
}
