// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Links over made-up devices (verbs_fake.h) whose endpoint has a sink: its messages come into
// buffers of the link, and go out of them.
#include "links/verbs/link.h"
#include "links/verbs/link_parts.h"
#include "links/verbs/message_buffers.h"

#include "verbs_world.h"

#include <algorithm>
#include <array>
#include <criterion/criterion.h>
#include <cstring>
#include <vector>

using namespace verbs_test;
using verbs::kMessages;
using verbs::kMessageSize;
using verbs::plain_request_id;
using verbs::receive_id;

namespace {

struct Sink final : engine::MessageSink {
    bool arrived(const std::byte* message, std::size_t size) override {
        came.emplace_back(message, message + size);
        return takes;
    }
    Placement begins(const std::byte*, std::size_t) override { return {}; }
    void placed(std::uint64_t) override {}
    std::size_t longest_head() const override { return 0; }
    std::size_t longest() const override { return kMessageSize; }
    void finished(void*, core::DtoStatus) override {}
    void has_room() override {}
    void buffer_free() override { ++free; }

    std::vector<std::vector<std::byte>> came;
    std::uint32_t free = 0;
    bool takes = true;
};

struct Connected {
    explicit Connected(std::uint32_t most_inline = 1024) {
        state().most_inline = most_inline;
        side.endpoint.set_sink(&sink);
        world.connected(side);
    }
    ~Connected() { side.endpoint.free(); }

    verbs::Link& link() { return static_cast<verbs::Link&>(*side.endpoint.link()); }
    // A message of that size is in the buffer; its bytes are `value`.
    void comes(std::uint32_t buffer, std::uint32_t size, std::byte value,
               ibv_wc_opcode as = IBV_WC_RECV) {
        const ibv_sge into = given[buffer].into;
        std::memset(reinterpret_cast<void*>(into.addr), std::to_integer<int>(value), size);
        ibv_wc wc{};
        wc.wr_id = given[buffer].wr_id;
        wc.byte_len = size;
        wc.opcode = as;
        fake::complete(wc);
        take();
    }
    void take() {
        const engine::BiasedLockOwner in(world.engine.biased_lock());
        link().called();
        for (int i = 0; i < 2 && side.endpoint.link(); ++i) {
            link().poll();
        }
    }
    void sends(std::span<const std::byte> message) {
        const engine::BiasedLockOwner in(world.engine.biased_lock());
        cr_assert(side.send<verbs::Link>(message, 1) == core::PostVerdict::posted);
    }

    World world;
    Side side{world.engine};
    Sink sink;
    std::vector<fake::State::Posted>& given = state().receives;
};

} // namespace

Test(verbs_messages, buffers__are_the_devices_before_the_connection_is) {
    Connected c;
    cr_assert_eq(c.given.size(), kMessages);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
        cr_assert_eq(c.given[i].wr_id, receive_id(i));
        cr_assert_eq(c.given[i].into.length, kMessageSize);
        cr_assert(i == 0 || c.given[i].into.addr >= c.given[i - 1].into.addr + kMessageSize);
    }
}

Test(verbs_messages, what_comes__goes_to_the_sink_and_its_buffer_back_to_the_device) {
    Connected c;
    for (const std::uint32_t buffer : {3u, 0u, 3u}) {
        c.given.resize(kMessages);
        c.comes(buffer, 100 + buffer, std::byte(buffer + 1));
        cr_assert_eq(c.sink.came.back().size(), 100 + buffer);
        cr_assert(std::ranges::all_of(c.sink.came.back(),
                                      [&](std::byte b) { return b == std::byte(buffer + 1); }));
        cr_assert_eq(c.given.size(), kMessages + 1);
        cr_assert_eq(c.given.back().wr_id, receive_id(buffer));
        cr_assert_eq(c.given.back().into.addr, c.given[buffer].into.addr);
    }
    cr_assert_eq(c.sink.free, 3u);
}

Test(verbs_messages, what_the_sink_refuses__breaks_the_connection) {
    Connected c;
    c.sink.takes = false;
    c.comes(1, 10, std::byte{1});
    assert_ended(c.side, Event::broken, Reason::protocol);
    cr_assert_eq(c.given.size(), kMessages, "the buffer is the device's no more");
}

// A write with data takes a buffer, of which nobody has counted it; its end is told by that.
Test(verbs_messages, a_write_with_data__breaks_the_connection) {
    Connected c;
    c.comes(1, 10, std::byte{1}, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_ended(c.side, Event::broken, Reason::protocol);
    cr_assert(c.sink.came.empty());
}

Test(verbs_messages, one_that_is_longer_than_a_buffer__breaks_the_connection) {
    Connected c;
    fake::complete(receive_id(0), IBV_WC_LOC_LEN_ERR);
    c.take();
    assert_ended(c.side, Event::broken, Reason::protocol);
    cr_assert(c.sink.came.empty());
}

// Memory that the program has not registered.
Test(verbs_messages, what_goes_out_and_is_not_inline__is_copied) {
    Connected c(64);
    std::vector<std::byte> message(1000, std::byte{5});
    c.sends(std::span(message).first(64));
    cr_assert_eq(state().sent_first.back().addr, reinterpret_cast<std::uintptr_t>(message.data()));
    c.sends(message);
    const ibv_sge sent = state().sent_first.back();
    cr_assert_neq(sent.addr, reinterpret_cast<std::uintptr_t>(message.data()));
    cr_assert_eq(sent.length, 1000u);
    std::ranges::fill(message, std::byte{6});
    c.sends(message);
    const auto* const first = reinterpret_cast<const std::byte*>(sent.addr);
    cr_assert(std::all_of(first, first + 1000, [](std::byte b) { return b == std::byte{5}; }),
              "each has memory of its own");
}

// A sink waits for some of them, whether they are reported or not.
Test(verbs_messages, a_request_that_is_not_reported__completes) {
    Connected c;
    static constexpr std::byte out[4]{};
    {
        const engine::BiasedLockOwner in(c.world.engine.biased_lock());
        cr_assert(engine::post_request<verbs::Link>(c.side.endpoint, false,
                                                    [&](engine::Request& r, std::uint64_t) {
                                                        Side::fill(r, engine::OpCode::send, out, 1);
                                                        r.signaled = false;
                                                    }) == core::PostVerdict::posted);
    }
    cr_assert_neq(state().last_flags & IBV_SEND_SIGNALED, 0u);
}

// What came while this side was ending the connection is none of its sink's.
Test(verbs_messages, behind_a_disconnect__none_comes) {
    Connected c;
    ibv_wc wc{};
    wc.wr_id = receive_id(2);
    wc.byte_len = 10;
    wc.opcode = IBV_WC_RECV;
    fake::complete(wc);
    {
        const engine::BiasedLockOwner in(c.world.engine.biased_lock());
        cr_assert(c.side.endpoint.disconnect(false));
    }
    cr_assert(c.side.ended());
    cr_assert(c.sink.came.empty());
}

// What the peer sent before it left is there.
Test(verbs_messages, ahead_of_the_peers_disconnect__all_have_come) {
    Connected c;
    for (std::uint32_t i = 0; i < 20; ++i) {
        ibv_wc wc{};
        wc.wr_id = receive_id(i);
        wc.byte_len = 10;
        wc.opcode = IBV_WC_RECV;
        fake::complete(wc);
    }
    fake::leave(state().last_id);
    c.world.await([&] { return c.side.ended(); });
    cr_assert_eq(c.sink.came.size(), 20u);
    assert_ended(c.side, Event::disconnected, Reason::peer_closed);
}
