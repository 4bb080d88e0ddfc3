// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See scene.h.
#include "scene.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace dat::test {
namespace {

const Place* chosen = nullptr;

} // namespace

void need(bool ok, const std::string& what) {
    if (!ok) {
        std::fprintf(stderr, "%s\n", what.c_str());
        std::fflush(nullptr);
        std::abort();
    }
}

void need_zero(int result, const char* call) {
    need(result == 0,
         std::string(call) + ": " + std::to_string(result) + ", " + rpma_err_2str(result));
}

void use_place(const char* name) {
    chosen = &take_place(name);
    // A test that provokes an error says so; what is logged of it helps nobody.
    if (!std::getenv("DAT_RPMA_LOG")) {
        NEED(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
        NEED(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
    }
}

const Place& place() {
    if (!chosen) {
        use_place(wanted_place());
    }
    return *chosen;
}

// ---- a peer and its memory -----------------------------------------------

Peer::Peer() {
    NEED(rpma_utils_get_ibv_context(place().address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    NEED(rpma_peer_new(context, &it));
}

Peer::~Peer() { NEED(rpma_peer_delete(&it)); }

Region::Region(const Peer& peer, std::size_t bytes_, int usage) : size(bytes_), own(true) {
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED, "mmap");
    bytes = static_cast<char*>(memory);
    NEED(rpma_mr_reg(peer, bytes, size, usage, &mr));
    const std::vector<char> text = descriptor();
    NEED(rpma_mr_remote_from_descriptor(text.data(), text.size(), &remote));
}

Region::Region(const Peer& peer, void* memory, std::size_t bytes_, int usage)
    : bytes(static_cast<char*>(memory)), size(bytes_) {
    NEED(rpma_mr_reg(peer, bytes, size, usage, &mr));
    const std::vector<char> text = descriptor();
    NEED(rpma_mr_remote_from_descriptor(text.data(), text.size(), &remote));
}

Region::~Region() {
    rpma_mr_remote_delete(&remote);
    NEED(rpma_mr_dereg(&mr));
    if (own) {
        munmap(bytes, size);
    }
}

std::vector<char> Region::descriptor() const {
    std::size_t length = 0;
    NEED(rpma_mr_get_descriptor_size(mr, &length));
    std::vector<char> text(length);
    NEED(rpma_mr_get_descriptor(mr, text.data()));
    return text;
}

SharedReceives::SharedReceives(const Peer& peer, std::uint32_t rq_size, std::uint32_t rcq_size) {
    rpma_srq_cfg* config = nullptr;
    NEED(rpma_srq_cfg_new(&config));
    NEED(rpma_srq_cfg_set_rq_size(config, rq_size));
    NEED(rpma_srq_cfg_set_rcq_size(config, rcq_size));
    NEED(rpma_srq_new(peer, config, &it));
    NEED(rpma_srq_cfg_delete(&config));
}

SharedReceives::~SharedReceives() { NEED(rpma_srq_delete(&it)); }

rpma_cq* SharedReceives::rcq() const {
    rpma_cq* cq = nullptr;
    NEED(rpma_srq_get_rcq(it, &cq));
    return cq;
}

// ---- connections ---------------------------------------------------------

std::string free_port() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    need(inet_pton(AF_INET, place().address, &name.sin_addr) == 1, "inet_pton");
    socklen_t length = sizeof(name);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(socket >= 0 && bind(socket, reinterpret_cast<sockaddr*>(&name), length) == 0 &&
             getsockname(socket, reinterpret_cast<sockaddr*>(&name), &length) == 0,
         "no free port");
    close(socket);
    return std::to_string(ntohs(name.sin_port));
}

// Another process may take the port before it is listened at.
Listener::Listener(const Peer& peer) {
    int result = -1;
    for (int tries = 0; tries < 50 && result != 0; ++tries) {
        port = free_port();
        result = rpma_ep_listen(peer, place().address, port.c_str(), &it);
    }
    need_zero(result, "rpma_ep_listen");
}

int Listener::fd() const {
    int fd = -1;
    NEED(rpma_ep_get_fd(it, &fd));
    return fd;
}

rpma_conn_req* Listener::request(const rpma_conn_cfg* config) const {
    need(readable(fd(), kSoon), "no request for a connection came");
    rpma_conn_req* request = nullptr;
    NEED(rpma_ep_next_conn_req(it, config, &request));
    return request;
}

rpma_cq* Conn::cq() const {
    rpma_cq* cq = nullptr;
    NEED(rpma_conn_get_cq(it, &cq));
    return cq;
}

rpma_cq* Conn::rcq() const {
    rpma_cq* cq = nullptr;
    NEED(rpma_conn_get_rcq(it, &cq));
    return cq;
}

int Conn::event_fd() const {
    int fd = -1;
    NEED(rpma_conn_get_event_fd(it, &fd));
    return fd;
}

std::uint32_t Conn::qp_num() const {
    std::uint32_t number = 0;
    NEED(rpma_conn_get_qp_num(it, &number));
    return number;
}

rpma_conn_event Conn::next() const {
    need(readable(event_fd(), kSoon), "no event came");
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    NEED(rpma_conn_next_event(it, &event));
    return event;
}

bool Conn::quiet() const { return !readable(event_fd(), kBriefly); }

bool readable(int fd, int timeout_ms) {
    pollfd entry{fd, POLLIN, 0};
    int result = -1;
    do {
        result = poll(&entry, 1, timeout_ms);
    } while (result < 0 && errno == EINTR);
    return result == 1 && (entry.revents & POLLIN);
}

void set_nonblocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    need(flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0, "fcntl");
}

int fd_of(const rpma_cq* cq) {
    int fd = -1;
    NEED(rpma_cq_get_fd(cq, &fd));
    return fd;
}

rpma_conn_req* request_to(const Peer& peer, const std::string& port, const rpma_conn_cfg* config) {
    rpma_conn_req* request = nullptr;
    NEED(rpma_conn_req_new(peer, place().address, port.c_str(), config, &request));
    return request;
}

namespace {

void connect(Conn& conn, rpma_conn_req* request, std::string_view data) {
    std::string copy(data);
    rpma_conn_private_data private_data{copy.data(), static_cast<std::uint8_t>(copy.size())};
    NEED(rpma_conn_req_connect(&request, data.empty() ? nullptr : &private_data, &conn.it));
}

} // namespace

void ask(Conn& conn, const Peer& peer, const std::string& port, const rpma_conn_cfg* config,
         std::string_view data) {
    connect(conn, request_to(peer, port, config), data);
}

void answer(Conn& conn, rpma_conn_req* request, std::string_view data) {
    connect(conn, request, data);
}

void expect_event(const Conn& conn, rpma_conn_event wanted) {
    const rpma_conn_event event = conn.next();
    need(event == wanted, std::string("the event is ") + rpma_utils_conn_event_2str(event) +
                              ", not " + rpma_utils_conn_event_2str(wanted));
}

void expect_last_event(const Conn& conn, rpma_conn_event wanted) {
    expect_event(conn, wanted);
    need(conn.quiet(), "another event came behind the last one");
}

void establish(Conn& a, Conn& b, const Peer& peer, const Listener& listener,
               const rpma_conn_cfg* of_a, const rpma_conn_cfg* of_b) {
    ask(a, peer, listener.port, of_a);
    answer(b, listener.request(of_b));
    expect_event(a, RPMA_CONN_ESTABLISHED);
    expect_event(b, RPMA_CONN_ESTABLISHED);
}

ibv_wc next_of(rpma_cq* cq) {
    ibv_wc wc;
    std::memset(&wc, 0xAB, sizeof(wc));
    for (;;) {
        const int result = rpma_cq_get_wc(cq, 1, &wc, nullptr);
        if (result == 0) {
            return wc;
        }
        need(result == RPMA_E_NO_COMPLETION,
             std::string("rpma_cq_get_wc: ") + rpma_err_2str(result));
        need(readable(fd_of(cq), kSoon), "no completion came");
        NEED(rpma_cq_wait(cq));
    }
}

bool is_empty(rpma_cq* cq) {
    ibv_wc wc;
    return rpma_cq_get_wc(cq, 1, &wc, nullptr) == RPMA_E_NO_COMPLETION;
}

Pair::Pair(const rpma_conn_cfg* of_a, const rpma_conn_cfg* of_b, std::size_t size)
    : mine(peer, size), theirs(peer, size) {
    establish(a, b, peer, listener, of_a, of_b);
}

// Connections go before the memory and the peer; the order of members does that.
Pair::~Pair() = default;

// ---- a process of its own ------------------------------------------------

Child::Child(void (*run)(int)) {
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        close(ends[0]);
        run(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    socket = ends[0];
}

void Child::kill_now() {
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid = -1;
    }
}

Child::~Child() {
    close(socket); // a child that waits for a word ends by that
    kill_now();
}

void tell(int socket, const std::string& what) {
    need(send(socket, what.data(), what.size(), MSG_NOSIGNAL) >= 0, "the other process is gone");
}

std::string hear(int socket) {
    char text[4096];
    need(readable(socket, kSoon), "the other process says nothing");
    const ssize_t length = recv(socket, text, sizeof(text), 0);
    need(length > 0, "the other process ended");
    return {text, static_cast<std::size_t>(length)};
}

} // namespace dat::test
