// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See trace_file.h.
#include "sim/trace_file.h"

#include <algorithm>
#include <cstring>

namespace dat::sim {

using base::TraceKind;

int TraceFile::open(const char* path) {
    constexpr std::size_t kBytes = 1 << 20;
    return trace_.open(path, kBytes, base::TraceSource::simulator);
}

template <class Body> void TraceFile::write(TraceKind kind, const Host& host, const Body& body) {
    const bool operation = kind == TraceKind::posted || kind == TraceKind::completed;
    trace_.write_at(time_ns_,
                    operation ? base::TraceRing::operations : base::TraceRing::connections, kind,
                    host.number, body);
}

void TraceFile::take(std::uint64_t step, const Recorded& what) {
    constexpr std::uint64_t kActionNs = 1000;
    time_ns_ = step * kActionNs;
    Host& host = hosts_[static_cast<std::size_t>(what.host)];
    switch (what.kind) {
    case Recorded::Kind::created: {
        host.number =
            host.number == 0 ? static_cast<std::uint32_t>(what.host) + 1 : host.number + 2;
        host.attempt = {};
        host.sends = host.receives = 0;
        base::TraceOpened body{};
        body.state = static_cast<std::uint8_t>(what.from);
        write(TraceKind::opened, host, body);
        break;
    }
    case Recorded::Kind::transition:
        transition(host, what);
        break;
    case Recorded::Kind::peer:
        peer(host, what);
        break;
    case Recorded::Kind::posted:
    case Recorded::Kind::completed:
        operation(host, what);
        break;
    case Recorded::Kind::violation:
        violation(host, what);
        break;
    }
}

void TraceFile::transition(const Host& host, const Recorded& what) {
    base::TraceTransition body{};
    body.attempt = static_cast<std::uint32_t>(what.attempt);
    body.attempt_after = static_cast<std::uint32_t>(what.attempt_after);
    body.stimulus = static_cast<std::uint8_t>(what.stimulus);
    body.from = static_cast<std::uint8_t>(what.from);
    body.to = static_cast<std::uint8_t>(what.to);
    body.verdict = static_cast<std::uint8_t>(what.outcome.verdict);
    body.event = static_cast<std::uint8_t>(what.outcome.event);
    body.recorded = static_cast<std::uint8_t>(what.pending);
    body.flush = static_cast<std::uint8_t>(what.outcome.flush);
    body.late = what.late ? 1 : 0;
    write(TraceKind::transition, host, body);
}

// 10.0.0.1 and 10.0.0.2; the number of the connection is the port of both.
void TraceFile::peer(const Host& host, const Recorded& what) {
    const auto address = [](int of) {
        return std::array<std::uint8_t, 16>{
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<std::uint8_t>(of + 1)};
    };
    base::TracePeer body{};
    body.local = address(what.host);
    body.remote = address(other(what.host));
    body.local_port = body.remote_port = static_cast<std::uint16_t>(what.conn);
    write(TraceKind::peer, host, body);
}

void TraceFile::operation(Host& host, const Recorded& what) {
    if (host.attempt != what.attempt) {
        host.attempt = what.attempt;
        host.sends = host.receives = 0;
    }
    const bool posted = what.kind == Recorded::Kind::posted;
    const bool request = what.direction == Direction::request;
    base::TraceOperation body{};
    body.seq = what.seq;
    body.message = base::kTraceNoMessage;
    if (posted && request) {
        body.message = host.sends++;
    } else if (!posted && !request && what.status != core::DtoStatus::flushed) {
        body.message = host.receives++;
    }
    body.attempt = static_cast<std::uint32_t>(what.attempt);
    body.op = request ? base::TraceOp::send : base::TraceOp::receive;
    body.status = static_cast<std::uint8_t>(what.status);
    write(posted ? TraceKind::posted : TraceKind::completed, host, body);
}

void TraceFile::violation(const Host& host, const Recorded& what) {
    std::string_view left = what.rule;
    do {
        base::TraceNote body{};
        const std::size_t size = std::min(left.size(), body.text.size());
        std::copy_n(left.begin(), size, body.text.begin());
        write(TraceKind::note, host, body);
        left.remove_prefix(size);
    } while (!left.empty());
}

} // namespace dat::sim
