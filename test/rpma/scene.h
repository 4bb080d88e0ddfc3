// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Peers, memory and connections for the tests of librpma, by the calls of librpma.h alone. What
// goes wrong in building a scene ends the process with a message.
#ifndef DAT_TEST_RPMA_SCENE_H
#define DAT_TEST_RPMA_SCENE_H

#include "place.h"

#include <librpma.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dat::test {

inline constexpr int kSoon = 60'000;  // ms; nothing here takes that long
inline constexpr int kBriefly = 30;   // ms, for what must not come
inline constexpr int kAllUsage = 223; // every bit of RPMA_MR_USAGE_* but FLUSH_TYPE_PERSISTENT

// Ends the process where `ok` is false.
void need(bool ok, const std::string& what);
// The same for a call that is to return 0.
#define NEED(call) ::dat::test::need_zero((call), #call)
void need_zero(int result, const char* call);

// The place that this process uses.
const Place& place();
void use_place(const char* name);

// A context and a peer. Deleted with it, which is to succeed.
struct Peer {
    Peer();
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    operator rpma_peer*() const { return it; }

    ibv_context* context = nullptr;
    rpma_peer* it = nullptr;
};

// Memory with whole pages of its own, registered, and a remote handle of it.
struct Region {
    explicit Region(const Peer& peer, std::size_t size = 4096, int usage = kAllUsage);
    // Of memory that is there.
    Region(const Peer& peer, void* memory, std::size_t size, int usage);
    ~Region();
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    std::vector<char> descriptor() const;

    char* bytes = nullptr;
    std::size_t size = 0;
    bool own = false;
    rpma_mr_local* mr = nullptr;
    rpma_mr_remote* remote = nullptr;
};

// A configuration of connections, built by what is called on it.
struct Config {
    Config() { NEED(rpma_conn_cfg_new(&it)); }
    ~Config() { rpma_conn_cfg_delete(&it); }
    Config(const Config&) = delete;
    Config& operator=(const Config&) = delete;
    operator rpma_conn_cfg*() const { return it; }

    rpma_conn_cfg* it = nullptr;
};

struct SharedReceives {
    explicit SharedReceives(const Peer& peer, std::uint32_t rq_size = 20,
                            std::uint32_t rcq_size = 20);
    ~SharedReceives();
    SharedReceives(const SharedReceives&) = delete;
    SharedReceives& operator=(const SharedReceives&) = delete;
    rpma_cq* rcq() const;

    rpma_srq* it = nullptr;
};

// A port where nobody listens at the moment.
std::string free_port();

struct Listener {
    explicit Listener(const Peer& peer);
    ~Listener() { rpma_ep_shutdown(&it); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    int fd() const;
    // The next request, for which it waits.
    rpma_conn_req* request(const rpma_conn_cfg* config = nullptr) const;

    rpma_ep* it = nullptr;
    std::string port;
};

// A connection; deleted with it.
struct Conn {
    Conn() = default;
    ~Conn() { rpma_conn_delete(&it); }
    Conn(const Conn&) = delete;
    Conn& operator=(const Conn&) = delete;
    operator rpma_conn*() const { return it; }

    rpma_cq* cq() const;
    rpma_cq* rcq() const; // nullptr: receives complete in cq()
    int event_fd() const;
    std::uint32_t qp_num() const;
    // The next event, for which it waits.
    rpma_conn_event next() const;
    // No event comes for a short time.
    bool quiet() const;

    rpma_conn* it = nullptr;
};

// The descriptor gets readable within that time.
bool readable(int fd, int timeout_ms);
void set_nonblocking(int fd);
int fd_of(const rpma_cq* cq);

rpma_conn_req* request_to(const Peer& peer, const std::string& port,
                          const rpma_conn_cfg* config = nullptr);
// Asks for a connection, with that private data.
void ask(Conn& conn, const Peer& peer, const std::string& port,
         const rpma_conn_cfg* config = nullptr, std::string_view data = {});
// Accepts.
void answer(Conn& conn, rpma_conn_req* request, std::string_view data = {});
void expect_event(const Conn& conn, rpma_conn_event wanted);
// And no other behind it.
void expect_last_event(const Conn& conn, rpma_conn_event wanted);
// `a` asks, `b` answers, and both are connected.
void establish(Conn& a, Conn& b, const Peer& peer, const Listener& listener,
               const rpma_conn_cfg* of_a = nullptr, const rpma_conn_cfg* of_b = nullptr);

// Waits for the next completion of a queue whose channel is its own, as programs are told to:
// until there is none, then by its descriptor.
ibv_wc next_of(rpma_cq* cq);
// Nothing is in the queue.
bool is_empty(rpma_cq* cq);

// Two connections of one process with each other: `a` asked. They share a peer, and have memory.
struct Pair {
    explicit Pair(const rpma_conn_cfg* of_a = nullptr, const rpma_conn_cfg* of_b = nullptr,
                  std::size_t size = 4096);
    ~Pair();

    Peer peer;
    Region mine;   // of a
    Region theirs; // of b
    Listener listener{peer};
    Conn a;
    Conn b;
};

// A process of its own, forked before this one has used the library. It and this one have a
// socket between them; it ends when its function returns, by status 0.
struct Child {
    explicit Child(void (*run)(int socket));
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    void kill_now();

    int pid = -1;
    int socket = -1;
};

// Over the socket of a child.
void tell(int socket, const std::string& what);
std::string hear(int socket);

} // namespace dat::test

#endif
