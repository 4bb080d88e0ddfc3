// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A call that is refused says so in one line, by the function that the program has given to the
// log, and changes nothing: neither what its pointers point to, nor an object.
#include <librpma.h>

#include <bit>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::vector<std::string> g_lines;
int g_failures = 0;

// The program's function of the log.
void note(rpma_log_level level, const char*, const int, const char*, const char* format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (level <= RPMA_LOG_LEVEL_ERROR) {
        g_lines.emplace_back(line);
    }
}

void complain(const char* call, const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", call, what.c_str());
    ++g_failures;
}

// What a call returned, of a function whose name has to be in the line.
void expect(const char* call, const std::string& function, int expected, int result) {
    if (result != expected) {
        complain(call, "returned " + std::to_string(result) + ", " + rpma_err_2str(result));
    }
    if (g_lines.size() != 1) {
        complain(call, std::to_string(g_lines.size()) + " lines");
    } else if (const std::string& line = g_lines.front();
               line.find(function) == std::string::npos || line.find('\n') + 1 != line.size()) {
        complain(call, "the line is: " + line);
    }
    g_lines.clear();
}

#define REFUSED(function, ...)                                                                     \
    expect(#function #__VA_ARGS__, #function, RPMA_E_INVAL, function __VA_ARGS__)

// A value that nothing may write over.
template <class T> T* untouched() { return reinterpret_cast<T*>(std::uintptr_t{0x5a5a5a50}); }
template <class T> void expect_untouched(const T* pointer, const char* what) {
    if (pointer != untouched<T>()) {
        complain(what, "a pointer was written to");
    }
}

void configurations() {
    REFUSED(rpma_conn_cfg_new, (nullptr));
    REFUSED(rpma_conn_cfg_delete, (nullptr));
    REFUSED(rpma_srq_cfg_new, (nullptr));
    REFUSED(rpma_srq_cfg_delete, (nullptr));
    REFUSED(rpma_peer_cfg_new, (nullptr));
    REFUSED(rpma_peer_cfg_delete, (nullptr));
    rpma_conn_cfg* config = nullptr;
    if (rpma_conn_cfg_new(&config) != 0) {
        std::abort();
    }
    int timeout = 0;
    REFUSED(rpma_conn_cfg_set_timeout, (nullptr, 1));
    REFUSED(rpma_conn_cfg_set_timeout, (config, -1));
    REFUSED(rpma_conn_cfg_get_timeout, (config, nullptr));
    REFUSED(rpma_conn_cfg_get_timeout, (nullptr, &timeout));
    if (rpma_conn_cfg_get_timeout(config, &timeout) != 0 || timeout != RPMA_DEFAULT_TIMEOUT_MS) {
        complain("rpma_conn_cfg_set_timeout()", "a refused call has changed the timeout");
    }
    std::uint32_t size = 0;
    REFUSED(rpma_conn_cfg_set_cq_size, (nullptr, 1));
    REFUSED(rpma_conn_cfg_get_cq_size, (nullptr, &size));
    REFUSED(rpma_conn_cfg_set_rcq_size, (nullptr, 1));
    REFUSED(rpma_conn_cfg_get_rcq_size, (config, nullptr));
    REFUSED(rpma_conn_cfg_set_sq_size, (nullptr, 1));
    REFUSED(rpma_conn_cfg_get_sq_size, (nullptr, &size));
    REFUSED(rpma_conn_cfg_set_rq_size, (nullptr, 1));
    REFUSED(rpma_conn_cfg_get_rq_size, (config, nullptr));
    bool shared = false;
    REFUSED(rpma_conn_cfg_set_compl_channel, (nullptr, true));
    REFUSED(rpma_conn_cfg_get_compl_channel, (nullptr, &shared));
    rpma_srq* srq = untouched<rpma_srq>();
    REFUSED(rpma_conn_cfg_set_srq, (nullptr, srq));
    REFUSED(rpma_conn_cfg_set_srq, (config, nullptr));
    REFUSED(rpma_conn_cfg_get_srq, (nullptr, &srq));
    expect_untouched(srq, "rpma_conn_cfg_get_srq()");
    REFUSED(rpma_srq_cfg_set_rq_size, (nullptr, 1));
    REFUSED(rpma_srq_cfg_get_rq_size, (nullptr, &size));
    REFUSED(rpma_srq_cfg_set_rcq_size, (nullptr, 1));
    REFUSED(rpma_srq_cfg_get_rcq_size, (nullptr, &size));
    rpma_conn_cfg_delete(&config);

    rpma_peer_cfg* peer = untouched<rpma_peer_cfg>();
    const char none = 0;
    REFUSED(rpma_peer_cfg_from_descriptor, (nullptr, 1, &peer));
    REFUSED(rpma_peer_cfg_from_descriptor, (&none, 0, &peer));
    REFUSED(rpma_peer_cfg_from_descriptor, (&none, 1, nullptr));
    expect_untouched(peer, "rpma_peer_cfg_from_descriptor()");
    REFUSED(rpma_peer_cfg_set_direct_write_to_pmem, (nullptr, true));
    REFUSED(rpma_peer_cfg_get_direct_write_to_pmem, (nullptr, &shared));
    REFUSED(rpma_peer_cfg_get_descriptor, (nullptr, &size));
    std::size_t bytes = 0;
    REFUSED(rpma_peer_cfg_get_descriptor_size, (nullptr, &bytes));
}

void memory(rpma_peer* peer) {
    char bytes[64] = {};
    rpma_mr_local* mr = untouched<rpma_mr_local>();
    REFUSED(rpma_mr_reg, (nullptr, bytes, 64, RPMA_MR_USAGE_SEND, &mr));
    REFUSED(rpma_mr_reg, (peer, nullptr, 64, RPMA_MR_USAGE_SEND, &mr));
    REFUSED(rpma_mr_reg, (peer, bytes, 0, RPMA_MR_USAGE_SEND, &mr));
    REFUSED(rpma_mr_reg, (peer, bytes, 64, 0, &mr));
    REFUSED(rpma_mr_reg, (peer, bytes, 64, 1 << 8, &mr));
    REFUSED(rpma_mr_reg, (peer, bytes, 64, RPMA_MR_USAGE_SEND, nullptr));
    expect_untouched(mr, "rpma_mr_reg()");
    if (rpma_mr_reg(peer, bytes, 64, RPMA_MR_USAGE_SEND, &mr) != 0) {
        std::abort();
    }
    std::size_t size = 0;
    void* at = nullptr;
    REFUSED(rpma_mr_get_descriptor, (nullptr, bytes));
    REFUSED(rpma_mr_get_descriptor, (mr, nullptr));
    REFUSED(rpma_mr_get_descriptor_size, (nullptr, &size));
    REFUSED(rpma_mr_get_ptr, (nullptr, &at));
    REFUSED(rpma_mr_get_size, (mr, nullptr));
    REFUSED(rpma_mr_advise, (mr, 60, 5, 0, 0));
    expect("rpma_mr_advise()", "rpma_mr_advise", RPMA_E_NOSUPP, rpma_mr_advise(mr, 0, 64, 9, 0));
    REFUSED(rpma_mr_dereg, (nullptr));
    rpma_mr_dereg(&mr);

    rpma_mr_remote* remote = untouched<rpma_mr_remote>();
    const char descriptor[21] = {}; // its usage is 0
    REFUSED(rpma_mr_remote_from_descriptor, (descriptor, 21, &remote));
    REFUSED(rpma_mr_remote_from_descriptor, (descriptor, 20, &remote));
    REFUSED(rpma_mr_remote_from_descriptor, (nullptr, 21, &remote));
    REFUSED(rpma_mr_remote_from_descriptor, (descriptor, 21, nullptr));
    expect_untouched(remote, "rpma_mr_remote_from_descriptor()");
    int type = 0;
    REFUSED(rpma_mr_remote_get_size, (nullptr, &size));
    REFUSED(rpma_mr_remote_get_flush_type, (nullptr, &type));
    REFUSED(rpma_mr_remote_delete, (nullptr));
}

void connections(rpma_peer* peer) {
    rpma_conn_req* request = untouched<rpma_conn_req>();
    REFUSED(rpma_conn_req_new, (nullptr, "127.0.0.1", "7", nullptr, &request));
    REFUSED(rpma_conn_req_new, (peer, nullptr, "7", nullptr, &request));
    REFUSED(rpma_conn_req_new, (peer, "127.0.0.1", nullptr, nullptr, &request));
    REFUSED(rpma_conn_req_new, (peer, "127.0.0.1", "7", nullptr, nullptr));
    rpma_ep* ep = untouched<rpma_ep>();
    REFUSED(rpma_ep_listen, (nullptr, "127.0.0.1", "7", &ep));
    REFUSED(rpma_ep_listen, (peer, "127.0.0.1", "7", nullptr));
    expect_untouched(ep, "rpma_ep_listen()");
    REFUSED(rpma_ep_next_conn_req, (nullptr, nullptr, &request));
    expect_untouched(request, "rpma_ep_next_conn_req()");
    int fd = 0;
    REFUSED(rpma_ep_get_fd, (nullptr, &fd));
    REFUSED(rpma_ep_shutdown, (nullptr));
    rpma_conn* conn = untouched<rpma_conn>();
    REFUSED(rpma_conn_req_connect, (nullptr, nullptr, &conn));
    request = nullptr;
    REFUSED(rpma_conn_req_connect, (&request, nullptr, &conn));
    expect_untouched(conn, "rpma_conn_req_connect()");
    REFUSED(rpma_conn_req_delete, (nullptr));
    REFUSED(rpma_conn_req_recv, (nullptr, nullptr, 0, 0, nullptr));
    rpma_conn_private_data data{};
    REFUSED(rpma_conn_req_get_private_data, (nullptr, &data));
    REFUSED(rpma_conn_get_private_data, (nullptr, &data));
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    REFUSED(rpma_conn_next_event, (nullptr, &event));
    REFUSED(rpma_conn_get_event_fd, (nullptr, &fd));
    REFUSED(rpma_conn_disconnect, (nullptr));
    REFUSED(rpma_conn_delete, (nullptr));
    rpma_cq* cq = untouched<rpma_cq>();
    REFUSED(rpma_conn_get_cq, (nullptr, &cq));
    REFUSED(rpma_conn_get_rcq, (nullptr, &cq));
    REFUSED(rpma_conn_wait, (nullptr, 0, &cq, nullptr));
    REFUSED(rpma_srq_get_rcq, (nullptr, &cq));
    expect_untouched(cq, "rpma_conn_get_cq()");
    std::uint32_t number = 0;
    REFUSED(rpma_conn_get_qp_num, (nullptr, &number));
    REFUSED(rpma_conn_get_compl_fd, (nullptr, &fd));
    REFUSED(rpma_conn_apply_remote_peer_cfg, (nullptr, nullptr));
    ibv_wc wc;
    REFUSED(rpma_cq_get_fd, (nullptr, &fd));
    REFUSED(rpma_cq_wait, (nullptr));
    REFUSED(rpma_cq_get_wc, (nullptr, 1, &wc, nullptr));
    rpma_srq* srq = untouched<rpma_srq>();
    REFUSED(rpma_srq_new, (nullptr, nullptr, &srq));
    expect_untouched(srq, "rpma_srq_new()");
    REFUSED(rpma_srq_recv, (nullptr, nullptr, 0, 0, nullptr));
    REFUSED(rpma_srq_delete, (nullptr));
}

void operations() {
    const int always = RPMA_F_COMPLETION_ALWAYS;
    const char word[8] = {};
    REFUSED(rpma_read, (nullptr, nullptr, 0, nullptr, 0, 0, always, nullptr));
    REFUSED(rpma_write, (nullptr, nullptr, 0, nullptr, 0, 0, always, nullptr));
    REFUSED(rpma_write_with_imm, (nullptr, nullptr, 0, nullptr, 0, 0, always, 1, nullptr));
    REFUSED(rpma_atomic_write, (nullptr, nullptr, 0, word, always, nullptr));
    REFUSED(rpma_flush, (nullptr, nullptr, 0, 0, RPMA_FLUSH_TYPE_VISIBILITY, always, nullptr));
    REFUSED(rpma_send, (nullptr, nullptr, 0, 0, always, nullptr));
    REFUSED(rpma_send_with_imm, (nullptr, nullptr, 0, 0, always, 1, nullptr));
    REFUSED(rpma_recv, (nullptr, nullptr, 0, 0, nullptr));
}

void others() {
    rpma_peer* peer = untouched<rpma_peer>();
    ibv_context* context = untouched<ibv_context>();
    int can = 0;
    REFUSED(rpma_utils_get_ibv_context, (nullptr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    REFUSED(rpma_utils_get_ibv_context, ("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, nullptr));
    REFUSED(rpma_utils_get_ibv_context,
            ("127.0.0.1", std::bit_cast<rpma_util_ibv_context_type>(2U), &context));
    expect_untouched(context, "rpma_utils_get_ibv_context()");
    REFUSED(rpma_utils_ibv_context_is_odp_capable, (nullptr, &can));
    REFUSED(rpma_peer_new, (nullptr, &peer));
    expect_untouched(peer, "rpma_peer_new()");
    REFUSED(rpma_peer_delete, (nullptr));
    rpma_log_level level = RPMA_LOG_DISABLED;
    REFUSED(rpma_log_get_threshold, (RPMA_LOG_THRESHOLD_MAX, &level));
    REFUSED(rpma_log_get_threshold, (RPMA_LOG_THRESHOLD, nullptr));
    REFUSED(rpma_log_set_threshold, (RPMA_LOG_THRESHOLD_MAX, level));
    REFUSED(rpma_log_set_threshold, (RPMA_LOG_THRESHOLD, std::bit_cast<rpma_log_level>(6)));
}

// Above the threshold nothing is said.
void thresholds() {
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
    rpma_conn_disconnect(nullptr);
    if (!g_lines.empty()) {
        complain("rpma_log_set_threshold()", "a line came in spite of RPMA_LOG_DISABLED");
    }
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
}

} // namespace

int main() {
    rpma_log_set_function(note);
    ibv_context* context = nullptr;
    rpma_peer* peer = nullptr;
    if (rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context) != 0 ||
        rpma_peer_new(context, &peer) != 0) {
        std::fprintf(stderr, "no peer at 127.0.0.1\n");
        return 1;
    }
    configurations();
    memory(peer);
    connections(peer);
    operations();
    others();
    thresholds();
    if (rpma_peer_delete(&peer) != 0) {
        complain("rpma_peer_delete()", "something has kept the peer");
    }
    std::printf("%d failures\n", g_failures);
    return g_failures == 0 ? 0 : 1;
}
