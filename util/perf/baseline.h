// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Whether what was measured is worse than what --json wrote before. The rounds of the two are
// compared by the rank sum test, all figures together by Holm's procedure, so that of a run that is
// no worse one in twenty at most is called so. A figure is worse only if it also is so beside each
// limit that both have: then it is not the machine that is slower.
#ifndef DAT_UTIL_PERF_BASELINE_H
#define DAT_UTIL_PERF_BASELINE_H

#include "compare.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace dat::perf {

inline constexpr double kSignificance = 0.05;

// A figure that both have.
struct Change {
    std::string measure;
    std::size_t size = 0;
    std::string over;
    double before = 0; // medians
    double now = 0;
    double worse_by = 0; // the median of all quotients, above 1 where it is worse
    double chance = 1;   // that it is no worse, adjusted
    bool worse = false;
};
struct Verdict {
    std::vector<Change> changes;
    std::vector<std::string> notes; // what could not be compared
    bool worse() const;
};

class Baseline {
  public:
    // What --json has written. Throws Usage: the file is none, or what it has was measured in
    // another way than `plan` does, or with so few rounds that nothing could be significant.
    Baseline(const std::string& file, const Plan& plan);

    // `tolerance`: 0.05 where less than 5 % worse is no matter.
    Verdict compare(const std::vector<Summary>& summaries, double tolerance) const;
    const std::string& file() const { return file_; }
    const std::string& date() const { return date_; }
    const std::string& version() const { return version_; }

  private:
    using Key = std::tuple<std::string, std::size_t, std::string>; // measure, bytes, over
    const std::vector<double>* values(const std::string& measure, std::size_t size,
                                      const std::string& over) const;
    void check_rounds(const Plan& plan) const;
    std::string file_;
    std::string date_;
    std::string version_;
    std::map<Key, std::vector<double>> values_;
    std::map<std::string, std::string> conditions_; // of each measure
};

// A table for people.
std::string verdict_text(const Baseline& baseline, const Verdict& verdict, double tolerance);

} // namespace dat::perf

#endif
