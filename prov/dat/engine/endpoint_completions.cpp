// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an endpoint reports of its operations: completions, counters, and flags of arrivals.
#include "engine/endpoint.h"

#include "engine/domain.h"

#include <utility>

namespace dat::engine {

using core::DtoStatus;

void Endpoint::complete_receive(std::uint64_t seq, DtoStatus status, std::size_t length,
                                std::uint8_t how, std::uint64_t data, std::size_t overflow) {
    Receive& done = receive(seq);
    done.length = length;
    done.data = data;
    done.overflow = overflow;
    if (how != kPlain) [[unlikely]] {
        done.completion_flags = ((how & kByWrite) != 0 ? 0 : done.completion_flags) | flags_of(how);
    }
    const std::size_t used = (how & kByWrite) != 0 ? 0 : length;
    if (done.multi && status == DtoStatus::success && goes_on(seq, used)) [[unlikely]] {
        return;
    }
    if (core_.receives().finish(seq, status)) {
        complete_receives();
    }
}

std::uint64_t Endpoint::flags_of(std::uint8_t how) const {
    return ((how & kWithData) != 0 ? arrival_flags_.with_data : 0) |
           ((how & kSolicited) != 0 ? arrival_flags_.solicited : 0) |
           ((how & kInvalidated) != 0 ? arrival_flags_.invalidated : 0) |
           ((how & kByWrite) != 0 ? arrival_flags_.by_write : 0);
}

// A message is in a receive for several. True: it has room for more, and the message
// is reported by itself; everything posted before it has completed already, since
// messages come one after the other.
bool Endpoint::goes_on(std::uint64_t seq, std::size_t used) {
    Receive& r = receive(seq);
    const std::uint64_t left = r.iov.length - used;
    // Room is ready for one completion of each receive: a queue that cannot grow gets no more.
    if (left < min_multi_ || left == 0 || (receive_cq_ && receive_cq_->is_short())) {
        r.completion_flags |= arrival_flags_.released;
        return false;
    }
    tally_.receive_bytes += used;
    report(r, DtoStatus::success, seq);
    r.completion_flags = r.posted_flags;
    r.iov.base += used;
    r.iov.length = r.capacity = left;
    matching_.take_again(seq);
    return true;
}

bool Endpoint::announce_write(std::size_t length, std::uint8_t how, std::uint64_t data,
                              bool whatever_waits) {
    if (receive_cq_) {
        if ((receive_cq_->full() || receive_cq_->is_short()) && !whatever_waits) {
            return false;
        }
        receive_cq_->push({nullptr, flags_of(how), length, nullptr, data, 0, DtoStatus::success});
    }
    return true;
}

void Endpoint::set_counters(const Counters& counters) {
    counters_ = counters;
    counted_ = counters.send || counters.write || counters.read;
    set_fast();
}

void Endpoint::carry_out_bind(std::uint64_t seq) {
    domain_.regions().bind(request(seq).remote_key);
    finish_request(seq, DtoStatus::success);
}

void Endpoint::count(const Request& r, DtoStatus status) {
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

void Endpoint::report_closely(const Request& r, DtoStatus status) {
    report_to_program(r, status);
    if (tells_of_room_) {
        sink_->has_room();
    }
}

void Endpoint::report_to_program(const Request& r, DtoStatus status) {
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

void Endpoint::look_closely(const Receive& r, DtoStatus status, std::size_t length,
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

void Endpoint::remote_read(std::uint32_t key) {
    if (counters_.remote_read && !domain_.regions().is_announced(key)) {
        counters_.remote_read->add(DtoStatus::success);
    }
    if (domain_.regions().counts()) {
        domain_.regions().count_read(key);
    }
}

void Endpoint::remote_written(std::uint32_t key) {
    if (counters_.remote_write) {
        counters_.remote_write->add(DtoStatus::success);
    }
    if (domain_.regions().counts()) {
        domain_.regions().count_write(key);
    }
}

void Endpoint::complete_requests() {
    core::DtoStream::Done done{};
    while (core_.requests().pop(done)) {
        const Request& r = request(done.seq);
        tally_.request_bytes -= done.status == DtoStatus::success ? 0 : r.length;
        if (r.op == OpCode::bind && done.status != DtoStatus::success) [[unlikely]] {
            domain_.regions().spoil(r.remote_key); // RMR-6
        }
        report(r, done.status);
    }
}

void Endpoint::complete_receives() {
    core::DtoStream::Done done{};
    while (core_.receives().pop(done)) {
        const Receive& r = receive(done.seq);
        tally_.receive_bytes += done.status == DtoStatus::success ? r.length : 0;
        report(r, done.status);
    }
}

// A flushed one has no result.
void Endpoint::report(const Receive& r, DtoStatus status, std::uint64_t seq) {
    const bool flushed = status == DtoStatus::flushed;
    report(r, status, status == DtoStatus::success ? r.length : 0, flushed ? 0 : r.data,
           flushed ? 0 : r.overflow, seq);
}

} // namespace dat::engine
