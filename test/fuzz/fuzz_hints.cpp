// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: fi_getinfo() with any hints, on a host with three interfaces. Input: what is
// asked for, which structures there are, then members and their values.
//
// What must hold: hints are not changed; the answer is -FI_ENODATA (-FI_EINVAL for FI_SOURCE
// without a node or service), or a list of which each entry has what was asked for, and is
// offered again to who asks for just that.
#include "input.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <deque>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string>

using fuzz::Bytes;
using fuzz::Input;

extern "C" fi_provider* fi_prov_ini(void);

namespace {

// --- the host ---

struct Interface {
    const char* name;
    const char* address;
    const char* mask;
    unsigned flags;
};
constexpr Interface kInterfaces[] = {
    {"lo", "127.0.0.1", "255.0.0.0", IFF_UP | IFF_RUNNING | IFF_LOOPBACK},
    {"lo", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", IFF_UP | IFF_RUNNING | IFF_LOOPBACK},
    {"eth0", "192.0.2.1", "255.255.255.0", IFF_UP | IFF_RUNNING},
    {"eth0", "2001:db8::1", "ffff:ffff:ffff:ffff::", IFF_UP | IFF_RUNNING},
    {"eth0", "fe80::1", "ffff:ffff:ffff:ffff::", IFF_UP | IFF_RUNNING},
    {"eth1", "203.0.113.9", "255.255.255.255", IFF_UP},
    {"eth2", "203.0.113.10", "255.255.255.0", 0},
};

sockaddr_in6 parsed(const char* text) { // of either family
    sockaddr_in6 address{};
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
    } else {
        FUZZ_CHECK(inet_pton(AF_INET6, text, &address.sin6_addr) == 1);
        address.sin6_family = AF_INET6;
    }
    return address;
}

struct Host {
    Host() {
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const Interface& from = kInterfaces[i];
            addresses[i] = parsed(from.address);
            masks[i] = parsed(from.mask);
            entries[i].ifa_next = i + 1 < entries.size() ? &entries[i + 1] : nullptr;
            entries[i].ifa_name = const_cast<char*>(from.name);
            entries[i].ifa_flags = from.flags;
            entries[i].ifa_addr = reinterpret_cast<sockaddr*>(&addresses[i]);
            entries[i].ifa_netmask = reinterpret_cast<sockaddr*>(&masks[i]);
        }
    }
    std::array<ifaddrs, std::size(kInterfaces)> entries{};
    std::array<sockaddr_in6, std::size(kInterfaces)> addresses{};
    std::array<sockaddr_in6, std::size(kInterfaces)> masks{};
};

} // namespace

// In place of the C library's, which ask the kernel.
extern "C" int getifaddrs(ifaddrs** list) noexcept {
    static Host host;
    *list = host.entries.data();
    return 0;
}
extern "C" void freeifaddrs(ifaddrs*) noexcept {}

namespace {

// --- the hints ---

constexpr const char* kNames[] = {"lo",           "eth0",        "eth1",        "127.0.0.0/8",
                                  "192.0.2.0/24", "dat",         "tcp;ofi_rxm", "",
                                  "::1/128",      "dat;ofi_rxm", "eth2",        "2001:db8::/64"};
// Numbers, so that no name server is asked.
constexpr const char* kNodes[] = {"127.0.0.1", "::1",     "192.0.2.1",   "0.0.0.0",
                                  "::",        "fe80::1", "203.0.113.9", "198.51.100.7"};
constexpr const char* kServices[] = {"0", "7471", "65535", "65536", "-1"};
constexpr std::uint32_t kVersions[] = {FI_VERSION(1, 0),  FI_VERSION(1, 4),  FI_VERSION(1, 5),
                                       FI_VERSION(1, 17), FI_VERSION(1, 20), FI_VERSION(2, 0)};

class Hints {
  public:
    explicit Hints(Input& input) : input_(input) {
        const std::uint8_t there = input.octet();
        info.tx_attr = (there & 1) == 0 ? &tx : nullptr;
        info.rx_attr = (there & 2) == 0 ? &rx : nullptr;
        info.ep_attr = (there & 4) == 0 ? &ep : nullptr;
        info.domain_attr = (there & 8) == 0 ? &domain : nullptr;
        info.fabric_attr = (there & 16) == 0 ? &fabric : nullptr;
    }
    Hints(const Hints&) = delete;
    Hints& operator=(const Hints&) = delete;

    void set_member();
    // All there is, to be compared: pointers with what they were.
    Bytes image() const {
        Bytes all;
        const auto add = [&](const auto& part) {
            const auto bytes = std::as_bytes(std::span(&part, 1));
            all.insert(all.end(), bytes.begin(), bytes.end());
        };
        add(info), add(tx), add(rx), add(ep), add(domain), add(fabric);
        for (const Bytes& each : memory_) {
            all.insert(all.end(), each.begin(), each.end());
        }
        return all;
    }

    fi_info info{};
    fi_tx_attr tx{};
    fi_rx_attr rx{};
    fi_ep_attr ep{};
    fi_domain_attr domain{};
    fi_fabric_attr fabric{};

  private:
    // Small numbers, powers of two and what is next to them, and anything.
    std::uint64_t value() {
        const std::uint8_t how = input_.octet();
        const std::uint64_t power = std::uint64_t{1} << (how >> 2);
        switch (how & 3) {
        case 0:
            return input_.octet();
        case 1:
            return power;
        case 2:
            return power - 1;
        default:
            return std::uint64_t{input_.number()} << 32 | input_.number();
        }
    }
    // Mostly one more bit.
    template <class T> void bits(T& member) {
        member = static_cast<T>((input_.octet() & 7) == 0
                                    ? value()
                                    : member | T{1} << (input_.octet() % (8 * sizeof(T))));
    }
    template <class T> void number(T& member) { member = static_cast<T>(value()); }
    // Any value, whatever the enumeration has.
    template <class T> void choice(T& member) {
        const auto any = static_cast<std::uint32_t>(value());
        static_assert(sizeof any == sizeof member);
        std::memcpy(&member, &any, sizeof any);
    }
    void text(char*& member) {
        const std::uint8_t which = input_.octet();
        member = which < 2 ? nullptr : const_cast<char*>(kNames[which % std::size(kNames)]);
    }
    // Exactly as many bytes as are promised, unless no sensible program has so many.
    template <class T> void memory(T*& pointer, std::size_t& size) {
        size = value();
        memory_.emplace_back(size <= 300 ? size : 0);
        Bytes& bytes = memory_.back();
        bytes.shrink_to_fit();
        const Bytes given = input_.bytes(std::min<std::size_t>(bytes.size(), input_.octet()));
        std::copy(given.begin(), given.end(), bytes.begin());
        pointer = size <= 300 && size > 0 ? reinterpret_cast<T*>(bytes.data()) : nullptr;
    }
    void address(void*& pointer, std::size_t& size) {
        const std::uint8_t which = input_.octet();
        if (which >= 128) {
            return memory(pointer, size);
        }
        const sockaddr_in6 from = parsed(kNodes[which % std::size(kNodes)]);
        size = from.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        memory_.emplace_back(size);
        std::memcpy(memory_.back().data(), &from, size);
        pointer = memory_.back().data();
    }
    void set_of_endpoint(unsigned which);
    void set_of_domain(unsigned which);
    void set_of_contexts(unsigned which);

    Input& input_;
    std::deque<Bytes> memory_;
};

void Hints::set_of_endpoint(unsigned which) {
    switch (which) {
    case 0:
        return choice(ep.type);
    case 1:
        return number(ep.protocol);
    case 2:
        return number(ep.protocol_version);
    case 3:
        return number(ep.max_msg_size);
    case 4:
        return number(ep.max_order_raw_size);
    case 5:
        return number(ep.max_order_war_size);
    case 6:
        return number(ep.max_order_waw_size);
    case 7:
        return number(ep.tx_ctx_cnt);
    case 8:
        return number(ep.rx_ctx_cnt);
    default:
        return memory(ep.auth_key, ep.auth_key_size);
    }
}

void Hints::set_of_domain(unsigned which) {
    switch (which) {
    case 0:
        return choice(domain.threading);
    case 1:
        return choice(domain.control_progress);
    case 2:
        return choice(domain.data_progress);
    case 3:
        return choice(domain.resource_mgmt);
    case 4:
        return choice(domain.av_type);
    case 5:
        return number(domain.mr_mode);
    case 6:
        return number(domain.mr_key_size);
    case 7:
        return number(domain.cq_data_size);
    case 8:
        return number(domain.cntr_cnt);
    case 9:
        return number(domain.max_ep_srx_ctx);
    case 10:
        return number(domain.mr_iov_limit);
    case 11:
        return bits(domain.caps);
    case 12:
        return number(domain.max_err_data);
    case 13:
        return number(domain.mr_cnt);
    case 14:
        return text(domain.name);
    default:
        return memory(domain.auth_key, domain.auth_key_size);
    }
}

void Hints::set_of_contexts(unsigned which) {
    switch (which) {
    case 0:
        return bits(tx.caps);
    case 1:
        return bits(tx.op_flags);
    case 2:
        return bits(tx.msg_order);
    case 3:
        return bits(tx.comp_order);
    case 4:
        return number(tx.inject_size);
    case 5:
        return number(tx.size);
    case 6:
        return number(tx.iov_limit);
    case 7:
        return number(tx.rma_iov_limit);
    case 8:
        return bits(rx.caps);
    case 9:
        return bits(rx.op_flags);
    case 10:
        return bits(rx.msg_order);
    case 11:
        return bits(rx.comp_order);
    case 12:
        return number(rx.size);
    case 13:
        return number(rx.iov_limit);
    case 14:
        return number(rx.total_buffered_recv);
    default:
        return bits(tx.mode);
    }
}

void Hints::set_member() {
    const unsigned which = input_.octet();
    switch (which & 7) {
    case 0:
    case 1:
        return set_of_contexts(which >> 4);
    case 2:
    case 3:
        return set_of_domain(which >> 4);
    case 4:
        return set_of_endpoint(which >> 4);
    case 5:
        return bits(info.caps);
    case 6:
        return (which & 16) != 0 ? address(info.src_addr, info.src_addrlen)
                                 : address(info.dest_addr, info.dest_addrlen);
    default:
        break;
    }
    switch (which >> 4) {
    case 0:
        return bits(info.mode);
    case 1:
    case 2:
        return number(info.addr_format);
    case 3:
        return text(fabric.name);
    case 4:
        return text(fabric.prov_name);
    case 5:
        return number(fabric.prov_version);
    default:
        info.addr_format = (which & 16) != 0 ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    }
}

// --- the answer ---

bool older(std::uint32_t version) { return FI_VERSION_LT(version, FI_VERSION(1, 5)); }

bool same_text(const char* asked, const char* given) {
    return !asked || (given && std::strcmp(asked, given) == 0);
}

void check_contexts(const fi_info& asked, const fi_info& given) {
    if (const fi_tx_attr* hint = asked.tx_attr) {
        const fi_tx_attr& tx = *given.tx_attr;
        FUZZ_CHECK((hint->op_flags & ~tx.op_flags) == 0 && (hint->msg_order & ~tx.msg_order) == 0);
        FUZZ_CHECK((hint->comp_order & ~tx.comp_order) == 0);
        FUZZ_CHECK(hint->inject_size <= tx.inject_size && hint->size <= tx.size);
        FUZZ_CHECK(hint->iov_limit <= tx.iov_limit && hint->rma_iov_limit <= tx.rma_iov_limit);
    }
    if (const fi_rx_attr* hint = asked.rx_attr) {
        const fi_rx_attr& rx = *given.rx_attr;
        FUZZ_CHECK((hint->op_flags & ~rx.op_flags) == 0 && (hint->msg_order & ~rx.msg_order) == 0);
        FUZZ_CHECK(hint->size <= rx.size && hint->iov_limit <= rx.iov_limit);
        FUZZ_CHECK(hint->total_buffered_recv <= rx.total_buffered_recv);
    }
    FUZZ_CHECK((given.tx_attr->caps & ~given.caps) == 0);
    FUZZ_CHECK((given.rx_attr->caps & ~given.caps) == 0);
}

void check_entry(const fi_info& asked, std::uint32_t version, const fi_info& given) {
    FUZZ_CHECK((asked.caps & ~given.caps) == 0 && (given.mode & ~asked.mode) == 0);
    const fi_ep_type type = given.ep_attr->type;
    FUZZ_CHECK(type == FI_EP_MSG || type == FI_EP_RDM);
    FUZZ_CHECK(!asked.ep_attr || asked.ep_attr->type == FI_EP_UNSPEC ||
               asked.ep_attr->type == type);
    FUZZ_CHECK(given.src_addr &&
               (given.addr_format == FI_SOCKADDR_IN ? given.src_addrlen == sizeof(sockaddr_in)
                                                    : given.src_addrlen == sizeof(sockaddr_in6)));
    check_contexts(asked, given);
    if (const fi_ep_attr* hint = asked.ep_attr) {
        const fi_ep_attr& ep = *given.ep_attr;
        FUZZ_CHECK(hint->max_msg_size <= ep.max_msg_size);
        FUZZ_CHECK(hint->protocol == FI_PROTO_UNSPEC || hint->protocol == ep.protocol);
        FUZZ_CHECK(!hint->auth_key || hint->auth_key_size == 0 ||
                   (ep.auth_key_size == hint->auth_key_size &&
                    std::memcmp(ep.auth_key, hint->auth_key, ep.auth_key_size) == 0));
    }
    if (const fi_domain_attr* hint = asked.domain_attr) {
        const fi_domain_attr& domain = *given.domain_attr;
        FUZZ_CHECK(same_text(hint->name, domain.name));
        FUZZ_CHECK(hint->threading == FI_THREAD_UNSPEC || hint->threading == domain.threading);
        FUZZ_CHECK(hint->cq_data_size <= domain.cq_data_size);
        FUZZ_CHECK(older(version) || hint->mr_cnt <= domain.mr_cnt);
    }
    FUZZ_CHECK(
        same_text(asked.fabric_attr ? asked.fabric_attr->name : nullptr, given.fabric_attr->name));
}

void check_list(const fi_provider& provider, const fi_info& asked, std::uint32_t version,
                fi_info* list) {
    for (const fi_info* each = list; each; each = each->next) {
        check_entry(asked, version, *each);
    }
    fi_info* again = nullptr;
    FUZZ_CHECK(provider.getinfo(version, nullptr, nullptr, 0, list, &again) == 0 && again);
    fi_freeinfo(again);
    fi_freeinfo(list);
}

template <std::size_t n> const char* text(std::uint8_t which, const char* const (&from)[n]) {
    return which % (n + 1) == n ? nullptr : from[which % (n + 1)];
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fi_provider& provider = *fi_prov_ini();
    Input input(data, size);
    const std::uint8_t how = input.octet();
    const std::uint8_t place = input.octet();
    const std::uint32_t version = kVersions[how % std::size(kVersions)];
    const char* node = (how & 0x80) != 0 ? text(place, kNodes) : nullptr;
    const char* service = (how & 0x40) != 0 ? text(place >> 4, kServices) : nullptr;
    std::uint64_t flags = FI_NUMERICHOST | ((how & 0x20) != 0 ? FI_SOURCE : 0);
    if (place == 0xff) {
        flags |= std::uint64_t{input.number()} << 20;
    }
    Hints hints(input);
    while (!input.empty()) {
        hints.set_member();
    }
    const Bytes before = hints.image();
    fi_info* list = nullptr;
    const int rc = provider.getinfo(version, node, service, flags, &hints.info, &list);
    FUZZ_CHECK(hints.image() == before);
    if (rc == 0) {
        FUZZ_CHECK(list);
        check_list(provider, hints.info, version, list);
    } else {
        FUZZ_CHECK(!list);
        FUZZ_CHECK(rc == -FI_ENODATA ||
                   (rc == -FI_EINVAL && (flags & FI_SOURCE) != 0 && !node && !service));
    }
    return 0;
}
