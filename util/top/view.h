// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What dat_top prints of what it has seen: tables, JSON, and a textfile for Prometheus'
// node_exporter.
#ifndef UTIL_TOP_VIEW_H
#define UTIL_TOP_VIEW_H

#include "command/text.h"
#include "look.h"

#include <cstddef>
#include <string>

namespace dat::top {

struct Style {
    command::Paint paint;
    std::size_t columns = command::kUnlimited;
};

// `before`: the look before this one, from which rates come; where there is none they are "-".
std::string top_text(const Sight& sight, const Sight* before, const Style& style);
std::string ends_text(const Sight& sight, const Style& style);
// One document, of dat_top.schema.json, in one line.
std::string json_text(const Sight& sight, const Sight* before);
std::string prometheus_text(const Sight& sight);

// As the value of a label, with its quotes.
std::string label(const std::string& value);
// 12345678 as 12.3M; a power of 1000.
std::string short_number(double value);
std::string short_time(double seconds);

} // namespace dat::top

#endif
