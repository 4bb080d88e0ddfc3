// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The life of a reliable datagram endpoint, and its peers. See rdm_ep.h.
#include "ofi/rdm_ep.h"

#include "base/attempt.h"
#include "base/log.h"
#include "base/reserve.h"
#include "engine/random.h"
#include "ofi/cm.h"
#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/no_op.h"
#include "ofi/post.h"
#include "ofi/provider.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>

namespace dat::ofi {
namespace {

constexpr std::uint64_t kNeedsTxQueue = FI_SEND | FI_READ | FI_WRITE;
// Requests that are outstanding with one peer; on a device each has a buffer for a message.
constexpr std::size_t kPeerQueue = 144;
constexpr std::size_t kDevicePeerQueue = 64;
constexpr int kBacklog = 4096;
constexpr std::uint32_t kAttempts = 64; // at once
constexpr unsigned kGlance = 4;         // peers that are looked at for one that is not used

RdmEndpoint& endpoint_of(fid_t f) { return object_of<RdmEndpoint, fid_ep>(f); }

int close(fid_t f) {
    delete &endpoint_of(f);
    return 0;
}

int bind(fid_t f, fid_t to, std::uint64_t flags) {
    switch (to->fclass) {
    case FI_CLASS_EQ:
        return endpoint_of(f).bind_queue(object_of<EventQueue, fid_eq>(to));
    case FI_CLASS_CQ:
        return endpoint_of(f).bind_queue(object_of<CompletionQueue, fid_cq>(to), flags);
    case FI_CLASS_CNTR:
        return endpoint_of(f).bind_counter(object_of<Counter, fid_cntr>(to), flags);
    case FI_CLASS_AV:
        return endpoint_of(f).bind_vector(object_of<AddressVector, fid_av>(to));
    default:
        DAT_WARN(ep_ctrl,
                 "fi_ep_bind(): objects of class %zu cannot be bound; address vectors, completion "
                 "queues, counters and event queues can",
                 to->fclass);
        return -FI_ENOSYS;
    }
}

int control(fid_t f, int command, void* arg) {
    RdmEndpoint& ep = endpoint_of(f);
    switch (command) {
    case FI_ENABLE:
        return no_throw([&] { return ep.enable(); });
    case FI_GETOPSFLAG:
        return get_default_flags(ep, *static_cast<std::uint64_t*>(arg));
    case FI_SETOPSFLAG:
        return set_default_flags(ep, ep.offering(), *static_cast<const std::uint64_t*>(arg));
    default:
        return -FI_ENOSYS;
    }
}

int get_ep_option(fid_t f, int level, int name, void* value, std::size_t* size) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
        return -FI_ENOPROTOOPT;
    }
    return get_min_multi(endpoint_of(f), value, size);
}

int set_ep_option(fid_t f, int level, int name, const void* value, std::size_t size) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
        return -FI_ENOPROTOOPT;
    }
    return set_min_multi(endpoint_of(f), value, size);
}

ssize_t cancel(fid_t f, void* context) {
    RdmEndpoint& ep = endpoint_of(f);
    if (!ep.enabled()) {
        return -FI_ENOENT;
    }
    const engine::BiasedLockOwner in(ep.biased_lock());
    return ep.messages().cancel(context) ? 0 : -FI_ENOENT;
}

ssize_t size_left(fid_ep* f, bool tx) {
    RdmEndpoint& ep = rdm_of(f);
    if (!ep.enabled()) {
        return -FI_EOPBADSTATE;
    }
    const engine::BiasedLockOwner in(ep.biased_lock());
    return static_cast<ssize_t>(tx ? ep.messages().sends_left() : ep.messages().receives_left());
}

ssize_t rx_size_left(fid_ep* f) { return size_left(f, false); }
ssize_t tx_size_left(fid_ep* f) { return size_left(f, true); }

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = DAT_NOT_OFFERED(fi_ops, ops_open),
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_ep g_ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = get_ep_option,
    .setopt = set_ep_option,
    .tx_ctx = DAT_NOT_OFFERED(fi_ops_ep, tx_ctx),
    .rx_ctx = DAT_NOT_OFFERED(fi_ops_ep, rx_ctx),
    .rx_size_left = rx_size_left,
    .tx_size_left = tx_size_left,
};

int set_name(fid_t f, void* address, std::size_t size) {
    const net::SocketAddress name(static_cast<const sockaddr*>(address), size);
    if (!name.valid()) {
        DAT_WARN(ep_ctrl, "fi_setname(): not an IPv4 or IPv6 socket address of %zu bytes", size);
        return -FI_EINVAL;
    }
    return no_throw([&] { return endpoint_of(f).set_name(name); });
}

int get_name(fid_t f, void* address, std::size_t* size) {
    return give_address(endpoint_of(f).name(), address, size);
}

fi_ops_cm g_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = set_name,
    .getname = get_name,
    .getpeer = DAT_NOT_OFFERED(fi_ops_cm, getpeer),
    .connect = DAT_NOT_OFFERED(fi_ops_cm, connect),
    .listen = DAT_NOT_OFFERED(fi_ops_cm, listen),
    .accept = DAT_NOT_OFFERED(fi_ops_cm, accept),
    .reject = DAT_NOT_OFFERED(fi_ops_cm, reject),
    .shutdown = DAT_NOT_OFFERED(fi_ops_cm, shutdown),
    .join = DAT_NOT_OFFERED(fi_ops_cm, join),
};

net::SocketAddress address_in(const fi_info& info) {
    return info.src_addr
               ? net::SocketAddress(static_cast<const sockaddr*>(info.src_addr), info.src_addrlen)
               : net::SocketAddress();
}

net::SocketAddress address_in(const rdm::Hello& hello) {
    return net::SocketAddress::of(hello.family == 4 ? AF_INET : AF_INET6, hello.host, hello.port,
                                  hello.scope);
}

std::unique_ptr<AnyListener> make_listener(AnyListenerOwner& owner, Domain& domain) {
    if (domain.device()) {
        return std::make_unique<HardListener>(owner, domain.fabric().raw_data());
    }
    return std::make_unique<SoftListener>(owner, domain.engine().settings());
}

Offering offering_in(Domain& domain, std::uint64_t caps) {
    return domain.device() ? rdm_offering_of(domain.device()->device(), caps) : rdm_offering();
}

core::RdmIdentity draw_identity() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return {static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()),
            engine::random_bits() | 1};
}

} // namespace

RdmEndpoint::RdmEndpoint(Domain& domain, Info info, void* context)
    : fid_ep{}, Bindings(domain, info->tx_attr->op_flags, info->rx_attr->op_flags),
      info_(std::move(info)), peer_info_(fi_dupinfo(info_.get())),
      zone_(Endpoint::zone_of(domain, *info_)), inject_size_(info_->tx_attr->inject_size),
      offering_(offering_in(domain, info_->caps)), directs_((info_->caps & FI_DIRECTED_RECV) != 0),
      tells_unknown_((info_->caps & FI_SOURCE_ERR) != 0), name_(address_in(*info_)),
      listener_(make_listener(static_cast<AnyListenerOwner&>(*this), domain)) {
    if (!peer_info_) {
        throw std::bad_alloc();
    }
    self_.identity = draw_identity();
    secret_ = {engine::random_bits(), engine::random_bits()};
    peer_info_->ep_attr->type = FI_EP_MSG;
    peer_info_->tx_attr->size =
        domain.device()
            ? std::min(kDevicePeerQueue, offering_of(domain.device()->device()).queue_size)
            : kPeerQueue;
    peer_info_->rx_attr->size = 1;
    peer_info_->tx_attr->inject_size = soft_offering().inject_size;
    fid.fclass = FI_CLASS_EP;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_ep_ops;
    cm = &g_cm_ops;
    msg = &msg_ops_not_enabled;
    tagged = &tagged_ops_not_enabled;
    rma = &rma_ops_not_enabled;
    atomic = &atomic_ops_not_enabled;
    collective = &no_collective_ops;
    domain_.users.add();
}

int RdmEndpoint::open() {
    if (!name_.valid()) {
        DAT_WARN(ep_ctrl, "fi_endpoint(): FI_EP_RDM without a src_addr; pass an info from "
                          "fi_getinfo()");
        return -FI_EINVAL;
    }
    if (const int rc = listener_->bind(name_)) {
        DAT_WARN(ep_ctrl, "fi_endpoint(): cannot listen on %s: %s", name_.text().c_str(),
                 std::strerror(-rc));
        return rc;
    }
    name_ = listener_->name();
    return 0;
}

int RdmEndpoint::set_name(const net::SocketAddress& name) {
    if (enabled()) {
        DAT_WARN(ep_ctrl, "fi_setname(): the endpoint is enabled already");
        return -FI_EOPBADSTATE;
    }
    if (const int rc = listener_->bind(name)) {
        DAT_WARN(ep_ctrl, "fi_setname(): cannot listen on %s: %s", name.text().c_str(),
                 std::strerror(-rc));
        return rc;
    }
    name_ = listener_->name();
    return 0;
}

// Until what the program was told to be sent has gone.
void RdmEndpoint::drain() {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + domain_.engine().settings().end_grace;
    for (;;) {
        bool said = true;
        {
            const engine::BiasedLockOwner in(biased_lock_);
            domain_.engine().progress();
            for (const auto& each : peers_) {
                said = said && !each->owes();
            }
        }
        if (said || Clock::now() >= deadline) {
            return;
        }
        pollfd fd{domain_.engine().wait_fd(), POLLIN, 0};
        poll(&fd, 1, 1);
    }
}

RdmEndpoint::~RdmEndpoint() {
    if (messages_) {
        drain();
    }
    {
        const engine::BiasedLockOwner in(biased_lock_);
        for (const auto& each : peers_) {
            each->say_goodbye();
        }
        if (watched_) {
            domain_.engine().handshakes().remove(listener_->wait_fd(), *this);
            domain_.engine().handshakes().disarm(turn_);
        }
        for (const auto& each : peers_) {
            each->remove();
        }
        domain_.engine().handshakes().disarm(turn_);
        if (messages_) {
            messages_->flush();
        }
        base::List<AddressUser, AddressUser>::remove(*this);
    }
    listener_.reset();
    peers_.clear();
    if (eq_) {
        eq_->remove_source(domain_);
        eq_->users.remove();
    }
    if (av_) {
        av_->users.remove();
    }
    domain_.users.remove();
}

int RdmEndpoint::bind_vector(AddressVector& av) {
    if (av_ || enabled() || &av.domain() != &domain_) {
        DAT_WARN(ep_ctrl, "fi_ep_bind(): %s",
                 enabled() ? "the endpoint is enabled already"
                 : av_     ? "an address vector is bound already"
                           : "the address vector belongs to another domain");
        return enabled() ? -FI_EOPBADSTATE : -FI_EINVAL;
    }
    av_ = &av;
    av.users.add();
    return 0;
}

void RdmEndpoint::set_tx_flags(std::uint64_t flags) {
    Bindings::set_tx_flags(flags);
    peer_info_->tx_attr->op_flags = flags;
    for (const auto& each : peers_) {
        if (each->has_endpoint()) {
            each->endpoint().set_tx_flags(flags);
        }
    }
}

void RdmEndpoint::set_min_multi(std::size_t least) {
    const engine::BiasedLockOwner in(biased_lock_);
    min_multi_ = least;
    if (messages_) {
        messages_->set_min_multi(least);
    }
}

int RdmEndpoint::enable() {
    if (enabled()) {
        return 0;
    }
    if (!av_) {
        DAT_WARN(ep_ctrl, "fi_enable(): bind an address vector first");
        return -FI_ENOAV;
    }
    if (((info_->caps & kNeedsTxQueue) != 0 && !tx_cq_ && !counters_.send && !counters_.write &&
         !counters_.read) ||
        ((info_->caps & FI_RECV) != 0 && !rx_cq_ && !counters_.receive)) {
        DAT_WARN(ep_ctrl, "fi_enable(): bind a completion queue or a counter with %s first",
                 tx_cq_ ? "FI_RECV" : "FI_TRANSMIT");
        return -FI_ENOCQ;
    }
    const rdm::Messages::Flags flags{.message = FI_RECV | FI_MSG,
                                     .tagged = FI_RECV | FI_TAGGED,
                                     .with_data = FI_REMOTE_CQ_DATA,
                                     .released = FI_MULTI_RECV};
    const auto most = static_cast<std::uint32_t>(offering_.queue_size);
    rdm::ReadRegistrar* const registrar = domain_.device() ? this : nullptr;
    auto messages = std::make_unique<rdm::Messages>(domain_.engine(), zone_.get(), flags, most,
                                                    most, registrar);
    if (const int rc = listener_->listen(kBacklog)) {
        DAT_WARN(ep_ctrl, "fi_enable(): cannot listen on %s: %s", name_.text().c_str(),
                 std::strerror(-rc));
        return rc;
    }
    const engine::BiasedLockOwner in(biased_lock_);
    if (const int rc = domain_.engine().handshakes().add(listener_->wait_fd(), EPOLLIN, *this)) {
        DAT_WARN(ep_ctrl, "fi_enable(): epoll: %s", std::strerror(-rc));
        return rc;
    }
    watched_ = true;
    messages->set_queues(tx_cq_, rx_cq_);
    messages->set_counters({counters_.send, counters_.receive});
    messages->set_min_multi(min_multi_);
    messages_ = std::move(messages);
    enabled_ = true;
    av_->add(*this);
    domain_.show();
    domain_.engine().need_progress();
    msg = &rdm_msg_ops;
    tagged = &rdm_tagged_ops;
    rma = &rdm_rma_ops;
    atomic = &rdm_atomic_ops;
    return 0;
}

// --- peers ---

std::unique_ptr<Endpoint> RdmEndpoint::make_endpoint(EndpointWatcher& watcher) {
    auto made = std::make_unique<Endpoint>(domain_, *peer_info_, nullptr, core::State::unconnected,
                                           &watcher);
    engine::Endpoint::Counters counters = counters_;
    counters.receive = nullptr; // of messages: counted where they are matched
    made->set_up(tx_cq_, rx_cq_, counters, tx_reports_);
    return made;
}

// One that was at an address which nobody knows, and of which nothing is left: whoever asks from
// ever new addresses finds what those before have used. So that this costs the same however many
// there are, only some are looked at each time.
RdmPeer* RdmEndpoint::unused_peer() {
    for (unsigned i = 0; i < kGlance && !at_rest_.empty(); ++i) {
        RdmPeer& peer = at_rest_.pop();
        if (!peer.is_at_rest()) {
            continue; // it comes back
        }
        if (!peer.is_self() && av_->number_of(peer.address()) == FI_ADDR_NOTAVAIL &&
            peer.is_unused()) { // which looks at the receives that are posted
            return &peer;
        }
        at_rest_.push(peer);
    }
    return nullptr;
}

RdmPeer& RdmEndpoint::at_address(const net::SocketAddress& address) {
    RdmPeer*& found = by_address_[key_of(address)];
    if (!found) {
        UnknownSources::Number unknown;
        if (tells_unknown_ && rx_cq_) {
            unknown = rx_cq_->source_for(address);
        }
        if (RdmPeer* const unused = unused_peer()) {
            by_address_.erase(key_of(unused->address()));
            unused->become(address, std::move(unknown));
            found = unused;
        } else {
            base::reserve_for(peers_, peers_.size() + 1);
            auto made = std::make_unique<RdmPeer>(*this, *messages_, address,
                                                  static_cast<std::uint32_t>(peers_.size()),
                                                  std::move(unknown));
            found = made.get();
            peers_.push_back(std::move(made));
        }
        rests(*found);
        if (address.same_host(name_) && address.port() == name_.port()) {
            found->make_self();
        }
        name_source(*found, av_->number_of(address));
    }
    return *found;
}

RdmPeer* RdmEndpoint::new_peer(fi_addr_t number, int& error) {
    const net::SocketAddress* const address = av_->find(number);
    if (!address) {
        DAT_WARN(ep_data, "%llu is no address of the endpoint's address vector",
                 static_cast<unsigned long long>(number));
        error = -FI_EINVAL;
        return nullptr;
    }
    RdmPeer* peer = nullptr;
    error = no_throw([&] {
        peer = &at_address(*address);
        if (by_number_.size() <= number) {
            by_number_.resize(std::max<std::size_t>(av_->size(), number + 1));
        }
        by_number_[number] = peer;
        return 0;
    });
    return error ? nullptr : peer;
}

void RdmEndpoint::named(const net::SocketAddress& address, fi_addr_t number) {
    const auto found = by_address_.find(key_of(address));
    if (found != by_address_.end() && found->second) {
        name_source(*found->second, number);
    }
}

// What completions say of whom a message came from.
void RdmEndpoint::name_source(RdmPeer& peer, fi_addr_t number) {
    if (number != FI_ADDR_NOTAVAIL) {
        peer.set_source(static_cast<std::uint32_t>(number + 1));
    } else if (peer.unknown_source() != 0) {
        peer.set_source(peer.unknown_source(), core::DtoStatus::unknown_source);
    } else {
        peer.set_source(0);
    }
}

void RdmEndpoint::removed(fi_addr_t number) {
    if (number < by_number_.size()) {
        by_number_[number] = nullptr;
    }
}

rdm::Hello RdmEndpoint::hello() const {
    rdm::Hello hello;
    hello.from = self_.identity;
    hello.window = messages_->window();
    hello.port = name_.port();
    hello.family = name_.family() == AF_INET ? 4 : 6;
    hello.host = name_.bytes();
    if (name_.family() == AF_INET6) {
        hello.scope = reinterpret_cast<const sockaddr_in6*>(name_.get())->sin6_scope_id;
    }
    return hello;
}

std::span<const std::byte> RdmEndpoint::write(const rdm::Hello& hello, HelloBytes& to) const {
    if (domain_.device()) {
        rdm::put_brief(to.data(), hello);
        return std::span(to).first(rdm::kBriefHelloSize);
    }
    rdm::put(to.data(), hello);
    return to;
}

bool RdmEndpoint::add(const engine::Iov& memory, std::uint32_t& key) {
    verbs::Domain& device = *domain_.device();
    ibv_mr* const made =
        device.register_memory(zone_.get(), memory.base, memory.length, {.remote_read = true});
    if (!made) {
        DAT_WARN(ep_data, "a message of %zu bytes cannot be registered with %s: %s", memory.length,
                 device.device().name.c_str(), std::strerror(errno));
        return false;
    }
    key = verbs::Domain::key_of(made);
    return true;
}

void RdmEndpoint::remove(const engine::Iov& memory, std::uint32_t key) {
    verbs::Domain& device = *domain_.device();
    if (ibv_mr* const made = device.memory().region(memory.base, key, false)) {
        device.deregister(made);
    }
}

void RdmEndpoint::attempt(RdmPeer& peer) {
    waiting_.push(peer);
    if (attempting_ < kAttempts) {
        ++attempting_;
        waiting_.remove(peer);
        peer.begin_attempt();
    }
}

void RdmEndpoint::attempt_soon(RdmPeer& peer) {
    waiting_.push(peer);
    domain_.engine().handshakes().arm(turn_, engine::Clock::now());
}

void RdmEndpoint::attempt_over() {
    --attempting_;
    if (!waiting_.empty()) {
        domain_.engine().handshakes().arm(turn_, engine::Clock::now());
    }
}

void RdmEndpoint::next_attempts() {
    while (attempting_ < kAttempts && !waiting_.empty()) {
        ++attempting_;
        waiting_.pop().begin_attempt();
    }
}

// A request counts as one of the peer at the address that it names, whose other connection it may
// end: so it has to come from there. Of this host both may be any address.
bool RdmEndpoint::comes_from(const net::SocketAddress& named,
                             const net::SocketAddress& peer) const {
    return named.same_host(peer) ||
           (net::on_this_host(name_, peer) && net::on_this_host(name_, named));
}

// Somebody asks for a connection.
void RdmEndpoint::ready(std::uint32_t) { listener_->progress(); }

void RdmEndpoint::announce(std::unique_ptr<Incoming> request) {
    const auto data = request->private_data();
    rdm::Hello hello;
    if (!get(data.data(), data.size(), hello)) {
        DAT_INFO(ep_ctrl,
                 "a connection request of %s is refused: it is no reliable datagram "
                 "endpoint of `dat`",
                 request->peer().text().c_str());
        return;
    }
    net::SocketAddress named = request->peer();
    if (hello.family == 0) {
        named.set_port(hello.port);
    } else {
        named = address_in(hello);
    }
    if (!comes_from(named, request->peer())) {
        DAT_WARN(ep_ctrl,
                 "a connection request of %s is refused: it says that it is the reliable datagram "
                 "endpoint at %s, which is another host",
                 request->peer().text().c_str(), named.text().c_str());
        return;
    }
    if (messages_->is_full_of_left()) {
        DAT_INFO(
            ep_ctrl,
            "a connection request of %s is refused: %llu MiB of messages are held whose senders "
            "have gone; they have to be received first",
            request->peer().text().c_str(), static_cast<unsigned long long>(rdm::kMaxLeft >> 20));
        return;
    }
    RdmPeer* peer = nullptr;
    if (no_throw([&] {
            peer = &at_address(named);
            return 0;
        })) {
        DAT_WARN(ep_ctrl, "a connection request is refused: out of memory");
        return;
    }
    if (!peer->is_self()) {
        peer->requested(*request, hello);
    } else if (hello.from == self_.identity && hello.to == secret_) {
        peer->requested_by_self(*request);
    } else {
        DAT_WARN(ep_ctrl,
                 "a connection request of %s is refused: it says that it is this endpoint itself",
                 request->peer().text().c_str());
    }
}

int open_rdm(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
    Refusal why;
    if (!info->ep_attr || !info->tx_attr || !info->rx_attr ||
        !agrees(*info, fi_version(), offering_in(domain_of(domain), info->caps), why)) {
        DAT_WARN(ep_ctrl, "fi_endpoint(): %s", *why.what ? why.what : "the info has no attributes");
        return -FI_EINVAL;
    }
    return no_throw([&] {
        Info own(fi_dupinfo(info));
        if (!own) {
            return -FI_ENOMEM;
        }
        if (!Endpoint::zone_of(domain_of(domain), *info)) {
            return -FI_EINVAL;
        }
        auto made = std::make_unique<RdmEndpoint>(domain_of(domain), std::move(own), context);
        if (const int rc = made->open()) {
            return rc;
        }
        *ep = made.release();
        return 0;
    });
}

} // namespace dat::ofi
