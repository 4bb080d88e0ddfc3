// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the tests of the shared-memory link share: an endpoint with such a link, and a
// raw peer that writes what it likes into the memory.
#ifndef TEST_UNIT_ENGINE_SHM_H
#define TEST_UNIT_ENGINE_SHM_H

#include "engine_harness.h"
#include "engine_listener.h"

#include "links/iwarp/connect.h"
#include "links/iwarp/terminate.h"
#include "links/shm/link.h"
#include "links/shm/peering.h"

#include <algorithm>
#include <criterion/criterion.h>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

namespace engine_test {

namespace shm = dat::shm;
using Bytes = std::vector<std::byte>;

inline Bytes numbered(std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
    }
    return bytes;
}

struct Ends {
    Ends() {
        int fds[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        near = dat::net::Socket(fds[0]);
        far = dat::net::Socket(fds[1]);
    }
    dat::net::Socket near;
    dat::net::Socket far;
};

// Keeps the last request that came to it.
struct Requests final : LoopbackListener {
    void announce(std::unique_ptr<dat::iwarp::ConnRequest> request) override {
        arrived = std::move(request);
    }
    std::unique_ptr<dat::iwarp::ConnRequest> arrived;
};

// The memory that both have mapped, each for itself.
struct Shared {
    Shared() {
        int fd = -1;
        int error = 0;
        near = shm::Segment::create(fd, error);
        far = shm::Segment::adopt(fd, error);
        close(fd);
        cr_assert(near && far);
    }
    shm::Segment near;
    shm::Segment far;
};

// Rings for that connection, by a peer that is the host, or the guest; the socket is the caller's.
inline void ring_doorbell(const shm::Segment& memory, bool of_guest, std::uint32_t place = 0) {
    shm::Doorbell& doorbell = memory.doorbell(of_guest);
    doorbell.places[place / 64].fetch_or(std::uint64_t{1} << place % 64);
    doorbell.words.fetch_or(std::uint64_t{1} << place / 64);
}

// Connects `side` over the near half of `memory`, as the only connection of a peering.
inline void join(Side& side, shm::Segment memory, dat::net::Socket wake_socket,
                 shm::LinkParameters parameters) {
    struct Nothing final : dat::engine::Handshake {
        void abandon() override {}
    };
    const bool initiator = parameters.initiator;
    const auto peering = shm::Peering::begin(
        side.endpoint.domain(), nullptr, std::move(wake_socket), std::move(memory), initiator,
        {parameters.peer, parameters.pulls, parameters.fences, {}});
    cr_assert(peering);
    cr_assert(initiator ? side.endpoint.begin_connect({}) : side.endpoint.begin_accept());
    side.endpoint.run(std::make_unique<Nothing>());
    side.endpoint.established(
        side.endpoint.attempt(),
        initiator ? dat::core::Stimulus::peer_accepted : dat::core::Stimulus::handshake_done,
        std::make_unique<shm::Link>(side.endpoint, peering->first(), parameters), {});
}

inline shm::LinkParameters parameters(bool initiator, bool pulls) {
    shm::LinkParameters p;
    p.initiator = initiator;
    p.ord = p.ird = 2;
    p.peer = shm::own_image();
    p.pulls = pulls;
    p.fences = true;
    return p;
}

// Two endpoints of one domain.
struct Linked {
    explicit Linked(bool pulls = true, const dat::engine::Domain::Options& o = options())
        : domain(o) {
        Shared memory;
        Ends wake_socket;
        join(a, std::move(memory.near), std::move(wake_socket.near), parameters(true, pulls));
        join(b, std::move(memory.far), std::move(wake_socket.far), parameters(false, pulls));
        cr_assert(a.connected() && b.connected());
        a.events.clear();
        b.events.clear();
    }
    template <class Done> bool run(Done done) { return run_until(domain, done); }

    OpenDomain domain;
    Side a{domain};
    Side b{domain};
};

// The peer of an endpoint, that keeps to nothing.
struct Raw {
    explicit Raw(bool pulls = true, const dat::engine::Domain::Options& o = options()) : domain(o) {
        Shared memory;
        Ends ends;
        join(side, std::move(memory.near), std::move(ends.near), parameters(true, pulls));
        segment = std::move(memory.far);
        view = segment.side(false);
        wake_socket = std::move(ends.far);
        side.events.clear();
    }

    // Writes a record; nobody has to have room for it.
    shm::Record& begin(shm::Kind kind, unsigned flags) {
        shm::Record& record = view.out[sent % shm::kRecords];
        record.kind = kind;
        record.flags = static_cast<std::uint8_t>(flags);
        record.places = 0;
        record.size = 0;
        record.data = 0;
        record.key = 0;
        record.address = 0;
        return record;
    }
    void commit(shm::Record& record) {
        record.stamp.store(static_cast<std::uint32_t>(++sent), std::memory_order_release);
        if (view.peers->asleep.load() != 0) {
            ring();
        }
    }
    void put(shm::Kind kind, unsigned flags, std::span<const std::byte> payload = {},
             std::uint32_t key = 0, std::uint64_t address = 0) {
        shm::Record& record = begin(kind, flags);
        record.size = static_cast<std::uint32_t>(payload.size());
        record.key = key;
        record.address = address;
        std::copy(payload.begin(), payload.end(), record.payload.begin());
        commit(record);
    }
    // What the endpoint has sent next; nullptr: nothing.
    const shm::Record* next() {
        const shm::Record& record = view.in[received % shm::kRecords];
        if (record.stamp.load(std::memory_order_acquire) !=
            static_cast<std::uint32_t>(received + 1)) {
            return nullptr;
        }
        ++received;
        return &record;
    }
    void ring() {
        ring_doorbell(segment, true);
        const char one = 1;
        (void)!::send(wake_socket.fd(), &one, 1,
                      MSG_DONTWAIT | MSG_NOSIGNAL); // full: it rings already
    }
    bool rang() {
        char one = 0;
        return ::recv(wake_socket.fd(), &one, 1, MSG_DONTWAIT) > 0;
    }
    template <class Done> bool run(Done done) { return run_until(domain, done); }
    // The endpoint ends the connection for that reason, and says so to its peer.
    bool blamed(dat::iwarp::TerminateCode code) {
        return run([&] { return side.ended(); }) && side.events.size() == 1 &&
               side.events[0].event == Event::broken &&
               view.peers->end.load() == shm::End::faulted &&
               view.peers->end_code.load() == static_cast<std::uint32_t>(code);
    }

    OpenDomain domain;
    Side side{domain};
    shm::Segment segment;
    shm::Side view;
    dat::net::Socket wake_socket;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
};

} // namespace engine_test

#endif
