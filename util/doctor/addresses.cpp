// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Addresses of this host, and its names.
#include "doctor/facts.h"
#include "doctor/looks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <netdb.h>
#include <sstream>
#include <unistd.h>

namespace dat::doctor {
namespace {

using ofi::InterfaceClass;
using ofi::LocalAddress;

// The address of an offer among those of this host; nullptr: it is none of software.
const LocalAddress* local_of(Facts& facts, const Offer& offer) {
    const auto& all = facts.addresses();
    const auto at = std::ranges::find_if(
        all, [&](const LocalAddress& local) { return host_text(local.address) == offer.address; });
    return at == all.end() ? nullptr : &*at;
}

// The first address of this host that leads to others, and its interface's name.
const LocalAddress* way_out(Facts& facts) {
    for (const LocalAddress& local : facts.addresses()) {
        if (!local.address.loopback() && !local.address.link_local() && local.running &&
            local.traits.kind != InterfaceClass::inside) {
            return &local;
        }
    }
    return nullptr;
}

// What a name stands for; nothing, and `why`, where that is nothing or takes too long.
std::vector<std::string> stands_for(const std::string& name, std::string& why) {
    const Outcome asked = in_child(3s, [&](const Report& report) {
        std::string reason;
        for (const ofi::SocketAddress& address :
             ofi::resolve({name.c_str(), nullptr, AF_UNSPEC, false, false}, reason)) {
            report.say("address", host_text(address));
        }
        report.say("why", reason);
    });
    std::vector<std::string> addresses;
    for (const auto& [key, value] : asked.facts) {
        if (key == "address") {
            addresses.push_back(value);
        }
    }
    why = asked.late ? "no name server answers within 3 s" : asked["why"];
    return addresses;
}

// "line 2 of /etc/hosts" that gives the name that address; empty: none does.
std::string line_of_hosts(const std::string& name, const std::string& address) {
    std::size_t number = 0;
    for (const std::string& line : lines_of_file("/etc/hosts")) {
        ++number;
        std::istringstream words(line.substr(0, line.find('#')));
        std::string word;
        words >> word;
        if (word != address) {
            continue;
        }
        while (words >> word) {
            if (word == name) {
                return "line " + std::to_string(number) + " of /etc/hosts";
            }
        }
    }
    return {};
}

} // namespace

Finding look_address_order(Facts& facts) {
    if (facts.offers().empty()) {
        return none("not looked at: nothing is offered");
    }
    std::vector<std::string> words;
    bool leads_out = false;
    for (const Offer& offer : facts.offers()) {
        words.push_back(offer.domain + " " + offer.address);
        const LocalAddress* const local = local_of(facts, offer);
        leads_out = leads_out || !local || !local->address.loopback();
    }
    const std::string finding = listed(words);
    if (!leads_out) {
        const std::string only = variable("FI_DAT_IFACE");
        const LocalAddress* const out = way_out(facts);
        return warning("there is nothing but " + finding, "no other host can be reached by that",
                       out ? "FI_DAT_IFACE=" + only + ": unset it, or export FI_DAT_IFACE=" +
                                 out->interface
                           : "give an interface an address, and let it be up: ip addr add "
                             "ADDRESS/PREFIX dev NAME; ip link set NAME up");
    }
    return good(finding);
}

Finding look_address_bridge(Facts& facts) {
    if (facts.offers().empty()) {
        return none("not looked at: nothing is offered");
    }
    const Offer& first = facts.offers().front();
    const LocalAddress* const local = local_of(facts, first);
    if (!local || local->address.loopback()) {
        return none("no address leads to other hosts");
    }
    if (local->traits.kind == InterfaceClass::inside) {
        const LocalAddress* const better = way_out(facts);
        return warning("the first address that programs get, " + first.address + " of " +
                           first.domain + ", is that of a bridge, container or tunnel",
                       "other hosts may have the same one, and a connection ends there, or nowhere",
                       better ? "export FI_DAT_IFACE=" + better->interface
                              : "give an interface that leads to other hosts an address, and let "
                                "it be up; FI_DAT_IFACE=NAME takes it first");
    }
    return good(
        "it is " + first.address + " of " + first.domain +
        (local->traits.kind == InterfaceClass::way_out ? ", by which the default route goes" : ""));
}

Finding look_address_carrier(Facts& facts) {
    std::vector<std::string> names;
    for (const LocalAddress& local : facts.addresses()) {
        if (!local.running && !local.address.loopback() &&
            local.traits.kind != InterfaceClass::inside &&
            std::ranges::find(names, local.interface) == names.end()) {
            names.push_back(local.interface);
        }
    }
    if (names.empty()) {
        return good("every interface with an address has one");
    }
    return warning(listed(names) + (names.size() == 1 ? " is" : " are") +
                       " up and without a carrier",
                   "its addresses are offered, behind all others; nothing gets out by them",
                   "see to cable and switch, or: ip link set " + names.front() + " down");
}

Finding look_address_ipv6(Facts&) {
    constexpr unsigned kFailed = 0x08;    // another host has it (IFA_F_DADFAILED)
    constexpr unsigned kTentative = 0x40; // it is being looked for (IFA_F_TENTATIVE)
    std::size_t usable = 0;
    for (const std::string& line : lines_of_file("/proc/net/if_inet6")) {
        std::array<char, 33> digits{};
        std::array<char, 33> name{};
        unsigned scope = 0;
        unsigned flags = 0;
        if (std::sscanf(line.c_str(), "%32s %*x %*x %x %x %32s", digits.data(), &scope, &flags,
                        name.data()) != 4) {
            continue;
        }
        constexpr unsigned kLink = 0x20;
        if (scope == kLink) {
            continue;
        }
        if ((flags & (kFailed | kTentative)) != 0) {
            std::string address;
            for (std::size_t i = 0; i < 32; i += 4) {
                address += (i == 0 ? "" : ":") + std::string(digits.data() + i, 4);
            }
            const bool failed = (flags & kFailed) != 0;
            return warning("the address " + address + " of " + name.data() + " cannot be used" +
                               (failed ? "" : " yet"),
                           failed ? "another host has it already (dadfailed)"
                                  : "the kernel is still looking whether another host has it "
                                    "(tentative)",
                           failed ? std::string("take another one: ip addr del ") + address +
                                        " dev " + name.data()
                                  : std::string("wait, or: ip addr del ") + address + "/64 dev " +
                                        name.data() + "; ip addr add " + address + "/64 dev " +
                                        name.data() + " nodad");
        }
        ++usable;
    }
    return usable == 0 ? none("this host has no IPv6 address")
                       : good(std::to_string(usable) + (usable == 1 ? " is" : " are") + " there");
}

Finding look_name_host(Facts& facts) {
    std::array<char, 256> buffer{};
    gethostname(buffer.data(), buffer.size() - 1);
    const std::string name = buffer.data();
    std::string why;
    const std::vector<std::string> addresses = stands_for(name, why);
    const LocalAddress* const out = way_out(facts);
    const std::string right =
        (out ? host_text(out->address) : std::string("ADDRESS-OF-AN-INTERFACE")) + " " + name;
    if (addresses.empty()) {
        return warning("the name of this host, " + name + ", stands for nothing", why,
                       "write into /etc/hosts: " + right);
    }
    const std::string finding = name + " stands for " + listed(addresses);
    const auto& all = facts.addresses();
    const auto is_local = [&](const std::string& address, bool loopback) {
        return std::ranges::any_of(all, [&](const LocalAddress& local) {
            return local.address.loopback() == loopback && host_text(local.address) == address;
        });
    };
    for (const std::string& address : addresses) {
        const bool loopback = address.starts_with("127.") || address == "::1";
        if (loopback && out) {
            const std::string line = line_of_hosts(name, address);
            return warning(
                finding + ", which only this host reaches",
                line.empty() ? "a program that listens there is refused to others"
                             : line + " says so",
                (line.empty() ? "write into /etc/hosts: " : "write into " + line + " instead: ") +
                    right);
        }
        if (!loopback && !is_local(address, false)) {
            return warning(finding + ", and " + address + " is no address of this host",
                           "a program that binds to its host's name fails",
                           "write into /etc/hosts: " + right);
        }
    }
    return good(finding);
}

Finding look_name_localhost(Facts& facts) {
    std::string why;
    const std::vector<std::string> addresses = stands_for("localhost", why);
    if (addresses.empty()) {
        return warning("localhost stands for nothing", why,
                       "write into /etc/hosts: 127.0.0.1 localhost");
    }
    const auto& all = facts.addresses();
    if (std::ranges::none_of(all, [](const auto& local) { return local.address.loopback(); })) {
        return none("the loopback interface is down");
    }
    for (const std::string& address : addresses) {
        const bool there = std::ranges::any_of(all, [&](const LocalAddress& local) {
            return local.address.loopback() &&
                   (host_text(local.address) == address ||
                    (local.address.family() == AF_INET && address.starts_with("127.")));
        });
        if (!there && address == "::1") {
            return warning("localhost stands for ::1, which no interface has",
                           "IPv6 is off on the loopback interface",
                           "sysctl -w net.ipv6.conf.lo.disable_ipv6=0, or take `localhost` out of "
                           "the line of /etc/hosts that begins with ::1");
        }
        if (!there) {
            return warning("localhost stands for " + address + ", which no interface has",
                           "programs that listen on localhost fail",
                           "write into /etc/hosts: 127.0.0.1 localhost");
        }
    }
    return good("localhost stands for " + listed(addresses));
}

} // namespace dat::doctor
