// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See unmade.h.
#include "net/unmade.h"

#include "base/log.h"
#include "engine/proc.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ifaddrs.h>
#include <mutex>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace dat::net {
namespace {

constexpr int kUnanswered = 0; // no error of connect(2)

// What was said last. Of more peers than these, one may be named again.
class Said {
  public:
    // False: that was said.
    bool note(const SocketAddress& peer, int error) {
        const std::lock_guard lock(mutex_);
        const auto same = [&](const Entry& entry) {
            return entry.error == error && entry.peer.same_host(peer) &&
                   entry.peer.port() == peer.port();
        };
        const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(count_);
        if (std::any_of(entries_.begin(), end, same)) {
            return false;
        }
        entries_[next_] = {peer, error};
        next_ = (next_ + 1) % entries_.size();
        count_ = std::min(count_ + 1, entries_.size());
        return true;
    }

  private:
    struct Entry {
        SocketAddress peer;
        int error = 0;
    };
    std::mutex mutex_;
    std::array<Entry, 64> entries_;
    std::size_t next_ = 0;
    std::size_t count_ = 0;
};

// "eth0", or empty.
using InterfaceName = std::array<char, IFNAMSIZ>;
InterfaceName interface_of(const SocketAddress& address) {
    InterfaceName name{};
    ifaddrs* all = nullptr;
    if (!address.valid() || getifaddrs(&all) != 0) {
        return name;
    }
    for (const ifaddrs* each = all; each; each = each->ifa_next) {
        const sockaddr* at = each->ifa_addr;
        const std::size_t size = !at                         ? 0
                                 : at->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                             : sizeof(sockaddr_in);
        if (SocketAddress(at, size).same_host(address)) {
            std::snprintf(name.data(), name.size(), "%s", each->ifa_name);
            break;
        }
    }
    freeifaddrs(all);
    return name;
}

// For how long TCP waits for an answer, in seconds. A SYN is sent again behind a second, and then
// each time behind twice as long, up to 2 minutes. From Linux 6.5 on the first waits, as many as
// it is set to, are all of a second. The wait that is over when that many waits of twice as long
// would be, `retries` and the first, is the last.
int seconds_in_all(int retries) {
    static constexpr int kLongest = 120;
    const auto longer = [](int wait) { return std::min(2 * wait, kLongest); };
    int least = 0;
    for (int sent = 0, wait = 1; sent <= retries; ++sent, wait = longer(wait)) {
        least += wait;
    }
    const int linear = engine::number_in("/proc/sys/net/ipv4/tcp_syn_linear_timeouts", ""); // or -1
    int all = 0;
    for (int sent = 0, wait = 1; all < least; ++sent) {
        all += wait;
        wait = sent < linear ? wait : longer(wait);
    }
    return all;
}

void say(const SocketAddress& local, const SocketAddress& peer, int error, const char* cause) {
    static Said& said = *new Said; // threads may outlive static objects
    if (!base::wants(base::LogLevel::warn, base::LogArea::ep_ctrl) || !said.note(peer, error)) {
        return;
    }
    const InterfaceName from = interface_of(local);
    const InterfaceName own = peer.loopback() ? InterfaceName{} : interface_of(peer);
    std::array<char, 160> also{};
    if (own[0] != '\0') {
        std::snprintf(also.data(), also.size(),
                      "; that is this host's own address too (%s): if another host is meant, it "
                      "has to offer another one (FI_DAT_IFACE there)",
                      own.data());
    }
    DAT_WARN(ep_ctrl, "no connection from %s (%s) to %s: %s%s", local.text().c_str(),
             from[0] != '\0' ? from.data() : "no interface", peer.text().c_str(), cause,
             also.data());
}

} // namespace

const char* cause_unmade(int error) {
    switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
        return "nobody listens there; its program has to run, and the port to be the right one";
    case ETIMEDOUT:
        return "it never answered; a filter may be in the way, or the address be another host's";
    case EHOSTUNREACH:
    case EHOSTDOWN:
        return "nobody there has that address, or a router knows no way; that host has to be up, "
               "and the address to be the right one";
    case ENETUNREACH:
    case ENETDOWN:
        return "no route leads there; see `ip route get`, or name another interface in "
               "FI_DAT_IFACE";
    case EINVAL:
        return "no way leads there from the source address: a route drops it (see `ip route get`), "
               "or "
               "the source is a loopback address, which reaches this host alone";
    case EACCES:
    case EPERM:
        return "a route or a filter of this host forbids it; see `ip route get`, and the rules for "
               "what goes out";
    default:
        return std::strerror(error);
    }
}

void say_unmade(const SocketAddress& local, const SocketAddress& peer, int error) {
    say(local, peer, error, cause_unmade(error));
}

void say_unanswered(const Socket& socket, const SocketAddress& peer) {
    tcp_info info{};
    socklen_t size = sizeof info;
    getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size);
    int most = 0;
    size = sizeof most;
    getsockopt(socket.fd(), IPPROTO_TCP, TCP_SYNCNT, &most, &size);
    std::array<char, 320> cause;
    std::snprintf(cause.data(), cause.size(),
                  "no answer to %d SYNs in %lld s; a filter may be in the way, or the address be "
                  "another host's. TCP goes on for %d s in all (tcp_syn_retries), or as long as "
                  "the program waits",
                  info.tcpi_retransmits + 1, static_cast<long long>(kUnansweredFor.count()),
                  seconds_in_all(most));
    say(socket.local(), peer, kUnanswered, cause.data());
}

void say_only_local(const SocketAddress& at) {
    DAT_WARN(ep_ctrl,
             "fi_listen() on %s: only this host reaches that. Where its name stands for that in "
             "/etc/hosts, pass an address of an interface",
             at.text().c_str());
}

} // namespace dat::net
