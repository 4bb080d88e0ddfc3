// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The findings, for people and for programs.
#ifndef DAT_UTIL_DOCTOR_REPORT_H
#define DAT_UTIL_DOCTOR_REPORT_H

#include "doctor/check.h"

#include <string>
#include <vector>

namespace dat::doctor {

struct Result {
    const Check* check;
    Finding finding;
};

// A line, with cause and mend below it where there are any; for standard output.
std::string text_of(const Result& result);
// How many of each there are: the last line.
std::string sum_of(const std::vector<Result>& results);
// The whole report, as schema/dat_doctor.schema.json says.
std::string json_of(const std::vector<Result>& results);
// 0: nothing is wrong; 1: WARN; 2: FAIL.
int exit_status(const std::vector<Result>& results);

// "limit-files" of the check.
std::string name_of(const Check& check);

} // namespace dat::doctor

#endif
