// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the simulators' commands have in common: their options, and what they print. Each is one
// file with a main(), so all of it is inline.
#ifndef DAT_TEST_SIM_COMMAND_H
#define DAT_TEST_SIM_COMMAND_H

#include "../transport/sanitized.h"
#include "sim/exhaustive.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace dat::sim {

// A build without optimization or with a sanitizer.
#ifdef __OPTIMIZE__
inline constexpr bool kSlowBuild = test::kSanitized;
#else
inline constexpr bool kSlowBuild = true;
#endif

[[noreturn]] inline void bad(const char* what, const char* value) {
    std::fprintf(stderr, "%s: %s: %s (--help shows the options)\n", program_invocation_short_name,
                 what, value);
    std::exit(2);
}

inline std::uint64_t number_or_exit(const char* text) {
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-') {
        bad("not a number", text);
    }
    return value;
}

// "list" prints the names, and ends the program.
template <class Fault> Fault fault_or_exit(const char* text) {
    const bool list = std::strcmp(text, "list") == 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(Fault::count_); ++i) {
        if (name(static_cast<Fault>(i)) == text) {
            return static_cast<Fault>(i);
        }
        if (list) {
            std::printf("%s\n", name(static_cast<Fault>(i)).data());
        }
    }
    if (list) {
        std::exit(0);
    }
    bad("no such fault", text);
}

template <class Size, std::size_t n>
const Size& size_or_exit(const Size (&sizes)[n], const char* text) {
    for (const Size& size : sizes) {
        if (std::strcmp(size.name, text) == 0) {
            return size;
        }
    }
    bad("no such size", text);
}

// Ends the program.
template <class Size, std::size_t n>
[[noreturn]] void print_help(const char* usage, const Size (&sizes)[n]) {
    std::fputs(usage, stdout);
    for (const Size& size : sizes) {
        std::printf("    %-14s%s\n", size.name, size.what);
    }
    std::exit(0);
}

// The sizes for a test of this build: the first ones alone where it is slow. Ends the program.
template <class Size, std::size_t n>
[[noreturn]] void print_sizes(const Size (&sizes)[n], std::size_t if_slow) {
    for (std::size_t i = 0; i < (kSlowBuild ? if_slow : n); ++i) {
        std::printf("%s\n", sizes[i].name);
    }
    std::exit(0);
}

// How often each stimulus met each state.
template <class State, class Stimulus, std::size_t states, std::size_t stimuli>
void print_coverage(const std::array<std::array<std::uint64_t, states>, stimuli>& coverage) {
    std::printf("%-20s", "");
    for (std::size_t s = 0; s < states; ++s) {
        std::printf("%9s", abbreviation(static_cast<State>(s)).data());
    }
    for (std::size_t i = 0; i < stimuli; ++i) {
        std::printf("\n%-20s", name(static_cast<Stimulus>(i)).data());
        for (const std::uint64_t count : coverage[i]) {
            std::printf("%9llu", static_cast<unsigned long long>(count));
        }
    }
    std::printf("\n");
}

template <class Violations> void print(const Violations& violations) {
    for (const auto& violation : violations) {
        std::printf("host %c: %s\n", 'A' + violation.host, violation.rule.data());
    }
}

// Takes the actions one by one, prints what each causes, and returns 1 where something is violated.
// `progresses`: whether an action is one that comes by itself.
template <class World, class Config, class Progresses>
int replay(Config config, const Path& path, Progresses progresses) {
    config.notes = true;
    World world(config);
    for (const std::uint16_t index : path) {
        const auto actions = world.enabled_actions();
        if (index >= actions.size()) {
            bad("no such action", std::to_string(index).c_str());
        }
        std::printf("%4u  %s\n", index, to_string(actions[index]).c_str());
        world.step(actions[index]);
        for (const std::string& line : world.notes()) {
            std::printf("          %s\n", line.c_str());
        }
    }
    bool rests = true;
    for (const auto& action : world.enabled_actions()) {
        rests = rests && !progresses(action);
    }
    if (rests && world.violations().empty()) {
        world.check_rest();
    }
    print(world.violations());
    return world.violations().empty() ? 0 : 1;
}

} // namespace dat::sim

#endif
