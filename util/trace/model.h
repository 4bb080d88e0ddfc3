// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What one or more trace files say together: for each process its endpoints, for each endpoint
// the states that it was in and why, and its operations; which ends of connections belong
// together, which receive took which send, and how the clocks of the processes compare.
#ifndef DAT_UTIL_TRACE_MODEL_H
#define DAT_UTIL_TRACE_MODEL_H

#include "base/trace.h"
#include "core/completion.h"
#include "core/endpoint.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dat::trace {

// A file that cannot be used; the text says why, in one line.
struct Unusable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kNone = ~std::size_t{0};

// All times: nanoseconds of the process's own clock.
struct Transition {
    std::uint64_t time_ns;
    base::TraceTransition what;
    bool changes() const { return what.from != what.to; }
};

struct Slice { // of a state
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
    core::State state;
    std::size_t cause; // in transitions; kNone: it was in that state from the beginning
    bool open;         // it was in it when the trace ends
};

struct Operation {
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
    base::TraceOperation what; // as it was posted; `status` and, of a receive, `length` and
                               // `message` as it completed
    bool begun = true;         // its post is in the trace
    bool done = false;         // so is its completion
    std::size_t lane = 0;      // of those of its direction no two in a lane overlap
    std::size_t partner_process = kNone; // the other end of a message, if it is known
    std::size_t partner_endpoint = kNone;
    std::size_t partner = kNone; // in the operations of that endpoint

    bool is_receive() const { return what.op == base::TraceOp::receive; }
};

struct Frame {
    std::uint64_t time_ns;
    base::TraceFrame what;
    bool out;
};

// An attempt that came to a connection.
struct Connection {
    std::uint64_t time_ns;
    std::uint32_t attempt;
    base::TracePeer peer;
    std::optional<base::TraceClock> clock;
    std::size_t partner_process = kNone; // the other end, if it is among the files
    std::size_t partner_endpoint = kNone;
    std::size_t partner = kNone; // in its connections
};

struct Endpoint {
    std::uint32_t number = 0;
    std::vector<Transition> transitions; // refused and late ones as well
    std::vector<Slice> slices;
    std::vector<Operation> operations; // in the order of their beginnings
    std::vector<Frame> frames;
    std::vector<Connection> connections;
    std::vector<std::pair<std::uint64_t, std::string>> notes; // when, and which rule is broken
    std::size_t request_lanes = 0;
    std::size_t receive_lanes = 0;
};

// Of two clocks, or times; a file may say anything.
constexpr std::int64_t difference(std::uint64_t one, std::uint64_t other) {
    return static_cast<std::int64_t>(one - other);
}

enum class Alignment {
    reference,  // of the first file
    same_clock, // as the reference: exact
    measured,   // from what went between them: within error_ns
    wall_clock, // nothing went between them: by the hosts' clocks, whose error is not known
};

struct Process {
    std::string path;
    base::TraceHeader header;
    std::vector<Endpoint> endpoints;
    std::uint64_t last_ns = 0;
    std::uint64_t lost = 0;     // records that newer ones took the place of, or that are torn
    std::uint64_t records = 0;  // that are there
    std::int64_t offset_ns = 0; // its clock less that of the reference
    std::uint64_t error_ns = 0; // offset_ns may be wrong by that much, if it is measured
    bool drifts = false; // no one offset fits all that was seen: that of the handshakes is used
    Alignment alignment = Alignment::reference;

    std::string name() const; // "program 1234 on host"
};

struct Model {
    std::vector<Process> processes;
    std::int64_t begin_ns = 0; // of all, on the reference's clock

    // On the common clock, from the beginning of all.
    double since_begin(const Process& process, std::uint64_t time_ns) const {
        return static_cast<double>(
            difference(time_ns, static_cast<std::uint64_t>(process.offset_ns) +
                                    static_cast<std::uint64_t>(begin_ns)));
    }
};

// Reads the files, which may still be written to. Throws Unusable, or std::bad_alloc.
Model read_traces(const std::vector<std::string>& paths);

// Of a slice that `flushed` led to: what had decided that end before. nullptr: another cause.
const Transition* decision(const Endpoint& endpoint, const Slice& slice);

// The words for things.
const char* name(base::TraceOp op);
const char* name(core::DtoStatus status);
const char* name(core::Reason reason);
const char* name(base::TraceLink link);
std::string frame_name(const base::TraceFrame& frame);
std::string address(const std::array<std::uint8_t, 16>& bytes, std::uint16_t port);
// "EP 3 to 127.0.0.1:7471 by TCP"; of the simulator "host A, EP 3"
std::string label(const Process& process, const Endpoint& endpoint);
std::string short_label(const Process& process, const Endpoint& endpoint);
// "within 1.2 us", "exact" ...
std::string alignment_text(const Process& process);

} // namespace dat::trace

#endif
