// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two parties in two network namespaces, and between them a relay in user space that loses,
// reorders, repeats, delays and changes packets, resets connections, and changes the MTU. The
// parties' oracle (lane.h) holds: data is right, or the connection ends.
//
//   relayed [--family 4|6] [--seconds N] [--seed N] [--trial NAME]
//
// 40 s by default; with --trial that one alone, and its name is in plan.cpp. Prints what was
// done to how many packets and what came of it; the line that begins with | is a row of the
// table in test/README.md. Status 1 where anything was violated, 77 where namespaces or
// /dev/net/tun cannot be had. The seed decides the plan, and what is done to the n-th packet;
// not when the kernel sends which.
#include "party.h"
#include "relay.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace dat::test {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kLargest = 64 * 1024;

struct Board {
    Tally tally;
    Ledger ledger;
    Count flips;
    std::atomic<std::uint16_t> port; // of the first party; 0: not yet
    std::atomic<bool> over;
};

struct Options {
    bool v6 = false;
    std::uint64_t seconds = 40;
    std::uint64_t seed = 0;
    std::string trial; // empty: all
};

std::string address_of(bool v6, int number) {
    return (v6 ? "2001:db8::" : "192.0.2.") + std::to_string(number + 1);
}

// The first party listens, the second connects again and again.
[[noreturn]] void run_party(Board& board, const Options& options, int number, int socket,
                            const std::string& replay) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string address = address_of(options.v6, number);
    const std::string other = address_of(options.v6, 1 - number);
    const Wire wire = make_wire(address + (options.v6 ? "/64" : "/24"));
    send_wire(socket, wire);
    close(wire.device);
    name_process(number == 0 ? "listener" : "requester", replay, &board.tally);
    Terms terms;
    terms.random = Random(options.seed + static_cast<std::uint64_t>(number));
    terms.tally = &board.tally;
    terms.ledger = &board.ledger;
    terms.largest = kLargest;
    terms.lasting = true;
    terms.flips = &board.flips;
    const bool manual = (number == 0) == options.v6;
    PartyOptions party_options;
    party_options.transport = {"relayed", false, options.v6 ? AF_INET6 : AF_INET, address.c_str(),
                               manual ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO};
    party_options.lanes = 3;
    party_options.listens = number == 0;
    party_options.end_once_in = 8000;
    party_options.leave_once_in = 8000;
    party_options.target = [&] {
        return board.port == 0 ? Bytes() : socket_address(other.c_str(), board.port);
    };
    Party party(party_options, terms);
    if (number == 0)
        board.port = party.port();
    while (!board.over)
        party.run_once();
    // Nothing is done to packets any more: each connection comes to its end.
    party.wind_down(true);
    const auto limit = Clock::now() + 60s;
    while (!party.idle()) {
        DAT_REQUIRE(Clock::now() < limit, "a connection does not end over a sound wire");
        party.run_once();
    }
    std::_Exit(0);
}

class Run {
  public:
    explicit Run(const Options& options) : options_(options), random_(options.seed) {}
    int operator()();

  private:
    std::string replay() const;
    bool start_parties();
    bool a_party_ended();
    void finish();
    void print() const;
    void report(const Trial& trial, const Harm& before, std::uint64_t messages,
                std::uint64_t connected, const Harm& now) const;
    int family() const { return options_.v6 ? 6 : 4; }

    const Options options_;
    Random random_;
    Board* board_ = nullptr;
    std::array<pid_t, 2> parties_{};
    std::array<Wire, 2> wires_;
    Harm harm_;
    const Clock::time_point begun_ = Clock::now();
};

std::string Run::replay() const {
    return "test/attack/relayed --family " + std::string(options_.v6 ? "6" : "4") + " --seconds " +
           std::to_string(options_.seconds) + " --seed " + std::to_string(options_.seed) +
           (options_.trial.empty() ? "" : " --trial '" + options_.trial + "'");
}

// False: namespaces cannot be had, which was said.
bool Run::start_parties() {
    for (std::size_t i = 0; i < parties_.size(); ++i) {
        int ends[2];
        DAT_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
        std::fflush(nullptr);
        parties_[i] = fork();
        DAT_REQUIRE(parties_[i] >= 0, "fork");
        if (parties_[i] == 0) {
            close(ends[0]);
            run_party(*board_, options_, static_cast<int>(i), ends[1], replay());
        }
        close(ends[1]);
        if (!receive_wire(ends[0], wires_[i]))
            return false;
        close(ends[0]);
    }
    return true;
}

// Before its time: it has seen something wrong, or crashed.
bool Run::a_party_ended() {
    for (pid_t& party : parties_) {
        int status = 0;
        if (party == 0 || waitpid(party, &status, WNOHANG) != party)
            continue;
        party = 0;
        if (WIFSIGNALED(status)) {
            ++board_->tally.violations;
            std::printf("VIOLATION a party ended by signal %d\n    replay: %s\n", WTERMSIG(status),
                        replay().c_str());
        }
        if (!board_->over)
            return true;
    }
    return board_->tally.violations != 0 || (parties_[0] == 0 && parties_[1] == 0);
}

// Whoever has not come to its end has had its time, or the other one has seen something wrong.
void Run::finish() {
    for (const pid_t party : parties_)
        if (party != 0)
            ::kill(party, SIGKILL);
    for (const pid_t party : parties_)
        if (party != 0)
            waitpid(party, nullptr, 0);
}

void Run::report(const Trial& trial, const Harm& before, std::uint64_t messages,
                 std::uint64_t connected, const Harm& now) const {
    const auto n = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    std::printf("IPv%d: %-18s %2llu s: packets %6llu, lost %5llu, held back %5llu, repeated %5llu, "
                "flipped %4llu, resets %3llu, MTUs %2llu; messages %6llu, connections %3llu\n",
                family(), trial.name, n(trial.seconds), n(now.packets - before.packets),
                n(now.lost - before.lost), n(now.held_back - before.held_back),
                n(now.repeated - before.repeated), n(now.flipped - before.flipped),
                n(now.resets - before.resets), n(now.mtus - before.mtus),
                n(board_->tally.messages - messages), n(board_->tally.connected - connected));
}

int Run::operator()() {
    void* const shared =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    DAT_REQUIRE(shared != MAP_FAILED, "mmap");
    board_ = new (shared) Board();
    name_process("relay", replay(), &board_->tally);
    if (!start_parties()) {
        finish();
        return 77;
    }
    Relay relay(wires_, options_.v6, random_, board_->flips);
    const auto ended = [&] { return a_party_ended(); };
    for (Trial trial : make_plan(options_.seconds, random_)) {
        if (!options_.trial.empty() && options_.trial != trial.name)
            continue;
        if (!options_.trial.empty())
            trial.seconds = options_.seconds;
        const Harm before = relay.harm();
        const std::uint64_t messages = board_->tally.messages;
        const std::uint64_t connected = board_->tally.connected;
        relay.run(trial, ended);
        report(trial, before, messages, connected, relay.harm());
        if (board_->tally.violations != 0)
            break;
    }
    // Over a sound wire data gets through again, and then both come to their ends.
    const Trial sound{.name = "nothing", .seconds = 60};
    const std::uint64_t messages = board_->tally.messages;
    relay.run(sound, [&] { return ended() || board_->tally.messages > messages; });
    if (board_->tally.messages == messages && board_->tally.violations == 0) {
        ++board_->tally.violations;
        std::printf("VIOLATION nothing gets through a sound wire\n    replay: %s\n",
                    replay().c_str());
    }
    board_->over = true;
    relay.run({.name = "nothing", .seconds = 90}, ended);
    finish();
    harm_ = relay.harm();
    print();
    return board_->tally.violations != 0;
}

void Run::print() const {
    const Tally& t = board_->tally;
    const auto n = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    std::printf("IPv%d: ends of connections %llu, with a farewell %llu, given up behind changed "
                "bytes %llu; attempts in vain %llu; reasons (fi_dat_reason: ends):",
                family(), n(t.connected), n(t.orderly), n(t.given_up), n(t.failed));
    for (std::size_t i = 0; i < t.reasons.size(); ++i)
        if (t.reasons[i] != 0)
            std::printf(" %zu: %llu", i, n(t.reasons[i]));
    std::printf(
        "\n| IPv%d | %llu s | %llu | %llu | %llu | %llu | %llu | %llu | %llu | %llu | %llu | "
        "%llu | %llu | %llu |\n",
        family(), n(static_cast<std::uint64_t>((Clock::now() - begun_) / 1s)), n(options_.seed),
        n(harm_.packets), n(harm_.lost), n(harm_.held_back), n(harm_.repeated), n(harm_.flipped),
        n(harm_.resets), n(harm_.mtus), n(t.connected),
        n(t.succeeded + t.flushed + t.erred + t.injected), n(t.bytes >> 20), n(t.violations));
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // lines of two processes in one file
    dat::test::Options options;
    options.seed = static_cast<std::uint64_t>(time(nullptr));
    for (int i = 1; i < argc; i += 2) {
        const std::string option = argv[i];
        if (i + 1 == argc || option.rfind("--", 0) != 0) {
            return 2;
        } else if (option == "--family") {
            options.v6 = std::strcmp(argv[i + 1], "6") == 0;
        } else if (option == "--seconds") {
            options.seconds = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (option == "--seed") {
            options.seed = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (option == "--trial") {
            options.trial = argv[i + 1];
        } else {
            std::fprintf(stderr, "usage: relayed [--family 4|6] [--seconds N] [--seed N] "
                                 "[--trial NAME]\n");
            return 2;
        }
    }
    // So that what falls silent is noticed within a trial.
    setenv("FI_DAT_KEEPALIVE", "3", 0);
    setenv("FI_DAT_HANDSHAKE_TIMEOUT", "3", 0);
    setenv("FI_DAT_RNR_TIMEOUT", "5", 0);
    setenv("FI_DAT_TRANSPORT", "soft", 1);
    const int status = dat::test::Run(options)();
    std::fflush(nullptr);
    return status;
}
