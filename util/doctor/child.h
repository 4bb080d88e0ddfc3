// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A probe in a process of its own: libfabric reads its environment once, and a probe may hang, or
// die.
#ifndef DAT_UTIL_DOCTOR_CHILD_H
#define DAT_UTIL_DOCTOR_CHILD_H

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace dat::doctor {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Where a probe says what it has found, one fact a line.
class Report {
  public:
    explicit Report(int fd) : fd_(fd) {}
    void say(std::string_view key, std::string_view value) const;

  private:
    const int fd_;
};

// What a probe has said, and how it ended.
struct Outcome {
    std::vector<std::pair<std::string, std::string>> facts; // in order
    std::vector<std::string> log; // lines of its standard error, without what libfabric begins with
    std::string trouble;          // why it did not come to its end; empty: it did
    bool late = false;            // it was killed since it took too long

    bool all_right() const { return trouble.empty(); }
    // The first value of the key; empty: there is none.
    std::string operator[](std::string_view key) const;
    // The first line of the log with this in it; empty: there is none.
    std::string line_with(std::string_view words) const;
};

class Child {
  public:
    // `run` throws where it fails. A child of a process that has used libfabric must not use it.
    explicit Child(const std::function<void(const Report&)>& run);
    ~Child(); // ends it
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Waits for its end, and kills it at `limit`.
    Outcome outcome(Clock::time_point limit);

  private:
    void read(Clock::time_point limit);
    pid_t pid_ = -1;
    int said_ = -1;
    int log_ = -1;
    std::string said_text_;
    std::string log_text_;
};

inline Outcome in_child(std::chrono::milliseconds limit,
                        const std::function<void(const Report&)>& run) {
    return Child(run).outcome(Clock::now() + limit);
}

// In a child, before libfabric is used: its log is what the parent reads.
void log_everything();

} // namespace dat::doctor

#endif
