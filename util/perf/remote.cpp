// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See remote.h.
#include "remote.h"

#include "config.h"

#include "fabric_info.h"
#include "foreign.h"
#include "net.h"
#include "run_case.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <random>
#include <rdma/fabric.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::perf {
namespace {

constexpr int kFormat = 1; // of what is said
constexpr int kAnswer_s = 10;
constexpr int kConnect_s = 5;
constexpr int kIdle_s = 24 * 3600; // between two questions of a client: it may be measuring others
constexpr std::size_t kToken = 16;
constexpr std::size_t kMostLinks = 1024;

std::string libfabric_version() {
    const std::uint32_t version = fi_version();
    return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

// What results are as bytes.
std::string shape() {
    return std::string(std::endian::native == std::endian::little ? "little" : "big") + "/" +
           std::to_string(sizeof(Result));
}

struct Hello {
    std::string version;
    std::string libfabric;
    std::string shape;
};

std::string hello() {
    return "dat_perf " + std::to_string(kFormat) + " " PACKAGE_VERSION " " + libfabric_version() +
           " " + shape();
}

bool parse(const std::string& text, Hello& hello) {
    std::istringstream words(text);
    std::string name;
    int format = 0;
    words >> name >> format >> hello.version >> hello.libfabric >> hello.shape;
    return name == "dat_perf" && format == kFormat && !words.fail();
}

// The rest behind a word and a blank or the end of a line; false: it is another word.
bool begins(const std::string& text, const std::string& word, std::string& rest) {
    if (text.rfind(word, 0) != 0 ||
        (text.size() > word.size() && text[word.size()] != ' ' && text[word.size()] != '\n')) {
        return false;
    }
    rest = text.size() > word.size() ? text.substr(word.size() + 1) : std::string();
    return true;
}

template <class Number> Number number_of(const std::string& text, Number least, Number most) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end || !(value >= least && value <= most)) {
        fail("a case with '%.40s' in it", text.c_str());
    }
    return value;
}

// Variables that only choose among what a provider does: not what files are loaded.
bool may_be_set(const std::string& variable) {
    const bool of_providers = variable.rfind("FI_", 0) == 0 && variable != "FI_PROVIDER_PATH" &&
                              variable.find("PATH") == std::string::npos &&
                              variable.find("FILE") == std::string::npos &&
                              variable.find("TRACE") == std::string::npos;
    return of_providers || variable == "UCX_TLS" || variable == "UCX_NET_DEVICES" ||
           variable == "UCX_RNDV_THRESH" || variable == "UCX_PROTO_ENABLE";
}

// The buffers of the servers of a case, which are here, are no more than half of the memory.
void require_memory(const Case& what) {
    const std::size_t sides = what.pattern == Pattern::incast ? 1 : link_count(what);
    const std::size_t each = 2 * (what.size + (what.pattern == Pattern::loaded ? kBulkSize : 0));
    const auto pages = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES));
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (sides * each > pages / 2 * page) {
        fail("%zu servers with messages of %zu bytes take more than half of the memory here", sides,
             what.size);
    }
}

// What the other host says, for a terminal: a line, or lines with tabs.
std::string printable(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return (c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f; }, '?');
    return text;
}

} // namespace

std::string text_of(const Case& what) {
    std::ostringstream text;
    text << "label " << what.way.label << "\nkind " << static_cast<int>(what.way.kind)
         << "\nprovider " << what.way.provider << "\nendpoint "
         << static_cast<int>(what.way.endpoint) << "\npattern " << static_cast<int>(what.pattern)
         << "\nsize " << what.size << "\noperations " << what.amount.operations << "\nmicroseconds "
         << static_cast<std::uint64_t>(what.amount.seconds * 1e6) << "\nwaits " << what.waits
         << "\nconnections " << what.connections << "\npairs " << what.pairs << "\nthreads "
         << what.threads << "\nsenders " << what.senders << "\n";
    for (const auto& [variable, value] : what.way.environment) {
        text << "set " << variable << "=" << value << "\n";
    }
    return text.str();
}

Case case_of(const std::string& text) {
    Case what;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t space = std::min(line.find(' '), line.size());
        const std::string word = line.substr(0, space);
        const std::string value = line.substr(std::min(space + 1, line.size()));
        const auto count = [&](std::size_t most) { return number_of<std::size_t>(value, 1, most); };
        if (word == "label") {
            what.way.label = value;
        } else if (word == "kind") {
            what.way.kind = static_cast<Kind>(number_of(value, 0, static_cast<int>(Kind::mpi)));
            if (what.way.kind == Kind::memory || what.way.kind == Kind::mpi) {
                fail("a case of what is on one host alone");
            }
        } else if (word == "provider") {
            what.way.provider = value;
        } else if (word == "endpoint") {
            what.way.endpoint =
                static_cast<Endpoint>(number_of(value, 0, static_cast<int>(Endpoint::rdm)));
        } else if (word == "pattern") {
            what.pattern =
                static_cast<Pattern>(number_of(value, 0, static_cast<int>(Pattern::connect)));
        } else if (word == "size") {
            what.size = count(std::size_t{1} << 30);
        } else if (word == "operations") {
            what.amount.operations = number_of<std::uint64_t>(value, 0, 1'000'000'000);
        } else if (word == "microseconds") {
            what.amount.seconds =
                static_cast<double>(number_of<std::uint64_t>(value, 0, 600'000'000)) / 1e6;
        } else if (word == "waits") {
            what.waits = number_of(value, 0, 1) == 1;
        } else if (word == "connections") {
            what.connections = count(100'000);
        } else if (word == "pairs") {
            what.pairs = count(kMostLinks);
        } else if (word == "threads") {
            what.threads = count(kMostLinks);
        } else if (word == "senders") {
            what.senders = count(kMostLinks);
        } else if (word == "set") {
            const std::size_t equals = value.find('=');
            if (equals == std::string::npos || !may_be_set(value.substr(0, equals))) {
                fail("%.40s cannot be set from another host", value.substr(0, equals).c_str());
            }
            what.way.environment.emplace_back(value.substr(0, equals), value.substr(equals + 1));
        } else {
            fail("a case with '%.40s' in it", word.c_str());
        }
    }
    if (link_count(what) > kMostLinks) {
        fail("%zu pairs and threads are too many: up to %zu", link_count(what), kMostLinks);
    }
    return what;
}

// --- here -------------------------------------------------------------------

Remote::Remote(const std::string& text)
    : name_(host_and_port(text, kDefaultPort).first),
      port_(host_and_port(text, kDefaultPort).second),
      peer_(
          [&] {
              try {
                  return connect_to(name_, port_, kConnect_s);
              } catch (const Failure& why) {
                  fail("%s (is `dat_perf serve` running there?)", why.what());
              }
          }(),
          Role::client),
      own_address_(own_host(peer_.fd())) {
    std::string answer;
    try {
        answer = ask(hello(), kAnswer_s);
    } catch (const Failure& why) {
        fail("what answers on port %s of %s is no dat_perf (%s)", port_.c_str(), name_.c_str(),
             why.what());
    }
    std::string by;
    if (begins(answer, "busy", by)) {
        fail("%s is busy: it measures with %s", name_.c_str(), by.c_str());
    }
    Hello there;
    if (!parse(answer, there)) {
        fail("what answers on port %s of %s is no dat_perf of this version: '%.60s'", port_.c_str(),
             name_.c_str(), answer.c_str());
    }
    if (there.version != PACKAGE_VERSION || there.shape != shape()) {
        fail("%s has dat_perf %s (%s), this is " PACKAGE_VERSION " (%s): they have to be the same",
             name_.c_str(), there.version.c_str(), there.shape.c_str(), shape().c_str());
    }
    other_libfabric_ = there.libfabric == libfabric_version() ? "" : there.libfabric;
}

std::string Remote::ask(const std::string& question, int patience_s) {
    peer_.tell(question);
    return printable(peer_.hear_within(patience_s));
}

Facts Remote::machine() {
    Facts facts;
    std::istringstream lines(ask("facts", kAnswer_s));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t tab = line.find('\t');
        if (tab != std::string::npos) {
            facts.emplace_back(line.substr(0, tab), line.substr(tab + 1));
        }
    }
    return facts;
}

std::string Remote::reason_against(const Way& way, std::string& version) {
    Case what;
    what.way = way;
    what.size = 1;
    const std::string answer = ask("check\n" + text_of(what), kPatience_s + kAnswer_s);
    return begins(answer, "ok", version) ? std::string() : answer;
}

std::vector<Fd> Remote::begin(const Case& what) {
    const std::string answer = ask("case\n" + text_of(what), kAnswer_s);
    std::string rest;
    if (!begins(answer, "port", rest)) {
        fail("%s: %s", name_.c_str(), answer.c_str());
    }
    const std::string port = rest.substr(0, rest.find(' '));
    const std::string token = rest.substr(rest.find(' ') + 1);
    links_ = link_count(what);
    std::vector<Fd> links;
    for (std::size_t i = 0; i < links_; ++i) {
        links.emplace_back(connect_to(name_, port, kConnect_s));
        if (::send(links.back().get(), token.data(), token.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(token.size())) {
            fail("%s, port %s: %s", name_.c_str(), port.c_str(), std::strerror(errno));
        }
    }
    return links;
}

Outcome Remote::end(int limit_s) {
    Outcome outcome;
    try {
        std::string rest;
        if (!begins(peer_.hear_within(limit_s + kAnswer_s), "ended", rest)) {
            fail("it says something else than expected");
        }
        std::istringstream words(rest);
        int ending = 0;
        words >> ending >> outcome.weight;
        std::getline(words >> std::ws, outcome.why);
        outcome.why = printable(outcome.why);
        outcome.ending = static_cast<Ending>(std::clamp(ending, 0, 2));
        for (auto count = number_of<std::size_t>(peer_.hear(), 0, links_); count > 0; --count) {
            outcome.said.push_back(peer_.hear());
        }
        outcome.why = outcome.ending == Ending::failed ? name_ + ": " + outcome.why : outcome.why;
    } catch (const std::exception& why) {
        outcome.ending = Ending::failed;
        outcome.why = name_ + ": " + why.what();
        outcome.weight = 2;
    }
    return outcome;
}

// --- there ------------------------------------------------------------------

namespace {

std::string random_token() {
    constexpr char kDigits[] = "0123456789abcdef";
    std::random_device device;
    std::string token;
    for (std::size_t i = 0; i < kToken; ++i) {
        token += kDigits[device() % 16];
    }
    return token;
}

// Comes with the token, in time: one that has not been told of it is let go.
bool has_token(int fd, const std::string& token, Clock::time_point until) {
    std::string said;
    while (said.size() < token.size()) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd waiting{fd, POLLIN, 0};
        char byte[kToken];
        if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) != 1) {
            return false;
        }
        // No more than the token: what is behind it is for the server.
        const ssize_t n = ::recv(fd, byte, token.size() - said.size(), MSG_DONTWAIT);
        if (n <= 0) {
            return false;
        }
        said.append(byte, static_cast<std::size_t>(n));
    }
    return said == token;
}

// A client that ends meanwhile, or says something else, has changed its mind.
std::vector<Fd> accept_links(int listener, std::size_t count, const std::string& token,
                             int client) {
    const auto until = Clock::now() + std::chrono::seconds(kAnswer_s);
    std::vector<Fd> links;
    while (links.size() < count) {
        pollfd waiting[] = {{listener, POLLIN, 0}, {client, POLLIN, 0}};
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0 || ::poll(waiting, 2, static_cast<int>(left)) < 1 ||
            waiting[1].revents != 0) {
            fail("the clients' connections do not come");
        }
        Fd link(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (link.open() && has_token(link.get(), token, until)) {
            const int on = 1;
            ::setsockopt(link.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            links.push_back(std::move(link));
        }
    }
    return links;
}

void tell_outcome(Peer& client, const Outcome& outcome) {
    client.tell("ended " + std::to_string(static_cast<int>(outcome.ending)) + " " +
                std::to_string(outcome.weight) + " " + outcome.why);
    client.tell(std::to_string(outcome.said.size()));
    for (const std::string& said : outcome.said) {
        client.tell(said);
    }
}

void serve_case(Peer& client, const std::string& text, const std::string& address) {
    Case what;
    std::vector<Fd> links;
    try {
        what = case_of(text);
        what.address = address;
        require_memory(what);
        Fd listener(listen_on(own_host(client.fd()), "0"));
        const std::string token = random_token();
        client.tell("port " + std::to_string(own_port(listener.get())) + " " + token);
        links = accept_links(listener.get(), link_count(what), token, client.fd());
    } catch (const OtherGone&) {
        throw;
    } catch (const Failure& why) {
        client.tell(why.what());
        return;
    }
    tell_outcome(client, run_servers(what, std::move(links)));
}

std::string check_way(const std::string& text, const std::string& address) {
    Case what;
    try {
        what = case_of(text);
    } catch (const Failure& why) {
        return why.what();
    }
    const Outcome outcome = run_alone(
        [&] {
            if (what.way.kind == Kind::fabric) {
                set_environment(what.way);
                return provider_version(what.way, address);
            }
            return require_foreign(what.way, true);
        },
        kPatience_s);
    return outcome.ending == Ending::right ? "ok " + outcome.client : outcome.why;
}

std::string facts_text() {
    std::string text;
    for (const auto& [name, value] : machine()) {
        text.append(name).append("\t").append(value).append("\n");
    }
    return text;
}

void session(Peer& client, const std::string& asked_address) {
    Hello who;
    if (!parse(client.hear_within(kAnswer_s), who)) {
        return;
    }
    client.tell(hello());
    const std::string address = asked_address.empty() ? own_host(client.fd()) : asked_address;
    for (;;) {
        const std::string question = client.hear_within(kIdle_s);
        std::string rest;
        if (begins(question, "facts", rest)) {
            client.tell(facts_text());
        } else if (begins(question, "check", rest)) {
            client.tell(check_way(rest, address));
        } else if (begins(question, "case", rest)) {
            serve_case(client, rest, address);
        } else {
            return;
        }
    }
}

// One client's, in a process that ends with this one.
pid_t begin_session(Fd& client, const std::string& address) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child != 0) {
        return child;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        std::_Exit(1);
    }
    const int on = 1;
    const int idle_s = 20;
    ::setsockopt(client.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
    ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    try {
        Peer peer(client.release(), Role::server);
        session(peer, address);
    } catch (const std::exception&) {
        // The client has gone.
    }
    std::_Exit(0);
}

// A session whose client has gone ends at once; one that measures does not.
bool is_over(pid_t session) {
    constexpr int kMoment_ms = 1000;
    const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, session, 0));
    if (pidfd >= 0) {
        pollfd waiting{pidfd, POLLIN, 0};
        ::poll(&waiting, 1, kMoment_ms);
        ::close(pidfd);
    }
    return ::waitpid(session, nullptr, WNOHANG) != 0;
}

} // namespace

void serve(const std::string& port, const std::string& address) {
    const Fd listener(listen_on("", port));
    std::printf("dat_perf %s, libfabric %s: listening on port %u\n", PACKAGE_VERSION,
                libfabric_version().c_str(), own_port(listener.get()));
    std::fflush(stdout);
    pid_t child = -1;
    std::string whom;
    for (;;) {
        Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client.open()) {
            continue;
        }
        if (child > 0 && !is_over(child)) {
            try {
                Peer(client.release(), Role::server).tell("busy " + whom);
            } catch (const std::exception&) {
                // It has gone already.
            }
            continue;
        }
        try {
            whom = peer_host(client.get());
        } catch (const std::exception&) {
            continue;
        }
        child = begin_session(client, address);
    }
}

} // namespace dat::perf
