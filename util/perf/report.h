// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What was measured, for people and for programs. All of it is text that the caller
// writes.
#ifndef DAT_UTIL_PERF_REPORT_H
#define DAT_UTIL_PERF_REPORT_H

#include "compare.h"
#include "machine.h"

#include <string>
#include <vector>

namespace dat::perf {

// The lines at the head: the machine, the other host if there is one, and how it was measured.
std::string head_text(const Facts& machine, const Facts& there, const Plan& plan);
// How it was measured, a sentence each.
std::vector<std::string> settings(const Plan& plan);

// A table, with what was measured above it and what is to be said of the ways below.
std::string table_text(const Summary& summary);

// What the machine allows (`dat_perf floor`), in two tables: by size, and the rest.
std::string floor_text(const std::vector<Summary>& summaries);

// Everything.
std::string json_text(const Facts& machine, const Facts& there, const Plan& plan,
                      const std::vector<Summary>& summaries);

// A line for each run: what was measured, over what, in which round (from 1); the
// columns of fabtests, in plain numbers; the median of the pieces of a run (0: it has
// none), and how many processors were busy. Patterns that two measures share stand in
// it once for each.
std::string csv_text(const std::vector<Summary>& summaries);

// A picture: lines over the sizes, or bars where there is one size.
std::string svg_text(const Summary& summary);

// How often single operations took how long, at one of the sizes; "" where none were timed.
std::string histogram_svg(const Summary& summary, const Point& point);

// A page with all of it, that needs no other file: pictures, tables, the machine, how it was
// measured. `there`: the other host, or nothing. `verdict`: beside a baseline, or "".
std::string html_text(const Facts& machine, const Facts& there, const Plan& plan,
                      const std::vector<Summary>& summaries, const std::string& verdict);

// What a row is called: a limit that something has passed is a reference.
std::string shown_name(const Summary& summary, const Row& row);

// Of single operations, in the unit of the measure: what so many of a hundred took at most.
inline constexpr double kPercents[] = {50, 90, 99, 99.9, 100};
std::vector<double> percentiles(const Measure& measure, const Histogram& single);

// What there is to say of the ways: what libfabric chose, and why one has no figures.
std::vector<std::string> notes(const Summary& summary);

// Three digits that count: "0.052", "4.75", "1234".
std::string figure_text(double value);

} // namespace dat::perf

#endif
