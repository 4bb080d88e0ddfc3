// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Drives the endpoint state machine of test/spec/ep-transitions.tsv through dat_* calls, over
// shared memory and over TCP, each in a process of its own. Says of each cell that was not
// reached why. Usage: states [STIMULUS [STATE]].
#include "states.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace dat::test::states;

namespace {

struct Cell {
    std::string stimulus, kind, state_name, verdict, next, event, flush;
    State state;
};

constexpr const char* kStates[] = {"UNCONNECTED",
                                   "RESERVED",
                                   "PASSIVE_CONNECTION_PENDING",
                                   "TENTATIVE_CONNECTION_PENDING",
                                   "ACTIVE_CONNECTION_PENDING",
                                   "COMPLETION_PENDING",
                                   "CONNECTED",
                                   "DISCONNECT_PENDING",
                                   "ENDING",
                                   "DISCONNECTED"};
constexpr DAT_EP_STATE kValues[] = {DAT_EP_STATE_UNCONNECTED,
                                    DAT_EP_STATE_RESERVED,
                                    DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
                                    DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
                                    DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
                                    DAT_EP_STATE_COMPLETION_PENDING,
                                    DAT_EP_STATE_CONNECTED,
                                    DAT_EP_STATE_DISCONNECT_PENDING,
                                    DAT_EP_STATE_DISCONNECT_PENDING,
                                    DAT_EP_STATE_DISCONNECTED};

State state_named(const std::string& name) {
    const auto at = std::ranges::find(kStates, name);
    if (at == std::end(kStates)) {
        throw Wrong("no state: " + name);
    }
    return static_cast<State>(at - std::begin(kStates));
}

DAT_EP_STATE value_of(State state) { return kValues[static_cast<std::size_t>(state)]; }

std::vector<Cell> read_table() {
    const char* top = std::getenv("DAT_SRCDIR");
    std::ifstream file(std::string(top ? top : ".") + "/test/spec/ep-transitions.tsv");
    std::vector<Cell> cells;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("#") || line.starts_with("stimulus\t")) {
            continue;
        }
        std::istringstream fields(line);
        Cell cell;
        for (std::string* field : {&cell.stimulus, &cell.kind, &cell.state_name, &cell.verdict,
                                   &cell.next, &cell.event, &cell.flush}) {
            std::getline(fields, *field, '\t');
        }
        cell.state = state_named(cell.state_name);
        cells.push_back(cell);
    }
    return cells;
}

const Stimulus* find(const std::string& name) {
    for (const auto* list : {&api_stimuli(), &wire_stimuli()}) {
        for (const Stimulus& each : *list) {
            if (name == each.name) {
                return &each;
            }
        }
    }
    return nullptr;
}

// nullptr: it is reached.
const char* why_not(const Cell& cell, const Stimulus* stimulus) {
    if (!stimulus) {
        return "nothing here brings that stimulus about";
    }
    if (cell.verdict == "impossible") {
        return "impossible by the table";
    }
    if (cell.state == State::ending && cell.stimulus != "flushed") {
        return "ENDING begins and ends within one call of the provider";
    }
    return stimulus->why_not ? stimulus->why_not(cell.state) : nullptr;
}

void check_code(const Cell& cell, DAT_RETURN code) {
    const auto type = DAT_GET_TYPE(code);
    bool right = type == DAT_SUCCESS;
    if (cell.verdict == "refuse") { // U-43: an endpoint that cannot accept
        right = type == DAT_INVALID_STATE ||
                (cell.stimulus == "accept_given" && type == DAT_INVALID_HANDLE);
    }
    if (!right) {
        throw Wrong("the call returned " + text_of(code));
    }
}

void check_event(const Cell& cell, Scene& s) {
    if (cell.event == "CONNECTION_REQUEST") {
        expect(s.rsp_evd, DAT_CONNECTION_REQUEST_EVENT);
    } else if (cell.event != "-") {
        const std::string wanted = cell.event == "RECORDED" ? "DISCONNECTED" : cell.event;
        const std::string got = name_of(next(s.subject->conn).event_number);
        if (got != wanted) {
            throw Wrong("event " + got);
        }
    }
}

void check_state(const Cell& cell, const Scene& s) {
    if (cell.next == "DESTROYED" || cell.next == "PROVIDER") {
        if (s.subject->exists()) {
            throw Wrong("the handle is still good");
        }
        return;
    }
    const State next = cell.next == "ENDING"         ? State::disconnected
                       : cell.next != "="            ? state_named(cell.next)
                       : cell.state == State::ending ? State::disconnected
                                                     : cell.state;
    const DAT_EP_STATE state = s.subject->state();
    // A handshake may be done within the call.
    const bool further = next == State::completing && state == DAT_EP_STATE_CONNECTED;
    if (state != value_of(next) && !further) {
        throw Wrong("the state is " + std::to_string(state));
    }
}

// What is outstanding has completed, or not.
void check_flush(const Cell& cell, const Scene& s) {
    if (cell.next == "DESTROYED" || cell.next == "PROVIDER") { // FREE-2
        return;
    }
    const bool ended = cell.next == "ENDING" || cell.state == State::ending;
    if (cell.state == State::disconnecting && ended) {
        const DAT_EVENT event = next(s.subject->request);
        const auto& dto = event.event_data.dto_completion_event_data;
        if (dto.user_cookie.as_64 != Scene::kRequest ||
            (dto.status == DAT_DTO_SUCCESS) != (cell.stimulus == "drained")) {
            throw Wrong("the request has status " + std::to_string(dto.status));
        }
    }
    if (ended) {
        expect_dto(s.subject->recv, Scene::kReceive, DAT_DTO_ERR_FLUSHED);
    }
    if (!is_empty(s.subject->recv)) {
        throw Wrong("a completion too many");
    }
}

void drive(const Cell& cell, const Stimulus& stimulus) {
    Scene scene;
    if (stimulus.before) {
        stimulus.before(scene, cell.state);
    }
    if (stimulus.arrive) {
        stimulus.arrive(scene, cell.state);
    } else {
        scene.arrive(cell.state);
    }
    const bool in_state = cell.stimulus != "unreachable" && cell.stimulus != "timer_expired" &&
                          cell.state != State::ending;
    if (in_state && scene.subject->state() != value_of(cell.state)) {
        throw Wrong("the endpoint is not in that state, but in " +
                    std::to_string(scene.subject->state()));
    }
    check_code(cell, stimulus.act(scene, cell.state));
    check_event(cell, scene);
    if (stimulus.after) {
        check_state(cell, scene);
        stimulus.after(scene, cell.state);
    }
    if (cell.verdict == "ignore") {
        nothing_comes(scene.subject->conn);
    }
    if (!stimulus.after || cell.verdict == "refuse") {
        check_state(cell, scene);
    }
    check_flush(cell, scene);
    if (scene.near.ia && !is_empty(scene.subject->conn)) {
        throw Wrong("an event too many");
    }
}

struct Sum {
    int reached = 0;
    int wrong = 0;
    int not_reached = 0;
};

// The one cell that a limit of time leads to; elsewhere no limit may do what a peer is to.
bool by_limit(const Cell& cell) {
    return cell.stimulus == "handshake_failed" && cell.state == State::completing;
}

Sum drive_all(const char* transport, bool limit, const std::vector<std::string>& only) {
    Sum sum;
    for (const Cell& cell : read_table()) {
        if (by_limit(cell) != limit || (!only.empty() && cell.stimulus != only[0]) ||
            (only.size() > 1 && cell.state_name != only[1])) {
            continue;
        }
        const Stimulus* const stimulus = find(cell.stimulus);
        const std::string title = cell.stimulus + " in " + cell.state_name;
        if (const char* const reason = why_not(cell, stimulus)) {
            std::printf("%s: %s: not reached: %s\n", transport, title.c_str(), reason);
            ++sum.not_reached;
            continue;
        }
        try {
            drive(cell, *stimulus);
            ++sum.reached;
        } catch (const Wrong& wrong) {
            std::printf("%s: %s: FAILED: %s (%s, next %s, event %s, flush %s)\n", transport,
                        title.c_str(), wrong.what(), cell.verdict.c_str(), cell.next.c_str(),
                        cell.event.c_str(), cell.flush.c_str());
            ++sum.wrong;
        }
        std::fflush(stdout);
    }
    return sum;
}

int run(const char* transport, bool limit, const std::vector<std::string>& only) {
    setenv("FI_DAT_SHM", std::strcmp(transport, "shm") == 0 ? "1" : "0", 1);
    setenv("FI_DAT_HANDSHAKE_TIMEOUT", limit ? "1" : "600", 1);
    setenv("FI_DAT_RNR_TIMEOUT", "600", 1);
    setenv("FI_DAT_KEEPALIVE", "0", 1);
    const Sum sum = drive_all(transport, limit, only);
    std::printf("%s%s: %d cells as the table says, %d otherwise, %d not reached\n", transport,
                limit ? ", the limit of a handshake" : "", sum.reached, sum.wrong, sum.not_reached);
    std::fflush(stdout);
    return sum.wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (is_peer(arguments)) {
        return run_peer(arguments);
    }
    make_own_network();
    int failed = 0;
    for (const int which : {0, 1, 2, 3}) {
        const pid_t child = fork();
        if (child == 0) { // the variables of the provider are read once
            std::exit(run(which % 2 ? "tcp" : "shm", which >= 2, arguments));
        }
        int status = 0;
        failed |= waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status);
    }
    return failed;
}
