// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Runs the tests of a program that was built with criterion/criterion.h of this folder:
//
//   PROGRAM [--timeout SECONDS] [--filter SUITE/NAME]    other options are Criterion's, and ignored
#include "criterion/criterion.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fnmatch.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::criterion {

namespace {

// Not initialized when the program runs: tests register before that.
Registered* first;
Registered** last = &first;

bool any_failed; // in the process of a test
constexpr int kFailed = 1;
constexpr int kSkipped = 77;

[[noreturn]] void run(const Registered& test, unsigned timeout) {
    alarm(test.options.timeout > timeout ? test.options.timeout : timeout);
    test.body();
    end();
}

} // namespace

Registered::Registered(const char* of_suite, const char* of_name, void (*of_body)(), Options with)
    : suite{of_suite}, name{of_name}, body{of_body}, options{with} {
    *last = this;
    last = &next;
}

void failed(const char* file, int line, const char* what, const char* format, ...) {
    std::va_list args;
    va_start(args, format);
    std::printf("%s:%d: %s", file, line, what);
    std::vprintf(format, args);
    std::puts("");
    va_end(args);
    any_failed = true;
}

void log(const char* format, ...) {
    std::va_list args;
    va_start(args, format);
    std::vprintf(format, args);
    std::puts("");
    va_end(args);
}

void end() {
    std::fflush(stdout);
    _exit(any_failed ? kFailed : 0);
}

void skip(const char* why) {
    std::printf("skipped: %s\n", why);
    std::fflush(stdout);
    _exit(kSkipped);
}

} // namespace dat::criterion

int main(int argc, char** argv) {
    using namespace dat::criterion;
    unsigned timeout = 60;
    const char* filter = "*";
    for (int i = 1; i + 1 < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--timeout") {
            timeout = static_cast<unsigned>(std::atoi(argv[i + 1]));
        } else if (word == "--filter") {
            filter = argv[i + 1];
        }
    }
    int tested = 0;
    int failing = 0;
    int crashing = 0;
    int skipped = 0;
    for (const Registered* test = first; test != nullptr; test = test->next) {
        const std::string name = std::string{test->suite} + "/" + test->name;
        if (fnmatch(filter, name.c_str(), 0) != 0) {
            continue;
        }
        std::fflush(stdout);
        const pid_t pid = fork();
        if (pid == 0) {
            run(*test, timeout);
        }
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            std::perror("a process for the test");
            return 2;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) {
            ++skipped;
            continue;
        }
        ++tested;
        if (!WIFEXITED(status)) {
            ++crashing;
            std::printf("[CRASH] %s: signal %d\n", name.c_str(), WTERMSIG(status));
        } else if (WEXITSTATUS(status) != 0) {
            ++failing;
            std::printf("[FAIL] %s\n", name.c_str());
        }
    }
    std::printf("Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: %d | Skipped: %d\n",
                tested, tested - failing - crashing, failing, crashing, skipped);
    return failing + crashing == 0 && tested > 0 ? 0 : 1;
}
