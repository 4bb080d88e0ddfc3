// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What dat_perf does not measure: the memory of idle connections, and both ends in one
// thread, for callgrind; and one case alone, for those who look at it with a profiler.
// The measuring itself is util/perf's. run.sh starts it.
#include "idle.h"
#include "util/perf/case.h"
#include "util/perf/fabric_side.h"
#include "util/perf/pair.h"
#include "util/perf/raw_side.h"
#include "util/perf/run_case.h"
#include "util/perf/statistics.h"
#include "util/perf/way.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

namespace dat::bench {
namespace {

using perf::Case;
using perf::FabricOptions;
using perf::FabricSide;
using perf::Kind;
using perf::Pattern;
using perf::Peer;
using perf::Way;

constexpr int kLimit_s = 100;

// "raw" is the socket; anything else a provider, as dat_perf takes it.
Way way_of(std::string_view word) {
    if (word == "raw") {
        return perf::socket_way();
    }
    return perf::parse_ways(word).at(0);
}

void raise_descriptor_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

struct BothIdle {
    Idle server;
    Idle client;
};

BothIdle measure_idle(const Way& way, std::uint64_t connections) {
    constexpr std::size_t kSize = 64;
    const perf::Outcome outcome = perf::run_pair(
        [&](Peer& peer) {
            raise_descriptor_limit();
            if (way.kind == Kind::socket) {
                perf::RawSide side(kSize, false);
                return perf::as_bytes(idle(side, connections, peer));
            }
            perf::set_environment(way);
            FabricOptions options;
            options.size = kSize;
            FabricSide side(way, options);
            return perf::as_bytes(idle(side, connections, peer));
        },
        kLimit_s);
    if (outcome.ending != perf::Ending::right) {
        perf::fail("%s: %s", way.label.c_str(), outcome.why.c_str());
    }
    return {perf::from_bytes<Idle>(outcome.server), perf::from_bytes<Idle>(outcome.client)};
}

// --- the table of memory ----------------------------------------------------

constexpr std::array<const char*, 3> kWays = {"dat", "tcp", "raw"};
using Rows = std::array<std::vector<BothIdle>, kWays.size()>;
using Figure = std::function<double(const BothIdle&)>;

// A line: the median over each way, and those of the quotients of runs that followed
// each other.
void print_row(const char* title, const Rows& rows, const Figure& figure) {
    std::array<std::vector<double>, kWays.size()> values;
    std::printf("| %s |", title);
    for (std::size_t way = 0; way < kWays.size(); ++way) {
        for (const BothIdle& one : rows[way]) {
            values[way].push_back(figure(one));
        }
        std::printf(" %.2f |", perf::median(values[way]));
    }
    for (const std::size_t other : {std::size_t{2}, std::size_t{1}}) {
        std::printf(" %.2f |", perf::median(perf::quotients(values[0], values[other])));
    }
    std::printf("\n");
}

int memory_table(std::uint64_t rounds) {
    constexpr std::uint64_t kConnections = 1000;
    Rows rows;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (std::size_t way = 0; way < kWays.size(); ++way) {
            rows[way].push_back(measure_idle(way_of(kWays[way]), kConnections));
        }
    }
    std::printf("\nMemory of an idle connection, KiB an endpoint\n\n"
                "|  | dat | tcp | raw | dat/raw | dat/tcp |\n"
                "| --- | ---: | ---: | ---: | ---: | ---: |\n");
    using When = Memory Idle::*;
    using Part = double Memory::*;
    const auto larger = [](When when, Part part) {
        return [=](const BothIdle& r) {
            return std::max(r.server.*when.*part, r.client.*when.*part) / 1024;
        };
    };
    print_row("connected, RSS", rows, larger(&Idle::made, &Memory::rss));
    print_row("connected, PSS", rows, larger(&Idle::made, &Memory::pss));
    print_row("128 receives posted, RSS", rows, larger(&Idle::posted, &Memory::rss));
    print_row("128 receives posted, PSS", rows, larger(&Idle::posted, &Memory::pss));
    print_row("all of both queues used, RSS", rows, larger(&Idle::used, &Memory::rss));
    print_row("all of both queues used, PSS", rows, larger(&Idle::used, &Memory::pss));
    print_row("the kernel's, for the socket", rows,
              [](const BothIdle& r) { return std::max(r.server.socket, r.client.socket) / 1024; });
    return 0;
}

// --- one case ---------------------------------------------------------------

int one_idle(const char* word, std::uint64_t connections) {
    const Idle r = measure_idle(way_of(word), connections).client;
    std::printf("%s idle: RSS %.0f, posted %.0f, used %.0f, socket %.0f\n", word, r.made.rss,
                r.posted.rss, r.used.rss, r.socket);
    return 0;
}

int one_case(const char* word, Pattern pattern, std::size_t size, std::uint64_t operations) {
    Case what;
    what.way = way_of(word);
    what.pattern = pattern;
    what.size = size;
    what.amount.operations = operations;
    const perf::CaseOutcome outcome = perf::run_case(what);
    if (outcome.ending != perf::Ending::right) {
        perf::fail("%s: %s", word, outcome.why.c_str());
    }
    const perf::Result& r = outcome.client;
    const auto count = static_cast<double>(r.operations);
    std::printf("%s %s %zu B: %.3f us an operation, half round trip %.3f us, %.1f MB/s\n", word,
                perf::name(pattern), size, r.seconds * 1e6 / count, r.median_s * 1e6 / 2,
                count * static_cast<double>(size) / r.seconds / 1e6);
    return 0;
}

// --- both ends in one thread ------------------------------------------------

void connect_in_one(FabricSide& server, FabricSide& client) {
    const perf::Address listener = server.open(perf::Role::server);
    const perf::Address other = client.open(perf::Role::client);
    if (!client.connected()) {
        server.join(perf::Role::server, other);
        client.join(perf::Role::client, listener);
        return;
    }
    client.begin_join(listener);
    for (bool here = false, there = false; !here || !there;) {
        here |= client.progress_join();
        there |= server.progress_join();
    }
}

// `operations` messages one way, in bursts of so many sends behind as many receives,
// each taken from the completion queues. Without threads of the provider
// (FI_PROGRESS_MANUAL), so that every run makes the same calls, whatever the machine
// does meanwhile.
int in_one(const char* word, std::size_t size, std::size_t burst, std::uint64_t operations) {
    const Way way = way_of(word);
    perf::set_environment(way);
    FabricOptions options;
    options.size = size;
    options.progress = FI_PROGRESS_MANUAL;
    FabricSide server(way, options);
    FabricSide client(way, options);
    connect_in_one(server, client);
    std::uint64_t done = 0;
    while (done < operations) {
        std::size_t sent = 0;
        std::size_t received = 0;
        for (std::size_t i = 0; i < burst; ++i) {
            server.receive(0);
        }
        for (std::size_t i = 0; i < burst; ++i) {
            while (!client.send(0)) {
                sent += client.look(0).sent;
                received += server.look(0).received; // some providers wait for the peer
            }
        }
        while (sent < burst) {
            sent += client.look(0).sent;
        }
        while (received < burst) {
            received += server.look(0).received;
        }
        done += burst;
    }
    std::printf("%llu operations\n", static_cast<unsigned long long>(done));
    return 0;
}

// --- the command ------------------------------------------------------------

// Everything here once, with a few operations.
int smoke() {
    for (const char* word : kWays) {
        one_case(word, Pattern::ping, 64, 20);
        one_idle(word, 20);
    }
    return in_one("dat", 64, 4, 20);
}

int usage() {
    std::fputs("usage: bench --memory ROUNDS         the memory of idle connections, a table\n"
               "       bench --smoke                 a few operations of everything\n"
               "       bench --case WAY PATTERN BYTES OPERATIONS\n"
               "       bench --in-one WAY BYTES BURST OPERATIONS\n"
               "WAY: raw, or a provider as dat_perf takes it; PATTERN: idle, ping, stream,\n"
               "write, read, read_one, atomic, atomic_one, connect\n",
               stderr);
    return 2;
}

std::uint64_t number(const char* word) { return std::strtoull(word, nullptr, 0); }

int case_of(char** words) {
    const std::string_view wanted = words[1];
    if (wanted == "idle") {
        return one_idle(words[0], number(words[3]));
    }
    for (const Pattern pattern :
         {Pattern::ping, Pattern::stream, Pattern::write, Pattern::read, Pattern::read_one,
          Pattern::atomic, Pattern::atomic_one, Pattern::connect}) {
        if (wanted == perf::name(pattern) && number(words[2]) > 0 && number(words[3]) > 0) {
            return one_case(words[0], pattern, number(words[2]), number(words[3]));
        }
    }
    return usage();
}

int run(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "--memory" && argc == 3 && number(argv[2]) > 0) {
        return memory_table(number(argv[2]));
    }
    if (mode == "--smoke" && argc == 2) {
        return smoke();
    }
    if (mode == "--case" && argc == 6) {
        return case_of(argv + 2);
    }
    if (mode == "--in-one" && argc == 6) {
        return in_one(argv[2], number(argv[3]), number(argv[4]), number(argv[5]));
    }
    return usage();
}

} // namespace
} // namespace dat::bench

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0); // nothing is left in it where a child begins
    try {
        return dat::bench::run(argc, argv);
    } catch (const std::exception& trouble) {
        std::fprintf(stderr, "bench: %s\n", trouble.what());
        return 1;
    }
}
