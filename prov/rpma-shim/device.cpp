// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See device.h.
#include "rpma-shim/device.h"

#include "engine/kernel.h"
#include "rpma-shim/guard.h"
#include "rpma-shim/log.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_ext_dat.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>
#include <new>
#include <string_view>
#include <vector>

namespace dat::rpma {

// --- addresses ---------------------------------------------------------------

std::unique_ptr<Address> Address::resolve(const char* name, const char* port, bool passive,
                                          std::string& why) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = passive ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    auto address = std::make_unique<Address>();
    const int rc = kernel::uncancelled(getaddrinfo, name, port, &hints, &found);
    if (rc != 0) {
        why = gai_strerror(rc);
        return nullptr;
    }
    std::memcpy(&address->storage_, found->ai_addr, found->ai_addrlen);
    address->size_ = found->ai_addrlen;
    freeaddrinfo(found);
    return address;
}

bool Address::is_wildcard() const {
    if (storage_.ss_family == AF_INET) {
        return reinterpret_cast<const sockaddr_in&>(storage_).sin_addr.s_addr == INADDR_ANY;
    }
    return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr);
}

std::string Address::text() const {
    char host[NI_MAXHOST] = "?";
    getnameinfo(get(), size_, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    return host;
}

namespace {

// For fi_freeinfo(), which calls free().
void copy_address(void*& to, std::size_t& to_size, const Address& from) {
    std::free(std::exchange(to, std::malloc(from.size())));
    if (!to) {
        throw std::bad_alloc();
    }
    std::memcpy(to, from.get(), from.size());
    to_size = from.size();
}

std::uint32_t format_of(const Address& address) {
    return address.get()->sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
}

// What is offered for connections to the address, or at it, as `local` says; the best comes first.
shim::Info offers(const Address& address, bool local) {
    shim::Info hints = shim::make_hints();
    hints->addr_format = format_of(address);
    if (!local) {
        copy_address(hints->dest_addr, hints->dest_addrlen, address);
    } else if (!address.is_wildcard()) {
        copy_address(hints->src_addr, hints->src_addrlen, address);
    }
    return shim::get_info(nullptr, 0, hints.get());
}

shim::Info suited(const fi_info& offer) {
    shim::Info own = shim::copy(offer);
    shim::suit(*own);
    return own;
}

bool is_soft_offer(const fi_info& info) { return !shim::is_port(info.domain_attr->name); }

// "rxe0" of "rxe0/1"
std::string_view device_in(std::string_view domain) { return domain.substr(0, domain.find('/')); }

// The context that stands for memory and TCP. It is none of libibverbs, which knows nothing of it.
ibv_context* soft_context() {
    static ibv_device device = [] {
        ibv_device made{};
        made.node_type = IBV_NODE_UNSPECIFIED;
        made.transport_type = IBV_TRANSPORT_UNSPECIFIED;
        std::strcpy(made.name, "dat");
        std::strcpy(made.dev_name, "dat");
        return made;
    }();
    static ibv_context context = [] {
        ibv_context made{};
        made.device = &device;
        made.cmd_fd = made.async_fd = -1;
        return made;
    }();
    return &context;
}

} // namespace

// --- devices -----------------------------------------------------------------

// All that have been asked for, in any thread.
struct Devices {
    static std::mutex mutex;
    static std::vector<std::unique_ptr<Device>>& all() {
        static auto* const list = new std::vector<std::unique_ptr<Device>>; // outlives all else
        return *list;
    }

    // The one that has such an info, made where there is none. Under the mutex.
    static Device* get(const fi_info& info);
    static int open(Device& device);
};
std::mutex Devices::mutex;

int Devices::open(Device& device) {
    fi_info& info = *device.info_;
    if (const int rc = shim::open_fabric(info, &device.fabric_)) {
        return rc;
    }
    if (device.soft_) {
        device.name_ = "dat";
        device.context_ = soft_context();
        return 0;
    }
    device.name_ = device_in(info.domain_attr->name);
    fi_dat_ops_fabric* ops = nullptr;
    int rc = fi_open_ops(&device.fabric_->fid, FI_DAT_FABRIC_OPS, 0, reinterpret_cast<void**>(&ops),
                         nullptr);
    rc = rc ? rc : ops->set_raw_data(device.fabric_, 1);
    fid_domain* domain = nullptr; // keeps the context
    fi_dat_ops_domain* domain_ops = nullptr;
    rc = rc ? rc : fi_domain(device.fabric_, &info, &domain, nullptr);
    rc = rc ? rc
            : fi_open_ops(&domain->fid, FI_DAT_DOMAIN_OPS, 0, reinterpret_cast<void**>(&domain_ops),
                          nullptr);
    return rc ? rc : domain_ops->device(domain, &device.context_);
}

Device* Devices::get(const fi_info& info) {
    const bool soft = is_soft_offer(info);
    for (const auto& known : all()) {
        if (soft ? known->soft_
                 : !known->soft_ && device_in(info.domain_attr->name) == known->name_) {
            return known.get();
        }
    }
    auto made = std::make_unique<Device>(suited(info), soft);
    if (const int rc = open(*made)) {
        RPMA_FAILURE("a device", rc);
        return nullptr;
    }
    all().push_back(std::move(made));
    return all().back().get();
}

Device* Device::find(const Address& address, bool local) {
    const shim::Info found = offers(address, local);
    if (!found) {
        RPMA_SAY(RPMA_LOG_LEVEL_ERROR, "nothing leads %s %s: the line before says why",
                 local ? "from" : "to", address.text().c_str());
        return nullptr;
    }
    const std::lock_guard lock(Devices::mutex);
    return Devices::get(*found);
}

// One that a program has opened is told by its device's name.
Device* Device::of(ibv_context* context) {
    const std::lock_guard lock(Devices::mutex);
    for (const auto& known : Devices::all()) {
        if (known->context_ == context) {
            return known.get();
        }
    }
    const shim::Info found = shim::get_info(nullptr, 0, shim::make_hints().get());
    for (const fi_info* each = found.get(); each; each = each->next) {
        if (!is_soft_offer(*each) && device_in(each->domain_attr->name) == context->device->name) {
            return Devices::get(*each);
        }
    }
    return nullptr;
}

namespace {

shim::Info pick(const Device& device, const shim::Info& from) {
    for (const fi_info* each = from.get(); each; each = each->next) {
        const bool same =
            device.is_soft()
                ? is_soft_offer(*each)
                : !is_soft_offer(*each) && device_in(each->domain_attr->name) == device.name();
        if (same) {
            return suited(*each);
        }
    }
    return nullptr;
}

} // namespace

shim::Info Device::towards(const Address& peer) const {
    const shim::Info found = offers(peer, false);
    shim::Info info = pick(*this, found);
    if (!info) {
        RPMA_SAY(
            RPMA_LOG_LEVEL_ERROR, "%s cannot be reached by \"%s\", which the peer was made for; %s",
            peer.text().c_str(), name(), found ? found->domain_attr->name : "nothing leads there");
    }
    return info;
}

shim::Info Device::at(const Address& local) const {
    const shim::Info found = offers(local, true);
    shim::Info info = pick(*this, found);
    if (!info) {
        RPMA_SAY(RPMA_LOG_LEVEL_ERROR,
                 "nothing can listen at %s by \"%s\", which the peer was made for",
                 local.text().c_str(), name());
        return info;
    }
    copy_address(info->src_addr, info->src_addrlen, local);
    return info;
}

} // namespace dat::rpma
