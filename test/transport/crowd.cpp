// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Ten thousand connections that share memory with another process: what an idle one
// holds, and that it is left alone while another works. A plain program.
//
//   crowd               10,000 connections
//   crowd CONNECTIONS
#include "plain.h"
#include "sanitized.h"

#include "links/shm/segment.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string>

namespace dat::test {

namespace {

constexpr std::size_t kConnections = kSanitized ? 500 : 10'000;
constexpr std::size_t kMostKib = 16; // that one end of an idle connection may hold

std::size_t connections = kConnections;

// KiB that are resident, of the program's own memory and of what it shares.
std::size_t resident() {
    std::ifstream status("/proc/self/status");
    std::size_t sum = 0;
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:"))
            sum += std::strtoul(line.c_str() + line.find(':') + 1, nullptr, 10);
    return sum;
}

// Places for connections, also those that are none's.
std::vector<const shm::Layout*> shared_memory() {
    std::vector<const shm::Layout*> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:dat") == std::string::npos)
            continue;
        std::size_t digits = 0;
        const auto from = std::stoull(line, &digits, 16);
        const auto to = std::stoull(line.substr(digits + 1), nullptr, 16);
        for (auto at = from; at < to; at += sizeof(shm::Layout))
            all.push_back(reinterpret_cast<const shm::Layout*>(at));
    }
    return all;
}

// How many ends are asleep, of both processes.
std::size_t asleep(const std::vector<const shm::Layout*>& memory) {
    std::size_t count = 0;
    for (const shm::Layout* layout : memory)
        for (const shm::Control& control : layout->control)
            count += control.asleep.load() != 0 ? 1 : 0;
    return count;
}

void allow_descriptors(std::size_t count) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, count);
    limit.rlim_max = std::max(limit.rlim_max, limit.rlim_cur);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        std::printf("%zu open files are needed, which is not permitted here\n", count);
        std::exit(77);
    }
}

// The other process: accepts as many, receives one message in the middle, and waits for
// the end of all.
void serve(const Transport& transport, int answers) {
    Side side(transport);
    side.listen();
    const Bytes address = side.address();
    const auto size = static_cast<ssize_t>(address.size());
    DAT_REQUIRE(write(answers, address.data(), address.size()) == size, "nobody asks");
    std::deque<Endpoint> endpoints;
    while (endpoints.size() < connections) {
        const Event request = wait_event(side, FI_CONNREQ);
        DAT_MUST(endpoints.emplace_back(side, request).accept());
        wait_event(side, FI_CONNECTED);
    }
    char in = 0;
    wait_op(endpoints[connections / 2].recv(&in, 1));
    for (std::size_t i = 0; i < connections; ++i)
        wait_event(side, FI_SHUTDOWN);
}

void run(const Transport& transport) {
    int answers[2];
    DAT_REQUIRE(pipe(answers) == 0, "pipe");
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(transport, answers[1]);
        std::exit(0);
    }
    Bytes address(64);
    const ssize_t size = child > 0 ? read(answers[0], address.data(), address.size()) : 0;
    DAT_REQUIRE(size > 0, "no child");
    address.resize(static_cast<std::size_t>(size));

    Side side(transport);
    std::deque<Endpoint> endpoints;
    const auto add = [&] {
        DAT_MUST(endpoints.emplace_back(side).connect(address));
        wait_event(side, FI_CONNECTED);
    };
    add(); // what domains make with their first
    const std::size_t before = resident();
    while (endpoints.size() < connections)
        add();
    const auto memory = shared_memory();
    DAT_REQUIRE(memory.size() >= connections, std::to_string(memory.size()) + " places");
    DAT_REQUIRE(wait_until([&] { return asleep(memory) == 2 * connections; }),
                "idle ends do not go to sleep");
    const std::size_t each = (resident() - before) * 1024 / (connections - 1);
    std::printf("%s: %zu connections, %zu bytes resident for each\n", transport.name, connections,
                each);
    std::fflush(stdout);
    DAT_REQUIRE(kSanitized || each <= kMostKib * 1024, "an idle connection holds too much");

    // One of them works: nobody else wakes up.
    wait_op(endpoints[connections / 2].send_confirmed("x", 1));
    const std::size_t still_asleep = asleep(memory);
    DAT_REQUIRE(still_asleep + 2 >= 2 * connections, std::to_string(still_asleep) + " are asleep");

    for (Endpoint& endpoint : endpoints)
        DAT_MUST(endpoint.close());
    DAT_REQUIRE(wait_until([] { return shared_memory().empty(); }), "memory stays mapped");
    int status = 0;
    DAT_REQUIRE(waitpid(child, &status, 0) == child && status == 0, "the other process failed");
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc > 2) {
        std::fprintf(stderr, "usage: crowd [CONNECTIONS]\n");
        return 2;
    }
    if (argc == 2)
        connections = std::strtoul(argv[1], nullptr, 10);
    allow_descriptors(connections + 100);
    // A child of a process that has called libfabric has half of it: one transport will do.
    setenv("DAT_TRANSPORT", "shm_ipv4", 0);
    return run_over(true, run) ? 0 : 77;
}
