// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See device.h. May include: dat-shim, libfabric, system headers.
#include "dat-shim/device.h"

#include <rdma/fi_domain.h>
#include <rdma/providers/fi_prov.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

// The module's entry, hidden in this library. It reads the variables FI_DAT_*.
extern "C" fi_provider* fi_prov_ini();

namespace dat::shim {
namespace {

fi_provider& provider() {
    static fi_provider* const instance = fi_prov_ini();
    return *instance;
}

constexpr std::uint32_t kVersion = FI_VERSION(1, 17);

Info make_hints() {
    Info hints(fi_allocinfo());
    if (!hints) {
        throw std::bad_alloc();
    }
    hints->ep_attr->type = FI_EP_MSG;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->mode = FI_RX_CQ_DATA;
    hints->domain_attr->threading = FI_THREAD_SAFE; // MT-4
    hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
    return hints;
}

Info get_info(const char* node, std::uint64_t flags, const fi_info* hints) {
    fi_info* found = nullptr;
    if (provider().getinfo(kVersion, node, nullptr, flags, hints, &found) != 0) {
        return nullptr;
    }
    return Info(found);
}

// The first of the wanted family, alone.
Info first_of(const Info& list, std::uint32_t format) {
    for (const fi_info* info = list.get(); info; info = info->next) {
        if (info->addr_format == format) {
            return Info(fi_dupinfo(info));
        }
    }
    return nullptr;
}

} // namespace

Info offer_of(const std::string& device) {
    Info hints = make_hints();
    hints->domain_attr->name = strdup(device.c_str());
    Info list = get_info(nullptr, 0, hints.get());
    if (!list) { // an address, or the name of this host
        free(std::exchange(hints->domain_attr->name, nullptr));
        list = get_info(device.c_str(), FI_SOURCE, hints.get());
    }
    Info info = first_of(list, FI_SOCKADDR_IN);
    info = info ? std::move(info) : first_of(list, FI_SOCKADDR_IN6);
    if (info) { // DAT names memory by virtual address; keys are random
        info->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
        // A write with immediate data takes a receive, as on InfiniBand.
        info->mode |= FI_RX_CQ_DATA;
        info->rx_attr->mode |= FI_RX_CQ_DATA;
        // Of fi_send() and fi_recv(), which say no flags; as kRequestFlags has it (U-61).
        info->tx_attr->op_flags = FI_TRANSMIT_COMPLETE | FI_COMPLETION;
        info->rx_attr->op_flags = FI_COMPLETION;
    }
    return info;
}

std::vector<std::string> interfaces() {
    std::vector<std::string> names;
    const Info list = get_info(nullptr, 0, make_hints().get());
    for (const fi_info* info = list.get(); info; info = info->next) {
        if (std::ranges::find(names, info->domain_attr->name) == names.end()) {
            names.emplace_back(info->domain_attr->name);
        }
    }
    return names;
}

std::string interface_of_rdma_device(const std::string& device, const std::string& port) {
    if (device.empty() || device.find('/') != std::string::npos) {
        return {};
    }
    const std::string number = port.empty() || port == "0" ? "1" : port;
    std::ifstream file("/sys/class/infiniband/" + device + "/ports/" + number +
                       "/gid_attrs/ndevs/0");
    std::string name;
    std::getline(file, name);
    return name;
}

std::string interface_in(std::string_view ia_name, const std::vector<std::string>& interfaces) {
    const auto ends_word = [&](std::size_t at) {
        return at >= ia_name.size() || ia_name[at] == '-' || ia_name[at] == '_' ||
               ia_name[at] == '.' || ia_name[at] == ':' || ia_name[at] == ' ';
    };
    std::string best;
    for (const std::string& name : interfaces) {
        for (std::size_t at = ia_name.find(name); at != std::string_view::npos;
             at = ia_name.find(name, at + 1)) {
            const bool begins = at == 0 || ends_word(at - 1);
            if (begins && ends_word(at + name.size()) && name.size() > best.size()) {
                best = name;
            }
        }
    }
    return best;
}

int open_fabric(fi_info& info, fid_fabric** fabric) {
    return provider().fabric(info.fabric_attr, fabric, nullptr);
}

} // namespace dat::shim
