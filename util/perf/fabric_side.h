// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A side over one libfabric provider, used as plainly as it can be: one completion queue
// for everything, every operation reported, the sizes of queues that the provider offers
// by default. Endpoints are FI_EP_MSG, or FI_EP_RDM: then there is one, the peer's name
// goes into an address vector, and no connection can be ended.
#ifndef DAT_UTIL_PERF_FABRIC_SIDE_H
#define DAT_UTIL_PERF_FABRIC_SIDE_H

#include "buffer.h"
#include "case.h"
#include "channel.h"
#include "fabric_info.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <span>
#include <vector>

namespace dat::perf {

// What several sides of one process may have in common: then it is safe for threads.
struct FabricDomain;

// How the side is to be.
struct FabricOptions {
    std::size_t size = 0;                      // of a message or operation
    std::uint64_t caps = FI_MSG;               // with FI_RMA or FI_ATOMIC where used
    bool waits = false;                        // poll() sleeps in fi_cq_sread
    fi_progress progress = FI_PROGRESS_UNSPEC; // what the provider does by default
    std::string address = "127.0.0.1";
    std::size_t told_apart = 1; // connections of which poll_each() tells: the first so many
    std::size_t bulk = 0;       // size of the messages of connection 1; 0: as the others
    std::shared_ptr<FabricDomain> domain = {}; // of open_domain(); nullptr: one of its own
};

struct CloseFabric {
    template <class F> void operator()(F* f) const { fi_close(&f->fid); }
};
template <class F> using FabricOwner = std::unique_ptr<F, CloseFabric>;

struct FabricDomain {
    Info info; // of this host
    FabricOwner<fid_fabric> fabric;
    FabricOwner<fid_domain> domain;
};
// `shared`: sides of several threads may have it, each with its own endpoints and queues.
std::shared_ptr<FabricDomain> open_domain(const Way& way, const FabricOptions& options,
                                          bool shared);

class FabricSide {
  public:
    FabricSide(const Way& way, const FabricOptions& options);
    ~FabricSide();
    FabricSide(const FabricSide&) = delete;
    FabricSide& operator=(const FabricSide&) = delete;

    Address open(Role role);
    void join(Role role, const Address& peer);
    void end();
    void ended();
    std::size_t depth() const { return depth_; }
    // Whether its endpoints are connected, FI_EP_MSG.
    bool connected() const { return domain_->info->ep_attr->type == FI_EP_MSG; }
    Region region() const { return region_; }
    char* out() { return out_.data(); }
    char* in() { return in_.data(); }
    // The provider and the type of endpoint that libfabric chose.
    std::string what() const;

    void receive(std::size_t connection) {
        const bool bulk = connection == bulk_connection_;
        const ssize_t rc = fi_recv(endpoints_[connection].get(), in_.data() + (bulk ? size_ : 0),
                                   bulk ? options_.bulk : size_, in_desc_, FI_ADDR_UNSPEC,
                                   contexts_[lane(connection)].received.next());
        if (rc == -FI_EAGAIN) {
            owed_.push_back(connection);
            return;
        }
        ok(rc, "fi_recv");
    }
    bool send(std::size_t connection) {
        const bool bulk = connection == bulk_connection_;
        return posted(fi_send(endpoints_[connection].get(), out_.data() + (bulk ? size_ : 0),
                              bulk ? options_.bulk : size_, out_desc_, peer_,
                              contexts_[lane(connection)].sent.next()),
                      "fi_send");
    }
    bool write(const Region& to) {
        return posted(fi_write(endpoints_[0].get(), out_.data(), size_, out_desc_, peer_,
                               to.address, to.key, contexts_[0].sent.next()),
                      "fi_write");
    }
    bool read(const Region& from) {
        return posted(fi_read(endpoints_[0].get(), in_.data(), size_, in_desc_, peer_, from.address,
                              from.key, contexts_[0].sent.next()),
                      "fi_read");
    }
    bool add(const Region& to) {
        return posted(fi_fetch_atomic(endpoints_[0].get(), out_.data(), 1, out_desc_, in_.data(),
                                      in_desc_, peer_, to.address, to.key, FI_UINT64, FI_SUM,
                                      contexts_[0].sent.next()),
                      "fi_fetch_atomic");
    }
    Done poll(std::size_t) { return waits_ ? wait() : look(0); }
    Done look(std::size_t) {
        fi_cq_entry entries[kQueue];
        return take(entries, fi_cq_read(cq_.get(), entries, kQueue));
    }
    void poll_each(std::span<Done> done) {
        fi_cq_entry entries[kQueue];
        constexpr int kSleep_ms = 1000;
        const ssize_t n = waits_ ? fi_cq_sread(cq_.get(), entries, kQueue, nullptr, kSleep_ms)
                                 : fi_cq_read(cq_.get(), entries, kQueue);
        take(entries, n);
        for (ssize_t i = 0; i < n; ++i) {
            const std::size_t place = place_of(entries[i].op_context);
            Done& of = done[place / sizeof(Lane)];
            ++(place % sizeof(Lane) < sizeof(Contexts) ? of.sent : of.received);
        }
    }

    // For two sides in one thread: one call of each at a time, until both say true.
    void begin_join(const Address& peer);
    bool progress_join(); // takes a request too, if there is one

  private:
    template <class F> using Owner = FabricOwner<F>;

    // Contexts of operations. A provider may want one for each that is outstanding, as
    // memory of its own (FI_CONTEXT); else one does for all.
    class Contexts {
      public:
        void one_for_each() { mask_ = kSlots - 1; }
        void* next() { return &slots_[next_++ & mask_]; }

      private:
        static constexpr std::size_t kSlots = 4 * kQueue; // they may complete out of order
        std::array<fi_context2, kSlots> slots_{};
        std::size_t next_ = 0;
        std::size_t mask_ = 0;
    };
    // Those of a connection whose completions are told apart, or of all behind it.
    struct Lane {
        Contexts sent;
        Contexts received;
    };
    std::size_t lane(std::size_t connection) const {
        return connection < contexts_.size() ? connection : contexts_.size() - 1;
    }
    std::size_t place_of(const void* context) const {
        return static_cast<std::size_t>(static_cast<const char*>(context) -
                                        reinterpret_cast<const char*>(contexts_.data()));
    }

    static void ok(ssize_t rc, const char* call) {
        if (rc != 0) [[unlikely]] {
            failed(rc, call);
        }
    }
    static bool posted(ssize_t rc, const char* call) {
        if (rc == -FI_EAGAIN) {
            return false;
        }
        ok(rc, call);
        return true;
    }
    Done wait() {
        constexpr int kSleep_ms = 1000;
        fi_cq_entry entries[kQueue];
        return take(entries, fi_cq_sread(cq_.get(), entries, kQueue, nullptr, kSleep_ms));
    }
    Done take(const fi_cq_entry* entries, ssize_t n) {
        Done done;
        if (n < 0 && n != -FI_EAGAIN) [[unlikely]] {
            interrupted_or_failed(n);
        }
        for (ssize_t i = 0; i < n; ++i) {
            const std::size_t place = place_of(entries[i].op_context);
            ++(place % sizeof(Lane) < sizeof(Contexts) ? done.sent : done.received);
        }
        if (!owed_.empty()) [[unlikely]] {
            post_owed();
        }
        return done;
    }
    [[noreturn]] static void failed(ssize_t rc, const char* call);
    void interrupted_or_failed(ssize_t rc);
    void post_owed();
    bool read_event(std::uint32_t& event, fi_eq_cm_entry& entry);
    fi_eq_cm_entry wait_event(std::uint32_t wanted);
    void open_queues();
    void register_memory();
    void open_endpoint(fi_info* info);
    void answer(const fi_eq_cm_entry& request);
    Address listen();
    Address open_nameable();
    void insert(const Address& peer);

    const Way way_;
    const FabricOptions options_;
    const std::size_t size_; // of a message, where it is not bulk
    const bool waits_;
    std::size_t depth_ = kQueue;
    std::vector<std::size_t> owed_; // connections of receives that the provider did not take yet
    Buffer out_;
    Buffer in_;
    void* out_desc_ = nullptr;
    void* in_desc_ = nullptr;
    fi_addr_t peer_ = FI_ADDR_UNSPEC;
    Region region_;
    std::size_t bulk_connection_ = ~std::size_t{0};
    std::vector<Lane> contexts_;
    std::shared_ptr<FabricDomain> domain_;
    Info to_peer_; // of the way to a listener
    Owner<fid_mr> out_mr_;
    Owner<fid_mr> in_mr_;
    Owner<fid_eq> eq_;
    Owner<fid_cq> cq_;
    Owner<fid_av> av_;
    Owner<fid_pep> listener_;
    std::deque<fi_eq_cm_entry> requests_; // that came while something else was waited for
    std::vector<Owner<fid_ep>> endpoints_;
};

} // namespace dat::perf

#endif
