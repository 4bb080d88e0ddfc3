// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two domains of this process that share memory, for the tests of what they share once.
#ifndef TEST_UNIT_ENGINE_SHM_PEERING_H
#define TEST_UNIT_ENGINE_SHM_PEERING_H

#include "engine_shm.h"

#include <deque>
#include <fstream>
#include <string>

namespace engine_test {

inline dat::engine::Domain::Options sharing() {
    auto o = options();
    o.settings.shm = true;
    o.settings.handshake_limit = std::chrono::seconds(20);
    return o;
}

// All places in memory of this process, each twice: as either domain has mapped it.
inline std::vector<shm::Layout*> places() {
    std::vector<shm::Layout*> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:dat") == std::string::npos) {
            continue;
        }
        std::size_t digits = 0;
        const auto from = std::stoull(line, &digits, 16);
        const auto to = std::stoull(line.substr(digits + 1), nullptr, 16);
        for (auto at = from; at < to; at += sizeof(shm::Layout)) {
            all.push_back(reinterpret_cast<shm::Layout*>(at));
        }
    }
    return all;
}

// Two domains of this process, and the connections from one to the other.
struct Pair {
    Pair() : near_domain(sharing()), far_domain(sharing()) {}

    template <class Done> bool run(Done done) {
        return run_until(near_domain, done, [&] {
            local_listener.listener.progress();
            far_domain.progress();
        });
    }
    // So many more, all begun before any is accepted.
    void add(std::size_t count, dat::engine::LinkKind kind = dat::engine::LinkKind::shm) {
        begin(count);
        accept(count);
        for (std::size_t i = near.size() - count; i < near.size(); ++i) {
            cr_assert(near[i].kind == kind && far[i].kind == kind, "%zu", i);
        }
    }
    void begin(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            Side& from = near.emplace_back(near_domain);
            far.emplace_back(far_domain);
            cr_assert_eq(
                dat::iwarp::connect(from.endpoint, local_listener.listener.name(), nullptr, {}, {}),
                0);
        }
        cr_assert(run([&] { return local_listener.requests.size() == count; }));
    }
    void accept(std::size_t count) {
        for (std::size_t i = far.size() - count; i < far.size(); ++i) {
            cr_assert_eq(dat::iwarp::accept(far[i].endpoint, *local_listener.requests.front(), {}),
                         0);
            local_listener.requests.erase(local_listener.requests.begin());
        }
        cr_assert(run([&] {
            return std::ranges::all_of(near, [](Side& s) { return s.connected() || s.ended(); }) &&
                   std::ranges::all_of(far, [](Side& s) { return s.connected() || s.ended(); });
        }));
    }
    void talk(std::size_t i, std::span<const std::byte> what = bytes("hello")) {
        Bytes there(what.size());
        Bytes back(what.size());
        far[i].receive(there);
        near[i].receive(back);
        near[i].send<dat::engine::Link>(what, 1, dat::engine::Level::taken);
        far[i].send<dat::engine::Link>(what, 1, dat::engine::Level::taken);
        cr_assert(run([&] { return !far[i].receives.empty() && !near[i].receives.empty(); }), "%zu",
                  i);
        cr_assert(std::ranges::equal(there, what) && std::ranges::equal(back, what), "%zu", i);
        for (Side* side : {&near[i], &far[i]}) {
            side->receives.take();
            side->requests.take();
        }
    }
    void end(std::size_t i) {
        cr_assert(near[i].endpoint.disconnect(false));
        cr_assert(run([&] { return near[i].ended() && far[i].ended(); }));
    }
    // Whatever is left of what has ended.
    // The last one ends, and another is made, so often.
    void replace_last(int times) {
        for (int i = 0; i < times; ++i) {
            const std::size_t last = near.size() - 1;
            talk(last);
            end(last);
            settle();
            add(1);
        }
    }
    void settle() {
        for (int i = 0; i < 200; ++i) {
            near_domain.progress();
            far_domain.progress();
        }
    }

    LocalListener local_listener;
    OpenDomain near_domain;
    OpenDomain far_domain;
    std::deque<Side> near;
    std::deque<Side> far;
};

} // namespace engine_test

#endif
