// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The file dat.conf (dat_conf(5), REG-1).
#ifndef DAT_SHIM_CONF_H
#define DAT_SHIM_CONF_H

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dat::shim {

struct ConfEntry {
    std::string name;
    unsigned major = 0; // of the API
    unsigned minor = 0;
    bool thread_safe = false;
    bool is_default = false;
    std::string library; // not looked at
    std::string provider_version;
    std::string parameters; // device and port
    std::string platform;
};

// A line that cannot be used. Both count from 1.
struct ConfProblem {
    std::size_t line;
    std::size_t column;
    std::string expected; // what should have been there
};

// The entries of the text, which may begin with a byte-order mark of UTF-8; a bad line is left out
// and told of.
std::vector<ConfEntry> parse_conf(std::string_view text,
                                  const std::function<void(const ConfProblem&)>& complain);

} // namespace dat::shim

#endif
