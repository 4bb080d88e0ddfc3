// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The figures that dat_perf gives: what each is, of which pattern, in which unit.
#ifndef DAT_UTIL_PERF_MEASURE_H
#define DAT_UTIL_PERF_MEASURE_H

#include "case.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dat::perf {

struct Measure {
    const char* name;  // also of its picture's file
    const char* test;  // the word of --test that it belongs to
    const char* title; // what it is
    const char* unit;
    Pattern pattern;
    bool less_is_better;
    bool sized; // it is measured at each size; else at `size` alone
    std::size_t size;
    const char* how; // what was measured, but for polled or waited for
    // From what one side, the client, has seen.
    double (*value)(const Result& result, std::size_t size);
};

// All, in the order in which they are shown.
std::span<const Measure> measures();

// What `dat_perf floor` has besides.
const Measure& memcpy_measure();

// Those that belong to the tests, named between commas ("latency,rma"). Throws Usage.
std::vector<const Measure*> parse_tests(std::string_view text);

// The words of --test, between commas.
std::string test_names();

// All that is to be known of how a figure came about, in one sentence.
std::string conditions(const Measure& measure, bool waits);

// Messages for each operation that a pattern counts: a round trip has two.
int transfers(Pattern pattern);

} // namespace dat::perf

#endif
