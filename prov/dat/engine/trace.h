// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a process writes down for dat_trace(1): FI_DAT_TRACE=FILE maps a file, whose layout is
// base/trace.h, and every endpoint has its say in it. An endpoint that is not traced has no
// EndpointTrace; one that is has its completions go the way that looks closely, and its posts by
// the tables that know no link, so that the usual path does not ask. The same calls are the
// probes of SystemTap and bpftrace (engine/probes.h).
#ifndef DAT_ENGINE_TRACE_H
#define DAT_ENGINE_TRACE_H

#include "base/trace.h"
#include "core/completion.h"
#include "core/endpoint.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace dat::engine {

struct Request;
struct Receive;
struct Settings;

// Nanoseconds of CLOCK_MONOTONIC, which is the clock of the records.
std::uint64_t trace_now_ns();

// A trace file, mapped. Thread-safe, but for open().
class Trace {
  public:
    Trace() = default;
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    // Makes the file, or takes an old one's place, unless a living process writes to it. 0 or
    // -errno: -EWOULDBLOCK, another does; -ENOSPC: there is no room for all of it, which is taken
    // now, for a page that cannot be had later would end the process.
    int open(const char* path, std::size_t bytes, base::TraceSource source);
    bool is_open() const { return memory_ != nullptr; }
    bool frames() const { return frames_; }
    void set_frames(bool frames) { frames_ = frames; }

    std::uint32_t next_endpoint() { return endpoints_.fetch_add(1, std::memory_order_relaxed) + 1; }
    template <class Body>
    void write(base::TraceRing ring, base::TraceKind kind, std::uint32_t endpoint,
               const Body& body) {
        write_at(trace_now_ns(), ring, kind, endpoint, body);
    }
    template <class Body>
    void write_at(std::uint64_t time_ns, base::TraceRing ring, base::TraceKind kind,
                  std::uint32_t endpoint, const Body& body) {
        if (memory_) {
            writer_.write(ring, kind, endpoint, time_ns, body);
        }
    }

    // What nothing is written to: for an endpoint whose operations are for probes alone.
    static Trace& nowhere();
    // That of this process, for as long as that lives; nullptr: FI_DAT_TRACE is not set, or there
    // is none, which is logged once. Of a child of fork(2): its own.
    static Trace* of_process(const Settings& settings);

  private:
    int fd_ = -1; // holds the lock that says that this process writes
    std::byte* memory_ = nullptr;
    std::size_t size_ = 0;
    base::TraceWriter writer_;
    bool frames_ = false;
    std::atomic<std::uint32_t> endpoints_{0};
};

// Somebody listens to the probes of operations.
bool operations_are_probed();
// The probe of a stimulus, which every endpoint has.
void probe_transition(const void* endpoint, core::Stimulus stimulus, core::State from,
                      const core::Endpoint& after, const core::Outcome& outcome,
                      core::Reason reason);

// What one endpoint has to say. Under the lock of its domain.
class EndpointTrace {
  public:
    // `endpoint`: its address, by which probes name it.
    EndpointTrace(Trace& trace, const void* endpoint, core::State initial);

    std::uint32_t number() const { return number_; }
    // Frames are wanted as well.
    bool frames() const { return trace_.frames(); }

    // `late`: it belonged to an attempt that is over.
    void transition(core::Stimulus stimulus, core::State from, core::Attempt attempt,
                    const core::Endpoint& after, const core::Outcome& outcome, bool late,
                    core::Reason reason, std::uint32_t terminate_code);
    void peer(const base::TracePeer& peer);
    void clock(bool asked, core::Attempt attempt, std::uint64_t first_ns, std::uint64_t second_ns);
    // Operations. `attempt`: the current one.
    void posted(std::uint64_t seq, const Request& request, core::Attempt attempt);
    void posted(std::uint64_t seq, const Receive& receive, core::Attempt attempt);
    void completed(std::uint64_t seq, const Request& request, core::DtoStatus status,
                   core::Attempt attempt);
    // `message`: a message of the peer is in it, and not a write's data.
    void completed(std::uint64_t seq, const Receive& receive, core::DtoStatus status,
                   std::size_t length, bool message, core::Attempt attempt);
    void frame(bool out, const base::TraceFrame& frame);

  private:
    void begin(core::Attempt attempt);
    void write(base::TraceKind kind, const base::TraceOperation& operation);

    Trace& trace_;
    [[maybe_unused]] const void* const endpoint_; // for probes
    const std::uint32_t number_;
    core::Attempt attempt_{0};   // that the next two count for
    std::uint64_t sends_ = 0;    // messages posted
    std::uint64_t receives_ = 0; // messages that came
};

} // namespace dat::engine

#endif
