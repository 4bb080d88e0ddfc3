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
//   FI_CALLS_LEVEL: transmit (FI_TRANSMIT_COMPLETE, as uDAPL's, U-61); else the provider's own.
//   FI_CALLS_PROGRESS: manual (FI_PROGRESS_MANUAL: no thread of the provider); else its own.
//   FI_CALLS_DOMAINS: 2 (each end has a domain of its own, as processes would have, so that
//   asking for completions of one end moves the other's nothing); else both have one.
//   FI_CALLS_CONNECTIONS: so many between the two ends (1); each burst goes over the next one.
//
// Prints COUNT, how often a completion was asked for in vain, and what an operation took of the
// processor.
#include "bursts.h"

#include <array>
#include <cstddef>
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
#include <sys/resource.h>
#include <vector>

namespace {

constexpr std::size_t kSize = 64;
constexpr std::size_t kQueue = 128;

bool is_set(const char* variable, std::string_view value) {
    const char* const set = std::getenv(variable);
    return set && set == value;
}

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
        hints->domain_attr->threading =
            is_set("FI_CALLS_THREADING", "safe") ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
        if (manual_) {
            hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
            hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
        }
        hints->domain_attr->mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
        hints->tx_attr->op_flags = flags_;
        hints->fabric_attr->prov_name = ::strdup(provider);
        ok(fi_getinfo(FI_VERSION(1, 17), address, "0", FI_SOURCE, hints, &info_), "fi_getinfo");
        ok(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        ok(fi_domain(fabric_, info_, &sender_.domain, nullptr), "fi_domain");
        receiver_.domain = sender_.domain;
        if (is_set("FI_CALLS_DOMAINS", "2")) {
            ok(fi_domain(fabric_, info_, &receiver_.domain, nullptr), "fi_domain");
        }
        there_ = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0
                     ? reinterpret_cast<std::uintptr_t>(bytes_.data()) + kSize
                     : kSize;
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_NONE;
        ok(fi_eq_open(fabric_, &eq_attr, &eq_, nullptr), "fi_eq_open");
        std::uint64_t key = 0;
        for (End* const end : {&sender_, &receiver_}) {
            ok(fi_mr_reg(end->domain, bytes_.data(), bytes_.size(),
                         FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE, 0, ++key, 0, &end->region,
                         nullptr),
               "fi_mr_reg");
            end->desc = fi_mr_desc(end->region);
            fi_cq_attr attr{};
            attr.format = FI_CQ_FORMAT_DATA;
            attr.wait_obj = FI_WAIT_NONE;
            attr.size = 4 * kQueue;
            ok(fi_cq_open(end->domain, &attr, &end->cq, nullptr), "fi_cq_open");
        }
        connect();
        fi_freeinfo(hints);
    }
    ~Ends() {
        for (const End& end : {sender_, receiver_}) {
            for (fid_ep* const ep : end.eps) {
                fi_close(&ep->fid);
            }
            fi_close(&end.cq->fid);
            fi_close(&end.region->fid);
        }
        fi_close(&listener_->fid);
        fi_close(&sender_.domain->fid);
        if (receiver_.domain != sender_.domain) {
            fi_close(&receiver_.domain->fid);
        }
        fi_close(&eq_->fid);
        fi_close(&fabric_->fid);
        fi_freeinfo(info_);
    }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;

    [[gnu::noinline]] void post_receives(std::uint64_t burst) {
        next_ = next_ + 1 == sender_.eps.size() ? 0 : next_ + 1;
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_recv(receiver_.eps[next_], bytes_.data() + kSize, kSize, receiver_.desc,
                       FI_ADDR_UNSPEC, context(i)),
               "fi_recv");
        }
    }
    [[gnu::noinline]] void post_sends(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_send(sender_.eps[next_], bytes_.data(), kSize, sender_.desc, FI_ADDR_UNSPEC,
                       context(i)),
               "fi_send");
        }
    }
    [[gnu::noinline]] void post_writes(std::uint64_t burst) {
        next_ = next_ + 1 == sender_.eps.size() ? 0 : next_ + 1;
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_write(sender_.eps[next_], bytes_.data(), kSize, sender_.desc, FI_ADDR_UNSPEC,
                        there_, fi_mr_key(receiver_.region), context(i)),
               "fi_write");
        }
    }
    [[gnu::noinline]] void take_received(std::uint64_t burst) { take(receiver_, sender_, burst); }
    [[gnu::noinline]] void take_sent(std::uint64_t burst) { take(sender_, receiver_, burst); }
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
                fi_cq_read(sender_.cq, nullptr, 0);
                fi_cq_read(receiver_.cq, nullptr, 0);
            }
        }
        ok(type == wanted ? got : -FI_EOTHER, "a connection event");
        return entry;
    }
    struct End {
        fid_domain* domain = nullptr;
        fid_mr* region = nullptr;
        void* desc = nullptr;
        fid_cq* cq = nullptr;
        std::vector<fid_ep*> eps; // one of each connection
    };
    void open(fi_info* info, End& end) {
        fid_ep*& ep = end.eps.emplace_back();
        ok(fi_endpoint(end.domain, info, &ep, nullptr), "fi_endpoint");
        ok(fi_ep_bind(ep, &eq_->fid, 0), "fi_ep_bind");
        ok(fi_ep_bind(ep, &end.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
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
        const char* const wanted = std::getenv("FI_CALLS_CONNECTIONS");
        for (std::uint64_t i = wanted ? std::strtoull(wanted, nullptr, 0) : 1; i > 0; --i) {
            open(to_peer, sender_);
            ok(fi_connect(sender_.eps.back(), name.data(), nullptr, 0), "fi_connect");
            const fi_eq_cm_entry request = event(FI_CONNREQ);
            request.info->tx_attr->op_flags = flags_;
            open(request.info, receiver_);
            fi_freeinfo(request.info);
            ok(fi_accept(receiver_.eps.back(), nullptr, 0), "fi_accept");
            event(FI_CONNECTED);
            event(FI_CONNECTED);
        }
        fi_freeinfo(to_peer);
        fi_freeinfo(hints);
    }
    // Of `end`. What does not come may wait for a call in the other's domain, where nothing but the
    // program moves that.
    void take(const End& end, const End& other, std::uint64_t burst) {
        fi_cq_data_entry entry;
        for (std::uint64_t i = 0; i < burst;) {
            const ssize_t got = fi_cq_read(end.cq, &entry, 1);
            if (got == 1) {
                ++i;
            } else {
                ok(got == -FI_EAGAIN ? 0 : got, "fi_cq_read");
                ++in_vain_;
                if (manual_ && other.domain != end.domain) {
                    fi_cq_read(other.cq, nullptr, 0);
                }
            }
        }
    }

    const std::uint64_t flags_ =
        is_set("FI_CALLS_LEVEL", "transmit") ? FI_TRANSMIT_COMPLETE | FI_COMPLETION : FI_COMPLETION;
    const bool manual_ = is_set("FI_CALLS_PROGRESS", "manual");
    std::array<char, 2 * kSize> bytes_{};
    std::array<fi_context2, kQueue> contexts_{};
    std::uint64_t in_vain_ = 0;
    std::size_t next_ = 0; // connection
    std::uint64_t there_ = 0;
    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_eq* eq_ = nullptr;
    fid_pep* listener_ = nullptr;
    End sender_;
    End receiver_;
};

} // namespace

int main(int argc, char** argv) {
    dat::bench::Bursts bursts;
    if (!bursts.parse(argc - 3, argv + 3, kQueue)) {
        std::fputs("usage: fi_calls PROVIDER ADDRESS messages|writes BURST COUNT [SETTLE]\n",
                   stderr);
        return 2;
    }
    Ends ends(argv[1], argv[2]);
    const auto used = [](timeval rusage::*which) {
        rusage use{};
        ::getrusage(RUSAGE_SELF, &use);
        return static_cast<double>((use.*which).tv_sec) * 1e6 +
               static_cast<double>((use.*which).tv_usec);
    };
    const double user = used(&rusage::ru_utime);
    const double system = used(&rusage::ru_stime);
    bursts.run(ends);
    const auto count = static_cast<double>(bursts.count);
    std::printf("%.3f us user, %.3f us system\n", (used(&rusage::ru_utime) - user) / count,
                (used(&rusage::ru_stime) - system) / count);
    return 0;
}
