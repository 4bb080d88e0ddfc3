// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The same over FI_EP_MSG endpoints of one libfabric provider, used as plainly as it
// can be: one completion queue for everything, every operation reported, the sizes of
// queues that the provider offers by default, polled.
// May include: test/bench, std, libfabric.
#ifndef DAT_TEST_BENCH_FABRIC_SIDE_H
#define DAT_TEST_BENCH_FABRIC_SIDE_H

#include "channel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <vector>

namespace dat::bench {

class FabricSide {
  public:
    // FI_PROGRESS_UNSPEC is what the provider does by default.
    FabricSide(const char* provider, std::size_t size, fi_progress progress = FI_PROGRESS_UNSPEC);
    ~FabricSide();
    FabricSide(const FabricSide&) = delete;
    FabricSide& operator=(const FabricSide&) = delete;

    std::uint16_t listen();
    void accept();
    void connect(std::uint16_t port);
    void end();
    void ended();
    void receive(std::size_t connection) {
        ok(fi_recv(endpoints_[connection].get(), in_.data(), size_, nullptr, 0, &received_),
           "fi_recv");
    }
    bool send(std::size_t connection) {
        const ssize_t rc =
            fi_send(endpoints_[connection].get(), out_.data(), size_, nullptr, 0, &sent_);
        if (rc == -FI_EAGAIN) {
            return false;
        }
        ok(rc, "fi_send");
        return true;
    }
    Done poll(std::size_t) {
        fi_cq_entry entries[kQueue];
        const ssize_t n = fi_cq_read(cq_.get(), entries, kQueue);
        Done done;
        if (n == -FI_EAGAIN) {
            return done;
        }
        if (n < 0) {
            failed_operation();
        }
        for (ssize_t i = 0; i < n; ++i) {
            ++(entries[i].op_context == &sent_ ? done.sent : done.received);
        }
        return done;
    }

    // For two sides in one thread: one call of each at a time, until both say true.
    void begin_connect(std::uint16_t port);
    bool progress_connect(); // takes a request too, if there is one

  private:
    struct Close {
        template <class F> void operator()(F* f) const { fi_close(&f->fid); }
    };
    template <class F> using Owner = std::unique_ptr<F, Close>;
    struct FreeInfo {
        void operator()(fi_info* info) const { fi_freeinfo(info); }
    };

    static void ok(ssize_t rc, const char* call) {
        if (rc != 0) [[unlikely]] {
            failed(rc, call);
        }
    }
    [[noreturn]] static void failed(ssize_t rc, const char* call);
    [[noreturn]] void failed_operation();
    bool read_event(std::uint32_t& event, fi_eq_cm_entry& entry);
    fi_eq_cm_entry wait_event(std::uint32_t wanted);
    void open_endpoint(fi_info* info);
    void answer(const fi_eq_cm_entry& request);

    const std::size_t size_;
    std::vector<char> out_;
    std::vector<char> in_;
    char sent_ = 0; // whose addresses are contexts
    char received_ = 0;
    std::unique_ptr<fi_info, FreeInfo> info_;
    Owner<fid_fabric> fabric_;
    Owner<fid_domain> domain_;
    Owner<fid_eq> eq_;
    Owner<fid_cq> cq_;
    Owner<fid_pep> listener_;
    std::vector<Owner<fid_ep>> endpoints_;
};

} // namespace dat::bench

#endif
