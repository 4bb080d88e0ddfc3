// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See way.h.
#include "way.h"

#include "fabric_info.h"
#include "pair.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace dat::perf {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 30;

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

void add_setting(Way& way, std::string_view setting) {
    const std::size_t equals = setting.find('=');
    if (setting == "msg" || setting == "rdm") {
        way.endpoint = setting == "msg" ? Endpoint::msg : Endpoint::rdm;
    } else if (equals == std::string_view::npos || equals == 0) {
        throw Usage("behind @ comes VARIABLE=VALUE, msg or rdm, not '" + std::string(setting) +
                    "'");
    } else {
        way.environment.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    }
}

Way parse_way(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, '@');
    Way way;
    way.label = text;
    way.provider = parts[0];
    if (way.provider.empty()) {
        throw Usage("a provider without a name in the list of providers");
    }
    for (std::size_t i = 1; i < parts.size(); ++i) {
        add_setting(way, parts[i]);
    }
    return way;
}

std::size_t parse_size(std::string_view text) {
    std::size_t value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit = text.substr(static_cast<std::size_t>(rest - text.data()));
    constexpr std::string_view kUnits = "KMG";
    std::size_t shift = 0;
    if (unit.size() == 1) {
        const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
        const std::size_t at = kUnits.find(upper);
        shift = at == std::string_view::npos ? 0 : 10 * (at + 1);
    }
    if (error != std::errc() || (!unit.empty() && shift == 0) || value == 0 ||
        value > kLargest >> shift) {
        throw Usage("'" + std::string(text) +
                    "' is no size: a number from 1 to 1G, with K, M or G behind it");
    }
    return value << shift;
}

std::vector<std::size_t> range(const std::vector<std::string_view>& ends) {
    const std::size_t first = parse_size(ends[0]);
    const std::size_t last = parse_size(ends[1]);
    const std::size_t factor = ends.size() == 3 ? parse_size(ends[2]) : 8;
    if (first > last || factor < 2) {
        throw Usage(first > last ? "the first size is larger than the last"
                                 : "the factor between sizes has to be at least 2");
    }
    std::vector<std::size_t> sizes;
    for (std::size_t size = first; size < last; size *= factor) {
        sizes.push_back(size);
        if (size > kLargest / factor) {
            break;
        }
    }
    sizes.push_back(last);
    return sizes;
}

// Says in a process of its own: nothing, if the way is there, and its version, else the reason.
std::string reason_against(const Way& way, const std::string& address, std::string& version) {
    constexpr int kLimit_s = 30;
    const Outcome outcome = run_alone(
        [&] {
            set_environment(way);
            return provider_version(way, address);
        },
        kLimit_s);
    version = outcome.client;
    return outcome.ending == Ending::right ? std::string() : outcome.why;
}

std::vector<std::string> names_here() {
    constexpr int kLimit_s = 30;
    const Outcome outcome = run_alone(
        [] {
            ::unsetenv("FI_PROVIDER");
            std::string all;
            for (const std::string& name : provider_names()) {
                all += (all.empty() ? "" : "\n") + name;
            }
            return all;
        },
        kLimit_s);
    std::vector<std::string> names;
    for (const std::string_view name : split(outcome.client, '\n')) {
        if (!name.empty()) {
            names.emplace_back(name);
        }
    }
    return names;
}

} // namespace

std::vector<Way> parse_ways(std::string_view text) {
    std::vector<Way> ways;
    for (const std::string_view part : split(text, ',')) {
        Way way = parse_way(part);
        for (const Way& other : ways) {
            if (other.label == way.label) {
                throw Usage("the provider '" + way.label + "' is named twice");
            }
        }
        ways.push_back(std::move(way));
    }
    return ways;
}

Way socket_way() {
    return {.label = "socket", .kind = Kind::socket, .provider = {}, .environment = {}};
}
Way memory_way() {
    return {.label = "memory", .kind = Kind::memory, .provider = {}, .environment = {}};
}

std::vector<std::size_t> parse_sizes(std::string_view text) {
    const std::vector<std::string_view> ends = split(text, ':');
    if (ends.size() == 2 || ends.size() == 3) {
        return range(ends);
    }
    if (ends.size() > 3) {
        throw Usage("'" + std::string(text) +
                    "' is no range of sizes: FIRST:LAST or "
                    "FIRST:LAST:FACTOR");
    }
    std::vector<std::size_t> sizes;
    for (const std::string_view size : split(text, ',')) {
        sizes.push_back(parse_size(size));
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

std::string size_text(std::size_t size) {
    constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB"};
    std::size_t unit = 0;
    while (unit < 3 && size >= 1024 && size % 1024 == 0) {
        size /= 1024;
        ++unit;
    }
    return std::to_string(size) + kUnits[unit];
}

std::string missing_text(const Way& way, const std::vector<std::string>& names,
                         const std::string& reason) {
    const bool known = std::find(names.begin(), names.end(), way.provider) != names.end();
    std::string text = "provider '" + way.provider + "' ";
    if (known) {
        return text + "is there, but " + reason;
    }
    text += "is not here; libfabric has:";
    for (const std::string& name : names) {
        text += " " + name;
    }
    return text +
           (way.provider == "dat" ? " (FI_PROVIDER_PATH names the folder of libdat-fi.so)" : "");
}

std::vector<std::string> missing(const std::vector<Way>& ways, const std::string& address,
                                 std::string& version) {
    std::vector<std::string> lines;
    std::vector<std::string> names;
    for (const Way& way : ways) {
        const std::string reason = reason_against(way, address, version);
        if (!reason.empty()) {
            names = names.empty() ? names_here() : names;
            lines.push_back(missing_text(way, names, reason));
        }
    }
    return lines;
}

} // namespace dat::perf
