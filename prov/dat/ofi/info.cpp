// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// fi_getinfo(): from node, service and hints to addresses, and from those to a
// list of offers.
#include "ofi/info.h"

#include "base/log.h"
#include "links/verbs/device.h"
#include "ofi/address.h"
#include "ofi/errors.h"
#include "ofi/provider.h"
#include "ofi/versions.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace dat::ofi {
namespace {

// Whether a list like "tcp,dat" or "dat;ofi_rxm" names this provider.
bool names_dat(const char* list) {
    if (!list) {
        return false;
    }
    std::string_view rest(list);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find_first_of(",;"), rest.size());
        if (rest.substr(0, end) == kProviderName) {
            return true;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

// Programs ask all providers for everything: only who asked for this one by name
// wants to know why there is nothing.
bool asked_by_name(const fi_info* hints) {
    const char* name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : nullptr;
    return names_dat(name) || names_dat(std::getenv("FI_PROVIDER"));
}

// One route: an address of this host, and where to from it.
struct Route {
    SocketAddress source;
    SocketAddress destination; // may be none
    const LocalAddress* local; // whose interface `source` is on
};

// One call of fi_getinfo().
class Search {
  public:
    Search(std::uint32_t version, std::uint64_t flags, const fi_info* hints)
        : version_(version), flags_(flags), hints_(hints) {}

    int run(const char* node, const char* service, Info& result);

  private:
    int find_routes(const char* node, const char* service);
    int from_named_source(const char* node, const char* service);
    int towards(const std::vector<SocketAddress>& destinations, const SocketAddress& source);
    void from_every_interface(const SocketAddress& destination, std::uint16_t port);
    void from(const SocketAddress& source, const SocketAddress& destination);
    SocketAddress best_source(const SocketAddress& destination) const;
    bool allowed(const LocalAddress& local) const;
    int no_route(const std::string& why) const;
    bool names_fit(const LocalAddress& local, const std::string& domain) const;
    bool fits(const Offering& offering, Refusal& why) const;
    Info offer(const Route& route, const std::string& domain, const Offering& offering) const;
    void add(Info info);
    void note_devices_without_address() const;

    bool asks_for_rdm() const {
        return hints_ && hints_->ep_attr && number_of(hints_->ep_attr->type) == FI_EP_RDM;
    }
    int family() const;
    int nothing(const std::string& why, bool routine = false) const;
    SocketAddress hinted(const void* address, std::size_t size) const {
        return address ? SocketAddress(static_cast<const sockaddr*>(address), size)
                       : SocketAddress();
    }

    const std::uint32_t version_;
    const std::uint64_t flags_;
    const fi_info* const hints_; // may be nullptr
    std::vector<LocalAddress> locals_;
    std::vector<Route> routes_;
    Info found_;
    fi_info** tail_ = nullptr;
};

int Search::nothing(const std::string& why, bool routine) const {
    const bool loud = !routine && asked_by_name(hints_);
    base::log(loud ? base::LogLevel::warn : base::LogLevel::info, base::LogArea::core, __func__,
              __LINE__, "fi_getinfo() finds nothing: %s", why.c_str());
    return -FI_ENODATA;
}

int Search::family() const {
    const std::uint32_t format = hints_ ? hints_->addr_format : 0;
    return format == FI_SOCKADDR_IN ? AF_INET : format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_UNSPEC;
}

// Adds the route, if its source is an address of this host.
void Search::from(const SocketAddress& source, const SocketAddress& destination) {
    const LocalAddress* local = find_local(locals_, source);
    if (local && allowed(*local)) {
        routes_.push_back({source, destination, local});
    }
}

bool Search::allowed(const LocalAddress& local) const {
    return parameters().interfaces.allows(local);
}

// What is wrong with no route at all.
int Search::no_route(const std::string& why) const {
    const std::string& only = parameters().interfaces.text();
    return nothing(only.empty() ? why : why + " (FI_DAT_IFACE=" + only + ")");
}

void Search::from_every_interface(const SocketAddress& destination, std::uint16_t port) {
    for (const LocalAddress& local : locals_) {
        if ((family() != AF_UNSPEC && local.address.family() != family()) || !allowed(local) ||
            local.address.link_local() ||
            (destination.valid() && destination.family() != local.address.family())) {
            continue;
        }
        SocketAddress source = local.address;
        source.set_port(port);
        routes_.push_back({source, destination, &local});
    }
    const InterfaceFilter& filter = parameters().interfaces;
    if (const std::string unmatched = filter.unmatched(locals_); !unmatched.empty()) {
        std::string there;
        for (const LocalAddress& local : locals_) {
            if (!local.address.link_local() &&
                (there + ' ').find(' ' + local.interface + ' ') == std::string::npos) {
                there += ' ' + local.interface;
            }
        }
        DAT_WARN(core,
                 "FI_DAT_IFACE=\"%s\": no interface that is up and has an address fits %s; there "
                 "are:%s",
                 filter.text().c_str(), unmatched.c_str(), there.c_str());
    }
}

// The kernel's choice, or the first address that is allowed.
SocketAddress Search::best_source(const SocketAddress& destination) const {
    const SocketAddress kernels = source_towards(destination);
    const LocalAddress* const at = find_local(locals_, kernels);
    if (parameters().interfaces.empty() || (at && allowed(*at))) {
        return kernels;
    }
    for (const LocalAddress& local : locals_) {
        if (allowed(local) && local.address.family() == destination.family() &&
            !local.address.link_local()) {
            return local.address;
        }
    }
    return {};
}

int Search::towards(const std::vector<SocketAddress>& destinations, const SocketAddress& source) {
    for (const SocketAddress& destination : destinations) {
        if (!source.valid()) {
            from(best_source(destination), destination);
        } else if (source.family() != destination.family()) {
            continue;
        } else if (source.wildcard()) {
            SocketAddress specific = best_source(destination);
            specific.set_port(source.port());
            from(specific, destination);
        } else {
            from(source, destination);
        }
    }
    return routes_.empty() ? no_route(std::string("no local address leads to ") +
                                      destinations.front().text().c_str())
                           : 0;
}

// FI_SOURCE: node and service are where to come from or listen.
int Search::from_named_source(const char* node, const char* service) {
    if (!node && !service) {
        DAT_WARN(core, "fi_getinfo(): FI_SOURCE needs a node or a service");
        return -FI_EINVAL;
    }
    const SocketAddress destination =
        hints_ ? hinted(hints_->dest_addr, hints_->dest_addrlen) : SocketAddress();
    std::string why;
    const bool numeric = (flags_ & FI_NUMERICHOST) != 0;
    auto sources = resolve({node, service, family(), true, numeric}, why);
    if (sources.empty()) {
        return nothing("source " + std::string(node ? node : service) + ": " + why);
    }
    if (destination.valid()) {
        std::erase_if(sources, [&](const SocketAddress& source) {
            return source.family() != destination.family();
        });
    }
    if (sources.empty()) {
        return nothing(std::string("the source is of another family than hints->dest_addr, ") +
                       destination.text().c_str());
    }
    for (const SocketAddress& source : sources) {
        if (!source.wildcard()) {
            from(source, destination);
        } else if (routes_.empty()) { // the wildcards of both families mean the same
            from_every_interface(destination, source.port());
        }
    }
    return routes_.empty()
               ? no_route(std::string(sources.front().text()) + " is not an address of this host")
               : 0;
}

int Search::find_routes(const char* node, const char* service) {
    if ((flags_ & FI_SOURCE) != 0) {
        return from_named_source(node, service);
    }
    const SocketAddress source =
        hints_ ? hinted(hints_->src_addr, hints_->src_addrlen) : SocketAddress();
    if (hints_ && hints_->src_addr && !source.valid()) {
        return nothing("hints->src_addr is not an IPv4 or IPv6 socket address");
    }
    if (node || service) {
        std::string why;
        const bool numeric = (flags_ & FI_NUMERICHOST) != 0;
        const auto destinations = resolve({node, service, family(), false, numeric}, why);
        return destinations.empty()
                   ? nothing("destination " + std::string(node ? node : service) + ": " + why)
                   : towards(destinations, source);
    }
    if (hints_ && hints_->dest_addr) {
        const SocketAddress destination = hinted(hints_->dest_addr, hints_->dest_addrlen);
        return destination.valid()
                   ? towards({destination}, source)
                   : nothing("hints->dest_addr is not an IPv4 or IPv6 socket address");
    }
    if (source.valid() && !source.wildcard()) {
        from(source, {});
        return routes_.empty()
                   ? no_route(std::string(source.text()) + " is not an address of this host")
                   : 0;
    }
    from_every_interface({}, source.valid() ? source.port() : std::uint16_t{0});
    return routes_.empty() ? nothing("no network interface with a fitting address is up") : 0;
}

bool Search::names_fit(const LocalAddress& local, const std::string& name) const {
    const char* domain = hints_ && hints_->domain_attr ? hints_->domain_attr->name : nullptr;
    const char* fabric = hints_ && hints_->fabric_attr ? hints_->fabric_attr->name : nullptr;
    return (!domain || name == domain) && (!fabric || local.subnet == fabric);
}

char* copy_text(const std::string& text) {
    char* copy = strdup(text.c_str());
    if (!copy) {
        throw std::bad_alloc();
    }
    return copy;
}

Info Search::offer(const Route& route, const std::string& domain, const Offering& offering) const {
    Info info = make_offer(hints_, version_, offering);
    info->addr_format = route.source.family() == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    info->src_addr = copy_address(route.source, info->src_addrlen);
    if (route.destination.valid()) {
        info->dest_addr = copy_address(route.destination, info->dest_addrlen);
    }
    info->domain_attr->name = copy_text(domain);
    info->fabric_attr->name = copy_text(route.local->subnet);
    return info;
}

bool Search::fits(const Offering& offering, Refusal& why) const {
    return !hints_ || agrees(*hints_, version_, offering, why);
}

void Search::add(Info info) {
    fi_info* const added = info.release();
    if (tail_) {
        *tail_ = added;
    } else {
        found_.reset(added);
    }
    tail_ = &added->next;
}

// A program that asked for this provider would go by the host's device, and does not: once a
// process it is told why.
void Search::note_devices_without_address() const {
    static std::atomic<bool> noted{false};
    if (!asked_by_name(hints_) || !verbs::host_has_devices() || noted.exchange(true)) {
        return;
    }
    for (const LocalAddress& local : locals_) {
        if (!local.address.link_local() && verbs::device_at(local.address)) {
            return;
        }
    }
    verbs::log_no_address();
}

int Search::run(const char* node, const char* service, Info& result) {
    const Transport transport = parameters().transport;
    Refusal why;
    const bool soft = transport != Transport::verbs && fits(soft_offering(), why);
    Refusal rdm_why;
    const bool rdm = transport != Transport::verbs && fits(rdm_offering(), rdm_why);
    if (asks_for_rdm()) {
        why = rdm_why;
    }
    if (transport == Transport::soft && !soft && !rdm) {
        return nothing(why.what, why.routine);
    }
    if (const int rc = local_addresses(locals_)) {
        DAT_WARN(core, "fi_getinfo(): the addresses of this host cannot be read: %s",
                 std::strerror(-rc));
        return rc;
    }
    if (const int rc = find_routes(node, service)) {
        return rc;
    }
    bool devices = false;
    bool named = false;
    if (transport != Transport::soft) {
        verbs::log_unusable();
    }
    std::vector<std::optional<verbs::Device>> at; // of each route, the device there
    for (const Route& route : routes_) {
        const auto& device =
            at.emplace_back(transport != Transport::soft ? verbs::device_at(route.source)
                                                         : std::optional<verbs::Device>());
        devices |= device.has_value();
        if (device) {
            const Offering offering = offering_of(*device);
            const std::string name = device->name.c_str();
            Refusal device_why;
            if (!fits(offering, device_why)) {
                why = asks_for_rdm() ? why : device_why;
            } else if (names_fit(*route.local, name)) {
                add(offer(route, name, offering));
            }
            named |= names_fit(*route.local, name);
        }
        if (names_fit(*route.local, route.local->interface)) {
            named = true;
            if (soft) {
                add(offer(route, route.local->interface, soft_offering()));
            }
        }
    }
    for (std::size_t i = 0; i < routes_.size(); ++i) {
        const Route& route = routes_[i];
        if (at[i]) {
            const Offering offering = rdm_offering_of(*at[i], hints_ ? hints_->caps : 0);
            Refusal device_why;
            if (!fits(offering, device_why)) {
                why = asks_for_rdm() ? device_why : why;
            } else if (names_fit(*route.local, at[i]->name.c_str())) {
                add(offer(route, at[i]->name.c_str(), offering));
            }
        }
        if (rdm && names_fit(*route.local, route.local->interface)) {
            add(offer(route, route.local->interface, rdm_offering()));
        }
    }
    if (transport == Transport::automatic && !devices) {
        note_devices_without_address();
    }
    result = std::move(found_);
    if (result) {
        return 0;
    }
    if (transport == Transport::verbs && !devices) {
        if (asked_by_name(hints_)) {
            verbs::log_no_address();
        }
        return nothing("no RDMA device has one of the addresses (FI_DAT_TRANSPORT=verbs)");
    }
    if (why.what[0] != '\0' && named) {
        return nothing(why.what, why.routine);
    }
    return nothing("no interface goes by the name in domain_attr->name or the subnet in "
                   "fabric_attr->name; " +
                   routes_.front().local->interface + " and " + routes_.front().local->subnet +
                   " would");
}

} // namespace

void* copy_address(const SocketAddress& address, std::size_t& size) {
    void* copy = std::malloc(address.size()); // for fi_freeinfo(), which calls free()
    if (!copy) {
        throw std::bad_alloc();
    }
    std::memcpy(copy, address.get(), address.size());
    size = address.size();
    return copy;
}

int getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
            const fi_info* hints, fi_info** info) {
    return no_throw([&] {
        Info result;
        const int rc = Search(version, flags, hints).run(node, service, result);
        *info = result.release();
        return rc;
    });
}

} // namespace dat::ofi
