// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An FI_EP_RDM endpoint with its domain, queue and address vector, for the tests of the transport
// suite. Every node that exists is polled by each wait.
#ifndef DAT_TEST_TRANSPORT_RDM_H
#define DAT_TEST_TRANSPORT_RDM_H

#include "fixture.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace dat::test {

// One operation, named by its completion.
struct RdmOp {
    fi_context context{}; // first
    int completions = 0;
    int err = 0; // FI_E*; 0: it succeeded
    fi_cq_tagged_entry entry{};
    std::size_t olen = 0;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    std::string err_data; // of an error
    bool done() const { return completions > 0; }
    bool ok() const { return completions == 1 && err == 0; }
};

class RdmNode {
  public:
    struct Options {
        std::uint64_t caps =
            FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV;
        std::uint16_t port = 0;
        fi_threading threading = FI_THREAD_SAFE;
        std::uint64_t tx_op_flags = 0;
        fi_wait_obj wait = FI_WAIT_NONE;
        RdmNode* domain_of = nullptr; // shares fabric, domain, queue and vector with it
        bool counters = false;        // of sends, receives, writes and peers' reads
    };
    explicit RdmNode(const Transport& transport) : RdmNode(transport, Options()) {}
    RdmNode(const Transport& transport, const Options& options) : options_(options) {
        if (options.domain_of) {
            RdmNode& other = *options.domain_of;
            info_ = fi_dupinfo(other.info_);
            clear_port();
            domain = other.domain;
            cq = other.cq;
            av = other.av;
        } else {
            open_domain(transport);
        }
        DAT_MUST(fi_endpoint(domain, info_, &ep, nullptr));
        DAT_MUST(fi_ep_bind(ep, &av->fid, 0));
        DAT_MUST(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
        if (options.counters) {
            for (fid_cntr** counter : {&sent, &received, &written, &read_by_peers}) {
                DAT_MUST(fi_cntr_open(domain, nullptr, counter, nullptr));
            }
            DAT_MUST(fi_ep_bind(ep, &sent->fid, FI_SEND));
            DAT_MUST(fi_ep_bind(ep, &received->fid, FI_RECV));
            DAT_MUST(fi_ep_bind(ep, &written->fid, FI_WRITE));
            DAT_MUST(fi_ep_bind(ep, &read_by_peers->fid, FI_REMOTE_READ));
        }
        DAT_MUST(fi_enable(ep));
        all().push_back(this);
    }
    ~RdmNode() {
        close();
        if (!options_.domain_of) {
            DAT_MUST(fi_close(&cq->fid));
            DAT_MUST(fi_close(&av->fid));
            DAT_MUST(fi_close(&domain->fid));
            DAT_MUST(fi_close(&fabric_->fid));
        }
        fi_freeinfo(info_);
    }
    RdmNode(const RdmNode&) = delete;
    RdmNode& operator=(const RdmNode&) = delete;

    // What peers call memory of this domain at its beginning.
    std::uint64_t at(const void* memory) const {
        return (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0
                   ? reinterpret_cast<std::uintptr_t>(memory)
                   : 0;
    }

    // The endpoint alone. It may wait for its peers, which others than its caller have to move.
    void close() {
        if (ep) {
            std::erase(all(), this);
            std::atomic<bool> closed{false};
            int result = 0;
            std::thread closer([&] {
                result = fi_close(&ep->fid);
                closed = true;
            });
            while (!closed) {
                poll_all();
            }
            closer.join();
            DAT_MUST(result);
            ep = nullptr;
            for (fid_cntr* counter : {sent, received, written, read_by_peers}) {
                if (counter) {
                    DAT_MUST(fi_close(&counter->fid));
                }
            }
            poll();
        }
    }

    std::string address() const {
        std::string bytes(128, '\0');
        std::size_t size = bytes.size();
        DAT_MUST(fi_getname(&ep->fid, bytes.data(), &size));
        bytes.resize(size);
        return bytes;
    }
    std::uint16_t port() const {
        const std::string bytes = address();
        const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
        return static_cast<std::uint16_t>(at[2] << 8 | at[3]); // of both families
    }
    fi_addr_t know(const RdmNode& other) { return know(other.address()); }
    fi_addr_t know(const std::string& address) {
        fi_addr_t number = FI_ADDR_NOTAVAIL;
        DAT_REQUIRE(fi_av_insert(av, address.data(), 1, &number, 0, nullptr) == 1, "fi_av_insert");
        return number;
    }

    RdmOp& op() { return ops_.emplace_back(); }
    RdmOp& tsend(fi_addr_t to, std::uint64_t tag, const void* buf, std::size_t size) {
        RdmOp& posted = op();
        post([&] { return fi_tsend(ep, buf, size, nullptr, to, tag, &posted); });
        return posted;
    }
    RdmOp& trecv(std::uint64_t tag, void* buf, std::size_t size, std::uint64_t ignore = 0,
                 fi_addr_t from = FI_ADDR_UNSPEC) {
        RdmOp& posted = op();
        post([&] { return fi_trecv(ep, buf, size, nullptr, from, tag, ignore, &posted); });
        return posted;
    }
    // Until it is taken.
    void post(const std::function<ssize_t()>& call) {
        const auto end = deadline();
        for (ssize_t got; (got = call()) != 0;) {
            DAT_REQUIRE(got == -FI_EAGAIN, error_name(got));
            DAT_REQUIRE(std::chrono::steady_clock::now() < end, "-FI_EAGAIN for ever");
            poll_all();
        }
    }

    void poll() {
        fi_cq_tagged_entry entry{};
        fi_addr_t source = FI_ADDR_NOTAVAIL;
        for (ssize_t got; (got = fi_cq_readfrom(cq, &entry, 1, &source)) != -FI_EAGAIN;) {
            if (got == 1) {
                take(entry, 0, source, 0);
                continue;
            }
            fi_cq_err_entry error{};
            DAT_REQUIRE(fi_cq_readerr(cq, &error, 0) == 1, "fi_cq_readerr");
            take({error.op_context, error.flags, error.len, error.buf, error.data, error.tag},
                 error.err, FI_ADDR_NOTAVAIL, error.olen,
                 {static_cast<const char*>(error.err_data), error.err_data_size});
        }
    }
    static void poll_all() {
        const std::vector<RdmNode*> nodes = all();
        for (RdmNode* node : nodes) {
            node->poll();
        }
    }
    static void wait_until(const std::function<bool()>& there, const char* what) {
        const auto end = deadline();
        while (!there()) {
            DAT_REQUIRE(std::chrono::steady_clock::now() < end, std::string("waited for ") + what);
            poll_all();
        }
    }
    static RdmOp& wait(RdmOp& of) {
        wait_until([&] { return of.done(); }, "a completion");
        return of;
    }
    // Completions that name no operation.
    std::vector<fi_cq_tagged_entry> unasked;

    fid_domain* domain = nullptr;
    fid_cq* cq = nullptr;
    fid_av* av = nullptr;
    fid_ep* ep = nullptr;
    fid_cntr* sent = nullptr;
    fid_cntr* received = nullptr;
    fid_cntr* read_by_peers = nullptr;
    fid_cntr* written = nullptr;
    const fi_info& info() const { return *info_; }

  private:
    static std::chrono::steady_clock::time_point deadline() {
        return std::chrono::steady_clock::now() + std::chrono::seconds(60);
    }
    static std::vector<RdmNode*>& all() {
        static std::vector<RdmNode*> nodes;
        return nodes;
    }
    void clear_port() {
        static_cast<unsigned char*>(info_->src_addr)[2] = 0;
        static_cast<unsigned char*>(info_->src_addr)[3] = 0;
    }
    void open_domain(const Transport& transport) {
        fi_info* hints = fi_allocinfo();
        hints->ep_attr->type = FI_EP_RDM;
        hints->caps = options_.caps;
        if (transport.device) {
            hints->caps &= ~transport.missing_caps;
            hints->domain_attr->mr_mode =
                FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
        }
        hints->mode = FI_CONTEXT;
        hints->addr_format = transport.family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
        hints->domain_attr->threading = options_.threading;
        hints->domain_attr->data_progress = transport.progress;
        hints->domain_attr->control_progress = transport.progress;
        hints->tx_attr->op_flags = options_.tx_op_flags;
        hints->fabric_attr->prov_name = strdup(provider());
        const std::string service = std::to_string(options_.port);
        fi_info* list = nullptr;
        DAT_MUST(fi_getinfo(FI_VERSION(1, 17), transport.address,
                            options_.port ? service.c_str() : nullptr, FI_SOURCE, hints, &list));
        fi_freeinfo(hints);
        for (fi_info* each = list; each && !info_; each = each->next) { // not that of ofi_rxm
            const bool device = std::strchr(each->domain_attr->name, '/') != nullptr;
            if (std::strcmp(each->fabric_attr->prov_name, provider()) == 0 &&
                device == transport.device) {
                info_ = fi_dupinfo(each);
            }
        }
        fi_freeinfo(list);
        DAT_REQUIRE(info_, "FI_EP_RDM is not offered");
        DAT_MUST(fi_fabric(info_->fabric_attr, &fabric_, nullptr));
        DAT_MUST(fi_domain(fabric_, info_, &domain, nullptr));
        fi_av_attr attr{};
        attr.type = FI_AV_TABLE;
        DAT_MUST(fi_av_open(domain, &attr, &av, nullptr));
        fi_cq_attr queue{};
        queue.format = FI_CQ_FORMAT_TAGGED;
        queue.wait_obj = options_.wait;
        DAT_MUST(fi_cq_open(domain, &queue, &cq, nullptr));
    }
    void take(const fi_cq_tagged_entry& entry, int err, fi_addr_t source, std::size_t olen,
              const std::string& err_data = {}) {
        if (!entry.op_context) {
            unasked.push_back(entry);
            return;
        }
        RdmOp& of = *static_cast<RdmOp*>(entry.op_context);
        ++of.completions;
        of.err = err;
        of.entry = entry;
        of.source = source;
        of.olen = olen;
        of.err_data = err_data;
    }

    const Options options_;
    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    std::deque<RdmOp> ops_;
};

// Two endpoints that know each other.
struct Two {
    explicit Two(const Transport& transport, const RdmNode::Options& options = RdmNode::Options())
        : a(transport, options), b(transport, options), to_b(a.know(b)), to_a(b.know(a)) {}
    RdmNode a;
    RdmNode b;
    fi_addr_t to_b;
    fi_addr_t to_a;
};

} // namespace dat::test

#endif
