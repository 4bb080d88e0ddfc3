// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is in each file. See output.h.
#include "command/json.h"
#include "trace/output.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dat::trace {
namespace {

struct Counts {
    std::size_t operations = 0;
    std::size_t joined = 0; // whose other end is among the files
    std::size_t frames = 0;
};

Counts counts_of(const Process& process) {
    Counts counts;
    for (const Endpoint& endpoint : process.endpoints) {
        counts.operations += endpoint.operations.size();
        counts.frames += endpoint.frames.size();
        counts.joined += static_cast<std::size_t>(std::ranges::count_if(
            endpoint.operations, [](const Operation& each) { return each.partner != kNone; }));
    }
    return counts;
}

} // namespace

void write_summary(const Model& model, std::FILE* file) {
    for (const Process& process : model.processes) {
        const Counts counts = counts_of(process);
        std::fprintf(
            file,
            "%s: %s: %zu endpoints, %zu operations (%zu with their other end), %zu frames, "
            "%llu records, %llu lost; %s\n",
            process.path.c_str(), process.name().c_str(), process.endpoints.size(),
            counts.operations, counts.joined, counts.frames,
            static_cast<unsigned long long>(process.records),
            static_cast<unsigned long long>(process.lost), alignment_text(process).c_str());
    }
}

void write_summary_json(const Model& model, std::FILE* file) {
    command::Json json = command::json_head("dat_trace");
    json["files"] = command::Json::array();
    for (const Process& process : model.processes) {
        const Counts counts = counts_of(process);
        json["files"].push_back({{"file", process.path},
                                 {"process", process.name()},
                                 {"endpoints", process.endpoints.size()},
                                 {"operations", counts.operations},
                                 {"operations_with_other_end", counts.joined},
                                 {"frames", counts.frames},
                                 {"records", process.records},
                                 {"records_lost", process.lost},
                                 {"clock_offset_ns", process.offset_ns},
                                 {"clock_error_ns", process.error_ns},
                                 {"clock", alignment_text(process)}});
    }
    std::fputs(command::json_text(json).c_str(), file);
}

} // namespace dat::trace
