// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See compare.h.
#include "compare.h"

#include "way.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace dat::perf {
namespace {

// What the limits are good for: memory knows no connections, a socket no RDMA, and who
// waits is not bounded by what a processor sees at once.
bool has_memory_limit(const Plan& plan, Pattern pattern) {
    constexpr Pattern kPatterns[] = {Pattern::ping, Pattern::stream,   Pattern::write,
                                     Pattern::read, Pattern::read_one, Pattern::copy};
    return plan.limits && !plan.waits && plan.to.empty() && plan.pairs == 1 && plan.threads == 1 &&
           std::ranges::find(kPatterns, pattern) != std::end(kPatterns);
}
bool has_socket_limit(const Plan& plan, Pattern pattern) {
    constexpr Pattern kPatterns[] = {Pattern::ping,   Pattern::turns, Pattern::loaded,
                                     Pattern::stream, Pattern::both,  Pattern::incast,
                                     Pattern::connect};
    return plan.limits && std::ranges::find(kPatterns, pattern) != std::end(kPatterns);
}
// What those that are measured by other programs can measure; the rest has no line for them.
bool can_measure(const Way& way, Pattern pattern) {
    const bool plain = pattern == Pattern::ping || pattern == Pattern::stream;
    return (way.kind != Kind::ucx && way.kind != Kind::mpi) || plain ||
           (way.kind == Kind::ucx && pattern == Pattern::write);
}

double processors_of(const std::vector<CaseOutcome>& runs) {
    std::vector<double> all;
    all.reserve(runs.size());
    for (const CaseOutcome& run : runs) {
        all.push_back((run.server.processor_s + run.client.processor_s) / run.client.seconds);
    }
    return median(all);
}

Row row_of(const Measure& measure, std::size_t size, const Way& way, const Cell& cell) {
    Row row;
    row.way = way;
    row.ending = cell.ending;
    row.why = cell.why;
    row.runs = cell.runs;
    for (const CaseOutcome& run : cell.runs) {
        row.values.push_back(measure.value(run.client, size));
        row.chosen = run.client.what;
        row.single.add(run.client.single);
    }
    row.spread = spread(row.values);
    row.processors = processors_of(cell.runs);
    return row;
}

double ratio_to(const Row& row, const std::vector<Row>& rows, Kind kind) {
    for (const Row& limit : rows) {
        if (limit.way.kind == kind && !limit.values.empty()) {
            return median(quotients(row.values, limit.values));
        }
    }
    return 0;
}

} // namespace

Point sum_up(const Measure& measure, std::size_t size, const std::vector<Way>& ways,
             const std::vector<Cell>& cells) {
    Point point;
    point.size = size;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        point.rows.push_back(row_of(measure, size, ways[i], cells[i]));
    }
    for (Row& row : point.rows) {
        const std::vector<double> all = quotients(row.values, point.rows.front().values);
        row.ratio = median(all);
        row.interval = interval_of_median(all);
        if (row.way.kind != Kind::memory && row.way.kind != Kind::socket) {
            row.to_memory = ratio_to(row, point.rows, Kind::memory);
            row.to_socket = ratio_to(row, point.rows, Kind::socket);
        }
    }
    return point;
}

bool is_passed(const Summary& summary, const Row& limit) {
    const bool less = summary.measure->less_is_better;
    for (const Point& point : summary.points) {
        const auto found = std::ranges::find(point.rows, limit.way.label,
                                             [](const Row& row) { return row.way.label; });
        for (const Row& row : point.rows) {
            const bool measured = row.way.kind == Kind::fabric && !row.values.empty() &&
                                  found != point.rows.end() && !found->values.empty();
            if (measured && (less ? row.spread.median < found->spread.median
                                  : row.spread.median > found->spread.median)) {
                return true;
            }
        }
    }
    return false;
}

Comparison::Comparison(Plan plan, Remote* remote, Watcher watcher)
    : plan_(std::move(plan)), remote_(remote), watcher_(std::move(watcher)) {
    all_ = count_cases();
}

std::vector<Way> Comparison::ways_for(const Measure& measure) const {
    std::vector<Way> ways;
    std::ranges::copy_if(plan_.ways, std::back_inserter(ways),
                         [&](const Way& way) { return can_measure(way, measure.pattern); });
    if (has_memory_limit(plan_, measure.pattern)) {
        ways.push_back(memory_way());
    }
    if (has_socket_limit(plan_, measure.pattern)) {
        ways.push_back(socket_way());
    }
    return ways;
}

std::vector<std::size_t> Comparison::sizes_for(const Measure& measure) const {
    return measure.sized ? plan_.sizes : std::vector<std::size_t>{measure.size};
}

std::size_t Comparison::count_cases() const {
    std::set<std::pair<Pattern, std::size_t>> points;
    std::size_t count = 0;
    for (const Measure* measure : plan_.measures) {
        for (const std::size_t size : sizes_for(*measure)) {
            if (points.emplace(measure->pattern, size).second) {
                count += plan_.rounds * ways_for(*measure).size();
            }
        }
    }
    return count;
}

void Comparison::run_once(Cell& cell, const Case& what) {
    if (cell.ending != Ending::right) {
        return;
    }
    CaseOutcome outcome = run_case(what, remote_);
    if (outcome.ending == Ending::right) {
        cell.runs.push_back(outcome);
        return;
    }
    cell.ending = outcome.ending;
    cell.why = outcome.why;
    failed_ |= outcome.ending == Ending::failed;
    // At other sizes it would be the same, and a side that hangs takes its time each time.
    out_.emplace(std::make_pair(what.pattern, what.way.label), Cell{cell.ending, cell.why, {}});
}

// Every other round goes through the ways from the end, so that what grows or shrinks
// meanwhile meets them alike.
Comparison::Cells Comparison::measure_cells(const Measure& measure, std::size_t size) {
    const std::vector<Way> ways = ways_for(measure);
    Cells cells(ways.size());
    for (std::size_t i = 0; i < ways.size(); ++i) {
        const auto out = out_.find({measure.pattern, ways[i].label});
        cells[i] = out == out_.end() ? Cell() : out->second;
    }
    for (std::size_t round = 0; round < plan_.rounds; ++round) {
        for (std::size_t i = 0; i < ways.size(); ++i) {
            const std::size_t at = round % 2 == 0 ? i : ways.size() - 1 - i;
            watcher_(done_++, all_,
                     std::string(measure.name) + " " + size_text(size) + ": " + ways[at].label);
            run_once(cells[at], {.way = ways[at],
                                 .pattern = measure.pattern,
                                 .size = size,
                                 .amount = plan_.amount,
                                 .waits = plan_.waits,
                                 .address = plan_.address,
                                 .connections = plan_.connections,
                                 .pairs = plan_.pairs,
                                 .threads = plan_.threads,
                                 .senders = plan_.senders});
        }
    }
    return cells;
}

Summary Comparison::run(const Measure& measure) {
    Summary summary;
    summary.measure = &measure;
    summary.waits = plan_.waits;
    for (const std::size_t size : sizes_for(measure)) {
        const auto key = std::make_pair(measure.pattern, size);
        if (cells_.find(key) == cells_.end()) {
            cells_[key] = measure_cells(measure, size);
        }
        summary.points.push_back(sum_up(measure, size, ways_for(measure), cells_[key]));
    }
    return summary;
}

} // namespace dat::perf
