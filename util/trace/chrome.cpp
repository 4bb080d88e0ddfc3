// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See output.h: the trace event format. A process of it is a process, a thread is a row: one for
// the states of an endpoint, and as many for its requests, and for its receives, as were
// outstanding at once, since slices of a thread have to nest.
#include "trace/json.h"
#include "trace/output.h"

#include <algorithm>

namespace dat::trace {
namespace {

constexpr std::uint64_t kRowsOfEndpoint = 1'000'000;
constexpr std::uint64_t kReceiveRows = 500'000;
constexpr std::uint64_t kFrameRow = kRowsOfEndpoint - 1;

class Chrome {
  public:
    Chrome(const Model& model, std::FILE* file) : model_(model), json_(file) {}

    void write() {
        json_.open('{');
        json_.text("displayTimeUnit", "ns");
        json_.open("otherData", '{');
        json_.text("source", "dat_trace");
        for (std::size_t p = 0; p < model_.processes.size(); ++p) {
            const Process& process = model_.processes[p];
            json_.text("process " + std::to_string(p + 1),
                       process.name() + ": " + alignment_text(process));
        }
        json_.close('}');
        json_.open("traceEvents", '[');
        for (std::size_t p = 0; p < model_.processes.size(); ++p) {
            write(p);
        }
        json_.line();
        json_.close(']');
        json_.close('}');
        json_.line();
    }

  private:
    // The first members of every event.
    void begin(const char* phase, std::string_view name, const char* category, std::size_t p,
               std::uint64_t row) {
        json_.line();
        json_.open('{');
        json_.text("ph", phase);
        json_.text("name", name);
        if (category) {
            json_.text("cat", category);
        }
        json_.number("pid", p + 1);
        json_.number("tid", row);
    }

    void describe(const char* what, std::size_t p, std::uint64_t row, std::string_view text) {
        begin("M", what, nullptr, p, row);
        json_.open("args", '{');
        json_.text("name", text);
        json_.close('}');
        json_.close('}');
    }

    void sort(std::size_t p, std::uint64_t row) {
        begin("M", "thread_sort_index", nullptr, p, row);
        json_.open("args", '{');
        json_.number("sort_index", row);
        json_.close('}');
        json_.close('}');
    }

    void write(std::size_t p) {
        const Process& process = model_.processes[p];
        describe("process_name", p, 0, process.name());
        begin("M", "process_labels", nullptr, p, 0);
        json_.open("args", '{');
        json_.text("labels", alignment_text(process));
        json_.close('}');
        json_.close('}');
        for (const Endpoint& endpoint : process.endpoints) {
            write(p, process, endpoint);
        }
    }

    static std::uint64_t row_of(const Endpoint& endpoint, const Operation& operation) {
        return endpoint.number * kRowsOfEndpoint + 1 + operation.lane +
               (operation.is_receive() ? kReceiveRows : 0);
    }

    void write(std::size_t p, const Process& process, const Endpoint& endpoint) {
        const std::uint64_t base = endpoint.number * kRowsOfEndpoint;
        const std::string name = label(process, endpoint);
        describe("thread_name", p, base, name);
        sort(p, base);
        for (std::size_t i = 0; i < endpoint.request_lanes; ++i) {
            describe("thread_name", p, base + 1 + i, short_label(process, endpoint) + " requests");
            sort(p, base + 1 + i);
        }
        for (std::size_t i = 0; i < endpoint.receive_lanes; ++i) {
            describe("thread_name", p, base + 1 + kReceiveRows + i,
                     short_label(process, endpoint) + " receives");
            sort(p, base + 1 + kReceiveRows + i);
        }
        for (const Slice& slice : endpoint.slices) {
            write(p, process, endpoint, slice);
        }
        for (const Transition& transition : endpoint.transitions) {
            if (!transition.changes()) {
                write_refusal(p, process, base, transition);
            }
        }
        for (const auto& [time_ns, text] : endpoint.notes) {
            begin("i", text, "violation", p, base);
            json_.microseconds("ts", model_.since_begin(process, time_ns));
            json_.text("s", "t");
            json_.close('}');
        }
        for (std::size_t i = 0; i < endpoint.operations.size(); ++i) {
            write(p, process, endpoint, i);
        }
        if (!endpoint.frames.empty()) {
            describe("thread_name", p, base + kFrameRow,
                     short_label(process, endpoint) + " frames");
            sort(p, base + kFrameRow);
        }
        for (const Frame& frame : endpoint.frames) {
            begin("i", std::string(frame.out ? "out: " : "in: ") + frame_name(frame.what), "frame",
                  p, base + kFrameRow);
            json_.microseconds("ts", model_.since_begin(process, frame.time_ns));
            json_.text("s", "t");
            json_.open("args", '{');
            json_.number("length", frame.what.length);
            json_.close('}');
            json_.close('}');
        }
    }

    void arguments(const Transition& transition) {
        const base::TraceTransition& t = transition.what;
        const auto stimulus = static_cast<core::Stimulus>(t.stimulus);
        json_.text("stimulus", core::name(stimulus));
        json_.text("clauses", core::clauses(stimulus));
        json_.text("from", core::name(static_cast<core::State>(t.from)));
        json_.text("verdict", core::name(static_cast<core::Verdict>(t.verdict)));
        json_.number("attempt", t.attempt);
        if (t.event != 0) {
            json_.text("event", core::name(static_cast<core::Event>(t.event)));
        }
        if (t.reason != 0) {
            json_.text("reason", trace::name(static_cast<core::Reason>(t.reason)));
        }
    }

    void write(std::size_t p, const Process& process, const Endpoint& endpoint,
               const Slice& slice) {
        begin("X", core::name(slice.state), "state", p, endpoint.number * kRowsOfEndpoint);
        times(process, slice.begin_ns, slice.end_ns);
        json_.open("args", '{');
        if (slice.cause != kNone) {
            const Transition& cause = endpoint.transitions[slice.cause];
            arguments(cause);
            if (const Transition* decided = decision(endpoint, slice)) {
                const auto stimulus = static_cast<core::Stimulus>(decided->what.stimulus);
                json_.text("decided by", core::name(stimulus));
                json_.text("clauses of that", core::clauses(stimulus));
            }
        }
        json_.close('}');
        json_.close('}');
    }

    void write_refusal(std::size_t p, const Process& process, std::uint64_t row,
                       const Transition& transition) {
        const auto stimulus = static_cast<core::Stimulus>(transition.what.stimulus);
        const auto verdict = static_cast<core::Verdict>(transition.what.verdict);
        begin("i",
              std::string(core::name(stimulus)) + ": " +
                  (transition.what.late ? "late" : std::string(core::name(verdict))),
              "stimulus", p, row);
        json_.microseconds("ts", model_.since_begin(process, transition.time_ns));
        json_.text("s", "t");
        json_.open("args", '{');
        arguments(transition);
        json_.close('}');
        json_.close('}');
    }

    void times(const Process& process, std::uint64_t begin_ns, std::uint64_t end_ns) {
        json_.microseconds("ts", model_.since_begin(process, begin_ns));
        json_.microseconds("dur", static_cast<double>(end_ns - begin_ns));
    }

    void write(std::size_t p, const Process& process, const Endpoint& endpoint, std::size_t i) {
        const Operation& operation = endpoint.operations[i];
        const std::uint64_t row = row_of(endpoint, operation);
        begin("X", trace::name(operation.what.op), "operation", p, row);
        times(process, operation.begin_ns, operation.end_ns);
        json_.open("args", '{');
        json_.number("number", operation.what.seq);
        json_.number("length", operation.what.length);
        json_.text("status", operation.done
                                 ? name(static_cast<core::DtoStatus>(operation.what.status))
                                 : "outstanding");
        json_.number("context", operation.what.context);
        if (operation.what.message != base::kTraceNoMessage) {
            json_.number("message", operation.what.message);
        }
        json_.close('}');
        json_.close('}');
        if (operation.partner != kNone && !operation.is_receive()) {
            arrow(p, process, row, operation);
        }
    }

    // From the beginning of a send to the end of its receive.
    void arrow(std::size_t p, const Process& process, std::uint64_t row, const Operation& sent) {
        const Process& there = model_.processes[sent.partner_process];
        const Endpoint& endpoint = there.endpoints[sent.partner_endpoint];
        const Operation& receive = endpoint.operations[sent.partner];
        ++arrows_;
        begin("s", "message", "message", p, row);
        json_.number("id", arrows_);
        json_.microseconds("ts", model_.since_begin(process, sent.begin_ns));
        json_.close('}');
        begin("f", "message", "message", sent.partner_process, row_of(endpoint, receive));
        json_.number("id", arrows_);
        json_.text("bp", "e");
        // Within it: what ends at that moment does not enclose it.
        const std::uint64_t at_ns = receive.end_ns - (receive.end_ns > receive.begin_ns ? 1 : 0);
        json_.microseconds("ts", model_.since_begin(there, at_ns));
        json_.close('}');
    }

    const Model& model_;
    JsonWriter json_;
    std::uint64_t arrows_ = 0;
};

} // namespace

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || c == '<' || byte >= 0x7f) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", byte);
            out += code;
        } else {
            out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
        }
    }
    return out + "\"";
}

const Transition* decision(const Endpoint& endpoint, const Slice& slice) {
    if (slice.cause == kNone || slice.cause == 0) {
        return nullptr;
    }
    const base::TraceTransition& last = endpoint.transitions[slice.cause].what;
    if (last.stimulus != static_cast<std::uint8_t>(core::Stimulus::flushed)) {
        return nullptr;
    }
    for (std::size_t i = slice.cause; i-- > 0;) {
        if (endpoint.transitions[i].changes()) {
            return &endpoint.transitions[i];
        }
    }
    return nullptr;
}

void write_chrome(const Model& model, std::FILE* file) { Chrome(model, file).write(); }

} // namespace dat::trace
