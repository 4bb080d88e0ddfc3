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
#include "rdm_ends.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <netinet/in.h>
#include <vector>

namespace {

using dat::bench::ok;

constexpr std::size_t kSize = 64;
constexpr std::size_t kQueue = 128;

struct Node : dat::bench::RdmDomain, dat::bench::RdmEnd {
    explicit Node(const dat::bench::RdmFabric& its)
        : RdmDomain(its, 4 * kQueue), RdmEnd(static_cast<RdmDomain&>(*this), its.info) {}
    using RdmDomain::know;
    fi_addr_t know(const Node& other) { return know(other.name().data()); }
    void know_nobody(int number) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(0xc0000200U + static_cast<unsigned>(number % 256));
        address.sin_port = htons(static_cast<std::uint16_t>(1 + number / 256));
        know(&address);
    }
};

class Ends {
  public:
    Ends(const char* provider, const char* address) : fabric_(provider, address) {
        sender_ = std::make_unique<Node>(fabric_);
        receiver_ = std::make_unique<Node>(fabric_);
        for (int i = number_in("RDM_CALLS_ADDRESSES"); i > 0; --i) {
            receiver_->know_nobody(i);
        }
        for (int i = number_in("RDM_CALLS_PEERS"); i > 0; --i) {
            others_.push_back(std::make_unique<Node>(fabric_));
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
    dat::bench::RdmFabric fabric_;
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
