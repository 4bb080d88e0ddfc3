// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The report for spreadsheets. See report.h.
#include "report.h"

#include <fmt/format.h>
#include <iterator>

namespace dat::perf {
namespace {

// A name that may hold the separator.
std::string quoted(const std::string& name) {
    std::string text = "\"";
    for (const char c : name) {
        text += c == '"' ? "\"\"" : std::string(1, c);
    }
    return text + "\"";
}

void add_line(std::string& text, const Measure& measure, std::size_t size, const Row& row,
              std::size_t run) {
    const Result& r = row.runs[run].client;
    const int per_operation = transfers(measure.pattern);
    const double messages = static_cast<double>(r.operations) * per_operation;
    const double bytes = messages * static_cast<double>(size);
    const double median_us = r.median_s * 1e6 / per_operation;
    const double busy = (row.runs[run].server.processor_s + r.processor_s) / r.seconds;
    fmt::format_to(std::back_inserter(text),
                   "{},{},{},{},{},{:.0f},{:.6f},{:.3f},{:.4f},{:.6f},{:.4f},{:.2f}\n",
                   measure.name, quoted(row.way.label), run + 1, size, r.operations, bytes,
                   r.seconds, bytes / r.seconds / 1e6, r.seconds * 1e6 / messages,
                   messages / r.seconds / 1e6, median_us, busy);
}

} // namespace

std::string csv_text(const std::vector<Summary>& summaries) {
    std::string text = "test,over,round,bytes,iters,total,time,MB/sec,usec/xfer,Mxfers/sec,"
                       "median usec/xfer,CPUs\n";
    for (const Summary& summary : summaries) {
        for (const Point& point : summary.points) {
            for (const Row& row : point.rows) {
                for (std::size_t run = 0; run < row.runs.size(); ++run) {
                    add_line(text, *summary.measure, point.size, row, run);
                }
            }
        }
    }
    return text;
}

} // namespace dat::perf
