// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Tables, CSV, JSON and pictures, of figures that are made up.
// May include: util/perf, std, nlohmann-json.
#include "util/perf/report.h"
#include "util/perf/way.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace dat::perf;

namespace {

// A run in which one operation took so long.
CaseOutcome run_of(double us) {
    CaseOutcome run;
    run.ending = Ending::right;
    run.client.operations = 1000;
    run.client.median_s = us * 1e-6;
    run.client.seconds = us * 1e-3;
    run.client.processor_s = run.client.seconds;
    run.server = run.client;
    const std::string chosen = "made up, FI_EP_MSG";
    std::copy(chosen.begin(), chosen.end(), run.client.what);
    return run;
}

Cell cell_of(std::initializer_list<double> us) {
    Cell cell;
    for (const double one : us) {
        cell.runs.push_back(run_of(one));
    }
    return cell;
}

const Measure& measure_named(std::string_view name) {
    return *std::ranges::find_if(measures(), [=](const Measure& m) { return name == m.name; });
}

// Half round trips of 5, 6 and 7 us, of twice as many, of a way that has none, and the
// socket's of 4.
Summary latency() {
    std::vector<Way> ways = parse_ways("dat,a<b,none");
    ways.push_back(socket_way());
    const std::vector<Cell> cells = {cell_of({10, 12, 14}),
                                     cell_of({20, 24, 28}),
                                     {Ending::not_offered, "has none", {}},
                                     cell_of({8, 8, 8})};
    Summary summary;
    summary.measure = &measure_named("latency");
    for (const std::size_t size : {std::size_t{8}, std::size_t{64}}) {
        summary.points.push_back(sum_up(*summary.measure, size, ways, cells));
    }
    return summary;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

bool has(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
}

} // namespace

Test(perf_report, sum__has_medians_and_ratios_of_rounds) {
    const Point point = latency().points.at(0);
    cr_assert_float_eq(point.rows[0].spread.median, 6, 1e-9);
    cr_assert_float_eq(point.rows[1].ratio, 2, 1e-9);
    cr_assert_float_eq(point.rows[1].interval.low, 2, 1e-9);
    cr_assert_float_eq(point.rows[0].to_socket, 1.5, 1e-9);
    cr_assert_float_eq(point.rows[0].to_memory, 0, 1e-9);
    cr_assert_float_eq(point.rows[0].processors, 2, 1e-9);
    cr_assert(point.rows[2].values.empty());
}

Test(perf_report, figure__has_three_digits) {
    cr_assert_eq(figure_text(0.0521), "0.0521");
    cr_assert_eq(figure_text(4.7512), "4.75");
    cr_assert_eq(figure_text(123.4), "123");
    cr_assert_eq(figure_text(12345.6), "12346");
    cr_assert_eq(figure_text(0), "0");
}

Test(perf_report, table__says_what_was_measured_and_why_something_was_not) {
    const std::string text = table_text(latency());
    cr_assert(has(text, "preposted") && has(text, "polled for (fi_cq_read)"));
    cr_assert(has(text, "limit: socket"));
    cr_assert(has(text, "none: not measured: has none"));
    cr_assert(has(text, "dat: made up, FI_EP_MSG"));
    cr_assert(has(text, "2.00 [2.00, 2.00]"));
}

Test(perf_report, csv__has_the_columns_of_fabtests_and_a_line_for_each_run) {
    const auto lines = lines_of(csv_text({latency()}));
    cr_assert_eq(lines.size(), 1u + 2 * 9);
    cr_assert(has(lines[0], ",bytes,iters,total,time,MB/sec,usec/xfer,Mxfers/sec,"));
    const auto columns = [](const std::string& line) {
        return std::count(line.begin(), line.end(), ',');
    };
    for (const std::string& line : lines) {
        cr_assert_eq(columns(line), columns(lines[0]), "%s", line.c_str());
    }
    // 1000 round trips of 10 us, two messages of 8 bytes each
    cr_assert_eq(lines[1],
                 "latency,\"dat\",1,8,1000,16000,0.010000,1.600,5.0000,0.200000,5.0000,2.00");
}

Test(perf_report, json__can_be_read_and_holds_every_run) {
    const Facts facts = {{"kernel", "made \"up\""}};
    Plan plan;
    plan.rounds = 3;
    const auto json = nlohmann::json::parse(json_text(facts, plan, {latency()}));
    cr_assert_eq(json["machine"]["kernel"].get<std::string>(), "made \"up\"");
    const auto& measure = json["measures"][0];
    cr_assert_eq(measure["unit"].get<std::string>(), "us");
    const auto& results = measure["points"][1]["results"];
    cr_assert_eq(measure["points"][1]["bytes"].get<int>(), 64);
    cr_assert_eq(results.size(), 4u);
    cr_assert_eq(results[0]["values"].size(), 3u);
    cr_assert_float_eq(results[1]["ratio"]["median"].get<double>(), 2, 1e-9);
    cr_assert_eq(results[1]["ratio"]["to"].get<std::string>(), "dat");
    cr_assert_eq(results[2]["ending"].get<std::string>(), "not offered");
    cr_assert_eq(results[2]["why"].get<std::string>(), "has none");
    cr_assert(results[0]["to_memory"].is_null());
}

Test(perf_report, picture__has_a_line_and_a_name_for_each_way) {
    const std::string text = svg_text(latency());
    cr_assert(has(text, "<svg ") && has(text, "</svg>"));
    cr_assert(has(text, ">us<") && has(text, ">64 B<"));
    cr_assert(has(text, "a&lt;b") && !has(text, "a<b"));
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = text.find("<polyline", at)) != std::string::npos; ++at) {
        ++lines;
    }
    cr_assert_eq(lines, 4u);
}

Test(perf_report, picture_of_one_size__has_bars) {
    Summary summary;
    summary.measure = &measure_named("connect");
    summary.points.push_back(sum_up(*summary.measure, 64, parse_ways("dat,none"),
                                    {cell_of({10}), {Ending::not_offered, "has none", {}}}));
    const std::string text = svg_text(summary);
    cr_assert(has(text, "100000 1/s") && has(text, "not offered") && !has(text, "<polyline"));
}
