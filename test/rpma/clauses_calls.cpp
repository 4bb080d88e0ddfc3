// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls that need no connection: values, descriptors, configurations, arguments.
#include "suite.h"

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstring>

using namespace dat::test;

namespace {

constexpr int kAlwaysFlag = RPMA_F_COMPLETION_ALWAYS;

int logged = 0;
rpma_log_level logged_level = RPMA_LOG_DISABLED;

// A value that is none.
rpma_util_ibv_context_type context_type(int value) {
    return static_cast<rpma_util_ibv_context_type>(value);
}

void count_lines(rpma_log_level level, const char* file, int, const char* function,
                 const char* format, ...) {
    // Called from the caller's thread.
    (void)file;
    (void)function;
    need(format && *format, "a line without text");
    ++logged;
    logged_level = level;
}

} // namespace

// RP-22.
RPMA_TEST(rpma_values, of_errors__are_those_of_the_header) {
    cr_assert_eq(RPMA_E_UNKNOWN, -100000);
    cr_assert_eq(RPMA_E_NOSUPP, -100001);
    cr_assert_eq(RPMA_E_PROVIDER, -100002);
    cr_assert_eq(RPMA_E_NOMEM, -100003);
    cr_assert_eq(RPMA_E_INVAL, -100004);
    cr_assert_eq(RPMA_E_NO_COMPLETION, -100005);
    cr_assert_eq(RPMA_E_NO_EVENT, -100006);
    cr_assert_eq(RPMA_E_AGAIN, -100007);
    cr_assert_eq(RPMA_E_SHARED_CHANNEL, -100008);
    cr_assert_eq(RPMA_E_NOT_SHARED_CHNL, -100009);
    cr_assert_str_eq(rpma_err_2str(0), "Success");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_UNKNOWN), "Unknown error");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_NOSUPP), "Not supported");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_PROVIDER), "Provider error occurred");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_NOMEM), "Out of memory");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_INVAL), "Invalid argument");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_NO_COMPLETION), "No next completion available");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_NO_EVENT), "No next event available");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_AGAIN), "Temporary error, try again");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_SHARED_CHANNEL), "Completion channel is shared");
    cr_assert_str_eq(rpma_err_2str(RPMA_E_NOT_SHARED_CHNL), "Completion channel is not shared");
    cr_assert_str_eq(rpma_err_2str(-99999), "Unknown error");
    cr_assert_eq(sizeof(ibv_wc), 48);
}

// RP-22: what is set is what is read, and what cannot be is refused with nothing changed.
RPMA_TEST(rpma_values, of_a_configuration__are_kept) {
    Config config;
    int timeout = 0;
    std::uint32_t size = 0;
    bool shared = false;
    EXPECT_OK(rpma_conn_cfg_set_timeout(config, 77));
    EXPECT_OK(rpma_conn_cfg_get_timeout(config, &timeout));
    cr_assert_eq(timeout, 77);
    EXPECT_INVAL(rpma_conn_cfg_set_timeout(config, -1));
    EXPECT_OK(rpma_conn_cfg_get_timeout(config, &timeout));
    cr_assert_eq(timeout, 77);
    EXPECT_OK(rpma_conn_cfg_set_cq_size(config, 31));
    EXPECT_OK(rpma_conn_cfg_get_cq_size(config, &size));
    cr_assert_eq(size, 31);
    EXPECT_OK(rpma_conn_cfg_set_rcq_size(config, 32));
    EXPECT_OK(rpma_conn_cfg_get_rcq_size(config, &size));
    cr_assert_eq(size, 32);
    EXPECT_OK(rpma_conn_cfg_set_sq_size(config, 33));
    EXPECT_OK(rpma_conn_cfg_get_sq_size(config, &size));
    cr_assert_eq(size, 33);
    EXPECT_OK(rpma_conn_cfg_set_rq_size(config, 34));
    EXPECT_OK(rpma_conn_cfg_get_rq_size(config, &size));
    cr_assert_eq(size, 34);
    EXPECT_OK(rpma_conn_cfg_set_compl_channel(config, true));
    EXPECT_OK(rpma_conn_cfg_get_compl_channel(config, &shared));
    cr_assert(shared);
    EXPECT_INVAL(rpma_conn_cfg_new(nullptr));
    EXPECT_INVAL(rpma_conn_cfg_delete(nullptr));
    EXPECT_INVAL(rpma_conn_cfg_set_cq_size(nullptr, 1));
    EXPECT_INVAL(rpma_conn_cfg_get_cq_size(config, nullptr));
    EXPECT_INVAL(rpma_conn_cfg_set_srq(config, nullptr));
}

// RP-22: the descriptor of memory is 21 bytes, in little-endian order.
RPMA_TEST(rpma_values, of_a_memory_descriptor__are_those_of_the_wire) {
    Peer peer;
    constexpr int kUsage = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    Region region(peer, 8192, kUsage);
    const std::vector<char> text = region.descriptor();
    cr_assert_eq(text.size(), 21);
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::memcpy(&address, text.data(), 8);
    std::memcpy(&length, text.data() + 8, 8);
    cr_assert_eq(address, reinterpret_cast<std::uintptr_t>(region.bytes));
    cr_assert_eq(length, 8192);
    cr_assert_eq(text[20], kUsage);
    std::size_t size = 0;
    int flush = 0;
    void* pointer = nullptr;
    EXPECT_OK(rpma_mr_remote_get_size(region.remote, &size));
    cr_assert_eq(size, 8192);
    EXPECT_OK(rpma_mr_remote_get_flush_type(region.remote, &flush));
    cr_assert_eq(flush, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
    EXPECT_OK(rpma_mr_get_size(region.mr, &size));
    cr_assert_eq(size, 8192);
    EXPECT_OK(rpma_mr_get_ptr(region.mr, &pointer));
    cr_assert_eq(pointer, region.bytes);
}

// RP-22: a descriptor comes from a peer, so it is looked at.
RPMA_TEST(rpma_values, of_a_bad_descriptor__are_refused) {
    std::array<char, 30> text{};
    rpma_mr_remote* remote = nullptr;
    text[8] = 1;
    text[20] = RPMA_MR_USAGE_READ_SRC;
    EXPECT_INVAL(rpma_mr_remote_from_descriptor(text.data(), 20, &remote));
    EXPECT_INVAL(rpma_mr_remote_from_descriptor(text.data(), 0, &remote));
    EXPECT_INVAL(rpma_mr_remote_from_descriptor(nullptr, 21, &remote));
    EXPECT_INVAL(rpma_mr_remote_from_descriptor(text.data(), 21, nullptr));
    cr_assert_null(remote);
    EXPECT_OK(rpma_mr_remote_from_descriptor(text.data(), 30, &remote));
    EXPECT_OK(rpma_mr_remote_delete(&remote));
    text[20] = 0;
    EXPECT_INVAL(rpma_mr_remote_from_descriptor(text.data(), 21, &remote));
    cr_assert_null(remote);
}

// RP-22: the configuration of a peer travels as one byte.
RPMA_TEST(rpma_values, of_a_peer_configuration__are_those_of_the_wire) {
    rpma_peer_cfg* config = nullptr;
    rpma_peer_cfg* other = nullptr;
    std::size_t size = 0;
    EXPECT_OK(rpma_peer_cfg_new(&config));
    EXPECT_OK(rpma_peer_cfg_get_descriptor_size(config, &size));
    cr_assert_eq(size, 1);
    for (const bool direct : {true, false}) {
        unsigned char byte = 0xFF;
        bool got = !direct;
        EXPECT_OK(rpma_peer_cfg_set_direct_write_to_pmem(config, direct));
        EXPECT_OK(rpma_peer_cfg_get_descriptor(config, &byte));
        cr_assert_eq(byte, direct ? 1 : 0);
        EXPECT_OK(rpma_peer_cfg_from_descriptor(&byte, 1, &other));
        EXPECT_OK(rpma_peer_cfg_get_direct_write_to_pmem(other, &got));
        cr_assert_eq(got, direct);
        EXPECT_OK(rpma_peer_cfg_delete(&other));
    }
    unsigned char byte = 1;
    EXPECT_INVAL(rpma_peer_cfg_from_descriptor(&byte, 0, &other));
    EXPECT_INVAL(rpma_peer_cfg_from_descriptor(nullptr, 1, &other));
    EXPECT_OK(rpma_peer_cfg_delete(&config));
    cr_assert_null(config);
}

// RP-22: arguments that no registration can have.
RPMA_TEST(rpma_values, of_a_bad_registration__are_refused) {
    Peer peer;
    alignas(4096) static std::array<char, 4096> memory;
    rpma_mr_local* mr = nullptr;
    EXPECT_INVAL(rpma_mr_reg(nullptr, memory.data(), 4096, RPMA_MR_USAGE_SEND, &mr));
    EXPECT_INVAL(rpma_mr_reg(peer, nullptr, 4096, RPMA_MR_USAGE_SEND, &mr));
    EXPECT_INVAL(rpma_mr_reg(peer, memory.data(), 0, RPMA_MR_USAGE_SEND, &mr));
    EXPECT_INVAL(rpma_mr_reg(peer, memory.data(), 4096, 0, &mr));
    EXPECT_INVAL(rpma_mr_reg(peer, memory.data(), 4096, 256, &mr));
    EXPECT_INVAL(rpma_mr_reg(peer, memory.data(), 4096, RPMA_MR_USAGE_SEND, nullptr));
    cr_assert_null(mr);
}

// RP-22: the arguments of connections, queues and waits.
RPMA_TEST(rpma_values, of_missing_arguments__are_refused) {
    Pair pair;
    Peer peer;
    rpma_conn_req* request = nullptr;
    rpma_ep* ep = nullptr;
    rpma_cq* cq = nullptr;
    rpma_srq* srq = nullptr;
    int fd = -1;
    int got = 0;
    std::uint32_t number = 0;
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    rpma_conn_private_data data{};
    ibv_wc wc[2];
    ibv_context* context = nullptr;
    rpma_peer* other = nullptr;
    const char* const address = place().address;
    EXPECT_INVAL(rpma_utils_get_ibv_context(nullptr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    EXPECT_INVAL(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, nullptr));
    EXPECT_INVAL(rpma_utils_get_ibv_context(address, context_type(2), &context));
    EXPECT_INVAL(rpma_utils_ibv_context_is_odp_capable(nullptr, &fd));
    EXPECT_INVAL(rpma_utils_ibv_context_is_odp_capable(peer.context, nullptr));
    EXPECT_INVAL(rpma_peer_new(nullptr, &other));
    EXPECT_INVAL(rpma_peer_new(peer.context, nullptr));
    EXPECT_INVAL(rpma_conn_req_new(nullptr, address, "7", nullptr, &request));
    EXPECT_INVAL(rpma_conn_req_new(peer, nullptr, "7", nullptr, &request));
    EXPECT_INVAL(rpma_conn_req_new(peer, address, nullptr, nullptr, &request));
    EXPECT_INVAL(rpma_conn_req_new(peer, address, "7", nullptr, nullptr));
    EXPECT_INVAL(rpma_conn_req_recv(nullptr, pair.mine.mr, 0, 8, nullptr));
    EXPECT_INVAL(rpma_conn_req_get_private_data(nullptr, &data));
    EXPECT_INVAL(rpma_ep_listen(nullptr, address, "7", &ep));
    EXPECT_INVAL(rpma_ep_listen(peer, nullptr, "7", &ep));
    EXPECT_INVAL(rpma_ep_listen(peer, address, nullptr, &ep));
    EXPECT_INVAL(rpma_ep_listen(peer, address, "7", nullptr));
    EXPECT_INVAL(rpma_ep_get_fd(nullptr, &fd));
    EXPECT_INVAL(rpma_ep_get_fd(pair.listener.it, nullptr));
    EXPECT_INVAL(rpma_ep_next_conn_req(nullptr, nullptr, &request));
    EXPECT_INVAL(rpma_ep_next_conn_req(pair.listener.it, nullptr, nullptr));
    EXPECT_INVAL(rpma_conn_next_event(nullptr, &event));
    EXPECT_INVAL(rpma_conn_next_event(pair.a, nullptr));
    EXPECT_INVAL(rpma_conn_get_event_fd(nullptr, &fd));
    EXPECT_INVAL(rpma_conn_get_event_fd(pair.a, nullptr));
    EXPECT_INVAL(rpma_conn_get_private_data(nullptr, &data));
    EXPECT_INVAL(rpma_conn_get_private_data(pair.a, nullptr));
    EXPECT_INVAL(rpma_conn_apply_remote_peer_cfg(pair.a, nullptr));
    EXPECT_INVAL(rpma_conn_get_qp_num(nullptr, &number));
    EXPECT_INVAL(rpma_conn_get_qp_num(pair.a, nullptr));
    EXPECT_INVAL(rpma_conn_get_cq(nullptr, &cq));
    EXPECT_INVAL(rpma_conn_get_cq(pair.a, nullptr));
    EXPECT_INVAL(rpma_conn_get_rcq(nullptr, &cq));
    EXPECT_INVAL(rpma_conn_get_rcq(pair.a, nullptr));
    EXPECT_INVAL(rpma_conn_disconnect(nullptr));
    EXPECT_INVAL(rpma_conn_get_compl_fd(nullptr, &fd));
    EXPECT_INVAL(rpma_conn_wait(nullptr, 0, &cq, nullptr));
    EXPECT_INVAL(rpma_conn_wait(pair.a, 0, nullptr, nullptr));
    EXPECT_INVAL(rpma_cq_get_fd(nullptr, &fd));
    EXPECT_INVAL(rpma_cq_get_fd(pair.a.cq(), nullptr));
    EXPECT_INVAL(rpma_cq_wait(nullptr));
    EXPECT_INVAL(rpma_cq_get_wc(nullptr, 1, wc, &got));
    EXPECT_INVAL(rpma_cq_get_wc(pair.a.cq(), 0, wc, &got));
    EXPECT_INVAL(rpma_cq_get_wc(pair.a.cq(), -1, wc, &got));
    EXPECT_INVAL(rpma_cq_get_wc(pair.a.cq(), 1, nullptr, &got));
    EXPECT_INVAL(rpma_cq_get_wc(pair.a.cq(), 2, wc, nullptr));
    EXPECT_INVAL(rpma_srq_new(nullptr, nullptr, &srq));
    EXPECT_INVAL(rpma_srq_new(peer, nullptr, nullptr));
    EXPECT_INVAL(rpma_srq_recv(nullptr, pair.mine.mr, 0, 8, nullptr));
    EXPECT_INVAL(rpma_srq_get_rcq(nullptr, &cq));
    EXPECT_INVAL(rpma_recv(nullptr, pair.mine.mr, 0, 8, nullptr));
    EXPECT_INVAL(rpma_send(nullptr, pair.mine.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, nullptr));
    EXPECT_INVAL(rpma_flush(pair.a, nullptr, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
                            RPMA_F_COMPLETION_ALWAYS, nullptr));
    EXPECT_INVAL(rpma_atomic_write(pair.a, pair.theirs.remote, 0, nullptr, RPMA_F_COMPLETION_ALWAYS,
                                   nullptr));
    cr_assert(context == nullptr && other == nullptr && request == nullptr && ep == nullptr &&
              cq == nullptr && srq == nullptr && fd == -1 && got == 0);
}

// RP-1: a context is there without a device too, and has a device with a name.
RPMA_TEST(rpma_context, of_a_local_and_of_a_remote_address__is_the_same_library) {
    ibv_context* local = nullptr;
    ibv_context* remote = nullptr;
    int odp = -1;
    EXPECT_OK(rpma_utils_get_ibv_context(place().address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &local));
    EXPECT_OK(rpma_utils_get_ibv_context(place().address, RPMA_UTIL_IBV_CONTEXT_REMOTE, &remote));
    cr_assert_not_null(local);
    cr_assert_not_null(remote);
    cr_assert_not_null(local->device);
    cr_assert_neq(local->device->name[0], '\0');
    EXPECT_OK(rpma_utils_ibv_context_is_odp_capable(local, &odp));
    cr_assert_eq(odp, 0);
}

// RP-1.
RPMA_TEST(rpma_context, of_no_address__is_refused) {
    ibv_context* context = nullptr;
    EXPECT_RESULT(rpma_utils_get_ibv_context("no address", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context),
                  RPMA_E_PROVIDER);
    cr_assert_null(context);
}

// RP-22: what is refused is said in a line, to the program's own function where it set one.
RPMA_TEST(rpma_log, of_a_refused_call__goes_to_the_programs_function) {
    rpma_log_level level = RPMA_LOG_DISABLED;
    EXPECT_OK(rpma_log_set_function(count_lines));
    EXPECT_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING));
    EXPECT_OK(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
    cr_assert_eq(level, RPMA_LOG_LEVEL_WARNING);
    std::array<char, 21> text{};
    rpma_mr_remote* remote = nullptr;
    EXPECT_INVAL(rpma_mr_remote_from_descriptor(text.data(), 5, &remote));
    cr_assert_eq(logged, 1, "%d lines", logged);
    cr_assert_leq(logged_level, RPMA_LOG_LEVEL_ERROR);
    EXPECT_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
    EXPECT_INVAL(rpma_mr_remote_from_descriptor(text.data(), 5, &remote));
    cr_assert_eq(logged, 1);
    EXPECT_INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_MAX, RPMA_LOG_LEVEL_ERROR));
    EXPECT_INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, static_cast<rpma_log_level>(6)));
    EXPECT_INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_MAX, &level));
    EXPECT_INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, nullptr));
    EXPECT_OK(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
}

// RP-22: each, in one line. (Of the genuine library only some are.)
RPMA_TEST(rpma_log, of_each_refused_call__is_one_line) {
    Pair pair;
    Config config;
    const char word[8] = {};
    rpma_mr_local* mr = nullptr;
    rpma_cq* cq = nullptr;
    rpma_conn_req* request = nullptr;
    ibv_wc wc;
    int fd = -1;
    EXPECT_OK(rpma_log_set_function(count_lines));
    EXPECT_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR));
#define EXPECT_LINE(call, wanted)                                                                  \
    do {                                                                                           \
        logged = 0;                                                                                \
        EXPECT_RESULT(call, wanted);                                                               \
        cr_assert_eq(logged, 1, "%s: %d lines", #call, logged);                                    \
    } while (false)
    EXPECT_LINE(rpma_conn_cfg_set_timeout(config, -1), RPMA_E_INVAL);
    EXPECT_LINE(rpma_mr_reg(pair.peer, pair.mine.bytes, 4096, 256, &mr), RPMA_E_INVAL);
    EXPECT_LINE(rpma_mr_reg(pair.peer, pair.mine.bytes, 0, 1, &mr), RPMA_E_INVAL);
    EXPECT_LINE(rpma_conn_req_new(pair.peer, nullptr, "7", nullptr, &request), RPMA_E_INVAL);
    EXPECT_LINE(rpma_conn_req_new(pair.peer, "no address", "7", nullptr, &request),
                RPMA_E_PROVIDER);
    EXPECT_LINE(rpma_write(pair.a, pair.theirs.remote, 0, pair.mine.mr, 0, 8, 0, nullptr),
                RPMA_E_INVAL);
    EXPECT_LINE(rpma_atomic_write(pair.a, pair.theirs.remote, 4, word, kAlwaysFlag, nullptr),
                RPMA_E_INVAL);
    EXPECT_LINE(rpma_flush(pair.a, pair.theirs.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT,
                           kAlwaysFlag, nullptr),
                RPMA_E_NOSUPP);
    EXPECT_LINE(rpma_recv(pair.a, nullptr, 0, 8, nullptr), RPMA_E_INVAL);
    EXPECT_LINE(rpma_cq_get_wc(pair.a.cq(), 0, &wc, nullptr), RPMA_E_INVAL);
    EXPECT_LINE(rpma_conn_wait(pair.a, 0, &cq, nullptr), RPMA_E_NOT_SHARED_CHNL);
    EXPECT_LINE(rpma_conn_get_compl_fd(pair.a, &fd), RPMA_E_NOT_SHARED_CHNL);
    EXPECT_LINE(rpma_conn_disconnect(nullptr), RPMA_E_INVAL);
#undef EXPECT_LINE
    EXPECT_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
}

// Advice to the kernel is for devices that page on demand.
RPMA_TEST(rpma_advise, of_memory__is_carried_out_or_not_supported) {
    Peer peer;
    Region region(peer);
    const int result = rpma_mr_advise(region.mr, 0, 4096, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                                      IBV_ADVISE_MR_FLAG_FLUSH);
    cr_assert(result == 0 || result == RPMA_E_NOSUPP, "%s", rpma_err_2str(result));
}
