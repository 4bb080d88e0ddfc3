// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls that are refused, for the lines that they write, and some that only find nothing, which
// write none. For refused_test.sh. Ends with 1 where one answers otherwise.
// Usage: refused12|refused20 INTERFACE OTHER-INTERFACE
#include "api.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace dat::test {
namespace {

void expect(DAT_RETURN code, DAT_RETURN wanted, const char* what) {
    if (code != wanted) {
        std::printf("%s: 0x%x, not 0x%x\n", what, code, wanted);
        std::exit(1);
    }
}

#define MUST(call) expect(call, DAT_SUCCESS, #call)
#define REFUSED(type, subtype, call) expect(call, DAT_CLASS_ERROR | (type) | (subtype), #call)

struct Adapter {
    explicit Adapter(std::string name) {
        MUST(dat_ia_open(name.data(), 8, &async, &ia));
        MUST(dat_pz_create(ia, &pz));
    }
    ~Adapter() { dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;
    DAT_EVD_HANDLE evd(DAT_EVD_FLAGS flags) const {
        DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
        MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, flags, &evd));
        return evd;
    }
    DAT_RETURN ep(DAT_EVD_HANDLE dtos, DAT_EVD_HANDLE conn,
                  const DAT_EP_ATTR* attr = nullptr) const {
        DAT_EP_HANDLE ep;
        return dat_ep_create(ia, pz, dtos, dtos, conn, attr, &ep);
    }
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
};

void open_by_conf() {
    const auto open = [](const char* name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe) {
        std::string copy = name;
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
        DAT_IA_HANDLE ia;
        return dat_ia_openv(copy.data(), 8, &async, &ia, major, minor, safe);
    };
    REFUSED(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND, open("listed", kOtherMajor, 0, DAT_FALSE));
    REFUSED(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND,
            open("listed", DAT_VERSION_MAJOR, DAT_VERSION_MINOR + 1, DAT_FALSE));
    REFUSED(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND,
            open("listed", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
}

void make_endpoints(const Adapter& adapter, const Adapter& other) {
    const DAT_EVD_HANDLE conn = adapter.evd(DAT_EVD_CONNECTION_FLAG);
    const DAT_EVD_HANDLE dtos = adapter.evd(DAT_EVD_DTO_FLAG);
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV, adapter.ep(adapter.pz, conn));
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV, adapter.ep(conn, conn));
    // U-68: of the same device it would be right.
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN, other.ep(DAT_HANDLE_NULL, conn));
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = -1;
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, adapter.ep(dtos, conn, &attr));
    attr.max_recv_dtos = 1;
    attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, adapter.ep(dtos, conn, &attr));
}

void make_others(const Adapter& adapter) {
    DAT_HANDLE made;
    const auto evd = [&](DAT_COUNT length, unsigned flags) {
        return dat_evd_create(adapter.ia, length, DAT_HANDLE_NULL,
                              static_cast<DAT_EVD_FLAGS>(flags), &made);
    };
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, evd(0, DAT_EVD_DTO_FLAG));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, evd(8, 0));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, evd(8, 0x1000));
    std::array<char, 64> memory{};
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory.data();
    const auto lmr = [&](DAT_PZ_HANDLE pz, DAT_VLEN length, unsigned privileges) {
        return lmr_create(adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz,
                          static_cast<DAT_MEM_PRIV_FLAGS>(privileges), &made, nullptr, nullptr,
                          nullptr, nullptr);
    };
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ, lmr(adapter.async, 64, 0));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, lmr(adapter.pz, 64, 0x1000));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, lmr(adapter.pz, 0, 0));
    const auto psp = [&](DAT_EVD_HANDLE requests, DAT_CONN_QUAL qualifier, unsigned flags) {
        return dat_psp_create(adapter.ia, qualifier, requests, static_cast<DAT_PSP_FLAGS>(flags),
                              &made);
    };
    const DAT_EVD_HANDLE good = adapter.evd(DAT_EVD_CR_FLAG);
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, psp(good, 0x10000, DAT_PSP_CONSUMER_FLAG));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, psp(good, 20000, 7));
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
            psp(adapter.evd(DAT_EVD_DTO_FLAG), 20000, DAT_PSP_CONSUMER_FLAG));
}

// What programs ask again and again is not written at all, and a fault that they repeat once.
void ask_often(const Adapter& adapter) {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    expect(dat_evd_dequeue(adapter.async, &event), DAT_QUEUE_EMPTY, "dat_evd_dequeue");
    expect(dat_evd_wait(adapter.async, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED, "dat_evd_wait");
    for (int i = 0; i < 1000; ++i) {
        REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_evd_dequeue(adapter.async, nullptr));
    }
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 3) {
        return 2;
    }
    open_by_conf();
    const Adapter adapter(argv[1]);
    const Adapter other(argv[2]);
    make_endpoints(adapter, other);
    make_others(adapter);
    ask_often(adapter);
    return 0;
}
