// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Everything that is to be measured, in rounds in which the ways alternate, and what
// comes of it.
#ifndef DAT_UTIL_PERF_COMPARE_H
#define DAT_UTIL_PERF_COMPARE_H

#include "case.h"
#include "measure.h"
#include "run_case.h"
#include "statistics.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dat::perf {

struct Plan {
    std::vector<Way> ways; // the first is what the others are compared with; none: the limits
    std::string to;        // the other host that the servers run on; empty: this one
    std::vector<std::string> notes; // what else is to be said of how it was measured
    std::vector<const Measure*> measures;
    std::vector<std::size_t> sizes;
    std::size_t rounds = 7;
    Amount amount;
    bool waits = false;
    bool limits = true; // measures the limits of TCP and of memory as well
    std::string address = "127.0.0.1";
    std::size_t connections = 1; // that a pair of processes has
    std::size_t pairs = 1;
    std::size_t threads = 1;
    std::size_t senders = 2; // of Pattern::incast
};

// One way at one size: as many runs as there were rounds, unless it did not go right.
struct Cell {
    Ending ending = Ending::right;
    std::string why;
    std::vector<CaseOutcome> runs; // those that went right, in the order of the rounds
};

// What a line of a table says.
struct Row {
    Way way;
    Ending ending = Ending::right;
    std::string why;    // one line, if it did not go right
    std::string chosen; // what libfabric chose
    std::vector<CaseOutcome> runs;
    std::vector<double> values; // of each run
    Spread spread;
    double processors = 0; // that both processes kept busy
    double ratio = 0;      // to the first way: the median of the rounds' quotients
    Interval interval;     // of that
    double to_memory = 0;  // to the limits, the same way; 0: there is none
    double to_socket = 0;
    Histogram single; // of all runs
};
struct Point {
    std::size_t size = 0;
    std::vector<Row> rows;
};
struct Summary {
    const Measure* measure = nullptr;
    bool waits = false;
    std::vector<Point> points;
};

// What is going on, for those who watch: `done` of `all` cases, and the next.
using Watcher = std::function<void(std::size_t done, std::size_t all, const std::string& next)>;

class Comparison {
  public:
    // `remote`: where the servers run, in place of this host; or nullptr.
    Comparison(Plan plan, Remote* remote, Watcher watcher);

    // Measures what is not measured yet for this one, and sums it up. Blocks.
    Summary run(const Measure& measure);

    const Plan& plan() const { return plan_; }
    // A way has failed somewhere.
    bool failed() const { return failed_; }

  private:
    using Cells = std::vector<Cell>;

    std::vector<Way> ways_for(const Measure& measure) const;
    std::vector<std::size_t> sizes_for(const Measure& measure) const;
    Cells measure_cells(const Measure& measure, std::size_t size);
    void run_once(Cell& cell, const Case& what);
    std::size_t count_cases() const;

    const Plan plan_;
    Remote* const remote_;
    const Watcher watcher_;
    std::map<std::pair<Pattern, std::size_t>, Cells> cells_;
    std::map<std::pair<Pattern, std::string>, Cell> out_; // ways that are out of a pattern
    std::size_t done_ = 0;
    std::size_t all_ = 0;
    bool failed_ = false;
};

// One of the ways at any size is better than this one, which was taken for a limit.
bool is_passed(const Summary& summary, const Row& limit);

// Sums up what the ways gave at one size, in the order of the ways.
Point sum_up(const Measure& measure, std::size_t size, const std::vector<Way>& ways,
             const std::vector<Cell>& cells);

} // namespace dat::perf

#endif
