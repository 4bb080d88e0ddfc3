// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rpma_* calls for callgrind and the clock: both ends of a connection in one thread, each operation
// posted by itself and its completion taken by itself. It runs with any librpma; rpma_calls.sh
// starts it.
//
//   rpma_calls ADDRESS messages|writes BURST COUNT [SETTLE]
//
//   as of fi_calls
//
// Prints COUNT, how often a completion was asked for in vain, and how long an operation took.
#include "bursts.h"

#include <librpma.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace {

constexpr std::size_t kSize = 64;
constexpr std::uint32_t kQueue = 128;

void ok(int rc, const char* call) {
    if (rc != 0) {
        std::fprintf(stderr, "rpma_calls: %s: %s\n", call, rpma_err_2str(rc));
        std::exit(1);
    }
}
#define OK(call) ok(call, #call)

class Ends {
  public:
    explicit Ends(const char* address) {
        ibv_context* context = nullptr;
        OK(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
        OK(rpma_peer_new(context, &peer_));
        OK(rpma_mr_reg(peer_, bytes_.data(), bytes_.size(),
                       RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                           RPMA_MR_USAGE_RECV,
                       &here_));
        std::array<char, 64> descriptor{};
        std::size_t size = 0;
        OK(rpma_mr_get_descriptor_size(here_, &size));
        OK(rpma_mr_get_descriptor(here_, descriptor.data()));
        OK(rpma_mr_remote_from_descriptor(descriptor.data(), size, &there_));
        rpma_conn_cfg* config = nullptr;
        OK(rpma_conn_cfg_new(&config));
        OK(rpma_conn_cfg_set_cq_size(config, 2 * kQueue));
        OK(rpma_conn_cfg_set_sq_size(config, kQueue));
        OK(rpma_conn_cfg_set_rq_size(config, kQueue));
        connect(address, config);
        OK(rpma_conn_cfg_delete(&config));
        OK(rpma_conn_get_cq(sender_, &sent_));
        OK(rpma_conn_get_cq(receiver_, &received_));
    }
    ~Ends() {
        rpma_conn_disconnect(sender_);
        rpma_conn_delete(&receiver_);
        rpma_conn_delete(&sender_);
        rpma_mr_remote_delete(&there_);
        rpma_mr_dereg(&here_);
        rpma_peer_delete(&peer_);
    }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;

    [[gnu::noinline]] void post_receives(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            OK(rpma_recv(receiver_, here_, kSize, kSize, nullptr));
        }
    }
    [[gnu::noinline]] void post_sends(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            OK(rpma_send(sender_, here_, 0, kSize, RPMA_F_COMPLETION_ALWAYS, nullptr));
        }
    }
    [[gnu::noinline]] void post_writes(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            OK(rpma_write(sender_, there_, kSize, here_, 0, kSize, RPMA_F_COMPLETION_ALWAYS,
                          nullptr));
        }
    }
    [[gnu::noinline]] void take_received(std::uint64_t burst) { take(received_, burst); }
    [[gnu::noinline]] void take_sent(std::uint64_t burst) { take(sent_, burst); }
    std::uint64_t in_vain() const { return in_vain_; }

  private:
    void connect(const char* address, const rpma_conn_cfg* config) {
        std::array<char, 8> port{};
        rpma_ep* listener = nullptr;
        for (int tries = 0; !listener && tries < 100; ++tries) { // another one may have the port
            std::snprintf(port.data(), port.size(), "%d", 20000 + (getpid() + tries) % 10000);
            rpma_ep_listen(peer_, address, port.data(), &listener);
        }
        rpma_conn_req* request = nullptr;
        OK(rpma_conn_req_new(peer_, address, port.data(), config, &request));
        OK(rpma_conn_req_connect(&request, nullptr, &sender_));
        OK(rpma_ep_next_conn_req(listener, config, &request));
        OK(rpma_conn_req_connect(&request, nullptr, &receiver_));
        for (rpma_conn* const each : {sender_, receiver_}) {
            rpma_conn_event event = RPMA_CONN_UNDEFINED;
            OK(rpma_conn_next_event(each, &event));
            ok(event == RPMA_CONN_ESTABLISHED ? 0 : RPMA_E_UNKNOWN, "the connection");
        }
        OK(rpma_ep_shutdown(&listener));
    }
    void take(rpma_cq* cq, std::uint64_t burst) {
        ibv_wc wc;
        for (std::uint64_t i = 0; i < burst;) {
            const int rc = rpma_cq_get_wc(cq, 1, &wc, nullptr);
            if (rc == 0) {
                ok(wc.status == IBV_WC_SUCCESS ? 0 : RPMA_E_UNKNOWN, "an operation");
                ++i;
            } else {
                ok(rc == RPMA_E_NO_COMPLETION ? 0 : rc, "rpma_cq_get_wc");
                ++in_vain_;
            }
        }
    }

    alignas(4096) std::array<char, 4096> bytes_{};
    std::uint64_t in_vain_ = 0;
    rpma_peer* peer_ = nullptr;
    rpma_mr_local* here_ = nullptr;
    rpma_mr_remote* there_ = nullptr;
    rpma_conn* sender_ = nullptr;
    rpma_conn* receiver_ = nullptr;
    rpma_cq* sent_ = nullptr;
    rpma_cq* received_ = nullptr;
};

} // namespace

int main(int argc, char** argv) {
    dat::bench::Bursts bursts;
    if (!bursts.parse(argc - 2, argv + 2, kQueue)) {
        std::fputs("usage: rpma_calls ADDRESS messages|writes BURST COUNT [SETTLE]\n", stderr);
        return 2;
    }
    Ends ends(argv[1]);
    const auto begin = std::chrono::steady_clock::now();
    bursts.run(ends);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.3f us\n", took.count() / static_cast<double>(bursts.count));
    return 0;
}
