// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rdma_connect() in a thread of its own. Linux's siw makes its TCP connection within that
// call, and so keeps the caller where nobody answers: for two minutes, as TCP has it.
// Under the domain's lock.
#ifndef DAT_LINKS_VERBS_CONNECT_CALL_H
#define DAT_LINKS_VERBS_CONNECT_CALL_H

#include "engine/reactor.h"

#include <rdma/rdma_cma.h>
#include <thread>

namespace dat::verbs {

class ConnectCall final : private engine::Pollable {
  public:
    class Owner {
      public:
        // May destroy the call.
        virtual void connect_failed(int error) = 0;

      protected:
        ~Owner() = default;
    };

    // `param` points to data that lives as long as the call.
    ConnectCall(engine::Reactor& reactor, Owner& owner, rdma_cm_id* id,
                const rdma_conn_param& param)
        : reactor_(reactor), owner_(owner), id_(id), param_(param) {}
    // Interrupts it if it is still under way. The id is used no more.
    ~ConnectCall();
    ConnectCall(const ConnectCall&) = delete;
    ConnectCall& operator=(const ConnectCall&) = delete;

    // 0 or -errno: it is not made.
    int start();
    // After an event of the id, which comes when the call is as good as over: Linux holds the
    // id's handler_mutex during rdma_connect(), so that even the device's removal waits. The
    // domain's own id, which was bound before, is told of that first, and the attempt abandoned.
    void finish();

  private:
    void ready(std::uint32_t events) override; // failed_fd_
    void run();

    engine::Reactor& reactor_;
    Owner& owner_;
    rdma_cm_id* const id_;
    rdma_conn_param param_;
    int failed_fd_ = -1; // an eventfd: that it worked, events of the id say
    int error_ = 0;      // the thread's, until it has ended
    std::thread thread_;
};

} // namespace dat::verbs

#endif
