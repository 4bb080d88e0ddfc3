// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See domain.h. May include: ofi, libfabric.
#include "ofi/domain.h"

#include "base/log.h"
#include "ofi/atomic.h"
#include "ofi/cntr.h"
#include "ofi/cq.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/mr.h"
#include "ofi/no_op.h"
#include "ofi/provider.h"
#include "ofi/srx.h"

#include <cstring>
#include <memory>

namespace dat::ofi {
namespace {

bool has_progress_thread(const fi_domain_attr& attr) {
    return attr.data_progress != FI_PROGRESS_MANUAL || attr.control_progress != FI_PROGRESS_MANUAL;
}

soft::Domain::Options options_for(const fi_domain_attr& attr) {
    soft::Domain::Options options;
    options.shared = attr.threading != FI_THREAD_DOMAIN;
    options.progress_thread = has_progress_thread(attr);
    options.settings = parameters().settings;
    return options;
}

int close(fid_t f) {
    Domain& domain = object_of<Domain, fid_domain>(f);
    if (domain.users.count() > 0) {
        DAT_WARN(domain,
                 "fi_close() of a domain: %d of its endpoints, shared contexts, completion "
                 "queues, counters and memory regions are open",
                 domain.users.count());
        return -FI_EBUSY;
    }
    delete &domain;
    return 0;
}

int open_endpoint_with_flags(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t flags,
                             void* context) {
    if (flags != 0) {
        DAT_WARN(ep_ctrl, "fi_endpoint2(): flags = 0x%llx; none is offered",
                 static_cast<unsigned long long>(flags));
        return -FI_EINVAL;
    }
    return open_endpoint(domain, info, ep, context);
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = DAT_NOT_OFFERED(fi_ops, bind),
    .control = DAT_NOT_OFFERED(fi_ops, control),
    .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_domain g_domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = DAT_NOT_OFFERED(fi_ops_domain, av_open),
    .cq_open = open_cq,
    .endpoint = open_endpoint,
    .scalable_ep = DAT_NOT_OFFERED(fi_ops_domain, scalable_ep),
    .cntr_open = open_cntr,
    .poll_open = DAT_NOT_OFFERED(fi_ops_domain, poll_open),
    .stx_ctx = DAT_NOT_OFFERED(fi_ops_domain, stx_ctx),
    .srx_ctx = open_srx,
    .query_atomic = query_atomic,
    .query_collective = DAT_NOT_OFFERED(fi_ops_domain, query_collective),
    .endpoint2 = open_endpoint_with_flags,
};

} // namespace

Domain::Domain(Fabric& fabric, const fi_domain_attr& attr, void* context)
    : fabric_(fabric),
      virtual_addresses_(attr.mr_mode == FI_MR_BASIC || (attr.mr_mode & FI_MR_VIRT_ADDR) != 0),
      provider_keys_(attr.mr_mode == FI_MR_BASIC || (attr.mr_mode & FI_MR_PROV_KEY) != 0),
      progress_thread_(has_progress_thread(attr)), soft_(options_for(attr)) {
    fid.fclass = FI_CLASS_DOMAIN;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_domain_ops;
    mr = &mr_ops;
    fabric_.users.add();
}

Domain::~Domain() { fabric_.users.remove(); }

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
    if (!info || !info->domain_attr) {
        DAT_WARN(domain, "fi_domain(): info without domain_attr; pass one from fi_getinfo()");
        return -FI_EINVAL;
    }
    return no_throw([&] {
        auto made = std::make_unique<Domain>(fabric_of(fabric), *info->domain_attr, context);
        if (const int rc = made->open()) {
            DAT_WARN(domain, "fi_domain(): %s; raise the limit on open files (ulimit -n)",
                     std::strerror(-rc));
            return rc;
        }
        *domain = made.release();
        return 0;
    });
}

} // namespace dat::ofi
