// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The log of the uDAPL libraries: the standard error output, if a variable asks for it.
#include "dat-shim/log.h"

#include "engine/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <strings.h>

namespace dat::shim {
namespace {

constexpr int kQuiet = -1;

constexpr struct {
    const char* name;
    fi_log_level level;
} kLevels[] = {
    {"warn", FI_LOG_WARN}, {"trace", FI_LOG_TRACE}, {"info", FI_LOG_INFO}, {"debug", FI_LOG_DEBUG}};

const char* name_of(fi_log_level level) {
    const auto* const known =
        std::ranges::find(kLevels, level, [](const auto& each) { return each.level; });
    return known != std::end(kLevels) ? known->name : "?";
}

int chosen_level() {
    if (const char* text = std::getenv("FI_LOG_LEVEL")) {
        for (const auto& known : kLevels) {
            if (strcasecmp(text, known.name) == 0) {
                return known.level;
            }
        }
    }
    // The reference's variables: 1 errors, 2 warnings, the rest is more than that.
    for (const char* name : {"DAPL_DBG_TYPE", "DAT_DBG_TYPE"}) {
        if (const char* text = std::getenv(name)) {
            const unsigned long mask = std::strtoul(text, nullptr, 0);
            return mask == 0 ? kQuiet : (mask & ~3UL) == 0 ? int{FI_LOG_WARN} : int{FI_LOG_INFO};
        }
    }
    return kQuiet;
}

} // namespace

bool is_logged(fi_log_level level) {
    static const int chosen = chosen_level();
    return level <= chosen;
}

void log_line(fi_log_level level, const char* function, int line, const char* text) {
    const kernel::NoCancel while_writing;
    std::fprintf(stderr, "libdat:%s():%d<%s> %s", function, line, name_of(level), text);
}

} // namespace dat::shim
