// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Drives the endpoint state machine of test/spec/ep-transitions.tsv through dat_* calls: over
// shared memory and over TCP, or over the device that DAT_TRANSPORT names. Each cell is driven,
// or test/shim/cells.tsv says why not. Usage: states [STIMULUS [STATE]], patterns.
#include "states.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fnmatch.h>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using dat::test::place;
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

std::ifstream open_file(const char* name) {
    const char* top = std::getenv("DAT_SRCDIR");
    const std::string path = std::string(top ? top : ".") + name;
    std::ifstream file(path);
    if (!file) {
        std::printf("FAILED: cannot read %s\n", path.c_str());
        std::exit(1);
    }
    return file;
}

std::vector<Cell> read_table() {
    std::ifstream file = open_file("/test/spec/ep-transitions.tsv");
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

// Why cells are not driven: test/shim/cells.tsv.
struct Exception {
    std::string transports, stimuli, states, why; // patterns of the shell
};

std::vector<Exception> read_exceptions() {
    std::ifstream file = open_file("/test/shim/cells.tsv");
    std::vector<Exception> exceptions;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("#")) {
            continue;
        }
        std::istringstream fields(line);
        Exception one;
        for (std::string* field : {&one.transports, &one.stimuli, &one.states, &one.why}) {
            std::getline(fields, *field, '\t');
        }
        exceptions.push_back(one);
    }
    return exceptions;
}

bool matches(const std::string& pattern, const std::string& text) {
    return fnmatch(pattern.c_str(), text.c_str(), FNM_EXTMATCH) == 0;
}

const Exception* exception_of(const std::vector<Exception>& exceptions,
                              const std::string& transport, const Cell& cell) {
    const auto found = std::ranges::find_if(exceptions, [&](const Exception& one) {
        return matches(one.transports, transport) && matches(one.stimuli, cell.stimulus) &&
               matches(one.states, cell.state_name);
    });
    return found == exceptions.end() ? nullptr : &*found;
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
        s.cr = expect(s.rsp_evd, DAT_CONNECTION_REQUEST_EVENT)
                   .event_data.cr_arrival_event_data.cr_handle;
    } else if (cell.event != "-") {
        const std::string wanted = cell.event == "RECORDED" ? "DISCONNECTED" : cell.event;
        if (wanted == "NON_PEER_REJECTED") {
            return expect_refusal(s.subject->conn);
        }
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
        const bool well = dto.status == DAT_DTO_SUCCESS;
        // An iWARP device completes it when it has been sent (U-61), if it has been by now.
        const bool right = s.by_bytes() ? well || dto.status == DAT_DTO_ERR_FLUSHED
                                        : well == (cell.stimulus == "drained");
        if (dto.user_cookie.as_64 != Scene::kRequest || !right) {
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
    const bool in_state = cell.state != State::ending &&
                          !(cell.state == State::active &&
                            (cell.stimulus == "unreachable" || cell.stimulus == "timer_expired"));
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

// What a process of its own is for: the variables of the provider are read once, and a device
// comes back only when nobody has it any more.
enum class Pass : std::uint8_t {
    usual,
    limit,   // the one cell that a limit of time leads to; elsewhere none may do what a peer is to
    removal, // of the device, for one cell
};

Pass pass_of(const Cell& cell) {
    if (cell.stimulus == "async_error") {
        return Pass::removal;
    }
    return cell.stimulus == "handshake_failed" && cell.state == State::completing ? Pass::limit
                                                                                  : Pass::usual;
}

// Shared by the processes.
struct Sum {
    int right = 0;
    int wrong = 0;
};

void drive_and_say(const std::string& transport, const Cell& cell, Sum& sum) {
    const std::string title = transport + ": " + cell.stimulus + " in " + cell.state_name;
    try {
        const Stimulus* const stimulus = find(cell.stimulus);
        if (!stimulus) {
            throw Wrong("nothing brings that about, and no reason is given");
        }
        drive(cell, *stimulus);
        ++sum.right;
    } catch (const Wrong& wrong) {
        std::printf("%s: FAILED: %s (%s, next %s, event %s, flush %s)\n", title.c_str(),
                    wrong.what(), cell.verdict.c_str(), cell.next.c_str(), cell.event.c_str(),
                    cell.flush.c_str());
        ++sum.wrong;
    }
    std::fflush(stdout);
}

// Drives the cells in a process of its own.
void run(const std::string& transport, Pass pass, const std::vector<Cell>& cells, Sum& sum) {
    const pid_t child = fork();
    if (child != 0) {
        waitpid(child, nullptr, 0);
        return;
    }
    setenv("FI_DAT_SHM", transport.starts_with("shm") ? "1" : "0", 1);
    setenv("FI_DAT_HANDSHAKE_TIMEOUT", pass == Pass::limit ? "1" : "600", 1);
    setenv("FI_DAT_RNR_TIMEOUT", "600", 1);
    setenv("FI_DAT_KEEPALIVE", "0", 1);
    for (const Cell& cell : cells) {
        drive_and_say(transport, cell, sum);
    }
    std::exit(0);
}

// Every cell is impossible, has its reason in the table, or is driven. False: one is otherwise.
bool run_all(const std::string& transport, const std::vector<std::string>& only, Sum& sum) {
    const std::vector<Exception> exceptions = read_exceptions();
    std::map<const Exception*, int> excepted;
    std::vector<Cell> usual;
    std::vector<std::pair<Pass, Cell>> apart;
    int impossible = 0;
    int driven = 0;
    for (const Cell& cell : read_table()) {
        if ((!only.empty() && !matches(only[0], cell.stimulus)) ||
            (only.size() > 1 && !matches(only[1], cell.state_name))) {
            continue;
        }
        const Exception* const exception = exception_of(exceptions, transport, cell);
        if (cell.verdict == "impossible") {
            ++impossible;
        } else if (exception) {
            ++excepted[exception];
        } else {
            ++driven;
            if (pass_of(cell) == Pass::usual) {
                usual.push_back(cell);
            } else {
                apart.emplace_back(pass_of(cell), cell);
            }
        }
    }
    run(transport, Pass::usual, usual, sum);
    for (const auto& [pass, cell] : apart) {
        run(transport, pass, {cell}, sum);
        if (pass == Pass::removal && !make_device_again()) {
            std::printf("%s: FAILED: the device cannot be made again\n", transport.c_str());
            return false;
        }
    }

    int not_driven = 0;
    for (const auto& [exception, count] : excepted) {
        not_driven += count;
    }
    std::printf("%s: %d cells as the table says, %d otherwise, %d impossible by the table, "
                "%d not driven:\n",
                transport.c_str(), sum.right, driven - sum.right, impossible, not_driven);
    bool right = sum.right == driven;
    if (driven + impossible + not_driven == 0) {
        std::printf("  FAILED: no cell has such a name\n");
        right = false;
    }
    for (const Exception& exception : exceptions) {
        if (const int count = excepted[&exception]) {
            std::printf("  %3d %s in %s: %s\n", count, exception.stimuli.c_str(),
                        exception.states.c_str(), exception.why.c_str());
        } else if (only.empty() && matches(exception.transports, transport)) {
            std::printf("  FAILED: no cell needs a reason: %s in %s: %s\n",
                        exception.stimuli.c_str(), exception.states.c_str(), exception.why.c_str());
            right = false;
        }
    }
    std::fflush(stdout);
    return right;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (is_peer(arguments)) {
        return run_peer(arguments);
    }
    make_own_network();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    void* const shared =
        mmap(nullptr, sizeof(Sum), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Sum& sum = *static_cast<Sum*>(shared);
    bool right = true;
    // Loopback has nobody who could be asked for in vain for a while.
    const std::string name = place().name;
    const std::string suffix = name == "lo" ? "_lo" : "";
    for (const std::string& transport :
         place().device ? std::vector{name} : std::vector{"shm" + suffix, "tcp" + suffix}) {
        sum = {};
        right &= run_all(transport, arguments, sum);
    }
    return right ? 0 : 1;
}
