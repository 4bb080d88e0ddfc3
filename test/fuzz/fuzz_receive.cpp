// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: a connection under attack, from the accepted request to its end: the
// real endpoint, handshake and link, on a socket pair in one thread. The input is a
// script: an octet of what was agreed, one of the handshake, then steps. Most bytes
// make a right step, so that the faults among them come late and deep.
//
// What must hold: no byte outside of what an operation or a registration names
// changes; nothing changes behind its completion or its close; each operation
// completes once; at most one event ends the connection, and nothing comes behind;
// what is staged is bounded; what this side sends is right; and as long as the peer
// is right, each message is the one that was sent.
#include "../unit/engine_harness.h"
#include "hostile_peer.h"
#include "plain.h"

#include "engine/shared_receives.h"
#include "links/iwarp/connect.h"
#include "links/iwarp/link.h"

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <sanitizer/asan_interface.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

using namespace dat::iwarp;
using dat::core::DtoStatus;
using dat::core::PostVerdict;
using dat::engine::OpCode;
using fuzz::Bytes;
using fuzz::HostilePeer;
using fuzz::Input;

namespace {

// Memory between guards.
class Block {
  public:
    Block(std::size_t size, unsigned fill)
        : all_(size + 2 * kGuard, kPaint), fill_(static_cast<std::byte>(fill)) {
        fuzz::fill(body(), fill_);
    }
    ~Block() { open(); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    std::span<std::byte> body() { return std::span(all_).subspan(kGuard, size()); }
    std::size_t size() const { return all_.size() - 2 * kGuard; }

    // From here on nobody may as much as look at the body.
    void shut() {
        check();
        shut_ = true;
        ASAN_POISON_MEMORY_REGION(body().data(), size());
    }
    void open() {
        ASAN_UNPOISON_MEMORY_REGION(all_.data(), all_.size());
        shut_ = false;
    }
    // The body is to stay as it was made.
    void only_read() { only_read_ = true; }
    // As it was made, for the next input.
    void renew() {
        open();
        fuzz::fill(all_, kPaint);
        fuzz::fill(body(), fill_);
    }
    void check() {
        const std::span<const std::byte> all(all_);
        FUZZ_CHECK(fuzz::all_are(all.first(kGuard), kPaint));
        FUZZ_CHECK(fuzz::all_are(all.last(kGuard), kPaint));
        FUZZ_CHECK(!only_read_ || shut_ || fuzz::all_are(body(), fill_));
    }

  private:
    static constexpr std::size_t kGuard = 64;
    static constexpr std::byte kPaint{0xa5};
    Bytes all_;
    const std::byte fill_;
    bool only_read_ = false;
    bool shut_ = false;
};

struct Region {
    std::uint32_t key;
    std::uint64_t address;
    const void* zone;
    std::uint8_t access;
    std::size_t size;
};

constexpr int kOtherZone = 0;
const Region kRegions[] = {
    {0x100, 0x1000, &engine_test::Side::zone, dat::engine::kRemoteRead | dat::engine::kRemoteWrite,
     4096},
    {0x101, 0x1000, &engine_test::Side::zone, dat::engine::kRemoteRead, 512},
    {0x102, 0, &engine_test::Side::zone, dat::engine::kRemoteWrite | dat::engine::kRemoteInvalidate,
     777},
    {0x103, 0x1000, &kOtherZone, dat::engine::kRemoteRead | dat::engine::kRemoteWrite, 512},
    {0x104, ~std::uint64_t{0} - 70'000, &engine_test::Side::zone,
     dat::engine::kRemoteRead | dat::engine::kRemoteWrite, 70'000},
};

struct Operation {
    enum class Kind { plain, read, atomic, multi };
    Operation(std::size_t size, unsigned fill, Kind k) : block(size, fill), kind(k) {}

    Block block;
    Kind kind;
    bool done = false;
};

// What completions say of how something arrived.
constexpr dat::engine::ArrivalFlags kArrivals{
    .with_data = 1, .solicited = 2, .invalidated = 4, .by_write = 8, .released = 16};

dat::engine::Domain::Options options(bool patient) {
    auto o = engine_test::options();
    o.settings.crc = dat::engine::Crc::off;
    o.settings.keepalive = std::chrono::seconds(0);
    if (!patient) {
        o.settings.rnr_limit = std::chrono::seconds(0);
        o.settings.end_grace = std::chrono::milliseconds(0);
        o.settings.unexpected_bytes = 256;
    }
    return o;
}

// Domains outlive the inputs, as they outlive connections.
dat::engine::Domain& domain(bool patient) {
    static engine_test::OpenDomain one(options(true));
    static engine_test::OpenDomain other(options(false));
    return patient ? one : other;
}

// Of the regions; it outlives the inputs too.
std::deque<Block>& region_memory() {
    static std::deque<Block> all = [] {
        std::deque<Block> out;
        for (const Region& region : kRegions) {
            Block& block = out.emplace_back(region.size, 0x11);
            if ((region.access & dat::engine::kRemoteWrite) == 0 ||
                region.zone != &engine_test::Side::zone) {
                block.only_read();
            }
        }
        return out;
    }();
    return all;
}

class World {
  public:
    World(std::uint8_t agreed, std::uint8_t handshake, const std::array<int, 2>& fds)
        : domain_(domain((agreed & 0x40) == 0)), link_fd_(fds[0]), peer_(fds[1]) {
        for (std::size_t i = 0; i < memory_.size(); ++i) {
            memory_[i].renew();
            open_region(i);
        }
        begin(agreed, handshake);
    }

    void step(Input& input);
    void finish();

  private:
    static constexpr dat::engine::Endpoint::Limits kLimits{16, 16};

    void begin(std::uint8_t agreed, std::uint8_t handshake);
    void accept(std::uint8_t agreed, std::uint8_t handshake);
    void establish(std::uint8_t agreed);
    void open_region(std::size_t i);
    void close_region(std::size_t i);
    void progress(int times);
    void settle();
    bool has_unread() const;
    void collect();
    void received(const dat::core::Completion& completion, const Operation& receive);
    void answered(Operation& request);
    void take_receive(const dat::core::Completion& completion);
    void check_staged();
    void post_receive(std::size_t size, bool multi);
    void post_request(OpCode op, std::size_t size, std::uint8_t flags);
    void fill(dat::engine::Request& request, std::uint64_t seq, OpCode op, std::uint8_t flags,
              std::span<std::byte> body);
    void peer_send(Input& input);
    void peer_write(Input& input);
    void peer_read(Input& input);
    void peer_atomic(Input& input);
    void rare_step(Input& input, std::uint8_t flags);

    // What a step asks for, as long as the input has not had as many bytes in all: large ones
    // take most of its time.
    std::size_t sized(std::size_t asked) {
        const std::size_t size = std::min(asked, left_);
        left_ -= size;
        return size;
    }
    bool linked() { return side_.endpoint.link() != nullptr; }

    dat::engine::Domain& domain_;
    std::size_t left_ = 100'000;
    int link_fd_;
    HostilePeer peer_;
    std::deque<Block>& memory_ = region_memory();
    std::vector<bool> open_ = std::vector<bool>(std::size(kRegions));
    std::vector<std::unique_ptr<Operation>> receives_;
    std::vector<std::unique_ptr<Operation>> requests_;
    std::size_t received_ = 0; // receives completed by a message
    std::size_t reads_ = 0;    // reads and atomics completed by a response
    std::optional<dat::engine::SharedReceives> shared_;
    engine_test::Side side_{domain_, kLimits};
};

// --- the beginning ---

void World::begin(std::uint8_t agreed, std::uint8_t handshake) {
    side_.endpoint.completions().set_arrival_flags(kArrivals);
    side_.endpoint.completions().set_writes_take_receives((agreed & 0x20) != 0);
    side_.endpoint.completions().set_min_multi(16);
    if ((agreed & 0x80) != 0) {
        side_.endpoint.set_shared(&shared_.emplace(kLimits.receives));
    }
    if ((agreed & 1) != 0) {
        establish(agreed);
    } else {
        accept(agreed, handshake);
    }
    peer_.listen();
    if ((handshake & 0x80) == 0 && (agreed & 1) == 0) { // what most peers do first
        peer_.write(0, 0, 0, true, false);
        peer_.deliver(peer_.queued());
        progress(4);
    }
}

// The responder, as a listener makes it.
void World::accept(std::uint8_t agreed, std::uint8_t handshake) {
    MpaFrame frame;
    frame.from_dat = (agreed & 2) != 0;
    frame.crc = (agreed & 4) != 0;
    if ((agreed & 8) != 0) {
        frame.revision = kMpaRevision2;
        frame.enhanced = MpaEnhanced{.ird = static_cast<std::uint16_t>(handshake & 3),
                                     .ord = static_cast<std::uint16_t>((handshake >> 2) & 3),
                                     .peer_to_peer = (agreed & 0x10) != 0,
                                     .rtr_empty_fpdu = (handshake & 0x10) != 0,
                                     .rtr_rdma_write = (handshake & 0x20) != 0,
                                     .rtr_rdma_read = (handshake & 0x40) != 0};
    }
    peer_.agree(frame.from_dat, false, true);
    dat::iwarp::Arrived arrived;
    arrived.frame = frame;
    arrived.socket = Socket(link_fd_);
    ConnRequest request(std::move(arrived), {});
    FUZZ_CHECK(dat::iwarp::accept(side_.endpoint, request, {}) == 0);
}

// The initiator, behind the reply.
void World::establish(std::uint8_t agreed) {
    Link::Parameters parameters;
    parameters.dat_peer = parameters.wide = (agreed & 2) != 0;
    parameters.crc = (agreed & 4) != 0;
    parameters.send_rtr = (agreed & 0x10) != 0;
    parameters.ord = (agreed & 8) != 0 ? 3 : 1;
    parameters.ird = parameters.ord;
    peer_.agree(parameters.dat_peer, parameters.crc, false);
    FUZZ_CHECK(side_.endpoint.begin_connect({}));
    side_.endpoint.established(side_.endpoint.attempt(), dat::core::Stimulus::peer_accepted,
                               std::make_unique<Link>(side_.endpoint, Socket(link_fd_),
                                                      dat::net::SocketAddress(), parameters),
                               {});
}

// --- this side ---

void World::open_region(std::size_t i) {
    const Region& r = kRegions[i];
    if (!open_[i]) {
        FUZZ_CHECK(domain_.regions().add(
            r.key, {memory_[i].body().data(), r.size, r.address, r.zone, r.access}));
        open_[i] = true;
        memory_[i].open();
    }
}

void World::close_region(std::size_t i) {
    const bool there = domain_.regions().remove(kRegions[i].key);
    // Only the peer's Send with Invalidate may have been faster.
    FUZZ_CHECK(there || !open_[i] || (kRegions[i].access & dat::engine::kRemoteInvalidate) != 0);
    open_[i] = false;
    memory_[i].shut();
}

void World::progress(int times) {
    for (int i = 0; i < times; ++i) {
        domain_.progress();
    }
    peer_.listen();
    collect();
    check_staged();
}

bool World::has_unread() const {
    int unread = 0;
    return ioctl(link_fd_, FIONREAD, &unread) == 0 && unread > 0;
}

// Until this side has taken what it can. Where it cannot, 40 turns show it.
void World::settle() {
    constexpr int kLeast = 3; // what was put off; what that brought; its end
    constexpr int kMost = 40;
    progress(kLeast);
    for (int i = kLeast; i < kMost && linked() && (peer_.queued() > 0 || has_unread()); ++i) {
        peer_.deliver(peer_.queued());
        progress(1);
    }
}

// A message: behind each other in one receive, if that is for several.
void World::received(const dat::core::Completion& completion, const Operation& receive) {
    if (completion.status != DtoStatus::success || (completion.flags & kArrivals.by_write) != 0) {
        return;
    }
    if (peer_.clean()) {
        FUZZ_CHECK(received_ < peer_.messages().size());
        const Bytes& sent = peer_.messages()[received_];
        FUZZ_CHECK(completion.length == sent.size());
        FUZZ_CHECK(sent.empty() || std::memcmp(sent.data(), completion.buffer, sent.size()) == 0);
    }
    FUZZ_CHECK(receive.kind == Operation::Kind::multi || completion.length <= receive.block.size());
    ++received_;
}

void World::take_receive(const dat::core::Completion& completion) {
    const std::size_t number = reinterpret_cast<std::size_t>(completion.context);
    if (number == 0) { // a write with data that took none
        FUZZ_CHECK((completion.flags & kArrivals.by_write) != 0);
        return;
    }
    Operation& receive = *receives_.at(number - 1);
    FUZZ_CHECK(!receive.done);
    received(completion, receive);
    const bool goes_on = receive.kind == Operation::Kind::multi &&
                         completion.status == DtoStatus::success &&
                         (completion.flags & kArrivals.released) == 0;
    receive.done = !goes_on;
    if (receive.done) {
        receive.block.shut();
    }
}

void World::answered(Operation& request) {
    const auto body = request.block.body();
    if (request.kind == Operation::Kind::atomic) {
        const std::uint64_t value = HostilePeer::response_value(reads_);
        FUZZ_CHECK(body.empty() || !peer_.clean() ||
                   std::memcmp(body.data(), &value, sizeof value) == 0);
    } else {
        FUZZ_CHECK(!peer_.clean() || fuzz::is_response(body, reads_));
    }
    ++reads_;
}

void World::collect() {
    for (const auto& completion : side_.receives.take()) {
        take_receive(completion);
    }
    for (const auto& completion : side_.requests.take()) {
        Operation& request = *requests_.at(reinterpret_cast<std::size_t>(completion.context));
        FUZZ_CHECK(!std::exchange(request.done, true));
        if (request.kind != Operation::Kind::plain && completion.status == DtoStatus::success) {
            answered(request);
        }
        request.block.shut();
    }
}

// Without a receive the link takes what it may stage, and what one read brings.
void World::check_staged() {
    const std::size_t most = domain_.settings().unexpected_bytes +
                             dat::engine::Domain::kScratchSize + fpdu_size(kFpduMaxUlpdu) +
                             peer_.other_bytes();
    int unread = 0;
    if (peer_.delivered() <= most || !receives_.empty() || !linked() ||
        ioctl(link_fd_, FIONREAD, &unread) != 0) {
        return;
    }
    const std::size_t taken = peer_.delivered() - static_cast<std::size_t>(unread);
    FUZZ_CHECK(!peer_.clean() || taken <= most);
}

void World::post_receive(std::size_t size, bool multi) {
    const auto kind = multi ? Operation::Kind::multi : Operation::Kind::plain;
    auto receive = std::make_unique<Operation>(size, 0x22, kind);
    const auto body = receive->block.body();
    receives_.push_back(std::move(receive)); // it may complete before the call returns
    const auto fill = [&](dat::engine::Receive& r) {
        r = {};
        r.context = reinterpret_cast<void*>(receives_.size());
        r.capacity = body.size();
        r.signaled = true;
        r.multi = multi;
        r.iov_count = 1;
        r.iov = {body.data(), body.size()};
    };
    bool posted = true;
    if (shared_) {
        posted = !shared_->full();
        if (posted) {
            shared_->post([&](dat::engine::Receive& r, dat::engine::Iov*) { fill(r); });
        }
    } else {
        const PostVerdict verdict = dat::engine::post_receive(
            side_.endpoint, [&](dat::engine::Receive& r, std::uint64_t) { fill(r); });
        posted = verdict == PostVerdict::posted || verdict == PostVerdict::flushed;
    }
    if (!posted) {
        receives_.pop_back();
    }
    collect();
}

void World::fill(dat::engine::Request& r, std::uint64_t seq, OpCode op, std::uint8_t flags,
                 std::span<std::byte> body) {
    engine_test::Side::fill(r, op, body, requests_.size());
    r.level = (flags & 2) != 0 ? dat::engine::Level::placed : dat::engine::Level::taken;
    r.fence = (flags & 4) != 0;
    r.solicited = (flags & 8) != 0;
    r.remote_key = 0x77;
    r.has_data =
        body.size() % 4 == 3 && peer_.dat_peer() && (op == OpCode::send || op == OpCode::write);
    r.data = body.size() % 8 == 7 ? 0x0123456789abcdef : 7;
    if (dat::engine::is_atomic(op)) {
        const dat::engine::AtomicOperands operands{1, 2, 3, 4};
        std::memcpy(side_.endpoint.inline_area(seq), &operands, sizeof operands);
        r.iov_count = body.empty() ? 0 : 1;
    }
}

void World::post_request(OpCode op, std::size_t size, std::uint8_t flags) {
    const bool atomic = dat::engine::is_atomic(op);
    if (atomic && !peer_.dat_peer()) {
        return; // refused above this layer
    }
    const auto kind = atomic               ? Operation::Kind::atomic
                      : op == OpCode::read ? Operation::Kind::read
                                           : Operation::Kind::plain;
    auto request = std::make_unique<Operation>(size, 0x33, kind);
    if (kind == Operation::Kind::plain) {
        request->block.only_read();
    }
    const auto body = request->block.body();
    const PostVerdict verdict = dat::engine::post_request<Link>(
        side_.endpoint, (flags & 1) != 0, [&](dat::engine::Request& r, std::uint64_t seq) {
            fill(r, seq, op, flags, body);
            requests_.push_back(std::move(request)); // as above
        });
    FUZZ_CHECK((request == nullptr) ==
               (verdict == PostVerdict::posted || verdict == PostVerdict::flushed));
    collect();
}

// --- the peer's steps ---

// Where `size` bytes begin in a region: mostly about its ends, where mistakes are.
std::uint64_t place(Input& input, const Region& region, std::size_t size) {
    const std::uint8_t how = input.octet();
    const std::uint64_t off = how >> 2;
    switch (how & 3) {
    case 0:
        return region.address + off;
    case 1:
        return region.address - off;
    case 2:
        return region.address + region.size - size + off;
    default:
        return region.address + off * 1031;
    }
}

Opcode with_data(Opcode opcode) {
    return opcode == Opcode::send_se ? Opcode::send_data_se : Opcode::send_data;
}

void World::peer_send(Input& input) {
    static constexpr Opcode kSends[] = {Opcode::send, Opcode::send_se, Opcode::send_invalidate,
                                        Opcode::send_se_invalidate};
    const std::uint8_t flags = input.octet();
    const bool invalidates = (flags & 0x30) == 0x30;
    const Opcode opcode = kSends[(flags & 1) + (invalidates ? 2 : 0)];
    const std::uint32_t word =
        invalidates ? kRegions[input.octet() % std::size(kRegions)].key : peer_.taken();
    const std::size_t size = (flags & 8) != 0 ? sized(input.word() % 65'000u) : input.octet();
    if ((flags & 0xd0) == 0xd0 && peer_.dat_peer()) {
        peer_.high_data(0x01234567);
    }
    peer_.send((flags & 0xc0) == 0xc0 && peer_.dat_peer() ? with_data(opcode) : opcode, size,
               (flags & 2) == 0, (flags & 4) != 0, word);
}

void World::peer_write(Input& input) {
    const std::uint8_t flags = input.octet();
    const Region& region = kRegions[(flags >> 4) % std::size(kRegions)];
    const std::size_t size = (flags & 8) != 0 ? sized(input.word() % 65'000u) : input.octet();
    const std::uint64_t to = (flags & 1) != 0 ? place(input, region, size) : region.address;
    peer_.write(region.key, to, size, (flags & 2) == 0, (flags & 4) != 0);
}

void World::peer_read(Input& input) {
    const std::uint8_t flags = input.octet();
    const Region& region = kRegions[(flags >> 4) % std::size(kRegions)];
    ReadRequest request;
    request.sink_stag = 0x5eed;
    request.size = (flags & 8) != 0 ? input.word() * 4u : input.octet();
    request.source_stag = region.key;
    request.source_to = (flags & 1) != 0 ? place(input, region, request.size) : region.address;
    peer_.read_request(request);
}

void World::peer_atomic(Input& input) {
    const std::uint8_t flags = input.octet();
    const Region& region = kRegions[(flags >> 4) % std::size(kRegions)];
    AtomicRequest request;
    request.op =
        static_cast<std::uint8_t>((flags & 2) != 0 ? AtomicOp::compare_swap : AtomicOp::fetch_add);
    request.request_id = flags;
    request.stag = region.key;
    request.to = (flags & 1) != 0 ? place(input, region, sizeof(std::uint64_t)) : region.address;
    request.data = input.number();
    request.mask = request.compare_mask = ~std::uint64_t{0};
    peer_.atomic_request(request);
}

void World::step(Input& input) {
    const std::uint8_t what = input.octet();
    switch (what % 24) {
    case 0:
    case 1:
    case 2:
        return peer_send(input);
    case 3:
    case 4:
        return peer_write(input);
    case 5:
        return peer_read(input);
    case 6:
        return peer_.read_response(input.word() % 65'000u);
    case 7:
        return peer_.ack((what & 0x80) != 0 ? input.number() : peer_.taken());
    case 8:
    case 9:
        return post_receive((what & 0x80) != 0 ? sized(input.word() * 4u) : input.octet(),
                            (what & 0x40) != 0);
    case 10:
        return post_request(OpCode::send, sized(input.word() * 2u), what >> 4);
    case 11:
        return post_request(OpCode::write, sized(input.word()), what >> 4);
    case 12:
        return post_request(OpCode::read, sized(input.word() * 2u), what >> 4);
    case 13:
        peer_.deliver(input.octet());
        return progress(1);
    case 14:
        peer_.deliver(input.word());
        return progress(1);
    case 15:
        peer_.deliver(peer_.queued());
        return progress(1 + what / 24 % 4);
    case 16:
        return settle();
    case 17:
        return close_region(input.octet() % std::size(kRegions));
    case 18:
        return open_region(input.octet() % std::size(kRegions));
    case 19:
        return peer_.twist(input.octet() % 48u, input.octet());
    case 20:
        return peer_.spoil(input.word(), input.octet());
    case 21:
        return (what & 0x80) != 0 ? peer_.raw(input.bytes(input.octet())) : peer_.empty_frame();
    case 22:
        return peer_.terminate(input.word());
    default:
        return rare_step(input, what >> 4);
    }
}

void World::rare_step(Input& input, std::uint8_t flags) {
    switch (input.octet() % 8) {
    case 0:
        return peer_.shutdown_write();
    case 1:
        return peer_.close();
    case 4:
        return peer_atomic(input);
    case 5:
        return peer_.immediate(input.number(), (flags & 8) != 0);
    case 6:
        return post_request((flags & 8) != 0 ? OpCode::compare_swap : OpCode::fetch_add,
                            (flags & 4) != 0 ? sizeof(std::uint64_t) : 0, flags);
    case 7:
        side_.endpoint.cancel_receive(
            reinterpret_cast<void*>(std::size_t{input.octet()} % (receives_.size() + 1)));
        return collect();
    default:
        side_.endpoint.disconnect((flags & 8) == 0);
        return collect();
    }
}

void World::finish() {
    peer_.deliver(peer_.queued());
    settle();
    side_.endpoint.free();
    collect();
    const std::size_t events = side_.events.size();
    peer_.close();
    for (int i = 0; i < 3; ++i) {
        domain_.progress(); // what lingers ends
    }
    collect();
    FUZZ_CHECK(side_.events.size() == events);
    const auto ends = std::count_if(side_.events.begin(), side_.events.end(), [](const auto& e) {
        return e.event != dat::core::Event::established;
    });
    FUZZ_CHECK(ends <= 1 && events <= 2);
    for (std::size_t i = 0; i < std::size(kRegions); ++i) {
        close_region(i);
        memory_[i].check();
    }
    std::size_t undone = 0;
    for (const auto* list : {&receives_, &requests_}) {
        for (const auto& operation : *list) {
            undone += operation->done ? 0 : 1;
            operation->block.check();
        }
    }
    // Shared receives that no message took belong to nobody.
    FUZZ_CHECK(undone == (shared_ ? shared_->waiting() : 0));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::array<int, 2> fds{};
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
    Input input(data, size);
    const std::uint8_t agreed = input.octet();
    World world(agreed, input.octet(), fds);
    constexpr int kSteps = 256;
    for (int i = 0; i < kSteps && !input.empty(); ++i) {
        world.step(input);
    }
    world.finish();
    return 0;
}
