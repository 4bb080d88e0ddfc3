// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One attack at least for each field of the shared memory that a peer writes. Which fields
// there are is asked of the layout: a new one does not compile here, and then fails until
// it has an attack.
#include "engine_shm.h"

#include <set>
#include <tuple>

using namespace engine_test;
using dat::engine::Level;
using dat::engine::OpCode;
using dat::iwarp::TerminateCode;
using shm::Kind;

namespace {

constexpr unsigned kWhole = shm::kFirst | shm::kLast;
constexpr std::size_t kLarge = 100'000;

// --- the fields ---

auto fields(shm::Control& of) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
}
auto fields(shm::Record& of) {
    auto& [a, b, c, d, e, f, g, h, i] = of;
    return std::tie(a, b, c, d, e, f, g, h, i);
}
auto fields(shm::ReadRequest& of) {
    auto& [a, b, c] = of;
    return std::tie(a, b, c);
}
auto fields(shm::AtomicRequest& of) {
    auto& [a, b, c, d, e, f] = of;
    return std::tie(a, b, c, d, e, f);
}
auto fields(shm::Place& of) {
    auto& [a, b] = of;
    return std::tie(a, b);
}

struct Attack {
    const char* field;
    std::size_t at;
    void (*run)();
};

#define ATTACK(type, field, ...)                                                                   \
    Attack { #type "::" #field, offsetof(shm::type, field), [] __VA_ARGS__ }

// Each field has an attack, and each attack is made.
template <class Type> void attack_all(std::initializer_list<Attack> attacks) {
    auto object = std::make_unique<Type>();
    std::set<std::size_t> there;
    std::apply(
        [&](auto&... field) {
            (there.insert(static_cast<std::size_t>(reinterpret_cast<std::byte*>(&field) -
                                                   reinterpret_cast<std::byte*>(object.get()))),
             ...);
        },
        fields(*object));
    std::set<std::size_t> attacked;
    for (const Attack& each : attacks) {
        attacked.insert(each.at);
        cr_log_info("%s", each.field);
        each.run();
    }
    cr_assert(there == attacked, "a field has no attack");
}

// --- what they are made with ---

std::span<const std::byte> as_bytes(const auto& value) {
    return std::as_bytes(std::span(&value, 1));
}

// Memory of the endpoint that the peer may read and write, with more around it.
struct Target {
    explicit Target(Raw& p)
        : key(p.domain.regions().add({memory.data() + 8, 8, 0, &Side::zone,
                                      dat::engine::kRemoteRead | dat::engine::kRemoteWrite})) {}
    bool untouched_around() const {
        return std::all_of(memory.begin(), memory.begin() + 8, is_filler) &&
               std::all_of(memory.begin() + 16, memory.end(), is_filler);
    }
    static bool is_filler(std::byte b) { return b == std::byte{0x5c}; }
    alignas(8) std::array<std::byte, 24> memory = [] {
        std::array<std::byte, 24> bytes;
        bytes.fill(std::byte{0x5c});
        return bytes;
    }();
    std::uint32_t key;
};

void turn(Raw& p, int times = 200) {
    for (int i = 0; i < times; ++i) {
        p.domain.progress();
    }
}

// A record whose payload is `source`, where it lies.
shm::Record& elsewhere(Raw& p, Kind kind, const Bytes& source) {
    const shm::Place place{reinterpret_cast<std::uintptr_t>(source.data()), source.size()};
    shm::Record& record = p.begin(kind, kWhole | shm::kElsewhere);
    record.places = 1;
    record.size = static_cast<std::uint32_t>(source.size());
    std::memcpy(record.payload.data(), &place, sizeof place);
    return record;
}

// A message in one record, with one thing changed; blamed for that.
template <class Change> void message_is_blamed(Change change, TerminateCode code) {
    Raw p;
    Bytes in(4096, std::byte{0x5c});
    p.side.receive(in);
    shm::Record& record = p.begin(Kind::send, kWhole);
    record.size = 4;
    change(record);
    p.commit(record);
    cr_assert(p.blamed(code));
    cr_assert(std::all_of(in.begin(), in.end(), Target::is_filler));
}

// A request of that payload, which changes nothing but what it may.
template <class Request>
const shm::Record* ask(Raw& p, Target& target, Kind kind, const Request& request) {
    p.put(kind, kWhole, as_bytes(request), target.key, 0);
    const shm::Record* answer = nullptr;
    p.run([&] { return p.side.ended() || (answer = p.next()) != nullptr; });
    cr_assert(target.untouched_around());
    return answer;
}

std::uint64_t value_of(const Target& target) {
    std::uint64_t value = 0;
    std::memcpy(&value, target.memory.data() + 8, sizeof value);
    return value;
}

// Fills the byte ring, until the endpoint waits for room.
std::uint64_t fill_ring(Raw& p) {
    static const Bytes piece = numbered(4096);
    const std::size_t pieces = shm::kRing / piece.size();
    for (std::size_t i = 0; i <= pieces; ++i) {
        p.side.send<shm::Link>(piece, i, Level::taken);
    }
    cr_assert_eq(p.side.requests.size(), pieces);
    return pieces;
}

} // namespace

Test(engine_shm_fields, control, .timeout = 120) {
    attack_all<shm::Control>({
        ATTACK(Control, records_taken,
               {
                   for (const std::uint64_t more : {std::uint64_t{1}, ~std::uint64_t{0} - 200}) {
                       Raw p;
                       const std::uint64_t sent = fill_ring(p);
                       p.view.mine->records_taken.store(sent + more);
                       p.ring();
                       cr_assert(p.blamed(TerminateCode::ddp_untagged_msn_range));
                   }
               }),
        ATTACK(Control, bytes_taken,
               {
                   for (const std::uint64_t more : {std::uint64_t{1}, std::uint64_t{shm::kRing},
                                                    ~std::uint64_t{0} - shm::kRing}) {
                       Raw p;
                       const std::uint64_t sent = fill_ring(p);
                       p.view.mine->bytes_taken.store(shm::kRing + more);
                       p.view.mine->records_taken.store(sent); // no lie
                       p.ring();
                       cr_assert(p.blamed(TerminateCode::ddp_untagged_msn_range), "%llu",
                                 static_cast<unsigned long long>(more));
                   }
               }),
        ATTACK(Control, placed,
               {
                   for (const std::uint32_t placed : {2u, 0x80000000u, 0xffffffffu}) {
                       Raw p;
                       p.side.send<shm::Link>(bytes("x"), 1);
                       p.view.mine->placed.store(placed);
                       p.ring();
                       cr_assert(p.blamed(TerminateCode::ddp_untagged_msn_range));
                   }
               }),
        // Bits that mean nothing ring nobody; and one that always sleeps and never reads its
        // wake socket holds up nothing.
        ATTACK(Control, asleep,
               {
                   Raw p;
                   p.view.mine->asleep.store(~std::uint32_t{shm::kForRecords | shm::kForRoom});
                   p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
                   cr_assert_not(p.rang());
                   for (int i = 0; i < 10'000; ++i) {
                       p.view.mine->asleep.store(~std::uint32_t{0});
                       p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
                       cr_assert(p.next());
                       cr_assert(p.run([&] { return !p.side.requests.take().empty(); }));
                       p.view.mine->records_taken.store(p.received);
                   }
               }),
        ATTACK(Control, end,
               {
                   for (const std::uint32_t end : {3u, 0x80000001u, 0xffffffffu}) {
                       Raw p;
                       Bytes in(4);
                       p.side.receive(in);
                       p.view.mine->end.store(static_cast<shm::End>(end));
                       p.put(Kind::send, kWhole, bytes("last"));
                       p.ring();
                       cr_assert(p.run([&] { return p.side.ended(); }));
                       cr_assert(p.side.events.size() == 1 && text(in) == "last");
                   }
               }),
        ATTACK(Control, end_code,
               {
                   for (const std::uint32_t code : {0u, 0xffffu, 0x80000000u, 0xffffffffu}) {
                       Raw p;
                       p.side.send<shm::Link>(bytes("x"), 1);
                       p.side.send<shm::Link>(bytes("y"), 2);
                       p.view.mine->end_code.store(code);
                       p.view.mine->end.store(shm::End::faulted);
                       p.ring();
                       cr_assert(p.run([&] { return p.side.ended(); }));
                       const auto got = p.side.requests.take();
                       cr_assert(got.size() == 2 && got[0].status != DtoStatus::success &&
                                 got[1].status == DtoStatus::flushed);
                   }
               }),
        // Whatever else is there, and whether or not an end comes.
        ATTACK(Control, revoked,
               {
                   for (const std::uint32_t revoked : {1u, 0x101u, 0x80000001u}) {
                       Raw p;
                       Bytes in(kLarge);
                       p.side.receive(in);
                       p.view.mine->revoked.store(revoked);
                       const Bytes source = numbered(in.size());
                       p.commit(elsewhere(p, Kind::send, source));
                       turn(p);
                       cr_assert(p.side.receives.empty());
                       p.wake_socket.close();
                       cr_assert(p.run([&] { return p.side.ended(); }));
                       const auto got = p.side.receives.take();
                       cr_assert(got.size() == 1 && got[0].status == DtoStatus::flushed);
                   }
               }),
        // One that says that it copies, and does not, holds up nothing.
        ATTACK(Control, copying,
               {
                   Raw p;
                   p.view.mine->copying.store(0xffffffff);
                   for (int i = 0; i < 1000; ++i) {
                       p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
                       cr_assert(p.next());
                       cr_assert(p.run([&] { return !p.side.requests.take().empty(); }));
                       p.view.mine->records_taken.store(p.received);
                   }
                   p.wake_socket.close();
                   cr_assert(p.run([&] { return p.side.ended(); }));
               }),
        // It copies the first piece of a message, and not the rest: the buffer is the peer's
        // until it says that it has placed all.
        ATTACK(Control, pulls,
               {
                   Raw p;
                   static const Bytes source = numbered((1 << 20) + 4096);
                   p.view.mine->pulls.store(0xff00ff00);
                   for (std::uint32_t i = 1; i < shm::kRecords; ++i) {
                       p.side.send<shm::Link>(bytes("x"), 1, Level::taken);
                   }
                   p.side.requests.take();
                   p.side.send<shm::Link>(source, 7,
                                          Level::taken); // room for its first piece alone
                   p.view.mine->pulls.store(0);
                   const shm::Record* last = nullptr;
                   for (const shm::Record* each = nullptr; (each = p.next());) {
                       last = each;
                   }
                   cr_assert(last && (last->flags & shm::kElsewhere) != 0);
                   p.view.mine->records_taken.store(shm::kRecords - 1);
                   turn(p);
                   cr_assert(p.side.requests.empty());
                   last = p.next();
                   cr_assert(last && (last->flags & shm::kInRing) != 0 &&
                             (last->flags & shm::kLast) != 0);
                   p.view.mine->placed.store(shm::kRecords);
                   p.ring(); // it may sleep
                   cr_assert(p.run([&] { return p.side.requests.size() == 1; }));
               }),
        ATTACK(Control, regions_gone,
               {
                   for (const std::uint64_t gone : {std::uint64_t{1}, ~std::uint64_t{0}}) {
                       Raw p;
                       Bytes in(kLarge);
                       p.side.rma<shm::Link>(OpCode::read, in, 5, 0);
                       cr_assert(p.next());
                       p.view.mine->regions_gone.store(gone); // not what the response says
                       const Bytes source = numbered(in.size());
                       p.commit(elsewhere(p, Kind::response, source));
                       const shm::Record* again = nullptr;
                       cr_assert(p.run([&] { return (again = p.next()) != nullptr; }));
                       cr_assert(again->kind == Kind::read && p.side.requests.empty());
                   }
               }),
        ATTACK(Control, parted,
               {
                   for (const std::uint32_t parted : {1u, ~0u}) {
                       Raw p;
                       p.view.mine->parted.store(parted);
                       Bytes source = numbered(100);
                       Bytes in(100);
                       const iovec from{source.data(), source.size()};
                       const iovec to{in.data(), in.size()};
                       cr_assert_not(p.side.endpoint.link()->copy_from_peer({&from, 1}, {&to, 1}));
                       p.side.receive(in); // all else goes on
                       p.put(Kind::send, kWhole, bytes("hello"));
                       cr_assert(p.run([&] { return p.side.receives.size() == 1; }));
                       cr_assert_not(p.side.ended());
                   }
               }),
        // The peer has gone, behind what it sent, and may say so again.
        ATTACK(Control, stage,
               {
                   for (const std::uint32_t stage : {1u, 2u, 3u, ~0u}) {
                       Raw p;
                       p.put(Kind::send, kWhole, bytes("late"));
                       p.view.mine->stage.store(stage);
                       for (int i = 0; i < 3; ++i) {
                           p.ring();
                           turn(p);
                       }
                       cr_assert_not(p.side.ended());
                       Bytes in(4);
                       p.side.receive(in);
                       cr_assert(p.run([&] { return p.side.ended(); }));
                       cr_assert(p.side.events.size() == 1 &&
                                 p.side.events[0].event == dat::core::Event::disconnected);
                       cr_assert(text(in) == "late");
                       p.view.mine->stage.store(0);
                       p.ring();
                       turn(p);
                       cr_assert_eq(p.side.events.size(), 1u);
                   }
               }),
    });
}

Test(engine_shm_fields, record, .timeout = 120) {
    attack_all<shm::Record>({
        // Of the last round, of the next, of none.
        ATTACK(Record, stamp,
               {
                   for (const std::uint32_t stamp : {0u, 2u, shm::kRecords + 1, 0x80000001u}) {
                       Raw p;
                       Bytes in(4);
                       p.side.receive(in);
                       shm::Record& record = p.begin(Kind::send, kWhole);
                       record.size = 4;
                       record.stamp.store(stamp);
                       turn(p);
                       cr_assert(p.side.receives.empty() && p.side.events.empty());
                       p.commit(record);
                       cr_assert(p.run([&] { return p.side.receives.size() == 1; }));
                   }
               }),
        ATTACK(Record, kind,
               {
                   for (const int kind : {0, 7, 128, 255}) {
                       message_is_blamed([&](auto& r) { r.kind = static_cast<Kind>(kind); },
                                         TerminateCode::rdmap_unexpected_opcode);
                   }
               }),
        ATTACK(Record, flags,
               {
                   for (const unsigned flags :
                        {0xffu, kWhole | shm::kInRing | shm::kElsewhere, unsigned{shm::kLast}}) {
                       message_is_blamed(
                           [&](auto& r) { r.flags = static_cast<std::uint8_t>(flags); },
                           TerminateCode::ddp_untagged_invalid_mo);
                   }
               }),
        ATTACK(Record, places,
               {
                   for (const int places : {0, 5, 65535}) {
                       message_is_blamed(
                           [&](auto& r) {
                               r.flags |= shm::kElsewhere;
                               r.places = static_cast<std::uint16_t>(places);
                           },
                           TerminateCode::ddp_untagged_invalid_mo);
                   }
               }),
        ATTACK(
            Record, size,
            {
                for (const unsigned how : {0u, unsigned{shm::kInRing}, unsigned{shm::kElsewhere}}) {
                    message_is_blamed(
                        [&](auto& r) {
                            r.flags = static_cast<std::uint8_t>(r.flags | how);
                            r.places = 1;
                            r.size = 0xfffffff0;
                        },
                        TerminateCode::ddp_untagged_invalid_mo);
                }
            }),
        ATTACK(Record, data,
               {
                   Raw p;
                   const Target target(p);
                   Bytes in(4);
                   p.side.receive(in);
                   shm::Record& record = p.begin(Kind::send, kWhole | shm::kInvalidate);
                   record.data = target.key; // no window
                   p.commit(record);
                   cr_assert(p.blamed(TerminateCode::rdmap_protection_cannot_invalidate));
                   cr_assert(p.domain.regions().region(target.key));
               }),
        ATTACK(Record, key,
               {
                   for (const std::uint32_t other : {1u, 0x100u, 0x80000000u}) {
                       Raw p;
                       const Target target(p);
                       p.put(Kind::write, kWhole, bytes("12345678"), target.key ^ other, 0);
                       cr_assert(p.blamed(TerminateCode::rdmap_invalid_stag));
                       cr_assert_eq(value_of(target), 0x5c5c5c5c5c5c5c5c);
                   }
               }),
        ATTACK(Record, address,
               {
                   for (const std::uint64_t address : {std::uint64_t{1}, ~std::uint64_t{0} - 7}) {
                       Raw p;
                       const Target target(p);
                       p.put(Kind::write, kWhole, bytes("12345678"), target.key, address);
                       cr_assert(p.blamed(TerminateCode::rdmap_base_bounds));
                       cr_assert(target.untouched_around());
                   }
               }),
        // Of an answer: to nothing but where it belongs.
        ATTACK(Record, payload,
               {
                   Raw p;
                   Bytes in(4, std::byte{0x5c});
                   p.side.rma<shm::Link>(OpCode::read, std::span(in).first(2), 5, 0);
                   p.put(Kind::response, kWhole, numbered(3), 0);
                   cr_assert(p.blamed(TerminateCode::ddp_tagged_base_bounds));
                   cr_assert(std::all_of(in.begin(), in.end(), Target::is_filler));
               }),
    });
}

Test(engine_shm_fields, place, .timeout = 120) {
    attack_all<shm::Place>({
        ATTACK(Place, base,
               {
                   for (const std::uint64_t base : {std::uint64_t{16}, ~std::uint64_t{0} - 4096}) {
                       message_is_blamed(
                           [&](auto& r) {
                               const shm::Place place{base, 4};
                               r.flags |= shm::kElsewhere;
                               r.places = 1;
                               std::memcpy(r.payload.data(), &place, sizeof place);
                           },
                           shm::kUnreadable);
                   }
               }),
        ATTACK(Place, length,
               {
                   static const std::array<std::byte, 8> source{};
                   for (const std::uint64_t length :
                        {std::uint64_t{3}, std::uint64_t{5}, ~std::uint64_t{0},
                         (std::uint64_t{1} << 32) + 4}) {
                       message_is_blamed(
                           [&](auto& r) {
                               const shm::Place place{
                                   reinterpret_cast<std::uintptr_t>(source.data()), length};
                               r.flags |= shm::kElsewhere;
                               r.places = 1;
                               std::memcpy(r.payload.data(), &place, sizeof place);
                           },
                           TerminateCode::ddp_untagged_invalid_mo);
                   }
               }),
    });
}

Test(engine_shm_fields, read_request, .timeout = 120) {
    attack_all<shm::ReadRequest>({
        ATTACK(ReadRequest, length,
               {
                   for (const std::uint64_t length : {std::uint64_t{9}, ~std::uint64_t{0}}) {
                       Raw p;
                       Target target(p);
                       ask(p, target, Kind::read, shm::ReadRequest{length, 0, 0});
                       cr_assert(p.blamed(TerminateCode::rdmap_base_bounds));
                   }
               }),
        // Given back as it came, and used for nothing.
        ATTACK(ReadRequest, number,
               {
                   Raw p;
                   Target target(p);
                   const shm::Record* answer =
                       ask(p, target, Kind::read, shm::ReadRequest{8, 0xffffffff, 0});
                   cr_assert(answer && answer->kind == Kind::response && answer->key == 0xffffffff);
                   cr_assert_eq(answer->size, 8u);
               }),
        ATTACK(ReadRequest, unused,
               {
                   Raw p;
                   Target target(p);
                   cr_assert(ask(p, target, Kind::read, shm::ReadRequest{8, 0, 0xffffffff}));
                   cr_assert(p.side.events.empty());
               }),
    });
}

// Eight bytes change, as they are asked to, and none beside them.
Test(engine_shm_fields, atomic_request, .timeout = 120) {
    constexpr std::uint64_t kBefore = 0x5c5c5c5c5c5c5c5c;
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    static const auto changes_to = [](const shm::AtomicRequest& request, std::uint64_t value) {
        Raw p;
        Target target(p);
        const shm::Record* answer = ask(p, target, Kind::atomic, request);
        cr_assert(answer && answer->kind == Kind::atomic_response &&
                  answer->key == request.number && answer->size == sizeof kBefore);
        std::uint64_t before = 0;
        std::memcpy(&before, answer->payload.data(), sizeof before);
        cr_assert_eq(before, kBefore);
        cr_assert_eq(value_of(target), value, "%llx",
                     static_cast<unsigned long long>(value_of(target)));
    };
    attack_all<shm::AtomicRequest>({
        ATTACK(AtomicRequest, data,
               {
                   changes_to({kAll, 0, 0, 0, 0, 0}, kBefore - 1);
               }),
        ATTACK(AtomicRequest, mask,
               {
                   changes_to({kAll, 0xff, kBefore, kAll, 0, 1}, kBefore | 0xff);
               }),
        ATTACK(AtomicRequest, compare,
               {
                   changes_to({1, kAll, kBefore + 1, kAll, 0, 1}, kBefore);
               }),
        ATTACK(AtomicRequest, compare_mask,
               {
                   changes_to({1, kAll, 7, 0, 0, 1}, 1);
               }),
        ATTACK(AtomicRequest, number,
               {
                   changes_to({0, 0, 0, 0, 0xffffffff, 0}, kBefore);
               }),
        ATTACK(AtomicRequest, swap,
               {
                   changes_to({5, kAll, kBefore, kAll, 0, 0x80000000}, 5);
               }),
    });
}
