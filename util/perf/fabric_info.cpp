// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See fabric_info.h.
#include "fabric_info.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

namespace dat::perf {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

bool layered(const std::string& provider) { return provider.find(';') != std::string::npos; }

Info hints_for(const Wanted& wanted, fi_ep_type type) {
    Info hints(fi_allocinfo());
    if (!hints) {
        fail("out of memory");
    }
    hints->caps = wanted.caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    hints->ep_attr->type = type;
    hints->domain_attr->threading = wanted.threads ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = wanted.progress;
    hints->domain_attr->data_progress = wanted.progress;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = ::strdup(wanted.way.provider.c_str());
    return hints;
}

bool of_a_network(const fi_info* info) {
    return info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6 ||
           info->addr_format == FI_SOCKADDR;
}

// Of this host: listeners, and endpoints that are reached by their name. Where the
// provider's addresses are none of a network the name is left to it: what is given would
// be the name itself, the same for both processes.
int ask_local(const Wanted& wanted, const fi_info* hints, fi_info** found) {
    fi_info* any = nullptr;
    const int rc = fi_getinfo(kApi, nullptr, nullptr, 0, hints, &any);
    if (rc != 0 || !of_a_network(any)) {
        *found = any;
        return rc;
    }
    const Info all(any);
    return fi_getinfo(kApi, wanted.address.c_str(), "0", FI_SOURCE, hints, found);
}

int ask_remote(const Wanted& wanted, fi_info* hints, fi_info** found) {
    const auto* address = reinterpret_cast<const sockaddr*>(wanted.peer.data());
    char node[NI_MAXHOST];
    char service[NI_MAXSERV];
    if ((wanted.peer_format == FI_SOCKADDR_IN || wanted.peer_format == FI_SOCKADDR_IN6) &&
        ::getnameinfo(address, static_cast<socklen_t>(wanted.peer.size()), node, sizeof node,
                      service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        return fi_getinfo(kApi, node, service, 0, hints, found);
    }
    hints->addr_format = wanted.peer_format;
    hints->dest_addrlen = wanted.peer.size();
    hints->dest_addr = std::malloc(wanted.peer.size()); // freed with the hints
    std::memcpy(hints->dest_addr, wanted.peer.data(), wanted.peer.size());
    return fi_getinfo(kApi, nullptr, nullptr, 0, hints, found);
}

// libfabric also gives what is layered over the provider that was named.
const fi_info* exactly(const fi_info* list, const std::string& provider) {
    for (; list; list = list->next) {
        if (provider == list->fabric_attr->prov_name) {
            return list;
        }
    }
    return nullptr;
}

Info ask(const Wanted& wanted, fi_ep_type type, int& rc) {
    const Info hints = hints_for(wanted, type);
    fi_info* list = nullptr;
    rc = wanted.peer.empty() ? ask_local(wanted, hints.get(), &list)
                             : ask_remote(wanted, hints.get(), &list);
    const Info all(list);
    if (rc != 0) {
        return nullptr;
    }
    const fi_info* one = exactly(list, wanted.way.provider);
    // "ofi_rxm;tcp" is "tcp;ofi_rxm"; and `tcp` with FI_EP_RDM is that as well.
    if (!one && (layered(wanted.way.provider) || wanted.way.endpoint == Endpoint::rdm)) {
        one = list;
    }
    rc = one ? 0 : -FI_ENODATA;
    return Info(one ? fi_dupinfo(one) : nullptr);
}

const char* caps_text(std::uint64_t caps) {
    return caps & FI_ATOMIC ? "atomic operations" : caps & FI_RMA ? "RDMA" : "messages";
}

const char* type_text(Endpoint endpoint) {
    constexpr const char* kTexts[] = {"FI_EP_MSG or FI_EP_RDM", "FI_EP_MSG", "FI_EP_RDM"};
    return kTexts[static_cast<int>(endpoint)];
}

} // namespace

Info find_info(const Wanted& wanted) {
    int rc = -FI_ENODATA;
    if (wanted.way.endpoint != Endpoint::rdm) {
        if (Info info = ask(wanted, FI_EP_MSG, rc)) {
            return info;
        }
    }
    // What is asked for may be what the MSG endpoint lacks: then another type is no
    // answer, except where the user left the choice and there is no MSG endpoint at all.
    bool other = wanted.way.endpoint == Endpoint::rdm;
    if (wanted.way.endpoint == Endpoint::any) {
        Wanted plain = wanted;
        plain.caps = FI_MSG;
        int ignored = 0;
        other = !ask(plain, FI_EP_MSG, ignored);
    }
    if (other) {
        if (Info info = ask(wanted, FI_EP_RDM, rc)) {
            return info;
        }
    }
    throw NotOffered(std::string("offers no ") + caps_text(wanted.caps) + " with " +
                     type_text(other || wanted.way.endpoint != Endpoint::any ? wanted.way.endpoint
                                                                             : Endpoint::msg) +
                     " (fi_getinfo: " + fi_strerror(-rc) + ")");
}

std::string provider_version(const Way& way, const std::string& address) {
    const Info info = find_info({.way = way, .caps = FI_MSG, .address = address, .peer = {}});
    const std::uint32_t version = info->fabric_attr->prov_version;
    return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

void set_environment(const Way& way) {
    ::setenv("FI_PROVIDER", way.provider.c_str(), 1);
    for (const auto& [variable, value] : way.environment) {
        ::setenv(variable.c_str(), value.c_str(), 1);
    }
}

std::vector<std::string> provider_names() {
    fi_info* list = nullptr;
    fi_getinfo(kApi, nullptr, nullptr, 0, nullptr, &list);
    const Info all(list);
    std::vector<std::string> names;
    for (const fi_info* info = list; info; info = info->next) {
        names.emplace_back(info->fabric_attr->prov_name);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

} // namespace dat::perf
