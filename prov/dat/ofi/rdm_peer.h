// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A peer of a reliable datagram endpoint: what makes, keeps and ends the one connection to it, by
// the table of core/rdm_peer.def. Under the domain's lock, but for the destructor.
#ifndef DAT_OFI_RDM_PEER_H
#define DAT_OFI_RDM_PEER_H

#include "base/list.h"
#include "core/rdm_peer.h"
#include "engine/reactor.h"
#include "ofi/ep.h"
#include "ofi/incoming.h"
#include "ofi/unknown_sources.h"
#include "rdm/messages.h"

#include <cstdint>
#include <memory>

namespace dat::ofi {

class RdmEndpoint;

// The list of peers whose attempt waits for others, and that of those without a connection.
struct WaitsForTurn;
struct AtRest;

class RdmPeer final : public rdm::Peer,
                      private rdm::PeerOwner,
                      private EndpointWatcher,
                      private engine::Timer,
                      public base::Hook<WaitsForTurn>,
                      public base::Hook<AtRest> {
  public:
    // `unknown_source`: CompletionQueue::source_for() of the address; none: messages whose source
    // has no number are as others. Throws std::bad_alloc.
    RdmPeer(RdmEndpoint& endpoint, rdm::Messages& messages, const net::SocketAddress& address,
            std::uint32_t number, UnknownSources::Number unknown_source);
    ~RdmPeer(); // not under the lock; after remove()

    const net::SocketAddress& address() const { return address_; }
    std::uint32_t unknown_source() const { return unknown_source_.value(); }
    // A request that says to be from this address.
    void requested(Incoming& request, const rdm::Hello& hello);
    // The same of this endpoint itself: RDMA of its own memory goes by a connection as well.
    void requested_by_self(Incoming& request);
    // An operation that is none of rdm::Messages: 0, and it goes to endpoint(); -FI_EAGAIN: a
    // connection is being made.
    ssize_t ready_for_rma();
    bool has_endpoint() const { return endpoint_ != nullptr; }
    Endpoint& endpoint() { return *endpoint_; }
    // A receive that names this peer has found no message: it is never to have one.
    bool is_dead() { return machine_.named_receive().verdict == core::RdmVerdict::error; }
    // It has no connection, makes none, and waits for none.
    bool is_at_rest() const;
    // The same object is the peer at another address from now on. Only of one that is_at_rest()
    // and is_unused().
    void become(const net::SocketAddress& address, UnknownSources::Number unknown_source);
    // The endpoint is being closed, and nothing is waited for any more.
    void remove();
    // Its turn has come.
    void begin_attempt();

  private:
    using Answer = core::RdmPeer::Answer;

    // rdm::PeerOwner
    void wanted(rdm::Peer& peer) override;
    void give_up(rdm::Peer& peer) override;
    void confirmed(rdm::Peer& peer) override;
    void asked(rdm::Peer& peer) override;
    void agreed(rdm::Peer& peer) override;
    void declined(rdm::Peer& peer) override;
    // EndpointWatcher
    void raised(const core::ConnectionEvent& event) override;
    void expired() override;

    void act(const Answer& answer, Incoming* request = nullptr);
    void attempt_over();
    void drop();
    void drop_soon();
    void end_now();
    void refuse(Incoming& request, const Answer& answer);
    void accept(Incoming& request, const Answer& answer);
    bool make_endpoint();
    bool make(std::unique_ptr<Endpoint>& endpoint, std::unique_ptr<Endpoint>& unready,
              EndpointWatcher& watcher);
    void note_answer(const core::ConnectionEvent& event);
    void start_timer();
    void look_for_use();

    // What has to be done outside of a link's work.
    struct Drop final : engine::Deferred {
        explicit Drop(RdmPeer& peer) : peer_(peer) {}
        void run() override { peer_.drop(); }
        RdmPeer& peer_;
    };

    // Looks now and then whether the connection is used.
    struct Look final : engine::Timer {
        explicit Look(RdmPeer& peer) : peer_(peer) {}
        void expired() override { peer_.look_for_use(); }
        RdmPeer& peer_;
        std::uint64_t activity_ = 0; // as it was last
    };

    // The other end of a connection with this endpoint itself: the first tells it all.
    struct Unheard final : EndpointWatcher {
        void raised(const core::ConnectionEvent&) override {}
    };

    RdmEndpoint& of_;
    net::SocketAddress address_;
    UnknownSources::Number unknown_source_;
    core::RdmPeer machine_;
    std::unique_ptr<Endpoint> endpoint_; // made when first needed
    std::unique_ptr<Endpoint> far_end_;  // of a connection with this endpoint itself
    // Those for which there was no memory when they were to be made ready.
    std::unique_ptr<Endpoint> unready_;
    std::unique_ptr<Endpoint> unready_far_end_;
    Unheard unheard_;
    core::RdmPeer::Connection current_ = 0; // that the events of endpoint_ belong to; 0: none
    bool attempting_ = false;               // counted by the endpoint
    bool gives_up_ = false;                 // drop() is to end a connection that counts
    bool leaves_ = false;                   // the same, which both sides have agreed upon
    bool rma_waits_ = false;                // an operation was told to come again
    bool rma_failed_ = false;               // and the attempt that it waited for has failed
    std::uint32_t window_ = 0;
    Drop drop_{*this};
    std::unique_ptr<Look> look_; // nullptr: connections are kept
};

} // namespace dat::ofi

#endif
