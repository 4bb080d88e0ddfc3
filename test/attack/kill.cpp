// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The kill test: either side of a connection is killed or stopped, at random moments, again
// and again, over TCP and over shared memory; what survives is looked at by an oracle. Of
// each operation there is one completion, what succeeded is right, one event ends each
// connection, after all completions, nothing comes behind it, the endpoint is good for the
// next, and neither descriptors nor memory grow.
//
//   kill [--link tcp|shm] [--seconds N] [--seed N]
//
// N seconds over each link, 60 by default. Prints a record, one line for each link that is a
// row of the table in test/README.md. Status 1 where anything was violated. What is random is
// decided by the seed; when the kernel lets whom run is not, so a replay meets the same
// plans at other moments.
#include "kill_parties.h"
#include "party.h"

#include "../transport/sanitized.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace dat::test {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using std::chrono::microseconds;

// A survivor or a victim, from outside.
struct Process {
    pid_t pid = 0; // 0: none
    bool stopped = false;
    Clock::time_point act_at{}; // kill, stop, or let go on
    Clock::time_point hopeless_at{};
    Fate fate{};
};

class Killing {
  public:
    Killing(const char* link, int seconds, std::uint64_t seed)
        : link_(link), seconds_(seconds), seed_(seed), random_(seed) {}
    // Returns the number of violations.
    std::uint64_t run();

  private:
    std::string replay() const;
    void make_board();
    void start_survivors();
    void start_victim(std::size_t number);
    Fate next_fate();
    void tend_victim(std::size_t number);
    void tend_survivor(Process& survivor);
    void signal(Process& process, int number);
    void gone(std::size_t number, int status);
    void kill_victims();
    void let_run(Clock::duration time);
    bool rest();
    void compare(const char* when);
    void violation(const std::string& what);
    void print() const;
    void end();

    const char* const link_;
    const int seconds_;
    const std::uint64_t seed_;
    Random random_;
    Board* board_ = nullptr;
    std::array<Process, kSurvivors> survivors_;
    std::array<Process, kVictims> victims_;
    std::array<AtRest, kSurvivors> first_{};
    bool measured_ = false;
    bool hopeless_ = false; // a survivor has gone, or does not answer
    std::uint64_t victims_begun_ = 0;
    std::uint64_t kills_ = 0;
    std::array<std::uint64_t, 4> kills_in_{}; // by Phase
    std::uint64_t stops_ = 0;
    std::uint64_t in_order_ = 0;
};

std::string Killing::replay() const {
    return "test/attack/kill --link " + std::string(link_) + " --seconds " +
           std::to_string(seconds_) + " --seed " + std::to_string(seed_);
}

void Killing::violation(const std::string& what) {
    ++board_->tally.violations;
    std::printf("VIOLATION %s: %s\n    replay: %s\n", link_, what.c_str(), replay().c_str());
}

void Killing::make_board() {
    void* const shared =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    DAT_REQUIRE(shared != MAP_FAILED, "mmap");
    board_ = new (shared) Board();
    name_process("kill", replay(), &board_->tally);
}

void Killing::start_survivors() {
    for (std::size_t i = 0; i < survivors_.size(); ++i) {
        const std::uint64_t seed = random_.next();
        std::fflush(nullptr);
        survivors_[i].pid = fork();
        DAT_REQUIRE(survivors_[i].pid >= 0, "fork");
        if (survivors_[i].pid == 0)
            run_survivor(*board_, static_cast<int>(i), seed, replay());
        survivors_[i].act_at = Clock::now() + 1s;
    }
}

// Moments of all sizes: within a handshake, within the first messages, later.
Fate Killing::next_fate() {
    Fate fate;
    fate.seed = random_.next();
    const std::uint64_t kind = random_.below(20);
    fate.end = kind < 9    ? End::kByTimer
               : kind < 13 ? End::kBySignal
               : kind < 16 ? End::kStopped
               : kind < 18 ? End::kGoesOn
                           : End::kInOrder;
    fate.life_us = random_.between(5'000, 100'000);
    if (fate.end == End::kByTimer) {
        constexpr std::uint64_t kLongest[] = {3'000, 2'000, 20'000, 500};
        const std::uint64_t phase = random_.below(4);
        fate.phase = static_cast<Phase>(phase);
        fate.delay_us = random_.below(kLongest[phase]);
        if (fate.phase == Phase::kEnding)
            fate.life_us = random_.between(1'000, 10'000);
    } else {
        constexpr std::uint64_t kLongest[] = {2'000, 10'000, 100'000};
        fate.delay_us = random_.below(kLongest[random_.below(3)]);
    }
    return fate;
}

void Killing::start_victim(std::size_t number) {
    Process& victim = victims_[number];
    victim = Process();
    victim.fate = next_fate();
    board_->victim_port[number] = 0;
    board_->phase[number] = Phase::kStart;
    ++victims_begun_;
    std::fflush(nullptr);
    victim.pid = fork();
    DAT_REQUIRE(victim.pid >= 0, "fork");
    if (victim.pid == 0)
        run_victim(*board_, static_cast<int>(number), victim.fate, replay());
    const auto now = Clock::now();
    victim.act_at = now + microseconds(victim.fate.delay_us);
    victim.hopeless_at = now + 90s;
}

void Killing::signal(Process& process, int number) {
    DAT_MUST(::kill(process.pid, number));
    process.stopped = number == SIGSTOP;
    stops_ += number == SIGSTOP;
}

void Killing::gone(std::size_t number, int status) {
    Process& victim = victims_[number];
    const bool meant = victim.fate.end != End::kGoesOn && victim.fate.end != End::kInOrder;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && meant) {
        ++kills_;
        ++kills_in_[static_cast<std::size_t>(board_->phase[number].load())];
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        ++in_order_;
    } else if (!(WIFEXITED(status) && WEXITSTATUS(status) == kViolated)) { // said by itself
        violation("a victim ended with status " + std::to_string(status));
    }
    board_->victim_port[number] = 0;
    victim.pid = 0;
}

void Killing::tend_victim(std::size_t number) {
    Process& victim = victims_[number];
    if (victim.pid == 0)
        return start_victim(number);
    int status = 0;
    if (waitpid(victim.pid, &status, WNOHANG) == victim.pid)
        return gone(number, status);
    const auto now = Clock::now();
    if (now > victim.hopeless_at) {
        violation("a victim that was left alone does not come to its end");
        victim.hopeless_at = Clock::time_point::max();
        return signal(victim, SIGKILL);
    }
    if (now < victim.act_at)
        return;
    victim.act_at = Clock::time_point::max();
    switch (victim.fate.end) {
    case End::kBySignal:
        return signal(victim, SIGKILL);
    case End::kStopped:
        signal(victim, victim.stopped ? SIGKILL : SIGSTOP);
        if (victim.stopped)
            victim.act_at = now + microseconds(random_.below(20'000));
        return;
    case End::kGoesOn:
        signal(victim, victim.stopped ? SIGCONT : SIGSTOP);
        victim.act_at = now + microseconds(random_.between(500, 30'000));
        return;
    default:
        return;
    }
}

void Killing::tend_survivor(Process& survivor) {
    int status = 0;
    if (waitpid(survivor.pid, &status, WNOHANG) == survivor.pid) {
        survivor.pid = 0;
        hopeless_ = true;
        if (!(WIFEXITED(status) && WEXITSTATUS(status) == kViolated))
            violation("a survivor ended with status " + std::to_string(status));
        return;
    }
    const auto now = Clock::now();
    if (now < survivor.act_at)
        return;
    signal(survivor, survivor.stopped ? SIGCONT : SIGSTOP);
    survivor.act_at = now + (survivor.stopped ? microseconds(random_.between(100, 50'000))
                                              : microseconds(random_.below(2'000'000)));
}

void Killing::let_run(Clock::duration time) {
    const auto until = Clock::now() + time;
    while (Clock::now() < until && !hopeless_) {
        for (std::size_t i = 0; i < victims_.size(); ++i)
            tend_victim(i);
        for (Process& survivor : survivors_)
            if (survivor.pid != 0)
                tend_survivor(survivor);
        const timespec moment{0, 300'000};
        nanosleep(&moment, nullptr);
    }
}

void Killing::kill_victims() {
    for (std::size_t i = 0; i < victims_.size(); ++i) {
        if (victims_[i].pid == 0)
            continue;
        victims_[i].fate.end = End::kBySignal;
        ::kill(victims_[i].pid, SIGKILL);
        int status = 0;
        waitpid(victims_[i].pid, &status, 0);
        gone(i, status);
    }
}

// All victims are killed at once; each survivor has to see all its connections end by that.
bool Killing::rest() {
    kill_victims();
    for (Process& survivor : survivors_)
        if (survivor.pid != 0 && survivor.stopped)
            signal(survivor, SIGCONT);
    const std::uint64_t expected = board_->rests + kSurvivors;
    board_->order = Order::kRest;
    const auto limit = Clock::now() + 90s;
    while (board_->rests < expected && !hopeless_) {
        if (Clock::now() > limit) {
            violation("a survivor does not come to rest");
            hopeless_ = true;
        }
        for (Process& survivor : survivors_) {
            survivor.act_at = Clock::time_point::max();
            tend_survivor(survivor);
        }
        const timespec moment{0, 1'000'000};
        nanosleep(&moment, nullptr);
    }
    for (Process& survivor : survivors_)
        survivor.act_at = Clock::now() + 1s;
    return !hopeless_;
}

// Nothing may be more than it was when the first part of the run had warmed all up.
void Killing::compare(const char* when) {
    for (std::size_t i = 0; i < survivors_.size(); ++i) {
        const AtRest& then = first_[i];
        const AtRest& now = board_->at_rest[i];
        const std::string who = "survivor " + std::to_string(i) + ' ' + when + ": ";
        // The least that malloc() counts is 32 bytes: less than one piece for each connection.
        const std::uint64_t since = now.connections - then.connections;
        // What a domain makes when it is first needed, such as room to read a stream into,
        // may come late.
        const std::uint64_t allowed = std::max<std::uint64_t>(since * 16, 512 * 1024);
        if (now.descriptors > then.descriptors)
            violation(who + "descriptors grow: " + std::to_string(then.descriptors) + " -> " +
                      std::to_string(now.descriptors));
        if (!kSanitized && now.allocated > then.allocated + allowed)
            violation(who + "memory leaks: " + std::to_string(then.allocated) + " -> " +
                      std::to_string(now.allocated));
        if (!kSanitized && now.resident > then.resident + (4U << 20))
            violation(who + "memory grows: " + std::to_string(then.resident) + " -> " +
                      std::to_string(now.resident));
    }
}

std::uint64_t Killing::run() {
    make_board();
    std::printf("%s: %d s, seed %llu\n", link_, seconds_, static_cast<unsigned long long>(seed_));
    const Transport any{"kill", false, AF_INET, "127.0.0.1", FI_PROGRESS_AUTO};
    fi_info* list = nullptr; // loads the provider once: victims are forks of this process
    DAT_MUST(
        fi_getinfo(FI_VERSION(1, 17), any.address, "0", FI_SOURCE, hints_for(any).get(), &list));
    fi_freeinfo(list);
    start_survivors();
    const auto from = Clock::now();
    const auto until = from + std::chrono::seconds(seconds_);
    const auto part = std::clamp<Clock::duration>(until - from, 0s, 240s) / 4;
    while (Clock::now() < until && !hopeless_) {
        // Every 5 minutes of a long run, 4 times in a short one.
        let_run(std::min<Clock::duration>(
            measured_ ? std::max<Clock::duration>(part, part * 5) : part, until - Clock::now()));
        if (!rest())
            break;
        if (!std::exchange(measured_, true))
            first_ = board_->at_rest;
        else
            compare(Clock::now() < until ? "during the run" : "at the end");
        board_->order = Order::kRun;
    }
    if (board_->ledger.lost() != 0)
        violation(std::to_string(board_->ledger.lost()) +
                  " connections ended with messages lost that were reported or injected");
    end();
    print();
    return board_->tally.violations;
}

void Killing::end() {
    board_->order = Order::kStop;
    kill_victims();
    for (Process& survivor : survivors_) {
        if (survivor.pid == 0)
            continue;
        ::kill(survivor.pid, SIGKILL); // it has nothing more to say
        waitpid(survivor.pid, nullptr, 0);
    }
}

void Killing::print() const {
    const Tally& t = board_->tally;
    const auto n = [](const auto& count) {
        return static_cast<unsigned long long>(static_cast<std::uint64_t>(count));
    };
    std::printf("%s: kills %llu (starting %llu, in a handshake %llu, connected %llu, ending %llu), "
                "stops %llu, processes %llu, ended in order %llu\n",
                link_, n(kills_), n(kills_in_[0]), n(kills_in_[1]), n(kills_in_[2]),
                n(kills_in_[3]), n(stops_), n(victims_begun_), n(in_order_));
    std::printf("%s: ends of connections %llu, with a farewell %llu; attempts in vain %llu\n",
                link_, n(t.connected), n(t.orderly), n(t.failed));
    std::printf("%s: operations %llu, flushed %llu, failed %llu, injected %llu; messages %llu, "
                "checked %llu MiB\n",
                link_, n(t.succeeded + t.flushed + t.erred), n(t.flushed), n(t.erred),
                n(t.injected), n(t.messages), n(t.bytes >> 20));
    std::printf("%s: ends without waiting, counted at both sides %llu, with a loss %llu\n", link_,
                n(board_->ledger.compared()), n(board_->ledger.lost()));
    std::string row = "| " + std::string(link_) + " | " + std::to_string(seconds_) + " s | " +
                      std::to_string(seed_) + " | " + std::to_string(kills_) + " | " +
                      std::to_string(stops_) + " | " + std::to_string(t.connected) + " | " +
                      std::to_string(t.succeeded + t.flushed + t.erred + t.injected) + " | " +
                      std::to_string(t.violations) + " | ";
    std::string memory;
    for (std::size_t i = 0; i < survivors_.size(); ++i) {
        const AtRest& a = first_[i];
        const AtRest& b = board_->at_rest[i];
        const char* const comma = i == 0 ? "" : ", ";
        row += comma + std::to_string(a.descriptors) + "→" + std::to_string(b.descriptors);
        memory += comma + std::to_string(a.allocated >> 10) + "→" +
                  std::to_string(b.allocated >> 10) + " (" + std::to_string(a.resident >> 10) +
                  "→" + std::to_string(b.resident >> 10) + ")";
    }
    std::printf("%s | %s |\n", row.c_str(), memory.c_str());
}

// The provider reads its variables once: a link is a process, which ends with its verdict.
pid_t begin(const char* link, int seconds, std::uint64_t seed) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("FI_DAT_SHM", std::strcmp(link, "shm") == 0 ? "1" : "0", 1);
        setenv("FI_DAT_TRANSPORT", "soft", 1);
        const std::uint64_t violations = Killing(link, seconds, seed).run();
        std::fflush(nullptr);
        std::_Exit(violations != 0);
    }
    DAT_REQUIRE(child > 0, "no child process");
    return child;
}

bool is_right(pid_t child) {
    int status = 0;
    DAT_REQUIRE(waitpid(child, &status, 0) == child, "no child process");
    return status == 0;
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    const char* link = nullptr;
    int seconds = 60;
    auto seed = static_cast<std::uint64_t>(time(nullptr));
    for (int i = 1; i < argc; i += 2) {
        const std::string option = argv[i];
        if (i + 1 == argc) {
            return 2;
        } else if (option == "--link") {
            link = argv[i + 1];
        } else if (option == "--seconds") {
            seconds = std::atoi(argv[i + 1]);
        } else if (option == "--seed") {
            seed = std::strtoull(argv[i + 1], nullptr, 10);
        } else {
            std::fprintf(stderr, "usage: kill [--link tcp|shm] [--seconds N] [--seed N]\n");
            return 2;
        }
    }
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // lines of two processes
    // Both at once: each is a load for the other.
    std::vector<pid_t> links;
    for (const char* each : {"tcp", "shm"})
        if (!link || std::strcmp(link, each) == 0)
            links.push_back(dat::test::begin(each, seconds, seed));
    int status = 0;
    for (const pid_t each : links)
        status |= dat::test::is_right(each) ? 0 : 1;
    return status;
}
