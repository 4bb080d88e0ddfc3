// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The tables. See report.h. May include: util/perf, util/command, std, fmt.
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

std::string ratio_text(const Row& row, bool first) {
    if (row.way.kind != Kind::fabric) {
        return "";
    }
    return first ? "1"
                 : fmt::format("{} [{}, {}]", figure_text(row.ratio), figure_text(row.interval.low),
                               figure_text(row.interval.high));
}

std::string name_of(const Row& row) {
    return row.way.kind == Kind::fabric ? row.way.label : "limit: " + row.way.label;
}

std::size_t name_width(const Summary& summary) {
    std::size_t width = 8;
    for (const Point& point : summary.points) {
        for (const Row& row : point.rows) {
            width = std::max(width, name_of(row).size());
        }
    }
    return width;
}

void add_row(std::string& text, const Row& row, const std::string& size, std::size_t width,
             bool first) {
    if (row.ending != Ending::right) {
        fmt::format_to(Text(text), "  {:>8}  {:<{}}  {:>9}\n", size, name_of(row), width, "-");
        return;
    }
    std::string line = fmt::format(
        "  {:>8}  {:<{}}  {:>9}  {:>8} .. {:<8}  {:<22}{:>9}{:>9}{:>7.2f}", size, name_of(row),
        width, figure_text(row.spread.median), figure_text(row.spread.low),
        figure_text(row.spread.high), ratio_text(row, first), factor_text(row.to_memory),
        factor_text(row.to_socket), row.processors);
    text += line + "\n";
}

void add_once(std::vector<std::string>& lines, const std::string& line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
        lines.push_back(line);
    }
}

// What there is to say of the ways: what libfabric chose, and why one has no figures.
std::vector<std::string> notes(const Summary& summary) {
    std::vector<std::string> lines;
    for (const Point& point : summary.points) {
        for (const Row& row : point.rows) {
            if (row.ending == Ending::right && row.way.kind == Kind::fabric) {
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

} // namespace

std::string figure_text(double value) {
    if (value == 0 || !std::isfinite(value)) {
        return fmt::format("{}", value);
    }
    const int digits = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
    return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 6));
}

std::string head_text(const Facts& machine, const Plan& plan) {
    std::string text;
    for (const auto& [name, value] : machine) {
        fmt::format_to(Text(text), "{}: {}\n", name, value);
    }
    fmt::format_to(Text(text), "each measured {} times, in alternation, ", plan.rounds);
    if (plan.amount.operations > 0) {
        fmt::format_to(Text(text), "with {} operations", plan.amount.operations);
    } else {
        fmt::format_to(Text(text), "for about {} s", plan.amount.seconds);
    }
    text += ", in two new processes each time, after a warm-up\n";
    if (plan.connections > 1) {
        fmt::format_to(Text(text), "the two have {} connections\n", plan.connections);
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
            add_row(text, point.rows[i], size, width, i == 0);
        }
    }
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
