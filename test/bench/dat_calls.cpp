// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_* calls for callgrind: both ends of a connection in one thread, over loopback.
// dat_calls.sh starts it and subtracts two lengths of run.
//
//   dat_calls messages BURST COUNT   COUNT messages of 64 bytes, in bursts of so many sends
//                                    behind as many receives, each taken from its EVD
//   dat_calls writes BURST COUNT     the same with RDMA writes, which nobody receives
//   dat_calls empty 1 COUNT          COUNT times both EVDs while nothing is there
#include "dat_ends.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr DAT_SEG_LENGTH kSize = 64;
constexpr DAT_COUNT kQueue = 256;

class Ends : bench::Ia {
  public:
    Ends() {
        DAT_REGION_DESCRIPTION region{};
        DAT_RMR_CONTEXT at_peer = 0;
        region.for_va = bytes_.data();
        CHECK(dat_lmr_create, ia, DAT_MEM_TYPE_VIRTUAL, region, bytes_.size(), pz,
              DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr_, &context_, &at_peer, nullptr, nullptr);
        connections_ = evd(kQueue, DAT_EVD_CONNECTION_FLAG);
        sent_ = evd(kQueue, DAT_EVD_DTO_FLAG);
        received_ = evd(kQueue, DAT_EVD_DTO_FLAG);
        DAT_EP_ATTR attr{};
        attr.service_type = DAT_SERVICE_TYPE_RC;
        attr.max_recv_dtos = kQueue;
        attr.max_request_dtos = kQueue;
        attr.max_recv_iov = 1;
        attr.max_request_iov = 1;
        CHECK(dat_ep_create, ia, pz, received_, sent_, connections_, &attr, &server_);
        CHECK(dat_ep_create, ia, pz, received_, sent_, connections_, &attr, &client_);
        const auto first = reinterpret_cast<std::uintptr_t>(bytes_.data());
        from_ = {first, kSize, context_};
        into_ = {first + kSize, kSize, context_};
        there_.virtual_address = first + kSize;
        there_.segment_length = kSize;
        there_.rmr_context = at_peer;
        connect();
    }

    void message(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            CHECK(dat_ep_post_recv, server_, 1, &into_, cookie(i), DAT_COMPLETION_DEFAULT_FLAG);
        }
        for (std::uint64_t i = 0; i < burst; ++i) {
            CHECK(dat_ep_post_send, client_, 1, &from_, cookie(i), DAT_COMPLETION_DEFAULT_FLAG);
        }
        for (const DAT_EVD_HANDLE evd : {received_, sent_}) {
            for (std::uint64_t i = 0; i < burst; ++i) {
                take(evd, i);
            }
        }
    }
    void write(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            CHECK(dat_ep_post_rdma_write, client_, 1, &from_, cookie(i), &there_,
                  DAT_COMPLETION_DEFAULT_FLAG);
        }
        for (std::uint64_t i = 0; i < burst; ++i) {
            take(sent_, i);
        }
    }
    void empty() {
        DAT_EVENT event;
        for (const DAT_EVD_HANDLE evd : {received_, sent_}) {
            if (dat_evd_dequeue(evd, &event) != DAT_QUEUE_EMPTY) {
                bench::check(DAT_INTERNAL_ERROR, "an EVD that is to be empty");
            }
        }
    }

  private:
    static DAT_DTO_COOKIE cookie(std::uint64_t number) {
        DAT_DTO_COOKIE cookie;
        cookie.as_64 = number;
        return cookie;
    }
    void connect() {
        bench::connect(client_, *this, server_);
        for (int i = 0; i < 2; ++i) {
            if (bench::wait_for(connections_).event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
                bench::check(DAT_INTERNAL_ERROR, "the connection");
            }
        }
    }
    static void take(DAT_EVD_HANDLE evd, std::uint64_t expected) {
        DAT_EVENT event;
        DAT_RETURN code = DAT_QUEUE_EMPTY;
        while (code == DAT_QUEUE_EMPTY) {
            code = dat_evd_dequeue(evd, &event);
        }
        bench::check(code, "dat_evd_dequeue");
        const DAT_DTO_COMPLETION_EVENT_DATA& dto = event.event_data.dto_completion_event_data;
        if (dto.status != DAT_DTO_SUCCESS || dto.user_cookie.as_64 != expected) {
            bench::check(DAT_INTERNAL_ERROR, "an operation");
        }
    }

    std::array<char, 2 * kSize> bytes_{};
    DAT_LMR_HANDLE lmr_ = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT context_ = 0;
    DAT_EVD_HANDLE connections_ = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE sent_ = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE received_ = DAT_HANDLE_NULL;
    DAT_EP_HANDLE server_ = DAT_HANDLE_NULL;
    DAT_EP_HANDLE client_ = DAT_HANDLE_NULL;
    DAT_LMR_TRIPLET from_{};
    DAT_LMR_TRIPLET into_{};
    DAT_RMR_TRIPLET there_{};
};

} // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc == 4 ? argv[1] : "";
    const std::uint64_t burst = argc == 4 ? std::strtoull(argv[2], nullptr, 0) : 0;
    const std::uint64_t count = argc == 4 ? std::strtoull(argv[3], nullptr, 0) : 0;
    const bool known = mode == "messages" || mode == "writes" || mode == "empty";
    if (!known || burst < 1 || burst > kQueue || count < 1) {
        std::fputs("usage: dat_calls messages|writes BURST COUNT | dat_calls empty 1 COUNT\n",
                   stderr);
        return 2;
    }
    Ends ends;
    for (std::uint64_t done = 0; done < count; done += burst) {
        if (mode == "messages") {
            ends.message(burst);
        } else if (mode == "writes") {
            ends.write(burst);
        } else {
            ends.empty();
        }
    }
    std::printf("%llu\n", static_cast<unsigned long long>(count));
    return 0;
}
