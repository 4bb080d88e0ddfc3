// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One line of the table: what is looked at, how, and what was found.
#ifndef DAT_UTIL_DOCTOR_CHECK_H
#define DAT_UTIL_DOCTOR_CHECK_H

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace dat::doctor {

enum class Status : std::uint8_t {
    ok,
    none, // there is nothing to look at, or it was not asked for
    warn, // it works, not as one would wish
    fail, // it does not work
};
const char* word(Status status); // "ok", "--", "WARN", "FAIL"

struct Finding {
    Status status = Status::none;
    std::string finding; // a sentence without its full stop
    std::string cause;   // why; may be empty
    std::string mend;    // what to do; of WARN and FAIL never empty
};
inline Finding good(std::string finding) { return {Status::ok, std::move(finding), {}, {}}; }
inline Finding none(std::string finding) { return {Status::none, std::move(finding), {}, {}}; }
inline Finding warning(std::string finding, std::string cause, std::string mend) {
    return {Status::warn, std::move(finding), std::move(cause), std::move(mend)};
}
inline Finding failure(std::string finding, std::string cause, std::string mend) {
    return {Status::fail, std::move(finding), std::move(cause), std::move(mend)};
}

struct Facts;

struct Check {
    const char* id;    // "limit-files"
    const char* what;  // is looked at
    const char* probe; // how
    Finding (*look)(Facts& facts);
};

// All of checks.def, in its order, which is that of the report.
std::span<const Check> checks();

} // namespace dat::doctor

#endif
