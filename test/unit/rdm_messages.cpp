// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The messages of a reliable datagram endpoint, on a link that keeps what is posted until the test
// says that it has gone.
#include "engine_harness.h"

#include "rdm/messages.h"

#include <array>
#include <criterion/criterion.h>
#include <deque>
#include <memory>
#include <vector>

using namespace engine_test;
using dat::rdm::Head;
using dat::rdm::Kind;

namespace {

class KeepingLink final : public dat::engine::Link {
  public:
    explicit KeepingLink(std::deque<std::uint64_t>& posted)
        : Link(dat::engine::LinkKind::in_process), posted_(posted) {}
    bool confirms_delivery() const override { return true; }
    bool dat_peer() const override { return true; }
    bool wide_data() const override { return true; }
    bool peer_serves_reads() const override { return true; }
    void transmit(dat::engine::Request&, std::uint64_t seq, bool) override {
        posted_.push_back(seq);
    }
    void start() override {}
    void poll() override {}
    void push() override {}
    void receive_posted() override {}
    void drain() override {}
    void part(dat::engine::Parting) override { posted_.clear(); }

  private:
    std::deque<std::uint64_t>& posted_;
};

// An endpoint with one peer, which it is connected with.
struct Connected final : dat::rdm::PeerOwner, dat::engine::EndpointOwner {
    explicit Connected(std::uint64_t many_announced = dat::rdm::kManyAnnounced)
        : messages(domain, &Side::zone, {}, 64, 64, many_announced), peer(messages, *this, 0),
          endpoint(domain, *this, {24, 1}, &Side::zone) {
        messages.set_queues(&sends, &receives);
        endpoint.set_queues(&sends, nullptr);
        endpoint.set_sink(&peer);
        struct Nothing final : dat::engine::Handshake {
            void abandon() override {}
        };
        cr_assert(endpoint.begin_accept());
        endpoint.run(std::make_unique<Nothing>());
        endpoint.established(endpoint.attempt(), dat::core::Stimulus::handshake_done,
                             std::make_unique<KeepingLink>(posted), {});
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
    bool hears(Kind kind, std::uint64_t tag) {
        std::array<std::byte, sizeof(Head)> bytes;
        dat::rdm::put(bytes.data(), Head{kind, 0, 0, 0, 0, tag});
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
    dat::rdm::Outgoing out{};
    out.iov = &iov;
    out.count = 1;
    out.length = payload.size();
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

// Behind the question nothing goes out, until it is declined.
Test(rdm_messages, behind_the_question_whether_it_may_be_let_go__what_is_posted_waits) {
    Connected c;
    c.peer.say_of_release(Kind::ask);
    c.domain.run_deferred();
    cr_assert_eq(c.posted.size(), 1u);
    std::array<std::byte, 8> payload{};
    const dat::engine::Iov iov{payload.data(), payload.size()};
    dat::rdm::Outgoing out{};
    out.iov = &iov;
    out.count = 1;
    out.length = payload.size();
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
