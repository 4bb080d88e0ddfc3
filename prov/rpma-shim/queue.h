// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A completion queue.
#ifndef DAT_RPMA_QUEUE_H
#define DAT_RPMA_QUEUE_H

#include "rpma-shim/channel.h"
#include "rpma-shim/peer.h"

#include <librpma.h>

#include <rdma/fi_eq.h>
#include <rdma/fi_ext_dat.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace dat::rpma {

// Descriptor and queues that belong to it: one, or the two of a connection.
struct Completions {
    static constexpr int kQueues = 2;
    Channel channel;
    rpma_cq* queues[kQueues] = {};
    int open() { return channel.open(); }
    // Nothing has been found in any of them: the descriptor is readable from now on where
    // something comes. 0; or it is readable at once, with -FI_EAGAIN: something has come meanwhile,
    // or another -FI_E*: nothing can tell of it.
    int settle() const;
};

} // namespace dat::rpma

struct rpma_cq {
    // `flushes`: whose completions come here; nullptr: of several connections.
    rpma_cq(dat::rpma::Completions& to, bool is_shared, rpma_conn* owner)
        : completions(to), shared(is_shared), conn(owner) {}

    // 0 or -FI_E*.
    int open(rpma_peer& peer, std::uint32_t size);

    // At most `count` of them to `wc`; how many.
    int take(ibv_wc* wc, int count);
    int take_one(ibv_wc& wc);
    // Something is there to be taken; fetches it.
    bool is_filled();
    // From now on the descriptor becomes readable where something comes. 0; -FI_EAGAIN: something
    // is there; or another -FI_E*.
    int tell_of_more();
    // What has been withheld is to be taken now.
    void release();
    // A thread waits for it: the descriptor is to be seen to when the last has been taken.
    void waited() { waited_.store(true, std::memory_order_relaxed); }

    dat::rpma::Completions& completions;
    const bool shared;
    rpma_conn* conn; // nullptr: of several
    dat::rpma::Owned<fid_cq> cq;
    fi_dat_ops_queue* ops = nullptr;

  private:
    int fetch(ibv_wc* wc, int count);
    int sift(ibv_wc* wc, int count);
    int settle_and_take(ibv_wc* wc, int count);
    void settle_if_last();
    // The descriptor has to be seen to when nothing is left.
    bool is_watched() const {
        return waited_.load(std::memory_order_relaxed) || withheld_.load(std::memory_order_relaxed);
    }
    bool withhold(const ibv_wc& wc);
    int take_ready(ibv_wc* wc, int count);

    std::atomic<bool> waited_{false};
    std::atomic<bool> withheld_{false};
    std::atomic<bool> any_ready_{false};
    std::mutex finding_;          // one thread looks for whether something is there
    std::mutex mutex_;            // guards these
    std::optional<ibv_wc> found_; // by who waited
    std::vector<ibv_wc> ready_;   // what was withheld, since this side has gone
    std::vector<ibv_wc> late_;    // flushed since the peer has gone: until this side goes (RP-9)
};

#endif
