// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The queue pair of one connection, with a completion queue of its own, and how it is brought to
// where a connection wants it. They take the device some time to make, so those of an endpoint's
// next connection are made before it, and kept with the endpoint. Under the domain's lock.
#ifndef DAT_LINKS_VERBS_QUEUES_H
#define DAT_LINKS_VERBS_QUEUES_H

#include "engine/domain.h"
#include "engine/endpoint.h"
#include "links/verbs/domain.h"

#include <cstdint>
#include <memory>

struct ibv_cq;
struct ibv_qp;
struct ibv_srq;
struct rdma_conn_param;

namespace dat::verbs {

class SharedQueue;

class Queues final : public engine::Companion {
  public:
    // What they are made for.
    struct Kind {
        ibv_pd* pd = nullptr;
        SharedQueue* shared = nullptr; // where receives come from; nullptr: the queue pair's own
        std::uint32_t requests = 0;
        std::uint32_t receives = 0;
        std::uint8_t port = 0;
        std::uint16_t pkey = 0; // the partition, on InfiniBand
        bool operator==(const Kind&) const = default;
    };
    // For an endpoint without shared receives, by an id that is bound to an address.
    static Kind kind_for(const engine::Endpoint& endpoint, ibv_pd* pd, const rdma_cm_id& id);
    // The queue pair takes receives from then on (INIT). nullptr: errno, which is logged, with how
    // many there is memory for, if it is that.
    static std::unique_ptr<Queues> make(Domain& domain, const Kind& kind, rdma_cm_id* id);
    // The same with half as many requests and receives, again, where there is no memory for more.
    static std::unique_ptr<Queues> make_what_fits(Domain& domain, const Kind& kind, rdma_cm_id* id);
    ~Queues() override;
    Queues(const Queues&) = delete;
    Queues& operator=(const Queues&) = delete;

    const Kind& kind() const { return kind_; }
    ibv_qp* qp() const { return qp_; }
    ibv_cq* cq() const { return cq_; }
    std::uint32_t inline_size() const { return inline_size_; }
    // The connection of the id is there, on this side. `answer`: what this side is about to
    // accept it with; nullptr: the peer has, which the kernel knows. Not on iWARP, where the
    // kernel does it. False: errno.
    bool become_ready(Domain& domain, rdma_cm_id* id, const rdma_conn_param* answer);

    // What the device says of them goes to that link; nullptr: to none.
    void belong_to(Link* link);

  private:
    struct Failure {
        const char* call = nullptr;
        int error = 0;
    };
    explicit Queues(const Kind& kind) : kind_(kind) {}
    static std::unique_ptr<Queues> try_once(Domain& domain, const Kind& kind, rdma_cm_id* id,
                                            Failure& failure);
    static std::unique_ptr<Queues> try_fewer(Domain& domain, Kind kind, rdma_cm_id* id,
                                             Failure& failure);
    static int log_refusal(const Failure& failure, const Kind& kind, const Kind* fits);
    void open(Domain& domain, rdma_cm_id* id, Failure& failure);
    bool make_pair(Domain& domain);
    bool initialize(rdma_cm_id* id);

    const Kind kind_;
    std::shared_ptr<ibv_srq> srq_;
    ibv_cq* cq_ = nullptr;
    ibv_qp* qp_ = nullptr;
    std::uint32_t inline_size_ = 0;
};

// Makes the queues that the endpoint's next connection takes. `fewer_do`: where there is no memory
// for as many operations as the endpoint may have, it may have fewer from then on. -ENOMEM: there
// is none, which is logged. What else cannot be done now the connection tries again, and fails if
// need be. Without `fewer_do` the endpoint is left as it is.
int prepare(Domain& domain, engine::Endpoint& endpoint, bool fewer_do);

} // namespace dat::verbs

#endif
