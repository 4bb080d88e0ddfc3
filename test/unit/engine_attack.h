// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the tests with a hostile peer share: a side with memory that the peer may want,
// a raw peer connected to it, and endpoints of the same domain that must not notice.
#ifndef TEST_UNIT_ENGINE_ATTACK_H
#define TEST_UNIT_ENGINE_ATTACK_H

#include "engine_harness.h"
#include "engine_listener.h"
#include "engine_raw_peer.h"

#include "links/iwarp/connect.h"
#include "links/iwarp/link.h"

#include <algorithm>
#include <criterion/criterion.h>
#include <memory>
#include <sys/mman.h>

namespace engine_test {

// What the attacking peer is towards this side.
enum class Peer {
    dat,     // recognized, enhanced set-up, ready-to-receive, 2 reads in each direction
    foreign, // revision 1: this side holds its frames until the peer's first
};

inline dat::engine::Domain::Options attacked_options() {
    auto o = options();
    o.settings.crc = dat::engine::Crc::off;
    o.settings.rnr_limit = std::chrono::seconds(1);
    o.settings.end_grace = std::chrono::milliseconds(300);
    return o;
}

inline constexpr unsigned kUntouched = 0x5c;
inline const Bytes kFour = wire::filled(4, 0xee);

// A page between pages that nobody may touch: who reads or writes beyond either of its
// ends is killed.
class GuardedPage {
  public:
    GuardedPage() : pages_(static_cast<std::byte*>(map())) {
        cr_assert(pages_ != MAP_FAILED);
        cr_assert_eq(mprotect(pages_ + kSize, kSize, PROT_READ | PROT_WRITE), 0);
        std::fill_n(begin(), kSize, std::byte{kUntouched});
    }
    ~GuardedPage() { munmap(pages_, 3 * kSize); }
    GuardedPage(const GuardedPage&) = delete;
    GuardedPage& operator=(const GuardedPage&) = delete;
    std::byte* begin() const { return pages_ + kSize; }
    std::byte* end() const { return begin() + kSize; }

  private:
    static void* map() {
        return mmap(nullptr, 3 * kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    static constexpr std::size_t kSize = 64 * 1024; // whole pages on any machine
    std::byte* pages_;
};

// A side under attack, and what it has that the peer may want.
struct Attacked {
    explicit Attacked(Peer kind_ = Peer::dat, bool with_crc = false) : kind(kind_), crc(with_crc) {
        connect();
    }
    ~Attacked() {
        for (const std::uint32_t key : {kFull, kReadOnly, kForeign, kHigh, kFirst}) {
            domain.regions().remove(key);
        }
    }

    void connect() {
        const unsigned flags = (kind == Peer::dat ? 0x14 : 0) | (crc ? 0x40 : 0);
        const Bytes data = kind == Peer::dat ? be(0x8002, 2) + be(0x8002, 2) : Bytes();
        cr_assert(raw.connect(local_listener.listener.name().port()));
        write(wire::chars("MPA ID Req Frame") + wire::bytes({flags, kind == Peer::dat ? 2u : 1u}) +
              be(data.size(), 2) + data);
        cr_assert(run([&] { return !local_listener.requests.empty(); }));
        cr_assert_eq(dat::iwarp::accept(side.endpoint, *local_listener.requests[0], {}), 0);
        local_listener.requests.clear();
        cr_assert(run([&] { return raw.take_reply().has_value(); }));
        if (kind == Peer::dat) {
            put(tagged(0, 0, 0, {})); // ready-to-receive
        }
        cr_assert(run([&] { return side.connected(); }));
    }

    template <class Done> bool run(Done done) {
        return run_until(
            domain, [&] { return raw.listen(), done(); },
            [&] { local_listener.listener.progress(); });
    }
    void settle() {
        for (int i = 0; i < 200; ++i) {
            domain.progress();
        }
    }
    void write(const Bytes& bytes) {
        std::size_t done = 0;
        cr_assert(run([&] {
            done += raw.write_some(std::span(bytes).subspan(done));
            return done == bytes.size();
        }));
    }
    Bytes frame(const Bytes& ulpdu) const { return fpdu(ulpdu, crc, ulpdu.size()); }
    void put(const Bytes& ulpdu) { write(frame(ulpdu)); }
    // The next frame with that opcode; others are passed over.
    Bytes expect(unsigned opcode) {
        std::optional<Came> came;
        cr_assert(run([&] {
            do {
                came = raw.take_frame();
            } while (came && came->opcode() != opcode);
            return came.has_value();
        }));
        return came->ulpdu;
    }
    std::uint32_t terminate_code() { return static_cast<std::uint32_t>(get(expect(7), 18, 2)); }
    bool untouched() const {
        const auto same = [](std::byte b) { return b == std::byte{kUntouched}; };
        return std::all_of(memory.begin(), memory.end(), same);
    }
    // 64 bytes at one end of what must stay untouched.
    std::uint32_t region(std::uint32_t key, std::uint64_t address, std::uint8_t access,
                         const void* zone, bool at_begin = false) {
        std::byte* const at = at_begin ? memory.begin() : memory.end() - 64;
        cr_assert(domain.regions().add(key, {at, 64, address, zone, access}));
        return key;
    }

    static constexpr std::uint8_t kBoth = dat::engine::kRemoteRead | dat::engine::kRemoteWrite;
    static constexpr std::uint32_t kFull = 10, kReadOnly = 11, kForeign = 12, kHigh = 13,
                                   kFirst = 14;
    static constexpr int other_zone = 0;

    Peer kind;
    bool crc;
    GuardedPage memory;
    OpenDomain domain{attacked_options()};
    LocalListener local_listener;
    RawPeer raw;
    Side side{domain};
    std::uint32_t full = region(kFull, 0x1000, kBoth, &Side::zone);
    std::uint32_t read_only = region(kReadOnly, 0x1000, dat::engine::kRemoteRead, &Side::zone);
    std::uint32_t foreign = region(kForeign, 0x1000, kBoth, &other_zone);
    std::uint32_t high = region(kHigh, ~std::uint64_t{0} - 63, kBoth, &Side::zone);
    std::uint32_t first = region(kFirst, 0x1000, kBoth, &Side::zone, true);
};

// Two endpoints of the same domain that have nothing to do with it.
struct Bystanders {
    explicit Bystanders(Attacked& w) : world(w) {
        cr_assert_eq(
            dat::iwarp::connect(a.endpoint, world.local_listener.listener.name(), nullptr, {}, {}),
            0);
        cr_assert(world.run([&] { return !world.local_listener.requests.empty(); }));
        cr_assert_eq(dat::iwarp::accept(b.endpoint, *world.local_listener.requests[0], {}), 0);
        world.local_listener.requests.clear();
        cr_assert(world.run([&] { return a.connected() && b.connected(); }));
    }
    void go_on() {
        Bytes into(5);
        b.receive(into);
        a.send<dat::iwarp::Link>(bytes("hello"));
        cr_assert(world.run([&] { return !a.requests.empty() && !b.receives.empty(); }));
        cr_assert(a.requests.take()[0].status == DtoStatus::success);
        cr_assert(b.receives.take()[0].status == DtoStatus::success);
        cr_assert(text(into) == "hello");
    }

    Attacked& world;
    Side a{world.domain};
    Side b{world.domain};
};

} // namespace engine_test

#endif
