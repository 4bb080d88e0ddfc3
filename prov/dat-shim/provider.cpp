// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See provider.h.
#include "dat-shim/provider.h"

#include "base/attempt.h"
#include "ofi/provider.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include <new>

// The module's entry, hidden in this library. It reads the variables FI_DAT_*.
extern "C" fi_provider* fi_prov_ini();

namespace dat::shim {
namespace {

constexpr std::uint32_t kVersion = FI_VERSION(1, 17);

fi_provider& provider() {
    static fi_provider* const instance = [] {
        fi_provider* const made = fi_prov_ini();
        if (!made) {
            throw std::bad_alloc();
        }
        ofi::end_without_grace();
        return made;
    }();
    return *instance;
}

} // namespace

bool load() {
    return base::attempt([] { provider(); });
}

Info make_hints() {
    Info hints(fi_allocinfo());
    if (!hints) {
        throw std::bad_alloc();
    }
    hints->ep_attr->type = FI_EP_MSG;
    hints->mode = FI_RX_CQ_DATA;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_SAFE; // MT-4
    hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
    return hints;
}

Info get_info(const char* node, std::uint64_t flags, const fi_info* hints) {
    fi_info* found = nullptr;
    const int rc = provider().getinfo(kVersion, node, nullptr, flags, hints, &found);
    if (rc == -FI_ENOMEM) {
        throw std::bad_alloc();
    }
    return Info(rc == 0 ? found : nullptr);
}

Info copy(const fi_info& info) {
    Info made(fi_dupinfo(&info));
    if (!made) {
        throw std::bad_alloc();
    }
    return made;
}

void suit(fi_info& info) {
    info.domain_attr->mr_mode |= FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    // Nothing here asks for these.
    constexpr std::uint64_t kUnused = FI_MULTI_RECV | FI_RMA_EVENT;
    info.caps &= ~kUnused;
    info.rx_attr->caps &= ~kUnused;
    // A write with immediate data takes a receive, as on InfiniBand.
    info.mode |= FI_RX_CQ_DATA;
    info.rx_attr->mode |= FI_RX_CQ_DATA;
    // Of fi_send() and fi_recv(), which say no flags; as kRequestFlags has it (U-61).
    info.tx_attr->op_flags = FI_TRANSMIT_COMPLETE | FI_COMPLETION;
    info.rx_attr->op_flags = FI_COMPLETION;
}

int open_fabric(fi_info& info, fid_fabric** fabric) {
    return provider().fabric(info.fabric_attr, fabric, nullptr);
}

} // namespace dat::shim
