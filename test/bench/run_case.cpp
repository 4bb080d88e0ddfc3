// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See run_case.h. May include: test/bench, std, Linux.
#include "run_case.h"

#include "fabric_side.h"
#include "patterns.h"
#include "raw_side.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

namespace dat::bench {

const char* name(Over over) {
    constexpr const char* kNames[] = {"dat", "tcp", "raw"};
    return kNames[static_cast<int>(over)];
}

const char* name(Pattern pattern) {
    constexpr const char* kNames[] = {"ping", "stream", "connect", "idle"};
    return kNames[static_cast<int>(pattern)];
}

void die(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::fputs("bench: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    std::_Exit(1);
}

namespace {

// Values from one process to another.
class Pipe {
  public:
    Pipe() {
        if (pipe(ends_.data()) != 0) {
            die("pipe: %s", std::strerror(errno));
        }
    }
    ~Pipe() {
        close(ends_[0]);
        close(ends_[1]);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    template <class T> void put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (write(ends_[1], &value, sizeof value) != sizeof value) {
            die("write: %s", std::strerror(errno));
        }
    }
    // Of a process that has ended: what it has put is there, or never comes.
    template <class T> T get() {
        T value{};
        if (read(ends_[0], &value, sizeof value) != sizeof value) {
            die("the other process gave no answer");
        }
        return value;
    }

  private:
    std::array<int, 2> ends_{};
};

template <Side S> Result run_pattern(S& side, const Case& what, bool client, std::uint16_t port) {
    switch (what.pattern) {
    case Pattern::connect:
        return connects(side, what, client, port);
    case Pattern::idle:
        return idle(side, what, client, port);
    case Pattern::ping:
    case Pattern::stream:
        break;
    }
    client ? side.connect(port) : side.accept();
    return what.pattern == Pattern::ping ? ping(side, what, client) : stream(side, what, client);
}

template <Side S> Result run_side(S& side, const Case& what, bool client, Pipe& ports) {
    std::uint16_t port = 0;
    if (client) {
        port = ports.get<std::uint16_t>();
    } else {
        ports.put(side.listen());
    }
    return run_pattern(side, what, client, port);
}

void use_processor(int index) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
        return;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed) && index-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
}

void raise_descriptor_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// The life of a child.
[[noreturn]] void be(const Case& what, bool client, Pipe& ports, Pipe& answers) {
    constexpr unsigned kLimit_s = 100;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(kLimit_s); // nothing hangs for good
    use_processor(client ? 1 : 0);
    raise_descriptor_limit();
    if (what.over == Over::raw) {
        RawSide side(what.size);
        answers.put(run_side(side, what, client, ports));
    } else {
        setenv("FI_PROVIDER", name(what.over), 1);
        FabricSide side(name(what.over), what.size);
        answers.put(run_side(side, what, client, ports));
    }
    std::_Exit(0);
}

pid_t start(const Case& what, bool client, Pipe& ports, Pipe& answers) {
    const pid_t pid = fork();
    if (pid < 0) {
        die("fork: %s", std::strerror(errno));
    }
    if (pid == 0) {
        be(what, client, ports, answers);
    }
    return pid;
}

// Whichever of the two fails, the other would wait for it.
void wait_for_both(pid_t server, pid_t client) {
    for (int i = 0; i < 2; ++i) {
        int status = 0;
        const pid_t ended = wait(&status);
        if (ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            kill(ended == server ? client : server, SIGKILL);
            die("the %s failed", ended == server ? "server" : "client");
        }
    }
}

} // namespace

Results run_case(const Case& what) {
    Pipe ports;
    Pipe from_server;
    Pipe from_client;
    const pid_t server = start(what, false, ports, from_server);
    const pid_t client = start(what, true, ports, from_client);
    wait_for_both(server, client);
    return {from_server.get<Result>(), from_client.get<Result>()};
}

Result run_in_one(Over over, std::size_t size, std::size_t burst, std::uint64_t operations) {
    setenv("FI_PROVIDER", name(over), 1);
    FabricSide server(name(over), size, FI_PROGRESS_MANUAL);
    FabricSide client(name(over), size, FI_PROGRESS_MANUAL);
    client.begin_connect(server.listen());
    for (bool here = false, there = false; !here || !there;) {
        here |= client.progress_connect();
        there |= server.progress_connect();
    }
    Result result;
    const auto begin = Clock::now();
    while (result.operations < operations) {
        for (std::size_t i = 0; i < burst; ++i) {
            server.receive(0);
        }
        std::size_t sent = 0;
        for (std::size_t i = 0; i < burst; ++i) {
            while (!client.send(0)) {
                sent += client.poll(0).sent;
            }
        }
        while (sent < burst) {
            sent += client.poll(0).sent;
        }
        for (std::size_t received = 0; received < burst;) {
            received += server.poll(0).received;
        }
        result.operations += burst;
    }
    result.seconds = seconds_since(begin);
    return result;
}

} // namespace dat::bench
