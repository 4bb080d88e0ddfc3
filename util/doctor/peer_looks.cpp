// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is said of the peer.
#include "doctor/looks.h"
#include "doctor/peer.h"
#include "net/unmade.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dat::doctor {
namespace {

std::string rounded(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
    return text;
}

std::string sizes_text(const std::vector<std::size_t>& sizes) {
    std::vector<std::string> words;
    words.reserve(sizes.size());
    for (const std::size_t size : sizes) {
        words.push_back(std::to_string(size));
    }
    return listed(words);
}

Finding not_asked(Facts& facts) {
    return none(facts.options.peer.empty() ? "no --peer is named"
                                           : "not looked at: the peer is not reached");
}

bool reached(Facts& facts) {
    return !facts.options.peer.empty() && facts.peer().address().valid() &&
           facts.peer().source().valid() && facts.peer().answer().error == 0;
}

} // namespace

Finding look_peer_name(Facts& facts) {
    if (facts.options.peer.empty()) {
        return not_asked(facts);
    }
    Peer& peer = facts.peer();
    if (!peer.address().valid()) {
        return failure("\"" + peer.name() + "\" stands for no address", peer.name_trouble(),
                       "write `ADDRESS " + peer.name() +
                           "` into /etc/hosts, or name the peer by its address");
    }
    return good(peer.name() + " stands for " + host_text(peer.address()));
}

Finding look_peer_route(Facts& facts) {
    if (facts.options.peer.empty() || !facts.peer().address().valid()) {
        return not_asked(facts);
    }
    Peer& peer = facts.peer();
    const std::string to = host_text(peer.address());
    if (!peer.source().valid()) {
        return failure("no route leads to " + to, "",
                       "as root: ip route add " + to +
                           " via ROUTER, or give an interface an "
                           "address of its network");
    }
    const ofi::LocalAddress* const local = peer.interface();
    const std::string by =
        host_text(peer.source()) + (local ? " of " + local->interface : std::string());
    const ofi::LocalAddress* const own = ofi::find_local(facts.addresses(), peer.address());
    if (own && own->traits.kind == ofi::InterfaceClass::inside && !own->address.loopback()) {
        return warning(to + " is this host's own address too (" + own->interface + ")",
                       "a connection to it does not leave this host",
                       "let the peer offer another address: FI_DAT_IFACE there");
    }
    return good("from " + by);
}

Finding look_peer_answer(Facts& facts) {
    if (facts.options.peer.empty() || !facts.peer().source().valid()) {
        return not_asked(facts);
    }
    Peer& peer = facts.peer();
    const std::string at = std::string(peer.address().text());
    const std::string serve =
        "dat_doctor --serve" +
        (peer.port() == kDefaultPort ? std::string() : " --port " + peer.port());
    switch (const int error = peer.answer().error) {
    case 0:
        return good(at + " answers");
    case EPROTO:
        return failure(at + " answers, and is no dat_doctor that this one understands",
                       "another program has that port, or its version is another one",
                       "there: " + serve +
                           " of the same version; or name another port, "
                           "--peer HOST:PORT");
    case ECONNREFUSED:
        return failure(at + " refuses", net::cause_unmade(error), "there: " + serve);
    case ETIMEDOUT:
        return failure(at + " does not answer within 3 s", net::cause_unmade(error),
                       "let TCP through on the way, and there: see nft list ruleset and ip route; "
                       "does it answer to ping " +
                           peer.name() + "?");
    default:
        return failure(at + " is not reached: " + std::strerror(error), net::cause_unmade(error),
                       "does it answer to ping " + peer.name() +
                           "? Its answers need a route back, "
                           "too");
    }
}

Finding look_peer_versions(Facts& facts) {
    if (!reached(facts)) {
        return not_asked(facts);
    }
    const Greeting own = own_greeting(facts);
    const Greeting& theirs = facts.peer().answer().greeting;
    const auto text = [](const Greeting& side) {
        return "dat_doctor " + side.version + ", libfabric " + side.libfabric + ", provider " +
               side.provider;
    };
    if (theirs.provider == "none") {
        return failure("the peer has no provider dat", "there: " + text(theirs),
                       "there: dat_doctor says why");
    }
    if (own.provider != theirs.provider && own.provider != "none") {
        return warning("here " + text(own) + "; there " + text(theirs),
                       "versions that differ understand each other, and use what both know",
                       "install one version on both");
    }
    return good("both have provider " + theirs.provider + "; libfabric " + own.libfabric +
                " here, " + theirs.libfabric + " there");
}

Finding look_peer_mtu(Facts& facts) {
    if (!reached(facts)) {
        return not_asked(facts);
    }
    Peer& peer = facts.peer();
    const Sizes& sizes = peer.sizes();
    if (!sizes.trouble.empty()) {
        return none("not looked at: " + sizes.trouble);
    }
    if (sizes.lost_there.empty() && sizes.lost_back.empty()) {
        return good("packets of " + sizes_text(sizes.tried) + " bytes get there, and back");
    }
    std::string finding;
    const std::string good_size = std::to_string(sizes.longest);
    if (!sizes.lost_there.empty()) {
        finding = "packets of " + sizes_text(sizes.lost_there) + " bytes on the way there";
    }
    if (!sizes.lost_back.empty()) {
        finding += finding.empty() ? "packets of " : ", and those of ";
        finding += sizes_text(sizes.lost_back) + " bytes on the way back";
    }
    const ofi::LocalAddress* const local = peer.interface();
    return failure(
        finding + " get lost; those of " + good_size + " come",
        "something between takes no longer ones, and nobody tells the sender: connections "
        "are made, and hang at the first large message",
        "as root, on both: ip link set " + (local ? local->interface : "NAME") + " mtu " +
            good_size +
            "; or raise the MTU of what is between, or let its ICMP through "
            "(fragmentation needed, packet too big)");
}

Finding look_peer_connect(Facts& facts) {
    if (!reached(facts) || !facts.provider_usable() ||
        facts.peer().answer().greeting.provider == "none") {
        return not_asked(facts);
    }
    Peer& peer = facts.peer();
    const Exchange& tried = peer.few();
    if (tried.trouble.empty()) {
        return good("64 bytes went there and back (" + tried.own["what"] + ")");
    }
    std::string why = tried.own.line_with("no connection from ");
    if (why.empty()) {
        why = tried.own.line_with("fi_getinfo() finds nothing: ");
    }
    for (const std::string& line : tried.others) {
        const std::size_t at = line.find("fi_getinfo() finds nothing: ");
        why = why.empty() && at != std::string::npos ? "there: " + line.substr(at) : why;
    }
    return failure("no connection: " + tried.trouble, why,
                   why.find("fi_getinfo() finds nothing") != std::string::npos
                       ? "that address has to be offered on both sides: unset FI_DAT_IFACE and "
                         "FI_DAT_TRANSPORT, or let them leave it"
                       : "let all TCP ports through, there: programs listen on any "
                         "(net.ipv4.ip_local_port_range)");
}

Finding look_peer_link(Facts& facts) {
    if (!reached(facts) || !facts.provider_usable() || !facts.peer().few().trouble.empty()) {
        return not_asked(facts);
    }
    const Exchange& tried = facts.peer().few();
    const Link link = link_of(tried.own, tried.others);
    if (link.kind == Link::Kind::unknown) {
        return none("the log does not say it");
    }
    if (link.kind == Link::Kind::memory) {
        const Finding copies = copies_finding(link);
        return copies.status == Status::ok ? good("shared memory; large messages are copied once")
                                           : copies;
    }
    if (link.why.find("on another host") != std::string::npos) {
        return good("TCP: " + link.why);
    }
    return memory_finding(link);
}

Finding look_peer_speed(Facts& facts) {
    if (!reached(facts) || !facts.provider_usable() || !facts.peer().few().trouble.empty()) {
        return not_asked(facts);
    }
    if (!facts.peer().sizes().lost_there.empty() || !facts.peer().sizes().lost_back.empty()) {
        return none("not measured: large packets get lost");
    }
    const Exchange& tried = facts.peer().many();
    const auto number = [&](const char* key) {
        return std::strtod(tried.own[key].c_str(), nullptr);
    };
    const double there = number("there_MBs");
    const double back = number("back_MBs");
    if (!tried.trouble.empty() || there <= 0 || back <= 0) {
        return failure("it breaks off under load: " + tried.trouble,
                       tried.own.line_with("connection"),
                       "see ip -s link, and the log of both (FI_LOG_LEVEL=info)");
    }
    const std::string finding = "64 bytes take " + rounded(number("half_us")) +
                                " us one way; 1 MiB messages: " + rounded(there) + " MB/s there, " +
                                rounded(back) + " MB/s back";
    if (is_uneven(there, back)) {
        return warning(finding,
                       "one direction is slower by far: packets get lost on it, or are held up",
                       std::string("see to the way ") + (there < back ? "there" : "back") +
                           ": ip -s link, tc qdisc, ethtool (speed and duplex), and nstat -az "
                           "TcpRetransSegs at its sender");
    }
    return good(finding);
}

} // namespace dat::doctor
