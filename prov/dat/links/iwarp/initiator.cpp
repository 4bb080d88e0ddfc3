// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The initiator's handshake, from the TCP connect to the reply. See connect.h.
#include "links/iwarp/connect.h"
#include "links/iwarp/handshake.h"
#include "links/iwarp/link.h"
#include "links/shm/link.h"
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

class Initiator final : public TcpHandshake {
  public:
    Initiator(engine::Endpoint& endpoint, std::span<const std::byte> private_data)
        : TcpHandshake(endpoint), private_data_(private_data.begin(), private_data.end()) {}

    void begin(Socket socket, const SocketAddress& destination) {
        TcpHandshake::begin(std::move(socket));
        start(destination);
    }

  private:
    void start(const SocketAddress& destination) {
        peer_ = destination;
        socket_.tune(domain_.settings().keepalive);
        if (kernel::connect(socket_.fd(), destination.get(), destination.size()) < 0 &&
            errno != EINPROGRESS) {
            error_ = errno;
            const auto [stimulus, reason] = classify(error_);
            return fail_soon(stimulus, reason);
        }
        // Within this host a connection is there by now, and takes the request.
        if (socket_.peer().valid() && !connected_to_itself()) {
            request_at_once();
        }
        if (watch(phase_ == Phase::waiting ? EPOLLIN : EPOLLOUT) != 0) {
            return fail_soon(Stimulus::refused, Reason::resources);
        }
        if (phase_ == Phase::connecting) {
            domain_.handshakes().arm(*this, net::kUnansweredFor);
        }
    }

    // Whatever is wrong with the connection is found out by the reactor.
    void request_at_once() {
        prepare_request();
        if (send() > 0) {
            phase_ = Phase::waiting;
        } else if (begun()) {
            phase_ = Phase::requesting;
        }
    }

    // Nobody listens: TCP connected the port to itself.
    bool connected_to_itself() const {
        const SocketAddress self = socket_.local();
        return self.port() == peer_.port() &&
               std::string_view(self.text()) == std::string_view(socket_.peer().text());
    }

    enum class Phase { connecting, requesting, waiting, joining } phase_ = Phase::connecting;

    // The responder's local socket, while it is asked to share memory.
    struct Bell final : engine::Pollable {
        explicit Bell(Initiator& initiator) : initiator_(initiator) {}
        void ready(std::uint32_t) override { initiator_.answered(); }
        Initiator& initiator_;
    };

    void abandon() override {
        forget_wake_socket();
        TcpHandshake::abandon();
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
        } else if (joining_) { // nobody answers there
            forget_wake_socket();
            joint_.why = {"nobody answers at the peer's local socket"};
            establish(reply_);
        } else if (fails_soon()) {
            fail_now();
        } else if (phase_ == Phase::connecting) {
            say_unanswered(socket_, peer_);
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
        if (error == 0 && connected_to_itself()) {
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
        asked_crc_ = wants_crc(domain_.settings().crc, socket_, peer_);
        MpaFrame frame;
        frame.kind = MpaKind::request;
        frame.revision = kMpaRevision2;
        frame.crc = asked_crc_;
        frame.from_dat = frame.wide = true;
        frame.memory = asked_memory_ =
            domain_.settings().shm && on_this_host(socket_.local(), socket_.peer());
        frame.enhanced = MpaEnhanced{.ird = endpoint_.reads().in,
                                     .ord = endpoint_.reads().out,
                                     .peer_to_peer = true,
                                     .rtr_empty_fpdu = false,
                                     .rtr_rdma_write = true,
                                     .rtr_rdma_read = false};
        frame.private_data = private_data_;
        prepare(frame);
    }

    void request() {
        const int sent = send();
        if (sent < 0) {
            return fail(Stimulus::peer_disconnected, Reason::peer_reset);
        }
        if (sent > 0) {
            phase_ = Phase::waiting;
            watch(EPOLLIN);
        }
    }

    void read_reply() {
        const MpaParse parse = parse_mpa_frame(MpaKind::reply, {buffer_.data(), in_});
        // A frame that is whole is still here for what version 0.1 has sent behind it.
        const std::size_t due =
            parse.status == MpaStatus::complete ? parse.size + kUnframedOffer - in_ : parse.size;
        const ssize_t n = kernel::recv(socket_.fd(), buffer_.data() + in_, due, 0);
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
        in_ += static_cast<std::size_t>(n);
        // Once begun, the rest of the reply has a limit (U-65).
        if (!armed()) {
            domain_.handshakes().arm(*this, domain_.settings().handshake_limit);
        }
        judge(parse_mpa_frame(MpaKind::reply, {buffer_.data(), in_}));
    }

    void judge(const MpaParse& parse) {
        if (parse.status == MpaStatus::need_more) {
            return;
        }
        if (parse.status == MpaStatus::error) {
            DAT_WARN(ep_ctrl, "connection to %s: its MPA reply is unusable: %s (%u)",
                     socket_.peer().text().c_str(), text(parse.error), parse.value);
            return fail(Stimulus::broken, Reason::protocol);
        }
        if (parse.frame.reject) {
            return fail(Stimulus::peer_rejected, Reason::rejected, parse.frame.private_data);
        }
        if (asked_memory_ && parse.frame.memory_of_0_1() && in_ < parse.size + kUnframedOffer) {
            return;
        }
        if (endpoint_.trace()) {
            endpoint_.trace()->clock(true, attempt_, asked_ns_, engine::trace_now_ns());
        }
        reply_ = parse.frame;
        std::span<const std::byte>& data = reply_.private_data;
        if (!reply_.memory || !asked_memory_ || reply_.memory_of_0_1()) {
            establish(reply_);
        } else if (!reply_.enhanced || data.size() < sizeof(shm::Offer)) {
            DAT_WARN(ep_ctrl,
                     "connection to %s: its MPA reply says that it offers memory, and has "
                     "%zu bytes of private data; an offer is %zu behind IRD and ORD",
                     socket_.peer().text().c_str(), data.size(), sizeof(shm::Offer));
            fail(Stimulus::broken, Reason::protocol);
        } else {
            const auto offer = data.last(sizeof(shm::Offer));
            data = data.first(data.size() - offer.size());
            consider(offer);
        }
    }

    // Shared memory is offered. Without it the connection stays here.
    void consider(std::span<const std::byte> bytes) {
        shm::Offer offer;
        std::copy(bytes.begin(), bytes.end(), offer.begin());
        if (!shm::join_host(domain_, offer, shm::ends_of(socket_.local(), socket_.peer()),
                            joint_)) {
            return establish(reply_);
        }
        if (domain_.handshakes().add(joint_.wake_socket.fd(), EPOLLIN, wake_socket_) != 0) {
            forget_wake_socket();
            joint_.why = {"the peer's local socket cannot be waited for"};
            return establish(reply_);
        }
        ignore(); // whether the responder is there shows at its local socket
        joining_ = true;
        phase_ = Phase::joining;
    }

    void answered() {
        const shm::Answer answer = shm::welcomed(domain_, joint_);
        if (answer == shm::Answer::none_yet) {
            return;
        }
        unwatch_wake_socket();
        if (answer == shm::Answer::refused) {
            forget_wake_socket();
            return gone() ? fail(Stimulus::peer_disconnected, Reason::peer_closed)
                          : establish(reply_);
        }
        joint_.parameters.ord = depth(endpoint_.reads().out, reply_.enhanced->ird);
        joint_.parameters.ird = depth(endpoint_.reads().in, reply_.enhanced->ord);
        log_memory(peer_, joint_);
        const Socket left = detach();
        if (auto link = make_link<shm::Link>(Stimulus::broken, std::move(joint_.wake_socket),
                                             std::move(joint_.segment), joint_.parameters,
                                             left.local(), std::move(joint_.place))) {
            say_why(*link, joint_);
            endpoint_.established(attempt_, Stimulus::peer_accepted, std::move(link),
                                  reply_.private_data);
        }
    }

    void unwatch_wake_socket() {
        if (std::exchange(joining_, false)) {
            domain_.handshakes().remove(joint_.wake_socket.fd(), wake_socket_);
        }
    }

    void forget_wake_socket() {
        unwatch_wake_socket();
        shm::leave(domain_, joint_);
    }

    const char* why_tcp(const MpaFrame& reply) const {
        return !reply.from_dat           ? "the peer is no `dat`"
               : !domain_.settings().shm ? "FI_DAT_SHM=0"
               : !asked_memory_          ? "the peer is on another host"
               : !reply.memory           ? "the peer offers no shared memory"
               : reply.memory_of_0_1() ? "the peer is version 0.1, whose memory has another layout"
                                       : joint_.why.data();
    }

    // What is queued for a peer of a reliable datagram endpoint would go to this connection, and
    // end with it. A peer that has given up, since its answer is read so late, is asked again.
    bool answered_too_late() const { return endpoint_.sink() && gone(); }

    void establish(const MpaFrame& reply) {
        if (answered_too_late()) {
            return fail(Stimulus::peer_disconnected, Reason::peer_closed);
        }
        log_tcp(peer_, why_tcp(reply));
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
        if (auto link = make_link<Link>(Stimulus::broken, detach(), parameters)) {
            link->say_why(why_tcp(reply));
            endpoint_.established(attempt_, Stimulus::peer_accepted, std::move(link),
                                  reply.private_data);
        }
    }

    const std::vector<std::byte> private_data_;
    SocketAddress peer_;
    SocketAddress from_; // where it was refused
    int error_ = 0;      // of connect(2), that was the last
    engine::Clock::time_point patience_ends_;
    std::chrono::milliseconds next_try_{0}; // 0: it was not refused yet
    bool waits_to_try_ = false;
    std::size_t in_ = 0;         // bytes of the reply in buffer_
    std::uint64_t asked_ns_ = 0; // when the request was ready to go
    bool asked_crc_ = false;
    bool asked_memory_ = false;
    MpaFrame reply_; // while asking; its private data is in buffer_
    bool joining_ = false;
    shm::Joint joint_;
    Bell wake_socket_{*this};
};

} // namespace

int connect(engine::Endpoint& endpoint, const SocketAddress& destination,
            const SocketAddress* source, std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout) {
    DAT_ASSERT(private_data.size() <= kMaxPrivateData);
    int error = 0;
    Socket socket = Socket::open(destination.family(), error);
    if (!socket) {
        return error;
    }
    if (source && source->valid() && source->family() == destination.family()) {
        SocketAddress from = *source;
        from.set_port(0);
        const int on = 1;
        setsockopt(socket.fd(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        if (::bind(socket.fd(), from.get(), from.size()) < 0) {
            return -errno;
        }
    }
    return connect(endpoint, destination, socket, private_data, timeout);
}

int connect(engine::Endpoint& endpoint, const SocketAddress& destination, Socket& socket,
            std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout) {
    std::unique_ptr<Initiator> handshake;
    if (!base::attempt([&] { handshake = std::make_unique<Initiator>(endpoint, private_data); })) {
        return -ENOMEM;
    }
    if (const int error = endpoint.domain().start_progress(); error != 0) {
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
