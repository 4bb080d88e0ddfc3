// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Tables, CSV, JSON and pictures, of figures that are made up.
#include "util/perf/report.h"
#include "util/perf/baseline.h"
#include "util/perf/way.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

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

// A summary of one size: rounds of dat, and of the socket, in us of a half round trip.
Summary rounds_of(std::vector<double> dat, std::vector<double> socket) {
    std::vector<Way> ways = parse_ways("dat");
    ways.push_back(socket_way());
    std::vector<Cell> cells(2);
    for (std::size_t i = 0; i < dat.size(); ++i) {
        cells[0].runs.push_back(run_of(2 * dat[i]));
        cells[1].runs.push_back(run_of(2 * socket[i]));
    }
    Summary summary;
    summary.measure = &measure_named("latency");
    summary.points.push_back(sum_up(*summary.measure, 64, ways, cells));
    return summary;
}

Plan plan_of(std::size_t rounds) {
    Plan plan;
    plan.ways = parse_ways("dat");
    plan.measures = {&measure_named("latency")};
    plan.sizes = {64};
    plan.rounds = rounds;
    return plan;
}

// A file that goes with this object.
struct File {
    explicit File(const std::string& text) { std::ofstream(path) << text; }
    ~File() { ::unlink(path.c_str()); }
    const std::string path = "unit_perf_report." + std::to_string(::getpid()) + ".json";
};

const std::vector<double> kCalm = {5.0, 5.1, 4.9, 5.05, 4.95, 5.02, 4.98};
const std::vector<double> kSocket = {4.0, 4.1, 3.9, 4.05, 3.95, 4.02, 3.98};

std::vector<double> times(std::vector<double> values, double factor) {
    for (double& value : values) {
        value *= factor;
    }
    return values;
}

// What is said of `now` beside a baseline of `before`, each with the socket's rounds.
Verdict verdict_of(const std::vector<double>& before, const std::vector<double>& socket_before,
                   const std::vector<double>& now, const std::vector<double>& socket_now) {
    const Plan plan = plan_of(now.size());
    const File file(json_text({{"date", "then"}}, {}, plan, {rounds_of(before, socket_before)}));
    return Baseline(file.path, plan).compare({rounds_of(now, socket_now)}, 0.05);
}

bool refused(const std::string& text, const Plan& plan, const char* words) {
    const File file(text);
    try {
        const Baseline baseline(file.path, plan);
    } catch (const Usage& usage) {
        return std::string(usage.what()).find(words) != std::string::npos;
    }
    return false;
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
    const auto json = nlohmann::json::parse(json_text(facts, {}, plan, {latency()}));
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
    cr_assert(has(text, ">us (logarithmic)<") && has(text, ">64 B<"));
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

Test(perf_report, limit_that_is_passed__is_a_reference) {
    const Summary beyond = rounds_of({3, 3, 3}, {4, 4, 4});
    cr_assert_eq(shown_name(beyond, beyond.points[0].rows[1]), "reference: socket");
    cr_assert(has(table_text(beyond), "reference: socket"));
    cr_assert(has(svg_text(beyond), "reference: socket"));
    const Summary within = rounds_of({5, 5, 5}, {4, 4, 4});
    cr_assert_eq(shown_name(within, within.points[0].rows[1]), "limit: socket");
}

Test(perf_report, page__needs_nothing_from_elsewhere_and_has_all_of_it) {
    Summary summary = latency();
    summary.points[0].rows[0].single.record(12000);
    const std::string page =
        html_text({{"kernel", "a<b"}}, {{"kernel", "theirs"}}, plan_of(3), {summary}, "a verdict");
    for (const char* words : {"a&lt;b", "theirs", "<svg ", "single operations of 8 B", "a verdict",
                              "limit: socket", "each measured 3 times", "(logarithmic)"}) {
        cr_assert(has(page, words), "%s", words);
    }
    // One namespace of SVG is named, and nothing is fetched.
    for (const char* words : {"src=", "<script", "<link", "@import", "url("}) {
        cr_assert(!has(page, words), "%s", words);
    }
}

// Half of a round trip: 12 us there and back are 6 us.
Test(perf_report, single_operations__are_in_the_unit_of_the_measure) {
    Histogram single;
    single.record(12000);
    const std::vector<double> all = percentiles(measure_named("latency"), single);
    cr_assert_float_eq(all.back(), 6, 1e-9);
    cr_assert_float_eq(percentiles(measure_named("atomic-time"), single).back(), 12, 1e-9);
}

Test(perf_baseline, what_is_slower__is_worse) {
    const Verdict verdict = verdict_of(kCalm, kSocket, times(kCalm, 1.3), kSocket);
    cr_assert_eq(verdict.changes.size(), 1u);
    cr_assert(verdict.worse(), "chance %g", verdict.changes[0].chance);
    cr_assert_float_eq(verdict.changes[0].worse_by, 1.3, 0.02);
}

Test(perf_baseline, what_is_as_fast_or_faster__is_not) {
    cr_assert_not(verdict_of(kCalm, kSocket, kCalm, kSocket).worse());
    cr_assert_not(verdict_of(kCalm, kSocket, times(kCalm, 0.5), kSocket).worse());
}

// Each round is slower, but by less than is of any matter.
Test(perf_baseline, what_is_a_little_slower__is_not) {
    const std::vector<double> even = {5.00, 5.01, 5.02, 5.03, 5.04, 5.05, 5.06};
    const Verdict verdict = verdict_of(even, kSocket, times(even, 1.03), kSocket);
    cr_assert(verdict.changes[0].chance < kSignificance);
    cr_assert_not(verdict.worse());
}

// One round of seven was disturbed.
Test(perf_baseline, what_is_slower_once__is_not) {
    std::vector<double> once = kCalm;
    once[3] = 50;
    cr_assert_not(verdict_of(kCalm, kSocket, once, kSocket).worse());
}

// The machine is slower, the socket as well.
Test(perf_baseline, what_is_slower_with_its_limit__is_not) {
    cr_assert_not(verdict_of(kCalm, kSocket, times(kCalm, 1.3), times(kSocket, 1.3)).worse());
}

Test(perf_baseline, file_that_tells_nothing__is_refused) {
    const std::string good =
        json_text({{"date", "then"}}, {}, plan_of(7), {rounds_of(kCalm, kSocket)});
    cr_assert_not(refused(good, plan_of(7), ""));
    cr_assert(refused("no JSON", plan_of(7), "not what dat_perf --json writes"));
    cr_assert(refused("{\"command\": \"dat_top\", \"format\": 1}", plan_of(7), "not what"));
    // 1 / (7 + 1 over 1): never below 0.05
    cr_assert(refused(good, plan_of(1), "it takes --rounds 2"));
    Plan other = plan_of(7);
    other.pairs = 2;
    cr_assert(refused(good, other, "--pairs 1, this is with 2"));
    other = plan_of(7);
    other.waits = true;
    cr_assert(refused(good, other, "measured otherwise"));
    other = plan_of(7);
    other.sizes = {128};
    cr_assert(refused(good, other, "nothing of what is to be measured"));
}
