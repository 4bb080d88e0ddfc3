// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See baseline.h.
#include "baseline.h"

#include "command/json.h"
#include "command/text.h"
#include "report.h"
#include "statistics.h"
#include "way.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>

namespace dat::perf {
namespace {

using command::Json;

bool is_limit(const std::string& over) {
    return over == memory_way().label || over == socket_way().label;
}

// How a value is worse: 2 where it takes twice as long, or is half as fast.
std::vector<double> badness(const Measure& measure, const std::vector<double>& values) {
    std::vector<double> all = values;
    if (!measure.less_is_better) {
        std::ranges::transform(all, all.begin(), [](double value) { return 1 / value; });
    }
    return all;
}

const Row* row_of(const Point& point, const std::string& over) {
    const auto found =
        std::ranges::find(point.rows, over, [](const Row& row) { return row.way.label; });
    return found == point.rows.end() || found->values.empty() ? nullptr : &*found;
}

} // namespace

bool Verdict::worse() const { return std::ranges::any_of(changes, &Change::worse); }

Baseline::Baseline(const std::string& file, const Plan& plan) : file_(file) {
    std::ifstream in(file);
    if (!in) {
        throw Usage(file + " cannot be read");
    }
    try {
        const Json json = Json::parse(in);
        if (json.at("command") != "dat_perf" || json.at("format") != command::kJsonFormat) {
            throw Usage(file + " is not what dat_perf --json writes");
        }
        version_ = json.at("version").get<std::string>();
        date_ = json.at("machine").value("date", "");
        const auto same = [&](const char* what, std::size_t now) {
            const auto before = json.value(what, std::size_t{1});
            if (before != now) {
                throw Usage(fmt::format("{} was measured with --{} {}, this is with {}", file, what,
                                        before, now));
            }
        };
        same("connections", plan.connections);
        same("pairs", plan.pairs);
        same("threads", plan.threads);
        for (const Json& measure : json.at("measures")) {
            const auto name = measure.at("name").get<std::string>();
            conditions_[name] = measure.at("measured").get<std::string>();
            for (const Json& point : measure.at("points")) {
                for (const Json& result : point.at("results")) {
                    if (result.at("ending") == "right") {
                        values_[{name, point.at("bytes").get<std::size_t>(),
                                 result.at("over").get<std::string>()}] =
                            result.at("values").get<std::vector<double>>();
                    }
                }
            }
        }
    } catch (const Json::exception&) {
        throw Usage(file + " is not what dat_perf --json writes");
    }
    for (const auto& [key, values] : values_) {
        if (std::ranges::any_of(values, [](double value) { return !(value > 0); })) {
            throw Usage(fmt::format("{} has a figure that is not above 0: {}, {}", file,
                                    std::get<0>(key), std::get<2>(key)));
        }
    }
    check_rounds(plan);
}

// A comparison in which nothing can be found would say that all is well.
void Baseline::check_rounds(const Plan& plan) const {
    std::size_t figures = 0;
    double least = 0;
    std::size_t rounds = 0;
    for (const Measure* measure : plan.measures) {
        const auto before = conditions_.find(measure->name);
        const std::string now = conditions(*measure, plan.waits);
        if (before != conditions_.end() && before->second != now) {
            throw Usage(fmt::format("{} has {} that was measured otherwise: {}", file_,
                                    measure->name, before->second));
        }
        const std::vector<std::size_t> sizes =
            measure->sized ? plan.sizes : std::vector<std::size_t>{measure->size};
        for (const std::size_t size : sizes) {
            for (const Way& way : plan.ways) {
                if (const auto* const found = values(measure->name, size, way.label)) {
                    ++figures;
                    least = std::max(least, least_chance(found->size(), plan.rounds));
                    rounds = std::max(rounds, found->size());
                }
            }
        }
    }
    if (figures == 0) {
        throw Usage(file_ + " has nothing of what is to be measured");
    }
    if (static_cast<double>(figures) * least >= kSignificance) {
        std::size_t enough = plan.rounds;
        while (static_cast<double>(figures) * least_chance(rounds, enough) >= kSignificance &&
               enough < 1000) {
            ++enough;
        }
        throw Usage(fmt::format(
            "with {} rounds, and {} in {}, none of {} figures could be told to be worse: {}",
            plan.rounds, rounds, file_, figures,
            enough < 1000 ? fmt::format("it takes --rounds {}", enough)
                          : std::string("the baseline has too few rounds")));
    }
}

const std::vector<double>* Baseline::values(const std::string& measure, std::size_t size,
                                            const std::string& over) const {
    const auto found = values_.find({measure, size, over});
    return found == values_.end() ? nullptr : &found->second;
}

Verdict Baseline::compare(const std::vector<Summary>& summaries, double tolerance) const {
    Verdict verdict;
    std::vector<double> chances;
    for (const Summary& summary : summaries) {
        const Measure& measure = *summary.measure;
        for (const Point& point : summary.points) {
            for (const Row& row : point.rows) {
                const auto* const before = values(measure.name, point.size, row.way.label);
                if (is_limit(row.way.label) || row.values.empty()) {
                    continue;
                }
                if (!before) {
                    verdict.notes.push_back(fmt::format("{} {}, {}: not in the baseline",
                                                        measure.name, size_text(point.size),
                                                        row.way.label));
                    continue;
                }
                Change change{measure.name, point.size, row.way.label, median(*before),
                              row.spread.median};
                const std::vector<double> was = badness(measure, *before);
                const std::vector<double> is = badness(measure, row.values);
                change.worse_by = shift(was, is);
                change.chance = chance_of_more(was, is);
                for (const Way& limit : {memory_way(), socket_way()}) {
                    const auto* const limit_before = values(measure.name, point.size, limit.label);
                    const Row* const limit_now = row_of(point, limit.label);
                    if (limit_before && limit_now) {
                        const auto was_beside = quotients(was, badness(measure, *limit_before));
                        const auto is_beside = quotients(is, badness(measure, limit_now->values));
                        change.chance =
                            std::max(change.chance, chance_of_more(was_beside, is_beside));
                        change.worse_by = std::min(change.worse_by, shift(was_beside, is_beside));
                    }
                }
                chances.push_back(change.chance);
                verdict.changes.push_back(change);
            }
        }
    }
    const std::vector<double> all = adjusted(chances);
    for (std::size_t i = 0; i < all.size(); ++i) {
        Change& change = verdict.changes[i];
        change.chance = all[i];
        change.worse = change.chance < kSignificance && change.worse_by > 1 + tolerance;
    }
    return verdict;
}

std::string verdict_text(const Baseline& baseline, const Verdict& verdict, double tolerance) {
    command::Table table;
    table.add({"figure", "size", "over", "before", "now", "worse by", "chance"});
    for (const Change& change : verdict.changes) {
        table.add({change.measure, size_text(change.size), change.over, figure_text(change.before),
                   figure_text(change.now), fmt::format("{:+.1f} %", 100 * (change.worse_by - 1)),
                   fmt::format("{:.3f}{}", change.chance, change.worse ? "  WORSE" : "")});
    }
    std::string text = fmt::format("\nagainst {} (dat_perf {}, {}):\n", baseline.file(),
                                   baseline.version(), baseline.date());
    text += table.text("  ");
    for (const std::string& note : verdict.notes) {
        text += "  " + note + "\n";
    }
    const auto count = std::ranges::count_if(verdict.changes, &Change::worse);
    return text +
           fmt::format("  {} of {} figures are significantly worse, and by more than {:g} %\n",
                       count, verdict.changes.size(), 100 * tolerance);
}

} // namespace dat::perf
