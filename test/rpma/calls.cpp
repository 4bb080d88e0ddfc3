// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See calls.h.
//
//   rpma_calls OUT SERVER-FOLDER CLIENT-FOLDER
//     starts both ends, each with the library of that folder, over what DAT_TRANSPORT names.
//     Their transcripts become OUT.server and OUT.client.
#include "calls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace dat::test::calls {
namespace {

std::string current;

} // namespace

void begin(const Role& role, const std::string& scenario) {
    current = scenario;
    need(meet(role, scenario) == scenario, "the other process is elsewhere");
}

void say(const std::string& what, const std::string& value) {
    std::printf("%s|%s|%s\n", current.c_str(), what.c_str(), value.c_str());
    std::fflush(stdout);
}

std::string name_of(int result) {
    switch (result) {
    case 0:
        return "0";
    case RPMA_E_UNKNOWN:
        return "UNKNOWN";
    case RPMA_E_NOSUPP:
        return "NOSUPP";
    case RPMA_E_PROVIDER:
        return "PROVIDER";
    case RPMA_E_NOMEM:
        return "NOMEM";
    case RPMA_E_INVAL:
        return "INVAL";
    case RPMA_E_NO_COMPLETION:
        return "NO_COMPLETION";
    case RPMA_E_NO_EVENT:
        return "NO_EVENT";
    case RPMA_E_AGAIN:
        return "AGAIN";
    case RPMA_E_SHARED_CHANNEL:
        return "SHARED_CHANNEL";
    case RPMA_E_NOT_SHARED_CHNL:
        return "NOT_SHARED_CHNL";
    default:
        return std::to_string(result);
    }
}

std::string meet(const Role& role, const std::string& word) {
    tell(role.socket, word);
    return hear(role.socket);
}

int called(const char* text, int result) {
    say(text, name_of(result));
    return result;
}

void say_event(const Conn& conn, const char* what, int timeout_ms) {
    if (!readable(conn.event_fd(), timeout_ms)) {
        say(what, "nothing");
        return;
    }
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    const int result = rpma_conn_next_event(conn, &event);
    say(what, result == 0 ? rpma_utils_conn_event_2str(event) : name_of(result));
}

void say_completion(const Conn& conn, rpma_cq* cq, const char* what) {
    const ibv_wc wc = next_of(cq);
    std::string text = "status " + std::to_string(wc.status) + ", context " +
                       std::to_string(wc.wr_id) +
                       (wc.qp_num == conn.qp_num() ? "" : ", another qp_num");
    if (wc.status == IBV_WC_SUCCESS) {
        text += ", opcode " + std::to_string(wc.opcode);
        if (wc.opcode == IBV_WC_RECV || wc.opcode == IBV_WC_RDMA_READ) {
            text += ", " + std::to_string(wc.byte_len) + " bytes";
        }
        // What rxe says of the sender's own completion is another matter.
        if ((wc.opcode & IBV_WC_RECV) && (wc.wc_flags & IBV_WC_WITH_IMM)) {
            text += ", immediate data " + std::to_string(ntohl(wc.imm_data));
        }
    }
    say(what, text);
}

namespace {

// The folder of the library that this process has.
void say_library() {
    Dl_info info{};
    current = "library";
    need(dladdr(reinterpret_cast<void*>(&rpma_peer_new), &info) != 0, "dladdr");
    say("file", info.dli_fname);
}

void play(bool serves, int socket) {
    const Role role{serves, socket};
    alarm(300);
    use_place(wanted_place());
    say_library();
    without_peer(role);
    with_peer(role);
    current = "end";
    say("reached", "yes");
}

int start(const char* program, const char* role, const std::string& out, const char* folder,
          int socket) {
    const int pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        setenv("LD_LIBRARY_PATH", folder, 1);
        need(std::freopen((out + "." + role).c_str(), "w", stdout) != nullptr, out);
        execl("/proc/self/exe", program, role, std::to_string(socket).c_str(), nullptr);
        _exit(127);
    }
    close(socket);
    return pid;
}

int pair(char** argv) {
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
    const int client = fork();
    need(client >= 0, "fork");
    if (client == 0) {
        close(ends[0]);
        int status = 0;
        waitpid(start(argv[0], "client", argv[1], argv[3], ends[1]), &status, 0);
        _exit(status == 0 ? 0 : 1);
    }
    close(ends[1]);
    int status = 0;
    waitpid(start(argv[0], "server", argv[1], argv[2], ends[0]), &status, 0);
    int of_client = 0;
    waitpid(client, &of_client, 0);
    std::printf("server: %s, client: %s\n", status == 0 ? "ended" : "FAILED",
                of_client == 0 ? "ended" : "FAILED");
    return status == 0 && of_client == 0 ? 0 : 1;
}

} // namespace
} // namespace dat::test::calls

int main(int argc, char** argv) {
    if (argc == 3) {
        dat::test::calls::play(std::string(argv[1]) == "server", std::atoi(argv[2]));
        return 0;
    }
    if (argc == 4) {
        return dat::test::calls::pair(argv);
    }
    std::fprintf(stderr, "usage: %s OUT SERVER-FOLDER CLIENT-FOLDER\n", argv[0]);
    return 2;
}
