// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The messages of a reliable datagram endpoint, on a link that keeps what is posted until the test
// says that it has gone.
#include "engine_harness.h"

#include "engine/inbox.h"
#include "rdm/messages.h"

#include <algorithm>
#include <array>
#include <criterion/criterion.h>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

using namespace engine_test;
using dat::engine::LinkKind;
using dat::rdm::Head;
using dat::rdm::Kind;
using Bytes = std::vector<std::byte>;

namespace {

class KeepingLink final : public dat::engine::Link {
  public:
    KeepingLink(std::deque<std::uint64_t>& posted, LinkKind kind) : Link(kind), posted_(posted) {}
    bool confirms_delivery() const override { return true; }
    bool dat_peer() const override { return true; }
    bool wide() const override { return true; }
    bool peer_serves_reads() const override { return true; }
    // As shared memory does, where `peer_` is the peer's memory.
    bool copy_from_peer(std::span<const iovec> from, std::span<const iovec> to) override {
        cr_assert(from.size() == 1 && to.size() == 1 && from[0].iov_len == to[0].iov_len);
        copied_ += to[0].iov_len;
        std::memcpy(to[0].iov_base, from[0].iov_base, to[0].iov_len);
        return may_copy_;
    }
    bool copies_from_peer() const override { return copies_; }
    bool peer_may_push() const override { return peer_polls_; }
    std::size_t copied_ = 0;
    bool may_copy_ = true;
    bool copies_ = true;
    bool peer_polls_ = true;
    void transmit(dat::engine::Request&, std::uint64_t seq, bool) override {
        posted_.push_back(seq);
        if (polls_) {
            std::exchange(polls_, nullptr)();
        }
    }
    std::function<void()> polls_; // within the next post, as a link does that is to be woken
    void start() override {}
    void poll() override {}
    void push() override {}
    void receive_posted() override {}
    void drain() override {}
    void part(dat::engine::Parting) override { posted_.clear(); }

  private:
    std::deque<std::uint64_t>& posted_;
};

// `iov` outlives it.
dat::rdm::Outgoing of_one(const dat::engine::Iov& iov) {
    return {.iov = &iov, .count = 1, .length = iov.length};
}

// An endpoint with one peer, which it is connected with.
struct Connected : dat::rdm::PeerOwner, dat::engine::EndpointOwner {
    explicit Connected(std::uint64_t many_announced = dat::rdm::kManyAnnounced,
                       const dat::engine::Domain::Options& o = options(),
                       LinkKind kind = LinkKind::in_process,
                       dat::rdm::ReadRegistrar* registrar = nullptr)
        : domain(o), messages(domain, &Side::zone, {}, 64, 64, registrar, many_announced),
          peer(messages, *this, 0), endpoint(domain, *this, {24, 1}, &Side::zone) {
        messages.set_queues(&sends, &receives);
        endpoint.set_queues(&sends, nullptr);
        endpoint.set_sink(&peer);
        struct Nothing final : dat::engine::Handshake {
            void abandon() override {}
        };
        cr_assert(endpoint.begin_accept());
        endpoint.run(std::make_unique<Nothing>());
        endpoint.established(endpoint.attempt(), dat::core::Stimulus::handshake_done,
                             std::make_unique<KeepingLink>(posted, kind), {});
        peer.connected(endpoint, 65536, false);
        domain.run_deferred();
        all_have_gone();
    }
    ~Connected() {
        endpoint.free();
        peer.parted();
        peer.fail();
        messages.flush();
    }

    void all_have_gone() {
        while (!posted.empty()) {
            const std::uint64_t seq = posted.front();
            posted.pop_front();
            endpoint.finish_request(seq, DtoStatus::success);
        }
    }
    bool hears(Kind kind, std::uint64_t tag, std::uint32_t taken = 0, std::uint8_t freed = 0) {
        std::array<std::byte, sizeof(Head)> bytes;
        dat::rdm::put(bytes.data(), Head{kind, 0, 0, freed, taken, tag});
        return peer.arrived(bytes.data(), bytes.size());
    }
    bool hears_announced(std::uint64_t id) {
        std::array<std::byte, sizeof(Head) + sizeof id> bytes;
        dat::rdm::put(dat::rdm::put(bytes.data(), Head{Kind::announced, 0, 0, 0, 0, 0}), id);
        return peer.arrived(bytes.data(), bytes.size());
    }
    // How many are taken, and held.
    std::uint64_t announces(std::uint64_t most) {
        std::uint64_t taken = 0;
        while (taken < most && hears_announced(taken + 1)) {
            ++taken;
        }
        return taken;
    }
    void receive_one() {
        cr_assert(messages.receive({}) == PostVerdict::posted);
        domain.run_deferred();
        all_have_gone();
    }
    // What the oldest that is posted says is the id to say `done` of.
    std::uint64_t id_of_first() {
        const dat::engine::Request& request = endpoint.request(posted.front());
        std::uint64_t id = 0;
        dat::rdm::get(request.segments()[0].base + sizeof(Head), id);
        return id;
    }

    void wanted(dat::rdm::Peer&) override {}
    void give_up(dat::rdm::Peer&) override {}
    void confirmed(dat::rdm::Peer&) override {}
    void asked(dat::rdm::Peer&) override {}
    void agreed(dat::rdm::Peer&) override {}
    void declined(dat::rdm::Peer&) override {}
    void link_ready(dat::engine::Link&) override {}
    void raise(const ConnectionEvent&) override {}

    Domain domain;
    Queue sends;
    Queue receives;
    std::deque<std::uint64_t> posted;
    dat::rdm::Messages messages;
    dat::rdm::Peer peer;
    dat::engine::Endpoint endpoint;
};

} // namespace

// A peer can guess an id. Memory that the link is still to read is not given back for that.
Test(rdm_messages, done_before_the_message_has_gone__completes_the_send_when_it_has) {
    Connected c;
    std::vector<std::byte> payload(1000);
    const dat::engine::Iov iov{payload.data(), payload.size()};
    dat::rdm::Outgoing out = of_one(iov);
    out.delivered = true;
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    cr_assert_eq(c.posted.size(), 1u);
    const std::uint64_t id = c.id_of_first();
    cr_assert(c.hears(Kind::done, id));
    cr_assert(c.sends.empty());
    c.all_have_gone();
    const auto done = c.sends.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert(done[0].status == DtoStatus::success);
    cr_assert_not(c.hears(Kind::done, id));
}

// What is held, and what waits at the peer, is use of the connection; what is there is not.
Test(rdm_messages, a_message_without_its_receive__keeps_the_connection_in_use) {
    Connected c;
    cr_assert(c.peer.is_quiet());
    const std::uint64_t before = c.peer.activity();
    cr_assert(c.hears(Kind::tagged, 5));
    cr_assert_not(c.peer.is_quiet());
    cr_assert_neq(c.peer.activity(), before);
    dat::rdm::Messages::Incoming in{};
    in.tag = 5;
    in.tagged = true;
    cr_assert(c.messages.receive(in) == PostVerdict::posted);
    cr_assert(c.peer.is_quiet());
    cr_assert_neq(c.peer.activity(), before);
}

// A link over shared memory that sleeps polls within a post: what is posted may be answered there.
Test(rdm_messages, an_answer_within_the_post__is_that_to_what_is_posted) {
    for (const std::size_t size : {std::size_t{8}, std::size_t{100000}}) {
        Connected c;
        Bytes payload(size);
        const dat::engine::Iov iov{payload.data(), payload.size()};
        dat::rdm::Outgoing out = of_one(iov);
        bool heard = false;
        static_cast<KeepingLink&>(*c.endpoint.link()).polls_ = [&] {
            heard = size == 8 ? c.hears(Kind::taken, 0, dat::rdm::cost_of(size))
                              : c.hears(Kind::done, c.id_of_first());
        };
        cr_assert(c.peer.send(out) == PostVerdict::posted);
        cr_assert(heard);
        c.all_have_gone();
        const auto done = c.sends.take();
        cr_assert(done.size() == 1 && done[0].status == DtoStatus::success);
        cr_assert(c.peer.idle());
    }
}

// Who only sends has not heard what the peer has taken, until it looks.
Test(rdm_messages, a_full_window__is_looked_at_again_before_a_message_is_announced) {
    Connected c;
    std::array<std::byte, 8> payload{};
    const dat::engine::Iov iov{payload.data(), payload.size()};
    dat::rdm::Outgoing out = of_one(iov);
    const auto kind_of_next = [&] {
        cr_assert(c.peer.send(out) == PostVerdict::posted);
        cr_assert_eq(c.posted.size(), 1u);
        Head head;
        dat::rdm::get(c.endpoint.request(c.posted.front()).segments()[0].base, head);
        return head.kind;
    };
    const std::uint32_t window = 65536;
    for (std::uint32_t i = 0; i < window / dat::rdm::cost_of(payload.size()); ++i) {
        cr_assert(kind_of_next() == Kind::message);
        c.all_have_gone();
    }
    struct Taken final : dat::engine::Deferred {
        explicit Taken(Connected& by) : c(by) {}
        void run() override { cr_assert(c.hears(Kind::taken, 0, 65536)); }
        Connected& c;
    } taken(c);
    c.domain.defer(taken);
    cr_assert(kind_of_next() == Kind::message);
    c.all_have_gone();
    for (std::uint32_t i = 1; i < window / dat::rdm::cost_of(payload.size()); ++i) {
        cr_assert(kind_of_next() == Kind::message);
        c.all_have_gone();
    }
    cr_assert(kind_of_next() == Kind::announced);
    cr_assert(c.hears(Kind::done, c.id_of_first(), window));
    c.all_have_gone();
}

namespace {

// A message of a process of this host, announced to an endpoint with a receive for it.
struct Announced {
    static constexpr std::uint64_t kId = 7;
    explicit Announced(std::size_t size = 5 * dat::rdm::kCopiedAtOnce + 100)
        : from(size), to(size) {
        for (std::size_t i = 0; i < size; ++i) {
            from[i] = static_cast<std::byte>(i * 7 + i / 256);
        }
        const dat::engine::Iov iov{to.data(), to.size()};
        dat::rdm::Messages::Incoming in{};
        in.iov = &iov;
        in.count = 1;
        in.length = size;
        cr_assert(c.messages.receive(in) == PostVerdict::posted);
    }
    void comes() {
        std::array<std::byte, dat::rdm::kMaxAnnouncement> bytes;
        std::byte* at = dat::rdm::put(bytes.data(), Head{Kind::announced, 0, 1, 0, 0, 0});
        at = dat::rdm::put(at, kId);
        at = dat::rdm::put(at, dat::rdm::Place{1, static_cast<std::uint32_t>(from.size()),
                                               reinterpret_cast<std::uintptr_t>(from.data())});
        cr_assert(c.peer.arrived(bytes.data(), static_cast<std::size_t>(at - bytes.data())));
    }
    bool piece(std::size_t offset, std::size_t size, std::uint64_t id = kId) {
        Bytes bytes(sizeof(Head) + sizeof(std::uint64_t) + size);
        std::byte* at = dat::rdm::put(bytes.data(), Head{Kind::piece, 0, 0, 0, 0, id});
        at = dat::rdm::put(at, std::uint64_t{offset});
        std::memcpy(at, from.data() + offset, size);
        return c.peer.arrived(bytes.data(), bytes.size());
    }
    // What is posted, in its order; it has gone then.
    std::vector<Kind> says() {
        std::vector<Kind> kinds;
        for (const std::uint64_t seq : c.posted) {
            Head head;
            dat::rdm::get(c.endpoint.request(seq).segments()[0].base, head);
            kinds.push_back(head.kind);
        }
        c.all_have_gone();
        return kinds;
    }
    KeepingLink& link() { return static_cast<KeepingLink&>(*c.endpoint.link()); }
    void rounds(std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            c.domain.run_deferred();
        }
    }
    bool is_whole() {
        const auto done = c.receives.take();
        return done.size() == 1 && done[0].status == DtoStatus::success &&
               done[0].length == from.size() && to == from;
    }

    Connected c;
    Bytes from;
    Bytes to;
};

} // namespace

Test(rdm_messages, a_large_message_of_one_host__comes_in_pieces_from_a_sender_that_polls) {
    Announced m;
    m.comes();
    m.rounds(1);
    cr_assert(m.says() == std::vector{Kind::push});
    for (std::size_t at = 0; at < m.from.size(); at += 10000) {
        m.rounds(dat::rdm::kPatience - 1);
        cr_assert(m.c.receives.empty());
        cr_assert(m.piece(at, std::min<std::size_t>(10000, m.from.size() - at)));
    }
    cr_assert(m.is_whole());
    cr_assert_eq(m.link().copied_, 0u);
    m.rounds(1);
    cr_assert(m.says() == std::vector{Kind::done});
    cr_assert(m.piece(0, 100), "one that comes late is no fault");
}

Test(rdm_messages, a_large_message_of_one_host__is_copied_where_its_sender_does_not_poll) {
    for (const bool polls : {true, false}) {
        Announced m;
        m.link().peer_polls_ = polls;
        m.comes();
        m.rounds(1);
        cr_assert(m.says() == (polls ? std::vector{Kind::push} : std::vector<Kind>{}));
        for (std::uint32_t i = 0; m.c.receives.empty(); ++i) {
            cr_assert_lt(i, dat::rdm::kPatience + 10);
            m.rounds(1);
        }
        cr_assert(m.is_whole());
        cr_assert_eq(m.link().copied_, m.from.size());
        m.rounds(1);
        cr_assert(m.says() == std::vector{Kind::done});
    }
}

// Where the two meet it is whole, and what a piece has beyond that is thrown away.
Test(rdm_messages, a_large_message_of_one_host__is_whole_where_both_sides_meet) {
    for (const std::size_t piece : {1000u, 65536u, 200000u}) {
        Announced m;
        m.comes();
        m.rounds(1);
        std::size_t at = 0;
        while (m.c.receives.empty()) {
            const std::size_t before = m.link().copied_;
            m.rounds(dat::rdm::kPatience + 1);
            cr_assert(!m.c.receives.empty() || m.link().copied_ > before);
            cr_assert(m.piece(at, std::min(piece, m.from.size() - at)));
            at += piece;
        }
        cr_assert(m.is_whole());
        cr_assert_lt(m.link().copied_, m.from.size());
    }
}

// Not from there, or not any more: then it is read as by any other peer.
Test(rdm_messages, a_large_message_that_cannot_be_copied__is_read) {
    for (const bool copies : {false, true}) {
        Announced m;
        m.link().copies_ = copies;
        m.link().may_copy_ = false;
        m.comes();
        m.rounds(1);
        if (copies) {
            cr_assert(m.says() == std::vector{Kind::push});
            m.rounds(dat::rdm::kPatience + 2);
        }
        cr_assert_eq(m.c.posted.size(), 1u);
        const dat::engine::Request& read = m.c.endpoint.request(m.c.posted.front());
        cr_assert(read.op == dat::engine::OpCode::read && read.length == m.from.size());
        std::memcpy(m.to.data(), m.from.data(), m.from.size());
        cr_assert(m.piece(0, 100));
        m.c.all_have_gone();
        cr_assert(m.is_whole());
    }
}

Test(rdm_messages, a_piece_without_a_payload_or_an_offset__is_a_fault_only_without) {
    Announced m;
    m.comes();
    m.rounds(1);
    cr_assert(m.piece(0, 0));
    std::array<std::byte, sizeof(Head) + 7> shorter{};
    dat::rdm::put(shorter.data(), Head{Kind::piece, 0, 0, 0, 0, Announced::kId});
    cr_assert_not(m.c.peer.arrived(shorter.data(), shorter.size()));
    m.c.peer.parted();
    m.c.peer.fail();
    const auto done = m.c.receives.take();
    cr_assert(done.size() == 1 && done[0].status == DtoStatus::flushed);
}

// What is asked for goes in pieces, one behind the other, and until the receiver has all of it. Of
// another message nothing does.
Test(rdm_messages, what_its_receiver_asks_for__is_pushed_until_it_is_done) {
    Connected c;
    Bytes payload(100000);
    const dat::engine::Iov iov{payload.data(), payload.size()};
    dat::rdm::Outgoing out = of_one(iov);
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    const std::uint64_t id = c.id_of_first();
    c.all_have_gone();
    cr_assert_not(c.hears(Kind::push, id + 1));
    cr_assert(c.hears(Kind::push, id));
    std::uint64_t offset = 0;
    for (int i = 0; i < 3; ++i) {
        c.domain.run_deferred();
        cr_assert_eq(c.posted.size(), 1u, "one at a time");
        const dat::engine::Request& request = c.endpoint.request(c.posted.front());
        const std::byte* const at = request.segments()[0].base;
        Head head;
        dat::rdm::get(at, head);
        std::uint64_t said = 0;
        dat::rdm::get(at + sizeof head, said);
        cr_assert(head.kind == Kind::piece && head.tag == id && said == offset);
        cr_assert(request.segments()[1].base == payload.data() + offset);
        offset += request.segments()[1].length;
        cr_assert(c.hears(Kind::push, id), "twice is no fault");
        if (i < 2) {
            c.all_have_gone();
        }
    }
    // Its memory is the program's again when nothing reads it any more.
    cr_assert(c.hears(Kind::done, id));
    cr_assert(c.sends.empty());
    c.all_have_gone();
    cr_assert_eq(c.sends.take().size(), 1u);
    c.domain.run_deferred();
    cr_assert(c.posted.empty());
    cr_assert_not(c.hears(Kind::push, id));
}

// Behind the question nothing goes out, until it is declined.
Test(rdm_messages, behind_the_question_whether_it_may_be_let_go__what_is_posted_waits) {
    Connected c;
    c.peer.say_of_release(Kind::ask);
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    std::array<std::byte, 8> payload{};
    const dat::engine::Iov iov{payload.data(), payload.size()};
    dat::rdm::Outgoing out = of_one(iov);
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    c.peer.go_on();
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 2u);
    c.all_have_gone();
    cr_assert_eq(c.sends.take().size(), 1u);
}

// Somebody who makes many connections holds no more memory than one who makes few: while there are
// many messages that are announced, each may have few.
Test(rdm_messages, announced_messages_of_all_peers__are_bounded) {
    using dat::rdm::kFewAnnounced;
    constexpr std::uint64_t kMany = kFewAnnounced + 5;
    Connected c(kMany);
    cr_assert_eq(c.announces(kMany + 1), kMany);
    c.receive_one();
    cr_assert_eq(c.announces(2), 1);
    // Few may be there in any case.
    Connected among_many(1);
    cr_assert_eq(among_many.announces(kMany), kFewAnnounced);
    among_many.receive_one();
    cr_assert_eq(among_many.announces(2), 1);
}

// However many connections ago a message came, it is none of the present one.
Test(rdm_messages, a_message_that_is_held_over_65536_connections__is_none_of_the_last) {
    Connected c;
    cr_assert(c.hears(Kind::tagged, 5));
    for (int i = 0; i < 65536; ++i) {
        c.peer.parted();
        c.peer.connected(c.endpoint, 65536, false);
        c.domain.run_deferred();
        c.all_have_gone();
    }
    cr_assert(c.peer.is_quiet());
    dat::rdm::Messages::Incoming in{};
    in.tag = 5;
    in.tagged = true;
    cr_assert(c.messages.receive(in) == PostVerdict::posted);
    cr_assert(c.peer.is_quiet());
}

// Those of a connection that has ended count no more.
Test(rdm_messages, announced_messages_of_a_connection_that_has_ended__make_room) {
    Connected c(1);
    cr_assert_eq(c.announces(dat::rdm::kFewAnnounced + 1), dat::rdm::kFewAnnounced);
    c.peer.parted();
    c.peer.connected(c.endpoint, 65536, false);
    cr_assert_eq(c.announces(dat::rdm::kFewAnnounced + 1), dat::rdm::kFewAnnounced);
}

namespace {

// A message of tag 5 as it lies in a stream: `data` and `id` with those flags.
Bytes message(std::uint8_t flags, std::size_t payload) {
    Bytes bytes(dat::rdm::kMaxHead + payload);
    std::byte* at = dat::rdm::put(bytes.data(), Head{Kind::tagged, flags, 0, 0, 0, 5});
    if ((flags & dat::rdm::kHasData) != 0) {
        at = dat::rdm::put(at, std::uint64_t{77});
    }
    if ((flags & dat::rdm::kWantsDone) != 0) {
        at = dat::rdm::put(at, std::uint64_t{88});
    }
    for (std::size_t i = 0; i < payload; ++i) {
        at[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    bytes.resize(static_cast<std::size_t>(at - bytes.data()) + payload);
    return bytes;
}

// Comes in such pieces, the next one beginning where the last ended; the rest is one more.
bool comes_in_pieces(Connected& c, dat::engine::Inbox& inbox, const Bytes& message,
                     std::initializer_list<std::size_t> sizes, bool whole = true) {
    std::vector<std::size_t> all(sizes);
    std::size_t left = message.size();
    for (const std::size_t size : sizes) {
        left -= size;
    }
    if (whole) {
        all.push_back(left);
    }
    const std::byte* at = message.data();
    for (const std::size_t size : all) {
        dat::engine::Inbox::Room to;
        if ((!inbox.open() && !inbox.begin({at, size})) || !inbox.room(size, to)) {
            return false;
        }
        std::size_t sum = 0;
        for (std::size_t i = 0; i < to.count; ++i) {
            std::memcpy(to.pieces[i].iov_base, at, to.pieces[i].iov_len);
            at += to.pieces[i].iov_len;
            sum += to.pieces[i].iov_len;
        }
        cr_assert_eq(sum, size);
        inbox.filled(size);
    }
    const bool taken = !whole || inbox.finish(0, 0);
    c.domain.run_deferred();
    c.all_have_gone();
    return taken;
}

struct Posted {
    explicit Posted(Connected& c, std::initializer_list<std::size_t> sizes, bool stays = false) {
        for (const std::size_t size : sizes) {
            pieces.emplace_back(size);
        }
        for (Bytes& piece : pieces) {
            iov.push_back({piece.data(), piece.size()});
            total += piece.size();
        }
        dat::rdm::Messages::Incoming in{};
        in.iov = iov.data();
        in.count = iov.size();
        in.length = total;
        in.tag = 5;
        in.tagged = true;
        in.stays = stays;
        cr_assert(c.messages.receive(in) == PostVerdict::posted);
    }
    Bytes all() const {
        Bytes joined;
        for (const Bytes& piece : pieces) {
            joined.insert(joined.end(), piece.begin(), piece.end());
        }
        return joined;
    }
    std::vector<Bytes> pieces;
    std::vector<dat::engine::Iov> iov;
    std::size_t total = 0;
};

} // namespace

// Whatever pieces a message comes in, the receive that is there has it, up to its end.
Test(rdm_messages, a_message_in_pieces__goes_into_the_segments_of_its_receive) {
    using Sizes = std::initializer_list<std::size_t>;
    const std::array<std::initializer_list<std::size_t>, 6> cuts{
        Sizes{}, Sizes{32}, Sizes{33, 1, 1}, Sizes{7}, Sizes{100, 1000}, Sizes{1000, 3000, 3000}};
    const std::array<std::initializer_list<std::size_t>, 5> receives{
        Sizes{9000}, Sizes{8000}, Sizes{1, 4000, 10, 5000}, Sizes{5000}, Sizes{0, 10}};
    for (const auto& cut : cuts) {
        for (const auto& sizes : receives) {
            for (const unsigned flags : {0u, 1u, 2u, 3u}) {
                Connected c;
                dat::engine::Inbox inbox(c.endpoint);
                const Posted receive(c, sizes);
                const Bytes bytes = message(static_cast<std::uint8_t>(flags), 8000);
                cr_assert(comes_in_pieces(c, inbox, bytes, cut));
                const auto done = c.receives.take();
                cr_assert_eq(done.size(), 1u);
                const std::size_t placed = std::min<std::size_t>(8000, receive.total);
                cr_assert(done[0].status ==
                          (receive.total < 8000 ? DtoStatus::local_length : DtoStatus::success));
                cr_assert_eq(done[0].length, placed);
                const std::byte* const whole = bytes.data() + bytes.size() - 8000;
                cr_assert(std::equal(whole, whole + placed, receive.all().data()));
                cr_assert_eq(done[0].data, receive.total < 8000 ? 5u : flags % 2 ? 77u : 0u);
                cr_assert_not(inbox.full());
            }
        }
    }
}

// One that takes many messages has to know how long each is.
Test(rdm_messages, a_message_in_pieces__goes_into_a_receive_that_stays_when_it_is_whole) {
    Connected c;
    dat::engine::Inbox inbox(c.endpoint);
    const Posted receive(c, {20'000}, true);
    const Bytes bytes = message(0, 8000);
    for (int i = 0; i < 2; ++i) {
        cr_assert(comes_in_pieces(c, inbox, bytes, {100, 1000}));
    }
    const auto done = c.receives.take();
    cr_assert_eq(done.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
        cr_assert_eq(done[i].length, 8000u);
        cr_assert(std::equal(bytes.end() - 8000, bytes.end(), receive.all().data() + 8000 * i));
    }
}

// The receive that a message was coming into is over with its connection, others are not.
Test(rdm_messages, a_message_whose_rest_never_comes__fails_its_receive_alone) {
    Connected c;
    dat::engine::Inbox inbox(c.endpoint);
    const Posted first(c, {9000});
    const Posted second(c, {9000});
    cr_assert(comes_in_pieces(c, inbox, message(0, 8000), {100, 1000}, false));
    cr_assert_not(c.peer.is_quiet());
    cr_assert(c.receives.take().empty());
    c.peer.parted();
    const auto done = c.receives.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert(done[0].status == DtoStatus::flushed);
    c.peer.connected(c.endpoint, 65536, false);
    c.domain.run_deferred();
    c.all_have_gone();
    dat::engine::Inbox next(c.endpoint);
    cr_assert(comes_in_pieces(c, next, message(0, 8000), {100}));
    cr_assert_eq(c.receives.take().size(), 1u);
}

// A receive that is posted while a message is coming finds it when it is whole.
Test(rdm_messages, a_receive_that_comes_during_its_message__gets_it) {
    Connected c;
    dat::engine::Inbox inbox(c.endpoint);
    const Bytes bytes = message(0, 8000);
    cr_assert(comes_in_pieces(c, inbox, bytes, {100}, false));
    const Posted receive(c, {9000});
    dat::engine::Inbox::Room to;
    cr_assert(inbox.room(bytes.size() - 100, to));
    std::memcpy(to.pieces[0].iov_base, bytes.data() + 100, bytes.size() - 100);
    inbox.filled(bytes.size() - 100);
    cr_assert(inbox.finish(0, 0));
    const auto done = c.receives.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert(std::equal(bytes.end() - 8000, bytes.end(), receive.all().begin()));
}

// However little may wait for a receive (FI_DAT_UNEXPECTED), a message that is coming goes on.
Test(rdm_messages, a_message_in_pieces__does_not_count_as_one_that_waits) {
    auto o = options();
    o.settings.unexpected_bytes = 100;
    Connected c(dat::rdm::kManyAnnounced, o);
    dat::engine::Inbox inbox(c.endpoint);
    cr_assert(comes_in_pieces(c, inbox, message(0, 3000), {1000, 1000}, false));
    cr_assert_not(inbox.full());
}

// --- over a device, where each message takes one of the peer's buffers ---

namespace {

constexpr std::uint32_t kBuffers = dat::verbs::kMessages;

struct Registrar final : dat::rdm::ReadRegistrar {
    bool add(const dat::engine::Iov& memory, std::uint32_t& key) override {
        key = static_cast<std::uint32_t>(memory.length); // of one length each
        there += left > 0;
        return left-- > 0;
    }
    void remove(const dat::engine::Iov& memory, std::uint32_t key) override {
        cr_assert_eq(key, memory.length);
        --there;
    }
    int there = 0;
    int left = 1000; // that it takes
};

struct OnDevice : Connected {
    explicit OnDevice(Registrar* registrar = nullptr)
        : Connected(dat::rdm::kManyAnnounced, options(), LinkKind::verbs, registrar) {
        static_cast<KeepingLink&>(*endpoint.link()).copies_ = false;
        for (std::uint32_t i = 0; i < iovs.size(); ++i) {
            bytes[i] = std::byte(i);
            iovs[i] = {&bytes[i], 1};
        }
    }
    bool sends_one() {
        const bool sent = peer.send(of_one(iovs[sent_])) == PostVerdict::posted;
        sent_ += sent;
        return sent;
    }
    Head head_of(std::uint64_t seq) {
        Head head;
        dat::rdm::get(endpoint.request(seq).segments()[0].base, head);
        return head;
    }
    // The payloads of what has been posted, which has gone.
    std::vector<std::byte> gone() {
        std::vector<std::byte> all;
        domain.run_deferred();
        while (!posted.empty()) {
            const std::uint64_t seq = posted.front();
            if (head_of(seq).kind == Kind::message) {
                all.push_back(endpoint.request(seq).segments()[0].base[sizeof(Head)]);
            }
            posted.pop_front();
            endpoint.finish_request(seq, DtoStatus::success);
            domain.run_deferred();
        }
        return all;
    }
    // One comes, and its buffer is the device's again.
    bool hears_one(std::uint8_t freed = 0) {
        const bool good = hears(Kind::taken, 0, 0, freed);
        peer.buffer_free();
        domain.run_deferred();
        return good;
    }
    std::size_t sent_ = 0;
    std::array<std::byte, 100> bytes;
    std::array<dat::engine::Iov, 100> iovs;
};

} // namespace

// The greeting has taken one, and one is kept.
Test(rdm_device, no_more_messages_go__than_the_peer_has_buffers) {
    OnDevice c;
    std::vector<std::byte> all;
    for (std::uint32_t i = 0; i < kBuffers + 10; ++i) {
        cr_assert(c.sends_one());
        const auto some = c.gone();
        all.insert(all.end(), some.begin(), some.end());
    }
    cr_assert_eq(all.size(), kBuffers - 2);
    cr_assert_eq(c.endpoint.core().requests().outstanding(), 0u);
    cr_assert(c.hears(Kind::taken, 0, 0, 4));
    auto some = c.gone();
    cr_assert_eq(some.size(), 4u);
    all.insert(all.end(), some.begin(), some.end());
    cr_assert(c.hears(Kind::taken, 0, 0, kBuffers - 4));
    some = c.gone();
    all.insert(all.end(), some.begin(), some.end());
    cr_assert_eq(all.size(), kBuffers + 10);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        cr_assert_eq(all[i], std::byte(i), "in their order");
    }
    cr_assert(c.peer.flows(), "as before");
}

// Who does not hear of any buffer is told to come again.
Test(rdm_device, what_waits_for_buffers__is_bounded) {
    OnDevice c;
    while (c.sends_one()) {
        c.gone();
        cr_assert_lt(c.sent_, 99u);
    }
    cr_assert_eq(c.sent_, kBuffers - 2 + kBuffers);
    cr_assert(c.hears(Kind::taken, 0, 0, kBuffers - 1));
    cr_assert_eq(c.gone().size(), kBuffers - 1);
    cr_assert(c.sends_one());
}

// Both sides may have sent all that they may: what is free is said all the same.
Test(rdm_device, what_is_free_again__is_said_by_the_buffer_that_is_kept) {
    OnDevice c;
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
        cr_assert(c.sends_one());
        c.gone();
    }
    for (std::uint32_t i = 1; i < kBuffers / 2; ++i) {
        cr_assert(c.hears_one());
        cr_assert(c.posted.empty(), "what is sent anyway will say it");
    }
    cr_assert(c.hears_one());
    cr_assert_eq(c.posted.size(), 1u);
    const Head head = c.head_of(c.posted.front());
    cr_assert(head.kind == Kind::taken);
    cr_assert_eq(head.freed, kBuffers / 2);
    c.gone();
    for (std::uint32_t i = 0; i < kBuffers; ++i) { // there is none left to say it by
        cr_assert(c.hears_one());
    }
    cr_assert(c.posted.empty());
    cr_assert(c.hears(Kind::taken, 0, 0, 1));
    cr_assert(c.sends_one());
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    cr_assert(c.head_of(c.posted.front()).kind == Kind::taken);
    cr_assert_eq(c.head_of(c.posted.front()).freed, kBuffers);
}

Test(rdm_device, what_is_sent__says_what_is_free) {
    OnDevice c;
    cr_assert(c.hears_one());
    cr_assert(c.hears_one());
    cr_assert(c.sends_one());
    cr_assert_eq(c.head_of(c.posted.front()).freed, 2);
    c.gone();
    cr_assert(c.sends_one());
    cr_assert_eq(c.head_of(c.posted.front()).freed, 0);
    c.gone();
}

Test(rdm_device, more_buffers_than_there_are__are_refused) {
    OnDevice c; // whose greeting is out
    cr_assert_not(c.hears(Kind::taken, 0, 0, 2));
    cr_assert(c.hears(Kind::taken, 0, 0, 1));
    cr_assert_not(c.hears(Kind::taken, 0, 0, 1));
    Connected elsewhere;
    cr_assert_not(elsewhere.hears(Kind::taken, 0, 0, 1));
}

// A piece would be longer than a buffer.
Test(rdm_device, to_push_what_is_announced__is_refused) {
    OnDevice c;
    Bytes payload(100'000);
    const dat::engine::Iov iov{payload.data(), payload.size()};
    cr_assert(c.peer.send(of_one(iov)) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    const std::uint64_t id = c.id_of_first();
    c.gone();
    cr_assert_not(c.hears(Kind::push, id));
    cr_assert(c.hears(Kind::done, id));
}

// By its address, in pieces of one segment each, of no more than is registered at once.
Test(rdm_device, what_is_announced__is_read_in_pieces) {
    OnDevice c;
    constexpr std::uint64_t kLong = 2 * dat::rdm::kReadOnDevice + 100;
    constexpr std::uint64_t kShort = 50;
    std::vector<Bytes> memory{Bytes(dat::rdm::kReadOnDevice + 7), Bytes(kLong)};
    const std::array<dat::engine::Iov, 2> into{
        dat::engine::Iov{memory[0].data(), memory[0].size()},
        dat::engine::Iov{memory[1].data(), memory[1].size()}};
    dat::rdm::Messages::Incoming in{};
    in.iov = into.data();
    in.count = into.size();
    in.length = memory[0].size() + memory[1].size();
    cr_assert(c.messages.receive(in) == PostVerdict::posted);
    std::array<std::byte, sizeof(Head) + 8 + 2 * sizeof(dat::rdm::Place)> bytes;
    std::byte* at = dat::rdm::put(bytes.data(), Head{Kind::announced, 0, 2, 0, 0, 0});
    at = dat::rdm::put(at, std::uint64_t{99});
    at = dat::rdm::put(at, dat::rdm::Place{11, kLong, 0x10000});
    dat::rdm::put(at, dat::rdm::Place{12, kShort, 0x900000});
    cr_assert(c.peer.arrived(bytes.data(), bytes.size()));
    c.domain.run_deferred();
    std::uint64_t read = 0;
    for (; !c.posted.empty(); c.posted.pop_front()) {
        const std::uint64_t seq = c.posted.front();
        const dat::engine::Request request = c.endpoint.request(seq);
        if (request.op != dat::engine::OpCode::read) {
            cr_assert(c.head_of(seq).kind == Kind::done);
            cr_assert_eq(c.head_of(seq).tag, 99u);
            c.endpoint.finish_request(seq, DtoStatus::success);
            continue;
        }
        cr_assert_eq(request.iov_count, 1);
        cr_assert_leq(request.length, dat::rdm::kReadOnDevice);
        const bool first = read < kLong;
        cr_assert_eq(request.remote_key, first ? 11u : 12u);
        cr_assert_eq(request.remote_address, first ? 0x10000 + read : 0x900000 + read - kLong);
        const std::byte* const to = read < memory[0].size()
                                        ? memory[0].data() + read
                                        : memory[1].data() + read - memory[0].size();
        cr_assert_eq(request.iov.base, to);
        read += request.length;
        c.endpoint.finish_request(seq, DtoStatus::success);
        c.domain.run_deferred();
    }
    cr_assert_eq(read, kLong + kShort);
    const auto done = c.receives.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert_eq(done[0].length, kLong + kShort);
}

// For as long as the peer may read it.
Test(rdm_device, what_is_announced__is_registered_until_it_is_done) {
    Registrar registrar;
    OnDevice c(&registrar);
    Bytes payload(30'000);
    const std::array<dat::engine::Iov, 3> iov{dat::engine::Iov{payload.data(), 10'000},
                                              dat::engine::Iov{payload.data(), 0},
                                              dat::engine::Iov{payload.data() + 10'000, 20'000}};
    const dat::rdm::Outgoing out{.iov = iov.data(), .count = iov.size(), .length = payload.size()};
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(registrar.there, 2);
    const std::uint64_t id = c.id_of_first();
    c.gone();
    cr_assert_eq(registrar.there, 2);
    cr_assert(c.hears(Kind::done, id));
    cr_assert_eq(registrar.there, 0);
    cr_assert_eq(c.sends.take().size(), 1u);
}

// As by RLIMIT_MEMLOCK: that message fails, and none behind it.
Test(rdm_device, what_cannot_be_registered__fails_alone) {
    Registrar registrar;
    OnDevice c(&registrar);
    Bytes payload(20'000);
    const std::array<dat::engine::Iov, 2> iov{dat::engine::Iov{payload.data(), 10'000},
                                              dat::engine::Iov{payload.data() + 10'000, 10'000}};
    const dat::rdm::Outgoing out{.iov = iov.data(), .count = iov.size(), .length = payload.size()};
    registrar.left = 1; // of two
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    cr_assert(c.sends_one());
    c.domain.run_deferred();
    cr_assert_eq(registrar.there, 0);
    auto done = c.sends.take();
    cr_assert_eq(done.size(), 1u);
    cr_assert(done[0].status == DtoStatus::local_ep);
    cr_assert_eq(c.gone().size(), 1u);
    registrar.left = 2;
    cr_assert(c.peer.send(out) == PostVerdict::posted);
    c.domain.run_deferred();
    cr_assert_eq(registrar.there, 2);
}
