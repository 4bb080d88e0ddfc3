// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See known_listeners.h.
#include "links/shm/known_listeners.h"

#include "base/attempt.h"
#include "engine/random.h"
#include "links/shm/peering.h"

#include <algorithm>
#include <unistd.h>

namespace dat::shm {
namespace {

constexpr std::uint32_t kFirstPort = 32768; // the kernel's own choice of a range
constexpr std::uint32_t kPorts = 60999 - kFirstPort + 1;

bool is_same(const net::SocketAddress& a, const net::SocketAddress& b) {
    return a.port() == b.port() && a.same_host(b);
}

} // namespace

KnownListeners::KnownListeners()
    : next_port_(static_cast<std::uint32_t>(engine::random_bits() % kPorts)),
      next_cookie_(engine::random_bits()) {}

void KnownListeners::remember(const net::SocketAddress& destination,
                              const net::SocketAddress& local, const Name& name,
                              const std::shared_ptr<Peering>& peering) {
    Known known{destination, local, name, {}, peering};
    const auto same = std::ranges::find_if(
        known_, [&](const Known& each) { return is_same(each.destination, destination); });
    if (name == Name{} || destination.link_local() ||
        (same != known_.end() && same->name == name && same->peering == peering &&
         same->local.same_host(local)) ||
        !peering->peer(known.who)) {
        return;
    }
    if (!may_be_read(known.who, peering->refuses_descriptors())) {
        return;
    }
    if (same != known_.end()) {
        *same = std::move(known);
    } else if (known_.size() == kMost) {
        known_[next_++ % kMost] = std::move(known);
    } else {
        // Without memory it is not known, and reached by TCP.
        (void)base::attempt([&] { known_.push_back(std::move(known)); });
    }
}

const KnownListeners::Known* KnownListeners::at(const net::SocketAddress& destination,
                                                const net::SocketAddress* source) const {
    const auto found = std::ranges::find_if(known_, [&](const Known& each) {
        return is_same(each.destination, destination) &&
               (!source || !source->valid() || source->family() != destination.family() ||
                source->same_host(each.local));
    });
    return found != known_.end() ? &*found : nullptr;
}

void KnownListeners::forget(const Name& name) {
    std::erase_if(known_, [&](const Known& each) { return each.name == name; });
}

void KnownListeners::forget(const Peering& peering) {
    std::erase_if(known_, [&](const Known& each) { return each.peering.get() == &peering; });
}

std::uint16_t KnownListeners::next_port() {
    return static_cast<std::uint16_t>(kFirstPort + next_port_++ % kPorts);
}

} // namespace dat::shm
