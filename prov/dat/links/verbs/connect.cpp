// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Both sides of the handshake. See connect.h.
#include "links/verbs/connect.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/domain.h"
#include "engine/kernel.h"
#include "links/verbs/channel.h"
#include "links/verbs/connect_call.h"
#include "links/verbs/link.h"
#include "links/verbs/sigpipe.h"
#include "links/verbs/trailer.h"
#include "net/bind_source.h"
#include "net/unmade.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace dat::verbs {

using core::Reason;
using core::Stimulus;
using engine::Parting;

namespace {

constexpr int kConsumerReject = 28; // IBA 12.6.7.2, "consumer reject"
constexpr std::uint8_t kRnrForEver = 7;

class Handshake final : public engine::Handshake,
                        public CmSink,
                        private engine::Timer,
                        private ConnectCall::Owner {
  public:
    // Takes the id.
    Handshake(Domain& domain, engine::Endpoint& endpoint, rdma_cm_id* id, bool passive,
              std::span<const std::byte> data)
        : domain_(domain), endpoint_(endpoint), attempt_(endpoint.attempt()), id_(id),
          passive_(passive), data_size_(std::min(data.size(), data_.size())) {
        std::copy_n(data.begin(), data_size_, data_.begin());
        id->context = static_cast<CmSink*>(this);
    }
    ~Handshake() override { abandon(); }

    void abandon() override {
        domain_.engine().handshakes().disarm(*this);
        if (call_) {
            call_.reset();
            link_->give_up();
        }
        if (link_) {
            link_->part(Parting::abandon);
            domain_.engine().retire(std::move(link_));
        } else if (id_) {
            kernel::uncancelled(rdma_destroy_id, id_);
        }
        id_ = nullptr;
        over_ = true;
    }
    void receives_posted() override {
        if (link_) {
            link_->post_receives();
        }
    }
    void happened(const CmEvent& event) override;

    void resolve(const sockaddr* source, const SocketAddress& destination);
    // `reads`: that the peer serves.
    void accept(bool gone, std::uint8_t reads);

  private:
    void expired() override { fail(later_, later_reason_); }
    // If nothing has come of it by then.
    void fail_after(engine::Clock::duration limit, Stimulus stimulus, Reason reason) {
        later_ = stimulus;
        later_reason_ = reason;
        domain_.engine().handshakes().arm(*this, limit);
    }
    // Nothing is reported from within the caller's call.
    void fail_later(Stimulus stimulus, Reason reason) {
        fail_after(engine::Clock::duration::zero(), stimulus, reason);
    }
    void fail(Stimulus stimulus, Reason reason, std::span<const std::byte> data = {}) {
        endpoint_.failed(attempt_, passive_ ? Stimulus::handshake_failed : stimulus, reason, data);
    }
    // An initiator could not be connected, with `error` as of connect(2): said, and the attempt is
    // over.
    void unmade(int error, Stimulus stimulus, Reason reason) {
        if (!passive_) {
            net::say_unmade(address_of(rdma_get_local_addr(id_)),
                            address_of(rdma_get_peer_addr(id_)), error);
        }
        fail(stimulus, reason);
    }
    int resolve_ms() const {
        return static_cast<int>(domain_.engine().settings().resolve_limit.count());
    }
    int open_link();
    rdma_conn_param parameters(std::size_t frame);
    void request();
    void connect_failed(int error) override;
    void answered(const CmEvent& event);
    void established(const CmEvent& event);
    void rejected(const CmEvent& event);

    Domain& domain_;
    engine::Endpoint& endpoint_;
    const core::Attempt attempt_;
    rdma_cm_id* id_;
    const bool passive_;
    bool over_ = false;
    std::array<std::byte, UINT8_MAX> data_; // private data, padded once it is sent
    std::size_t data_size_;
    std::unique_ptr<Link> link_;
    std::optional<ConnectCall> call_;
    Stimulus later_{};
    Reason later_reason_{};
};

int Handshake::open_link() {
    std::unique_ptr<Link> link;
    if (!base::attempt([&] { link = std::make_unique<Link>(domain_, endpoint_, id_, passive_); })) {
        DAT_WARN(ep_ctrl, "a connection fails as it begins: out of memory");
        return -ENOMEM;
    }
    int rc = -ENOMEM;
    if (!base::attempt([&] { rc = link->open(); })) {
        log_failure("a connection", ENOMEM);
    }
    link_ = std::move(link); // its id, from here on
    if (rc == 0) {
        // Each receive that is posted is told of; those that are shared go another way.
        endpoint_.set_starved(!endpoint_.shared());
        link_->post_receives();
    }
    return rc;
}

rdma_conn_param Handshake::parameters(std::size_t frame) {
    if (!domain_.device().iwarp && !domain_.device().raw_data) {
        const auto plain = data_;
        pad(std::span(plain).first(data_size_), std::span(data_).first(frame));
        data_size_ = frame;
    }
    rdma_conn_param param{};
    param.private_data = data_.data();
    param.private_data_len = static_cast<std::uint8_t>(data_size_);
    param.responder_resources = link_->reads_in();
    param.initiator_depth = link_->reads_out();
    param.retry_count = domain_.engine().settings().retries;
    param.rnr_retry_count = kRnrForEver;
    param.qp_num = link_->number();
    param.srq = endpoint_.shared() != nullptr;
    return param;
}

// `source`: nullptr: the id is bound. Else it could not be, and trying again says why.
void Handshake::resolve(const sockaddr* source, const SocketAddress& destination) {
    if (kernel::uncancelled(rdma_resolve_addr, id_, const_cast<sockaddr*>(source),
                            const_cast<sockaddr*>(destination.get()), resolve_ms()) != 0) {
        const int error = errno;
        net::say_unmade(source ? address_of(source) : address_of(rdma_get_local_addr(id_)),
                        destination, error);
        fail_later(Stimulus::unreachable, Reason::unreachable);
    }
}

// The route is known.
void Handshake::request() {
    if (!domain_.has(id_)) { // the peer may well be reached, but not from this domain's memory
        DAT_WARN(ep_ctrl,
                 "a connection cannot be made: its address has moved from the RDMA device %s to "
                 "%s, as in a bond whose active link has failed; a domain that is opened now is on "
                 "that one",
                 domain_.device().name.c_str(), ibv_get_device_name(id_->verbs->device));
        return fail(Stimulus::refused, Reason::resources);
    }
    if (open_link() != 0) {
        return fail(Stimulus::refused, Reason::resources);
    }
    rdma_conn_param param = parameters(kRequestFrame);
    if (domain_.device().iwarp) {
        ConnectCall::Owner& owner = *this;
        call_.emplace(domain_.engine().handshakes(), owner, id_, param);
        if (const int rc = call_->start()) {
            log_failure("a connection: a thread", -rc);
            fail(Stimulus::refused, Reason::resources);
        }
        return;
    }
    if (kernel::uncancelled(rdma_connect, id_, &param) != 0) {
        connect_failed(errno);
    }
}

void Handshake::connect_failed(int error) {
    call_.reset();
    DAT_INFO(ep_ctrl, "rdma_connect(): %s", std::strerror(error));
    if (error == ECONNREFUSED || error == ECONNRESET) {
        return unmade(error, Stimulus::refused, Reason::refused);
    }
    unmade(error, Stimulus::unreachable, Reason::unreachable);
}

void Handshake::accept(bool gone, std::uint8_t reads) {
    if (gone || open_link() != 0) {
        return fail_later(Stimulus::handshake_failed,
                          gone ? Reason::peer_closed : Reason::resources);
    }
    if (!domain_.device().iwarp) {
        link_->limit_reads(reads);
        link_->await_first();
    }
    rdma_conn_param param = parameters(kReplyFrame);
    const NoSigpipe guard(domain_.device().siw);
    if (!link_->become_ready(&param) || kernel::uncancelled(rdma_accept, id_, &param) != 0) {
        DAT_INFO(ep_ctrl, "rdma_accept(): %s", std::strerror(errno));
        return fail_later(Stimulus::handshake_failed, Reason::peer_closed);
    }
    // U-65: the connection manager itself takes more than a minute to give up.
    fail_after(domain_.engine().settings().handshake_limit, Stimulus::handshake_failed,
               Reason::handshake_limit);
}

// The peer has accepted; over iWARP the kernel sees to the rest by itself.
void Handshake::answered(const CmEvent& event) {
    if (!link_->become_ready(nullptr) || kernel::uncancelled(rdma_establish, id_) != 0) {
        DAT_INFO(ep_ctrl, "rdma_establish(): %s", std::strerror(errno));
        return fail(Stimulus::refused, Reason::peer_closed);
    }
    established(event);
}

void Handshake::established(const CmEvent& event) {
    const auto frame = event.private_data();
    const Device& device = domain_.device();
    const auto data = passive_ || !link_                ? std::span<const std::byte>()
                      : device.iwarp || device.raw_data ? frame
                                                        : content_of(frame).data;
    std::unique_ptr<Link> link = std::move(link_);
    if (!passive_ && !domain_.device().iwarp) {
        link->limit_reads(event.reads);
    }
    id_->context = static_cast<CmSink*>(link.get());
    id_ = nullptr;
    endpoint_.established(attempt_, passive_ ? Stimulus::handshake_done : Stimulus::peer_accepted,
                          std::move(link), data);
}

void Handshake::rejected(const CmEvent& event) {
    const auto frame = event.private_data();
    if (domain_.device().iwarp) {
        // The device tells a reject and a connection that was not answered by this alone; siw
        // tells a listener that goes away before it answers like a reject without data.
        const int rejected = domain_.device().siw ? -ECONNRESET : -ECONNREFUSED;
        const bool by_peer = event.status == rejected || !frame.empty();
        return by_peer ? fail(Stimulus::peer_rejected, Reason::rejected, frame)
                       : unmade(ECONNREFUSED, Stimulus::refused, Reason::refused);
    }
    const Content content = content_of(frame);
    if (event.status != kConsumerReject || content.refusal) {
        return unmade(ECONNREFUSED, Stimulus::refused, Reason::refused);
    }
    // For a process that has ended the kernel rejects as a Consumer does, but says nothing.
    if (std::ranges::all_of(frame, [](std::byte byte) { return byte == std::byte{0}; })) {
        return fail(Stimulus::refused, Reason::peer_closed);
    }
    fail(Stimulus::peer_rejected, Reason::rejected,
         domain_.device().raw_data ? frame : content.data);
}

void Handshake::happened(const CmEvent& event) {
    if (over_) {
        return;
    }
    if (call_) {
        call_->finish();
        call_.reset();
    }
    DAT_INFO(ep_ctrl, "rdma_cm: %s, status %d",
             rdma_event_str(static_cast<rdma_cm_event_type>(event.type)), event.status);
    switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (kernel::uncancelled(rdma_resolve_route, id_, resolve_ms()) != 0) {
            fail(Stimulus::unreachable, Reason::unreachable);
        }
        return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return request();
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        return answered(event);
    case RDMA_CM_EVENT_ESTABLISHED:
        return established(event);
    case RDMA_CM_EVENT_REJECTED:
        return rejected(event);
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        return unmade(event.status < 0 ? -event.status : ETIMEDOUT, Stimulus::unreachable,
                      Reason::unreachable);
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DISCONNECTED:
        return fail(Stimulus::refused, Reason::peer_closed);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return fail(Stimulus::refused, Reason::resources);
    default:
        return;
    }
}

// False: there is no memory for it, and the id has gone.
bool make_handshake(std::unique_ptr<Handshake>& made, Domain& domain, engine::Endpoint& endpoint,
                    rdma_cm_id* id, bool passive, std::span<const std::byte> data) {
    if (base::attempt(
            [&] { made = std::make_unique<Handshake>(domain, endpoint, id, passive, data); })) {
        return true;
    }
    DAT_WARN(ep_ctrl, "a connection fails as it begins: out of memory");
    rdma_destroy_id(id);
    return false;
}

// siw's connections are those of TCP, but the connection manager numbers their ports by itself: one
// that a socket has is refused as the connection begins (EADDRINUSE). Gives `source` a port that is
// free there, if it can.
void take_port_of_tcp(SocketAddress& source) {
    int error = 0;
    if (const net::Socket socket = net::bind_source(source, error)) {
        source = socket.local();
    }
}

bool bind(rdma_cm_id* id, const SocketAddress& source) {
    return kernel::uncancelled(rdma_bind_addr, id, const_cast<sockaddr*>(source.get())) == 0;
}

} // namespace

int connect(Domain& domain, engine::Endpoint& endpoint, const SocketAddress& destination,
            SocketAddress& source, std::span<const std::byte> private_data,
            std::optional<std::chrono::microseconds> timeout) {
    if (endpoint.core().state() != core::State::unconnected) {
        return -EISCONN;
    }
    rdma_cm_id* id = nullptr;
    if (kernel::uncancelled(rdma_create_id, domain.manager(), &id, nullptr, RDMA_PS_TCP) != 0) {
        return -errno;
    }
    SocketAddress from = source;
    if (domain.device().siw && source.port() == 0) {
        take_port_of_tcp(from);
    }
    // Resolving the address does it as well, but tells the port later.
    const bool bound = bind(id, from) || (from.port() != source.port() && bind(id, source));
    if (!bound && source.port() != 0) {
        const int error = errno;
        kernel::uncancelled(rdma_destroy_id, id);
        return -error;
    }
    const SocketAddress name = bound ? address_of(rdma_get_local_addr(id)) : source;
    int error = domain.engine().start_progress();
    error = error == 0 && !endpoint.begin_connect(timeout) ? -EISCONN : error;
    if (error != 0) {
        kernel::uncancelled(rdma_destroy_id, id);
        return error;
    }
    std::unique_ptr<Handshake> handshake;
    if (!make_handshake(handshake, domain, endpoint, id, false, private_data)) {
        endpoint.failed(endpoint.attempt(), Stimulus::refused, Reason::resources);
        return 0;
    }
    Handshake& begun = *handshake;
    endpoint.run(std::move(handshake));
    begun.resolve(bound ? nullptr : source.get(), destination);
    source = name;
    return 0;
}

int accept(Domain& domain, engine::Endpoint& endpoint, ConnRequest& request,
           std::span<const std::byte> private_data) {
    if (!request.core_.pending()) {
        return -EINVAL;
    }
    if (!domain.has(request.id_)) {
        return -ENODEV;
    }
    if (const int error = domain.engine().start_progress(); error != 0) {
        return error;
    }
    if (!endpoint.begin_accept()) {
        return -EISCONN;
    }
    request.core_.settle(core::ConnRequest::Fate::accepted);
    rdma_cm_id* const id = std::exchange(request.id_, nullptr);
    // Waits for whoever is about to tell `pending_`.
    const bool moved = kernel::uncancelled(rdma_migrate_id, id, domain.manager()) == 0;
    const bool gone = !moved || request.pending_->gone;
    std::unique_ptr<Handshake> handshake;
    if (!make_handshake(handshake, domain, endpoint, id, true, private_data)) {
        endpoint.failed(endpoint.attempt(), Stimulus::handshake_failed, Reason::resources);
        return 0;
    }
    Handshake& begun = *handshake;
    endpoint.run(std::move(handshake));
    begun.accept(gone, request.reads_);
    return 0;
}

} // namespace dat::verbs
