// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a lane posts.
#include "lane.h"

#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cstring>

namespace dat::test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kInject = 128;

} // namespace

void Lane::post_receive(Task& task) {
    if (!fid()) // closed, and what had succeeded before is read
        return;
    task.verb = Verb::kReceive;
    const ssize_t result =
        fi_recv(endpoint_->get(), task.bytes.get(), terms_.largest, nullptr, FI_ADDR_UNSPEC, &task);
    DAT_REQUIRE(result == 0, "fi_recv: " + error_name(result));
    journal_.posted(task);
}

Task* Lane::free_request() {
    const auto at = std::find_if(requests_.begin(), requests_.end(),
                                 [](const Task& task) { return !task.posted; });
    return at == requests_.end() ? nullptr : &*at;
}

bool Lane::posted(Task& task, ssize_t result) {
    // To a peer that flipped bits have made look like another's program.
    if (result == -FI_EAGAIN || (result == -FI_EOPNOTSUPP && terms_.flips))
        return false;
    DAT_REQUIRE(result == 0, "a post: " + error_name(result));
    journal_.posted(task);
    return true;
}

// Twice as many messages as the peer has receives: some wait there without one.
bool Lane::window_open() const { return next_sent_ - peer_consumed_ < 2 * kReceives; }

std::size_t Lane::some_size(std::size_t least) {
    const std::size_t bounds[] = {256, 256, 4096, 4096, 32 * 1024, terms_.largest};
    const std::size_t most = std::min(bounds[terms_.random.below(6)], terms_.largest);
    return terms_.random.between(least, std::max(least, most));
}

Head Lane::next_head(Kind kind, std::size_t size) {
    Head head = announced_;
    head.connection = connection_;
    head.sequence = next_sent_;
    head.size = static_cast<std::uint32_t>(size);
    head.kind = kind;
    head.consumed = next_received_;
    head.counter = counter_done_;
    return head;
}

void Lane::sent(const Head& head) {
    ++next_sent_;
    owed_ = 0;
    if (head.slot_size != 0)
        slot_free_at_[head.slot] = next_sent_;
    announced_ = {};
    goodbye_sent_ |= head.kind == Kind::kGoodbye;
}

bool Lane::inject_message(std::size_t size) {
    std::uint8_t bytes[kInject];
    const Kind kind = owed_ != 0 && !window_open() ? Kind::kAck : Kind::kData;
    const Head head = next_head(kind, size);
    write_message(bytes, head);
    const ssize_t result = fi_inject(endpoint_->get(), bytes, size, FI_ADDR_UNSPEC);
    if (result == -FI_EAGAIN)
        return false;
    DAT_REQUIRE(result == 0, "fi_inject: " + error_name(result));
    ++terms_.tally->injected;
    sent(head);
    return true;
}

bool Lane::message(Kind kind, std::size_t size) {
    Task* task = free_request();
    if (!task)
        return false;
    const Head head = next_head(kind, size);
    write_message(task->bytes.get(), head);
    task->verb = Verb::kSend;
    task->size = size;
    task->sequence = head.sequence;
    if (kind != Kind::kGoodbye && terms_.random.once_in(2)) {
        if (!posted(*task, fi_send(endpoint_->get(), task->bytes.get(), size, nullptr,
                                   FI_ADDR_UNSPEC, task)))
            return false;
    } else {
        const std::uint64_t levels[] = {0, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_FENCE,
                                        FI_REMOTE_CQ_DATA};
        const std::uint64_t flags =
            kind == Kind::kGoodbye ? FI_TRANSMIT_COMPLETE : levels[terms_.random.below(5)];
        const std::size_t half = terms_.random.below(size);
        const iovec parts[] = {{task->bytes.get(), half}, {task->bytes.get() + half, size - half}};
        const fi_msg msg{parts,          nullptr, 2,
                         FI_ADDR_UNSPEC, task,    static_cast<std::uint32_t>(head.sequence)};
        if (!posted(*task, fi_sendmsg(endpoint_->get(), &msg, FI_COMPLETION | flags)))
            return false;
    }
    sent(head);
    return true;
}

// Writes a slot of the peer that it has no more to look at. The next message announces it.
bool Lane::write_slot() {
    const auto slot = static_cast<std::uint32_t>(terms_.random.below(kSlots));
    if (announced_.slot_size != 0 || slot_free_at_[slot] > peer_consumed_)
        return false;
    const bool inject = terms_.random.once_in(3);
    Task* task = free_request();
    if (!task)
        return false;
    const std::size_t size = inject ? terms_.random.between(1, kInject) : some_size(1);
    fill(task->bytes.get(), size, terms_.random.next());
    task->verb = Verb::kWrite;
    task->size = size;
    const std::uint64_t to = peer_.address + slot_at(slot);
    if (inject) {
        const ssize_t result = fi_inject_write(endpoint_->get(), task->bytes.get(), size,
                                               FI_ADDR_UNSPEC, to, peer_.key);
        if (result == -FI_EAGAIN)
            return false;
        DAT_REQUIRE(result == 0, "fi_inject_write: " + error_name(result));
        ++terms_.tally->injected;
    } else {
        const iovec iov{task->bytes.get(), size};
        const fi_rma_iov rma{to, size, peer_.key};
        const fi_msg_rma msg{&iov, nullptr, 1, FI_ADDR_UNSPEC, &rma, 1, task, 0};
        const std::uint64_t levels[] = {0, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE};
        if (!posted(*task, fi_writemsg(endpoint_->get(), &msg,
                                       FI_COMPLETION | levels[terms_.random.below(3)])))
            return false;
    }
    announced_.slot = slot;
    announced_.slot_size = static_cast<std::uint32_t>(size);
    announced_.slot_sum = sum_of(task->bytes.get(), size);
    slot_free_at_[slot] = UINT64_MAX;
    return true;
}

bool Lane::read() {
    Task* task = free_request();
    if (!task)
        return false;
    const std::size_t readable = region_.size() - readable_at();
    task->size = std::min(some_size(1), readable);
    task->offset = terms_.random.below((readable - task->size) / 8 + 1) * 8;
    task->verb = Verb::kRead;
    std::memset(task->bytes.get(), 0, std::min<std::size_t>(task->size, 64));
    return posted(*task,
                  fi_read(endpoint_->get(), task->bytes.get(), task->size, nullptr, FI_ADDR_UNSPEC,
                          peer_.address + readable_at() + task->offset, peer_.key, task));
}

// Each of them leaves the counter larger, and knows what it has to find.
bool Lane::atomic() {
    Task* task = free_request();
    if (!task)
        return false;
    constexpr Verb kVerbs[] = {Verb::kFetchAdd, Verb::kCompareSwap, Verb::kAdd};
    task->verb = kVerbs[terms_.random.below(3)];
    const std::uint64_t step = terms_.random.between(1, 1000);
    task->before = counter_;
    task->after = counter_ + step;
    task->operands[0] = task->verb == Verb::kCompareSwap ? task->after : step;
    task->operands[1] = counter_;
    task->operands[2] = ~counter_;
    std::uint64_t& operand = task->operands[0];
    std::uint64_t& fetched = task->operands[2];
    ssize_t result = 0;
    if (task->verb == Verb::kFetchAdd) {
        result = fi_fetch_atomic(endpoint_->get(), &operand, 1, nullptr, &fetched, nullptr,
                                 FI_ADDR_UNSPEC, peer_.address, peer_.key, FI_UINT64, FI_SUM, task);
    } else if (task->verb == Verb::kCompareSwap) {
        result = fi_compare_atomic(endpoint_->get(), &operand, 1, nullptr, &task->operands[1],
                                   nullptr, &fetched, nullptr, FI_ADDR_UNSPEC, peer_.address,
                                   peer_.key, FI_UINT64, FI_CSWAP, task);
    } else {
        result = fi_atomic(endpoint_->get(), &operand, 1, nullptr, FI_ADDR_UNSPEC, peer_.address,
                           peer_.key, FI_UINT64, FI_SUM, task);
    }
    if (!posted(*task, result))
        return false;
    counter_ = task->after;
    return true;
}

bool Lane::post_something() {
    if (leaving_) {
        if (goodbye_sent_ || journal_.requests() != 0)
            return false;
        return message(Kind::kGoodbye, some_size(sizeof(Head)));
    }
    if (announced_.slot_size != 0)
        return message(Kind::kData, some_size(sizeof(Head)));
    if (!window_open()) {
        // So that two that wait for each other's count hear of it. Repeated, since a frame
        // whose length was changed on the way needs more bytes before its sum is looked at.
        if (owed_ >= kReceives / 2 || (terms_.flips && Clock::now() - moved_ > 500ms))
            return inject_message(kInject);
        return terms_.random.once_in(2) ? read() : atomic();
    }
    switch (terms_.random.below(8)) {
    case 0:
    case 1:
        return inject_message(terms_.random.between(sizeof(Head), kInject));
    case 2:
    case 3:
        return message(Kind::kData, some_size(sizeof(Head)));
    case 4:
    case 5:
        return write_slot();
    case 6:
        return read();
    default:
        return atomic();
    }
}

} // namespace dat::test
