// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two endpoints of one process, connected, with messages both ways, RDMA and an end: a
// plain program for hooks_test.sh, in the form that libfabric's debugging hook demands
// (FI_THREAD_DOMAIN, completions with flags). Exit status 0 if all was right.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_dat.h>
#include <rdma/fi_rma.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what, long result) {
    std::printf("FAILED %s: %ld\n", what, result);
    std::exit(1);
}

void must(long result, const char* what) {
    if (result != 0)
        fail(what, result);
}

// Calls `look` until it is content.
template <class Look> void await(const char* what, Look&& look) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!look())
        if (std::chrono::steady_clock::now() > end)
            fail(what, -FI_ETIMEDOUT);
}

struct World {
    fi_info* info = nullptr;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_eq* eq = nullptr;
    fid_cq* cq = nullptr;
    fid_pep* pep = nullptr;

    World() {
        fi_info* hints = fi_allocinfo();
        hints->ep_attr->type = FI_EP_MSG;
        hints->caps = FI_MSG | FI_RMA;
        hints->domain_attr->threading = FI_THREAD_DOMAIN;
        hints->fabric_attr->prov_name = strdup("dat");
        must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info),
             "fi_getinfo");
        fi_freeinfo(hints);
        must(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
        must(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_UNSPEC;
        must(fi_eq_open(fabric, &eq_attr, &eq, nullptr), "fi_eq_open");
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_DATA;
        must(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
        must(fi_passive_ep(fabric, info, &pep, nullptr), "fi_passive_ep");
        must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
        must(fi_listen(pep), "fi_listen");
    }
    ~World() {
        for (fid_t object : {&pep->fid, &cq->fid, &eq->fid, &domain->fid, &fabric->fid})
            must(fi_close(object), "fi_close");
        fi_freeinfo(info);
    }

    fid_ep* endpoint(fi_info* from) {
        fid_ep* ep = nullptr;
        must(fi_endpoint(domain, from, &ep, nullptr), "fi_endpoint");
        must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
        must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        must(fi_enable(ep), "fi_enable");
        return ep;
    }
    // The next event has to be this; its info is the caller's.
    fi_info* event(std::uint32_t expected, const char* what) {
        fi_eq_cm_entry entry{};
        fi_eq_cm_entry* const place = &entry;
        std::uint32_t type = 0;
        await(what, [&] {
            const ssize_t got = fi_eq_read(eq, &type, place, sizeof *place, 0);
            if (got < 0 && got != -FI_EAGAIN)
                fail(what, got);
            return got > 0;
        });
        if (type != expected)
            fail(what, type);
        return entry.info;
    }
    void completions(int count, const char* what) {
        await(what, [&] {
            fi_cq_data_entry entry{};
            const ssize_t got = fi_cq_read(cq, &entry, 1);
            if (got < 0 && got != -FI_EAGAIN)
                fail(what, got);
            count -= got == 1;
            return count == 0;
        });
    }
};

void exchange(World& world, fid_ep* from, fid_ep* to) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 20}) {
        const std::vector<std::uint8_t> out(size, 0x5a);
        std::vector<std::uint8_t> in(size);
        must(fi_recv(to, in.data(), size, nullptr, 0, &in), "fi_recv");
        must(fi_send(from, out.data(), size, nullptr, 0, const_cast<std::uint8_t*>(out.data())),
             "fi_send");
        world.completions(2, "a message");
        must(in == out ? 0 : -1, "its contents");
        fid_mr* mr = nullptr;
        must(fi_mr_reg(world.domain, in.data(), size, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, size, 0,
                       &mr, nullptr),
             "fi_mr_reg");
        std::vector<std::uint8_t> back(size);
        must(fi_read(from, back.data(), size, nullptr, 0, 0, fi_mr_key(mr), &back), "fi_read");
        world.completions(1, "an RDMA read");
        must(back == out ? 0 : -1, "what was read");
        must(fi_close(&mr->fid), "fi_close of a region");
    }
}

// The functions of fi_ext_dat.h say no to an endpoint that is a hook's.
void ask_status(fid_ep* ep) {
    fi_dat_ops_ep* ops = nullptr;
    fi_dat_ep_status status;
    if (fi_open_ops(&ep->fid, FI_DAT_EP_OPS, 0, reinterpret_cast<void**>(&ops), nullptr) != 0)
        return;
    const int result = ops->status(ep, &status);
    if (result != 0 && result != -FI_EINVAL)
        fail("status()", result);
}

void run() {
    World world;
    std::uint8_t name[64];
    std::size_t size = sizeof name;
    must(fi_getname(&world.pep->fid, name, &size), "fi_getname");
    fid_ep* active = world.endpoint(world.info);
    must(fi_connect(active, name, nullptr, 0), "fi_connect");
    fi_info* request = world.event(FI_CONNREQ, "a request");
    fid_ep* passive = world.endpoint(request);
    must(fi_accept(passive, nullptr, 0), "fi_accept");
    fi_freeinfo(request);
    world.event(FI_CONNECTED, "a connection");
    world.event(FI_CONNECTED, "the other end of a connection");
    exchange(world, active, passive);
    exchange(world, passive, active);
    ask_status(active);
    must(fi_shutdown(active, 0), "fi_shutdown");
    world.event(FI_SHUTDOWN, "an end");
    world.event(FI_SHUTDOWN, "the other end's end");
    must(fi_close(&active->fid), "fi_close");
    must(fi_close(&passive->fid), "fi_close");
}

} // namespace

int main() {
    run();
    std::printf("ok\n");
    std::fflush(stdout);
    // Hooks of libfabric leave memory behind, which a sanitizer would tell of.
    std::_Exit(0);
}
