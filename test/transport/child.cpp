// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See child.h.
#include "child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace dat::test {

namespace {

// It is built next to the tests.
std::string program() {
    if (const char* given = std::getenv("DAT_TEST_PEER"))
        return given;
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "peer";
}

} // namespace

Child::Child(const Transport& transport) : transport_(transport.other()) {
    int ends[2];
    DAT_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    const std::string path = program();
    pid_ = fork();
    DAT_REQUIRE(pid_ >= 0, "fork");
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        setenv("FI_DAT_TRANSPORT", transport_.device ? "verbs" : "soft", 1);
        execl(path.c_str(), path.c_str(), transport_.address, nullptr);
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

Remote Child::region(std::size_t size) {
    std::istringstream answer(ask("region " + std::to_string(size)));
    std::string ok;
    Remote remote{};
    answer >> ok >> remote.address >> remote.key;
    DAT_REQUIRE(ok == "ok" && answer, answer.str());
    return remote;
}

void Child::signal(int number) const {
    DAT_MUST(::kill(pid_, number));
    if (number == SIGSTOP) // which it obeys a little later
        DAT_REQUIRE(waitpid(pid_, nullptr, WUNTRACED) == pid_, "waitpid");
}

void Child::kill() {
    if (pid_ <= 0)
        return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
    close(socket_);
}

ToChild::ToChild(const Transport& transport)
    : side(transport), child(transport), address(child.listen()), endpoint(side) {}

void ToChild::connect() {
    request();
    child.expect("accept 0", "ok");
    wait_event(side, FI_CONNECTED);
    child.expect("event", "connected 0");
}

void ToChild::request() {
    DAT_MUST(endpoint.connect(address));
    child.expect("event", "connreq 0");
}

FromChild::FromChild(const Transport& transport) : side(transport), child(transport) {
    side.listen();
    child.expect("connect " + std::string(transport.address) + ' ' + std::to_string(side.port()) +
                     " 0",
                 "ok");
    request.emplace(wait_event(side, FI_CONNREQ));
    endpoint.emplace(side, *request);
}

std::vector<Op*> post_receives(Endpoint& endpoint, std::vector<Bytes>& buffers) {
    std::vector<Op*> ops;
    for (Bytes& buffer : buffers)
        ops.push_back(&endpoint.recv(buffer.data(), buffer.size()));
    return ops;
}

void require_one_end(Side& side, const Endpoint& endpoint) {
    wait_shutdown(endpoint);
    const fi_dat_ep_status status = endpoint.status();
    DAT_REQUIRE(status.state == FI_DAT_DISCONNECTED, std::to_string(status.state));
    DAT_REQUIRE(status.end == FI_DAT_END_DISCONNECTED || status.end == FI_DAT_END_BROKEN,
                std::to_string(status.end));
    settle();
    DAT_REQUIRE(side.events().empty(), "another event");
}

} // namespace dat::test
