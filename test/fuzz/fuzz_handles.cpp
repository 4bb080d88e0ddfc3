// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: calls of a uDAPL library with any values for handles: those of objects, of
// objects of another kind, of freed ones, and what was never a handle. Compiled for either
// version of the API. Input: which calls, with which handles.
//
// What must hold: where the first handle of a call is none of an object of its kind, the
// answer is DAT_INVALID_HANDLE (GEN-6, U-23); an abrupt close frees what is left (IA-22).
#include "../shim/api.h"
#include "input.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <map>
#include <net/if.h>
#include <netinet/in.h>

using fuzz::Input;

// In place of the C library's: to ask the kernel takes a quarter of the time.
extern "C" int getifaddrs(ifaddrs** list) noexcept {
    static sockaddr_in address{};
    static sockaddr_in mask{};
    static ifaddrs loopback{};
    address.sin_family = mask.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    mask.sin_addr.s_addr = htonl(IN_CLASSA_NET);
    loopback.ifa_name = const_cast<char*>("lo");
    loopback.ifa_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
    loopback.ifa_addr = reinterpret_cast<sockaddr*>(&address);
    loopback.ifa_netmask = reinterpret_cast<sockaddr*>(&mask);
    *list = &loopback;
    return 0;
}
extern "C" void freeifaddrs(ifaddrs*) noexcept {}

namespace {

enum class Kind { none, ia, ep, evd, cno, pz, lmr, rmr, psp, rsp, srq, cr, any };

// One adapter, which outlives inputs that do not close it.
class World {
  public:
    World() { open(); }
    ~World() { dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG); }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    void step(Input& input);
    void finish();

    // Any value in place of a handle.
    DAT_HANDLE handle(Input& input);
    void made(DAT_HANDLE handle, Kind kind) {
        live_[handle] = kind;
        known_.push_back(handle);
    }
    void gone(DAT_HANDLE handle) { live_.erase(handle); }
    void closed() {
        live_.clear();
        ia_ = DAT_HANDLE_NULL;
    }
    bool is(DAT_HANDLE handle, Kind kind) const {
        const auto found = live_.find(handle);
        return found != live_.end() && (kind == Kind::any || found->second == kind);
    }
    Input* input = nullptr;

  private:
    void open();
    bool free_some();

    DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async_ = DAT_HANDLE_NULL;
    std::map<DAT_HANDLE, Kind> live_;
    std::vector<DAT_HANDLE> known_; // also of objects that are no more
};

World& world() {
    static World one;
    return one;
}

// For all results.
union Results {
    DAT_EVENT event;
    DAT_EP_PARAM ep;
    DAT_EVD_PARAM evd;
    DAT_CNO_PARAM cno;
    DAT_LMR_PARAM lmr;
    DAT_RMR_PARAM rmr;
    DAT_PZ_PARAM pz;
    DAT_PSP_PARAM psp;
    DAT_RSP_PARAM rsp;
    DAT_CR_PARAM cr;
    DAT_SRQ_PARAM srq;
    DAT_IA_ATTR ia;
};

DAT_COUNT g_count, g_other;
DAT_LMR_TRIPLET g_local;
DAT_RMR_TRIPLET g_remote;
DAT_SRQ_ATTR g_srq{4, 1, 0};
DAT_EP_ATTR g_attr;
DAT_CONTEXT g_context;
alignas(8) char g_memory[64];
const DAT_OS_WAIT_PROXY_AGENT kNobody{nullptr, nullptr};

DAT_HANDLE other() { return world().handle(*world().input); }
Results* results() {
    static Results all;
    all = {};
    return &all;
}

// The call that makes an object, whose handle it writes.
template <class Call> DAT_RETURN make(Kind kind, Call&& call) {
    DAT_HANDLE handle = DAT_HANDLE_NULL;
    const DAT_RETURN code = call(&handle);
    if (code == DAT_SUCCESS) {
        FUZZ_CHECK(!world().is(handle, Kind::any));
        world().made(handle, kind);
    }
    return code;
}
// The call that ends one.
DAT_RETURN end(DAT_HANDLE handle, DAT_RETURN (*call)(DAT_HANDLE)) {
    const DAT_RETURN code = call(handle);
    if (code == DAT_SUCCESS) {
        world().gone(handle);
    }
    return code;
}
// Seldom, where it is right: to open another takes as long as all other calls.
DAT_RETURN close(DAT_HANDLE ia, DAT_CLOSE_FLAGS how) {
    const bool close_it = world().input->octet() % 16 == 0;
    if (!close_it && (world().is(ia, Kind::ia) || reinterpret_cast<std::uintptr_t>(ia) < 65536)) {
        return DAT_SUCCESS;
    }
    const DAT_RETURN code = dat_ia_close(ia, how);
    if (code == DAT_SUCCESS) {
        world().closed();
    }
    return code;
}

struct Call {
    Kind kind;
    DAT_RETURN (*make)(DAT_HANDLE);
};

const Call kCalls[] = {
    {Kind::ia,
     [](auto h) { return dat_ia_query(h, nullptr, DAT_IA_FIELD_ALL, &results()->ia, 0, nullptr); }},
    {Kind::ia, [](auto h) { return close(h, DAT_CLOSE_GRACEFUL_FLAG); }},
    {Kind::ia, [](auto h) { return close(h, DAT_CLOSE_ABRUPT_FLAG); }},
    {Kind::ia,
     [](auto h) { return make(Kind::pz, [&](auto to) { return dat_pz_create(h, to); }); }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::lmr, [&](auto to) {
             DAT_REGION_DESCRIPTION region{};
             region.for_va = g_memory;
             DAT_LMR_CONTEXT lmr = 0;
             DAT_RMR_CONTEXT rmr = 0;
             DAT_VLEN length = 0;
             DAT_VADDR address = 0;
             return dat::test::lmr_create(h, DAT_MEM_TYPE_VIRTUAL, region, sizeof g_memory, other(),
                                          DAT_MEM_PRIV_ALL_FLAG, to, &lmr, &rmr, &length, &address);
         });
     }},
    {Kind::ia, [](auto h) { return dat_lmr_sync_rdma_read(h, &g_local, 1); }},
    {Kind::ia, [](auto h) { return dat_lmr_sync_rdma_write(h, &g_local, 1); }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::evd, [&](auto to) {
             return dat_evd_create(h, 8, other(), DAT_EVD_DEFAULT_FLAG, to);
         });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::evd, [&](auto to) {
             return dat_evd_create(h, 8, DAT_HANDLE_NULL,
                                   static_cast<DAT_EVD_FLAGS>(world().input->octet()), to);
         });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::cno, [&](auto to) { return dat_cno_create(h, kNobody, to); });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::psp, [&](auto to) {
             DAT_CONN_QUAL qualifier = 0;
             return dat_psp_create_any(h, &qualifier, other(), DAT_PSP_CONSUMER_FLAG, to);
         });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::rsp,
                     [&](auto to) { return dat_rsp_create(h, 0, other(), other(), to); });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::ep, [&](auto to) {
             return dat_ep_create(h, other(), other(), other(), other(), nullptr, to);
         });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::ep, [&](auto to) {
             return dat_ep_create(h, other(), DAT_HANDLE_NULL, DAT_HANDLE_NULL, other(), nullptr,
                                  to);
         });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::ep, [&](auto to) {
             return dat_ep_create_with_srq(h, other(), other(), other(), other(), other(), &g_attr,
                                           to);
         });
     }},
    {Kind::ia,
     [](auto h) {
         return make(Kind::srq, [&](auto to) { return dat_srq_create(h, other(), &g_srq, to); });
     }},

    {Kind::ep, [](auto h) { return dat_ep_query(h, DAT_EP_FIELD_ALL, &results()->ep); }},
    {Kind::ep,
     [](auto h) {
         DAT_EP_PARAM& asked = results()->ep;
         asked.pz_handle = other();
         asked.recv_evd_handle = other();
         asked.request_evd_handle = other();
         asked.connect_evd_handle = other();
         return dat_ep_modify(h, static_cast<DAT_EP_PARAM_MASK>(world().input->octet()), &asked);
     }},
    {Kind::ep,
     [](auto h) {
         DAT_EP_STATE state{};
         return dat_ep_get_status(h, &state, nullptr, nullptr);
     }},
    {Kind::ep,
     [](auto h) {
         return dat_ep_connect(h, nullptr, 1, 1, 0, nullptr, DAT_QOS_BEST_EFFORT,
                               DAT_CONNECT_DEFAULT_FLAG);
     }},
    {Kind::ep,
     [](auto h) { return dat_ep_dup_connect(h, other(), 1, 0, nullptr, DAT_QOS_BEST_EFFORT); }},
    {Kind::ep, [](auto h) { return dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG); }},
    {Kind::ep, [](auto h) { return dat_ep_reset(h); }},
    {Kind::ep, [](auto h) { return dat_ep_recv_query(h, &g_count, &g_other); }},
    {Kind::ep, [](auto h) { return dat_ep_set_watermark(h, 1, 1); }},
    {Kind::ep,
     [](auto h) { return dat_ep_post_send(h, 1, &g_local, {}, DAT_COMPLETION_DEFAULT_FLAG); }},
    {Kind::ep,
     [](auto h) { return dat_ep_post_recv(h, 0, nullptr, {}, DAT_COMPLETION_DEFAULT_FLAG); }},
    {Kind::ep,
     [](auto h) { return dat_ep_post_recv(h, 1, &g_local, {}, DAT_COMPLETION_DEFAULT_FLAG); }},
    {Kind::ep,
     [](auto h) {
         return dat_ep_post_rdma_read(h, 1, &g_local, {}, &g_remote, DAT_COMPLETION_DEFAULT_FLAG);
     }},
    {Kind::ep,
     [](auto h) {
         return dat_ep_post_rdma_write(h, 1, &g_local, {}, &g_remote, DAT_COMPLETION_DEFAULT_FLAG);
     }},
    {Kind::ep, [](auto h) { return end(h, [](auto e) { return dat_ep_free(e); }); }},

    {Kind::evd, [](auto h) { return dat_evd_query(h, DAT_EVD_FIELD_ALL, &results()->evd); }},
    {Kind::evd, [](auto h) { return dat_evd_modify_cno(h, other()); }},
    {Kind::evd, [](auto h) { return dat_evd_enable(h); }},
    {Kind::evd, [](auto h) { return dat_evd_disable(h); }},
    {Kind::evd, [](auto h) { return dat_evd_set_unwaitable(h); }},
    {Kind::evd, [](auto h) { return dat_evd_clear_unwaitable(h); }},
    {Kind::evd, [](auto h) { return dat_evd_wait(h, 0, 1, &results()->event, &g_count); }},
    {Kind::evd, [](auto h) { return dat_evd_dequeue(h, &results()->event); }},
    {Kind::evd, [](auto h) { return dat_evd_post_se(h, &results()->event); }},
    {Kind::evd, [](auto h) { return dat_evd_resize(h, world().input->octet()); }},
    {Kind::evd, [](auto h) { return end(h, [](auto e) { return dat_evd_free(e); }); }},

    {Kind::cno, [](auto h) { return dat_cno_modify_agent(h, kNobody); }},
    {Kind::cno, [](auto h) { return dat_cno_query(h, DAT_CNO_FIELD_ALL, &results()->cno); }},
    {Kind::cno,
     [](auto h) {
         DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
         return dat_cno_wait(h, 0, &evd);
     }},
    {Kind::cno, [](auto h) { return end(h, [](auto e) { return dat_cno_free(e); }); }},

    {Kind::pz, [](auto h) { return dat_pz_query(h, DAT_PZ_FIELD_ALL, &results()->pz); }},
    {Kind::pz, [](auto h) { return end(h, [](auto e) { return dat_pz_free(e); }); }},
    {Kind::pz,
     [](auto h) { return make(Kind::rmr, [&](auto to) { return dat_rmr_create(h, to); }); }},
    {Kind::lmr, [](auto h) { return dat_lmr_query(h, DAT_LMR_FIELD_ALL, &results()->lmr); }},
    {Kind::lmr, [](auto h) { return end(h, [](auto e) { return dat_lmr_free(e); }); }},
    {Kind::rmr, [](auto h) { return dat_rmr_query(h, DAT_RMR_FIELD_ALL, &results()->rmr); }},
    {Kind::rmr,
     [](auto h) {
         DAT_RMR_CONTEXT context = 0;
         return dat::test::rmr_bind(h, other(), g_local, DAT_MEM_PRIV_REMOTE_READ_FLAG, other(), {},
                                    &context);
     }},
    {Kind::rmr, [](auto h) { return end(h, [](auto e) { return dat_rmr_free(e); }); }},
    {Kind::psp, [](auto h) { return dat_psp_query(h, DAT_PSP_FIELD_ALL, &results()->psp); }},
    {Kind::psp, [](auto h) { return end(h, [](auto e) { return dat_psp_free(e); }); }},
    {Kind::rsp, [](auto h) { return dat_rsp_query(h, DAT_RSP_FIELD_ALL, &results()->rsp); }},
    {Kind::rsp, [](auto h) { return end(h, [](auto e) { return dat_rsp_free(e); }); }},
    {Kind::cr, [](auto h) { return dat_cr_query(h, DAT_CR_FIELD_ALL, &results()->cr); }},
    {Kind::cr, [](auto h) { return dat_cr_accept(h, other(), 0, nullptr); }},
    {Kind::cr, [](auto h) { return dat::test::cr_reject(h); }},
    {Kind::cr, [](auto h) { return dat_cr_handoff(h, 1); }},
    {Kind::srq, [](auto h) { return dat_srq_query(h, DAT_SRQ_FIELD_ALL, &results()->srq); }},
    {Kind::srq, [](auto h) { return dat_srq_post_recv(h, 0, nullptr, {}); }},
    {Kind::srq, [](auto h) { return dat_srq_post_recv(h, 1, &g_local, {}); }},
    {Kind::srq, [](auto h) { return dat_srq_resize(h, world().input->octet()); }},
    {Kind::srq, [](auto h) { return dat_srq_set_lw(h, world().input->octet()); }},
    {Kind::srq, [](auto h) { return end(h, [](auto e) { return dat_srq_free(e); }); }},
    {Kind::any, [](auto h) { return dat_set_consumer_context(h, g_context); }},
    {Kind::any, [](auto h) { return dat_get_consumer_context(h, &g_context); }},
    {Kind::any,
     [](auto h) {
         DAT_HANDLE_TYPE type{};
         return dat_get_handle_type(h, &type);
     }},
};

void World::open() {
    async_ = DAT_HANDLE_NULL;
    known_.clear();
    FUZZ_CHECK(dat_ia_open(const_cast<char*>("lo"), 8, &async_, &ia_) == DAT_SUCCESS);
    made(ia_, Kind::ia);
    made(async_, Kind::evd);
}

DAT_HANDLE World::handle(Input& in) {
    const std::uint8_t which = in.octet();
    if (which < 0xc0) {
        return known_[which % known_.size()];
    }
    if (which < 0xd0) {
        return DAT_HANDLE_NULL;
    }
    if (which < 0xe8) { // within an object
        return static_cast<char*>(known_[which % known_.size()]) + 1 + in.octet() % 31;
    }
    const std::uint64_t any = std::uint64_t{in.number()} << (which & 0x10 ? 16 : 0);
    return reinterpret_cast<DAT_HANDLE>(static_cast<std::uintptr_t>(any));
}

void World::step(Input& in) {
    const Call& call = kCalls[in.octet() % std::size(kCalls)];
    const DAT_HANDLE first = handle(in);
    // An adapter may go by a number as well, which any small one could be.
    const bool number = reinterpret_cast<std::uintptr_t>(first) < 65536;
    const bool known =
        is(first, call.kind) || (number && (call.kind == Kind::ia || call.kind == Kind::any));
    const DAT_RETURN code = call.make(first);
    FUZZ_CHECK(DAT_GET_TYPE(code) != DAT_INTERNAL_ERROR);
    FUZZ_CHECK(known || DAT_GET_TYPE(code) == static_cast<DAT_RETURN>(DAT_INVALID_HANDLE));
    if (ia_ == DAT_HANDLE_NULL) {
        open();
    }
}

DAT_RETURN free_one(DAT_HANDLE handle, Kind kind) {
    switch (kind) {
    case Kind::ep:
        return dat_ep_free(handle);
    case Kind::lmr:
        return dat_lmr_free(handle);
    case Kind::rmr:
        return dat_rmr_free(handle);
    case Kind::pz:
        return dat_pz_free(handle);
    case Kind::psp:
        return dat_psp_free(handle);
    case Kind::rsp:
        return dat_rsp_free(handle);
    case Kind::srq:
        return dat_srq_free(handle);
    case Kind::cno:
        return dat_cno_free(handle);
    default:
        return dat_evd_free(handle);
    }
}

// Frees what nothing stands on; false: there is none.
bool World::free_some() {
    bool any = false;
    const auto all = live_;
    for (const auto& [each, kind] : all) {
        if (kind != Kind::ia && each != async_ && free_one(each, kind) == DAT_SUCCESS) {
            gone(each);
            any = true;
        }
    }
    return any;
}

// What an input made is freed one by one, or else by closing the adapter.
void World::finish() {
    while (free_some()) {
    }
    const bool clean = live_.size() == 2 && is(async_, Kind::evd);
    if (!clean) {
        FUZZ_CHECK(dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
        closed();
        return open();
    }
    known_ = {ia_, async_};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    world().input = &input;
    constexpr int kSteps = 64;
    for (int i = 0; i < kSteps && !input.empty(); ++i) {
        world().step(input);
    }
    world().finish();
    return 0;
}
