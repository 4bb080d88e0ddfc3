// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See completions.h.
#include "engine/completions.h"

#include <utility>

namespace dat::engine {

using core::DtoStatus;

void Completions::set_counters(const Counters& counters) {
    counters_ = counters;
    counted_ = counters.send || counters.write || counters.read;
    set_fast();
}

std::uint64_t Completions::flags_of(std::uint8_t how) const {
    return ((how & kWithData) != 0 ? arrival_flags_.with_data : 0) |
           ((how & kSolicited) != 0 ? arrival_flags_.solicited : 0) |
           ((how & kInvalidated) != 0 ? arrival_flags_.invalidated : 0) |
           ((how & kByWrite) != 0 ? arrival_flags_.by_write : 0);
}

bool Completions::goes_on(Receive& r, std::uint64_t seq, std::size_t used) {
    const std::uint64_t left = r.iov.length - used;
    // Room is ready for one completion of each receive: a queue that cannot grow gets no more.
    if (left < min_multi_ || left == 0 || (queues_.receives() && queues_.receives()->is_short())) {
        r.completion_flags |= arrival_flags_.released;
        return false;
    }
    tally_.receive_bytes += used;
    report(r, DtoStatus::success, seq);
    r.completion_flags = r.posted_flags;
    r.iov.base += used;
    r.iov.length = r.capacity = left;
    return true;
}

bool Completions::announce_write(std::size_t length, std::uint8_t how, std::uint64_t data,
                                 bool whatever_waits) {
    if (core::CompletionQueue* const queue = queues_.receives()) {
        if ((queue->full() || queue->is_short()) && !whatever_waits) {
            return false;
        }
        queue->push({nullptr, flags_of(how), length, nullptr, data, 0, DtoStatus::success});
    }
    return true;
}

void Completions::count(const Request& r, DtoStatus status) {
    core::Counter* counter = nullptr;
    switch (r.op) {
    case OpCode::send:
    case OpCode::send_invalidate:
        counter = counters_.send;
        break;
    case OpCode::write:
        counter = counters_.write;
        break;
    case OpCode::read:
        counter = counters_.read;
        break;
    case OpCode::fetch_add:
    case OpCode::compare_swap: // fi_cntr(3): one that fetches counts as a read
        counter = r.iov_count > 0 ? counters_.read : counters_.write;
        break;
    default:
        break;
    }
    if (counter) {
        counter->add(status);
    }
}

void Completions::report_closely(const Request& r, DtoStatus status) {
    report_to_program(r, status);
    if (tells_of_room_) {
        sink_->has_room();
    }
}

void Completions::report_to_program(const Request& r, DtoStatus status) {
    if (trace_) { // it is the one that was popped last
        trace_->completed(core_.requests().first() - 1, r, status, core_.attempt());
    }
    if (r.role == Role::own) {
        return sink_->finished(r.context, status);
    }
    if (r.role == Role::part || r.role == Role::owed_part) {
        divided_so_far_.length += r.length;
        if (divided_so_far_.status == DtoStatus::success) {
            divided_so_far_.status = status;
        }
        return;
    }
    Divided whole;
    if (r.role == Role::last) {
        whole = std::exchange(divided_so_far_, {});
        --divided_;
        set_fast();
    }
    const DtoStatus of_all = whole.status == DtoStatus::success ? status : whole.status;
    if (counted_) {
        count(r, of_all);
    }
    report(r, of_all, whole.length + r.length);
}

void Completions::look_closely(const Receive& r, DtoStatus status, std::size_t length,
                               std::uint64_t seq) {
    if (counters_.receive) {
        counters_.receive->add(status);
    }
    if (trace_) {
        const bool by_write = (r.completion_flags & arrival_flags_.by_write) != 0;
        trace_->completed(seq == kPopped ? core_.receives().first() - 1 : seq, r, status, length,
                          !by_write, core_.attempt());
    }
}

// A flushed one has no result.
void Completions::report(const Receive& r, DtoStatus status, std::uint64_t seq) {
    const bool flushed = status == DtoStatus::flushed;
    report(r, status, status == DtoStatus::success ? r.length : 0, flushed ? 0 : r.data,
           flushed ? 0 : r.overflow, seq);
}

} // namespace dat::engine
