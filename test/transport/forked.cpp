// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What fi_dat.7 says of fork(2), with objects that are in use: the parent goes on, a child
// has what it opens itself, nothing outlives execve(2), and a peer sees the end when the
// last process has gone that holds the connection. A plain program.
//
//   forked               over each transport; over those that DAT_TRANSPORT names
//   forked --descriptors    after execve: whether there are more than there should be
//   forked --heir PIPE PORT    connects to that port, over DAT_TRANSPORT; leaves the
//                              connection to a child, and writes the child's id to PIPE
#include "plain.h"

#include <csignal>
#include <cstring>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::test {

namespace {

// Of memory that both processes would have, if it were not copied in time.
constexpr std::size_t kSize = 3 * 4096;

class Process {
  public:
    explicit Process(const std::function<void()>& run) : pid_(fork()) {
        DAT_REQUIRE(pid_ >= 0, std::strerror(errno));
        if (pid_ == 0) {
            run();
            _exit(0);
        }
    }
    ~Process() { end(); }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // Within the time that everything has; what is polled goes on.
    void must_succeed() {
        int status = 0;
        DAT_REQUIRE(wait_until([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }),
                    "a child does not end");
        pid_ = 0;
        DAT_REQUIRE(status == 0, "a child failed");
    }
    void end() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        pid_ = 0;
    }

  private:
    pid_t pid_;
};

void exchange(Endpoint& from, Endpoint& to) {
    Bytes sent = pattern(kSize);
    Bytes got(kSize);
    Op& receive = to.recv(got.data(), kSize);
    wait_op(from.send_confirmed(sent.data(), kSize));
    wait_op(receive);
    DAT_REQUIRE(receive.ok() && got == sent, "a message");
}

// The parent's memory is the device's, whoever writes to a page first.
void memory_stays_the_parents(const Transport& transport) {
    const auto pair = Pair::connected(transport);
    exchange(pair->active, pair->passive());
    Region target(pair->far, kSize, FI_REMOTE_WRITE | FI_REMOTE_READ);
    Bytes got(kSize);
    Op& receive = pair->passive().recv(got.data(), kSize);

    Process child([&] {
        pair->near.asleep = pair->far.asleep = true;
        got.assign(kSize, 0xc1);
        std::memset(target.data(), 0xc2, kSize);
        if (transport.device) {
            const Info hints = hints_for(transport);
            fi_info* none = nullptr;
            const int rc = fi_getinfo(FI_VERSION(1, 17), transport.address, "0", FI_SOURCE,
                                      hints.get(), &none);
            DAT_REQUIRE(rc == -FI_ENODATA, "a device of the parent is offered");
        } else {
            Pair own(transport);
            own.connect();
            exchange(own.active, own.passive());
            exchange(own.passive(), own.active);
        }
        DAT_REQUIRE(got == Bytes(kSize, 0xc1) && target.all(0xc2), "not the child's own memory");
    });
    got.assign(kSize, 0xd1);
    std::memset(target.data(), 0xd2, kSize);
    const Bytes sent = pattern(kSize);
    wait_op(pair->active.send_confirmed(sent.data(), kSize));
    wait_op(receive);
    DAT_REQUIRE(receive.ok() && got == sent, "a receive that was posted before");
    DAT_REQUIRE(target.all(0xd2), "memory that the child wrote to");
    Bytes seen(kSize);
    Op& read = pair->active.read(seen.data(), kSize, target.at(0));
    wait_op(read);
    DAT_REQUIRE(read.ok() && seen == Bytes(kSize, 0xd2), "what a peer reads");
    wait_op(pair->active.write_confirmed(sent.data(), kSize, target.at(0)));
    child.must_succeed();
    exchange(pair->active, pair->passive());
    exchange(pair->passive(), pair->active);
    DAT_REQUIRE(std::memcmp(target.data(), sent.data(), kSize) == 0, "what a peer wrote");
}

void nothing_outlives_execve(const Transport& transport) {
    const auto pair = Pair::connected(transport);
    Process child([] {
        execl("/proc/self/exe", "forked", "--descriptors", nullptr);
        _exit(3);
    });
    child.must_succeed();
    exchange(pair->active, pair->passive());
}

// An heir holds the connection of a process that has died.
void end_is_that_of_the_last(const Transport& transport) {
    Side side(transport);
    side.listen();
    int pipes[2];
    DAT_MUST(pipe(pipes));
    std::optional<Endpoint> endpoint;
    pid_t heir = 0;
    {
        Process dying([&] {
            setenv("DAT_TRANSPORT", transport.name, 1);
            const std::string port = std::to_string(side.port());
            execl("/proc/self/exe", "forked", "--heir", std::to_string(pipes[1]).c_str(),
                  port.c_str(), nullptr);
            _exit(3);
        });
        endpoint.emplace(side, wait_event(side, FI_CONNREQ));
        DAT_MUST(endpoint->accept());
        wait_event(side, FI_CONNECTED);
        // Of a device in the middle of the handshake nothing is certain.
        std::uint8_t in = 0;
        wait_op(endpoint->recv(&in, 1));
        DAT_REQUIRE(read(pipes[0], &heir, sizeof heir) == sizeof heir, "no heir");
    }
    settle();
    const bool ended = !side.events().empty();
    kill(heir, SIGKILL);
    DAT_REQUIRE(!ended, "the connection ended though its descriptors are held");
    DAT_REQUIRE(wait_until([&] { return !side.events().empty(); }), "no end");
    DAT_REQUIRE(side.events().front().ends(), "another event");
    side.events().clear();
    close(pipes[0]);
    close(pipes[1]);
}

void leave_to_an_heir(const Transport& transport, int pipe, std::uint16_t port) {
    Side side(transport);
    Endpoint active(side);
    DAT_MUST(active.connect(socket_address(transport.address, port)));
    wait_event(side, FI_CONNECTED);
    const std::uint8_t out = 1;
    wait_op(active.send_confirmed(&out, 1));
    const pid_t heir = fork();
    if (heir == 0)
        for (;;)
            pause();
    DAT_REQUIRE(write(pipe, &heir, sizeof heir) == sizeof heir, "a pipe");
    for (;;)
        pause();
}

// Those of the standard streams, and whatever this program was started with.
int count_descriptors() {
    DIR* const list = opendir("/proc/self/fd");
    DAT_REQUIRE(list, std::strerror(errno));
    int count = -1; // the list itself
    while (const dirent* entry = readdir(list))
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    const char* const expected = std::getenv("DAT_FORKED_DESCRIPTORS");
    if (argc == 2 && std::string(argv[1]) == "--descriptors" && expected)
        return count_descriptors() == std::atoi(expected) ? 0 : 4;
    if (argc == 4 && std::string(argv[1]) == "--heir") {
        static const int pipe = std::atoi(argv[2]);
        static const auto port = static_cast<std::uint16_t>(std::atoi(argv[3]));
        for (const bool shm : {false, true})
            run_over(shm, [](const Transport& over) { leave_to_an_heir(over, pipe, port); });
    }
    if (argc != 1) {
        std::fprintf(stderr, "usage: forked\n");
        return 2;
    }
    setenv("DAT_FORKED_DESCRIPTORS", std::to_string(count_descriptors()).c_str(), 1);
    return run_over_all([](const Transport& transport) {
        std::printf("%s\n", transport.name);
        std::fflush(stdout);
        memory_stays_the_parents(transport);
        nothing_outlives_execve(transport);
        end_is_that_of_the_last(transport);
    });
}
