// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// fi_* calls for callgrind: both ends of a connection of any provider with FI_EP_MSG in one
// thread, each operation posted by itself and its completion taken by itself. Scripts start it
// and subtract two lengths of run.
//
//   fi_calls PROVIDER ADDRESS messages|writes BURST COUNT [SETTLE]
//
//   COUNT messages or RDMA writes of 64 bytes, in bursts of so many; SETTLE: microseconds from
//   the posts of a burst until its completions are asked for (0).
//   FI_CALLS_THREADING in the environment: safe (FI_THREAD_SAFE); else FI_THREAD_DOMAIN.
//
// Prints COUNT, and how often a completion was asked for in vain. May include: libfabric, std.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <string_view>
#include <unistd.h>

namespace {

constexpr std::size_t kSize = 64;
constexpr std::size_t kQueue = 128;
constexpr std::uint64_t kFlags = FI_TRANSMIT_COMPLETE | FI_COMPLETION; // as uDAPL's (U-61)

ssize_t ok(ssize_t rc, const char* call) {
    if (rc < 0) {
        std::fprintf(stderr, "fi_calls: %s: %s\n", call, fi_strerror(static_cast<int>(-rc)));
        std::exit(1);
    }
    return rc;
}

class Ends {
  public:
    Ends(const char* provider, const char* address) {
        fi_info* const hints = fi_allocinfo();
        hints->caps = FI_MSG | FI_RMA;
        hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
        hints->ep_attr->type = FI_EP_MSG;
        const char* const threading = std::getenv("FI_CALLS_THREADING");
        hints->domain_attr->threading =
            threading && std::string_view(threading) == "safe" ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
        hints->domain_attr->mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
        hints->tx_attr->op_flags = kFlags;
        hints->fabric_attr->prov_name = ::strdup(provider);
        ok(fi_getinfo(FI_VERSION(1, 17), address, "0", FI_SOURCE, hints, &info_), "fi_getinfo");
        ok(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        ok(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
        ok(fi_mr_reg(domain_, bytes_.data(), bytes_.size(),
                     FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE, 0, 1, 0, &region_, nullptr),
           "fi_mr_reg");
        desc_ = fi_mr_desc(region_);
        there_ = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0
                     ? reinterpret_cast<std::uintptr_t>(bytes_.data()) + kSize
                     : kSize;
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_NONE;
        ok(fi_eq_open(fabric_, &eq_attr, &eq_, nullptr), "fi_eq_open");
        for (fid_cq** const cq : {&sent_, &received_}) {
            fi_cq_attr attr{};
            attr.format = FI_CQ_FORMAT_DATA;
            attr.wait_obj = FI_WAIT_NONE;
            attr.size = 4 * kQueue;
            ok(fi_cq_open(domain_, &attr, cq, nullptr), "fi_cq_open");
        }
        connect();
        fi_freeinfo(hints);
    }
    ~Ends() {
        fi_close(&client_->fid);
        fi_close(&server_->fid);
        fi_close(&listener_->fid);
        fi_close(&sent_->fid);
        fi_close(&received_->fid);
        fi_close(&region_->fid);
        fi_close(&domain_->fid);
        fi_close(&eq_->fid);
        fi_close(&fabric_->fid);
        fi_freeinfo(info_);
    }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;

    [[gnu::noinline]] void post_receives(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_recv(server_, bytes_.data() + kSize, kSize, desc_, FI_ADDR_UNSPEC, context(i)),
               "fi_recv");
        }
    }
    [[gnu::noinline]] void post_sends(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_send(client_, bytes_.data(), kSize, desc_, FI_ADDR_UNSPEC, context(i)),
               "fi_send");
        }
    }
    [[gnu::noinline]] void post_writes(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_write(client_, bytes_.data(), kSize, desc_, FI_ADDR_UNSPEC, there_,
                        fi_mr_key(region_), context(i)),
               "fi_write");
        }
    }
    [[gnu::noinline]] void take_received(std::uint64_t burst) { take(received_, burst); }
    [[gnu::noinline]] void take_sent(std::uint64_t burst) { take(sent_, burst); }
    std::uint64_t in_vain() const { return in_vain_; }

  private:
    void* context(std::uint64_t i) { return &contexts_[i % contexts_.size()]; }
    fi_eq_cm_entry event(std::uint32_t wanted) {
        fi_eq_cm_entry entry{};
        std::uint32_t type = 0;
        ssize_t got = -FI_EAGAIN;
        while (got == -FI_EAGAIN) {
            got = fi_eq_read(eq_, &type, &entry, sizeof entry, 0);
            if (got == -FI_EAGAIN) {
                fi_cq_read(received_, nullptr, 0);
            }
        }
        ok(type == wanted ? got : -FI_EOTHER, "a connection event");
        return entry;
    }
    void open(fi_info* info, fid_ep*& ep) {
        ok(fi_endpoint(domain_, info, &ep, nullptr), "fi_endpoint");
        ok(fi_ep_bind(ep, &eq_->fid, 0), "fi_ep_bind");
        ok(fi_ep_bind(ep, &sent_->fid, FI_TRANSMIT), "fi_ep_bind");
        ok(fi_ep_bind(ep, &received_->fid, FI_RECV), "fi_ep_bind");
        ok(fi_enable(ep), "fi_enable");
    }
    void connect() {
        ok(fi_passive_ep(fabric_, info_, &listener_, nullptr), "fi_passive_ep");
        ok(fi_pep_bind(listener_, &eq_->fid, 0), "fi_pep_bind");
        ok(fi_listen(listener_), "fi_listen");
        std::array<char, 256> name{};
        std::size_t size = name.size();
        ok(fi_getname(&listener_->fid, name.data(), &size), "fi_getname");
        fi_info* const hints = fi_dupinfo(info_);
        std::free(hints->src_addr);
        hints->src_addr = nullptr;
        hints->src_addrlen = 0;
        hints->dest_addr = std::malloc(size);
        std::memcpy(hints->dest_addr, name.data(), size);
        hints->dest_addrlen = size;
        fi_info* to_peer = nullptr;
        ok(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &to_peer), "fi_getinfo");
        open(to_peer, client_);
        ok(fi_connect(client_, name.data(), nullptr, 0), "fi_connect");
        const fi_eq_cm_entry request = event(FI_CONNREQ);
        request.info->tx_attr->op_flags = kFlags;
        open(request.info, server_);
        fi_freeinfo(request.info);
        ok(fi_accept(server_, nullptr, 0), "fi_accept");
        event(FI_CONNECTED);
        event(FI_CONNECTED);
        fi_freeinfo(to_peer);
        fi_freeinfo(hints);
    }
    void take(fid_cq* cq, std::uint64_t burst) {
        fi_cq_data_entry entry;
        for (std::uint64_t i = 0; i < burst;) {
            const ssize_t got = fi_cq_read(cq, &entry, 1);
            if (got == 1) {
                ++i;
            } else {
                ok(got == -FI_EAGAIN ? 0 : got, "fi_cq_read");
                ++in_vain_;
            }
        }
    }

    std::array<char, 2 * kSize> bytes_{};
    std::array<fi_context2, kQueue> contexts_{};
    std::uint64_t in_vain_ = 0;
    std::uint64_t there_ = 0;
    void* desc_ = nullptr;
    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_mr* region_ = nullptr;
    fid_eq* eq_ = nullptr;
    fid_cq* sent_ = nullptr;
    fid_cq* received_ = nullptr;
    fid_pep* listener_ = nullptr;
    fid_ep* server_ = nullptr;
    fid_ep* client_ = nullptr;
};

} // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc >= 6 ? argv[3] : "";
    const std::uint64_t burst = argc >= 6 ? std::strtoull(argv[4], nullptr, 0) : 0;
    const std::uint64_t count = argc >= 6 ? std::strtoull(argv[5], nullptr, 0) : 0;
    const auto settle = static_cast<useconds_t>(argc >= 7 ? std::atoi(argv[6]) : 0);
    if ((mode != "messages" && mode != "writes") || burst < 1 || burst > kQueue || count < 1) {
        std::fputs("usage: fi_calls PROVIDER ADDRESS messages|writes BURST COUNT [SETTLE]\n",
                   stderr);
        return 2;
    }
    Ends ends(argv[1], argv[2]);
    for (std::uint64_t done = 0; done < count; done += burst) {
        if (mode == "messages") {
            ends.post_receives(burst);
            ends.post_sends(burst);
        } else {
            ends.post_writes(burst);
        }
        if (settle > 0) {
            usleep(settle);
        }
        if (mode == "messages") {
            ends.take_received(burst);
        }
        ends.take_sent(burst);
    }
    std::printf("%llu, %llu in vain\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(ends.in_vain()));
    return 0;
}
