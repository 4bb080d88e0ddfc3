// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The two handshakes: the initiator's from the TCP connect to the reply, the
// responder's from the accept to ready-to-receive. See connect.h.
// May include: soft, core, base, system headers.
#include "soft/iwarp/connect.h"

#include "base/log.h"
#include "soft/domain.h"
#include "soft/iwarp/link.h"
#include "soft/shm/door.h"
#include "soft/shm/link.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace dat::iwarp {
namespace {

using core::Reason;
using core::Stimulus;

// Where the peer does not say how many it can serve (RFC 5044 has no field for it).
constexpr std::uint16_t kUnknownReadDepth = 1;

// How many RDMA reads at once: what this side wants, and the peer allows.
std::uint16_t depth(std::uint16_t wanted, std::uint16_t offered) {
    return offered == kMpaNoDepth ? wanted : std::min(offered, wanted);
}

// Of a connected socket. What goes to an address of this host leaves it by no wire.
bool wants_crc(soft::Crc setting, const Socket& socket, const SocketAddress& peer) {
    return setting == soft::Crc::on ||
           (setting == soft::Crc::automatic && !peer.loopback() && !peer.same_host(socket.local()));
}

// What both handshakes share: a socket in the domain's reactor, a frame that goes
// out and one that comes in.
class TcpHandshake : public soft::Handshake, protected soft::Pollable, protected soft::Timer {
  public:
    TcpHandshake(soft::Endpoint& endpoint, Socket socket)
        : endpoint_(endpoint), domain_(endpoint.domain()), attempt_(endpoint.attempt()),
          socket_(std::move(socket)) {}

    void abandon() override { detach(); }

  protected:
    int watch(std::uint32_t events) {
        const int error = watched_ ? 0 : domain_.handshakes().add(socket_.fd(), events, *this);
        if (watched_) {
            domain_.handshakes().modify(socket_.fd(), events, *this);
        }
        watched_ = watched_ || error == 0;
        return error;
    }

    // Takes the socket out of the reactor; with it goes every call to this object.
    Socket detach() {
        domain_.handshakes().disarm(*this);
        ignore();
        return std::move(socket_);
    }

    // The socket stays, and tells of nothing.
    void ignore() {
        if (std::exchange(watched_, false)) {
            domain_.handshakes().remove(socket_.fd(), *this);
        }
    }

    // The peer has closed; for a requester while its request was pending, CR-6.
    bool gone() const {
        std::byte one;
        const ssize_t n = ::recv(socket_.fd(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    }

    void fail(Stimulus stimulus, Reason reason, std::span<const std::byte> data = {}) {
        if (reason == Reason::refused && tries_again()) {
            pending_ = {};
            return;
        }
        endpoint_.failed(attempt_, stimulus, reason, data);
    }

    // Reports `stimulus` from the reactor, after the caller's call has returned.
    void fail_soon(Stimulus stimulus, Reason reason) {
        pending_ = {stimulus, reason};
        domain_.handshakes().arm(*this, soft::Clock::now());
    }
    bool fails_soon() const { return pending_.reason != Reason::none; }
    void fail_now() { fail(pending_.stimulus, pending_.reason); }

    // Nobody listened. True: that is not the end of it.
    virtual bool tries_again() { return false; }

    // Encodes the frame to be sent.
    void prepare(const MpaFrame& frame) {
        out_size_ = encode_mpa_frame(frame, buffer_);
        out_done_ = 0;
        assert(out_size_ > 0);
    }

    // Sends what is left of it. 1: all is sent; 0: not yet; -errno.
    int send() {
        const ssize_t n = ::send(socket_.fd(), buffer_.data() + out_done_, out_size_ - out_done_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        }
        out_done_ += static_cast<std::size_t>(n);
        return out_done_ == out_size_ ? 1 : 0;
    }

    // Some of it is sent.
    bool begun() const { return out_done_ > 0; }

    soft::Endpoint& endpoint_;
    soft::Domain& domain_;
    const core::Attempt attempt_;
    Socket socket_;
    // Room for the largest frame; first for what goes out, then for what comes in.
    // Between `dat` processes an offer of shared memory may follow.
    std::array<std::byte, kMpaMaxFrameSize + sizeof(shm::Offer)> buffer_;

    void append(std::span<const std::byte> bytes) {
        std::memcpy(buffer_.data() + out_size_, bytes.data(), bytes.size());
        out_size_ += bytes.size();
    }

  private:
    struct Pending {
        Stimulus stimulus = Stimulus::refused;
        Reason reason = Reason::none;
    } pending_;
    std::size_t out_size_ = 0;
    std::size_t out_done_ = 0;
    bool watched_ = false;
};

// Which stimulus an error of connect(2) is (EP-42, EP-43, U-1).
std::pair<Stimulus, Reason> classify(int error) {
    switch (error) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case ETIMEDOUT:
    case EADDRNOTAVAIL:
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
    Initiator(soft::Endpoint& endpoint, Socket socket, std::span<const std::byte> private_data)
        : TcpHandshake(endpoint, std::move(socket)),
          private_data_(private_data.begin(), private_data.end()) {}

    void start(const SocketAddress& destination) {
        peer_ = destination;
        socket_.tune(domain_.settings().keepalive);
        if (::connect(socket_.fd(), destination.get(), destination.size()) < 0 &&
            errno != EINPROGRESS) {
            const auto [stimulus, reason] = classify(errno);
            return fail_soon(stimulus, reason);
        }
        // Within this host a connection is there by now, and takes the request.
        if (socket_.peer().valid() && !connected_to_itself()) {
            request_at_once();
        }
        if (watch(phase_ == Phase::waiting ? EPOLLIN : EPOLLOUT) != 0) {
            fail_soon(Stimulus::refused, Reason::resources);
        }
    }

  private:
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
        return self.port() == peer_.port() && self.text() == socket_.peer().text();
    }

    enum class Phase { connecting, requesting, waiting, knocking } phase_ = Phase::connecting;

    // The responder's local socket, while it is asked to share memory.
    struct Bell final : soft::Pollable {
        explicit Bell(Initiator& initiator) : initiator_(initiator) {}
        void ready(std::uint32_t) override { initiator_.answered(); }
        Initiator& initiator_;
    };

    void abandon() override {
        forget_bell();
        TcpHandshake::abandon();
    }

    // Each time waits for twice as long, until patience is at its end.
    bool tries_again() override {
        constexpr std::chrono::milliseconds kFirst{1};
        const auto now = soft::Clock::now();
        if (next_try_ == std::chrono::milliseconds::zero()) {
            patience_ends_ = now + endpoint_.patience();
            next_try_ = kFirst;
        }
        if (now >= patience_ends_) {
            return false;
        }
        ignore();
        waits_to_try_ = true;
        domain_.handshakes().arm(*this, next_try_);
        next_try_ *= 2;
        return true;
    }

    void try_again() {
        waits_to_try_ = false;
        sockaddr nowhere{};
        nowhere.sa_family = AF_UNSPEC; // the socket forgets that it was refused
        ::connect(socket_.fd(), &nowhere, sizeof nowhere);
        phase_ = Phase::connecting;
        start(SocketAddress(peer_));
    }

    void expired() override {
        if (waits_to_try_) {
            try_again();
        } else if (fails_soon()) {
            fail_now();
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
        if (error != 0) {
            const auto [stimulus, reason] = classify(error);
            fail(stimulus, reason);
            return false;
        }
        prepare_request();
        phase_ = Phase::requesting;
        return true;
    }

    void prepare_request() {
        asked_crc_ = wants_crc(domain_.settings().crc, socket_, peer_);
        MpaFrame frame;
        frame.kind = MpaKind::request;
        frame.revision = kMpaRevision2;
        frame.crc = asked_crc_;
        frame.from_dat = true;
        frame.memory = domain_.settings().shm;
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
        const std::size_t wanted = parse.status == MpaStatus::need_more
                                       ? parse.size
                                       : parse.size + sizeof(shm::Offer) - in_;
        const ssize_t n = ::recv(socket_.fd(), buffer_.data() + in_, wanted, 0);
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
        if (!parse.frame.memory || !parse.frame.enhanced) {
            establish(parse.frame);
        } else if (in_ == parse.size + sizeof(shm::Offer)) {
            reply_ = parse.frame;
            consider({buffer_.data() + parse.size, sizeof(shm::Offer)});
        }
    }

    // Shared memory is offered. Without it the connection stays here.
    void consider(std::span<const std::byte> bytes) {
        shm::Offer offer;
        std::copy(bytes.begin(), bytes.end(), offer.begin());
        if (!domain_.settings().shm || !shm::knock(offer, joint_) ||
            domain_.handshakes().add(joint_.bell.fd(), EPOLLIN, bell_) != 0) {
            return establish(reply_);
        }
        ignore(); // the responder leaves this connection as it says welcome
        knocking_ = true;
        phase_ = Phase::knocking;
    }

    void answered() {
        const shm::Answer answer = shm::welcomed(joint_);
        if (answer == shm::Answer::none_yet) {
            return;
        }
        forget_bell();
        if (answer == shm::Answer::refused) {
            return gone() ? fail(Stimulus::peer_disconnected, Reason::peer_closed)
                          : establish(reply_);
        }
        joint_.parameters.ord = depth(endpoint_.reads().out, reply_.enhanced->ird);
        joint_.parameters.ird = depth(endpoint_.reads().in, reply_.enhanced->ord);
        const Socket left = detach();
        auto link =
            std::make_unique<shm::Link>(endpoint_, std::move(joint_.bell),
                                        std::move(joint_.segment), joint_.parameters, left.local());
        endpoint_.established(attempt_, Stimulus::peer_accepted, std::move(link),
                              reply_.private_data);
    }

    void forget_bell() {
        if (std::exchange(knocking_, false)) {
            domain_.handshakes().remove(joint_.bell.fd(), bell_);
        }
    }

    void establish(const MpaFrame& reply) {
        Link::Parameters parameters;
        parameters.dat_peer = reply.from_dat;
        parameters.crc = asked_crc_ || reply.crc;
        if (reply.enhanced) {
            parameters.ord = depth(endpoint_.reads().out, reply.enhanced->ird);
            parameters.ird = depth(endpoint_.reads().in, reply.enhanced->ord);
            parameters.send_rtr = reply.enhanced->peer_to_peer;
        } else {
            parameters.ord = depth(endpoint_.reads().out, kUnknownReadDepth);
            parameters.ird = endpoint_.reads().in;
        }
        auto link = std::make_unique<Link>(endpoint_, detach(), parameters);
        endpoint_.established(attempt_, Stimulus::peer_accepted, std::move(link),
                              reply.private_data);
    }

    const std::vector<std::byte> private_data_;
    SocketAddress peer_;
    soft::Clock::time_point patience_ends_;
    std::chrono::milliseconds next_try_{0}; // 0: it was not refused yet
    bool waits_to_try_ = false;
    std::size_t in_ = 0; // bytes of the reply, and of an offer, in buffer_
    bool asked_crc_ = false;
    MpaFrame reply_; // while knocking; its private data is in buffer_
    bool knocking_ = false;
    shm::Joint joint_;
    Bell bell_{*this};
};

class Responder final : public TcpHandshake, private shm::Host {
  public:
    Responder(soft::Endpoint& endpoint, Socket socket)
        : TcpHandshake(endpoint, std::move(socket)) {}

    void start(const MpaFrame& request, const SocketAddress& peer, bool dat_peer,
               std::span<const std::byte> private_data) {
        MpaFrame reply;
        reply.kind = MpaKind::reply;
        reply.revision = request.revision;
        reply.crc = request.crc || wants_crc(domain_.settings().crc, socket_, peer);
        reply.from_dat = dat_peer;
        reply.private_data = private_data;
        parameters_.dat_peer = dat_peer;
        parameters_.crc = reply.crc;
        parameters_.ord = depth(endpoint_.reads().out, kUnknownReadDepth);
        parameters_.ird = endpoint_.reads().in;
        if (request.enhanced) {
            reply.enhanced = negotiate(*request.enhanced);
        }
        parameters_.hold = !parameters_.await_rtr;
        const bool shares = request.memory && parameters_.await_rtr && domain_.settings().shm;
        shm::Door* door = shares ? shm::Door::of(domain_) : nullptr;
        reply.memory = door != nullptr;
        prepare(reply);
        if (door) {
            offer_ = door->offer(*this);
            append(*offer_);
        }
        if (gone()) {
            return fail_soon(Stimulus::handshake_failed, Reason::peer_closed);
        }
        domain_.handshakes().arm(*this, domain_.settings().handshake_limit);
        reply_now();
    }

  private:
    void abandon() override {
        withdraw();
        TcpHandshake::abandon();
    }

    void withdraw() {
        if (offer_) {
            static_cast<shm::Door*>(domain_.companion().get())->withdraw(*offer_);
            offer_.reset();
        }
    }

    // The initiator has come by the other way.
    void joined(shm::Joint joint) override {
        offer_.reset();
        joint.parameters.ord = parameters_.ord;
        joint.parameters.ird = parameters_.ird;
        const Socket left = detach();
        auto link =
            std::make_unique<shm::Link>(endpoint_, std::move(joint.bell), std::move(joint.segment),
                                        joint.parameters, left.local());
        endpoint_.established(attempt_, Stimulus::handshake_done, std::move(link), {});
    }

    // RFC 6581 9: what is served and asked for at once, and which ready-to-receive
    // frame the initiator is to send.
    MpaEnhanced negotiate(const MpaEnhanced& offer) {
        parameters_.ord = depth(endpoint_.reads().out, offer.ird);
        parameters_.ird = depth(endpoint_.reads().in, offer.ord);
        MpaEnhanced answer;
        answer.ird = parameters_.ird;
        answer.ord = parameters_.ord;
        answer.peer_to_peer = offer.peer_to_peer &&
                              (offer.rtr_rdma_write || offer.rtr_rdma_read || offer.rtr_empty_fpdu);
        answer.rtr_rdma_write = answer.peer_to_peer && offer.rtr_rdma_write;
        answer.rtr_rdma_read = answer.peer_to_peer && !answer.rtr_rdma_write && offer.rtr_rdma_read;
        answer.rtr_empty_fpdu =
            answer.peer_to_peer && !answer.rtr_rdma_write && !answer.rtr_rdma_read;
        parameters_.await_rtr = answer.peer_to_peer;
        return answer;
    }

    void expired() override {
        if (fails_soon()) {
            return fail_now();
        }
        DAT_INFO(ep_ctrl, "%s was accepted but sent no ready-to-receive frame within %lld s",
                 socket_.peer().text().c_str(),
                 static_cast<long long>(domain_.settings().handshake_limit.count()));
        fail(Stimulus::handshake_failed, Reason::handshake_limit);
    }

    void ready(std::uint32_t) override {
        if (!replied_) {
            return reply_now();
        }
        std::size_t before = 0;
        do {
            before = in_;
            read_first();
        } while (socket_ && in_ != before);
    }

    void reply_now() {
        const int sent = send();
        if (sent < 0) {
            return fail_soon(Stimulus::handshake_failed, Reason::peer_reset);
        }
        replied_ = sent > 0;
        if (replied_ && !parameters_.await_rtr) {
            return done();
        }
        if (watch(replied_ ? EPOLLIN : EPOLLOUT) != 0) {
            fail_soon(Stimulus::handshake_failed, Reason::peer_closed);
        }
    }

    // Until the header of the first frame is there: ready-to-receive or, from a peer
    // that leaves it out, anything else.
    void read_first() {
        const std::size_t wanted = first_wanted();
        const ssize_t n = ::recv(socket_.fd(), buffer_.data() + in_, wanted - in_, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            return fail(Stimulus::handshake_failed,
                        n < 0 ? Reason::peer_reset : Reason::peer_closed);
        }
        in_ += static_cast<std::size_t>(n);
        if (in_ >= kFpduLengthSize && in_ == first_wanted()) {
            done();
        }
    }

    std::size_t first_wanted() const {
        if (in_ < kFpduLengthSize) {
            return kFpduLengthSize;
        }
        return std::min(fpdu_size(peek_ulpdu_size(buffer_.data())), kFpduUntaggedHeaderSize);
    }

    void done() {
        withdraw();
        auto link = std::make_unique<Link>(endpoint_, detach(), parameters_);
        link->received_early({buffer_.data(), in_});
        endpoint_.established(attempt_, Stimulus::handshake_done, std::move(link), {});
    }

    Link::Parameters parameters_;
    std::optional<shm::Offer> offer_; // that stands
    bool replied_ = false;
    std::size_t in_ = 0; // bytes of the first frame in buffer_
};

} // namespace

int connect(soft::Endpoint& endpoint, const SocketAddress& destination, const SocketAddress* source,
            std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout) {
    assert(private_data.size() <= kMaxPrivateData);
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

int connect(soft::Endpoint& endpoint, const SocketAddress& destination, Socket& socket,
            std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout) {
    if (!endpoint.begin_connect(timeout)) {
        return -EISCONN;
    }
    auto handshake = std::make_unique<Initiator>(endpoint, std::move(socket), private_data);
    Initiator& initiator = *handshake;
    endpoint.run(std::move(handshake));
    initiator.start(destination);
    return 0;
}

int accept(soft::Endpoint& endpoint, ConnRequest& request,
           std::span<const std::byte> private_data) {
    assert(private_data.size() <= request.max_private_data());
    if (!request.pending()) {
        return -EINVAL;
    }
    if (!endpoint.begin_accept()) {
        return -EISCONN;
    }
    request.core_.settle(core::ConnRequest::Fate::accepted);
    if (request.keepalive_ != endpoint.domain().settings().keepalive) {
        request.socket_.tune(endpoint.domain().settings().keepalive);
    }
    auto handshake = std::make_unique<Responder>(endpoint, std::move(request.socket_));
    Responder& responder = *handshake;
    endpoint.run(std::move(handshake));
    responder.start(request.frame_, request.peer_, request.dat_peer_, private_data);
    return 0;
}

} // namespace dat::iwarp
