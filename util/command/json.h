// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What --json of each command prints: an object that begins with who printed it. Its form is in
// schema/COMMAND.schema.json, and changes by additions only while `format` stays.
#ifndef DAT_UTIL_COMMAND_JSON_H
#define DAT_UTIL_COMMAND_JSON_H

#include "command/command.h"

#include <nlohmann/json.hpp>
#include <string>

namespace dat::command {

using Json = nlohmann::ordered_json;

inline constexpr int kJsonFormat = 1;

inline Json json_head(const char* name) {
    return {{"command", name}, {"version", version()}, {"format", kJsonFormat}};
}

// What is no UTF-8, such as a name of a file, is replaced, not refused.
inline std::string json_text(const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
// In one line, of a command that prints again and again.
inline std::string json_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dat::command

#endif
