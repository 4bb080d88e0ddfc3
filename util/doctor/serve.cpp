// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See serve.h.
#include "doctor/serve.h"

#include "command/text.h"
#include "doctor/beside.h"
#include "doctor/exchange.h"
#include "doctor/facts.h"
#include "doctor/greeting.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::doctor {
namespace {

constexpr unsigned kSessionLimit_s = 120; // of one client
constexpr std::size_t kMostSessions = 8;  // at a time; others wait to be accepted
constexpr std::size_t kMostLines = 50;    // of a log that are told

net::Socket listen_on(const std::string& text) {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, port).ptr != end || text.empty()) {
        throw std::runtime_error("\"" + text + "\" is no port: it has to be 0 to 65535");
    }
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    int error = 0;
    for (const net::SocketAddress& address :
         {net::SocketAddress(reinterpret_cast<sockaddr*>(&v6), sizeof v6),
          net::SocketAddress(reinterpret_cast<sockaddr*>(&v4), sizeof v4)}) {
        net::Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int off = 0;
        const int on = 1;
        if (!socket) { // a kernel without IPv6
            error = errno;
            continue;
        }
        ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (address.family() == AF_INET6) {
            ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        }
        if (::bind(socket.fd(), address.get(), address.size()) == 0 &&
            ::listen(socket.fd(), 16) == 0) {
            return socket;
        }
        error = errno;
    }
    throw std::runtime_error("port " + text + ": " + std::strerror(error));
}

// Says which datagrams come, until it is told to stop.
void tell_arrivals(const Beside& beside, const Datagrams& datagrams) {
    const std::string stop = beside.hear([&] {
        pollfd waiting{datagrams.fd(), POLLIN, 0};
        ::poll(&waiting, 1, 20);
        if (const std::size_t size = datagrams.receive()) {
            beside.tell("got " + std::to_string(size));
        }
    });
    beside.tell(stop == "stop" ? "stopped" : "what?");
}

void send_back(const Beside& beside, const Datagrams& datagrams, std::istringstream& words) {
    std::size_t size = 0;
    std::uint16_t port = 0;
    words >> size >> port;
    beside.tell("sent " + std::to_string(words.fail() || size > 9000 + 576
                                             ? EINVAL
                                             : datagrams.send(port, size)));
}

void exchange(const Beside& beside, const std::string& address,
              void (*run)(const Beside&, const std::string&, const Report&)) {
    const Outcome tried = in_child(30s, [&](const Report& report) {
        log_everything();
        run(beside, address, report);
    });
    for (std::size_t i = 0; i < std::min(tried.log.size(), kMostLines); ++i) {
        beside.tell("log " + tried.log[i].substr(0, kLongestLine));
    }
    beside.tell("end " + tried.trouble.substr(0, kLongestLine));
}

void session(const net::Socket& socket, Greeting greeting) {
    const Beside beside(socket.fd(), Role::server);
    const Datagrams datagrams(socket);
    if (beside.hear() != kHello) {
        return;
    }
    greeting.datagrams = datagrams.port();
    beside.tell(line_of(greeting));
    const std::string address = host_text(unmapped(socket.local()));
    for (;;) {
        std::istringstream words(beside.hear());
        std::string word;
        words >> word;
        if (word == "there") {
            tell_arrivals(beside, datagrams);
        } else if (word == "back") {
            send_back(beside, datagrams, words);
        } else if (word == "few") {
            exchange(beside, address, exchange_few);
        } else if (word == "many") {
            exchange(beside, address, exchange_many);
        } else {
            return;
        }
    }
}

// One client's, in a process that ends with this one, and in time.
void begin_session(const net::Socket& socket, const Greeting& greeting) {
    const pid_t parent = getpid();
    if (fork() != 0) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    alarm(kSessionLimit_s);
    try {
        session(socket, greeting);
    } catch (const std::exception&) {
        // The client has gone.
    }
    _exit(0);
}

} // namespace

void serve(const std::string& port) {
    const net::Socket listener = listen_on(port);
    Facts facts({});
    const Greeting greeting = own_greeting(facts);
    command::print("dat_doctor " + greeting.version + ", libfabric " + greeting.libfabric +
                   ", provider " + greeting.provider + ": listening on port " +
                   std::to_string(listener.local().port()) + "\n");
    std::size_t sessions = 0;
    for (;;) {
        while (sessions > 0 && waitpid(-1, nullptr, sessions < kMostSessions ? WNOHANG : 0) > 0) {
            --sessions;
        }
        const net::Socket client(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
        if (client) {
            begin_session(client, greeting);
            ++sessions;
        }
    }
}

} // namespace dat::doctor
