// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A device's domain where one allocation fails, each in turn: what a connection does from its
// request to its end, at either side, with devices that are made up (verbs_fake.h). Whatever
// fails: progress throws nothing, the connection is made or ends, and nothing is left. This
// program's operator new fails when it is told to.
#include "links/verbs/connect.h"
#include "links/verbs/link.h"
#include "links/verbs/link_parts.h"
#include "links/verbs/queues.h"

#include "engine/shared_receives.h"
#include "engine_harness.h"
#include "verbs_fake.h"
#include "verbs_world.h"

#include <criterion/criterion.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

using namespace dat;
using core::Event;
using engine::OpCode;
using engine_test::Side;
using fake::state;
using verbs_test::address;

namespace {

// Threads allocate nothing that may fail.
thread_local bool is_scarce = false;
long left = 0; // allocations, until one fails
bool has_failed = false;

bool fails() {
    const bool now = is_scarce && fake::inside == 0 && --left == 0;
    has_failed = has_failed || now;
    return now;
}

// While it is there; `nth`: of those from here on.
struct Scarce {
    explicit Scarce(long nth) {
        left = nth;
        has_failed = false;
        is_scarce = true;
    }
    ~Scarce() { is_scarce = false; }
};

// What the calls of the C interface do about it (ofi/errors.h, no_throw()).
template <class Body> int no_throw(Body&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    }
}

} // namespace

// Not inlined: g++ would see memory of one function given to another.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return fails() ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
    void* const memory = fails() ? nullptr : std::malloc(size);
    if (!memory) {
        throw std::bad_alloc();
    }
    return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}

namespace {

struct ScarceWorld : verbs::DomainOwner, verbs::ListenerOwner {
    ScarceWorld()
        : domain(*(made = std::make_unique<verbs::Domain>(
                       engine, static_cast<verbs::DomainOwner&>(*this)))) {
        cr_assert_eq(engine.opened, 0);
    }
    void device_gone() override {}
    void port_down() override {}
    void announce(std::unique_ptr<verbs::ConnRequest> from) override { request = std::move(from); }

    // Whether it took place; it has to, where nothing has failed.
    static bool took_place(int rc) {
        cr_assert(rc == 0 || has_failed, "%d, and nothing has failed", rc);
        return rc == 0;
    }
    template <class Done> void await(Done done) { cr_assert(engine_test::run_until(engine, done)); }

    std::unique_ptr<verbs::Domain> made; // outlives the software's part, which ends connections
    engine_test::OpenDomain engine;
    verbs::Domain& domain;
    std::unique_ptr<verbs::ConnRequest> request;
};

constexpr std::size_t kSize = 256; // more than what goes inline

// One connection's, and the memory that it uses.
struct Party {
    explicit Party(ScarceWorld& of, bool with_shared) : world(of), side(of.engine) {
        side.events.reserve(8);
        cr_assert(side.requests.expect(256));
        cr_assert(side.receives.expect(256));
        if (with_shared) {
            side.endpoint.set_shared(&shared);
        }
    }

    engine::Endpoint& endpoint() { return side.endpoint; }
    void receive() {
        if (!endpoint().shared()) {
            side.receive(elsewhere);
            return;
        }
        shared.post([&](engine::Receive& receive, engine::Iov*) {
            receive = {};
            receive.capacity = elsewhere.size();
            receive.signaled = true;
            receive.iov_count = 1;
            receive.iov = {elsewhere.data(), elsewhere.size()};
        });
    }
    // What has been posted is complete, as the end finds it.
    void completed() {
        const fake::Inside here;
        ibv_wc wc{};
        wc.wr_id = verbs::request_id(endpoint().core().requests().next() - 1);
        state().completed.push_back(wc);
    }
    // As fi_mr_reg(3) and bind_window() do it.
    void bind_window() {
        ibv_mr* mr = nullptr;
        ScarceWorld::took_place(no_throw([&] {
            mr = world.domain.register_memory(&Side::zone, bytes.data(), kSize, {true, true, true});
            return mr ? 0 : -errno;
        }));
        region = mr;
        if (!mr) {
            return;
        }
        engine::Region what;
        what.base = bytes.data();
        what.length = kSize;
        what.zone = &Side::zone;
        what.access = engine::kRemoteRead;
        const std::uint32_t source = verbs::Domain::key_of(mr);
        {
            const fake::Inside here; // ofi/mr.cpp
            cr_assert(world.engine.regions().add(source, what));
        }
        std::uint32_t key = 0;
        if (ScarceWorld::took_place(no_throw([&] {
                return world.domain.make_window(&Side::zone, bytes.data(), source, false, key);
            }))) {
            {
                const fake::Inside here; // ofi/window.cpp
                world.engine.regions().prepare(window, what, source, key);
            }
            side.rma<verbs::Link>(OpCode::bind, {}, key, 0);
        }
    }
    void give_back() {
        const engine::BiasedLockOwner in(world.engine.biased_lock());
        world.engine.regions().close(window);
        if (region) {
            cr_assert(world.engine.regions().remove(verbs::Domain::key_of(region)));
            world.domain.deregister(region);
        }
    }

    ScarceWorld& world;
    engine::SharedReceives shared{16};
    Side side;
    std::array<std::byte, kSize> bytes{};     // that are registered
    std::array<std::byte, kSize> elsewhere{}; // that are not
    ibv_mr* region = nullptr;
    std::uint64_t shown = 0;
    engine::Window window{shown, 0};
};

// From a connection that is there, or not, to its end.
void talk(ScarceWorld& world, Party& party) {
    const engine::BiasedLockOwner in(world.engine.biased_lock());
    party.receive();
    if (party.side.connected()) {
        party.bind_window();
    }
    if (party.side.connected()) {
        party.side.send<verbs::Link>(party.elsewhere);
    }
    if (party.side.connected()) {
        party.completed();
        party.side.endpoint.disconnect(false);
        cr_assert(state().completed.empty());
    }
}

template <class Scene> void sweep(Scene&& scene) {
    long nth = 1;
    for (bool failed = true; failed; ++nth) {
        cr_assert_lt(nth, 1000, "it does not end");
        scene(nth);
        failed = has_failed;
        const int queues = state().queues;
        const int others = state().others;
        cr_assert_eq(queues, 0, "allocation %ld: %d queues are left", nth, queues);
        cr_assert_eq(others, 0, "allocation %ld: %d objects are left", nth, others);
    }
    cr_assert_gt(nth, 5, "few allocations were made, and %ld is too few to be all", nth);
}

void connects(bool with_shared, long nth) {
    ScarceWorld world;
    cr_assert_eq(world.domain.open(address(1), false), 0);
    Party party(world, with_shared);
    party.receive();
    {
        const Scarce scarce(nth);
        {
            const engine::BiasedLockOwner in(world.engine.biased_lock());
            ScarceWorld::took_place(verbs::prepare(world.domain, party.endpoint(), false));
            verbs::SocketAddress source = address(1);
            ScarceWorld::took_place(
                verbs::connect(world.domain, party.endpoint(), address(2), source, {}, {}));
        }
        world.await([&] { return !party.side.events.empty(); });
        cr_assert(party.side.connected() || has_failed);
        talk(world, party);
        world.await([&] { return party.side.ended(); });
    }
    party.give_back();
}

// Before its peer has answered, which on siw it never does.
void gives_up(long nth) {
    ScarceWorld world;
    cr_assert_eq(world.domain.open(address(1), false), 0);
    Party party(world, false);
    party.receive();
    const Scarce scarce(nth);
    state().calls = false;
    {
        const engine::BiasedLockOwner in(world.engine.biased_lock());
        verbs::SocketAddress source = address(1);
        ScarceWorld::took_place(
            verbs::connect(world.domain, party.endpoint(), address(2), source, {}, {}));
    }
    world.await([&] { return state().calls || !party.side.events.empty(); });
    cr_assert(party.side.events.empty() || has_failed);
    const engine::BiasedLockOwner in(world.engine.biased_lock());
    party.side.endpoint.disconnect(false);
    cr_assert(party.side.ended());
}

void accepts(bool with_shared, long nth) {
    ScarceWorld world;
    cr_assert_eq(world.domain.open(address(1), false), 0);
    Party party(world, with_shared);
    party.receive();
    {
        const Scarce scarce(nth);
        verbs::Listener listener(world, false);
        if (ScarceWorld::took_place(no_throw([&] { return listener.bind(address(1)); })) &&
            ScarceWorld::took_place(listener.listen(8))) {
            fake::ask(state().last_id);
            listener.progress();
        }
        cr_assert(world.request || has_failed);
        if (world.request) {
            {
                const engine::BiasedLockOwner in(world.engine.biased_lock());
                const auto data = std::span(party.bytes).first(8);
                cr_assert_eq(verbs::accept(world.domain, party.endpoint(), *world.request, data),
                             0);
            }
            world.await([&] { return party.side.connected() || !party.side.events.empty(); });
            cr_assert(party.side.connected() || has_failed);
            talk(world, party);
            // An accepted connection that does not come about leaves the endpoint as it was.
            world.await([&] { return !party.side.connected(); });
        }
        world.request.reset();
    }
    party.give_back();
}

} // namespace

Test(verbs_no_memory, domain__opens_or_does_not) {
    sweep([](long nth) {
        ScarceWorld world;
        const Scarce scarce(nth);
        ScarceWorld::took_place(no_throw([&] { return world.domain.open(address(1), false); }));
    });
}

Test(verbs_no_memory, connection_that_is_asked_for__is_made_or_fails, .timeout = 60) {
    sweep([](long nth) { connects(false, nth); });
}

Test(verbs_no_memory, connection_with_shared_receives__is_made_or_fails, .timeout = 60) {
    sweep([](long nth) { connects(true, nth); });
}

// Over iWARP a thread asks (connect_call.h).
Test(verbs_no_memory, connection_of_iwarp__is_made_or_fails, .timeout = 60) {
    fake::become_siw();
    sweep([](long nth) { connects(false, nth); });
}

// And another one destroys the queue pair of a connect that was given up (unanswered.h).
Test(verbs_no_memory, connect_of_iwarp_that_is_given_up__leaves_nothing, .timeout = 60) {
    fake::become_siw();
    state().answers = false;
    sweep(gives_up);
}

Test(verbs_no_memory, connection_that_is_accepted__is_made_or_fails, .timeout = 60) {
    sweep([](long nth) { accepts(false, nth); });
}

Test(verbs_no_memory, accepted_connection_with_shared_receives__is_made_or_fails, .timeout = 60) {
    sweep([](long nth) { accepts(true, nth); });
}

Test(verbs_no_memory, private_data__is_what_was_given) {
    ScarceWorld world;
    cr_assert_eq(world.domain.open(address(1), false), 0);
    Party party(world, false);
    state().answers = false;
    constexpr std::array<std::byte, 3> kData{std::byte{1}, std::byte{2}, std::byte{3}};
    {
        const engine::BiasedLockOwner in(world.engine.biased_lock());
        verbs::SocketAddress source = address(1);
        cr_assert_eq(verbs::connect(world.domain, party.endpoint(), address(2), source, kData, {}),
                     0);
    }
    world.await([&] { return state().param.private_data != nullptr; });
    cr_assert_eq(state().param.private_data_len, 56);
    cr_assert_arr_eq(state().param.private_data, kData.data(), kData.size());
    cr_assert_eq(static_cast<const char*>(state().param.private_data)[53], 3, "its length");
}
