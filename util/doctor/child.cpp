// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See child.h.
#include "doctor/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::doctor {
namespace {

constexpr std::string_view kTrouble = "trouble";

void make_pipe(std::array<int, 2>& ends) {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    }
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return lines;
}

// "libfabric:123:1700000000::dat:core:getinfo():12<warn> text": the text.
std::string without_origin(const std::string& line) {
    const std::size_t end = line.find("> ");
    return line.starts_with("libfabric:") && end != std::string::npos ? line.substr(end + 2) : line;
}

// What a child that was not killed by us ended with, in words.
std::string ending(int status) {
    if (WIFSIGNALED(status)) {
        return std::string("it was ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
               strsignal(WTERMSIG(status)) + ")";
    }
    return WEXITSTATUS(status) == 0 ? ""
                                    : "it ended with status " + std::to_string(WEXITSTATUS(status));
}

} // namespace

void Report::say(std::string_view key, std::string_view value) const {
    std::string line = std::string(key) + " " + std::string(value);
    std::ranges::replace(line, '\n', ' ');
    line += '\n';
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t n = write(fd_, line.data() + at, line.size() - at);
        if (n < 0 && errno != EINTR) {
            return;
        }
        at += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

std::string Outcome::operator[](std::string_view key) const {
    const auto at = std::ranges::find(facts, key, &std::pair<std::string, std::string>::first);
    return at == facts.end() ? "" : at->second;
}

std::string Outcome::line_with(std::string_view words) const {
    const auto at = std::ranges::find_if(
        log, [words](const std::string& line) { return line.find(words) != std::string::npos; });
    return at == log.end() ? "" : *at;
}

Child::Child(const std::function<void(const Report&)>& run) {
    std::array<int, 2> said{};
    std::array<int, 2> log{};
    make_pipe(said);
    make_pipe(log);
    std::fflush(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) {
        throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    }
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        dup2(log[1], STDERR_FILENO);
        const Report report(said[1]);
        try {
            run(report);
        } catch (const std::exception& why) {
            report.say(kTrouble, why.what());
        }
        std::fflush(nullptr);
        _exit(0);
    }
    close(said[1]);
    close(log[1]);
    said_ = said[0];
    log_ = log[0];
}

Child::~Child() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    close(said_);
    close(log_);
}

void Child::read(Clock::time_point limit) {
    std::array<pollfd, 2> open = {{{said_, POLLIN, 0}, {log_, POLLIN, 0}}};
    std::array<std::string*, 2> texts = {&said_text_, &log_text_};
    while (open[0].fd >= 0 || open[1].fd >= 0) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
        if (left <= 0 || poll(open.data(), open.size(), static_cast<int>(left)) == 0) {
            return;
        }
        for (std::size_t i = 0; i < open.size(); ++i) {
            if ((open[i].revents & (POLLIN | POLLHUP)) == 0) {
                continue;
            }
            std::array<char, 4096> part;
            const ssize_t n = ::read(open[i].fd, part.data(), part.size());
            if (n > 0) {
                texts[i]->append(part.data(), static_cast<std::size_t>(n));
            } else if (n == 0 || errno != EINTR) {
                open[i].fd = -1; // its end
            }
        }
    }
}

Outcome Child::outcome(Clock::time_point limit) {
    read(limit);
    Outcome outcome;
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == 0 && Clock::now() >= limit) {
        outcome.late = true;
        outcome.trouble = "it did not come to an end in time";
        kill(pid_, SIGKILL);
    }
    if (ended == 0) { // both pipes are closed, so it is ending
        waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    for (const std::string& line : lines_of(said_text_)) {
        const std::size_t blank = line.find(' ');
        outcome.facts.emplace_back(line.substr(0, blank),
                                   blank == std::string::npos ? "" : line.substr(blank + 1));
    }
    for (const std::string& line : lines_of(log_text_)) {
        outcome.log.push_back(without_origin(line));
    }
    if (!outcome.late) {
        outcome.trouble = outcome[kTrouble];
        if (outcome.trouble.empty()) {
            outcome.trouble = ending(status);
        }
    }
    return outcome;
}

void log_everything() {
    setenv("FI_LOG_LEVEL", "info", 1);
    setenv("FI_LOG_PROV", "dat", 1);
    unsetenv("FI_LOG_SUBSYS");
}

} // namespace dat::doctor
