// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Receives that are more than one buffer for one message: taken back, or for several
// messages, where the peer chooses what comes next. A raw peer, one thread, loopback.
#include "engine_attack.h"

using namespace engine_test;

// fi_cancel(3): a message goes to the oldest receive that is left, also where the places
// of those that were taken back have been used again.
Test(engine_receives, taken_back_out_of_order__leave_the_others_in_order, .timeout = 60) {
    Attacked w;
    const std::uint32_t limit = w.side.endpoint.core().receives().limit();
    Bytes lost(8);
    w.side.receive(std::span(lost).first(4), 1);
    w.side.receive(std::span(lost).last(4), 2);
    cr_assert(w.side.endpoint.cancel_receive(reinterpret_cast<void*>(2)));
    cr_assert(w.side.endpoint.cancel_receive(reinterpret_cast<void*>(1)));
    cr_assert(!w.side.endpoint.cancel_receive(reinterpret_cast<void*>(1)));
    cr_assert_eq(w.side.receives.take().size(), 2u);

    std::vector<Bytes> buffers(limit, Bytes(4));
    for (std::uint32_t i = 0; i < limit; ++i) {
        cr_assert(w.side.receive(buffers[i], 10 + i) == PostVerdict::posted);
    }
    for (std::uint32_t msn = 1; msn <= limit; ++msn) {
        w.put(send_segment(msn, be(msn, 4)));
    }
    cr_assert(w.run([&] { return w.side.receives.size() == limit; }));
    const auto done = w.side.receives.take();
    for (std::uint32_t i = 0; i < limit; ++i) {
        cr_assert(done[i].status == DtoStatus::success);
        cr_assert_eq(done[i].context, reinterpret_cast<void*>(std::size_t{10} + i));
        cr_assert(buffers[i] == be(i + 1, 4));
    }
    cr_assert(lost == Bytes(8));
}

// U-62: the data of a write takes no byte of a receive for several messages, however
// long the write was; what comes next goes into its own place.
Test(engine_receives, for_several__are_not_used_up_by_writes_with_data, .timeout = 60) {
    Attacked w;
    constexpr std::size_t kRoom = 64;
    Bytes memory(4096), guarded = wire::filled(3 * kRoom, kUntouched);
    const auto room = std::span(guarded).subspan(kRoom, kRoom);
    const std::uint32_t key = w.domain.regions().add(
        {memory.data(), memory.size(), 0, &Side::zone, dat::engine::kRemoteWrite});
    w.side.endpoint.completions().set_writes_take_receives(true);
    w.side.endpoint.completions().set_min_multi(16);
    dat::engine::post_receive(w.side.endpoint, [&](dat::engine::Receive& r, std::uint64_t) {
        r = {};
        r.capacity = room.size();
        r.signaled = r.multi = true;
        r.iov_count = 1;
        r.iov = {room.data(), room.size()};
    });
    w.put(send_segment(1, wire::filled(8, 1)));
    w.put(tagged(0, key, 0, wire::filled(4096, 2)));
    w.put(untagged(8, 0, 2, 0, be(7, 8))); // RFC 7306: its data
    w.put(send_segment(3, wire::filled(8, 3)));
    cr_assert(w.run([&] { return w.side.receives.size() == 3; }));
    const auto done = w.side.receives.take();
    cr_assert_eq(done[0].buffer, room.data());
    cr_assert(done[1].length == 4096 && done[1].data == 7);
    cr_assert_eq(done[2].buffer, room.data() + 8);
    cr_assert(Bytes(room.begin(), room.begin() + 16) == wire::filled(8, 1) + wire::filled(8, 3));
    for (std::size_t i = 0; i < kRoom; ++i) {
        cr_assert(guarded[i] == std::byte{kUntouched} &&
                  guarded[2 * kRoom + i] == std::byte{kUntouched});
    }
    w.domain.regions().remove(key);
}
