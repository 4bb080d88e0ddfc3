// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See child.h. May include: the fixture, POSIX.
#include "child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace dat::test {

namespace {

// It is built next to the tests.
std::string program() {
    if (const char* given = std::getenv("DAT_TEST_PEER"))
        return given;
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "peer";
}

} // namespace

Child::Child(const Transport& transport) : transport_(transport) {
    int ends[2];
    DAT_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    const std::string path = program();
    pid_ = fork();
    DAT_REQUIRE(pid_ >= 0, "fork");
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execl(path.c_str(), path.c_str(), transport.address, nullptr);
        _exit(127);
    }
    close(ends[1]);
    socket_ = ends[0];
    fcntl(socket_, F_SETFL, O_NONBLOCK);
}

void Child::tell(const std::string& line) {
    const std::string text = line + "\n";
    const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    DAT_REQUIRE(sent == static_cast<ssize_t>(text.size()), "the peer takes no commands: " + line);
}

std::string Child::answer() {
    bool ended = false;
    const bool whole = wait_until([&] {
        char room[4096];
        const ssize_t got = ::recv(socket_, room, sizeof room, 0);
        if (got > 0)
            input_.append(room, static_cast<std::size_t>(got));
        ended = got == 0;
        return ended || input_.find('\n') != std::string::npos;
    });
    DAT_REQUIRE(whole && !ended, "the peer does not answer");
    const std::size_t end = input_.find('\n');
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    return line;
}

void Child::expect(const std::string& line, const std::string& expected) {
    const std::string got = ask(line);
    DAT_REQUIRE(got == expected,
                "asked \"" + line + "\", expected \"" + expected + "\", got \"" + got + "\"");
}

Bytes Child::listen() {
    const std::string got = ask("listen");
    DAT_REQUIRE(got.rfind("ok ", 0) == 0, got);
    const auto port = static_cast<std::uint16_t>(std::stoul(got.substr(3)));
    return socket_address(transport_.address, port);
}

void Child::signal(int number) const { DAT_MUST(::kill(pid_, number)); }

void Child::kill() {
    if (pid_ <= 0)
        return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
    close(socket_);
}

} // namespace dat::test
