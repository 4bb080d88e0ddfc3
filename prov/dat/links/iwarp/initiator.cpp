// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The initiator's handshake, from the connect to the reply. See connect.h.
#include "links/iwarp/connect.h"
#include "links/iwarp/handshake.h"
#include "links/iwarp/link.h"
#include "links/shm/joining.h"
#include "links/shm/link.h"
#include "links/shm/proposing.h"
#include "net/unmade.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <sys/epoll.h>
#include <vector>

namespace dat::iwarp {
namespace {

using core::Reason;
using core::Stimulus;

// Which stimulus an error of connect(2) is (EP-42, EP-43, U-1).
std::pair<Stimulus, Reason> classify(int error) {
    switch (error) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case ETIMEDOUT:
    case EADDRNOTAVAIL:
    case EINVAL: // a route that drops everything, or from a loopback address to another host
    case EACCES: // a route or a filter of this host forbids it
    case EPERM:
        return {Stimulus::unreachable, Reason::unreachable};
    case ECONNREFUSED:
    case ECONNRESET:
        return {Stimulus::refused, Reason::refused};
    default:
        return {Stimulus::refused, Reason::resources};
    }
}

// A socket to connect from. `source`: nullptr, or its address. Without one -errno in `error`. What
// goes to an address of this host comes from there without being told so.
Socket open_source(const SocketAddress& destination, const SocketAddress* source, int& error) {
    Socket socket = Socket::open(destination.family(), error);
    if (socket && source && source->valid() && source->family() == destination.family() &&
        !source->same_host(destination)) {
        SocketAddress from = *source;
        from.set_port(0);
        const int on = 1;
        setsockopt(socket.fd(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        if (::bind(socket.fd(), from.get(), from.size()) < 0) {
            error = -errno;
            return {};
        }
    }
    return socket;
}

constexpr std::chrono::seconds kWithoutKeepalive{1}; // an answer may take so long

class Initiator final : public TcpHandshake, private shm::Joining::Owner {
  public:
    Initiator(engine::Endpoint& endpoint, std::span<const std::byte> private_data)
        : TcpHandshake(endpoint), private_data_(private_data.begin(), private_data.end()) {}
    ~Initiator() override { socket_.close(); } // before it is told that no answer is waited for

    // Connects without TCP, if it can be. Nothing is said yet.
    Socket connect_locally(const SocketAddress& destination, const SocketAddress* source) {
        source_ = source ? *source : SocketAddress();
        return proposing_.connect(destination, source, local_);
    }

    // The same attempt, on what that gave.
    void begin_locally(Socket socket, const SocketAddress& destination) {
        TcpHandshake::begin(std::move(socket));
        is_local_ = true;
        peer_ = real_peer_ = destination;
        request_at_once();
        if (phase_ == Phase::connecting) {
            return go_by_tcp();
        }
        if (watch(phase_ == Phase::waiting ? EPOLLIN : EPOLLOUT) != 0) {
            fail_soon(Stimulus::refused, Reason::resources);
        }
    }

    void begin(Socket socket, const SocketAddress& destination) {
        TcpHandshake::begin(std::move(socket));
        start(destination);
    }

  private:
    void start(const SocketAddress& destination) {
        peer_ = destination;
        if (kernel::connect(socket_.fd(), destination.get(), destination.size()) < 0 &&
            errno != EINPROGRESS) {
            error_ = errno;
            const auto [stimulus, reason] = classify(error_);
            return fail_soon(stimulus, reason);
        }
        // Within this host a connection is there by now, and takes the request.
        if (is_connected() && !connected_to_itself()) {
            request_at_once();
        }
        if (watch(phase_ == Phase::waiting ? EPOLLIN : EPOLLOUT) != 0) {
            return fail_soon(Stimulus::refused, Reason::resources);
        }
        if (phase_ == Phase::connecting) {
            domain_.handshakes().arm(*this, net::kUnansweredFor);
        }
    }

    // Nobody has heard of it.
    void go_by_tcp() {
        is_local_ = false;
        local_ = real_peer_ = {};
        socket_.close();
        proposing_.settle();
        int error = 0;
        socket_ = open_source(peer_, &source_, error);
        if (!socket_) {
            error_ = -error;
            return fail_soon(Stimulus::refused, Reason::resources);
        }
        start(SocketAddress(peer_));
    }

    // Whatever is wrong with the connection is found out by the reactor.
    void request_at_once() {
        prepare_request();
        if (send() > 0) {
            requested();
        } else if (begun()) {
            phase_ = Phase::requesting;
        }
    }

    // The peer has all of the request. Where it does not answer soon it is watched whether it is
    // alive; a link does so by itself.
    void requested() {
        phase_ = Phase::waiting;
        if (!is_local_) {
            socket_.no_delay();
            socket_.share_port();
            domain_.handshakes().arm(*this, kWithoutKeepalive);
        }
    }

    // Where it goes to is not what the program named, where that was no address of one host.
    bool is_connected() {
        real_peer_ = socket_.peer();
        return real_peer_.valid();
    }

    // Nobody listens: TCP connected the port to itself.
    bool connected_to_itself() {
        local_ = socket_.local();
        return local_.port() == peer_.port() && local_.text() == real_peer_.text();
    }

    enum class Phase { connecting, requesting, waiting, joining } phase_ = Phase::connecting;

    void abandon() override {
        joining_.abandon();
        TcpHandshake::abandon();
        proposing_.forgo();
    }

    // Each time waits for twice as long, until patience is at its end.
    bool tries_again() override {
        constexpr std::chrono::milliseconds kFirst{1};
        const auto now = engine::Clock::now();
        if (next_try_ == std::chrono::milliseconds::zero()) {
            patience_ends_ = now + endpoint_.connection_options().patience;
            next_try_ = kFirst;
        }
        if (now >= patience_ends_) {
            return false;
        }
        ignore();
        waits_to_try_ = true;
        domain_.handshakes().arm(*this, next_try_);
        next_try_ *= 2;
        from_ = socket_.local();
        return true;
    }

    void explain() override {
        if (error_ != 0) {
            say_unmade(socket_.local(), peer_, error_);
        }
    }

    void try_again() {
        waits_to_try_ = false;
        error_ = 0;
        sockaddr nowhere{};
        nowhere.sa_family = AF_UNSPEC; // the socket forgets that it was refused
        kernel::connect(socket_.fd(), &nowhere, sizeof nowhere);
        // And its port, where that was the kernel's choice. Where another has it by now, it is
        // chosen anew.
        (void)::bind(socket_.fd(), from_.get(), from_.size());
        phase_ = Phase::connecting;
        start(SocketAddress(peer_));
    }

    void expired() override {
        if (waits_to_try_) {
            try_again();
        } else if (joining_.is_under_way()) { // nobody answers there
            joining_.abandon();
            why_tcp_ = {"nobody answers at the peer's local socket"};
            establish(reply_);
        } else if (fails_soon()) {
            fail_now();
        } else if (phase_ == Phase::connecting) {
            say_unanswered(socket_, peer_);
        } else if (phase_ == Phase::waiting && in_ == 0) {
            socket_.keep_alive(domain_.settings().keepalive);
        } else {
            fail(Stimulus::broken, Reason::handshake_limit);
        }
    }

    void ready(std::uint32_t) override {
        if (phase_ == Phase::connecting && !connected()) {
            return;
        }
        if (phase_ == Phase::requesting) {
            request();
        } else {
            std::size_t before = 0;
            do {
                before = in_;
                read_reply();
            } while (phase_ == Phase::waiting && socket_ && in_ != before);
        }
    }

    bool connected() {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0 && is_connected() && connected_to_itself()) {
            error = ECONNREFUSED;
        }
        domain_.handshakes().disarm(*this);
        if (error != 0) {
            error_ = error;
            const auto [stimulus, reason] = classify(error);
            fail(stimulus, reason);
            return false;
        }
        prepare_request();
        phase_ = Phase::requesting;
        return true;
    }

    void prepare_request() {
        asked_ns_ = engine::trace_now_ns();
        asked_crc_ = wants_crc(domain_.settings().crc, local_, peer_);
        MpaFrame frame;
        frame.kind = MpaKind::request;
        frame.revision = kMpaRevision2;
        frame.crc = asked_crc_;
        frame.from_dat = frame.wide = true;
        frame.memory = asked_memory_ =
            is_local_ || (domain_.settings().shm && on_this_host(local_, real_peer_));
        frame.enhanced = MpaEnhanced{.ird = endpoint_.reads().in,
                                     .ord = endpoint_.reads().out,
                                     .peer_to_peer = true,
                                     .rtr_empty_fpdu = false,
                                     .rtr_rdma_write = true,
                                     .rtr_rdma_read = false};
        frame.private_data = private_data_;
        if (is_local_) {
            const shm::Proposal proposal = proposing_.proposal(shm::ends_of(local_, real_peer_));
            return prepare(frame, std::as_bytes(std::span(&proposal, 1)));
        }
        prepare(frame);
    }

    void request() {
        const int sent = send();
        if (sent < 0) {
            return fail(Stimulus::peer_disconnected, Reason::peer_reset);
        }
        if (sent > 0) {
            requested();
            watch(EPOLLIN);
        }
    }

    // What comes behind the reply is read along, so that it is one read. A frame that is whole is
    // still here for what version 0.1 has sent behind it.
    void read_reply() {
        const ssize_t n = kernel::recv(socket_.fd(), buffer_.data() + in_, buffer_.size() - in_, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            const bool keepalive = n < 0 && errno == ETIMEDOUT;
            return fail(keepalive ? Stimulus::unreachable : Stimulus::peer_disconnected,
                        keepalive ? Reason::keepalive
                        : n < 0   ? Reason::peer_reset
                                  : Reason::peer_closed);
        }
        // Once begun, the rest of the reply has a limit (U-65).
        if (in_ == 0) {
            domain_.handshakes().arm(*this, domain_.settings().handshake_limit);
        }
        in_ += static_cast<std::size_t>(n);
        judge(parse_mpa_frame(MpaKind::reply, {buffer_.data(), in_}));
    }

    void judge(const MpaParse& parse) {
        if (parse.status == MpaStatus::need_more) {
            return;
        }
        if (parse.status == MpaStatus::error) {
            DAT_WARN(ep_ctrl, "connection to %s: its MPA reply is unusable: %s (%u)",
                     real_peer_.text().c_str(), text(parse.error), parse.value);
            return fail(Stimulus::broken, Reason::protocol);
        }
        if (parse.frame.reject) {
            proposing_.settle();
            return fail(Stimulus::peer_rejected, Reason::rejected, parse.frame.private_data);
        }
        const std::size_t behind = !asked_memory_ || !parse.frame.memory ? 0
                                   : is_local_                           ? sizeof(shm::Placed)
                                   : parse.frame.memory_of_0_1()         ? kUnframedOffer
                                                                         : 0;
        if (in_ < parse.size + behind) {
            return;
        }
        reply_end_ = parse.size + behind;
        if (endpoint_.trace()) {
            endpoint_.trace()->clock(true, attempt_, asked_ns_, engine::trace_now_ns());
        }
        reply_ = parse.frame;
        if (is_local_) {
            return heed_place(std::span(buffer_).subspan(parse.size, behind));
        }
        std::span<const std::byte>& data = reply_.private_data;
        if (!reply_.memory || !asked_memory_ || reply_.memory_of_0_1()) {
            establish(reply_);
        } else if (!reply_.enhanced || data.size() < sizeof(shm::Offer)) {
            DAT_WARN(ep_ctrl,
                     "connection to %s: its MPA reply says that it offers memory, and has "
                     "%zu bytes of private data; an offer is %zu behind IRD and ORD",
                     real_peer_.text().c_str(), data.size(), sizeof(shm::Offer));
            fail(Stimulus::broken, Reason::protocol);
        } else {
            shm::Offer offer;
            std::ranges::copy(data.last(offer.size()), offer.begin());
            data = data.first(data.size() - offer.size());
            consider(offer);
        }
    }

    // What came behind the reply on a local stream.
    void heed_place(std::span<const std::byte> bytes) {
        const auto placed = shm::parse<shm::Placed>(bytes);
        if (placed && reply_.enhanced && placed->has_place != 0) {
            shm::Joint joint;
            if (proposing_.take(placed->place, joint)) {
                // As answered_too_late().
                if (endpoint_.sink() && !joint.channel->is_peer_there()) {
                    return fail(Stimulus::peer_disconnected, Reason::peer_closed);
                }
                return joined(std::move(joint));
            }
            why_tcp_ = joint.why;
            return establish(reply_);
        }
        proposing_.settle();
        if (!reply_.memory) {
            establish(reply_);
        } else if (placed && reply_.enhanced) {
            consider(shm::offer_of(placed->name, placed->cookie));
        } else {
            DAT_WARN(ep_ctrl,
                     "connection to %s: its reply says that it offers memory, and what "
                     "comes behind it is no offer",
                     real_peer_.text().c_str());
            fail(Stimulus::broken, Reason::protocol);
        }
    }

    // Shared memory is offered. Without it the connection stays here.
    void consider(const shm::Offer& offer) {
        if (!joining_.begin(offer, shm::ends_of(local_, real_peer_), why_tcp_)) {
            return establish(reply_);
        }
        ignore(); // whether the responder is there shows at its local socket
        phase_ = Phase::joining;
    }

    void stayed_out(const shm::Why& why) override {
        why_tcp_ = why;
        return gone() ? fail(Stimulus::peer_disconnected, Reason::peer_closed) : establish(reply_);
    }

    void joined(shm::Joint joint) override {
        joint.parameters.ord = depth(endpoint_.reads().out, reply_.enhanced->ird);
        joint.parameters.ird = depth(endpoint_.reads().in, reply_.enhanced->ord);
        log_memory(joint);
        const Socket left = detach();
        if (real_peer_.port() == peer_.port() && real_peer_.same_host(peer_)) {
            shm::LocalListener::at(domain_).known_listeners().remember(
                peer_, local_, joint.listener, joint.channel->peering());
        }
        if (auto link = make_link<shm::Link>(Stimulus::broken, std::move(joint.channel),
                                             joint.parameters, local_)) {
            say_why(*link, joint);
            endpoint_.established(attempt_, Stimulus::peer_accepted, std::move(link),
                                  reply_.private_data);
        }
    }

    const char* why_tcp(const MpaFrame& reply) const {
        return !reply.from_dat           ? "the peer is no `dat`"
               : !domain_.settings().shm ? "FI_DAT_SHM=0"
               : !asked_memory_          ? "the peer is on another host"
               : !reply.memory           ? "the peer offers no shared memory"
               : reply.memory_of_0_1() ? "the peer is version 0.1, whose memory has another layout"
                                       : why_tcp_.data();
    }

    // What is queued for a peer of a reliable datagram endpoint would go to this connection, and
    // end with it. A peer that has given up, since its answer is read so late, is asked again.
    bool answered_too_late() const { return endpoint_.sink() && gone(); }

    void establish(const MpaFrame& reply) {
        if (answered_too_late()) {
            return fail(Stimulus::peer_disconnected, Reason::peer_closed);
        }
        log_tcp(why_tcp(reply));
        Link::Parameters parameters;
        parameters.dat_peer = reply.from_dat;
        parameters.wide = reply.wide;
        parameters.crc = asked_crc_ || reply.crc;
        if (reply.enhanced) {
            parameters.ord = depth(endpoint_.reads().out, reply.enhanced->ird);
            parameters.ird = depth(endpoint_.reads().in, reply.enhanced->ord);
            parameters.send_rtr = reply.enhanced->peer_to_peer;
        } else {
            parameters.ord = depth(endpoint_.reads().out, kUnknownReadDepth);
            parameters.ird = endpoint_.reads().in;
        }
        const auto early = std::span<const std::byte>(buffer_).first(in_).subspan(reply_end_);
        if (auto link = make_link<Link>(Stimulus::broken, detach(), local_, parameters, early)) {
            link->say_why(why_tcp(reply));
            endpoint_.established(attempt_, Stimulus::peer_accepted, std::move(link),
                                  reply.private_data);
        }
    }

    const std::vector<std::byte> private_data_;
    SocketAddress real_peer_; // of the socket
    SocketAddress source_;    // that was asked for, or none
    SocketAddress from_;      // where it was refused
    int error_ = 0;           // of connect(2), that was the last
    engine::Clock::time_point patience_ends_;
    std::chrono::milliseconds next_try_{0}; // 0: it was not refused yet
    bool waits_to_try_ = false;
    std::size_t in_ = 0;         // bytes in buffer_: the reply, and what came behind it
    std::size_t reply_end_ = 0;  // how many are the reply
    std::uint64_t asked_ns_ = 0; // when the request was ready to go
    bool asked_crc_ = false;
    bool asked_memory_ = false;
    MpaFrame reply_; // while asking; its private data is in buffer_
    shm::Why why_tcp_{};
    shm::Joining joining_{domain_, *this};
    shm::Proposing proposing_{domain_};
};

// 0: the attempt is to be begun. -errno: nothing happened.
int prepare(engine::Endpoint& endpoint, std::span<const std::byte> private_data,
            std::unique_ptr<Initiator>& handshake) {
    DAT_ASSERT(private_data.size() <= kMaxPrivateData);
    if (!base::attempt([&] { handshake = std::make_unique<Initiator>(endpoint, private_data); })) {
        return -ENOMEM;
    }
    return endpoint.domain().start_progress();
}

} // namespace

int connect(engine::Endpoint& endpoint, const SocketAddress& destination,
            const SocketAddress* source, std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout) {
    std::unique_ptr<Initiator> handshake;
    if (const int error = prepare(endpoint, private_data, handshake); error != 0) {
        return error;
    }
    if (endpoint.core().state() != core::State::unconnected) {
        return -EISCONN;
    }
    Initiator& initiator = *handshake;
    Socket socket = initiator.connect_locally(destination, source);
    const bool local = static_cast<bool>(socket);
    if (!local) {
        int error = 0;
        socket = open_source(destination, source, error);
        if (!socket) {
            return error;
        }
    }
    if (!endpoint.begin_connect(timeout)) {
        return -EISCONN;
    }
    endpoint.run(std::move(handshake));
    if (local) {
        initiator.begin_locally(std::move(socket), destination);
    } else {
        initiator.begin(std::move(socket), destination);
    }
    return 0;
}

int connect(engine::Endpoint& endpoint, const SocketAddress& destination, Socket& socket,
            std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout) {
    std::unique_ptr<Initiator> handshake;
    if (const int error = prepare(endpoint, private_data, handshake); error != 0) {
        return error;
    }
    if (!endpoint.begin_connect(timeout)) {
        return -EISCONN;
    }
    Initiator& initiator = *handshake;
    endpoint.run(std::move(handshake));
    initiator.begin(std::move(socket), destination);
    return 0;
}

} // namespace dat::iwarp
