// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Peers of the tests of the states: another process, and a socket that speaks bytes.
#include "states.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::test::states {

namespace {

// Runs `ip` or `rdma`; -1: it cannot be run.
pid_t start(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        execvp(argv[0], argv.data());
        _exit(127);
    }
    return child;
}

bool succeeds(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool runs(const std::vector<std::string>& words) { return succeeds(start(words)); }

void write_setting(const char* name, const char* value) {
    std::ofstream(std::string("/proc/sys/net/ipv4/neigh/wire/") + name) << value;
}

} // namespace

void make_own_network() {
    if (std::getenv("DAT_TRANSPORT") || unshare(CLONE_NEWNET) != 0) {
        return;
    }
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    ioctl(fd, SIOCGIFFLAGS, &request);
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
    if (runs({"ip", "link", "add", "wire", "type", "veth", "peer", "name", "end"}) &&
        runs({"ip", "addr", "add", "203.0.113.1/24", "dev", "wire"}) &&
        runs({"ip", "link", "set", "end", "up"}) && runs({"ip", "link", "set", "wire", "up"})) {
        write_setting("mcast_solicit", "1"); // who does not answer once is not there
        write_setting("retrans_time_ms", "50");
        setenv("DAT_TRANSPORT", "wire", 1);
    }
}

void switch_port(bool up) {
    if (!runs({"ip", "link", "set", place().device, up ? "up" : "down"})) {
        throw Wrong("the link cannot be switched");
    }
}

void remove_device() { start({"rdma", "link", "delete", place().adapter}); }

bool make_device_again() {
    while (wait(nullptr) > 0) { // what remove_device() started
    }
    return runs(
        {"rdma", "link", "add", place().adapter, "type", place().name, "netdev", place().device});
}

// `requester PORT` connects and says what becomes of it; `listener` says its port, and that
// a request came, which it leaves alone; `server` accepts it. They end with their parent.
namespace {

[[noreturn]] void be_peer(const std::vector<std::string>& arguments) {
    const auto say = [](const std::string& line) {
        std::puts(line.c_str());
        std::fflush(stdout);
    };
    const Adapter adapter;
    const End end(adapter);
    std::unique_ptr<LocalListener> local_listener;
    if (arguments.at(1) == "requester") {
        MUST(end.connect(std::strtoull(arguments.at(2).c_str(), nullptr, 10)));
    } else {
        local_listener = std::make_unique<LocalListener>(adapter);
        say(std::to_string(local_listener->port));
        const DAT_CR_HANDLE cr = local_listener->request();
        say("request");
        if (arguments.at(1) == "server") {
            MUST(dat_cr_accept(cr, end.ep, 0, nullptr));
        }
    }
    for (;;) { // until it is killed, or nobody reads what it says
        say(name_of(next(end.conn).event_number));
    }
}

} // namespace

bool is_peer(const std::vector<std::string>& arguments) {
    return arguments.size() > 1 && arguments[0] == "--peer";
}

int run_peer(const std::vector<std::string>& arguments) {
    try {
        be_peer(arguments);
    } catch (const std::exception& wrong) {
        std::printf("%s\n", wrong.what());
        return 1;
    }
}

Process::Process(const std::vector<std::string>& arguments) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        throw Wrong("no pipe");
    }
    std::vector<char*> argv{const_cast<char*>("states"), const_cast<char*>("--peer")};
    for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
        dup2(ends[1], STDOUT_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(127);
        }
        execv("/proc/self/exe", argv.data());
        _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
}

Process::~Process() {
    kill();
    close(output_);
}

std::string Process::line() {
    std::string text;
    for (char letter = 0;; text += letter) {
        pollfd readable{output_, POLLIN, 0};
        if (poll(&readable, 1, kSoon / 1000) != 1 || read(output_, &letter, 1) != 1) {
            throw Wrong("the other process says nothing more");
        }
        if (letter == '\n') {
            return text;
        }
    }
}

void Process::stop() {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
}

void Process::go_on() const { ::kill(pid_, SIGCONT); }

void Process::kill() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
}

namespace {

sockaddr_in here(DAT_CONN_QUAL port) {
    sockaddr_in address = address_of(place().address);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
}

} // namespace

RawPeer::~RawPeer() {
    for (const int fd : {listener_, socket_}) {
        if (fd >= 0) {
            close(fd);
        }
    }
}

DAT_CONN_QUAL RawPeer::listen() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = here(0);
    socklen_t size = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 1) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw Wrong(std::strerror(errno));
    }
    return ntohs(address.sin_port);
}

void RawPeer::take_request() {
    pollfd readable{listener_, POLLIN, 0};
    if (poll(&readable, 1, kSoon / 1000) != 1) {
        throw Wrong("nobody connects");
    }
    socket_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
}

// RFC 6581: an enhanced request, which wants to say itself that it is ready, by a write. Not to
// siw: Linux 6.1 stops for good if such a requester goes without having said so (cm_close_handler()
// of iwcm.c, whatever the responder does), so there it is connected when it is answered.
void RawPeer::request(DAT_CONN_QUAL port) {
    const unsigned char ready = place().name == std::string("siw") ? 0 : 0x80;
    const unsigned char request[] = {'M',  'P', 'A', ' ', 'I',   'D', ' ',   'R',
                                     'e',  'q', ' ', 'F', 'r',   'a', 'm',   'e',
                                     0x10, 2,   0,   4,   ready, 16,  ready, 16};
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = here(port);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        write(socket_, request, sizeof request) != sizeof request) {
        throw Wrong(std::strerror(errno));
    }
}

void RawPeer::leave() {
    close(socket_);
    socket_ = -1;
}

void RawPeer::reset() {
    const linger at_once{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    leave();
}

void RawPeer::talk_nonsense() const {
    const std::string nonsense(256, '#');
    if (::send(socket_, nonsense.data(), nonsense.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET) {
        throw Wrong(std::strerror(errno));
    }
}

} // namespace dat::test::states
