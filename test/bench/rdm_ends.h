// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An endpoint of FI_EP_RDM with what it needs, for rdm_calls and rdm_scale. What fails ends the
// process.
#ifndef DAT_TEST_BENCH_RDM_ENDS_H
#define DAT_TEST_BENCH_RDM_ENDS_H

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

namespace dat::bench {

inline ssize_t ok(ssize_t rc, const char* call) {
    if (rc < 0) {
        std::fprintf(stderr, "%s: %s\n", call, fi_strerror(static_cast<int>(-rc)));
        std::exit(1);
    }
    return rc;
}

// What that provider offers at that address: tagged messages, FI_THREAD_DOMAIN, progress by calls
// alone. The caller frees it.
inline fi_info* find_rdm(const char* provider, const char* address) {
    fi_info* const hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = ::strdup(provider);
    fi_info* list = nullptr;
    ok(fi_getinfo(FI_VERSION(1, 17), address, "0", FI_SOURCE, hints, &list), "fi_getinfo");
    fi_freeinfo(hints);
    fi_info* found = nullptr;
    for (fi_info* each = list; each && !found; each = each->next) {
        if (std::strcmp(each->fabric_attr->prov_name, provider) == 0) {
            found = fi_dupinfo(each);
        }
    }
    fi_freeinfo(list);
    ok(found ? 0 : -FI_ENODATA, "fi_getinfo");
    return found;
}

// That fabric, opened.
struct RdmFabric {
    RdmFabric(const char* provider, const char* address) : info(find_rdm(provider, address)) {
        ok(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    }
    ~RdmFabric() {
        fi_close(&fabric->fid);
        fi_freeinfo(info);
    }
    RdmFabric(const RdmFabric&) = delete;
    RdmFabric& operator=(const RdmFabric&) = delete;
    fi_info* info;
    fid_fabric* fabric = nullptr;
};

// A domain of such a fabric, which outlives it, with its address vector and completion queue.
struct RdmDomain {
    // `size`: of the queue, and how many addresses are expected.
    RdmDomain(const RdmFabric& its, std::size_t size) {
        ok(fi_domain(its.fabric, its.info, &domain, nullptr), "fi_domain");
        fi_av_attr vector{};
        vector.type = FI_AV_TABLE;
        vector.count = size;
        ok(fi_av_open(domain, &vector, &av, nullptr), "fi_av_open");
        fi_cq_attr attr{};
        attr.format = FI_CQ_FORMAT_TAGGED;
        attr.wait_obj = FI_WAIT_NONE;
        attr.size = size;
        ok(fi_cq_open(domain, &attr, &cq, nullptr), "fi_cq_open");
    }
    ~RdmDomain() {
        fi_close(&cq->fid);
        fi_close(&av->fid);
        fi_close(&domain->fid);
    }
    RdmDomain(const RdmDomain&) = delete;
    RdmDomain& operator=(const RdmDomain&) = delete;
    fi_addr_t know(const void* name) {
        fi_addr_t number = 0;
        ok(fi_av_insert(av, name, 1, &number, 0, nullptr) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
        return number;
    }
    fid_domain* domain = nullptr;
    fid_av* av = nullptr;
    fid_cq* cq = nullptr;
};

// An enabled endpoint of such a domain, which outlives it.
struct RdmEnd {
    using Name = std::array<char, 256>;

    RdmEnd(const RdmDomain& its, fi_info* info) {
        ok(fi_endpoint(its.domain, info, &ep, nullptr), "fi_endpoint");
        ok(fi_ep_bind(ep, &its.av->fid, 0), "fi_ep_bind");
        ok(fi_ep_bind(ep, &its.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        ok(fi_enable(ep), "fi_enable");
    }
    ~RdmEnd() { fi_close(&ep->fid); }
    RdmEnd(const RdmEnd&) = delete;
    RdmEnd& operator=(const RdmEnd&) = delete;
    Name name() const {
        Name name{};
        std::size_t size = name.size();
        ok(fi_getname(&ep->fid, name.data(), &size), "fi_getname");
        return name;
    }
    fid_ep* ep = nullptr;
};

} // namespace dat::bench

#endif
