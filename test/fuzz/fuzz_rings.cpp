// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: a connection over shared memory whose peer writes anything anywhere in that
// memory, at any time. Input: a script of steps of both sides.
//
// What must hold: no byte changes outside of what was posted or is registered for it; each
// operation completes once; one event ends the connection; it ends when the peer is gone
// and receives are posted, or its limit is over; what is staged is bounded.
#include "../unit/engine_harness.h"
#include "input.h"
#include "plain.h"

#include "links/shm/link.h"

#include <array>
#include <cstring>
#include <memory>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

using fuzz::Bytes;
using fuzz::Input;
namespace shm = dat::shm;
using dat::engine::OpCode;

// Mappings of a segment outlive inputs, since the kernel takes more time to make one than an
// input does. One that is not mapped is poisoned meanwhile.
namespace {
std::vector<void*> g_unmapped;
} // namespace

extern "C" {
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
int __real_munmap(void*, std::size_t);

void* __wrap_mmap(void* at, std::size_t size, int access, int flags, int fd, off_t from) {
    if (size != sizeof(shm::Layout) || flags != MAP_SHARED || g_unmapped.empty()) {
        return __real_mmap(at, size, access, flags, fd, from);
    }
    void* const mapped = g_unmapped.back();
    g_unmapped.pop_back();
    ASAN_UNPOISON_MEMORY_REGION(mapped, size);
    return mapped;
}

int __wrap_munmap(void* mapped, std::size_t size) {
    if (size != sizeof(shm::Layout)) {
        return __real_munmap(mapped, size);
    }
    ASAN_POISON_MEMORY_REGION(mapped, size);
    g_unmapped.push_back(mapped);
    return 0;
}
}

namespace {

// The memory of all inputs, one after the other.
int memory() {
    static const int fd = [] {
        int made = -1;
        int error = 0;
        FUZZ_CHECK(shm::Segment::create(made, error));
        return made;
    }();
    return fd;
}

// All that the sides share, from the first byte.
std::span<std::byte> all_of(const shm::Segment& segment) {
    auto* control = reinterpret_cast<std::byte*>(segment.side(true).mine);
    return {control - offsetof(shm::Layout, control), sizeof(shm::Layout)};
}

constexpr std::size_t kBuffer = 256;
constexpr std::byte kUntouched{0x5c};
constexpr std::uint64_t kByWrite = 1; // of a completion

dat::engine::Domain& domain() {
    static engine_test::OpenDomain one([] {
        auto o = engine_test::options();
        o.settings.unexpected_bytes = 1024;
        o.settings.rnr_limit = std::chrono::seconds(0);
        o.settings.end_grace = std::chrono::milliseconds(0);
        return o;
    }());
    return one;
}

// A buffer between bytes that nobody may change.
struct Guarded {
    Guarded() { all.fill(kUntouched); }
    std::span<std::byte> inside() { return std::span(all).subspan(kBuffer, kBuffer); }
    void check() const {
        const auto bytes = std::span(all);
        FUZZ_CHECK(fuzz::all_are(bytes.first(kBuffer), kUntouched));
        FUZZ_CHECK(fuzz::all_are(bytes.last(kBuffer), kUntouched));
    }
    alignas(8) std::array<std::byte, 3 * kBuffer> all;
};

class World {
  public:
    explicit World(std::uint8_t agreed) : side_(domain(), {16, 16}) {
        int error = 0;
        shm::Segment near = shm::Segment::adopt(memory(), error);
        far_ = shm::Segment::adopt(memory(), error);
        FUZZ_CHECK(near && far_);
        fuzz::clear(all_of(far_));
        int ends[2];
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) ==
                   0);
        wake_socket_ = dat::net::Socket(ends[1]);
        shm::LinkParameters parameters;
        parameters.initiator = (agreed & 1) != 0;
        parameters.ord = parameters.ird = 2;
        parameters.peer = shm::own_image();
        parameters.pulls = (agreed & 2) != 0;
        view_ = far_.side(!parameters.initiator);
        key_ =
            domain().regions().add({target_.inside().data(), kBuffer, 0, &engine_test::Side::zone,
                                    dat::engine::kRemoteRead | dat::engine::kRemoteWrite |
                                        dat::engine::kRemoteInvalidate});
        struct Nothing final : dat::engine::Handshake {
            void abandon() override {}
        };
        side_.endpoint.completions().set_arrival_flags({.by_write = kByWrite});
        FUZZ_CHECK(side_.endpoint.begin_accept());
        side_.endpoint.run(std::make_unique<Nothing>());
        is_guest_ = parameters.initiator;
        const auto peering = shm::Peering::begin(
            domain(), nullptr, dat::net::Socket(ends[0]), std::move(near), parameters.initiator,
            {parameters.peer, parameters.pulls, parameters.fences, {}});
        FUZZ_CHECK(peering);
        side_.endpoint.established(
            side_.endpoint.attempt(), dat::core::Stimulus::handshake_done,
            std::make_unique<shm::Link>(side_.endpoint, peering->first(), parameters), {});
        side_.events.clear();
    }
    ~World() { domain().regions().remove(key_); }

    void step(Input& input);
    void finish();

  private:
    void record(Input& input);
    void scribble(Input& input);
    void post(Input& input);
    void check();

    engine_test::Side side_;
    shm::Segment far_;
    shm::Side view_;
    dat::net::Socket wake_socket_;
    Guarded target_;
    std::array<Guarded, 16> receives_;
    std::array<Guarded, 16> sources_;
    bool is_guest_ = false; // of the peering: the side that is attacked
    std::uint32_t key_ = 0;
    std::uint64_t sent_ = 0;
    std::size_t posted_receives_ = 0;
    std::size_t completed_receives_ = 0;
    std::size_t posted_requests_ = 0;
};

// One that is right but for what the input says.
void World::record(Input& input) {
    shm::Record& record = view_.out[sent_ % shm::kRecords];
    record.kind = static_cast<shm::Kind>(input.octet() % 8);
    record.flags = input.octet();
    record.places = input.octet() % 8;
    record.size = input.octet();
    if (const std::uint8_t odd = input.octet(); odd > 250) {
        record.size = input.number();
    }
    record.data = input.octet() < 8 ? key_ : input.octet();
    record.key = input.octet() < 200 ? key_ : input.octet() % 4;
    record.address = input.word() % 512;
    const Bytes payload = input.bytes(input.octet() % 64);
    std::copy(payload.begin(), payload.end(), record.payload.begin());
    if ((record.flags & shm::kElsewhere) != 0 && input.octet() < 240) {
        // Mostly memory that is there.
        const shm::Place place{reinterpret_cast<std::uintptr_t>(sources_[0].all.data()),
                               record.size};
        std::memcpy(record.payload.data(), &place, sizeof place);
        record.places = 1;
    }
    record.stamp.store(static_cast<std::uint32_t>(++sent_), std::memory_order_release);
}

// Anything, anywhere.
void World::scribble(Input& input) {
    const auto all = all_of(far_);
    const auto memory = input.octet() < 160 ? all.subspan(offsetof(shm::Layout, control),
                                                          sizeof(shm::Layout::control))
                                            : all;
    const std::size_t at = input.number() % memory.size();
    const Bytes bytes = input.bytes(1 + input.octet() % 16);
    std::copy_n(bytes.begin(), std::min(bytes.size(), memory.size() - at),
                memory.begin() + static_cast<std::ptrdiff_t>(at));
}

// It will complete, or has (FLS-1).
std::size_t taken(engine_test::PostVerdict verdict) {
    return verdict == engine_test::PostVerdict::posted ||
                   verdict == engine_test::PostVerdict::flushed
               ? 1
               : 0;
}

void World::post(Input& input) {
    const std::size_t size = input.octet() % kBuffer;
    const std::uint8_t what = input.octet();
    if (what % 4 == 0) {
        Guarded& buffer = receives_[posted_receives_ % receives_.size()];
        posted_receives_ += taken(side_.receive(buffer.inside().first(size)));
        return;
    }
    Guarded& buffer = sources_[posted_requests_ % sources_.size()];
    const auto bytes = buffer.inside().first(size);
    engine_test::PostVerdict verdict{};
    if (what % 4 == 1) {
        verdict = side_.send<shm::Link>(bytes, 0, static_cast<dat::engine::Level>(what / 4 % 3));
    } else {
        verdict =
            side_.rma<shm::Link>(what % 4 == 2 ? OpCode::write : OpCode::read, bytes, what, size);
    }
    posted_requests_ += taken(verdict);
}

void World::step(Input& input) {
    switch (input.octet() % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        record(input);
        break;
    case 5:
    case 6:
        scribble(input);
        break;
    case 7:
    case 8:
    case 9:
        post(input);
        break;
    case 10:
        domain().rest();
        break;
    case 11:
        if (side_.connected() && input.octet() < 64) {
            side_.endpoint.disconnect(input.octet() % 2 == 0);
        }
        break;
    case 12: {
        if (input.octet() < 200) {
            shm::Doorbell& doorbell = far_.doorbell(is_guest_);
            doorbell.places[0].fetch_or(1);
            doorbell.words.fetch_or(1);
        }
        const char one = 1;
        [[maybe_unused]] const ssize_t n =
            ::send(wake_socket_.fd(), &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    }
    case 13:
        if (input.octet() < 64) {
            wake_socket_.close();
        }
        break;
    default:
        break;
    }
    domain().progress();
    check();
}

void World::check() {
    target_.check();
    for (const auto* all : {&receives_, &sources_}) {
        for (const Guarded& each : *all) {
            each.check();
        }
    }
    FUZZ_CHECK(side_.events.size() <= 1);
    FUZZ_CHECK(side_.ended() == (side_.events.size() == 1));
    for (const dat::core::Completion& done : side_.receives.take()) {
        // The data of a write takes no receive (U-62).
        completed_receives_ += done.flags == kByWrite ? 0 : 1;
    }
    FUZZ_CHECK(completed_receives_ <= posted_receives_);
    FUZZ_CHECK(side_.requests.size() <= posted_requests_);
}

// The peer goes; then it ends, and everything has completed once.
void World::finish() {
    wake_socket_.close();
    FUZZ_CHECK(engine_test::run_until(domain(), [&] { return side_.ended(); }));
    check();
    FUZZ_CHECK(completed_receives_ == posted_receives_);
    FUZZ_CHECK(side_.requests.size() == posted_requests_);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    World world(input.octet());
    while (!input.empty()) {
        world.step(input);
    }
    world.finish();
    return 0;
}
