// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See local_listener.h.
#include "links/shm/local_listener.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "engine/random.h"
#include "links/shm/guest.h"
#include "links/shm/local_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace dat::shm {

namespace {

// How long strangers wait once many have come.
constexpr std::chrono::milliseconds kPause{10};
// So long a peering that no connection uses stays, and so many of them.
constexpr std::chrono::seconds kIdle{2};
constexpr std::size_t kMostIdle = 16;

TcpEnd end_of(const net::SocketAddress& address) {
    TcpEnd end;
    end.port = address.port();
    if (address.family() == AF_INET6) {
        const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
        std::memcpy(end.host.data(), &v6->sin6_addr, end.host.size());
    } else if (address.family() == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.get());
        end.host[10] = end.host[11] = 0xff;
        std::memcpy(end.host.data() + 12, &v4->sin_addr, 4);
    }
    return end;
}

} // namespace

Offer offer_of(const Name& name, std::uint64_t cookie) {
    Offer offer;
    std::memcpy(offer.data(), name.data(), sizeof name);
    std::memcpy(offer.data() + sizeof name, &cookie, sizeof cookie);
    return offer;
}

Name name_in(const Offer& offer) {
    Name name;
    std::memcpy(name.data(), offer.data(), sizeof name);
    return name;
}

std::uint64_t cookie_in(const Offer& offer) {
    std::uint64_t cookie = 0;
    std::memcpy(&cookie, offer.data() + sizeof(Name), sizeof cookie);
    return cookie;
}

net::SocketAddress address_of(const TcpEnd& end, int family) {
    const auto address = net::SocketAddress::of(family, end.host, end.port);
    return address.bytes() == end.host ? address : net::SocketAddress();
}

TcpEnds ends_of(const net::SocketAddress& initiator, const net::SocketAddress& responder) {
    return {end_of(initiator), end_of(responder)};
}

void describe(Joint& joint, const Acquaintance& known, bool initiator) {
    joint.parameters.initiator = initiator;
    joint.parameters.peer = known.image;
    joint.parameters.pulls = known.pulls;
    joint.parameters.fences = known.fences;
    joint.why = known.why;
}

LocalListener::LocalListener(engine::Domain& domain) : domain_(domain) {}

LocalListener::~LocalListener() {
    guests_.clear();
    dismissed_.clear();
    while (!peerings_.empty()) {
        peerings_.back().peering->end();
    }
    domain_.handshakes().disarm(idle_timer_);
    shut();
}

LocalListener& LocalListener::at(engine::Domain& domain) {
    if (!domain.companion()) {
        domain.companion() = std::make_unique<LocalListener>(domain);
    }
    return *static_cast<LocalListener*>(domain.companion().get());
}

LocalListener* LocalListener::of(engine::Domain& domain) {
    LocalListener& local_listener = at(domain);
    if (local_listener.reaper_.full()) {
        return nullptr;
    }
    if (local_listener.socket_) {
        return &local_listener;
    }
    if (const int error = local_listener.open(); error != 0) {
        DAT_WARN(ep_ctrl, "a connection of one host stays on TCP: no local socket: %s",
                 std::strerror(-error));
        return nullptr;
    }
    return &local_listener;
}

int LocalListener::open() {
    net::Socket socket = listen_locally(SOCK_SEQPACKET, SOMAXCONN, name_);
    if (!socket) {
        return -errno;
    }
    const int error = domain_.handshakes().add(socket.fd(), EPOLLIN, *this);
    if (error == 0) {
        watched_ = true;
        socket_ = std::move(socket);
    }
    return error;
}

// Whoever waits there, and what he has sent, goes with it.
void LocalListener::shut() {
    domain_.handshakes().disarm(*this);
    if (std::exchange(watched_, false)) {
        domain_.handshakes().remove(socket_.fd(), *this);
    }
    let_go(std::move(socket_), reaper_);
}

Offer LocalListener::offer(Host& host, const TcpEnds& ends, const Name& listener) {
    std::uint64_t cookie = engine::random_bits();
    while (!offers_
                .emplace(cookie,
                         Offered{&host, ends, listener, false, {}, {}, Overheard::Need(overheard_)})
                .second) {
        cookie = engine::random_bits();
    }
    return offer_of(name_, cookie);
}

Offer LocalListener::offer(Host& host, const Proposal& proposal, const Name& listener,
                           Placed& placed) {
    const auto kept = std::ranges::find_if(peerings_, [&](const Kept& each) {
        return !each.peering->guest() && each.peering->id() == proposal.peering;
    });
    if (kept != peerings_.end()) {
        const auto [entry, is_new] =
            offers_.try_emplace(proposal.cookie, Offered{&host,
                                                         proposal.ends,
                                                         listener,
                                                         true,
                                                         kept->peering,
                                                         {},
                                                         Overheard::Need(overheard_)});
        if (is_new) {
            entry->second.channel = kept->peering->place_at_once(proposal.cookie);
            if (const auto& channel = entry->second.channel) {
                placed.has_place = 1;
                placed.place = channel->place();
                return offer_of(name_, proposal.cookie);
            }
            offers_.erase(entry);
        }
    }
    const Offer other = offer(host, proposal.ends, listener);
    placed.name = name_in(other);
    placed.cookie = cookie_in(other);
    return other;
}

void LocalListener::unsaid(const Offer& offer) {
    const auto found = offers_.find(cookie_in(offer));
    if (found != offers_.end() && found->second.channel) {
        const std::shared_ptr<Peering> peering = found->second.peering;
        offers_.erase(found);
        peering->not_taken(cookie_in(offer));
    }
}

void LocalListener::withdraw(const Offer& offer) {
    const std::uint64_t cookie = cookie_in(offer);
    const auto found = offers_.find(cookie);
    if (found == offers_.end()) {
        return;
    }
    const Offered offered = std::move(found->second);
    offers_.erase(found);
    if (offered.peering) {
        return offered.peering->withdraw(cookie);
    }
    const auto guest = std::find_if(guests_.begin(), guests_.end(), [&](const auto& each) {
        return offered.taken && each->is_invited() && each->cookie() == cookie;
    });
    if (guest != guests_.end()) {
        (*guest)->leave("its connection is over");
    }
}

LocalListener::Offered* LocalListener::offered(std::uint64_t cookie) {
    const auto found = offers_.find(cookie);
    return found == offers_.end() ? nullptr : &found->second;
}

// It has been taken, or not; who made it, or nullptr.
Host* LocalListener::settle(std::uint64_t cookie) {
    const auto found = offers_.find(cookie);
    if (found == offers_.end()) {
        return nullptr;
    }
    Host* const host = found->second.host;
    offers_.erase(found);
    return host;
}

// Destroyed later: it is running now.
void LocalListener::dismiss(Guest& guest) {
    const auto found = std::find_if(guests_.begin(), guests_.end(),
                                    [&](const auto& each) { return each.get() == &guest; });
    if (found != guests_.end()) {
        dismissed_.push_back(std::move(*found));
        guests_.erase(found);
    }
}

void LocalListener::ready(std::uint32_t) {
    constexpr int kBurst = 64;
    dismissed_.clear();
    for (int i = 0; i < kBurst && watched_; ++i) {
        net::Socket socket(
            kernel::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            return accept_failed(errno);
        }
        if (is_permitted(socket, domain_.settings().shm_peers)) {
            admit(std::move(socket));
        } else {
            turn_away(std::move(socket));
        }
    }
}

void LocalListener::admit(net::Socket socket) {
    // So many may be silent; then the oldest of them leaves.
    constexpr std::size_t kMaxGuests = 64;
    if (guests_.size() >= kMaxGuests) {
        const auto silent = std::find_if(guests_.begin(), guests_.end(),
                                         [](const auto& each) { return !each->is_invited(); });
        if (silent != guests_.end()) {
            (*silent)->leave("too many come and say nothing");
        }
    }
    if (!base::attempt([&] {
            dismissed_.reserve(dismissed_.size() + guests_.size() +
                               1); // so that leaving needs none
            guests_.push_back(std::make_unique<Guest>(*this, std::move(socket)));
        })) {
        DAT_WARN(ep_ctrl, "a connection of one host stays on TCP: out of memory");
        return;
    }
    guests_.back()->start();
}

// Nothing of what a stranger says is read.
void LocalListener::turn_away(net::Socket socket) {
    constexpr std::uint32_t kCrowd = 256;
    say_sent_away(socket, "the local socket");
    let_go(std::move(socket), reaper_);
    if (++strangers_ >= kCrowd || reaper_.full()) {
        pause();
    }
}

// However many strangers come, they take a small part of the domain's time, and of its
// descriptors.
void LocalListener::pause() {
    strangers_ = 0;
    domain_.handshakes().remove(socket_.fd(), *this);
    watched_ = false;
    domain_.handshakes().arm(*this, kPause);
}

void LocalListener::expired() {
    if (reaper_.full()) {
        domain_.handshakes().arm(*this, kPause);
        return;
    }
    watched_ = domain_.handshakes().add(socket_.fd(), EPOLLIN, *this) == 0;
    if (!watched_) {
        shut();
    }
}

// Out of descriptors: whoever waits at the local listener is sent away, and stays on TCP. It is
// opened again for the next offer.
void LocalListener::accept_failed(int error) {
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
        DAT_WARN(ep_ctrl, "connections of one host stay on TCP: %s; ulimit -n shows the limit",
                 std::strerror(error));
        shut();
    }
}

// --- peerings ---

std::shared_ptr<Peering> LocalListener::keep(net::Socket socket, Segment first, bool guest,
                                             const Acquaintance& known, const Name& name,
                                             std::uint64_t id) {
    if (!base::attempt([&] { peerings_.emplace_back(); })) {
        return nullptr;
    }
    auto peering = Peering::begin(domain_, this, std::move(socket), std::move(first), guest, known);
    if (!peering) {
        peerings_.pop_back();
        return nullptr;
    }
    peering->set_name(name, id);
    // Until its first connection, which comes at once: no timer is set for that.
    peerings_.back() = {peering, engine::Clock::now()};
    ++idle_count_;
    return peering;
}

std::shared_ptr<Peering> LocalListener::peering_at(const Name& name) const {
    const auto found = std::find_if(peerings_.begin(), peerings_.end(), [&](const Kept& each) {
        return each.peering->guest() && each.peering->name() == name && each.peering->has_places();
    });
    return found != peerings_.end() ? found->peering : nullptr;
}

bool LocalListener::asked(Peering& peering, std::uint64_t cookie, const TcpEnds& ends) {
    Offered* const offer = offered(cookie);
    if (!offer || offer->taken || offer->ends != ends) {
        DAT_INFO(ep_ctrl, "an offer of shared memory is not taken: %s",
                 "what came is not for any connection");
        return false;
    }
    offer->taken = true;
    offer->peering = peering.shared_from_this();
    return true;
}

void LocalListener::placed(Peering&, std::uint64_t cookie, std::shared_ptr<Channel> channel) {
    Offered* const offer = offered(cookie);
    if (!offer) {
        return;
    }
    if (channel) {
        offer->channel = std::move(channel);
        return offer->host->invited();
    }
    offer->peering.reset();
    offer->taken = false; // it may come to the local listener for it
}

void LocalListener::taken(Peering& peering, std::uint64_t cookie, bool in) {
    Offered* const offer = offered(cookie);
    if (!offer || offer->peering.get() != &peering || !offer->channel) {
        return; // its connection is over
    }
    Joint joint;
    describe(joint, peering.known(), false);
    joint.channel = std::move(offer->channel);
    Host* const host = settle(cookie);
    if (in) {
        host->joined(std::move(joint));
    } else {
        host->stayed_out();
    }
}

Name LocalListener::listener_of(std::uint64_t cookie) {
    const Offered* const offer = offered(cookie);
    return offer ? offer->listener : Name{};
}

void LocalListener::idle(Peering& peering, bool idle) {
    const auto found = std::find_if(peerings_.begin(), peerings_.end(), [&](const Kept& each) {
        return each.peering.get() == &peering;
    });
    if (found == peerings_.end()) {
        return;
    }
    found->idle_since = idle ? engine::Clock::now() : engine::Clock::time_point::max();
    idle_count_ += idle ? 1 : static_cast<std::size_t>(-1);
    if (idle && !idle_timer_.armed()) {
        domain_.handshakes().arm(idle_timer_, kIdle);
    }
    if (idle_count_ > kMostIdle) {
        const auto oldest = std::ranges::min_element(peerings_, {}, &Kept::idle_since);
        std::shared_ptr<Peering>(oldest->peering)->end();
    }
}

// The peer may do so as well: who asks for a connection by then comes to the local listener again.
void LocalListener::end_idle() {
    const auto due = engine::Clock::now() - kIdle;
    auto next = engine::Clock::time_point::max();
    for (std::size_t i = peerings_.size(); i > 0; --i) {
        const Kept kept = peerings_[i - 1];
        if (kept.idle_since <= due) {
            kept.peering->end();
        } else {
            next = std::min(next, kept.idle_since);
        }
    }
    if (next != engine::Clock::time_point::max()) {
        domain_.handshakes().arm(idle_timer_, next + kIdle);
    }
}

void LocalListener::ended(Peering& peering) {
    known_listeners_.forget(peering);
    const auto found = std::find_if(peerings_.begin(), peerings_.end(), [&](const Kept& each) {
        return each.peering.get() == &peering;
    });
    if (found != peerings_.end()) {
        idle_count_ -= found->idle_since != engine::Clock::time_point::max() ? 1 : 0;
        peerings_.erase(found);
    }
    // Its offers stand no longer; who made them goes on over TCP.
    for (;;) {
        const auto offer = std::find_if(offers_.begin(), offers_.end(), [&](const auto& each) {
            return each.second.peering.get() == &peering;
        });
        if (offer == offers_.end()) {
            return;
        }
        const Offered gone = std::move(offer->second);
        offers_.erase(offer);
        if (gone.channel) {
            gone.host->stayed_out();
        }
    }
}

} // namespace dat::shm
