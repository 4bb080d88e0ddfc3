// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How long a write takes into a program that calls nothing and looks at its memory, between two
// IAs of one process. Nothing here decides whether a test passes.
//
//   polled POLLS PAUSE ROUNDS [asks]
//                               before each write the target asks its EVD POLLS times, computes
//                               for PAUSE microseconds, and looks at its memory from then on; the
//                               write comes within the next millisecond. The target has a
//                               processor of its own, all other threads have another, on which the
//                               library's go first, as they would on one of their own. "asks": who
//                               writes asks its own EVD until the write has been seen, as one that
//                               waits for an answer does; else it calls nothing behind the write
//   polled floor PAUSE ROUNDS   what the host needs for it: a thread that sleeps in poll(2) is
//                               woken by an eventfd, reads it, and writes
//   polled floor-tcp PAUSE ROUNDS
//                               the same with a TCP connection over loopback in place of the
//                               eventfd
#include "dat_ends.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <random>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

// One end, with a word of memory.
struct End : bench::Ia {
    DAT_EVD_HANDLE transfers, connections;
    DAT_EP_HANDLE ep;
    alignas(64) std::atomic<std::int64_t> word{0};
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT at_peer;

    End() : transfers(evd(64, DAT_EVD_DTO_FLAG)), connections(evd(8, DAT_EVD_CONNECTION_FLAG)) {
        CHECK(dat_ep_create, ia, pz, transfers, transfers, connections, nullptr, &ep);
        DAT_REGION_DESCRIPTION region{};
        region.for_va = &word;
        CHECK(dat_lmr_create, ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof word, pz,
              DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &context, &at_peer, nullptr, nullptr);
    }

    void write_to(const End& target) {
        DAT_LMR_TRIPLET from{reinterpret_cast<std::uintptr_t>(&word), sizeof word, context};
        const DAT_RMR_TRIPLET to{reinterpret_cast<std::uintptr_t>(&target.word), sizeof word,
                                 target.at_peer};
        CHECK(dat_ep_post_rdma_write, ep, 1, &from, DAT_DTO_COOKIE{}, &to,
              DAT_COMPLETION_DEFAULT_FLAG);
        bench::wait_for(transfers);
    }
};

std::int64_t now() { return Clock::now().time_since_epoch().count(); }

// A write by two IAs.
class Path {
  public:
    explicit Path(bool asks) : asks_(asks) {
        bench::connect(source_.ep, target_, target_.ep);
        bench::wait_for(source_.connections);
        bench::wait_for(target_.connections);
    }
    const std::atomic<std::int64_t>& word() const { return target_.word; }
    void ask() {
        DAT_EVENT event;
        dat_evd_dequeue(target_.transfers, &event);
    }
    // Writes while the target asks, so that its link is awake.
    void talk() {
        for (int i = 0; asks_ && i < kTalk; ++i) {
            write();
        }
        ++talks_;
    }
    bool talked(long round) const { return talks_ == round; }
    void write() {
        source_.word = now();
        source_.write_to(target_);
        while (asks_ && target_.word != source_.word) {
            DAT_EVENT event;
            dat_evd_dequeue(source_.transfers, &event);
        }
    }

  private:
    static constexpr int kTalk = 100;
    const bool asks_;
    std::atomic<long> talks_{0};
    End source_;
    End target_;
};

// What one end of is written to is read from the other.
struct Ends {
    int near;
    int far;
};

Ends eventfd_ends() {
    const int fd = eventfd(0, 0);
    return {fd, fd};
}

Ends tcp_ends() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const int near = socket(AF_INET, SOCK_STREAM, 0);
    const int at_once = 1;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, at, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, at, &size) != 0 || connect(near, at, size) != 0 ||
        setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once) != 0) {
        std::perror("floor-tcp");
        std::exit(2);
    }
    const int far = accept(listener, nullptr, nullptr);
    close(listener);
    return {near, far};
}

// A write by a thread that 8 bytes from a descriptor wake; nobody to be asked.
class Floor {
  public:
    explicit Floor(Ends ends) : ends_(ends), thread_([this] { run(); }) {}
    ~Floor() {
        ending_ = true;
        raise();
        thread_.join();
        close(ends_.near);
        if (ends_.far != ends_.near) {
            close(ends_.far);
        }
    }
    Floor(const Floor&) = delete;
    Floor& operator=(const Floor&) = delete;
    const std::atomic<std::int64_t>& word() const { return word_; }
    void ask() {}
    void talk() {}
    static bool talked(long) { return true; }
    void write() {
        written_ = now();
        raise();
    }

  private:
    void raise() const {
        const std::uint64_t one = 1;
        if (::write(ends_.near, &one, sizeof one) != sizeof one) {
            std::abort();
        }
    }
    void run() {
        while (!ending_) {
            pollfd waits{ends_.far, POLLIN, 0};
            std::uint64_t sum = 0;
            if (poll(&waits, 1, -1) == 1 && read(ends_.far, &sum, sizeof sum) == sizeof sum) {
                word_.store(written_);
            }
        }
    }

    const Ends ends_;
    std::atomic<bool> ending_{false};
    std::atomic<std::int64_t> written_{0};
    alignas(64) std::atomic<std::int64_t> word_{0};
    std::thread thread_;
};

// The calling thread, and those that it makes from here on: on the first or second of these.
void stay_on(int number, const cpu_set_t& allowed) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && number >= 0; ++cpu) {
        if (CPU_ISSET(cpu, &allowed) && number-- == 0) {
            CPU_SET(cpu, &one);
        }
    }
    if (CPU_COUNT(&one) != 1 || sched_setaffinity(0, sizeof one, &one) != 0) {
        std::fputs("two processors are needed\n", stderr);
        std::exit(2);
    }
}

// The threads that there are now, but the calling one. They are the library's.
void let_go_first() {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
        const pid_t thread = std::stoi(each.path().filename());
        const sched_param priority{.sched_priority = 1};
        if (thread != gettid() && sched_setscheduler(thread, SCHED_FIFO, &priority) != 0) {
            std::perror("sched_setscheduler");
            std::exit(2);
        }
    }
}

template <class P>
std::vector<double> measure(P& path, long polls, std::chrono::microseconds pause, long rounds,
                            const cpu_set_t& allowed) {
    let_go_first();
    std::atomic<long> asking{0};
    std::atomic<long> begun{0};
    std::thread writer([&] {
        std::minstd_rand dice(1);
        for (long round = 1; round <= rounds; ++round) {
            while (asking != round) {
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
            path.talk();
            while (begun != round) {
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
            std::this_thread::sleep_for(std::chrono::microseconds(dice() % 1000));
            path.write();
        }
    });
    stay_on(0, allowed);
    std::vector<double> took;
    for (long round = 1; round <= rounds; ++round) {
        asking = round;
        while (!path.talked(round)) {
            path.ask();
        }
        for (long i = 0; i < polls; ++i) {
            path.ask();
        }
        for (const auto end = Clock::now() + pause; Clock::now() < end;) {
        }
        const std::int64_t before = path.word();
        begun = round;
        while (path.word() == before) {
        }
        took.push_back(Microseconds(Clock::duration(now() - path.word())).count());
    }
    writer.join();
    std::sort(took.begin(), took.end());
    return took;
}

} // namespace

int main(int argc, char** argv) {
    const bool asks = argc == 5 && std::string_view(argv[4]) == "asks";
    if (argc != 4 && !asks) {
        std::fputs("usage: polled POLLS|floor|floor-tcp PAUSE ROUNDS [asks]\n", stderr);
        return 2;
    }
    const auto pause = std::chrono::microseconds(std::atol(argv[2]));
    const long rounds = std::max(1L, std::atol(argv[3]));
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    stay_on(1, allowed);
    std::vector<double> took;
    const std::string_view what(argv[1]);
    if (what == "floor" || what == "floor-tcp") {
        Floor floor(what == "floor" ? eventfd_ends() : tcp_ends());
        took = measure(floor, 0, pause, rounds, allowed);
    } else {
        Path path(asks);
        took = measure(path, std::atol(argv[1]), pause, rounds, allowed);
    }
    const auto at = [&](double part) {
        return took[static_cast<std::size_t>(part * static_cast<double>(took.size() - 1))];
    };
    std::printf("us until a write was seen: median %.1f, 90%% %.1f, most %.1f\n", at(0.5), at(0.9),
                at(1));
    return 0;
}
