// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See kill_parties.h.
#include "kill_parties.h"

#include "party.h"

#include "../transport/usage.h"

#include <sys/prctl.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>

namespace dat::test {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kLargest = 192 * 1024;
constexpr auto kRestLimit = 40s;
constexpr std::uint64_t kSpread = 64 * 1024; // bytes that queues may be longer than before

// What survivor `number` and its victims agree on.
Transport transport_of(int number) {
    const bool v6 = number % 4 == 1 || number % 4 == 2;
    return {"kill", false, v6 ? AF_INET6 : AF_INET, v6 ? "::1" : "127.0.0.1",
            number < 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL};
}

bool listens(int number) { return number % 2 == 0; }

Bytes at_port(const Transport& transport, std::uint16_t port) {
    return port == 0 ? Bytes() : socket_address(transport.address, port);
}

// Kills this process, by the kernel's clock, wherever it is then.
void kill_after(std::uint64_t delay_us) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    timer_t timer{};
    DAT_MUST(timer_create(CLOCK_MONOTONIC, &event, &timer));
    itimerspec at{};
    at.it_value.tv_nsec = static_cast<long>(delay_us % 1'000'000) * 1000 + 1;
    at.it_value.tv_sec = static_cast<time_t>(delay_us / 1'000'000);
    DAT_MUST(timer_settime(timer, 0, &at, nullptr));
}

// Until no connection is left: their peers have all been killed, so each has to end.
void come_to_rest(Party& party) {
    party.wind_down(false);
    const auto limit = Clock::now() + kRestLimit;
    while (!party.idle()) {
        DAT_REQUIRE(Clock::now() < limit, "the peer was killed, and a connection does not end");
        party.run_once();
    }
}

// Sockets of what has ended may live on for some seconds (man fi_dat: THE WIRE), and what
// has ended last is let go by the progress that follows.
AtRest look(Party& party, const AtRest& first) {
    const auto limit = Clock::now() + 10s;
    Usage now{};
    do {
        for (int i = 0; i < 50; ++i)
            party.run_once();
        now = usage();
    } while ((now.descriptors > first.descriptors || now.allocated > first.allocated + kSpread) &&
             Clock::now() < limit);
    return {now.descriptors, now.allocated, now.resident, 0};
}

} // namespace

void run_survivor(Board& board, int number, std::uint64_t seed, const std::string& replay) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    name_process("survivor " + std::to_string(number), replay, &board.tally);
    Terms terms;
    terms.random = Random(seed);
    terms.tally = &board.tally;
    terms.ledger = &board.ledger;
    terms.largest = kLargest;
    terms.lasting = true;
    std::uint64_t connections = 0;
    terms.phase = [&](Phase phase) { connections += phase == Phase::kConnected; };

    PartyOptions options;
    options.name = "survivor";
    options.transport = transport_of(number);
    options.lanes = 3;
    options.listens = listens(number);
    options.end_once_in = 4000;
    options.leave_once_in = 8000;
    options.target = [&] {
        const auto victim =
            static_cast<std::size_t>(number * kVictimsEach) + terms.random.below(kVictimsEach);
        return at_port(options.transport, board.victim_port[victim]);
    };
    Party party(options, terms);
    const auto self = static_cast<std::size_t>(number);
    if (options.listens)
        board.survivor_port[self] = party.port();
    AtRest first{UINT64_MAX, UINT64_MAX / 2, UINT64_MAX, 0};
    while (board.order != Order::kStop) {
        party.run_once();
        if (board.order != Order::kRest)
            continue;
        come_to_rest(party);
        AtRest now = look(party, first);
        now.connections = connections;
        board.at_rest[self] = now;
        if (first.descriptors == UINT64_MAX)
            first = now;
        ++board.rests;
        while (board.order == Order::kRest)
            party.run_once();
        party.go_on();
    }
    std::_Exit(0);
}

void run_victim(Board& board, int number, const Fate& fate, const std::string& replay) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto self = static_cast<std::size_t>(number);
    const int survivor = number / kVictimsEach;
    name_process("victim of survivor " + std::to_string(survivor), replay, &board.tally);
    Terms terms;
    terms.random = Random(fate.seed);
    terms.tally = &board.tally;
    terms.ledger = &board.ledger;
    terms.largest = kLargest;
    terms.peer_lives = fate.end == End::kGoesOn || fate.end == End::kInOrder;
    bool armed = false;
    terms.phase = [&](Phase phase) {
        board.phase[self] = phase;
        if (fate.end != End::kByTimer || phase != fate.phase || std::exchange(armed, true))
            return;
        kill_after(fate.delay_us);
    };
    terms.phase(Phase::kStart);
    {
        PartyOptions options;
        options.name = "victim";
        options.transport = transport_of(survivor);
        options.lanes = 1 + terms.random.below(2);
        options.listens = !listens(survivor);
        options.end_once_in = terms.peer_lives ? 2000 : 200;
        options.target = [&] {
            return at_port(options.transport,
                           board.survivor_port[static_cast<std::size_t>(survivor)]);
        };
        Party party(options, terms);
        if (options.listens)
            board.victim_port[self] = party.port();
        const auto until = Clock::now() + std::chrono::microseconds(fate.life_us);
        while (Clock::now() < until)
            party.run_once();
        board.victim_port[self] = 0;
        party.wind_down(true);
        while (!party.idle())
            party.run_once();
        terms.phase(Phase::kEnding);
    }
    std::_Exit(0);
}

} // namespace dat::test
