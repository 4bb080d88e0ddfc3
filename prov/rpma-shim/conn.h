// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A connection, and the request that becomes one.
#ifndef DAT_RPMA_CONN_H
#define DAT_RPMA_CONN_H

#include "rpma-shim/channel.h"
#include "rpma-shim/log.h"
#include "rpma-shim/peer.h"
#include "rpma-shim/queue.h"
#include "rpma-shim/settings.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_dat.h>

#include <librpma.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace dat::rpma {

// What the connection manager of RDMA devices leaves to a program, in bytes; the same everywhere.
constexpr std::size_t kConnectData = 56;
constexpr std::size_t kAcceptData = 196;

} // namespace dat::rpma

struct rpma_conn {
    explicit rpma_conn(rpma_peer& of) : kept(of.shared_from_this()), peer(of) {}
    ~rpma_conn();

    // Endpoint and queues, ready for receives. `info`: of the endpoint; its sizes are set. 0 or
    // one of RPMA_E_*, logged.
    int open(const dat::rpma::Origin& origin, fi_info& info, const rpma_conn_cfg& config);
    // Ends all of it, in the order of RP-12. 0 or one of RPMA_E_*.
    int close();

    int next_event(rpma_conn_event& event);
    int disconnect();
    // Whether what is flushed is withheld: the peer has gone, and this side not yet (RP-9).
    bool withholds() const;

    const std::shared_ptr<rpma_peer> kept;
    rpma_peer& peer;
    // The members that a post looks at come first.
    fid_ep* ep = nullptr;
    std::uint32_t number = 0; // as of a queue pair
    bool direct_write_to_pmem = false;
    bool fast = false;                    // as fast.h has it
    std::atomic<bool> quiet_posts{false}; // some were not to give a completion

    fi_dat_ops_ep* ops = nullptr;
    fi_dat_ops_queue* event_ops = nullptr;
    dat::rpma::Owned<fid_eq> eq;
    dat::rpma::Channel events;
    dat::rpma::Completions main;     // of cq, and of rcq where the channel is shared
    dat::rpma::Completions receives; // of rcq else
    std::unique_ptr<rpma_cq> cq;
    std::unique_ptr<rpma_cq> rcq;
    bool shared_channel = false;
    rpma_srq* srq = nullptr;
    std::vector<std::byte> private_data; // of the peer
    std::uint64_t flushed = 0;           // where the read that is a flush puts it

  private:
    int open_queues(const rpma_conn_cfg& config);
    int read_event(rpma_conn_event& event);
    rpma_conn_event ended();
    int settle_events();

    std::mutex mutex_;
    bool established_ = false;
    std::atomic<bool> left_{false}; // disconnect() was called
};

struct rpma_conn_req {
    rpma_conn_req() = default;
    // One that has come and was not answered is rejected.
    ~rpma_conn_req();
    rpma_conn_req(const rpma_conn_req&) = delete;
    rpma_conn_req& operator=(const rpma_conn_req&) = delete;

    std::unique_ptr<rpma_conn> conn;
    bool passive = false;
    fid_fabric* fabric = nullptr; // of a request that has come
    fid_t handle = nullptr;
    std::vector<std::byte> destination; // an address, of one that is to go
};

#endif
