// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Making iWARP connections over TCP: listener, connection request, and the two
// handshakes (RFC 5044 7.1, RFC 6581).
#ifndef DAT_LINKS_IWARP_CONNECT_H
#define DAT_LINKS_IWARP_CONNECT_H

#include "base/list.h"
#include "core/service_point.h"
#include "engine/endpoint.h"
#include "engine/reactor.h"
#include "engine/settings.h"
#include "links/iwarp/mpa.h"
#include "net/socket.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace dat::iwarp {

using net::Socket;
using net::SocketAddress;

// U-63: what one side may send with a request, an accept or a reject. Towards a
// peer that is not `dat` an accept or reject carries less: the frame may hold 256 bytes
// in all, IRD and ORD among them. A longer reply makes Linux's siw fail in the kernel.
inline constexpr std::size_t kMaxPrivateData = 508;
inline constexpr std::size_t kMaxForeignPrivateData = 256;

// A connection request that a listener announced. Owns its socket until it is
// settled; destroyed unsettled it is refused (its requester: NON_PEER_REJECTED).
// Belongs to one thread at a time.
class ConnRequest {
  public:
    // `keepalive`: what the socket is tuned for.
    ConnRequest(Socket socket, std::chrono::seconds keepalive, const MpaFrame& frame,
                std::span<const std::byte> private_data);

    const SocketAddress& peer() const { return peer_; }
    const SocketAddress& local() const { return local_; }
    // The bytes that the requester sent, exactly (PD-5).
    std::span<const std::byte> private_data() const { return private_data_; }
    bool pending() const { return core_.pending(); }
    // What an accept or reject of this request may carry.
    std::size_t max_private_data() const {
        if (dat_peer_) {
            return kMaxPrivateData;
        }
        return kMaxForeignPrivateData - (frame_.enhanced ? kMpaEnhancedSize : 0);
    }

    // CR-7: the peer gets PEER_REJECTED with this data. False: settled before.
    // Precondition: private_data.size() <= max_private_data().
    bool reject(std::span<const std::byte> private_data);

  private:
    friend int accept(engine::Endpoint&, ConnRequest&, std::span<const std::byte>);

    core::ConnRequest core_;
    Socket socket_;
    std::chrono::seconds keepalive_;
    SocketAddress peer_;
    SocketAddress local_;
    std::uint64_t arrived_ns_; // trace_now_ns()
    MpaFrame frame_;           // its private_data is not valid
    bool dat_peer_;
    std::vector<std::byte> private_data_;
};

// Begins EP-10 on an UNCONNECTED endpoint: resolves nothing, does not block. The
// outcome arrives as an event. `source`: nullptr, or the address to come from (its
// port is ignored). 0; -EISCONN where the state refuses; -EMFILE, -ENOMEM,
// -EADDRNOTAVAIL ...: nothing happened.
int connect(engine::Endpoint& endpoint, const SocketAddress& destination,
            const SocketAddress* source, std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout);

// The same from a socket that net::bind_source() made. It is taken where this returns 0.
int connect(engine::Endpoint& endpoint, const SocketAddress& destination, Socket& socket,
            std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout);

// EP-14, EP-15. 0, or -EISCONN where the endpoint's state refuses, -EINVAL where the
// request was settled before, -ENOMEM, -EMFILE, -EAGAIN; then nothing happened. A requester that
// has gone is reported by an event (CR-6).
int accept(engine::Endpoint& endpoint, ConnRequest& request,
           std::span<const std::byte> private_data);

class ListenerOwner {
  public:
    // A whole request has arrived. Called from progress().
    virtual void announce(std::unique_ptr<ConnRequest> request) = 0;
    // Asked after announce(); false: the listener stops, as by stop().
    virtual bool wants_more() { return true; }

  protected:
    ~ListenerOwner() = default;
};

// A passive endpoint's socket, and the requests that are still arriving on it. Has
// a reactor and a lock of its own: a listener belongs to no domain. Thread-safe,
// except that the owner serializes bind(), listen() and destruction.
class Listener : private engine::Pollable {
  public:
    Listener(ListenerOwner& owner, const engine::Settings& settings);
    ~Listener(); // pending arrivals are dropped: their requesters see NON_PEER_REJECTED
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // Binds, again if bound before; port 0 picks one. 0 or -errno (EADDRINUSE,
    // EADDRNOTAVAIL, EACCES, EMFILE), with the earlier binding kept.
    int bind(const SocketAddress& address);
    // 0 or -errno. SP-1: listening when it returns.
    int listen(int backlog);
    // Not listening any more: the port is released (U-52), and whoever asks there finds
    // nobody. Not from announce().
    void stop();
    // Its socket, bound and not listening; it is nowhere bound then.
    Socket release() { return std::move(socket_); }
    // Where it is bound, or was last; the port is the real one.
    SocketAddress name() const { return name_; }

    // Accepts and reads what is there; announces. Does not block.
    void progress();
    // Readable when progress() has something to do. From bind() on.
    int wait_fd() const { return reactor_.fd(); }

  private:
    class Arrival; // a connection whose request is not whole yet
    struct Resume final : engine::Timer {
        explicit Resume(Listener& listener) : listener_(listener) {}
        void expired() override { listener_.resume(); }
        Listener& listener_;
    };

    void ready(std::uint32_t events) override;
    void finish(Arrival& arrival);
    void accept_failed(int error);
    void close_port();
    void resume();
    void look_later();
    static void end_all(base::List<Arrival, Arrival>& arrivals);

    ListenerOwner& owner_;
    const engine::Settings settings_;
    std::mutex mutex_; // reactor_, arrivals_
    engine::Reactor reactor_;
    Socket socket_;
    SocketAddress name_;
    bool listening_ = false;
    bool accepting_ = false;                // socket_ is in the reactor
    Resume resume_{*this};                  // set where the process is out of descriptors
    base::List<Arrival, Arrival> arrivals_; // owned, as the next; the oldest first
    base::List<Arrival, Arrival> finished_;
    std::size_t arrival_count_ = 0;
};

} // namespace dat::iwarp

#endif
