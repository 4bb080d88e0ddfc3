// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the tests of the software domain share: an endpoint with its queues and a
// record of its events, and short ways to post. One thread, no progress thread.
#ifndef TEST_UNIT_ENGINE_HARNESS_H
#define TEST_UNIT_ENGINE_HARNESS_H

#include "engine/domain.h"
#include "engine/endpoint.h"
#include "engine/post.h"

#include <chrono>
#include <cstddef>
#include <poll.h>
#include <span>
#include <string_view>
#include <vector>

namespace engine_test {

using dat::core::Completion;
using dat::core::ConnectionEvent;
using dat::core::DtoStatus;
using dat::core::Event;
using dat::core::PostVerdict;
using dat::core::State;

struct Queue final : dat::core::CompletionQueue {
    void wake() override {}
    // Takes everything that is there.
    std::vector<Completion> take() {
        std::vector<Completion> all;
        for (; !empty(); pop()) {
            all.push_back(front());
        }
        return all;
    }
};

inline dat::engine::Domain::Options options() {
    dat::engine::Domain::Options o;
    o.shared = false;
    o.progress_thread = false;
    o.settings.shm = false; // TCP, unless a test says otherwise
    return o;
}

struct OpenDomain : dat::engine::Domain {
    explicit OpenDomain(const dat::engine::Domain::Options& o = options())
        : dat::engine::Domain(o) {
        opened = open();
    }
    int opened;
};

// An endpoint, the events it raised, and how many completions were queued when each
// was raised (U-7).
struct Side final : dat::engine::EndpointOwner {
    explicit Side(dat::engine::Domain& domain, dat::engine::Endpoint::Limits limits = {})
        : endpoint(domain, *this, limits, &zone) {
        endpoint.set_queues(&requests, &receives);
    }
    ~Side() {
        if (endpoint.core().state() != State::destroyed) {
            endpoint.free();
        }
    }

    void link_ready(dat::engine::Link& link) override { kind = link.kind(); }
    void raise(const ConnectionEvent& event) override {
        completions_at_event = requests.size() + receives.size();
        const auto data = event.private_data;
        events.push_back({event.event, event.reason, {data.begin(), data.end()}});
    }
    bool ended() const { return endpoint.core().state() == State::disconnected; }
    bool connected() const { return endpoint.core().state() == State::connected; }

    PostVerdict receive(std::span<std::byte> into, std::size_t context = 0) {
        return dat::engine::post_receive(endpoint, [&](dat::engine::Receive& r, std::uint64_t) {
            r = {};
            r.context = reinterpret_cast<void*>(context);
            r.capacity = into.size();
            r.signaled = true;
            r.iov_count = 1;
            r.iov = {into.data(), into.size()};
        });
    }

    static void fill(dat::engine::Request& r, dat::engine::OpCode op,
                     std::span<const std::byte> data, std::size_t context) {
        r = {};
        r.op = op;
        r.context = reinterpret_cast<void*>(context);
        r.length = data.size();
        r.level = dat::engine::Level::placed;
        r.signaled = true;
        r.iov_count = 1;
        r.iov = {const_cast<std::byte*>(data.data()), data.size()};
    }

    template <class L>
    PostVerdict send(std::span<const std::byte> data, std::size_t context = 0,
                     dat::engine::Level level = dat::engine::Level::placed) {
        return dat::engine::post_request<L>(endpoint, false,
                                            [&](dat::engine::Request& r, std::uint64_t) {
                                                fill(r, dat::engine::OpCode::send, data, context);
                                                r.level = level;
                                            });
    }

    template <class L>
    PostVerdict rma(dat::engine::OpCode op, std::span<const std::byte> data, std::uint32_t key,
                    std::uint64_t address, std::size_t context = 0) {
        return dat::engine::post_request<L>(endpoint, false,
                                            [&](dat::engine::Request& r, std::uint64_t) {
                                                fill(r, op, data, context);
                                                r.remote_key = key;
                                                r.remote_address = address;
                                            });
    }

    static constexpr int zone = 0;
    Queue requests;
    Queue receives;
    struct Raised {
        dat::core::Event event;
        dat::core::Reason reason;
        std::vector<std::byte> private_data;
    };
    std::vector<Raised> events;
    std::size_t completions_at_event = 0;
    dat::engine::LinkKind kind{};
    dat::engine::Endpoint endpoint;
};

// Drives a domain, and whatever `also` drives, until `done` or a generous deadline.
template <class Done, class Also>
bool run_until(dat::engine::Domain& domain, Done done, Also also) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        also();
        const dat::engine::BiasedLockOwner inside(domain.biased_lock());
        domain.progress();
    }
    return true;
}

template <class Done> bool run_until(dat::engine::Domain& domain, Done done) {
    return run_until(domain, done, [] {});
}

inline std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string_view text(std::span<const std::byte> data) {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
}

} // namespace engine_test

#endif
