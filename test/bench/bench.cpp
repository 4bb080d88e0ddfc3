// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The benchmark's command: everything in rounds, in which the three ways alternate, as
// Markdown tables of medians; or one case; or a trial that everything runs. run.sh
// starts it. May include: test/bench, std.
#include "bench.h"

#include "run_case.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dat::bench {
namespace {

constexpr std::size_t kSizes[] = {8, 64, 512, 4096, 32768, 262144, 1048576, 4194304};
constexpr std::size_t kOverCount = std::size(kOvers);

// How many operations take some tenths of a second.
std::uint64_t operations(Pattern pattern, std::size_t size) {
    switch (pattern) {
    case Pattern::connect:
        return 500;
    case Pattern::idle:
        return 1000;
    case Pattern::ping:
        return std::min<std::uint64_t>(10'000, (std::uint64_t{512} << 20) / (size + 16'384));
    case Pattern::stream:
        break;
    }
    return std::min<std::uint64_t>(200'000, (std::uint64_t{768} << 20) / (size + 1024));
}

std::string text(std::size_t size) {
    if (size >= 1 << 20) {
        return std::to_string(size >> 20) + " MiB";
    }
    return size >= 1024 ? std::to_string(size >> 10) + " KiB" : std::to_string(size) + " B";
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// What one case gave over each way, in each round.
struct Row {
    std::array<std::vector<Results>, kOverCount> rounds;
};

using Figure = std::function<double(const Results&)>;

// A line of a table: the median over each way, and the medians of the quotients of
// runs that followed each other.
void print_row(const std::string& title, const Row& row, const Figure& figure) {
    std::printf("| %s |", title.c_str());
    std::array<std::vector<double>, kOverCount> values;
    for (std::size_t over = 0; over < kOverCount; ++over) {
        for (const Results& results : row.rounds[over]) {
            values[over].push_back(figure(results));
        }
        const double middle = median(values[over]);
        std::printf(middle < 100 ? " %.2f |" : " %.0f |", middle);
    }
    for (const std::size_t other : {std::size_t{2}, std::size_t{1}}) {
        std::vector<double> quotients;
        for (std::size_t i = 0; i < values[0].size(); ++i) {
            quotients.push_back(values[0][i] / values[other][i]);
        }
        std::printf(" %.2f |", median(quotients));
    }
    std::printf("\n");
}

void print_head(const char* title, const char* first) {
    std::printf("\n%s\n\n| %s | dat | tcp | raw | dat/raw | dat/tcp |\n", title, first);
    std::printf("| --- | ---: | ---: | ---: | ---: | ---: |\n");
}

Row measure(Pattern pattern, std::size_t size, int rounds) {
    Row row;
    for (int round = 0; round < rounds; ++round) {
        for (const Over over : kOvers) {
            const Case what{over, pattern, size, operations(pattern, size)};
            row.rounds[static_cast<std::size_t>(over)].push_back(run_case(what));
        }
    }
    return row;
}

void tables_of_messages(int rounds) {
    print_head("Half round trip, microseconds", "message");
    for (const std::size_t size : kSizes) {
        print_row(text(size), measure(Pattern::ping, size, rounds),
                  [](const Results& r) { return r.client.median_s * 1e6 / 2; });
    }
    std::vector<Row> rows;
    print_head("Message rate, thousands per second", "message");
    for (const std::size_t size : kSizes) {
        rows.push_back(measure(Pattern::stream, size, rounds));
        print_row(text(size), rows.back(), [](const Results& r) {
            return static_cast<double>(r.client.operations) / r.client.seconds / 1e3;
        });
    }
    print_head("Bandwidth, MB/s (the same runs)", "message");
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
        print_row(text(kSizes[i]), rows[i], [&](const Results& r) {
            const std::uint64_t bytes = r.client.operations * kSizes[i];
            return static_cast<double>(bytes) / r.client.seconds / 1e6;
        });
    }
}

void tables_of_connections(int rounds) {
    constexpr std::size_t kSize = 64;
    print_head("Connections made and ended", "");
    print_row("per second", measure(Pattern::connect, kSize, rounds), [](const Results& r) {
        return static_cast<double>(r.client.operations) / r.client.seconds;
    });
    print_head("Memory of an idle connection, KiB an endpoint", "");
    const Row idle = measure(Pattern::idle, kSize, std::min(rounds, 3));
    using Part = double Memory::*;
    const auto larger = [](Memory Result::*when, Part part) {
        return [=](const Results& r) {
            return std::max(r.server.*when.*part, r.client.*when.*part) / 1024;
        };
    };
    print_row("connected, RSS", idle, larger(&Result::made, &Memory::rss));
    print_row("connected, PSS", idle, larger(&Result::made, &Memory::pss));
    print_row("128 receives posted, RSS", idle, larger(&Result::posted, &Memory::rss));
    print_row("128 receives posted, PSS", idle, larger(&Result::posted, &Memory::pss));
    print_row("all of both queues used, RSS", idle, larger(&Result::used, &Memory::rss));
    print_row("all of both queues used, PSS", idle, larger(&Result::used, &Memory::pss));
    print_row("the kernel's, for the socket", idle,
              [](const Results& r) { return std::max(r.server.socket, r.client.socket) / 1024; });
}

bool runs(const Case& what) {
    const Results results = run_case(what);
    const bool right = results.server.operations == what.operations &&
                       results.client.operations == what.operations;
    std::printf("%s: %s over %s, %zu bytes: %llu and %llu operations\n", right ? "ok" : "FAILED",
                name(what.pattern), name(what.over), what.size,
                static_cast<unsigned long long>(results.server.operations),
                static_cast<unsigned long long>(results.client.operations));
    return right;
}

// Everything once, a few operations each: they have to be counted on both sides.
int smoke() {
    constexpr std::uint64_t kOperations = 20;
    bool right = true;
    for (const Over over : kOvers) {
        for (const std::size_t size : {std::size_t{64}, std::size_t{100'000}}) {
            right &= runs({over, Pattern::ping, size, kOperations});
            right &= runs({over, Pattern::stream, size, kOperations});
        }
        right &= runs({over, Pattern::connect, 64, kOperations});
        right &= runs({over, Pattern::idle, 64, kOperations});
    }
    return right ? 0 : 1;
}

int usage() {
    std::fputs("usage: bench --rounds N              everything, as tables\n"
               "       bench --smoke                 a few operations of everything\n"
               "       bench --case WAY PATTERN BYTES OPERATIONS\n"
               "       bench --in-one WAY BYTES BURST OPERATIONS\n"
               "WAY: dat tcp raw; PATTERN: ping stream connect idle\n",
               stderr);
    return 2;
}

std::uint64_t number(const char* word) { return std::strtoull(word, nullptr, 0); }

template <class Enum, std::size_t N>
bool find(const Enum (&all)[N], std::string_view word, Enum& found) {
    for (const Enum each : all) {
        if (word == name(each)) {
            found = each;
            return true;
        }
    }
    return false;
}

int one_case(char** words) {
    constexpr Pattern kPatterns[] = {Pattern::ping, Pattern::stream, Pattern::connect,
                                     Pattern::idle};
    Case what;
    if (!find(kOvers, words[0], what.over) || !find(kPatterns, words[1], what.pattern)) {
        return usage();
    }
    what.size = number(words[2]);
    what.operations = number(words[3]);
    const Result r = run_case(what).client;
    std::printf("%s %s %zu B: %.3f us an operation, half round trip %.3f us, %.1f MB/s; "
                "RSS %.0f, posted %.0f, used %.0f, socket %.0f\n",
                words[0], words[1], what.size, r.seconds * 1e6 / static_cast<double>(r.operations),
                r.median_s * 1e6 / 2,
                static_cast<double>(r.operations * what.size) / r.seconds / 1e6, r.made.rss,
                r.posted.rss, r.used.rss, r.socket);
    return 0;
}

int in_one(char** words) {
    Over over = Over::dat;
    if (!find(kOvers, words[0], over) || over == Over::raw) {
        return usage();
    }
    const Result r = run_in_one(over, number(words[1]), number(words[2]), number(words[3]));
    std::printf("%llu operations\n", static_cast<unsigned long long>(r.operations));
    return 0;
}

int run(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "--rounds" && argc == 3 && number(argv[2]) > 0) {
        const int rounds = static_cast<int>(number(argv[2]));
        tables_of_messages(rounds);
        tables_of_connections(rounds);
        return 0;
    }
    if (mode == "--smoke" && argc == 2) {
        return smoke();
    }
    if (mode == "--case" && argc == 6) {
        return one_case(argv + 2);
    }
    if (mode == "--in-one" && argc == 6) {
        return in_one(argv + 2);
    }
    return usage();
}

} // namespace
} // namespace dat::bench

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0); // nothing is left in it where a child begins
    return dat::bench::run(argc, argv);
}
