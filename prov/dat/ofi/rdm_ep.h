// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The reliable datagram endpoint, FI_EP_RDM. It listens at its address, and has a connection of
// its domain with each peer that it has to do with.
#ifndef DAT_OFI_RDM_EP_H
#define DAT_OFI_RDM_EP_H

#include "ofi/av.h"
#include "ofi/bindings.h"
#include "ofi/ep.h"
#include "ofi/fid.h"
#include "ofi/incoming.h"
#include "ofi/info.h"
#include "ofi/rdm_peer.h"
#include "rdm/messages.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace dat::ofi {

class RdmEndpoint final : public fid_ep,
                          public Bindings,
                          private AnyListenerOwner,
                          private AddressUser,
                          private rdm::ReadRegistrar,
                          private engine::Pollable {
  public:
    RdmEndpoint(Domain& domain, Info info, void* context); // throws std::bad_alloc
    // Waits, for a time that is bounded, until what was sent and is not reported has gone.
    ~RdmEndpoint();

    int open(); // binds it to its address. 0 or -errno, logged
    rdm::Messages& messages() { return *messages_; }
    bool enabled() const { return enabled_; }

    int bind_vector(AddressVector& av);
    int enable();
    int set_name(const net::SocketAddress& name);
    net::SocketAddress name() const { return name_; }

    void set_tx_flags(std::uint64_t flags);
    std::size_t inject_size() const { return inject_size_; }
    std::size_t message_size() const { return message_size_; }
    const Offering& offering() const { return offering_; }
    bool directs_receives() const { return directs_; }
    void set_min_multi(std::size_t least);

    // --- under the lock ---

    // The peer of that number of the address vector; nullptr: there is no such number, or no
    // memory (`error`).
    RdmPeer* peer(fi_addr_t number, int& error) {
        if (number < by_number_.size() && by_number_[number]) [[likely]] {
            return by_number_[number];
        }
        return new_peer(number, error);
    }

    // For its peers.
    core::RdmSelf& self() { return self_; }
    // What only its own connection with itself says: other peers are told its identity.
    const core::RdmIdentity& secret() const { return secret_; }
    rdm::Hello hello() const;
    // What it says of itself as it connects, in the form that the domain has room for.
    using HelloBytes = std::array<std::byte, rdm::kHelloSize>;
    std::span<const std::byte> write(const rdm::Hello& hello, HelloBytes& to) const;
    // Its make_ready() may fail, and be called again. It is not destroyed under the lock. Throws
    // std::bad_alloc.
    std::unique_ptr<Endpoint> make_endpoint(EndpointWatcher& watcher);
    // Only some attempts at once: begin_attempt() is called for it.
    void attempt(RdmPeer& peer);
    void attempt_soon(RdmPeer& peer);
    void attempt_over();
    void forget(RdmPeer& peer) { waiting_.remove(peer); }
    // It has no connection, for the time being.
    void rests(RdmPeer& peer) {
        if (!at_rest_.holds(peer)) {
            at_rest_.push(peer);
        }
    }

  private:
    void announce(std::unique_ptr<Incoming> request) override;
    bool comes_from(const net::SocketAddress& named, const net::SocketAddress& peer) const;
    bool wants_more() override { return true; }
    void named(const net::SocketAddress& address, fi_addr_t number) override;
    void removed(fi_addr_t number) override;
    bool add(const engine::Iov& memory, std::uint32_t& key) override;
    void remove(const engine::Iov& memory, std::uint32_t key) override;
    void ready(std::uint32_t events) override;

    RdmPeer* new_peer(fi_addr_t number, int& error);
    RdmPeer& at_address(const net::SocketAddress& address);
    RdmPeer* unused_peer();
    void name_source(RdmPeer& peer, fi_addr_t number);
    void drain();
    void next_attempts();

    const Info info_;
    Info peer_info_; // of the endpoint of each peer
    ZoneHandle zone_;
    AddressVector* av_ = nullptr;
    const std::size_t inject_size_;
    const Offering offering_;
    const std::size_t message_size_ = offering_.message_size;
    const bool directs_;
    const bool tells_unknown_; // FI_SOURCE_ERR
    net::SocketAddress name_;
    std::unique_ptr<AnyListener> listener_;
    bool watched_ = false; // listener_ is, by the domain
    core::RdmSelf self_;
    core::RdmIdentity secret_;
    std::unique_ptr<rdm::Messages> messages_; // from enable() on
    std::vector<std::unique_ptr<RdmPeer>> peers_;
    std::vector<RdmPeer*> by_number_;
    std::unordered_map<AddressKey, RdmPeer*, AddressHash> by_address_;
    base::List<RdmPeer, WaitsForTurn> waiting_;
    base::List<RdmPeer, AtRest> at_rest_; // and some who have a connection again
    std::uint32_t attempting_ = 0;
    struct Turn final : engine::Timer {
        explicit Turn(RdmEndpoint& of) : of_(of) {}
        void expired() override { of_.next_attempts(); }
        RdmEndpoint& of_;
    };
    Turn turn_{*this};
};

inline RdmEndpoint& rdm_of(fid_ep* f) { return static_cast<RdmEndpoint&>(*f); }

// fi_endpoint(3).
int open_rdm(fid_domain* domain, fi_info* info, fid_ep** ep, void* context);

// Operation tables, in the files of the same name.
extern fi_ops_msg rdm_msg_ops;
extern fi_ops_tagged rdm_tagged_ops;
extern fi_ops_rma rdm_rma_ops;
extern fi_ops_atomic rdm_atomic_ops;
extern fi_ops_tagged tagged_ops_not_enabled;

} // namespace dat::ofi

#endif
