// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Closes a descriptor of the library under test, or puts /dev/null in its place: each descriptor in
// turn, and all, at each stage of a connection, each in a process of its own. Nothing ends the
// program, nothing hangs, calls answer, and all that was opened can be closed. Included by a
// program's one source, behind DAT_REQUIRE.
#ifndef DAT_TEST_ATTACK_HARM_H
#define DAT_TEST_ATTACK_HARM_H

#include "open_descriptors.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace dat::test {

enum Stage { kOpened, kConnecting, kConnected, kBusy, kEnding, kStages };
enum How { kClose, kReplace, kHows };
constexpr const char* kStageNames[] = {"opened", "connecting", "connected", "busy", "ending"};
constexpr const char* kHowNames[] = {"close", "replace"};
constexpr unsigned kLimit = 60; // seconds that a case may take; it takes a few
constexpr int kAll = 1000;      // as a number: every descriptor

// Both sides of a connection. What calls answer is looked at only until a descriptor is harmed.
class Victim {
  public:
    virtual ~Victim() = default;
    virtual void reach(Stage stage) = 0;
    virtual void go_on() = 0;     // whatever the calls answer
    virtual void close_all() = 0; // which has to succeed
};

// What is tested, and over what.
struct Subject {
    const char* program;
    const char* link;
    void (*warm)(); // opens what does not belong to the library
    std::unique_ptr<Victim> (*make)();
};

struct Case {
    Stage stage;
    int number; // of the descriptor, in order; less than 0: none, they are counted
    How how;
};

inline void harm(int fd, How how) {
    if (how == kClose) {
        close(fd);
        return;
    }
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, fd);
    close(null);
}

// In a process of its own. Exits with how many descriptors there were, if they are counted.
[[noreturn]] inline void play(const Subject& subject, const Case& one) {
    alarm(kLimit);
    // The number of an eventfd that is gone may be a socket's next, and the write to it raises
    // this.
    std::signal(SIGPIPE, SIG_IGN);
    subject.warm();
    const std::set<int> before = open_descriptors();
    const std::unique_ptr<Victim> victim = subject.make();
    victim->reach(one.stage);
    std::vector<int> mine;
    std::ranges::set_difference(open_descriptors(), before, std::back_inserter(mine));
    if (one.number < 0) {
        std::_Exit(static_cast<int>(mine.size()));
    }
    for (int i = 0; i < static_cast<int>(mine.size()); ++i) {
        if (i == one.number || one.number == kAll) {
            harm(mine[static_cast<std::size_t>(i)], one.how);
        }
    }
    victim->go_on();
    victim->close_all();
    std::_Exit(0);
}

inline pid_t start(const Subject& subject, const Case& one) {
    const pid_t child = fork();
    if (child == 0) {
        play(subject, one);
    }
    DAT_REQUIRE(child > 0, "fork");
    return child;
}

inline bool went_well(const Subject& subject, const Case& one, int status) {
    if (status == 0) {
        return true;
    }
    std::fprintf(stderr, "FAILED: %s %d; alone: %s %s %s %d %s\n",
                 WIFSIGNALED(status) ? "signal" : "exit status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), subject.program,
                 subject.link, kStageNames[one.stage], one.number, kHowNames[one.how]);
    return false;
}

inline std::vector<Case> cases_of(const Subject& subject) {
    std::vector<Case> all;
    for (int stage = 0; stage < kStages; ++stage) {
        const pid_t child = start(subject, {static_cast<Stage>(stage), -1, kClose});
        int status = 0;
        DAT_REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status),
                    "descriptors cannot be counted");
        const int count = WEXITSTATUS(status);
        DAT_REQUIRE(count > 5, "the library has no descriptors");
        for (int how = 0; how < kHows; ++how) {
            for (int i = 0; i < count; ++i) {
                all.push_back({static_cast<Stage>(stage), i, static_cast<How>(how)});
            }
            all.push_back({static_cast<Stage>(stage), kAll, static_cast<How>(how)});
        }
    }
    return all;
}

inline void harm_each(const Subject& subject) {
    constexpr std::size_t kAtOnce = 16; // they wait for most of their time
    const std::vector<Case> all = cases_of(subject);
    std::map<pid_t, const Case*> running;
    bool well = true;
    for (std::size_t next = 0; next < all.size() || !running.empty();) {
        while (running.size() < kAtOnce && next < all.size()) {
            const Case& one = all[next++];
            running.emplace(start(subject, one), &one);
        }
        int status = 0;
        const auto ended = running.find(waitpid(-1, &status, 0));
        DAT_REQUIRE(ended != running.end(), "waitpid");
        well = went_well(subject, *ended->second, status) && well;
        running.erase(ended);
    }
    DAT_REQUIRE(well, "a descriptor that the program took harmed more than its own connection");
    std::printf("ok: %s, %zu cases\n", subject.link, all.size());
}

inline void harm_one(const Subject& subject, const Case& one) {
    int status = 0;
    DAT_REQUIRE(waitpid(start(subject, one), &status, 0) > 0, "waitpid");
    DAT_REQUIRE(went_well(subject, one, status), "one case");
}

inline int index_of(const char* name, std::span<const char* const> names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (std::string(name) == names[i]) {
            return static_cast<int>(i);
        }
    }
    DAT_REQUIRE(false, name);
    return 0;
}

// Of the arguments STAGE NUMBER HOW.
inline Case case_of(char** arguments) {
    return {static_cast<Stage>(index_of(arguments[0], kStageNames)), std::atoi(arguments[1]),
            static_cast<How>(index_of(arguments[2], kHowNames))};
}

} // namespace dat::test

#endif
