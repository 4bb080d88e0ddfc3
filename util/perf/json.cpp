// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The report for programs, as JSON: schema/dat_perf.schema.json has its form. See report.h. May
// include: util/perf, util/command, std, nlohmann-json.
#include "command/json.h"
#include "report.h"

namespace dat::perf {
namespace {

using command::Json;

const char* text_of(Ending ending) {
    constexpr const char* kTexts[] = {"right", "not offered", "failed"};
    return kTexts[static_cast<int>(ending)];
}

const char* text_of(Kind kind) {
    constexpr const char* kTexts[] = {"libfabric", "socket", "memory", "ucx", "openmpi"};
    return kTexts[static_cast<int>(kind)];
}

Json number_or_null(double value) { return value == 0 ? Json() : Json(value); }

// Single operations: percentiles in the unit of the measure, and the histogram as it is.
Json json_of(const Measure& measure, const Histogram& single) {
    constexpr const char* kNames[] = {"50", "90", "99", "99.9", "max"};
    const std::vector<double> values = percentiles(measure, single);
    Json json{{"operations", single.total()}};
    for (std::size_t i = 0; i < values.size(); ++i) {
        json["percentiles"][kNames[i]] = values[i];
    }
    json["histogram_ns"] = Json::array();
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
        if (single.count(i) > 0) {
            json["histogram_ns"].push_back(
                {Histogram::begin_ns(i), Histogram::end_ns(i), single.count(i)});
        }
    }
    return json;
}

Json json_of(const Measure& measure, const Row& row, const std::string& first) {
    Json json;
    json["over"] = row.way.label;
    json["kind"] = text_of(row.way.kind);
    json["ending"] = text_of(row.ending);
    if (row.ending != Ending::right) {
        json["why"] = row.why;
        return json;
    }
    if (row.way.kind != Kind::memory && row.way.kind != Kind::socket) {
        json["chosen"] = row.chosen;
    }
    json["values"] = row.values;
    json["median"] = row.spread.median;
    json["quarters"] = {row.spread.low, row.spread.high};
    json["processors"] = row.processors;
    json["pinned"] = !row.runs.empty() && row.runs.front().client.pinned;
    json["ratio"] = {{"to", first},
                     {"median", row.ratio},
                     {"low", row.interval.low},
                     {"high", row.interval.high},
                     {"confidence", row.interval.confidence}};
    json["to_memory"] = number_or_null(row.to_memory);
    json["to_socket"] = number_or_null(row.to_socket);
    if (row.single.total() > 0) {
        json["single"] = json_of(measure, row.single);
    }
    return json;
}

Json json_of(const Summary& summary) {
    const Measure& measure = *summary.measure;
    Json json{{"name", measure.name},
              {"title", measure.title},
              {"unit", measure.unit},
              {"better", measure.less_is_better ? "less" : "more"},
              {"measured", conditions(measure, summary.waits)},
              {"points", Json::array()}};
    for (const Point& point : summary.points) {
        Json rows = Json::array();
        for (const Row& row : point.rows) {
            rows.push_back(json_of(measure, row, point.rows.front().way.label));
        }
        json["points"].push_back({{"bytes", point.size}, {"results", rows}});
    }
    return json;
}

} // namespace

std::string json_text(const Facts& machine, const Facts& there, const Plan& plan,
                      const std::vector<Summary>& summaries) {
    Json json = command::json_head("dat_perf");
    for (const auto& [name, value] : machine) {
        json["machine"][name] = value;
    }
    if (!plan.to.empty()) {
        json["to"] = plan.to;
        for (const auto& [name, value] : there) {
            json["machine_there"][name] = value;
        }
    }
    json["rounds"] = plan.rounds;
    json["connections"] = plan.connections;
    json["pairs"] = plan.pairs;
    json["threads"] = plan.threads;
    json["senders"] = plan.senders;
    json["settings"] = settings(plan);
    json["interval"] = "order statistics of the median of the rounds' quotients";
    json["measures"] = Json::array();
    for (const Summary& summary : summaries) {
        json["measures"].push_back(json_of(summary));
    }
    return command::json_text(json);
}

} // namespace dat::perf
