// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls that need no peer: right, and with what is wrong in each argument.
#include "calls.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace dat::test::calls {
namespace {

// A value behind a call that gave one.
#define GIVES(call, variable)                                                                      \
    do {                                                                                           \
        if (CALL(call) == 0) {                                                                     \
            say(#call " gives", std::to_string(variable));                                         \
        }                                                                                          \
    } while (false)

void texts() {
    for (int error = 0; error >= RPMA_E_NOT_SHARED_CHNL - 1; error -= error == 0 ? 100'000 : 1) {
        say("rpma_err_2str(" + std::to_string(error) + ")", rpma_err_2str(error));
    }
    for (int event = -2; event < 6; ++event) {
        say("rpma_utils_conn_event_2str(" + std::to_string(event) + ")",
            rpma_utils_conn_event_2str(static_cast<rpma_conn_event>(event)));
    }
}

void connection_configuration() {
    rpma_conn_cfg* cfg = nullptr;
    int number = -7;
    std::uint32_t size = 7;
    bool shared = false;
    rpma_srq* srq = nullptr;
    CALL(rpma_conn_cfg_new(nullptr));
    CALL(rpma_conn_cfg_new(&cfg));
    GIVES(rpma_conn_cfg_get_timeout(cfg, &number), number);
    GIVES(rpma_conn_cfg_get_cq_size(cfg, &size), size);
    GIVES(rpma_conn_cfg_get_rcq_size(cfg, &size), size);
    GIVES(rpma_conn_cfg_get_sq_size(cfg, &size), size);
    GIVES(rpma_conn_cfg_get_rq_size(cfg, &size), size);
    GIVES(rpma_conn_cfg_get_compl_channel(cfg, &shared), shared);
    GIVES(rpma_conn_cfg_get_srq(cfg, &srq), srq != nullptr);
    CALL(rpma_conn_cfg_set_timeout(cfg, -1));
    CALL(rpma_conn_cfg_set_timeout(cfg, 0));
    CALL(rpma_conn_cfg_set_timeout(cfg, 5000));
    GIVES(rpma_conn_cfg_get_timeout(cfg, &number), number);
    CALL(rpma_conn_cfg_set_cq_size(cfg, 0));
    CALL(rpma_conn_cfg_set_cq_size(cfg, UINT32_MAX));
    GIVES(rpma_conn_cfg_get_cq_size(cfg, &size), size);
    CALL(rpma_conn_cfg_set_rcq_size(cfg, 3));
    GIVES(rpma_conn_cfg_get_rcq_size(cfg, &size), size);
    CALL(rpma_conn_cfg_set_sq_size(cfg, 4));
    GIVES(rpma_conn_cfg_get_sq_size(cfg, &size), size);
    CALL(rpma_conn_cfg_set_rq_size(cfg, 5));
    GIVES(rpma_conn_cfg_get_rq_size(cfg, &size), size);
    CALL(rpma_conn_cfg_set_compl_channel(cfg, true));
    GIVES(rpma_conn_cfg_get_compl_channel(cfg, &shared), shared);
    CALL(rpma_conn_cfg_set_srq(cfg, nullptr));
    CALL(rpma_conn_cfg_set_srq(nullptr, nullptr));
    CALL(rpma_conn_cfg_get_srq(cfg, nullptr));
    CALL(rpma_conn_cfg_get_srq(nullptr, &srq));
    CALL(rpma_conn_cfg_set_timeout(nullptr, 1));
    CALL(rpma_conn_cfg_get_timeout(nullptr, &number));
    CALL(rpma_conn_cfg_get_timeout(cfg, nullptr));
    CALL(rpma_conn_cfg_set_cq_size(nullptr, 1));
    CALL(rpma_conn_cfg_get_cq_size(nullptr, &size));
    CALL(rpma_conn_cfg_get_cq_size(cfg, nullptr));
    CALL(rpma_conn_cfg_set_rcq_size(nullptr, 1));
    CALL(rpma_conn_cfg_get_rcq_size(nullptr, &size));
    CALL(rpma_conn_cfg_get_rcq_size(cfg, nullptr));
    CALL(rpma_conn_cfg_set_sq_size(nullptr, 1));
    CALL(rpma_conn_cfg_get_sq_size(nullptr, &size));
    CALL(rpma_conn_cfg_get_sq_size(cfg, nullptr));
    CALL(rpma_conn_cfg_set_rq_size(nullptr, 1));
    CALL(rpma_conn_cfg_get_rq_size(nullptr, &size));
    CALL(rpma_conn_cfg_get_rq_size(cfg, nullptr));
    CALL(rpma_conn_cfg_set_compl_channel(nullptr, true));
    CALL(rpma_conn_cfg_get_compl_channel(nullptr, &shared));
    CALL(rpma_conn_cfg_get_compl_channel(cfg, nullptr));
    CALL(rpma_conn_cfg_delete(&cfg));
    CALL(rpma_conn_cfg_delete(&cfg));
    CALL(rpma_conn_cfg_delete(nullptr));
}

void other_configurations() {
    rpma_srq_cfg* of_srq = nullptr;
    std::uint32_t size = 7;
    CALL(rpma_srq_cfg_new(nullptr));
    CALL(rpma_srq_cfg_new(&of_srq));
    GIVES(rpma_srq_cfg_get_rq_size(of_srq, &size), size);
    GIVES(rpma_srq_cfg_get_rcq_size(of_srq, &size), size);
    CALL(rpma_srq_cfg_set_rq_size(of_srq, 0));
    GIVES(rpma_srq_cfg_get_rq_size(of_srq, &size), size);
    CALL(rpma_srq_cfg_set_rcq_size(of_srq, 9));
    GIVES(rpma_srq_cfg_get_rcq_size(of_srq, &size), size);
    CALL(rpma_srq_cfg_set_rq_size(nullptr, 1));
    CALL(rpma_srq_cfg_set_rcq_size(nullptr, 1));
    CALL(rpma_srq_cfg_get_rq_size(nullptr, &size));
    CALL(rpma_srq_cfg_get_rq_size(of_srq, nullptr));
    CALL(rpma_srq_cfg_get_rcq_size(nullptr, &size));
    CALL(rpma_srq_cfg_get_rcq_size(of_srq, nullptr));
    CALL(rpma_srq_cfg_delete(&of_srq));
    CALL(rpma_srq_cfg_delete(&of_srq));
    CALL(rpma_srq_cfg_delete(nullptr));

    rpma_peer_cfg* cfg = nullptr;
    rpma_peer_cfg* other = nullptr;
    bool direct = false;
    std::size_t length = 0;
    unsigned char byte = 9;
    CALL(rpma_peer_cfg_new(nullptr));
    CALL(rpma_peer_cfg_new(&cfg));
    GIVES(rpma_peer_cfg_get_direct_write_to_pmem(cfg, &direct), direct);
    GIVES(rpma_peer_cfg_get_descriptor_size(cfg, &length), length);
    GIVES(rpma_peer_cfg_get_descriptor(cfg, &byte), byte);
    CALL(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
    GIVES(rpma_peer_cfg_get_descriptor(cfg, &byte), byte);
    for (const int value : {0, 1, 2, 255}) {
        byte = static_cast<unsigned char>(value);
        if (CALL(rpma_peer_cfg_from_descriptor(&byte, 1, &other)) == 0) {
            GIVES(rpma_peer_cfg_get_direct_write_to_pmem(other, &direct), direct);
            CALL(rpma_peer_cfg_delete(&other));
        }
    }
    CALL(rpma_peer_cfg_from_descriptor(&byte, 0, &other));
    CALL(rpma_peer_cfg_from_descriptor(nullptr, 1, &other));
    CALL(rpma_peer_cfg_from_descriptor(&byte, 1, nullptr));
    CALL(rpma_peer_cfg_set_direct_write_to_pmem(nullptr, true));
    CALL(rpma_peer_cfg_get_direct_write_to_pmem(nullptr, &direct));
    CALL(rpma_peer_cfg_get_direct_write_to_pmem(cfg, nullptr));
    CALL(rpma_peer_cfg_get_descriptor(nullptr, &byte));
    CALL(rpma_peer_cfg_get_descriptor(cfg, nullptr));
    CALL(rpma_peer_cfg_get_descriptor_size(nullptr, &length));
    CALL(rpma_peer_cfg_get_descriptor_size(cfg, nullptr));
    CALL(rpma_peer_cfg_delete(&cfg));
    CALL(rpma_peer_cfg_delete(nullptr));
}

void remote_memory() {
    std::array<char, 24> text{};
    rpma_mr_remote* remote = nullptr;
    std::size_t size = 0;
    int flush = 0;
    text[9] = 2; // 512 bytes
    for (const int usage : {0, 1, 8, 24, 48, 255}) {
        text[20] = static_cast<char>(usage);
        if (CALL(rpma_mr_remote_from_descriptor(text.data(), 21, &remote)) == 0) {
            GIVES(rpma_mr_remote_get_size(remote, &size), size);
            GIVES(rpma_mr_remote_get_flush_type(remote, &flush), flush);
            CALL(rpma_mr_remote_get_size(remote, nullptr));
            CALL(rpma_mr_remote_get_flush_type(remote, nullptr));
            CALL(rpma_mr_remote_delete(&remote));
        }
    }
    CALL(rpma_mr_remote_from_descriptor(text.data(), 20, &remote));
    CALL(rpma_mr_remote_from_descriptor(nullptr, 21, &remote));
    CALL(rpma_mr_remote_from_descriptor(text.data(), 21, nullptr));
    CALL(rpma_mr_remote_get_size(nullptr, &size));
    CALL(rpma_mr_remote_get_flush_type(nullptr, &flush));
    CALL(rpma_mr_remote_delete(&remote));
    CALL(rpma_mr_remote_delete(nullptr));
}

void silent(rpma_log_level, const char*, int, const char*, const char*, ...) {}

void logs() {
    rpma_log_level level = RPMA_LOG_DISABLED;
    for (int i = -2; i < 7; ++i) {
        say("level", std::to_string(i));
        CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, static_cast<rpma_log_level>(i)));
        GIVES(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level), level);
    }
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_MAX, RPMA_LOG_LEVEL_ERROR));
    CALL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_MAX, &level));
    CALL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, nullptr));
    CALL(rpma_log_set_function(silent));
    CALL(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
}

void peers_and_memory() {
    const char* const address = place().address;
    ibv_context* context = nullptr;
    rpma_peer* peer = nullptr;
    rpma_mr_local* mr = nullptr;
    rpma_srq* srq = nullptr;
    rpma_cq* cq = nullptr;
    int odp = -1;
    std::size_t size = 0;
    void* pointer = nullptr;
    std::array<char, 21> text{};
    alignas(4096) static std::array<char, 8192> memory;
    CALL(rpma_utils_get_ibv_context(nullptr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    CALL(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, nullptr));
    CALL(rpma_utils_get_ibv_context("no address", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    CALL(rpma_utils_get_ibv_context("no address", RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    CALL(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    CALL(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    GIVES(rpma_utils_ibv_context_is_odp_capable(context, &odp), odp);
    CALL(rpma_utils_ibv_context_is_odp_capable(nullptr, &odp));
    CALL(rpma_utils_ibv_context_is_odp_capable(context, nullptr));
    CALL(rpma_peer_new(nullptr, &peer));
    CALL(rpma_peer_new(context, nullptr));
    CALL(rpma_peer_new(context, &peer));
    for (int usage = 0; usage <= 256; usage = usage == 0 ? 1 : usage * 2) {
        say("usage", std::to_string(usage));
        if (CALL(rpma_mr_reg(peer, memory.data(), 4096, usage, &mr)) == 0) {
            CALL(rpma_mr_dereg(&mr));
        }
    }
    CALL(rpma_mr_reg(nullptr, memory.data(), 4096, kAllUsage, &mr));
    CALL(rpma_mr_reg(peer, nullptr, 4096, kAllUsage, &mr));
    CALL(rpma_mr_reg(peer, memory.data(), 0, kAllUsage, &mr));
    CALL(rpma_mr_reg(peer, memory.data(), 4096, kAllUsage, nullptr));
    CALL(rpma_mr_reg(peer, memory.data() + 5, 100, kAllUsage, &mr));
    GIVES(rpma_mr_get_size(mr, &size), size);
    CALL(rpma_mr_get_ptr(mr, &pointer));
    say("the pointer", pointer == memory.data() + 5 ? "the same" : "another");
    GIVES(rpma_mr_get_descriptor_size(mr, &size), size);
    CALL(rpma_mr_get_descriptor(mr, text.data()));
    say("usage in the descriptor", std::to_string(static_cast<unsigned char>(text[20])));
    say("length in the descriptor", std::to_string(text[8]));
    CALL(rpma_mr_get_size(nullptr, &size));
    CALL(rpma_mr_get_size(mr, nullptr));
    CALL(rpma_mr_get_ptr(nullptr, &pointer));
    CALL(rpma_mr_get_ptr(mr, nullptr));
    CALL(rpma_mr_get_descriptor_size(nullptr, &size));
    CALL(rpma_mr_get_descriptor_size(mr, nullptr));
    CALL(rpma_mr_get_descriptor(nullptr, text.data()));
    CALL(rpma_mr_get_descriptor(mr, nullptr));
    CALL(rpma_mr_advise(mr, 0, 50, IBV_ADVISE_MR_ADVICE_PREFETCH, 0));
    CALL(rpma_mr_dereg(&mr));
    CALL(rpma_mr_dereg(nullptr));
    CALL(rpma_srq_new(nullptr, nullptr, &srq));
    CALL(rpma_srq_new(peer, nullptr, nullptr));
    CALL(rpma_srq_new(peer, nullptr, &srq));
    CALL(rpma_srq_get_rcq(srq, &cq));
    say("a queue of its own", cq ? "yes" : "no");
    CALL(rpma_srq_get_rcq(nullptr, &cq));
    CALL(rpma_srq_get_rcq(srq, nullptr));
    CALL(rpma_srq_recv(srq, nullptr, 0, 8, nullptr));
    CALL(rpma_srq_recv(srq, nullptr, 8, 0, nullptr));
    CALL(rpma_srq_recv(nullptr, nullptr, 0, 0, nullptr));
    CALL(rpma_srq_recv(srq, nullptr, 0, 0, nullptr));
    CALL(rpma_srq_delete(&srq));
    CALL(rpma_srq_delete(nullptr));
    CALL(rpma_mr_reg(peer, memory.data(), 4096, kAllUsage, &mr));
    CALL(rpma_peer_delete(&peer));
    say("the peer", peer ? "is there" : "is gone");
    CALL(rpma_mr_dereg(&mr));
    CALL(rpma_peer_delete(nullptr));
}

void endpoints_and_requests() {
    Peer peer;
    const char* const address = place().address;
    const std::string port = free_port();
    rpma_ep* ep = nullptr;
    rpma_ep* second = nullptr;
    rpma_conn_req* req = nullptr;
    rpma_conn* conn = nullptr;
    rpma_conn_private_data data{};
    int fd = -1;
    CALL(rpma_ep_listen(nullptr, address, port.c_str(), &ep));
    CALL(rpma_ep_listen(peer, nullptr, port.c_str(), &ep));
    CALL(rpma_ep_listen(peer, address, nullptr, &ep));
    CALL(rpma_ep_listen(peer, address, port.c_str(), nullptr));
    CALL(rpma_ep_listen(peer, "no address", port.c_str(), &ep));
    CALL(rpma_ep_listen(peer, address, "no port", &ep));
    CALL(rpma_ep_listen(peer, address, port.c_str(), &ep));
    CALL(rpma_ep_listen(peer, address, port.c_str(), &second));
    rpma_ep_shutdown(&second);
    CALL(rpma_ep_get_fd(nullptr, &fd));
    CALL(rpma_ep_get_fd(ep, nullptr));
    CALL(rpma_ep_get_fd(ep, &fd));
    set_nonblocking(fd);
    CALL(rpma_ep_next_conn_req(nullptr, nullptr, &req));
    CALL(rpma_ep_next_conn_req(ep, nullptr, nullptr));
    CALL(rpma_ep_next_conn_req(ep, nullptr, &req));
    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_ep_shutdown(nullptr));
    CALL(rpma_conn_req_new(nullptr, address, "7", nullptr, &req));
    CALL(rpma_conn_req_new(peer, nullptr, "7", nullptr, &req));
    CALL(rpma_conn_req_new(peer, address, nullptr, nullptr, &req));
    CALL(rpma_conn_req_new(peer, address, "7", nullptr, nullptr));
    CALL(rpma_conn_req_new(peer, "no address", "7", nullptr, &req));
    CALL(rpma_conn_req_new(peer, address, "no port", nullptr, &req));
    CALL(rpma_conn_req_new(peer, "255.255.255.254", "7", nullptr, &req));
    rpma_conn_req_delete(&req);
    CALL(rpma_conn_req_new(peer, address, "7", nullptr, &req));
    CALL(rpma_conn_req_get_private_data(nullptr, &data));
    CALL(rpma_conn_req_get_private_data(req, nullptr));
    CALL(rpma_conn_req_get_private_data(req, &data));
    say("of an outgoing request", data.ptr ? "data" : "none");
    CALL(rpma_conn_req_recv(nullptr, nullptr, 0, 0, nullptr));
    CALL(rpma_conn_req_recv(req, nullptr, 0, 0, nullptr));
    CALL(rpma_conn_req_connect(nullptr, nullptr, &conn));
    CALL(rpma_conn_req_connect(&req, nullptr, nullptr));
    say("the request", req ? "is there" : "is gone");
    CALL(rpma_conn_req_delete(&req));
    CALL(rpma_conn_req_delete(nullptr));
    NEED(rpma_conn_req_new(peer, address, "7", nullptr, &req));
    CALL(rpma_conn_req_delete(&req));
    char byte = 1;
    for (const rpma_conn_private_data bad :
         {rpma_conn_private_data{nullptr, 1}, rpma_conn_private_data{&byte, 0}}) {
        NEED(rpma_conn_req_new(peer, address, "7", nullptr, &req));
        CALL(rpma_conn_req_connect(&req, &bad, &conn));
        say("the request", req ? "is there" : "is gone");
    }
}

void null_connections() {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    rpma_conn_private_data data{};
    rpma_conn* conn = nullptr;
    rpma_cq* cq = nullptr;
    int number = 0;
    std::uint32_t qp = 0;
    ibv_wc wc;
    CALL(rpma_conn_next_event(nullptr, &event));
    CALL(rpma_conn_get_event_fd(nullptr, &number));
    CALL(rpma_conn_get_private_data(nullptr, &data));
    CALL(rpma_conn_apply_remote_peer_cfg(nullptr, nullptr));
    CALL(rpma_conn_get_qp_num(nullptr, &qp));
    CALL(rpma_conn_get_cq(nullptr, &cq));
    CALL(rpma_conn_get_rcq(nullptr, &cq));
    CALL(rpma_conn_disconnect(nullptr));
    CALL(rpma_conn_delete(nullptr));
    CALL(rpma_conn_delete(&conn));
    CALL(rpma_conn_get_compl_fd(nullptr, &number));
    CALL(rpma_conn_wait(nullptr, 0, &cq, nullptr));
    CALL(rpma_cq_get_fd(nullptr, &number));
    CALL(rpma_cq_wait(nullptr));
    CALL(rpma_cq_get_wc(nullptr, 1, &wc, nullptr));
    CALL(rpma_read(nullptr, nullptr, 0, nullptr, 0, 0, 3, nullptr));
    CALL(rpma_write(nullptr, nullptr, 0, nullptr, 0, 0, 3, nullptr));
    CALL(rpma_write_with_imm(nullptr, nullptr, 0, nullptr, 0, 0, 3, 0, nullptr));
    CALL(rpma_atomic_write(nullptr, nullptr, 0, "1234567", 3, nullptr));
    CALL(rpma_flush(nullptr, nullptr, 0, 0, RPMA_FLUSH_TYPE_VISIBILITY, 3, nullptr));
    CALL(rpma_send(nullptr, nullptr, 0, 0, 3, nullptr));
    CALL(rpma_send_with_imm(nullptr, nullptr, 0, 0, 3, 0, nullptr));
    CALL(rpma_recv(nullptr, nullptr, 0, 0, nullptr));
}

} // namespace

void without_peer(const Role& role) {
    begin(role, "texts");
    texts();
    begin(role, "connection configuration");
    connection_configuration();
    begin(role, "other configurations");
    other_configurations();
    begin(role, "remote memory");
    remote_memory();
    begin(role, "logs");
    logs();
    begin(role, "peers and memory");
    peers_and_memory();
    begin(role, "endpoints and requests");
    endpoints_and_requests();
    begin(role, "connections that are none");
    null_connections();
}

} // namespace dat::test::calls
