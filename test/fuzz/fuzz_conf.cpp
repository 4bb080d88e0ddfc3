// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: dat.conf (REG-1). Input: the file.
#include "input.h"

#include "dat-shim/conf.h"

#include <string>

using namespace dat::shim;

namespace {

std::string quoted(const std::string& text) {
    std::string all = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            all += '\\';
        }
        all += c;
    }
    return all + "\" ";
}

// As somebody would write the entry who knows the rules.
std::string written(const ConfEntry& entry) {
    return quoted(entry.name) + "u" + std::to_string(entry.major) + "." +
           std::to_string(entry.minor) + (entry.thread_safe ? " threadsafe" : " nonthreadsafe") +
           (entry.is_default ? " default " : " nondefault ") + quoted(entry.library) +
           quoted(entry.provider_version) + quoted(entry.parameters) + quoted(entry.platform);
}

bool same(const ConfEntry& a, const ConfEntry& b) {
    return a.name == b.name && a.major == b.major && a.minor == b.minor &&
           a.thread_safe == b.thread_safe && a.is_default == b.is_default &&
           a.library == b.library && a.provider_version == b.provider_version &&
           a.parameters == b.parameters && a.platform == b.platform;
}

void check_entry(const ConfEntry& entry) {
    FUZZ_CHECK(!entry.name.empty() && entry.name.size() < 256 && !entry.library.empty());
    FUZZ_CHECK(entry.name.find('\0') == std::string::npos); // it goes into a string of C
    bool complained = false;
    const auto again = parse_conf(written(entry), [&](const ConfProblem&) { complained = true; });
    FUZZ_CHECK(!complained && again.size() == 1 && same(again.front(), entry));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    std::vector<std::size_t> lengths;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lengths.push_back(end - at);
        at = end + 1;
    }
    std::size_t last = 0;
    const auto entries = parse_conf(text, [&](const ConfProblem& problem) {
        FUZZ_CHECK(problem.line > last && problem.line <= lengths.size()); // one a line
        FUZZ_CHECK(problem.column >= 1 && problem.column <= lengths[problem.line - 1] + 1);
        FUZZ_CHECK(!problem.expected.empty());
        last = problem.line;
    });
    FUZZ_CHECK(entries.size() <= lengths.size());
    for (const ConfEntry& entry : entries) {
        check_entry(entry);
    }
    return 0;
}
