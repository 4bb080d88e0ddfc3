// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What uDAPL 1.2 has otherwise than 2.0. ABI-... are the sections of its binary interface.
#include "pair.h"

#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace dat::test;

namespace {

// Values that are none of their enumeration.
DAT_COMPLETION_FLAGS completion_flag(int value) { return static_cast<DAT_COMPLETION_FLAGS>(value); }
DAT_EVD_FLAGS evd_flag(int value) { return static_cast<DAT_EVD_FLAGS>(value); }
DAT_MEM_PRIV_FLAGS privilege(int value) { return static_cast<DAT_MEM_PRIV_FLAGS>(value); }
DAT_RMR_PARAM_MASK rmr_mask(int value) { return static_cast<DAT_RMR_PARAM_MASK>(value); }

} // namespace

// ABI-R1c, but for U-69.
Test(shim_udat12, every_error__has_its_class_bit_but_that_there_is_nothing) {
    Adapter adapter;
    DAT_EVENT event;
    cr_assert_eq(dat_evd_dequeue(adapter.async, &event), DAT_QUEUE_EMPTY);
    cr_assert_eq(dat_ep_free(DAT_HANDLE_NULL),
                 DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
}

// ABI-R3: values that lie elsewhere in 2.0.
Test(shim_udat12, subtypes__are_those_of_its_headers) {
    Pair pair;
    const DAT_RETURN state = pair.a.connect(pair.listener.qualifier);
    cr_assert_eq(state, DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EP_CONNECTED);
    DAT_LMR_TRIPLET piece = pair.memory.at(0, 8);
    const DAT_RETURN flag =
        dat_ep_post_send(pair.a.ep, 1, &piece, cookie_of(1), completion_flag(0x400));
    cr_assert_eq(flag, DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    char nothing[] = "no such thing";
    cr_assert_eq(dat_ia_open(nothing, 8, &async, &ia),
                 DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED);
    Memory readable(pair.adapter, DAT_MEM_PRIV_LOCAL_READ_FLAG);
    cr_assert_eq(pair.a.receive(readable.at(0, 8), 1),
                 DAT_CLASS_ERROR | DAT_PRIVILEGES_VIOLATION | DAT_PRIVILEGES_WRITE);
}

// ABI-D9: every code has its name.
Test(shim_udat12, words__for_the_codes_of_its_own) {
    const struct {
        DAT_RETURN code;
        const char* major;
        const char* minor;
    } codes[] = {
        {DAT_NOT_IMPLEMENTED, "DAT_NOT_IMPLEMENTED", ""},
        {DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_RO_COOKIE, "DAT_INVALID_PARAMETER",
         "DAT_INVALID_RO_COOKIE"},
        {DAT_CLASS_ERROR | DAT_CONN_QUAL_UNAVAILABLE | DAT_INVALID_ARG10,
         "DAT_CONN_QUAL_UNAVAILABLE", "DAT_INVALID_ARG10"},
        {DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_MINOR_NOT_FOUND, "DAT_NAME_NOT_FOUND",
         "DAT_MINOR_NOT_FOUND"},
    };
    for (const auto& one : codes) {
        const char* major = nullptr;
        const char* minor = nullptr;
        EXPECT_OK(dat_strerror(one.code, &major, &minor));
        cr_assert_str_eq(major, one.major);
        cr_assert_str_eq(minor, one.minor);
    }
    const char* major;
    for (DAT_RETURN subtype = 0; subtype <= DAT_INVALID_RO_COOKIE; ++subtype) {
        EXPECT_OK(dat_strerror(DAT_ABORT | subtype, &major, nullptr));
    }
    EXPECT_TYPE(dat_strerror(DAT_ABORT | (DAT_INVALID_RO_COOKIE + 1), &major, nullptr),
                DAT_INVALID_PARAMETER);
}

// ABI-D1, ABI-D4: who was compiled with the redirection header calls through the handles.
Test(shim_udat12, the_table_behind_a_handle__has_the_functions) {
    Pair pair;
    DAT_EP_STATE state;
    EXPECT_OK(DAT_EP_GET_STATUS(pair.a.ep, &state, nullptr, nullptr));
    cr_assert_eq(state, DAT_EP_STATE_CONNECTED);
    DAT_PZ_HANDLE pz;
    EXPECT_OK(DAT_PZ_CREATE(pair.adapter.ia, &pz));
    EXPECT_OK(DAT_PZ_FREE(pz));
    DAT_EVENT event;
    EXPECT_TYPE(DAT_EVD_DEQUEUE(pair.a.recv, &event), DAT_QUEUE_EMPTY);
    const DAT_PROVIDER* const table = DAT_HANDLE_TO_PROVIDER(pair.adapter.ia);
    std::string name = std::string("RO_AWARE_") + place().adapter;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    EXPECT_OK(table->ia_open_func(name.data(), 8, &async, &ia, DAT_TRUE));
    EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    EXPECT_OK(DAT_EP_DISCONNECT(pair.a.ep, DAT_CLOSE_ABRUPT_FLAG));
    expect(pair.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

// ABI-D6
Test(shim_udat12, an_open_without_a_place_for_the_handle__says_so) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    std::string name = place().adapter;
    cr_assert_eq(dat_ia_open(name.data(), 8, &async, nullptr),
                 DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
    cr_assert_eq(dat_ia_open(nullptr, 8, &async, &ia),
                 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
    std::string longest(DAT_NAME_MAX_LENGTH, 'x');
    cr_assert_eq(dat_ia_open(longest.data(), 8, &async, &ia),
                 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
    // IA-6: programs of DAT 1.1 are served.
    EXPECT_OK(dat_ia_openv(name.data(), 8, &async, &ia, 1, 1, DAT_FALSE));
    EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

// ABI-E50: the fields of an endpoint lie one bit lower than in 2.0, those of its attributes
// where they are there.
Test(shim_udat12, a_modify__changes_the_fields_that_the_mask_names) {
    Adapter adapter;
    DAT_EP_HANDLE ep;
    EXPECT_OK(dat_ep_create(adapter.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                            DAT_HANDLE_NULL, nullptr, &ep));
    DAT_EP_PARAM param{};
    param.pz_handle = adapter.pz;
    param.recv_evd_handle = adapter.evd(DAT_EVD_DTO_FLAG);
    param.request_evd_handle = adapter.evd(DAT_EVD_DTO_FLAG);
    param.connect_evd_handle = adapter.evd(DAT_EVD_CONNECTION_FLAG);
    param.ep_attr.max_request_dtos = 32;
    const DAT_EP_PARAM wanted = param;
    EXPECT_OK(dat_ep_modify(ep,
                            DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
                                DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
                            &param));
    EXPECT_OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
    cr_assert_eq(param.pz_handle, wanted.pz_handle);
    cr_assert_eq(param.recv_evd_handle, wanted.recv_evd_handle);
    cr_assert_eq(param.request_evd_handle, wanted.request_evd_handle);
    cr_assert_eq(param.connect_evd_handle, wanted.connect_evd_handle);
    cr_assert_eq(param.ep_attr.max_request_dtos, 32);
    cr_assert_gt(param.ep_attr.max_recv_dtos, 0);
    for (const DAT_EP_PARAM_MASK never :
         {DAT_EP_FIELD_IA_HANDLE, DAT_EP_FIELD_EP_STATE, DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR,
          DAT_EP_FIELD_REMOTE_PORT_QUAL, DAT_EP_FIELD_SRQ_HANDLE}) {
        EXPECT_TYPE(dat_ep_modify(ep, never, &param), DAT_INVALID_PARAMETER);
    }
    EXPECT_TYPE(dat_ep_query(ep, 0x800, &param), DAT_INVALID_PARAMETER); // the unused bit
}

// Flags of 2.0 are none here (EVD-1, LMR-4).
Test(shim_udat12, flags_of_2_0__are_refused) {
    Adapter adapter;
    DAT_EVD_HANDLE evd;
    EXPECT_TYPE(dat_evd_create(adapter.ia, 8, DAT_HANDLE_NULL, evd_flag(0x200), &evd),
                DAT_INVALID_PARAMETER);
    Memory memory(adapter);
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory.bytes.data();
    DAT_LMR_HANDLE lmr;
    EXPECT_TYPE(lmr_create(adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, 64, adapter.pz,
                           privilege(0x40), &lmr, nullptr, nullptr, nullptr, nullptr),
                DAT_INVALID_PARAMETER);
}

// LMR-1: what Solaris has for bridges that reorder.
Test(shim_udat12, memory_of_solaris__is_registered) {
    Adapter adapter;
    Memory memory(adapter);
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory.bytes.data();
    DAT_LMR_HANDLE lmr;
    EXPECT_OK(lmr_create(
        adapter.ia, DAT_MEM_TYPE_SO_VIRTUAL, region, 64, adapter.pz,
        static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_ALL_FLAG | DAT_MEM_PRIV_RO_DISABLE_FLAG), &lmr,
        nullptr, nullptr, nullptr, nullptr));
    DAT_LMR_PARAM param;
    EXPECT_OK(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
    cr_assert_eq(param.mem_type, DAT_MEM_TYPE_SO_VIRTUAL);
    cr_assert_eq(param.region_desc.for_va, memory.bytes.data());
    cr_assert_eq(param.length, 64u);
}

// DTO-2: lengths have 64 bits, and the wire 32.
Test(shim_udat12, four_gigabytes__are_refused) {
    constexpr DAT_VLEN kHuge = DAT_VLEN{5} << 30;
    Pair pair;
    void* const space = mmap(nullptr, kHuge, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(space, MAP_FAILED);
    DAT_REGION_DESCRIPTION region{};
    region.for_va = space;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
    EXPECT_OK(lmr_create(pair.adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, kHuge, pair.adapter.pz,
                         DAT_MEM_PRIV_ALL_FLAG, &lmr, &lmr_context, &rmr_context, nullptr,
                         nullptr));
    const auto address = reinterpret_cast<std::uintptr_t>(space);
    for (const DAT_VLEN length : {DAT_VLEN{1} << 32, kHuge}) {
        DAT_LMR_TRIPLET local = local_range(address, length, lmr_context);
        const DAT_RMR_TRIPLET remote = remote_range(address, length, rmr_context);
        EXPECT_TYPE(
            dat_ep_post_send(pair.a.ep, 1, &local, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG),
            DAT_INVALID_PARAMETER);
        EXPECT_TYPE(dat_ep_post_rdma_write(pair.a.ep, 1, &local, cookie_of(1), &remote,
                                           DAT_COMPLETION_DEFAULT_FLAG),
                    DAT_INVALID_PARAMETER);
        EXPECT_TYPE(dat_ep_post_rdma_read(pair.a.ep, 1, &local, cookie_of(1), &remote,
                                          DAT_COMPLETION_DEFAULT_FLAG),
                    DAT_INVALID_PARAMETER);
    }
    // Two pieces that are too long together.
    DAT_LMR_TRIPLET pieces[] = {local_range(address, kHuge / 2, lmr_context),
                                local_range(address + kHuge / 2, kHuge / 2, lmr_context)};
    EXPECT_TYPE(dat_ep_post_send(pair.a.ep, 2, pieces, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG),
                DAT_INVALID_PARAMETER);
    cr_assert_eq(pair.a.state(), DAT_EP_STATE_CONNECTED);
    cr_assert(is_empty(pair.a.request));
    // And no address is cut: a piece behind the first 4 GiB of its memory arrives.
    std::memcpy(static_cast<char*>(space) + kHuge - 8, "the end", 8);
    EXPECT_OK(pair.b.receive(pair.memory.at(0, 8), 2));
    EXPECT_OK(pair.a.send(local_range(address + kHuge - 8, 8, lmr_context), 3));
    cr_assert_eq(expect_dto(pair.b.recv, 2).transfered_length, 8u);
    cr_assert_str_eq(pair.memory.bytes.data(), "the end");
    expect_dto(pair.a.request, 3);
    EXPECT_OK(dat_lmr_free(lmr));
    munmap(space, kHuge);
}

// RMR-8: the triplet names the memory.
Test(shim_udat12, a_bind_of_memory_that_is_none__is_refused) {
    Pair pair;
    DAT_RMR_HANDLE rmr;
    EXPECT_OK(dat_rmr_create(pair.adapter.pz, &rmr));
    const DAT_LMR_TRIPLET nowhere = local_range(4096, 64, 0x1234567);
    DAT_RMR_CONTEXT context;
    EXPECT_TYPE(dat_rmr_bind(rmr, &nowhere, DAT_MEM_PRIV_REMOTE_READ_FLAG, pair.a.ep, cookie_of(1),
                             DAT_COMPLETION_DEFAULT_FLAG, &context),
                DAT_PRIVILEGES_VIOLATION);
    const DAT_LMR_TRIPLET piece = pair.memory.at(16, 64);
    EXPECT_OK(dat_rmr_bind(rmr, &piece, DAT_MEM_PRIV_REMOTE_READ_FLAG, pair.a.ep, cookie_of(1),
                           DAT_COMPLETION_DEFAULT_FLAG, &context));
    expect(pair.a.request, DAT_RMR_BIND_COMPLETION_EVENT);
    DAT_RMR_PARAM param;
    EXPECT_OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
    cr_assert_eq(param.lmr_triplet.virtual_address, piece.virtual_address);
    cr_assert_eq(param.lmr_triplet.segment_length, 64u);
    cr_assert_eq(param.lmr_triplet.lmr_context, piece.lmr_context);
    cr_assert_eq(param.rmr_context, context);
    EXPECT_TYPE(dat_rmr_query(rmr, rmr_mask(0x20), &param), DAT_INVALID_PARAMETER);
}

// CNO-1: the agent is all that a CNO has.
Test(shim_udat12, a_cno__tells_its_agent) {
    Adapter adapter;
    DAT_CNO_HANDLE cno;
    int mark = 0;
    const DAT_OS_WAIT_PROXY_AGENT agent{&mark, [](DAT_PVOID, DAT_EVD_HANDLE) {}};
    EXPECT_OK(dat_cno_create(adapter.ia, agent, &cno));
    DAT_CNO_PARAM param;
    EXPECT_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    cr_assert_eq(param.agent.instance_data, &mark);
    cr_assert(param.agent.proxy_agent_func == agent.proxy_agent_func);
    cr_assert_eq(param.ia_handle, adapter.ia);
}

// IA-12, PZ-2: values that are others in 2.0.
Test(shim_udat12, attributes__are_those_of_1_2) {
    Adapter adapter;
    DAT_EVD_HANDLE async;
    DAT_IA_ATTR attr;
    DAT_PROVIDER_ATTR provider{};
    EXPECT_OK(dat_ia_query(adapter.ia, &async, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
                           &provider));
    cr_assert_eq(provider.dapl_version_major, 1u);
    cr_assert_eq(provider.dapl_version_minor, 2u);
    cr_assert_eq(provider.pz_support, DAT_PZ_SHAREABLE);
    for (const DAT_VLEN most : {attr.max_message_size, attr.max_rdma_size}) {
        constexpr DAT_VLEN kOfTheWire = 0xffffffff; // a device may have less
        cr_assert(place().device ? most > 0 && most <= kOfTheWire : most == kOfTheWire);
    }
    cr_assert_not_null(attr.ia_address_ptr);
    EXPECT_TYPE(dat_ia_query(adapter.ia, &async, DAT_IA_FIELD_ALL + 1, &attr, 0, nullptr),
                DAT_INVALID_PARAMETER);
    DAT_SRQ_ATTR srq_attr{4, 1, 0};
    DAT_SRQ_HANDLE srq;
    EXPECT_OK(dat_srq_create(adapter.ia, adapter.pz, &srq_attr, &srq));
    DAT_SRQ_PARAM param;
    EXPECT_OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
    cr_assert_eq(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
}

// REG-1, IA-4, IA-6: a file as Solaris has it.
Test(shim_udat12, a_conf_of_solaris__names_adapters) {
    const int fd = memfd_create("dat.conf", 0);
    cr_assert_geq(fd, 0);
    constexpr char kText[] =
        "# entries that datadm wrote\n"
        "ibd0 u1.2 nonthreadsafe default udapl_tavor.so.1 SUNW.1.0 \"lo 0\" "
        "\"driver_name=tavor\"\n"
        "lo-1 u1.2 nonthreadsafe default udapl_tavor.so.1 SUNW.1.0 \" \" \"driver_name=tavor\"\n"
        "both u1.2 threadsafe default udapl_tavor.so.1 SUNW.1.0 \"lo 0\" \"\"\n"
        "newer u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"lo 0\" \"\"\n";
    cr_assert_eq(write(fd, kText, sizeof kText - 1), static_cast<ssize_t>(sizeof kText - 1));
    setenv("DAT_OVERRIDE", ("/proc/self/fd/" + std::to_string(fd)).c_str(), 1);
    const auto open = [](std::string name, DAT_UINT32 minor, DAT_BOOLEAN safe) {
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
        DAT_IA_HANDLE ia;
        const DAT_RETURN code = dat_ia_openv(name.data(), 8, &async, &ia, 1, minor, safe);
        if (code == DAT_SUCCESS) {
            EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
        }
        return code;
    };
    const auto not_found = [](DAT_RETURN_SUBTYPE why) {
        return DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | static_cast<DAT_RETURN>(why);
    };
    EXPECT_OK(open("ibd0", 2, DAT_FALSE));
    EXPECT_OK(open("RO_AWARE_ibd0", 2, DAT_FALSE));
    EXPECT_OK(open("ibd0", 1, DAT_FALSE)); // an older program
    EXPECT_OK(open("lo-1", 2, DAT_FALSE)); // the name has an interface in it
    EXPECT_OK(open("both", 2, DAT_TRUE));
    cr_assert_eq(open("ibd0", 3, DAT_FALSE), not_found(DAT_MINOR_NOT_FOUND));
    cr_assert_eq(open("ibd0", 2, DAT_TRUE), not_found(DAT_THREAD_SAFETY_NOT_FOUND));
    cr_assert_eq(open("newer", 2, DAT_FALSE), not_found(DAT_NAME_NOT_REGISTERED));
    cr_assert_eq(open("RO_AWARE_", 2, DAT_FALSE), not_found(DAT_NAME_NOT_REGISTERED));
    close(fd);
}
