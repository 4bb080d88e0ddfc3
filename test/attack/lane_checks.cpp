// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What has come to a lane, looked at.
#include "lane.h"

#include <atomic>

namespace dat::test {

void Lane::completed(Task& task, const Op& result) {
    journal_.completed(task, result);
    moved_ = Clock::now();
    if (result.err == FI_ECANCELED) {
        ++terms_.tally->flushed;
        return;
    }
    if (result.err != 0) {
        ++terms_.tally->erred;
        DAT_REQUIRE(result.err == FI_ECONNABORTED || terms_.flips,
                    "an operation failed: " + error_name(result.err));
        return;
    }
    ++terms_.tally->succeeded;
    if (task.verb == Verb::kReceive)
        received(task, result);
    else
        request_done(task);
}

void Lane::received(Task& task, const Op& result) {
    Head head;
    DAT_REQUIRE(read_message(task.bytes.get(), result.len, head),
                "a message of " + std::to_string(result.len) + " bytes is not as it was sent");
    DAT_REQUIRE(head.connection == connection_, "a message of another connection");
    DAT_REQUIRE(head.sequence == next_received_, "message " + std::to_string(head.sequence) +
                                                     " instead of " +
                                                     std::to_string(next_received_));
    DAT_REQUIRE(!goodbye_received_, "a message after the last one");
    if ((result.flags & FI_REMOTE_CQ_DATA) != 0)
        DAT_REQUIRE(result.data == static_cast<std::uint32_t>(head.sequence), "remote CQ data");
    ++terms_.tally->messages;
    terms_.tally->bytes += result.len;
    ++next_received_;
    owed_ += head.kind != Kind::kAck;
    DAT_REQUIRE(head.consumed >= peer_consumed_ && head.consumed <= next_sent_,
                "the peer has consumed what was not sent");
    peer_consumed_ = head.consumed;
    check_slot(head);
    check_counter(head);
    if (head.kind == Kind::kGoodbye) {
        goodbye_received_ = true;
        leaving_ = true;
    }
    post_receive(task);
}

// A write is there before the message behind it.
void Lane::check_slot(const Head& head) {
    if (head.slot_size == 0)
        return;
    DAT_REQUIRE(sum_of(region_.data() + slot_at(head.slot), head.slot_size) == head.slot_sum,
                "an RDMA write of " + std::to_string(head.slot_size) +
                    " bytes is not as it was written");
    terms_.tally->bytes += head.slot_size;
}

void Lane::check_counter(const Head& head) {
    DAT_REQUIRE(counter() >= head.counter, "an atomic that was confirmed is not there");
}

std::uint64_t Lane::counter() const {
    auto* at = reinterpret_cast<std::uint64_t*>(const_cast<Region&>(region_).data());
    return std::atomic_ref<std::uint64_t>(*at).load();
}

void Lane::request_done(Task& task) {
    switch (task.verb) {
    case Verb::kSend:
        goodbye_confirmed_ = goodbye_sent_ && task.sequence + 1 == next_sent_;
        break;
    case Verb::kRead:
        DAT_REQUIRE(holds(task.bytes.get(), task.size, peer_.read_seed, task.offset),
                    "an RDMA read of " + std::to_string(task.size) + " bytes brought other ones");
        terms_.tally->bytes += task.size;
        break;
    case Verb::kFetchAdd:
    case Verb::kCompareSwap:
        DAT_REQUIRE(task.operands[2] == task.before,
                    "an atomic has found " + std::to_string(task.operands[2]) + " instead of " +
                        std::to_string(task.before));
        [[fallthrough]];
    case Verb::kAdd:
        counter_done_ = task.after;
        break;
    default:
        break;
    }
}

} // namespace dat::test
