// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Posts over siw to peers that go: the connection ends, and the program goes on. siw sends in
// the program's own call, so that Linux raises SIGPIPE where the stream is closed and siw does
// not know yet: often within a few rounds. A plain program; exit status 0: all held. May
// include: the fixture, iwarp_bytes.h.
//
//   gone_peer ADDRESS    of siw
#include "../transport/iwarp_bytes.h"
#include "../transport/plain.h"

#include <netinet/in.h>

#include <csignal>
#include <cstdio>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace dat::test {
namespace {

constexpr std::uint16_t kDepth = 8;
constexpr int kRounds = 50;
constexpr std::size_t kMessage = 65536;
constexpr std::size_t kRead = 3 * kMessage;

bool is_pending() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

// With bytes on their way, which are answered with a reset.
void read_and_go(int fd) {
    Bytes into(kMessage);
    std::size_t got = 0;
    while (got < kRead) {
        pollfd readable{fd, POLLIN, 0};
        poll(&readable, 1, kWaitMs);
        const ssize_t size = recv(fd, into.data(), into.size(), 0);
        got += size > 0 ? static_cast<std::size_t>(size) : kRead;
    }
    shutdown(fd, SHUT_WR);
    close(fd);
}

void round(Side& side, raw::Listener& listener) {
    Endpoint endpoint(side);
    DAT_MUST(fi_connect(endpoint.get(), listener.address(), nullptr, 0));
    raw::Socket socket = listener.accept();
    raw::read_mpa(socket);
    socket.write(encode(raw::Mpa{true, raw::kEnhanced, 2, raw::enhanced(kDepth, kDepth)}));
    wait_event(side, FI_CONNECTED);
    static const Bytes out = pattern(kMessage);
    std::thread peer(read_and_go, socket.release());
    std::vector<Op*> ops;
    Op* next = &new_op();
    while (side.events().empty()) { // posts behind the end are taken, too, and flushed
        if (fi_send(endpoint.get(), out.data(), out.size(), nullptr, 0, next) == 0) {
            ops.push_back(std::exchange(next, &new_op()));
        }
        side.pump();
    }
    peer.join();
    DAT_REQUIRE(side.events().front().ends(), "another event");
    side.events().clear();
    require_once(ops);
}

void run(const Transport& transport) {
    Side side(transport);
    raw::Listener listener(transport);
    for (int i = 0; i < kRounds; ++i) {
        round(side, listener);
    }
    // A program that blocks the signal finds what others raised, and nothing else.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    for (int i = 0; i < kRounds; ++i) {
        round(side, listener);
    }
    DAT_REQUIRE(!is_pending(), "a signal of the device is left");
    raise(SIGPIPE);
    round(side, listener);
    DAT_REQUIRE(is_pending(), "the program's own signal is gone");
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 2) {
        std::fprintf(stderr, "usage: gone_peer ADDRESS\n");
        return 2;
    }
    run(Transport{"siw", false, AF_INET, argv[1], FI_PROGRESS_MANUAL, true});
    return 0;
}
