// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How connections end that nobody ends properly, and attempts that come to nothing: the
// event that the specification names, and nothing hangs. Two processes, over shared memory
// and over TCP, or over the device that DAT_TRANSPORT names. Usage: ends [TEST], a pattern.
#include "states.h"

#include <cstdio>
#include <cstdlib>
#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

using dat::test::place;
using namespace dat::test::states;

namespace {

constexpr std::uint64_t kReceive = 1;
constexpr std::uint64_t kSend = 2;

bool on(const char* device) { return place().name == std::string(device); }

// For a receive: else it is what ends the connection (RFC 5040 has no other way).
bool a_message_may_wait() { return !on("siw"); }

struct Here {
    Adapter adapter;
    std::unique_ptr<End> end = std::make_unique<End>(adapter);

    // To a server that has accepted; a receive and a send are outstanding then.
    void connect_to(Process& server) const {
        MUST(end->receive(kReceive));
        MUST(end->connect(std::stoull(server.line())));
        expect(end->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
        send();
    }
    void send() const {
        if (a_message_may_wait()) {
            MUST(end->send(kSend));
        }
    }
    void is_over() const {
        expect_dto(end->recv, kReceive, DAT_DTO_ERR_FLUSHED);
        if (a_message_may_wait() &&
            next(end->request).event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
            throw Wrong("a message that nobody received was sent");
        }
        if (end->state() != DAT_EP_STATE_DISCONNECTED) {
            throw Wrong("not DISCONNECTED");
        }
        if (!is_empty(end->conn) || !is_empty(end->recv) || !is_empty(end->request)) {
            throw Wrong("an event too many");
        }
    }
    // The attempt ended so, and its receive is flushed.
    void fails(DAT_EVENT_NUMBER number) const {
        if (number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED) {
            expect_refusal(end->conn);
        } else {
            expect(end->conn, number);
        }
        expect_dto(end->recv, kReceive, DAT_DTO_ERR_FLUSHED);
        if (end->state() != DAT_EP_STATE_DISCONNECTED || !is_empty(end->conn)) {
            throw Wrong("it did not end in DISCONNECTED with one event");
        }
    }
};

// DISC-16: either event, after what it flushes (DISC-10).
void expect_death(DAT_EVD_HANDLE evd) {
    const DAT_EVENT event = next(evd);
    if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED &&
        event.event_number != DAT_CONNECTION_EVENT_BROKEN) {
        throw Wrong(name_of(event.event_number));
    }
}

// DISC-16, EP-54, DISC-11, RST-4: and the endpoint connects to the next server.
void killed_server() {
    const Here here;
    for (int round = 0; round < 2; ++round) {
        Process server({"server"});
        here.connect_to(server);
        server.kill();
        expect_death(here.end->conn);
        here.is_over();
        MUST(dat_ep_reset(here.end->ep));
    }
}

// DISC-16, and the service point lives.
void killed_client() {
    const Here here;
    const LocalListener local_listener(here.adapter);
    for (int round = 0; round < 2; ++round) {
        Process client({"requester", std::to_string(local_listener.port)});
        MUST(here.end->receive(kReceive));
        MUST(dat_cr_accept(local_listener.request(), here.end->ep, 0, nullptr));
        expect(here.end->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
        here.send();
        client.kill();
        expect_death(here.end->conn);
        here.is_over();
        MUST(dat_ep_reset(here.end->ep));
    }
}

// EP-42: it dies while it thinks about the request.
void killed_while_it_decides() {
    const Here here;
    Process listener({"listener"});
    MUST(here.end->receive(kReceive));
    MUST(here.end->connect(std::stoull(listener.line())));
    listener.line();
    listener.kill();
    here.fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

// U-9: a peer that lives is waited for; an abrupt end does not wait for it (DISC-3), a
// graceful one for a bounded time (U-42); and it goes on afterwards.
void silent_peer() {
    for (const bool graceful : {false, true}) {
        const Here here;
        Process server({"server"});
        here.connect_to(server);
        server.line(); // the request
        server.line(); // ESTABLISHED, as the server has it
        server.stop();
        nothing_comes(here.end->conn);
        if (here.end->state() != DAT_EP_STATE_CONNECTED) {
            throw Wrong("not CONNECTED");
        }
        MUST(dat_ep_disconnect(here.end->ep,
                               graceful ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
        expect(here.end->conn, DAT_CONNECTION_EVENT_DISCONNECTED);
        here.is_over();
        server.go_on();
        const std::string end = server.line();
        if (end != "DISCONNECTED" && end != "BROKEN") {
            throw Wrong("the server has " + end);
        }
    }
}

// TMO-1, EP-44: a server that stands still before it sees the request.
void silent_server() {
    const Here here;
    Process listener({"listener"});
    const DAT_CONN_QUAL port = std::stoull(listener.line());
    listener.stop();
    MUST(here.end->receive(kReceive));
    MUST(here.end->connect(port, 200'000));
    here.fails(DAT_CONNECTION_EVENT_TIMED_OUT);
}

// EP-42
void nobody_listens() {
    const Here here;
    const LocalListener local_listener(here.adapter);
    MUST(dat_psp_free(local_listener.psp));
    MUST(here.end->receive(kReceive));
    MUST(here.end->connect(local_listener.port));
    here.fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

// EP-42: a port of somebody who speaks something else.
void wrong_port() {
    const Here here;
    RawPeer other;
    MUST(here.end->receive(kReceive));
    MUST(here.end->connect(other.listen()));
    other.take_request();
    other.talk_nonsense();
    other.leave();
    here.fails(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

// TMO-1, EP-44: somebody who says nothing.
void nobody_answers() {
    const Here here;
    RawPeer other;
    MUST(here.end->receive(kReceive));
    MUST(here.end->connect(other.listen(), 200'000));
    here.fails(DAT_CONNECTION_EVENT_TIMED_OUT);
}

// What a device says of its port is told as an error of the adapter, and ends nothing.
void port_goes_down() {
    const Here here;
    switch_port(false);
    const DAT_EVENT event = next(here.adapter.async);
    const auto& error = event.event_data.asynch_error_event_data;
    switch_port(true);
    if (event.event_number != DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR ||
        error.dat_handle != here.adapter.ia || error.reason != DAT_IA_OTHER_ERROR) {
        throw Wrong("it was not told as an error of the adapter");
    }
}

struct Test {
    const char* name;
    void (*run)();
    const char* why_not = nullptr; // it is not run here
};

int run(const char* transport, const char* shm, const char* only) {
    setenv("FI_DAT_SHM", shm, 1);
    setenv("FI_DAT_RNR_TIMEOUT", "1", 1);
    const char* const no_bytes = on("rxe") ? "nobody else has ports of rdma_cm" : nullptr;
    const char* const no_other =
        on("siw") ? "Linux 6.1's siw stops at private data that it has not read" : no_bytes;
    const char* const no_port = on("siw")   ? nullptr
                                : on("rxe") ? "Linux hangs when the link of rxe goes down"
                                            : "no RDMA device";
    int failed = 0;
    for (const Test& test : {Test{"a killed server", killed_server},
                             {"a killed client", killed_client},
                             {"a server killed while it decides", killed_while_it_decides},
                             {"a peer that stands still", silent_peer},
                             {"a server that stands still", silent_server},
                             {"nobody listens", nobody_listens},
                             {"a port of somebody else", wrong_port, no_other},
                             {"nobody answers", nobody_answers, no_bytes},
                             {"a port that goes down", port_goes_down, no_port}}) {
        if (fnmatch(only, test.name, 0) != 0) {
            continue;
        }
        if (test.why_not) {
            std::printf("%s: not run: %s: %s\n", transport, test.name, test.why_not);
            continue;
        }
        try {
            test.run();
            std::printf("%s: ok: %s\n", transport, test.name);
        } catch (const Wrong& wrong) {
            std::printf("%s: FAILED: %s: %s\n", transport, test.name, wrong.what());
            failed = 1;
        }
        std::fflush(stdout);
    }
    return failed;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (is_peer(arguments)) {
        return run_peer(arguments);
    }
    make_own_network();
    const char* const only = argc > 1 ? argv[1] : "*";
    if (place().device) {
        return run(place().name, "0", only);
    }
    int failed = 0;
    for (const bool shm : {true, false}) {
        const pid_t child = fork();
        if (child == 0) { // the variables of the provider are read once
            std::exit(run(shm ? "shm" : "tcp", shm ? "1" : "0", only));
        }
        int status = 0;
        failed |= waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status);
    }
    return failed;
}
