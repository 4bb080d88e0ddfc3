// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See exchange.h.
#include "doctor/exchange.h"

#include "ofi/provider.h"
#include "perf/fabric_side.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace dat::doctor {
namespace {

using perf::FabricSide;

constexpr std::size_t kFew = 64;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kRounds = 50; // of 64 bytes there and back
constexpr std::size_t kMany = 8;    // of 1 MiB, in each direction
constexpr int kRepeats = 3;         // of those, while the directions look uneven

constexpr std::string_view kAt = "at ";

perf::Way over_dat() {
    perf::Way way;
    way.kind = perf::Kind::fabric;
    way.label = way.provider = ofi::kProviderName;
    way.endpoint = perf::Endpoint::msg;
    return way;
}

// A side with one connection to the other process's.
class Joined {
  public:
    Joined(const Beside& other, const std::string& address, std::size_t size, bool sleeps)
        : side_(over_dat(), options(address, size, sleeps)) {
        other.tell(std::string(kAt) + to_hex(side_.open(other.role())));
        const std::string theirs = other.hear();
        if (!theirs.starts_with(kAt)) {
            throw std::runtime_error(kOtherHasEnded); // it says why
        }
        side_.join(other.role(), from_hex(theirs.substr(kAt.size())));
    }
    FabricSide& operator*() { return side_; }
    FabricSide* operator->() { return &side_; }

    // Completions until so many have been sent and received in all. Does not look for more where
    // they have: that may sleep.
    void wait(perf::Done& done, std::uint64_t sent, std::uint64_t received) {
        const auto enough = [&] { return done.sent >= sent && done.received >= received; };
        if (!enough() && !perf::comes([&] {
                done += side_.poll(0);
                return enough();
            })) {
            throw std::runtime_error("what was sent does not arrive");
        }
    }

  private:
    static perf::FabricOptions options(const std::string& address, std::size_t size, bool sleeps) {
        perf::FabricOptions options;
        options.size = size;
        options.address = address;
        options.waits = sleeps;
        return options;
    }
    FabricSide side_;
};

void send(FabricSide& side, perf::Done& done) {
    while (!side.send(0)) {
        done += side.poll(0);
    }
}

char pattern(std::size_t i, Role role) {
    return static_cast<char>(i * 7 + (role == Role::client ? 1 : 101));
}

// One message of each side; the client's is the first.
void there_and_back(Joined& joined, perf::Done& done, bool client, std::uint64_t round) {
    if (client) {
        send(*joined, done);
    }
    joined.wait(done, 0, round + 1);
    joined->receive(0); // for the next
    if (!client) {
        send(*joined, done);
    }
}

// `kMany` messages one way; who has received them says so beside them. `due`: what has to have
// completed in all, since the other side may be ahead. For who sends, how long it took.
double seconds_of_many(Joined& joined, const Beside& other, perf::Done& done, perf::Done& due,
                       bool sends) {
    const auto begin = perf::Clock::now();
    if (sends) {
        for (std::size_t i = 0; i < kMany; ++i) {
            send(*joined, done);
        }
        other.hear([&] { done += joined->look(0); });
        const double took = perf::seconds_since(begin);
        due.sent += kMany;
        joined.wait(done, due.sent, 0);
        return took;
    }
    for (std::size_t i = 0; i < kMany; ++i) {
        joined.wait(done, 0, ++due.received);
        joined->receive(0);
    }
    other.tell("got");
    return 0;
}

} // namespace

bool is_uneven(double there, double back) {
    constexpr double kUneven = 4;
    return std::max(there, back) >= kUneven * std::min(there, back);
}

void exchange_few(const Beside& other, const std::string& address, const Report& report) {
    Joined joined(other, address, kFew, true);
    report.say("what", joined->what());
    for (std::size_t i = 0; i < kFew; ++i) {
        joined->out()[i] = pattern(i, other.role());
    }
    joined->receive(0);
    joined->receive(0);
    perf::Done done;
    other.meet([&] { done += joined->look(0); }); // the other's first may come meanwhile
    there_and_back(joined, done, other.client(), 0);
    const Role theirs = other.client() ? Role::server : Role::client;
    for (std::size_t i = 0; i < kFew; ++i) {
        if (joined->in()[i] != pattern(i, theirs)) {
            throw std::runtime_error("byte " + std::to_string(i) + " of 64 is wrong");
        }
    }
    joined.wait(done, 1, 1);
    other.meet(); // who polls on sees the other's end as its receives are flushed
}

void exchange_many(const Beside& other, const std::string& address, const Report& report) {
    const bool client = other.client();
    {
        Joined joined(other, address, kFew, false);
        joined->receive(0);
        joined->receive(0);
        perf::Done done;
        other.meet([&] { done += joined->look(0); });
        std::vector<double> times;
        for (std::size_t round = 0; round < kRounds; ++round) {
            const auto begin = perf::Clock::now();
            there_and_back(joined, done, client, round);
            times.push_back(perf::seconds_since(begin));
        }
        other.meet();
        std::ranges::nth_element(times, times.begin() + kRounds / 2);
        report.say("half_us", std::to_string(times[kRounds / 2] * 1e6 / 2));
    }
    Joined joined(other, address, kLarge, true);
    for (std::size_t i = 0; i < kMany; ++i) {
        joined->receive(0);
    }
    perf::Done done;
    other.meet([&] { done += joined->look(0); }); // the other's first may come meanwhile
    constexpr double kMegabytes = static_cast<double>(kMany * kLarge) / 1e6;
    perf::Done due;
    seconds_of_many(joined, other, done, due, client); // the first time costs more
    double best[2] = {0, 0};                           // MB/s back, and there
    for (int round = 0; round < kRepeats && is_uneven(best[1], best[0]); ++round) {
        for (const bool there : {true, false}) {
            other.meet([&] { done += joined->look(0); });
            const double took = seconds_of_many(joined, other, done, due, client == there);
            // Each side knows how long it has sent; both reckon with what they tell each other, so
            // that they agree on whether there is another round.
            const std::string own = std::to_string(took);
            other.tell(own);
            const std::string theirs = other.hear([&] { done += joined->look(0); });
            const double seconds =
                std::max({std::stod(own), std::strtod(theirs.c_str(), nullptr), 1e-6});
            best[there] = std::max(best[there], kMegabytes / seconds);
        }
    }
    report.say("there_MBs", std::to_string(best[1]));
    report.say("back_MBs", std::to_string(best[0]));
    other.meet();
}

} // namespace dat::doctor
