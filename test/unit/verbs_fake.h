// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two RDMA devices and a connection manager that a test makes up: the functions of libibverbs and
// librdmacm that prov/dat/links/verbs calls, in place of theirs. Nothing goes out; a connect is
// accepted as soon as it is asked for, and what is accepted is there. The calls of an iWARP
// device's threads (connect, and the end of a queue pair) may be any thread's, all others one's.
#ifndef TEST_UNIT_VERBS_FAKE_H
#define TEST_UNIT_VERBS_FAKE_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

namespace fake {

// What is in here is none of the provider's.
inline thread_local int inside = 0;
struct Inside {
    Inside() { ++inside; }
    ~Inside() { --inside; }
};

inline constexpr std::uint16_t kPort = 4567; // what is bound without a port gets this one

struct State {
    State();

    ibv_device_attr attr{};
    ibv_device devices[2]{}; // every address is on the first
    ibv_context shared[2]{}; // librdmacm's, of each
    ibv_device* leads_to;    // the device that the way to a peer leads over

    std::uint32_t most_inline = 1024;     // bytes; of more a queue pair is refused (EINVAL)
    std::uint32_t most_queued = 1U << 20; // work requests of a queue; of more there is no memory
    std::vector<std::uint32_t> asked_inline;

    std::deque<ibv_async_event> said; // the device's, to the context that was opened
    ibv_context* own = nullptr;       // that one
    int unacknowledged = 0;
    int read_of_shared = 0; // events that were asked for where all users of librdmacm read theirs
    std::atomic<int> queues{0}; // of all kinds, that there are
    std::atomic<int> others{0}; // everything else that a call makes and another one destroys
    ibv_qp* last_qp = nullptr;
    ibv_srq* last_srq = nullptr;
    std::vector<ibv_wc> completed;
    std::vector<std::uint64_t> sent; // wr_id of every request that was posted
    std::vector<ibv_sge> sent_first; // of each its first segment, if it has any
    unsigned last_flags = 0;         // of ibv_send_flags, of the last
    struct Posted {
        std::uint64_t wr_id;
        ibv_sge into;
    };
    std::vector<Posted> receives; // that queue pairs were given

    // A connect. Else it is left without an answer; over iWARP the call does not return then, until
    // its thread is cancelled.
    bool answers = true;
    std::atomic<bool> calls{false}; // such a call
    rdma_cm_id* last_id = nullptr;
    int bind_error = 0; // why no id can be bound; 0: it can
    int address_ms = 0; // what it was asked to find an address in, and a route
    int route_ms = 0;
    int notified = 0;
    rdma_conn_param param{}; // of the last connect
    ibv_qp_attr ready{};     // what the last queue pair was made ready to send with
    int ready_mask = 0;
    int fork_inits = 0;
    int fork_answer = 0;
};

State& state();
// From here on the devices are those of Linux's siw.
void become_siw();
// Of this queue, or of this port.
void say(ibv_event_type type, ibv_qp* qp);
void say(ibv_event_type type, ibv_cq* cq);
void say(ibv_event_type type, ibv_srq* srq);
void say(ibv_event_type type, int port);
// The answer of a peer, where `answers` is not set.
void answer(rdma_cm_id* id);
// A peer asks for a connection at the listener of that id. Returns the id of the connection.
rdma_cm_id* ask(rdma_cm_id* listener);
// The peer disconnects.
void leave(rdma_cm_id* id);
// The next completion of whichever queue is read next.
void complete(std::uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS);
void complete(const ibv_wc& wc);

} // namespace fake

#endif
