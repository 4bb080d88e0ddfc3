// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// As fi_calls, of FI_EP_RDM: tagged messages between two endpoints in one thread.
//
//   rdm_calls PROVIDER ADDRESS messages BURST COUNT
//
//   COUNT tagged messages of 64 bytes, in bursts of so many, each into a receive of its tag that
//   was posted before. Progress is manual, the threading level FI_THREAD_DOMAIN; each end has a
//   domain of its own, as processes would have.
//   RDM_CALLS_PEERS: endpoints that the receiver has had a message of before, besides (0).
//   RDM_CALLS_ADDRESSES: addresses of nobody that its vector has, before all others (0). What a
//   first message takes does not grow with it:
//     valgrind --tool=callgrind --toggle-collect='*RdmEndpoint::at_address*' ...
//
// Prints COUNT, and how often a completion was asked for in vain.
#include "bursts.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <vector>

namespace {

constexpr std::size_t kSize = 64;
constexpr std::size_t kQueue = 128;

ssize_t ok(ssize_t rc, const char* call) {
    if (rc < 0) {
        std::fprintf(stderr, "rdm_calls: %s: %s\n", call, fi_strerror(static_cast<int>(-rc)));
        std::exit(1);
    }
    return rc;
}

fi_info* find(const char* provider, const char* address) {
    fi_info* const hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = ::strdup(provider);
    fi_info* list = nullptr;
    ok(fi_getinfo(FI_VERSION(1, 17), address, "0", FI_SOURCE, hints, &list), "fi_getinfo");
    fi_freeinfo(hints);
    fi_info* found = nullptr;
    for (fi_info* each = list; each && !found; each = each->next) {
        if (std::strcmp(each->fabric_attr->prov_name, provider) == 0) {
            found = fi_dupinfo(each);
        }
    }
    fi_freeinfo(list);
    ok(found ? 0 : -FI_ENODATA, "fi_getinfo");
    return found;
}

struct Node {
    Node(fid_fabric* fabric, fi_info* info) {
        ok(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
        fi_av_attr vector{};
        vector.type = FI_AV_TABLE;
        ok(fi_av_open(domain, &vector, &av, nullptr), "fi_av_open");
        fi_cq_attr attr{};
        attr.format = FI_CQ_FORMAT_TAGGED;
        attr.wait_obj = FI_WAIT_NONE;
        attr.size = 4 * kQueue;
        ok(fi_cq_open(domain, &attr, &cq, nullptr), "fi_cq_open");
        ok(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
        ok(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
        ok(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        ok(fi_enable(ep), "fi_enable");
    }
    ~Node() {
        fi_close(&ep->fid);
        fi_close(&cq->fid);
        fi_close(&av->fid);
        fi_close(&domain->fid);
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    fi_addr_t know(const Node& other) {
        std::array<char, 256> name{};
        std::size_t size = name.size();
        ok(fi_getname(&other.ep->fid, name.data(), &size), "fi_getname");
        fi_addr_t number = 0;
        ok(fi_av_insert(av, name.data(), 1, &number, 0, nullptr) == 1 ? 0 : -FI_EINVAL,
           "fi_av_insert");
        return number;
    }
    void know_nobody(int number) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(0xc0000200U + static_cast<unsigned>(number % 256));
        address.sin_port = htons(static_cast<std::uint16_t>(1 + number / 256));
        ok(fi_av_insert(av, &address, 1, nullptr, 0, nullptr) == 1 ? 0 : -FI_EINVAL,
           "fi_av_insert");
    }
    fid_domain* domain = nullptr;
    fid_av* av = nullptr;
    fid_cq* cq = nullptr;
    fid_ep* ep = nullptr;
};

class Ends {
  public:
    Ends(const char* provider, const char* address) : info_(find(provider, address)) {
        ok(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        sender_ = std::make_unique<Node>(fabric_, info_);
        receiver_ = std::make_unique<Node>(fabric_, info_);
        for (int i = number_in("RDM_CALLS_ADDRESSES"); i > 0; --i) {
            receiver_->know_nobody(i);
        }
        for (int i = number_in("RDM_CALLS_PEERS"); i > 0; --i) {
            others_.push_back(std::make_unique<Node>(fabric_, info_));
            greet(*others_.back(), others_.back()->know(*receiver_));
        }
        receiver_->know(*sender_);
        there_ = sender_->know(*receiver_);
        greet(*sender_, there_);
    }
    ~Ends() {
        others_.clear();
        sender_.reset();
        receiver_.reset();
        fi_close(&fabric_->fid);
        fi_freeinfo(info_);
    }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;

    [[gnu::noinline]] void post_receives(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_trecv(receiver_->ep, bytes_.data() + kSize, kSize, nullptr, FI_ADDR_UNSPEC, i, 0,
                        context(i)),
               "fi_trecv");
        }
    }
    [[gnu::noinline]] void post_sends(std::uint64_t burst) {
        for (std::uint64_t i = 0; i < burst; ++i) {
            ok(fi_tsend(sender_->ep, bytes_.data(), kSize, nullptr, there_, i, context(i)),
               "fi_tsend");
        }
    }
    void post_writes(std::uint64_t) { ok(-FI_ENOSYS, "writes"); }
    [[gnu::noinline]] void take_received(std::uint64_t burst) { take(receiver_->cq, burst); }
    [[gnu::noinline]] void take_sent(std::uint64_t burst) { take(sender_->cq, burst); }
    std::uint64_t in_vain() const { return in_vain_; }

  private:
    static int number_in(const char* variable) {
        const char* const value = std::getenv(variable);
        return value ? std::atoi(value) : 0;
    }
    void* context(std::uint64_t i) { return &contexts_[i % contexts_.size()]; }
    // The first message, with which the connection comes.
    void greet(Node& from, fi_addr_t to) {
        ok(fi_trecv(receiver_->ep, bytes_.data(), 1, nullptr, FI_ADDR_UNSPEC, 1000, 0, context(0)),
           "fi_trecv");
        ssize_t sent = 0;
        do {
            sent = fi_tsend(from.ep, bytes_.data(), 1, nullptr, to, 1000, context(1));
            fi_cq_read(receiver_->cq, nullptr, 0);
            fi_cq_read(from.cq, nullptr, 0);
        } while (sent == -FI_EAGAIN);
        ok(sent, "fi_tsend");
        fi_cq_tagged_entry entry;
        int left = 2;
        while (left > 0) {
            for (fid_cq* const cq : {from.cq, receiver_->cq}) {
                left -= fi_cq_read(cq, &entry, 1) == 1 ? 1 : 0;
            }
        }
    }
    void take(fid_cq* cq, std::uint64_t burst) {
        fi_cq_tagged_entry entry;
        for (std::uint64_t i = 0; i < burst;) {
            const ssize_t got = fi_cq_read(cq, &entry, 1);
            if (got == 1) {
                ++i;
            } else {
                ok(got == -FI_EAGAIN ? 0 : got, "fi_cq_read");
                ++in_vain_;
                if (cq == receiver_->cq) {
                    fi_cq_read(sender_->cq, nullptr, 0);
                }
            }
        }
    }

    std::array<char, 2 * kSize> bytes_{};
    std::array<fi_context2, kQueue> contexts_{};
    std::uint64_t in_vain_ = 0;
    fi_info* info_;
    fid_fabric* fabric_ = nullptr;
    fi_addr_t there_ = 0;
    std::unique_ptr<Node> sender_;
    std::unique_ptr<Node> receiver_;
    std::vector<std::unique_ptr<Node>> others_;
};

} // namespace

int main(int argc, char** argv) {
    dat::bench::Bursts bursts;
    if (!bursts.parse(argc - 3, argv + 3, kQueue)) {
        std::fputs("usage: rdm_calls PROVIDER ADDRESS messages BURST COUNT\n", stderr);
        return 2;
    }
    Ends ends(argv[1], argv[2]);
    bursts.run(ends);
    return 0;
}
