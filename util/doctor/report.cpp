// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See report.h.
#include "doctor/report.h"

#include "command/json.h"
#include "command/text.h"

#include <algorithm>
#include <cstring>

namespace dat::doctor {
namespace {

command::Colour colour_of(Status status) {
    constexpr command::Colour kColours[] = {command::Colour::green, command::Colour::dim,
                                            command::Colour::yellow, command::Colour::red};
    return kColours[static_cast<int>(status)];
}

// As in JSON, where words are in small letters.
const char* json_word(Status status) {
    constexpr const char* kWords[] = {"ok", "none", "warn", "fail"};
    return kWords[static_cast<int>(status)];
}

std::ptrdiff_t count(const std::vector<Result>& results, Status status) {
    return std::ranges::count_if(
        results, [status](const Result& result) { return result.finding.status == status; });
}

constexpr std::size_t kStatusWidth = 6; // "WARN  "

std::size_t name_width() {
    std::size_t width = 0;
    for (const Check& check : checks()) {
        width = std::max(width, std::strlen(check.id));
    }
    return width + 2;
}

} // namespace

std::string name_of(const Check& check) {
    std::string name = check.id;
    std::ranges::replace(name, '_', '-');
    return name;
}

std::string text_of(const Result& result) {
    const command::Paint paint(stdout);
    const std::size_t columns = command::columns_of(stdout);
    const Finding& finding = result.finding;
    const std::string status = word(finding.status);
    std::string name = name_of(*result.check);
    name.append(name_width() - name.size(), ' ');
    const std::string indent(kStatusWidth, ' ');
    std::string text =
        command::wrapped(finding.finding, status + indent.substr(status.size()) + name,
                         std::string(kStatusWidth + name_width(), ' '), columns);
    // Behind the wrapping, which counts characters.
    text.replace(0, status.size(), paint(colour_of(finding.status), status));
    if (!finding.cause.empty()) {
        text += command::wrapped(finding.cause, indent + "cause: ", indent + "       ", columns);
    }
    if (!finding.mend.empty()) {
        text += command::wrapped(finding.mend, indent + "mend:  ", indent + "       ", columns);
    }
    return text;
}

std::string sum_of(const std::vector<Result>& results) {
    const auto warned = count(results, Status::warn);
    const auto failed = count(results, Status::fail);
    return std::to_string(count(results, Status::ok)) + " ok, " + std::to_string(warned) +
           " WARN, " + std::to_string(failed) + " FAIL, " +
           std::to_string(count(results, Status::none)) + " not looked at\n";
}

int exit_status(const std::vector<Result>& results) {
    return count(results, Status::fail) > 0 ? 2 : count(results, Status::warn) > 0 ? 1 : 0;
}

std::string json_of(const std::vector<Result>& results) {
    command::Json json = command::json_head("dat_doctor");
    json["status"] = exit_status(results);
    json["checks"] = command::Json::array();
    for (const Result& result : results) {
        command::Json one{{"id", name_of(*result.check)},
                          {"what", result.check->what},
                          {"probe", result.check->probe},
                          {"status", json_word(result.finding.status)},
                          {"finding", result.finding.finding}};
        if (!result.finding.cause.empty()) {
            one["cause"] = result.finding.cause;
        }
        if (!result.finding.mend.empty()) {
            one["mend"] = result.finding.mend;
        }
        json["checks"].push_back(std::move(one));
    }
    return command::json_text(json);
}

} // namespace dat::doctor
