// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See entry.h.
#include "info/entry.h"

#include "links/verbs/device.h"
#include "ofi/address.h"
#include "ofi/info.h"
#include "ofi/provider.h"

#include <array>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_dat.h>
#include <stdexcept>

namespace dat::info {
namespace {

struct Close {
    template <class F> void operator()(F* object) const { fi_close(&object->fid); }
};
template <class F> using Owner = std::unique_ptr<F, Close>;

std::string host_text(const ofi::SocketAddress& address) {
    std::array<char, NI_MAXHOST> text{};
    return getnameinfo(address.get(), address.size(), text.data(), text.size(), nullptr, 0,
                       NI_NUMERICHOST) == 0
               ? text.data()
               : "";
}

// What an open domain tells, and a passive endpoint that does not listen.
void ask_objects(fi_info& info, Entry& entry) {
    fid_fabric* raw_fabric = nullptr;
    fid_domain* raw_domain = nullptr;
    if (fi_fabric(info.fabric_attr, &raw_fabric, nullptr) != 0) {
        return;
    }
    const Owner<fid_fabric> fabric(raw_fabric);
    fid_pep* raw_point = nullptr;
    if (fi_passive_ep(fabric.get(), &info, &raw_point, nullptr) == 0) {
        const Owner<fid_pep> point(raw_point);
        std::size_t size = sizeof entry.private_data;
        fi_getopt(&point->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &entry.private_data, &size);
    }
    if (fi_domain(fabric.get(), &info, &raw_domain, nullptr) != 0) {
        return;
    }
    const Owner<fid_domain> domain(raw_domain);
    fi_dat_ops_domain* ops = nullptr;
    fi_dat_limits limits{};
    if (fi_open_ops(&domain->fid, FI_DAT_DOMAIN_OPS, 0, reinterpret_cast<void**>(&ops), nullptr) ==
        0) {
        ops->query_limits(domain.get(), &limits, sizeof limits);
        fid_mr* window = nullptr;
        entry.windows = ops->window(domain.get(), nullptr, 0, &window, nullptr) == 0;
        if (entry.windows) {
            const Owner<fid_mr> owner(window);
        }
    }
    entry.reads_in = limits.reads_in;
    entry.reads_out = limits.reads_out;
    entry.read_segments = limits.read_segments;
}

void describe_interface(const std::vector<ofi::LocalAddress>& all,
                        const ofi::SocketAddress& address, Entry& entry) {
    if (const ofi::LocalAddress* const local = ofi::find_local(all, address)) {
        entry.interface = local->interface;
        entry.loopback = local->address.loopback();
        entry.carrier = local->running;
        entry.default_route = local->traits.kind == ofi::InterfaceClass::way_out;
        entry.inside = local->traits.kind == ofi::InterfaceClass::inside;
        entry.speed = local->traits.speed;
    }
}

Entry entry_of(fi_info& info, const std::vector<ofi::LocalAddress>& all) {
    Entry entry;
    const ofi::SocketAddress address(static_cast<const sockaddr*>(info.src_addr), info.src_addrlen);
    entry.domain = info.domain_attr->name;
    entry.address = host_text(address);
    entry.network = info.fabric_attr->name;
    entry.device = verbs::is_device_name(entry.domain);
    entry.protocol = info.ep_attr->protocol == FI_PROTO_IWARP ? "iWARP" : "InfiniBand or RoCE";
    describe_interface(all, address, entry);
    entry.rma = (info.caps & FI_RMA) != 0;
    entry.atomics = (info.caps & FI_ATOMIC) != 0;
    entry.multi_recv = (info.caps & FI_MULTI_RECV) != 0;
    entry.shared_receives = info.domain_attr->max_ep_srx_ctx > 0;
    entry.shm = !entry.device && ofi::parameters().settings.shm;
    entry.shm_any = entry.shm && ofi::parameters().settings.shm_peers == engine::ShmPeers::any;
    entry.message = info.ep_attr->max_msg_size;
    entry.inject = info.tx_attr->inject_size;
    entry.segments = info.tx_attr->iov_limit;
    entry.rma_segments = info.tx_attr->rma_iov_limit;
    entry.requests = info.tx_attr->size;
    entry.receives = info.rx_attr->size;
    const auto device = entry.device ? verbs::device_at(address) : std::optional<verbs::Device>();
    entry.most_requests = device ? device->queue_size() : ofi::soft_offering().queue_size;
    entry.cq_data = info.domain_attr->cq_data_size;
    entry.registers_local = (info.domain_attr->mr_mode & FI_MR_LOCAL) != 0;
    ask_objects(info, entry);
    return entry;
}

} // namespace

std::vector<Entry> list_entries(std::string& why) {
    ofi::read_variables(); // as the provider does for itself
    const ofi::Info hints(fi_allocinfo());
    if (!hints) {
        throw std::runtime_error("out of memory");
    }
    hints->ep_attr->type = FI_EP_MSG;
    hints->mode = FI_RX_CQ_DATA;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup(ofi::kProviderName);
    fi_info* list = nullptr;
    if (const int rc = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &list)) {
        why = std::string("fi_getinfo: ") + std::to_string(rc) + " (" + fi_strerror(-rc) + ")";
        return {};
    }
    const ofi::Info owner(list);
    std::vector<ofi::LocalAddress> all;
    ofi::local_addresses(all); // none where it fails
    std::vector<Entry> entries;
    for (fi_info* info = list; info; info = info->next) {
        if (std::string_view(info->fabric_attr->prov_name) == ofi::kProviderName) {
            entries.push_back(entry_of(*info, all));
        }
    }
    if (entries.empty()) {
        why = "no entry of libfabric's is of dat";
    }
    return entries;
}

} // namespace dat::info
