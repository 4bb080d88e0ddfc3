// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See pair.h.
#include "pair.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <span>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace dat::perf {
namespace {

constexpr int kGrace_ms = 2000; // from SIGTERM to SIGKILL: a provider may have to clean up

bool this_is_pinned = false;

// Processors that this process may use.
std::vector<std::size_t> allowed_processors() {
    std::vector<std::size_t> all;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &allowed)) {
                all.push_back(cpu);
            }
        }
    }
    return all;
}

// One process, seen from the one that made it.
struct Child {
    std::string name = "process";
    pid_t pid = -1;
    Fd report;
    std::string said; // a letter, then what it returned or why it did not
    int status = 0;
    bool signalled = false; // by us
};

void write_all(int fd, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
        if (n < 0 && errno != EINTR) {
            return; // nobody is there any more to tell it
        }
        at += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

// How a report begins.
constexpr char kRight = '0';
constexpr char kNotOffered = '1';
constexpr char kFailed = '2';
constexpr char kOtherGone = '3';

template <class Run> std::string report_of(Run&& run) {
    try {
        return kRight + run();
    } catch (const NotOffered& reason) {
        return kNotOffered + std::string(reason.what());
    } catch (const OtherGone& reason) {
        return kOtherGone + std::string(reason.what());
    } catch (const std::exception& reason) {
        return kFailed + std::string(reason.what());
    }
}

// The life of a child. It does not outlive its parent, and if everything else fails
// ends by itself.
template <class Run> [[noreturn]] void be(pid_t parent, int limit_s, int report, Run&& run) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) {
        std::_Exit(1);
    }
    ::signal(SIGPIPE, SIG_IGN);
    ::alarm(static_cast<unsigned>(limit_s + 2 * kGrace_ms / 1000 + 1));
    write_all(report, report_of(run));
    std::_Exit(0);
}

template <class Run> void start(Child& child, int limit_s, Fd& write_end, Run&& run) {
    const pid_t parent = ::getpid();
    child.pid = ::fork();
    if (child.pid < 0) {
        fail("fork: %s", std::strerror(errno));
    }
    if (child.pid == 0) {
        be(parent, limit_s, write_end.get(), run);
    }
    write_end.close();
}

Fd make_pipe(Child& child) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        fail("pipe: %s", std::strerror(errno));
    }
    child.report = Fd(ends[0]);
    return Fd(ends[1]);
}

// Reads what has come; at its end the process is over, or as good as.
void read_report(Child& child) {
    char bytes[4096];
    const ssize_t n = ::read(child.report.get(), bytes, sizeof bytes);
    if (n > 0) {
        child.said.append(bytes, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
        child.report.close();
    }
}

enum class Heard { all, trouble, late };

// Reads reports until all have ended, one has ended that did not go right (if that is
// wanted), or the time is over.
Heard read_reports(std::span<Child> children, Clock::time_point until, bool stop_at_trouble) {
    for (;;) {
        std::vector<pollfd> waiting;
        bool trouble = false;
        for (Child& child : children) {
            if (child.report.open()) {
                waiting.push_back({child.report.get(), POLLIN, 0});
            } else {
                trouble |= child.said.empty() || child.said[0] != kRight;
            }
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (waiting.empty()) {
            return Heard::all;
        }
        if (trouble && stop_at_trouble) {
            return Heard::trouble;
        }
        if (left <= 0) {
            return Heard::late;
        }
        ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<long long>(left, 60000)));
        for (Child& child : children) {
            for (const pollfd& one : waiting) {
                if (one.fd == child.report.get() && one.revents != 0) {
                    read_report(child);
                    break;
                }
            }
        }
    }
}

void send_signal(std::span<Child> children, int number) {
    for (Child& child : children) {
        if (child.report.open() && child.pid > 0) {
            child.signalled = true;
            ::kill(child.pid, number);
        }
    }
}

void reap(Child& child) {
    while (::waitpid(child.pid, &child.status, 0) < 0 && errno == EINTR) {
    }
}

// What to say of a child that gave no report.
std::string death(const Child& child, bool late, int limit_s) {
    if (late && child.signalled) {
        return "the " + child.name + " took longer than " + std::to_string(limit_s) +
               " s and was ended";
    }
    if (WIFSIGNALED(child.status)) {
        return "the " + child.name + " was killed by signal " +
               std::to_string(WTERMSIG(child.status)) + " (" + ::strsignal(WTERMSIG(child.status)) +
               ")";
    }
    return "the " + child.name + " ended with status " + std::to_string(WEXITSTATUS(child.status)) +
           " and said nothing";
}

constexpr int kWeightOfOtherGone = 1;

// How much a child's ending explains: nothing, if it went right; little, if it is what
// the other's end or our signal has led to.
int weight(const Child& child, bool late) {
    if (child.said.empty()) {
        return child.signalled && !late ? kWeightOfOtherGone : 2;
    }
    constexpr int kWeights[] = {0, 3, 2, kWeightOfOtherGone};
    return kWeights[child.said[0] - '0'];
}

Outcome judge(std::span<const Child> children, bool late, int limit_s) {
    Outcome outcome;
    outcome.ending = Ending::right;
    for (const Child& child : children) {
        outcome.said.push_back(child.said.empty() ? std::string() : child.said.substr(1));
        const int now = weight(child, late);
        if (now <= outcome.weight) {
            continue;
        }
        outcome.weight = now;
        if (child.said.empty()) {
            outcome.ending = Ending::failed;
            outcome.why = death(child, late, limit_s);
        } else if (child.said[0] == kNotOffered) {
            outcome.ending = Ending::not_offered;
            outcome.why = child.said.substr(1);
        } else {
            outcome.ending = Ending::failed;
            outcome.why = "the " + child.name + ": " + child.said.substr(1);
        }
    }
    return outcome;
}

// One has ended, and not because another had.
bool is_explained(std::span<const Child> children) {
    return std::ranges::any_of(children, [](const Child& child) {
        return !child.report.open() && weight(child, false) > kWeightOfOtherGone;
    });
}

Outcome finish(std::span<Child> children, int limit_s) {
    const auto limit = Clock::now() + std::chrono::seconds(limit_s);
    const Heard heard = read_reports(children, limit, true);
    if (heard == Heard::trouble && !is_explained(children)) {
        // Who closed its end first is about to say why.
        read_reports(children, Clock::now() + std::chrono::milliseconds(kGrace_ms), false);
    }
    if (heard != Heard::all) {
        const auto grace = Clock::now() + std::chrono::milliseconds(kGrace_ms);
        send_signal(children, SIGTERM);
        if (read_reports(children, grace, false) != Heard::all) {
            send_signal(children, SIGKILL);
        }
    }
    for (Child& child : children) {
        reap(child);
    }
    return judge(children, heard == Heard::late, limit_s);
}

} // namespace

void Fd::close() {
    if (fd_ >= 0) {
        ::close(release());
    }
}

void fail(const char* format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw Failure(text);
}

std::size_t processors() { return allowed_processors().size(); }

bool two_processors() { return processors() >= 2; }

bool pin_to(std::size_t seat, std::size_t seats) {
    // As they were before this thread was pinned: it can have been already.
    static const std::vector<std::size_t> cpus = allowed_processors();
    if (cpus.size() < 2 || seats == 0) {
        return false;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[seat % cpus.size()], &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 && seats <= cpus.size();
}

bool pinned() { return this_is_pinned; }

const Outcome& worse(const Outcome& a, const Outcome& b) { return b.weight > a.weight ? b : a; }

std::pair<Fd, Fd> make_link() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        fail("socketpair: %s", std::strerror(errno));
    }
    return {Fd(ends[0]), Fd(ends[1])};
}

Outcome run_members(std::vector<Member> members, const MemberSide& side, int limit_s) {
    std::vector<Child> children(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        children[i].name = members[i].name;
        Fd write_end = make_pipe(children[i]);
        start(children[i], limit_s, write_end, [&] {
            std::vector<Peer> peers;
            for (Fd& fd : members[i].peers) {
                peers.emplace_back(fd.release(), members[i].role);
            }
            // Only this one has its ends: so the others notice when it is gone.
            for (Member& other : members) {
                other.peers.clear();
            }
            this_is_pinned = pin_to(members[i].seat, members[i].seats);
            return side(members[i], peers);
        });
        members[i].peers.clear();
    }
    return finish(children, limit_s);
}

Outcome run_pair(const std::function<std::string(Peer&)>& side, int limit_s) {
    auto [server, client] = make_link();
    std::vector<Member> members(2);
    members[0] = {.name = "server", .role = Role::server, .seat = 0, .seats = 2, .peers = {}};
    members[1] = {.name = "client", .role = Role::client, .seat = 1, .seats = 2, .peers = {}};
    members[0].peers.push_back(std::move(server));
    members[1].peers.push_back(std::move(client));
    Outcome outcome = run_members(
        std::move(members), [&](const Member&, std::vector<Peer>& peers) { return side(peers[0]); },
        limit_s);
    outcome.server = outcome.said[0];
    outcome.client = outcome.said[1];
    return outcome;
}

Outcome run_alone(const std::function<std::string()>& alone, int limit_s) {
    std::vector<Member> members(1);
    members[0].name = "process";
    Outcome outcome = run_members(
        std::move(members), [&](const Member&, std::vector<Peer>&) { return alone(); }, limit_s);
    outcome.client = outcome.said[0];
    return outcome;
}

} // namespace dat::perf
