// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The report as one page. See report.h.
#include "config.h"

#include "report.h"
#include "way.h"

#include <fmt/format.h>
#include <iterator>

namespace dat::perf {
namespace {

using Text = std::back_insert_iterator<std::string>;

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>dat_perf</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.45 sans-serif; max-width: 64em; margin: 1.5em auto; padding: 0 1em; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2em; border-bottom: 1px solid #8888; }
table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto; }
th, td { padding: 0.15em 0.6em; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid; }
th.l, td.l { text-align: left; }
tr.first td { border-top: 1px solid #8884; }
table.facts { display: table; }
table.facts td { text-align: left; white-space: normal; padding: 0.15em 0.8em 0.15em 0; vertical-align: top; }
svg { max-width: 100%; height: auto; }
pre { overflow-x: auto; }
summary { cursor: pointer; }
.note { color: #777; }
.bad { color: #c22; font-weight: bold; }
</style>
</head>
<body>
)";

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        safe += c == '<'   ? "&lt;"
                : c == '>' ? "&gt;"
                : c == '&' ? "&amp;"
                : c == '"' ? "&quot;"
                           : std::string(1, c);
    }
    return safe;
}

std::string facts_table(const std::string& title, const Facts& facts) {
    std::string text = title.empty() ? "" : "<h3>" + escaped(title) + "</h3>\n";
    text += "<table class=\"facts\">\n";
    for (const auto& [name, value] : facts) {
        fmt::format_to(Text(text), "<tr><td>{}</td><td>{}</td></tr>\n", escaped(name),
                       escaped(value));
    }
    return text + "</table>\n";
}

std::string factor(double value) { return value == 0 ? "" : figure_text(value); }

bool is_limit(const Row& row) {
    return row.way.kind == Kind::memory || row.way.kind == Kind::socket;
}

std::string cells_of(const Row& row, bool first) {
    if (row.ending != Ending::right) {
        return fmt::format("<td class=\"l {}\" colspan=\"8\">{}</td>",
                           row.ending == Ending::failed ? "bad" : "note",
                           row.ending == Ending::failed ? "failed" : "not measured");
    }
    const bool compared = !is_limit(row) && !first;
    return fmt::format(
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
        figure_text(row.spread.median), figure_text(row.spread.low), figure_text(row.spread.high),
        compared ? figure_text(row.ratio)
        : first  ? "1"
                 : "",
        compared
            ? fmt::format("{} to {}", figure_text(row.interval.low), figure_text(row.interval.high))
            : "",
        factor(row.to_memory), factor(row.to_socket),
        row.processors == 0 ? "" : fmt::format("{:.2f}", row.processors));
}

std::string figures_table(const Summary& summary) {
    const std::string to = escaped(summary.points.front().rows.front().way.label);
    std::string text = fmt::format(
        "<table>\n<tr><th>size</th><th class=\"l\">over</th><th>median, {}</th><th colspan=\"2\">"
        "quarters</th><th>/ {}</th><th>sure to {:.0f} %</th><th>/ memory</th><th>/ socket</th>"
        "<th>CPUs</th></tr>\n",
        escaped(summary.measure->unit), to,
        100 * summary.points.front().rows.front().interval.confidence);
    for (const Point& point : summary.points) {
        for (std::size_t i = 0; i < point.rows.size(); ++i) {
            fmt::format_to(Text(text), "<tr{}><td>{}</td><td class=\"l\">{}</td>{}</tr>\n",
                           i == 0 ? " class=\"first\"" : "",
                           summary.measure->sized && i == 0 ? size_text(point.size) : "",
                           escaped(shown_name(summary, point.rows[i])),
                           cells_of(point.rows[i], i == 0));
        }
    }
    return text + "</table>\n";
}

// With the picture of the smallest size, and those of the others to be opened.
std::string singles(const Summary& summary) {
    std::string rows;
    std::string pictures;
    for (const Point& point : summary.points) {
        bool first = true;
        for (const Row& row : point.rows) {
            if (row.single.total() == 0) {
                continue;
            }
            fmt::format_to(Text(rows), "<tr{}><td>{}</td><td class=\"l\">{}</td>",
                           first ? " class=\"first\"" : "", first ? size_text(point.size) : "",
                           escaped(shown_name(summary, row)));
            for (const double value : percentiles(*summary.measure, row.single)) {
                fmt::format_to(Text(rows), "<td>{}</td>", figure_text(value));
            }
            fmt::format_to(Text(rows), "<td>{}</td></tr>\n", row.single.total());
            first = false;
        }
        const std::string picture = histogram_svg(summary, point);
        if (!picture.empty()) {
            fmt::format_to(Text(pictures),
                           "<details{}><summary>single operations of {}</summary>\n{}</details>\n",
                           pictures.empty() ? " open" : "", size_text(point.size), picture);
        }
    }
    if (rows.empty()) {
        return {};
    }
    return "<h3>Single operations</h3>\n<table>\n<tr><th>size</th><th class=\"l\">over</th><th>50 "
           "%</th><th>90 %</th><th>99 %</th><th>99.9 %</th><th>max, " +
           escaped(summary.measure->unit) + "</th><th>operations</th></tr>\n" + rows +
           "</table>\n" + pictures;
}

} // namespace

std::string html_text(const Facts& machine, const Facts& there, const Plan& plan,
                      const std::vector<Summary>& summaries, const std::string& verdict) {
    std::string text = kHead;
    fmt::format_to(Text(text), "<h1>dat_perf {}</h1>\n", PACKAGE_VERSION);
    text += facts_table(there.empty() ? "" : "This host", machine);
    if (!there.empty()) {
        text += facts_table(plan.to, there);
    }
    text += "<h3>How it was measured</h3>\n<ul>\n";
    for (const std::string& one : settings(plan)) {
        text += "<li>" + escaped(one) + "</li>\n";
    }
    text += "</ul>\n<p>";
    for (const Summary& summary : summaries) {
        fmt::format_to(Text(text), "<a href=\"#{0}\">{0}</a> ", summary.measure->name);
    }
    text += "</p>\n";
    if (!verdict.empty()) {
        text += "<h2>Beside the baseline</h2>\n<pre>" + escaped(verdict) + "</pre>\n";
    }
    for (const Summary& summary : summaries) {
        fmt::format_to(Text(text), "<h2 id=\"{}\">{}</h2>\n{}", summary.measure->name,
                       escaped(summary.measure->title), svg_text(summary));
        text += figures_table(summary) + singles(summary);
        for (const std::string& note : notes(summary)) {
            fmt::format_to(Text(text), "<p class=\"note\">{}</p>\n", escaped(note));
        }
    }
    return text + "</body>\n</html>\n";
}

} // namespace dat::perf
