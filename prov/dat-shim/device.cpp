// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See device.h.
#include "dat-shim/device.h"

#include "dat-shim/fast.h"
#include "engine/kernel.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <new>
#include <span>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace dat::shim {
namespace {

constexpr std::int32_t kSoftMtu = 65024;
constexpr char kDevices[] = "/sys/class/infiniband";

// Addresses of this host, with their interfaces: IPv4 before IPv6, loopback last.
class Addresses {
  public:
    Addresses() : list_(nullptr, freeifaddrs) {
        ifaddrs* raw = nullptr;
        if (kernel::uncancelled(getifaddrs, &raw) != 0) {
            if (errno == ENOMEM) {
                throw std::bad_alloc();
            }
            return;
        }
        list_.reset(raw);
        for (const unsigned loopback : {0U, unsigned{IFF_LOOPBACK}}) {
            for (const int family : {AF_INET, AF_INET6}) {
                for (const ifaddrs* entry = raw; entry; entry = entry->ifa_next) {
                    if (entry->ifa_addr && entry->ifa_addr->sa_family == family &&
                        (entry->ifa_flags & IFF_LOOPBACK) == loopback &&
                        (entry->ifa_flags & IFF_UP) != 0 && !is_link_local(*entry->ifa_addr)) {
                        all_.push_back(entry);
                    }
                }
            }
        }
    }
    const std::vector<const ifaddrs*>& all() const { return all_; }

  private:
    static bool is_link_local(const sockaddr& address) {
        return address.sa_family == AF_INET6 &&
               IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
    }
    std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list_;
    std::vector<const ifaddrs*> all_;
};

// What is offered on an address; one is asked for at a time, since to look for the device of
// each takes long.
Info offers_at(const sockaddr& address, Info hints) {
    const std::size_t size =
        address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    hints->src_addr = std::malloc(size); // for fi_freeinfo(), which calls free()
    if (!hints->src_addr) {
        throw std::bad_alloc();
    }
    std::memcpy(hints->src_addr, &address, size);
    hints->src_addrlen = size;
    return get_info(nullptr, 0, hints.get());
}

// The first offer on an address of the interface, or the one of the port; `from`: the only
// interface where it is looked for, empty: all.
Info find_on(const Addresses& addresses, const std::string& adapter, const std::string& from) {
    for (const ifaddrs* entry : addresses.all()) {
        if (!from.empty() && from != entry->ifa_name) {
            continue;
        }
        const Info found = offers_at(*entry->ifa_addr, make_hints());
        for (const fi_info* info = found.get(); info; info = info->next) {
            if (!is_port(adapter) || adapter == info->domain_attr->name) {
                return copy(*info);
            }
        }
    }
    return nullptr;
}

// The first of the wanted family, alone.
Info first_of(const Info& list, std::uint32_t format) {
    for (const fi_info* info = list.get(); info; info = info->next) {
        if (info->addr_format == format) {
            return copy(*info);
        }
    }
    return nullptr;
}

bool same_address(const sockaddr& a, const sockaddr& b) {
    if (a.sa_family != b.sa_family) {
        return false;
    }
    if (a.sa_family == AF_INET) {
        return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
               reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
    }
    return IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                              &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr);
}

// The network interface of a device and port (sysfs); empty: none is told.
std::string interface_of_rdma_port(const std::string& adapter) {
    const std::size_t slash = adapter.find('/');
    const kernel::NoCancel while_reading;
    std::ifstream file(std::string(kDevices) + "/" + adapter.substr(0, slash) + "/ports/" +
                       adapter.substr(slash + 1) + "/gid_attrs/ndevs/0");
    std::string name;
    std::getline(file, name);
    return name;
}

// The largest of InfiniBand's that the interface has room for, as devices tell it.
std::int32_t mtu_of(const sockaddr& address) {
    std::int32_t interface = 0;
    const Addresses addresses;
    const kernel::NoCancel while_reading;
    for (const ifaddrs* entry : addresses.all()) {
        if (same_address(*entry->ifa_addr, address)) {
            std::ifstream("/sys/class/net/" + std::string(entry->ifa_name) + "/mtu") >> interface;
        }
    }
    constexpr std::int32_t kHeaders = 80; // of RoCE
    std::int32_t mtu = 4096;
    while (mtu > 256 && mtu > interface - kHeaders) {
        mtu /= 2;
    }
    return mtu;
}

} // namespace

bool out_of_descriptors() {
    // As many as the connection manager, the device and its events take, and what is read
    // meanwhile.
    std::array<int, 8> taken;
    const kernel::NoCancel while_reading;
    std::error_code error;
    const std::filesystem::directory_iterator devices(kDevices, error);
    const bool has_devices = !error && devices != std::filesystem::directory_iterator();
    const std::size_t wanted = has_devices ? taken.size() : 1;
    std::size_t count = 0;
    int fd = 0;
    while (count < wanted && (fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0) {
        taken[count++] = fd;
    }
    const bool out = fd < 0 && (errno == EMFILE || errno == ENFILE);
    std::ranges::for_each(std::span(taken).first(count), kernel::close);
    return out;
}

Info offer_of(const std::string& adapter) {
    const Addresses addresses;
    Info info;
    if (is_port(adapter)) {
        const std::string interface = interface_of_rdma_port(adapter);
        info = find_on(addresses, adapter, interface);
        if (!info && !interface.empty()) { // its device is not to be used, or cannot be
            info = find_on(addresses, interface, interface);
        }
    } else {
        info = find_on(addresses, adapter, adapter);
    }
    if (!info) { // an address, or the name of this host
        const Info named = get_info(adapter.c_str(), FI_SOURCE, make_hints().get());
        info = first_of(named, FI_SOCKADDR_IN);
        info = info ? std::move(info) : first_of(named, FI_SOCKADDR_IN6);
    }
    if (info) {
        suit(*info);
    }
    return info;
}

std::vector<std::string> interfaces() {
    std::vector<std::string> names;
    const Addresses addresses;
    for (const ifaddrs* entry : addresses.all()) {
        const std::string name = entry->ifa_name;
        if (std::ranges::find(names, name) == names.end() &&
            offers_at(*entry->ifa_addr, make_hints())) {
            names.push_back(name);
        }
    }
    return names;
}

std::string rdma_port(const std::string& device, const std::string& port) {
    if (device.empty() || device.find('/') != std::string::npos ||
        access((std::string(kDevices) + "/" + device).c_str(), F_OK) != 0) {
        return {};
    }
    return device + "/" + (port.empty() || port == "0" ? "1" : port);
}

namespace {

bool has_word(std::string_view text, std::string_view word) {
    const auto separates = [&](std::size_t at) {
        return at >= text.size() || std::string_view("-_.: ").find(text[at]) != std::string::npos;
    };
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + 1)) {
        if ((at == 0 || separates(at - 1)) && separates(at + word.size())) {
            return true;
        }
    }
    return false;
}

} // namespace

std::string adapter_in(std::string_view ia_name) {
    std::string best;
    std::size_t length = 0;
    const auto consider = [&](const std::string& word, const std::string& adapter) {
        if (word.size() > length && has_word(ia_name, word)) {
            best = adapter;
            length = word.size();
        }
    };
    const Addresses addresses;
    for (const ifaddrs* entry : addresses.all()) {
        consider(entry->ifa_name, entry->ifa_name);
    }
    const kernel::NoCancel while_reading;
    std::error_code none;
    for (const auto& device : std::filesystem::directory_iterator(kDevices, none)) {
        const std::string name = device.path().filename();
        consider(name, rdma_port(name, ""));
        for (const auto& port :
             std::filesystem::directory_iterator(device.path() / "ports", none)) {
            const std::string number = port.path().filename();
            consider(name + "-" + number, rdma_port(name, number));
        }
    }
    return best;
}

namespace {

bool has_windows(fid_domain& domain, fi_dat_ops_domain& ops) {
    fid_mr* window = nullptr;
    if (ops.window(&domain, nullptr, 0, &window, nullptr) != 0) {
        return false;
    }
    fi_close(&window->fid);
    return true;
}

} // namespace

Abilities abilities_of(fi_info& info, fid_fabric& fabric, fid_domain& domain) {
    Abilities can{};
    can.device = is_port(info.domain_attr->name);
    can.iwarp = info.ep_attr->protocol == FI_PROTO_IWARP;
    can.atomics = (info.caps & FI_ATOMIC) != 0;
    can.immediate = info.domain_attr->cq_data_size > 0;
    can.zero_based = !can.device;
    can.shared_receives = info.domain_attr->max_ep_srx_ctx > 0;
    can.max_segments = static_cast<std::int32_t>(
        std::min<std::size_t>(info.tx_attr->iov_limit, Limits::kMaxSegments));
    can.max_length = static_cast<std::uint32_t>(
        std::min<std::size_t>(info.ep_attr->max_msg_size, Limits::kMaxLength));
    can.mtu = can.device ? mtu_of(*static_cast<const sockaddr*>(info.src_addr)) : kSoftMtu;
    fi_dat_ops_domain* ops = nullptr;
    fi_dat_limits limits{};
    if (fi_open_ops(&domain.fid, FI_DAT_DOMAIN_OPS, 0, reinterpret_cast<void**>(&ops), nullptr) ==
        0) {
        can.windows = has_windows(domain, *ops);
        ops->query_limits(&domain, &limits, sizeof limits);
    }
    can.zones_share = limits.zones_share != 0;
    can.max_dtos = std::min(static_cast<std::int32_t>(limits.operations), Limits::kMaxDtos);
    can.max_read_segments =
        std::min(static_cast<std::int32_t>(limits.read_segments), can.max_segments);
    can.max_reads_in = static_cast<std::int32_t>(limits.reads_in);
    can.max_reads_out = static_cast<std::int32_t>(limits.reads_out);
    can.max_private_data = Limits::kMaxPrivateData;
    fid_pep* point = nullptr; // which tells without listening
    if (fi_passive_ep(&fabric, &info, &point, nullptr) == 0) {
        std::size_t size = sizeof can.max_private_data;
        fi_getopt(&point->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &can.max_private_data, &size);
        fi_close(&point->fid);
    }
    return can;
}

} // namespace dat::shim
