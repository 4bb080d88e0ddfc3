// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What FI_EP_RDM costs by the number of its peers. Nothing here decides whether a test passes.
//
//   rdm_scale peers PROVIDER ADDRESS PEERS ROUNDS
//
//   One endpoint here, and as many in another process, which polls them all by one queue. Prints
//   the half round trip of a tagged message of 64 bytes to one peer where there is no other, the
//   time of a first message to a new peer until its answer is here, then both ways with all peers:
//   with one of them while the others are idle, and with all in turn; and what a peer adds to the
//   memory of this process, and its only peer to an endpoint's in the other.
//
//   rdm_scale mesh PROVIDER ADDRESS PROCESSES ROUNDS
//
//   So many processes with an endpoint each. In a round each sends 64 bytes to all others, and has
//   received from all of them. Prints the time of the first round, with which the connections come,
//   and of the others. A process gives its processor away when it asked in vain, as MPI does where
//   there are more processes than processors.
#include "memory.h"
#include "rdm_ends.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <sched.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace dat::bench;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kSize = 64;

double since(Clock::time_point begin) { return Microseconds(Clock::now() - begin).count(); }

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of.empty() ? 0 : of[of.size() / 2];
}

// What all processes see: how many are there and how far they are, their names, and what they say
// of themselves. Zeros at first.
struct Common {
    std::atomic<unsigned> ready;
    std::atomic<unsigned> posted;
    std::atomic<unsigned> done;
    std::atomic<bool> over;
    std::atomic<double> memory;

    static Common* make(std::size_t names, RdmEnd::Name*& first) {
        const std::size_t head = 4096;
        static_assert(sizeof(Common) <= 4096);
        void* const at = mmap(nullptr, head + names * sizeof(RdmEnd::Name), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            std::perror("mmap");
            std::exit(1);
        }
        first = reinterpret_cast<RdmEnd::Name*>(static_cast<char*>(at) + head);
        return new (at) Common{};
    }
};

template <class T> void wait_for(const std::atomic<T>& counter, T value) {
    while (counter.load() < value) {
        sched_yield();
    }
}

// One process: its endpoints, of one domain, and their completions.
class Process {
  public:
    Process(const char* provider, const char* address, std::size_t endpoints, std::size_t peers)
        : fabric_(provider, address), entries_(2 * std::max(endpoints, peers) + 64),
          domain_(fabric_, entries_) {
        for (std::size_t i = 0; i < endpoints; ++i) {
            ends_.push_back(std::make_unique<RdmEnd>(domain_, fabric_.info));
        }
        out_.resize(kSize);
        in_.resize(kSize * std::max(endpoints, peers));
        contexts_.resize(entries_);
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    RdmEnd::Name name(std::size_t end = 0) const { return ends_[end]->name(); }
    fi_addr_t know(const RdmEnd::Name& name) { return domain_.know(name.data()); }

    // A receive of one endpoint, which says its number when it is done.
    void receive(std::size_t number, std::size_t end = 0) {
        fi_context2& context = contexts_[number];
        while (const ssize_t rc = fi_trecv(ends_[end]->ep, &in_[number * kSize], kSize, nullptr,
                                           FI_ADDR_UNSPEC, 1, 0, &context)) {
            ok(rc == -FI_EAGAIN ? 0 : rc, "fi_trecv");
            progress();
        }
    }
    void send(fi_addr_t to, std::size_t end = 0) {
        while (const ssize_t rc = fi_tsend(ends_[end]->ep, out_.data(), kSize, nullptr, to, 1,
                                           &contexts_[entries_ - 1])) {
            ok(rc == -FI_EAGAIN ? 0 : rc, "fi_tsend");
            progress();
        }
    }
    // Takes what is there; what was received waits in received().
    bool progress() {
        fi_cq_tagged_entry entry;
        const ssize_t got = fi_cq_read(domain_.cq, &entry, 1);
        if (got != 1) {
            ok(got == -FI_EAGAIN ? 0 : got, "fi_cq_read");
            return false;
        }
        if ((entry.flags & FI_RECV) != 0) {
            received_.push_back(static_cast<std::size_t>(
                static_cast<fi_context2*>(entry.op_context) - &contexts_[0]));
        } else {
            ++sent_;
        }
        return true;
    }
    std::vector<std::size_t>& received() { return received_; }
    std::size_t& sent() { return sent_; }

  private:
    RdmFabric fabric_;
    std::size_t entries_;
    RdmDomain domain_;
    std::vector<std::unique_ptr<RdmEnd>> ends_;
    std::vector<char> out_;
    std::vector<char> in_;
    std::vector<fi_context2> contexts_;
    std::vector<std::size_t> received_;
    std::size_t sent_ = 0;
};

// A child that failed is waited for by nobody: the others end with this process.
void end_with_a_child(int) {
    siginfo_t child{};
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid != 0 &&
        child.si_status != 0) {
        _exit(1);
    }
}

// The child ends with this process at the latest.
pid_t begin(const auto& run) {
    std::signal(SIGCHLD, end_with_a_child);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            run();
        }
        std::exit(0);
    }
    return child;
}

int wait_for_end(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

// Each endpoint answers whoever speaks to it, who is always the same.
void answer(Process& process, Common& common, std::size_t endpoints, const RdmEnd::Name& of) {
    const fi_addr_t to = process.know(of);
    const Footprint before = footprint();
    for (std::size_t i = 0; i < endpoints; ++i) {
        process.receive(i, i);
    }
    common.ready = 2;
    while (!common.over) {
        process.progress();
        for (const std::size_t number : process.received()) {
            process.receive(number, number);
            process.send(to, number);
        }
        process.received().clear();
        if (common.done == 1) {
            common.memory = per_endpoint(before, footprint(), endpoints).rss;
            common.done = 2;
        }
    }
}

class Asker {
  public:
    explicit Asker(Process& process) : process_(process) { process.receive(0); }
    // There and back, in microseconds.
    double ask(fi_addr_t peer) {
        const auto begin = Clock::now();
        process_.send(peer);
        while (process_.received().empty()) {
            process_.progress();
        }
        const double took = since(begin);
        process_.received().clear();
        process_.receive(0);
        return took;
    }
    // The mean half of it, each of the peers in turn.
    double half(const std::vector<fi_addr_t>& peers, long rounds) {
        const auto begin = Clock::now();
        for (long i = 0; i < rounds; ++i) {
            ask(peers[static_cast<std::size_t>(i) % peers.size()]);
        }
        return since(begin) / static_cast<double>(2 * rounds);
    }

  private:
    Process& process_;
};

int peers(const char* provider, const char* address, std::size_t count, long rounds) {
    RdmEnd::Name* names = nullptr;
    Common& common = *Common::make(count + 1, names);
    const pid_t child = begin([&] {
        Process process(provider, address, count, 1);
        for (std::size_t i = 0; i < count; ++i) {
            names[i] = process.name(i);
        }
        common.ready = 1;
        wait_for(common.done, 1U);
        common.done = 0;
        answer(process, common, count, names[count]);
    });
    wait_for(common.ready, 1U);
    {
        Process process(provider, address, 1, count);
        std::vector<fi_addr_t> all;
        for (std::size_t i = 0; i < count; ++i) {
            all.push_back(process.know(names[i]));
        }
        names[count] = process.name();
        common.done = 1;
        wait_for(common.ready, 2U);
        Asker asker(process);
        const std::vector<fi_addr_t> one{all[0]};
        asker.half(one, rounds / 10 + 1);
        std::printf("%zu peers; us\n", count);
        std::printf("half round trip, no other peer   %8.3f\n", asker.half(one, rounds));
        const Footprint before = footprint();
        std::vector<double> first;
        for (std::size_t i = 1; i < count; ++i) {
            first.push_back(asker.ask(all[i]));
        }
        const Footprint after = footprint();
        std::printf("first message to a peer, median  %8.1f\n", median(first));
        std::printf("half round trip, others idle     %8.3f\n", asker.half(one, rounds));
        asker.half(all, static_cast<long>(count));
        std::printf("half round trip, all in turn     %8.3f\n", asker.half(all, rounds));
        common.done = 1;
        wait_for(common.done, 2U);
        if (count > 1) {
            std::printf("KiB a peer: here %.1f, there %.1f\n",
                        per_endpoint(before, after, count - 1).rss / 1024, common.memory / 1024);
        }
    }
    common.over = true;
    return wait_for_end(child);
}

// One of a mesh.
void member(const char* provider, const char* address, std::size_t me, std::size_t count,
            long rounds, Common& common, RdmEnd::Name* names) {
    Process process(provider, address, 1, count);
    names[me] = process.name();
    ++common.ready;
    const auto all = static_cast<unsigned>(count);
    wait_for(common.ready, all);
    std::vector<fi_addr_t> peers;
    for (std::size_t i = 0; i < count; ++i) {
        peers.push_back(process.know(names[i]));
    }
    const std::size_t others = count - 1;
    for (std::size_t i = 0; i < others; ++i) {
        process.receive(i);
    }
    ++common.posted;
    wait_for(common.posted, all);
    const auto step = [&] {
        if (!process.progress()) {
            sched_yield();
        }
    };
    for (long round = 0; round <= rounds; ++round) {
        const auto begin = Clock::now();
        for (std::size_t i = 1; i < count; ++i) {
            process.send(peers[(me + i) % count]);
        }
        while (process.received().size() < others || process.sent() < others) {
            step();
        }
        const double took = since(begin);
        if (me == 0) {
            std::printf("%s %.0f\n", round == 0 ? "first round, us:" : "round, us:", took);
        }
        process.received().clear();
        process.sent() = 0;
        for (std::size_t i = 0; i < others; ++i) {
            process.receive(i);
        }
        // Nobody sends before all have posted, nor leaves before the others have what it sent.
        ++common.done;
        while (common.done < static_cast<unsigned>(round + 1) * all) {
            step();
        }
    }
}

int mesh(const char* provider, const char* address, std::size_t count, long rounds) {
    RdmEnd::Name* names = nullptr;
    Common& common = *Common::make(count, names);
    std::vector<pid_t> children;
    for (std::size_t i = 0; i < count; ++i) {
        children.push_back(
            begin([&] { member(provider, address, i, count, rounds, common, names); }));
    }
    int status = 0;
    for (const pid_t child : children) {
        status |= wait_for_end(child);
    }
    return status;
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view mode(argc == 6 ? argv[1] : "");
    const long count = argc == 6 ? std::atol(argv[4]) : 0;
    const long rounds = argc == 6 ? std::atol(argv[5]) : 0;
    if ((mode != "peers" && mode != "mesh") || count < 1 || rounds < 1) {
        std::fputs("usage: rdm_scale peers|mesh PROVIDER ADDRESS COUNT ROUNDS\n", stderr);
        return 2;
    }
    return mode == "peers" ? peers(argv[2], argv[3], static_cast<std::size_t>(count), rounds)
                           : mesh(argv[2], argv[3], static_cast<std::size_t>(count), rounds);
}
