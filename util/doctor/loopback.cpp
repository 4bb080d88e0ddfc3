// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A connection within this host.
#include "doctor/exchange.h"
#include "doctor/facts.h"
#include "doctor/looks.h"

#include <algorithm>
#include <array>
#include <sys/socket.h>
#include <unistd.h>

namespace dat::doctor {
namespace {

constexpr char kUsual[] = "127.0.0.1"; // if FI_DAT_IFACE leaves that
constexpr auto kLimit = 30s;           // on a busy host

} // namespace

// Neither is the other's parent: else the kernel might let the one read the other's memory for
// that.
const Facts::Loopback& Facts::loopback() {
    if (loopback_) {
        return *loopback_;
    }
    std::array<int, 2> ends{};
    loopback_.emplace();
    loopback_->address =
        std::ranges::find(offers(), kUsual, &Offer::address) == offers().end() && !offers().empty()
            ? offers().front().address
            : kUsual;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        loopback_->client.trouble = loopback_->server.trouble = "socketpair(2) fails";
        return *loopback_;
    }
    const auto limit = Clock::now() + kLimit;
    const auto side = [&](Role role) {
        return [&ends, role, this](const Report& report) {
            const auto own = static_cast<std::size_t>(role == Role::client);
            ::close(ends[1 - own]);
            const Beside other(ends[own], role);
            log_everything();
            exchange_few(other, loopback_->address, report);
        };
    };
    Child server(side(Role::server));
    Child client(side(Role::client));
    ::close(ends[0]);
    ::close(ends[1]);
    loopback_->client = client.outcome(limit);
    loopback_->server = server.outcome(limit);
    return *loopback_;
}

namespace {

bool loopback_is_up(Facts& facts) {
    return std::ranges::any_of(
        facts.addresses(), [](const ofi::LocalAddress& local) { return local.address.loopback(); });
}

Finding not_asked() { return none("not looked at: the provider is not there, or offers nothing"); }

} // namespace

Finding look_loopback_connect(Facts& facts) {
    if (!facts.provider_usable()) {
        return not_asked();
    }
    if (!loopback_is_up(facts)) {
        return failure("no connection: the loopback interface is down",
                       "all addresses of this host are reached by it, by this host itself",
                       "as root: ip link set lo up");
    }
    const Facts::Loopback& tried = facts.loopback();
    if (tried.client.all_right() && tried.server.all_right()) {
        return good("64 bytes went there and back on " + tried.address + " (" +
                    tried.client["what"] + ")");
    }
    const Outcome& bad = tried.client.all_right() ? tried.server : tried.client;
    std::string why = bad.line_with("no connection from ");
    if (why.empty()) {
        why = bad.line_with("fi_getinfo() finds nothing: ");
    }
    return failure("no connection on " + tried.address + ": " + bad.trouble, why,
                   "FI_LOG_LEVEL=info fi_pingpong -p dat -e msg shows more");
}

namespace {

constexpr std::string_view kUsesTcp = " uses TCP: ";
constexpr std::string_view kUsesMemory = " uses shared memory: ";
constexpr std::string_view kNotTaken = "an offer of shared memory is not taken: ";
constexpr std::string_view kPieces = "come in pieces: ";

std::string behind(const std::string& line, std::string_view words) {
    const std::size_t at = line.find(words);
    return at == std::string::npos ? "" : line.substr(at + words.size());
}

} // namespace

// What the log says of the link; `others`: the log of the other side, which may know better why.
Link link_of(const Outcome& own, const std::vector<std::string>& others) {
    Link link;
    link.why = behind(own.line_with(kUsesTcp), kUsesTcp);
    if (!link.why.empty()) {
        link.kind = Link::Kind::tcp;
        // Who offers memory has the cause where the other only sees that there is none.
        for (const std::string& line : others) {
            if (line.find(kNotTaken) != std::string::npos) {
                link.why = line;
                return link;
            }
            const std::string theirs = behind(line, kUsesTcp);
            if (link.why.starts_with("the peer ") && !theirs.empty() &&
                !theirs.starts_with("the peer ")) {
                link.why = theirs;
            }
        }
        return link;
    }
    const std::string memory = own.line_with(kUsesMemory);
    if (!memory.empty()) {
        link.kind = Link::Kind::memory;
        link.why = behind(memory, kPieces);
    }
    return link;
}

Finding memory_finding(const Link& link) {
    if (link.kind == Link::Kind::memory) {
        return good("it does");
    }
    if (link.kind == Link::Kind::unknown) {
        return none("the log does not say what it went over");
    }
    const bool chosen = link.why.find("FI_DAT_SHM=0") != std::string::npos;
    const bool another_user = link.why.find("user") != std::string::npos;
    return warning("processes of this host use TCP with each other", link.why,
                   chosen         ? "unset FI_DAT_SHM"
                   : another_user ? "run both as one user, or export FI_DAT_SHM_PEERS=any for both"
                                  : "let memfd_create(2) and local sockets be permitted and have "
                                    "memory and descriptors: ulimit -n, ulimit -v, the filter of "
                                    "the container, vm.memfd_noexec");
}

Finding copies_finding(const Link& link) {
    if (link.kind != Link::Kind::memory) {
        return none("not looked at: they do not share memory");
    }
    if (link.why.empty()) {
        return good("they are");
    }
    const auto says = [&](std::string_view word) {
        return link.why.find(word) != std::string::npos;
    };
    return warning("they come in pieces, which is slower above 24 KiB", link.why,
                   says("ptrace_scope") ? "as root: sysctl -w kernel.yama.ptrace_scope=0"
                   : says("namespace")  ? "run both in one process namespace: docker run "
                                          "--pid=host, or hostPID: true of a pod"
                   : says("user")       ? "run both as one user"
                                        : "let the container permit process_vm_readv(2): docker "
                                          "run --cap-add SYS_PTRACE, or a filter of one's own "
                                          "(--security-opt seccomp=FILE)");
}

namespace {

bool connected(Facts& facts) {
    return facts.provider_usable() && loopback_is_up(facts) && facts.loopback().client.all_right();
}

} // namespace

Finding look_loopback_memory(Facts& facts) {
    if (!connected(facts)) {
        return none("not looked at: there is no connection");
    }
    const Facts::Loopback& tried = facts.loopback();
    return memory_finding(link_of(tried.client, tried.server.log));
}

Finding look_loopback_copies(Facts& facts) {
    if (!connected(facts)) {
        return none("not looked at: there is no connection");
    }
    const Facts::Loopback& tried = facts.loopback();
    return copies_finding(link_of(tried.client, tried.server.log));
}

} // namespace dat::doctor
