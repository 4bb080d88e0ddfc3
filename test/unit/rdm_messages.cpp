// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The messages of a reliable datagram endpoint.
#include "rdm_connected.h"

#include "engine/inbox.h"

#include <algorithm>
#include <array>
#include <criterion/criterion.h>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

using namespace rdm_test;

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
