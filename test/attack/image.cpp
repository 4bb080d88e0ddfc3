// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A large message waits in its sender's memory for a receive, and the sender becomes
// something else meanwhile: another program by execve(2), nothing, while a child holds its
// connection, or another process with its number. What is at that place then is not the
// message: the connection ends, the receive gives nothing, and its buffer shows nothing of
// it. This program is at fixed addresses, so that its buffer is where the message was. A
// plain program; a process that takes a number needs root.
//
//   image                 all of it
//   image --sender HOW PORT PIPE    the sender, that becomes HOW
//   image --impostor PIPE           what it becomes by execve(2)
#include "../unit/engine_harness.h"

#include "links/iwarp/connect.h"
#include "links/shm/link.h"

#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace engine_test;

namespace {

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "FAILED %s:%d: %s: %s\n", __FILE__, __LINE__, #condition,         \
                         std::strerror(errno));                                                    \
            std::_Exit(1);                                                                         \
        }                                                                                          \
    } while (0)

constexpr std::size_t kSize = 1 << 20; // more than a connection stages
constexpr std::byte kOwn{0x11};
constexpr std::byte kForeign{0x22};
constexpr std::byte kUntouched{0x33};

alignas(4096) std::byte g_message[kSize];

dat::engine::Domain::Options sharing() {
    auto o = options();
    o.settings.shm = true;
    return o;
}

dat::net::SocketAddress loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

void tell(int pipe, char what) { MUST(write(pipe, &what, 1) == 1); }

[[noreturn]] void stay() {
    for (;;) {
        pause();
    }
}

[[noreturn]] void be_impostor(int pipe) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::memset(g_message, static_cast<int>(kForeign), kSize);
    tell(pipe, 'r');
    stay();
}

// Holds the sockets of its parent, which has died; with a child that has its number.
[[noreturn]] void be_heir(pid_t parent, bool takes_number, int pipe) {
    prctl(PR_SET_PDEATHSIG, 0);
    std::memset(g_message, static_cast<int>(kForeign), kSize);
    while (kill(parent, 0) == 0) { // until it has been waited for
        usleep(1000);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); // of the receiver, whose child this is by now
    if (takes_number) {
        clone_args arguments{};
        arguments.exit_signal = SIGCHLD;
        arguments.set_tid = reinterpret_cast<std::uintptr_t>(&parent);
        arguments.set_tid_size = 1;
        const long child = syscall(SYS_clone3, &arguments, sizeof arguments);
        MUST(child >= 0);
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            stay();
        }
        MUST(child == parent);
    }
    tell(pipe, 'r');
    stay();
}

// A message that is not received waits here.
int send_and_become(const std::string& how, std::uint16_t port, int pipe) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    OpenDomain domain(sharing());
    Side side(domain);
    MUST(dat::iwarp::connect(side.endpoint, loopback(port), nullptr, {}, {}) == 0);
    MUST(run_until(domain, [&] { return side.connected(); }));
    MUST(side.kind == dat::engine::LinkKind::shm);
    std::memset(g_message, static_cast<int>(kOwn), kSize);
    side.send<dat::engine::Link>({g_message, kSize});
    for (int i = 0; i < 1000; ++i) {
        const dat::engine::BiasedLockOwner inside(domain.biased_lock());
        domain.progress();
    }
    MUST(side.requests.size() == 0);
    if (how == "exec") {
        const std::string number = std::to_string(pipe);
        execl("/proc/self/exe", "image", "--impostor", number.c_str(), nullptr);
        MUST(false);
    }
    const pid_t self = getpid();
    const pid_t heir = fork();
    MUST(heir >= 0);
    if (heir == 0) {
        be_heir(self, how == "number", pipe);
    }
    MUST(write(pipe, &heir, sizeof heir) == sizeof heir);
    _exit(0);
}

struct Requests final : dat::iwarp::ListenerOwner {
    Requests() : listener(*this, {}) {
        MUST(listener.bind(loopback(0)) == 0);
        MUST(listener.listen(8) == 0);
    }
    void announce(std::unique_ptr<dat::iwarp::ConnRequest> request) override {
        arrived = std::move(request);
    }
    dat::iwarp::Listener listener;
    std::unique_ptr<dat::iwarp::ConnRequest> arrived;
};

// `looks`: the receiver goes on meanwhile; else it finds the end and the message at once.
void receive_of(const char* how, bool looks) {
    std::printf("%s, %s\n", how, looks ? "seen at once" : "seen at the receive");
    std::fflush(stdout);
    Requests requests;
    OpenDomain domain(sharing());
    Side side(domain);
    int pipes[2];
    MUST(pipe(pipes) == 0);
    const pid_t sender = fork();
    MUST(sender >= 0);
    if (sender == 0) {
        execl("/proc/self/exe", "image", "--sender", how,
              std::to_string(requests.listener.name().port()).c_str(),
              std::to_string(pipes[1]).c_str(), nullptr);
        _exit(2);
    }
    const auto run = [&](auto done) {
        return run_until(domain, done, [&] { requests.listener.progress(); });
    };
    MUST(run([&] { return requests.arrived != nullptr; }));
    MUST(dat::iwarp::accept(side.endpoint, *requests.arrived, {}) == 0);
    MUST(run([&] { return side.connected(); }));
    MUST(side.kind == dat::engine::LinkKind::shm);
    pid_t heir = 0;
    if (std::string_view(how) != "exec") {
        MUST(read(pipes[0], &heir, sizeof heir) == sizeof heir);
        int status = 0;
        MUST(waitpid(sender, &status, 0) == sender && status == 0);
    }
    if (looks) {
        fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    }
    char ready = 0;
    MUST(run([&] { return read(pipes[0], &ready, 1) == 1; }));
    std::vector<std::byte> in(kSize, kUntouched);
    side.receive(in);
    MUST(run([&] { return side.ended(); }));
    for (const Completion& each : side.receives.take()) {
        MUST(each.status != DtoStatus::success);
    }
    MUST(side.events.size() == 2); // connected, and one end
    for (const std::byte each : in) {
        MUST(each != kForeign);
    }
    kill(heir != 0 ? heir : sender, SIGKILL);
    // This process has become the parent of orphans. Who has the sender's number may not have got
    // so far that it ends with its parent.
    const bool number = std::string_view(how) == "number";
    MUST(!number || kill(sender, SIGKILL) == 0);
    MUST(heir == 0 || waitpid(heir, nullptr, 0) == heir);
    MUST((heir != 0 && !number) || waitpid(sender, nullptr, 0) == sender);
    close(pipes[0]);
    close(pipes[1]);
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "--impostor" && argc == 3) {
        be_impostor(std::atoi(argv[2]));
    }
    if (mode == "--sender" && argc == 5) {
        return send_and_become(argv[2], static_cast<std::uint16_t>(std::atoi(argv[3])),
                               std::atoi(argv[4]));
    }
    if (argc != 1) {
        std::fprintf(stderr, "usage: image\n");
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (const bool looks : {false, true}) {
        receive_of("exec", looks);
        receive_of("heir", looks);
        if (geteuid() == 0) {
            receive_of("number", looks);
        }
    }
    if (geteuid() != 0) {
        std::puts("the rest is skipped: a process with a given number needs root");
        return 77;
    }
    return 0;
}
