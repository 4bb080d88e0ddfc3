// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Making iWARP connections over TCP: listener, connection request, and the two
// handshakes (RFC 5044 7.1, RFC 6581). Between processes that share memory already the same is done
// on a local stream (shm/proposing.h), which is the listener's as well.
#ifndef DAT_LINKS_IWARP_CONNECT_H
#define DAT_LINKS_IWARP_CONNECT_H

#include "base/list.h"
#include "core/service_point.h"
#include "engine/endpoint.h"
#include "engine/reactor.h"
#include "engine/settings.h"
#include "links/iwarp/mpa.h"
#include "links/shm/hello.h"
#include "links/shm/reaper.h"
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

// A connection whose request has come.
struct Arrived {
    SocketAddress local;
    SocketAddress peer;
    MpaFrame frame;               // of a ConnRequest its private_data is not valid
    std::vector<std::byte> early; // behind it; nothing, of a peer that waits for the reply
    Socket socket;
    std::uint64_t at_ns = 0; // trace_now_ns()
    // Where it has come on a local stream.
    std::optional<shm::Proposal> proposal;
    shm::Name listener{}; // what that of its port is called, or none
};

// A reply that refuses, in one piece: the socket is new, so it takes it.
void send_reject(const Socket& socket, const MpaFrame& request,
                 std::span<const std::byte> private_data);

// A connection request that a listener announced. Owns its socket until it is
// settled; destroyed unsettled it is refused (its requester: NON_PEER_REJECTED).
// Belongs to one thread at a time.
class ConnRequest {
  public:
    // `keepalive`: what the socket is tuned for. Throws std::bad_alloc.
    ConnRequest(Arrived&& arrived, std::chrono::seconds keepalive);

    const SocketAddress& peer() const { return arrived_.peer; }
    const SocketAddress& local() const { return arrived_.local; }
    // The bytes that the requester sent, exactly (PD-5).
    std::span<const std::byte> private_data() const { return private_data_; }
    bool pending() const { return core_.pending(); }
    // What an accept or reject of this request may carry.
    std::size_t max_private_data() const {
        if (arrived_.frame.from_dat) {
            return kMaxPrivateData;
        }
        return kMaxForeignPrivateData - (arrived_.frame.enhanced ? kMpaEnhancedSize : 0);
    }

    // CR-7: the peer gets PEER_REJECTED with this data. False: settled before.
    // Precondition: private_data.size() <= max_private_data().
    bool reject(std::span<const std::byte> private_data);

  private:
    friend int accept(engine::Endpoint&, ConnRequest&, std::span<const std::byte>);

    core::ConnRequest core_;
    Arrived arrived_;
    std::chrono::seconds keepalive_;
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
//
// From the first request on that asks for shared memory it listens for local streams as well; what
// such a guest is told of it (shm/peering.h) leads the next one there. Without a descriptor for
// that all goes by TCP.
class Listener {
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
    // A socket that listens, and is in the reactor. What is accepted goes to let_in().
    class Port final : private engine::Pollable, private engine::Timer {
      public:
        Port(Listener& listener, bool local) : listener_(listener), is_local_(local) {}
        ~Port() { close(); }
        int open(Socket&& socket); // 0, or -errno and it is not taken
        Socket take();
        void close();
        const Socket& socket() const { return socket_; }
        void calm() { burst_ = 1; }

      private:
        void ready(std::uint32_t events) override;
        void expired() override;
        void accept_failed(int error);

        Listener& listener_;
        const bool is_local_;
        Socket socket_;
        bool accepting_ = false; // in the reactor; else the timer is set
        int burst_ = 1;          // so many are accepted at once
    };

    void let_in(Socket socket, bool local);
    bool may_come_in(const Socket& socket);
    shm::Name name_for(const Arrived& arrived);
    void finish(Arrival& arrival);
    void close_ports();
    static void end_all(base::List<Arrival, Arrival>& arrivals);

    ListenerOwner& owner_;
    const engine::Settings settings_;
    std::mutex mutex_; // reactor_, arrivals_
    engine::Reactor reactor_;
    Socket socket_; // bound, and not listening yet
    SocketAddress name_;
    int backlog_ = 0;
    bool listening_ = false;
    Port port_{*this, false};
    Port local_port_{*this, true};
    shm::Name local_name_{};                // of that
    std::unique_ptr<shm::Reaper> reaper_;   // once it has listened
    base::List<Arrival, Arrival> arrivals_; // owned, as the next; the oldest first
    base::List<Arrival, Arrival> finished_;
    std::size_t arrival_count_ = 0;
};

} // namespace dat::iwarp

#endif
