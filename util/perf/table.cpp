// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The tables. See report.h.
#include "command/text.h"
#include "report.h"
#include "way.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace dat::perf {
namespace {

using Text = std::back_insert_iterator<std::string>;

constexpr std::size_t kWidth = 96;

std::string line_of(const std::string& sentence) {
    return command::wrapped(sentence, "  ", "  ", kWidth);
}

std::string factor_text(double factor) { return factor == 0 ? "" : figure_text(factor); }

bool is_limit(const Row& row) {
    return row.way.kind == Kind::memory || row.way.kind == Kind::socket;
}

std::string ratio_text(const Row& row, bool first) {
    if (is_limit(row)) {
        return "";
    }
    return first ? "1"
                 : fmt::format("{} [{}, {}]", figure_text(row.ratio), figure_text(row.interval.low),
                               figure_text(row.interval.high));
}

std::size_t name_width(const Summary& summary) {
    std::size_t width = 8;
    for (const Point& point : summary.points) {
        for (const Row& row : point.rows) {
            width = std::max(width, shown_name(summary, row).size());
        }
    }
    return width;
}

void add_row(std::string& text, const Row& row, const std::string& name, const std::string& size,
             std::size_t width, bool first) {
    if (row.ending != Ending::right) {
        fmt::format_to(Text(text), "  {:>8}  {:<{}}  {:>9}\n", size, name, width, "-");
        return;
    }
    std::string line = fmt::format(
        "  {:>8}  {:<{}}  {:>9}  {:>8} .. {:<8}  {:<22}{:>9}{:>9}{:>7}", size, name, width,
        figure_text(row.spread.median), figure_text(row.spread.low), figure_text(row.spread.high),
        ratio_text(row, first), factor_text(row.to_memory), factor_text(row.to_socket),
        row.processors == 0 ? std::string("-") : fmt::format("{:.2f}", row.processors));
    text += line + "\n";
}

void add_once(std::vector<std::string>& lines, const std::string& line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
        lines.push_back(line);
    }
}

double confidence_of(const Summary& summary) {
    double least = summary.points[0].rows[0].values.empty() ? 0 : 1;
    for (const Point& point : summary.points) {
        for (const Row& row : point.rows) {
            if (!row.values.empty()) {
                least = std::min(least, row.interval.confidence);
            }
        }
    }
    return least;
}

// What single operations took, at each size.
std::string percentiles_text(const Summary& summary, std::size_t width) {
    const Measure& measure = *summary.measure;
    std::string lines;
    for (const Point& point : summary.points) {
        bool first = true;
        for (const Row& row : point.rows) {
            if (row.single.total() == 0) {
                continue;
            }
            fmt::format_to(Text(lines), "  {:>8}  {:<{}}", first ? size_text(point.size) : "",
                           shown_name(summary, row), width);
            for (const double value : percentiles(measure, row.single)) {
                fmt::format_to(Text(lines), "  {:>9}", figure_text(value));
            }
            fmt::format_to(Text(lines), "  {:>10}\n", row.single.total());
            first = false;
        }
    }
    if (lines.empty()) {
        return {};
    }
    return fmt::format("\n  {:>8}  {:<{}}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10}\n", "size",
                       "single operations", width, "50 %", "90 %", "99 %", "99.9 %", "max", "of") +
           lines;
}

} // namespace

std::string shown_name(const Summary& summary, const Row& row) {
    return !is_limit(row) ? row.way.label
                          : (is_passed(summary, row) ? "reference: " : "limit: ") + row.way.label;
}

std::vector<double> percentiles(const Measure& measure, const Histogram& single) {
    std::vector<double> all;
    for (const double percent : kPercents) {
        all.push_back(static_cast<double>(single.percentile_ns(percent)) / 1000 /
                      transfers(measure.pattern));
    }
    return all;
}

std::vector<std::string> notes(const Summary& summary) {
    std::vector<std::string> lines;
    for (const Point& point : summary.points) {
        for (const Row& row : point.rows) {
            if (row.ending == Ending::right && !is_limit(row)) {
                add_once(lines, row.way.label + ": " + row.chosen);
            } else if (row.ending == Ending::not_offered) {
                add_once(lines, row.way.label + ": not measured: " + row.why);
            } else if (row.ending == Ending::failed) {
                add_once(lines, row.way.label + ": FAILED: " + row.why);
            }
        }
    }
    return lines;
}

std::string figure_text(double value) {
    if (value == 0 || !std::isfinite(value)) {
        return fmt::format("{}", value);
    }
    const int digits = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
    return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 6));
}

std::vector<std::string> settings(const Plan& plan) {
    std::vector<std::string> all;
    all.push_back(fmt::format(
        "each measured {} times, in alternation, {}, in new processes each time, after a warm-up",
        plan.rounds,
        plan.amount.operations > 0 ? fmt::format("with {} operations", plan.amount.operations)
                                   : fmt::format("for about {} s", plan.amount.seconds)));
    if (!plan.to.empty()) {
        all.push_back("the servers are on " + plan.to + ", the clients on " + plan.address);
    }
    if (plan.connections > 1) {
        all.push_back(fmt::format("the two have {} connections", plan.connections));
    }
    if (plan.pairs > 1) {
        all.push_back(fmt::format(
            "{} pairs of processes at the same time: rates are of all together", plan.pairs));
    }
    if (plan.threads > 1) {
        all.push_back(
            fmt::format("{} threads in each process, with an endpoint each in one domain: "
                        "rates are of all together",
                        plan.threads));
    }
    if (std::ranges::any_of(plan.measures, [](const Measure* measure) {
            return measure->pattern == Pattern::incast;
        })) {
        all.push_back(fmt::format("{} processes send to one in the test incast", plan.senders));
    }
    all.insert(all.end(), plan.notes.begin(), plan.notes.end());
    return all;
}

std::string head_text(const Facts& machine, const Facts& there, const Plan& plan) {
    std::string text;
    for (const auto& [name, value] : machine) {
        fmt::format_to(Text(text), "{}: {}\n", name, value);
    }
    for (const auto& [name, value] : there) {
        fmt::format_to(Text(text), "{}, {}: {}\n", plan.to, name, value);
    }
    for (const std::string& one : settings(plan)) {
        text += one + "\n";
    }
    return text;
}

std::string table_text(const Summary& summary) {
    const Measure& measure = *summary.measure;
    std::string text = fmt::format("\n{}: {}, {} ({} is better)\n", measure.name, measure.title,
                                   measure.unit, measure.less_is_better ? "less" : "more");
    text += line_of(conditions(measure, summary.waits));
    const std::size_t width = name_width(summary);
    const std::string& to = summary.points.front().rows.front().way.label;
    const std::string ratio =
        fmt::format("/ {} [{:.0f} %]", to, std::floor(100 * confidence_of(summary)));
    fmt::format_to(Text(text), "\n  {:>8}  {:<{}}  {:>9}  {:^20}  {:<22}{:>9}{:>9}{:>7}\n", "size",
                   "over", width, "median", "quarters", ratio, "/ memory", "/ socket", "CPUs");
    for (const Point& point : summary.points) {
        for (std::size_t i = 0; i < point.rows.size(); ++i) {
            const std::string size = measure.sized && i == 0 ? size_text(point.size) : "";
            add_row(text, point.rows[i], shown_name(summary, point.rows[i]), size, width, i == 0);
        }
    }
    text += percentiles_text(summary, std::max(width, std::size_t{17}));
    for (const std::string& line : notes(summary)) {
        text += line_of(line);
    }
    return text;
}

namespace {

// A column of the floor's table: a measure over one way.
struct Column {
    std::string head[2];
    const Summary* summary;
    std::size_t row;
};

std::vector<Column> columns_of(const std::vector<Summary>& summaries) {
    std::vector<Column> columns;
    for (const Summary& summary : summaries) {
        for (std::size_t i = 0; summary.measure->sized && i < summary.points.front().rows.size();
             ++i) {
            const Row& row = summary.points.front().rows[i];
            if (row.ending != Ending::not_offered) {
                columns.push_back(
                    {{row.way.label + " " + summary.measure->name, summary.measure->unit},
                     &summary,
                     i});
            }
        }
    }
    return columns;
}

} // namespace

std::string floor_text(const std::vector<Summary>& summaries) {
    const std::vector<Column> columns = columns_of(summaries);
    std::string text = "\n";
    for (const int line : {0, 1}) {
        fmt::format_to(Text(text), "  {:>8}", line == 0 ? "size" : "");
        for (const Column& column : columns) {
            fmt::format_to(Text(text), "  {:>{}}", column.head[line], column.head[0].size());
        }
        text += "\n";
    }
    for (std::size_t i = 0; !columns.empty() && i < columns[0].summary->points.size(); ++i) {
        fmt::format_to(Text(text), "  {:>8}", size_text(columns[0].summary->points[i].size));
        for (const Column& column : columns) {
            const Row& row = column.summary->points[i].rows[column.row];
            fmt::format_to(Text(text), "  {:>{}}",
                           row.ending == Ending::right ? figure_text(row.spread.median) : "-",
                           column.head[0].size());
        }
        text += "\n";
    }
    text += "\n";
    std::vector<std::string> lines;
    for (const Summary& summary : summaries) {
        for (const Row& row : summary.points.front().rows) {
            if (!summary.measure->sized && row.ending == Ending::right) {
                fmt::format_to(Text(text), "  {} {}: {} {}\n", row.way.label, summary.measure->name,
                               figure_text(row.spread.median), summary.measure->unit);
            }
        }
        for (const std::string& line : notes(summary)) {
            add_once(lines, line);
        }
    }
    for (const std::string& line : lines) {
        text += line_of(line);
    }
    return text;
}

} // namespace dat::perf
