// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The words of model.h.
#include "command/text.h"
#include "links/iwarp/rdmap.h"
#include "trace/model.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>

namespace dat::trace {

const char* name(base::TraceOp op) {
    switch (op) {
    case base::TraceOp::send:
        return "send";
    case base::TraceOp::send_invalidate:
        return "send with invalidate";
    case base::TraceOp::write:
        return "RDMA write";
    case base::TraceOp::bind:
        return "bind";
    case base::TraceOp::read:
        return "RDMA read";
    case base::TraceOp::fetch_add:
        return "fetch and add";
    case base::TraceOp::compare_swap:
        return "compare and swap";
    case base::TraceOp::receive:
        return "receive";
    }
    return "unknown operation";
}

const char* name(core::DtoStatus status) {
    switch (status) {
    case core::DtoStatus::success:
        return "SUCCESS";
    case core::DtoStatus::flushed:
        return "FLUSHED";
    case core::DtoStatus::local_length:
        return "LOCAL_LENGTH";
    case core::DtoStatus::local_ep:
        return "LOCAL_EP";
    case core::DtoStatus::local_protection:
        return "LOCAL_PROTECTION";
    case core::DtoStatus::bad_response:
        return "BAD_RESPONSE";
    case core::DtoStatus::remote_access:
        return "REMOTE_ACCESS";
    case core::DtoStatus::remote_responder:
        return "REMOTE_RESPONDER";
    case core::DtoStatus::transport:
        return "TRANSPORT";
    case core::DtoStatus::receiver_not_ready:
        return "RECEIVER_NOT_READY";
    case core::DtoStatus::partial_packet:
        return "PARTIAL_PACKET";
    case core::DtoStatus::rmr_operation_failed:
        return "RMR_OPERATION_FAILED";
    case core::DtoStatus::no_message: // of no operation that is recorded
    case core::DtoStatus::unknown_source:
        break;
    }
    return "unknown status";
}

const char* name(core::Reason reason) {
    switch (reason) {
    case core::Reason::none:
        return "";
    case core::Reason::local:
        return "this side ended it";
    case core::Reason::peer_closed:
        return "the peer closed";
    case core::Reason::peer_reset:
        return "the peer reset the connection";
    case core::Reason::end_in_frame:
        return "the stream ended in the middle of a frame";
    case core::Reason::protocol:
        return "the peer broke a rule of the protocol";
    case core::Reason::terminate:
        return "the peer sent a Terminate message";
    case core::Reason::dto_error:
        return "an operation failed";
    case core::Reason::keepalive:
        return "the peer is silent (FI_DAT_KEEPALIVE)";
    case core::Reason::rnr_timeout:
        return "no receive was posted in time (FI_DAT_RNR_TIMEOUT)";
    case core::Reason::handshake_limit:
        return "the handshake took too long (FI_DAT_HANDSHAKE_TIMEOUT)";
    case core::Reason::refused:
        return "nobody listens there";
    case core::Reason::unreachable:
        return "the peer cannot be reached";
    case core::Reason::timeout:
        return "the connect timeout is over";
    case core::Reason::rejected:
        return "the peer's program rejected it";
    case core::Reason::resources:
        return "this side lacks descriptors or memory";
    case core::Reason::watermark:
        return "more receives were taken than the high watermark allows";
    }
    return "unknown reason";
}

const char* name(base::TraceLink link) {
    switch (link) {
    case base::TraceLink::tcp:
        return "TCP";
    case base::TraceLink::memory:
        return "shared memory";
    case base::TraceLink::device:
        return "an RDMA device";
    }
    return "an unknown link";
}

std::string frame_name(const base::TraceFrame& frame) {
    if (frame.link == base::TraceLink::memory) {
        return "record " + std::to_string(frame.opcode);
    }
    return iwarp::text(static_cast<iwarp::Opcode>(frame.opcode));
}

std::string address(const std::array<std::uint8_t, 16>& bytes, std::uint16_t port) {
    in6_addr raw;
    static_assert(sizeof raw == sizeof bytes);
    std::copy(bytes.begin(), bytes.end(), raw.s6_addr);
    char text[INET6_ADDRSTRLEN] = "?";
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&raw);
    inet_ntop(mapped ? AF_INET : AF_INET6, mapped ? bytes.data() + 12 : bytes.data(), text,
              sizeof text);
    const std::string host = mapped ? text : "[" + std::string(text) + "]";
    return host + ":" + std::to_string(port);
}

std::string short_label(const Process& process, const Endpoint& endpoint) {
    const std::string number = std::to_string(endpoint.number);
    if (process.header.source == base::TraceSource::simulator) {
        return std::string(endpoint.number % 2 == 1 ? "host A" : "host B") + ", EP " + number;
    }
    return "EP " + number;
}

std::string label(const Process& process, const Endpoint& endpoint) {
    std::string out = short_label(process, endpoint);
    if (process.header.source == base::TraceSource::provider && !endpoint.connections.empty()) {
        const base::TracePeer& peer = endpoint.connections.back().peer;
        out += " to " + address(peer.remote, peer.remote_port) + " by " + name(peer.link);
    }
    return out;
}

std::string Process::name() const {
    const std::string who = command::printable(header.program.data());
    if (header.source == base::TraceSource::simulator) {
        return "simulator, " + who;
    }
    return who + " " + std::to_string(header.pid) + " on " + command::printable(header.host.data());
}

std::string alignment_text(const Process& process) {
    char text[160];
    const double offset_us = static_cast<double>(process.offset_ns) / 1e3;
    switch (process.alignment) {
    case Alignment::reference:
        return "its clock is the one that is shown";
    case Alignment::same_clock:
        return "the same clock, no error";
    case Alignment::measured:
        std::snprintf(text, sizeof text, "clock moved by %.3f us, error at most %.3f us%s",
                      offset_us, static_cast<double>(process.error_ns) / 1e3,
                      process.drifts ? " at the handshake; the clocks drift apart" : "");
        return text;
    case Alignment::wall_clock:
        std::snprintf(text, sizeof text,
                      "clock moved by %.3f us, by the hosts' wall clocks: error unknown",
                      offset_us);
        return text;
    }
    return "";
}

} // namespace dat::trace
