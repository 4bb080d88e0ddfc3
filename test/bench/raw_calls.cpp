// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// As fi_calls, but without libfabric: librdmacm and libibverbs alone, as a program that needs
// nothing else would call them. What it takes is the least that a layer above can take.
//
//   raw_calls ADDRESS messages|writes BURST COUNT [SETTLE]
//
// ADDRESS is of an RDMA device; the rest is fi_calls'. The functions that are counted have
// the same names there.
#include "bursts.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

namespace {

constexpr std::uint32_t kSize = 64;
constexpr std::uint32_t kQueue = 128;
constexpr int kSoon_ms = 10'000;

void ok(bool right, const char* call) {
    if (!right) {
        std::fprintf(stderr, "raw_calls: %s: %s\n", call, std::strerror(errno));
        std::exit(1);
    }
}

class Ends {
  public:
    explicit Ends(const char* address) {
        rdma_addrinfo hints{};
        hints.ai_flags = RAI_PASSIVE;
        hints.ai_port_space = RDMA_PS_TCP;
        rdma_addrinfo* here = nullptr;
        ok(rdma_getaddrinfo(address, nullptr, &hints, &here) == 0, "rdma_getaddrinfo");
        channel_ = rdma_create_event_channel();
        ok(channel_ != nullptr, "rdma_create_event_channel");
        ok(rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
        ok(rdma_bind_addr(listener_, here->ai_src_addr) == 0, "rdma_bind_addr");
        ok(rdma_listen(listener_, 1) == 0, "rdma_listen");
        ok(rdma_create_id(channel_, &client_, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
        sockaddr* const to = rdma_get_local_addr(listener_);
        ok(rdma_resolve_addr(client_, nullptr, to, kSoon_ms) == 0, "rdma_resolve_addr");
        event(RDMA_CM_EVENT_ADDR_RESOLVED);
        ok(rdma_resolve_route(client_, kSoon_ms) == 0, "rdma_resolve_route");
        event(RDMA_CM_EVENT_ROUTE_RESOLVED);
        pd_ = ibv_alloc_pd(client_->verbs);
        ok(pd_ != nullptr, "ibv_alloc_pd");
        region_ = ibv_reg_mr(pd_, bytes_.data(), bytes_.size(),
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        ok(region_ != nullptr, "ibv_reg_mr");
        for (ibv_cq** const cq : {&sent_, &received_}) {
            *cq = ibv_create_cq(client_->verbs, 4 * kQueue, nullptr, nullptr, 0);
            ok(*cq != nullptr, "ibv_create_cq");
        }
        connect();
        rdma_freeaddrinfo(here);
    }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;
    ~Ends() {
        rdma_destroy_ep(client_);
        rdma_destroy_ep(server_);
        rdma_destroy_id(listener_);
        ibv_destroy_cq(sent_);
        ibv_destroy_cq(received_);
        ibv_dereg_mr(region_);
        ibv_dealloc_pd(pd_);
        rdma_destroy_event_channel(channel_);
    }

    [[gnu::noinline]] void post_receives(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ibv_sge segment = at(kSize);
            ibv_recv_wr wr{};
            ibv_recv_wr* bad = nullptr;
            wr.wr_id = i;
            wr.sg_list = &segment;
            wr.num_sge = 1;
            ok(ibv_post_recv(server_->qp, &wr, &bad) == 0, "ibv_post_recv");
        }
    }
    [[gnu::noinline]] void post_sends(std::uint64_t burst) { post(burst, IBV_WR_SEND); }
    [[gnu::noinline]] void post_writes(std::uint64_t burst) { post(burst, IBV_WR_RDMA_WRITE); }
    [[gnu::noinline]] void take_received(std::uint64_t burst) { take(received_, burst); }
    [[gnu::noinline]] void take_sent(std::uint64_t burst) { take(sent_, burst); }
    std::uint64_t in_vain() const { return in_vain_; }

  private:
    ibv_sge at(std::uint64_t offset) const {
        return {reinterpret_cast<std::uintptr_t>(bytes_.data()) + offset, kSize, region_->lkey};
    }
    void post(std::uint64_t burst, ibv_wr_opcode opcode) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ibv_sge segment = at(0);
            ibv_send_wr wr{};
            ibv_send_wr* bad = nullptr;
            wr.wr_id = i;
            wr.sg_list = &segment;
            wr.num_sge = 1;
            wr.opcode = opcode;
            wr.send_flags = flags_;
            wr.wr.rdma.remote_addr = at(kSize).addr;
            wr.wr.rdma.rkey = region_->rkey;
            ok(ibv_post_send(client_->qp, &wr, &bad) == 0, "ibv_post_send");
        }
    }
    void take(ibv_cq* cq, std::uint64_t burst) {
        ibv_wc wc;
        for (std::uint64_t i = 0; i < burst;) {
            const int got = ibv_poll_cq(cq, 1, &wc);
            if (got == 1) {
                ok(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
                ++i;
            } else {
                ok(got == 0, "ibv_poll_cq");
                ++in_vain_;
            }
        }
    }
    rdma_cm_id* event(rdma_cm_event_type wanted) {
        rdma_cm_event* event = nullptr;
        ok(rdma_get_cm_event(channel_, &event) == 0, "rdma_get_cm_event");
        ok(event->event == wanted, rdma_event_str(event->event));
        rdma_cm_id* const id = event->id;
        rdma_ack_cm_event(event);
        return id;
    }
    void make_pair(rdma_cm_id* id) {
        ibv_qp_init_attr attr{};
        attr.send_cq = sent_;
        attr.recv_cq = received_;
        attr.qp_type = IBV_QPT_RC;
        attr.cap = {kQueue, kQueue, 1, 1, kSize};
        flags_ = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        if (rdma_create_qp(id, pd_, &attr) != 0) { // siw has no inline data
            attr.cap.max_inline_data = 0;
            flags_ = IBV_SEND_SIGNALED;
            ok(rdma_create_qp(id, pd_, &attr) == 0, "rdma_create_qp");
        }
    }
    void connect() {
        rdma_conn_param param{};
        param.responder_resources = param.initiator_depth = 1;
        param.retry_count = param.rnr_retry_count = 7;
        make_pair(client_);
        ok(rdma_connect(client_, &param) == 0, "rdma_connect");
        server_ = event(RDMA_CM_EVENT_CONNECT_REQUEST);
        make_pair(server_);
        ok(rdma_accept(server_, &param) == 0, "rdma_accept");
        event(RDMA_CM_EVENT_ESTABLISHED);
        event(RDMA_CM_EVENT_ESTABLISHED);
    }

    std::array<char, 2 * kSize> bytes_{};
    std::uint64_t in_vain_ = 0;
    unsigned flags_ = 0;
    rdma_event_channel* channel_ = nullptr;
    rdma_cm_id* listener_ = nullptr;
    rdma_cm_id* client_ = nullptr;
    rdma_cm_id* server_ = nullptr;
    ibv_pd* pd_ = nullptr;
    ibv_mr* region_ = nullptr;
    ibv_cq* sent_ = nullptr;
    ibv_cq* received_ = nullptr;
};

} // namespace

int main(int argc, char** argv) {
    dat::bench::Bursts bursts;
    if (!bursts.parse(argc - 2, argv + 2, kQueue)) {
        std::fputs("usage: raw_calls ADDRESS messages|writes BURST COUNT [SETTLE]\n", stderr);
        return 2;
    }
    Ends ends(argv[1]);
    bursts.run(ends);
    return 0;
}
