// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A run of the simulator as a trace file, as the provider writes it: so dat_trace(1) shows it.
// The endpoints of host A have odd numbers, those of B even ones. Each action takes a microsecond,
// however far the world's time has gone on, so that all can be seen side by side.
#ifndef DAT_SIM_TRACE_FILE_H
#define DAT_SIM_TRACE_FILE_H

#include "engine/trace.h"
#include "sim/random_run.h"

#include <array>
#include <cstdint>

namespace dat::sim {

class TraceFile final : public Recorder {
  public:
    // 0 or -errno.
    int open(const char* path);
    void take(std::uint64_t step, const Recorded& what) override;

  private:
    struct Host {
        std::uint32_t number = 0; // of its endpoint
        core::Attempt attempt{};  // that the next two count for
        std::uint64_t sends = 0;
        std::uint64_t receives = 0;
    };

    template <class Body> void write(base::TraceKind kind, const Host& host, const Body& body);
    void transition(const Host& host, const Recorded& what);
    void peer(const Host& host, const Recorded& what);
    void operation(Host& host, const Recorded& what);
    void violation(const Host& host, const Recorded& what);

    engine::Trace trace_;
    std::array<Host, kHosts> hosts_;
    std::uint64_t time_ns_ = 0;
};

} // namespace dat::sim

#endif
