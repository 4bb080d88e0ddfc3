// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A reliable datagram endpoint with one peer, on a link that keeps what is posted until the test
// says that it has gone.
#ifndef TEST_UNIT_RDM_CONNECTED_H
#define TEST_UNIT_RDM_CONNECTED_H

#include "engine_harness.h"

#include "rdm/messages.h"

#include <array>
#include <criterion/criterion.h>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace rdm_test {

using namespace engine_test;
using dat::engine::LinkKind;
using dat::rdm::Head;
using dat::rdm::Kind;
using Bytes = std::vector<std::byte>;

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
inline dat::rdm::Outgoing of_one(const dat::engine::Iov& iov) {
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

    OpenDomain domain;
    Queue sends;
    Queue receives;
    std::deque<std::uint64_t> posted;
    dat::rdm::Messages messages;
    dat::rdm::Peer peer;
    dat::engine::Endpoint endpoint;
};

} // namespace rdm_test

#endif
