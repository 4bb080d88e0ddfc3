// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the tests of connections on a local stream share: two domains that share memory, and the
// steps of one connection more.
#ifndef DAT_TEST_UNIT_ENGINE_SHM_PROPOSING_H
#define DAT_TEST_UNIT_ENGINE_SHM_PROPOSING_H

#include "engine_shm_peering.h"

#include "links/iwarp/connect.h"
#include "links/shm/hello.h"
#include "links/shm/local_listener.h"
#include "links/shm/local_socket.h"

namespace engine_test {

// How many sockets for TCP this process has made. Defined beside the socket(2) that counts them.
extern std::size_t g_tcp_sockets;

inline shm::LocalListener& at(OpenDomain& domain) { return shm::LocalListener::at(domain); }

inline const shm::KnownListeners::Known* known(Pair& pair) {
    return at(pair.near_domain).known_listeners().at(pair.local_listener.listener.name(), nullptr);
}

inline dat::net::Socket stream_to(Pair& pair) {
    dat::net::Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address;
    cr_assert(known(pair));
    const socklen_t size = shm::address_of(known(pair)->name, address);
    cr_assert_eq(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
    return socket;
}

// One that is asked for, and not accepted yet.
inline Side& ask(Pair& pair, std::span<const std::byte> data = {}) {
    Side& side = pair.near.emplace_back(pair.near_domain);
    cr_assert_eq(
        dat::iwarp::connect(side.endpoint, pair.local_listener.listener.name(), nullptr, data, {}),
        0);
    return side;
}

inline std::unique_ptr<dat::iwarp::ConnRequest> request_of(Pair& pair) {
    auto& requests = pair.local_listener.requests;
    cr_assert(pair.run([&] { return !requests.empty(); }));
    auto request = std::move(requests.front());
    requests.erase(requests.begin());
    return request;
}

inline Side& accept(Pair& pair, dat::iwarp::ConnRequest& request,
                    std::span<const std::byte> data = {}) {
    Side& side = pair.far.emplace_back(pair.far_domain);
    cr_assert_eq(dat::iwarp::accept(side.endpoint, request, data), 0);
    return side;
}

} // namespace engine_test

#endif
